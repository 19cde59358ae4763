"""Calibration: the software prices of a board, fitted to cases that isolate them."""

from flashbed.bench.calibration.cases import programs
from flashbed.bench.calibration.fit import (
    Fit,
    cases_with,
    fit,
    seen_costs,
    with_prices,
    with_software_table,
)

__all__ = [
    "Fit",
    "cases_with",
    "fit",
    "programs",
    "seen_costs",
    "with_prices",
    "with_software_table",
]
