"""Pure functions from tables to tables: what the figures and the report show."""

from __future__ import annotations

from flashbed.analysis.agreement import agreement, agreement_summary
from flashbed.analysis.claims import Verdict, judge
from flashbed.analysis.file_reads import file_reads
from flashbed.analysis.measures import curves, measures, savings
from flashbed.analysis.rates import per_request, rate_points, rates
from flashbed.analysis.wear import wear_map, wear_summary

__all__ = [
    "Verdict",
    "agreement",
    "agreement_summary",
    "curves",
    "file_reads",
    "judge",
    "measures",
    "per_request",
    "rate_points",
    "rates",
    "savings",
    "wear_map",
    "wear_summary",
]
