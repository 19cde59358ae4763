"""Pure functions from tables to tables, for figures and reports."""

from __future__ import annotations

from flashbed.answers.analysis.aged import aged
from flashbed.answers.analysis.agreement import agreement, agreement_summary
from flashbed.answers.analysis.energy_tables import energy_gaps, energy_summary
from flashbed.answers.analysis.file_reads import file_reads, throughput_of_cases
from flashbed.answers.analysis.measures import curves, measures, savings, waits_of_cases
from flashbed.answers.analysis.power_curves import measured_points, power_points
from flashbed.answers.analysis.rates import (
    extremes,
    per_request,
    rate_points,
    rates,
    requests_of_cases,
)
from flashbed.answers.analysis.statements import statement_agreement, statement_points
from flashbed.answers.analysis.verdicts import Verdict, WithoutSeed, judge, with_board
from flashbed.answers.analysis.wear import wear_map, wear_summary

__all__ = [
    "Verdict",
    "WithoutSeed",
    "aged",
    "agreement",
    "agreement_summary",
    "curves",
    "energy_gaps",
    "energy_summary",
    "extremes",
    "file_reads",
    "judge",
    "measured_points",
    "measures",
    "per_request",
    "power_points",
    "rate_points",
    "rates",
    "requests_of_cases",
    "savings",
    "statement_agreement",
    "statement_points",
    "throughput_of_cases",
    "waits_of_cases",
    "wear_map",
    "wear_summary",
    "with_board",
]
