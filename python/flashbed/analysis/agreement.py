"""Simulator against kernel, case by case.

The error is the simulator's, in percent of the kernel's value, positive where the simulator counts
more. Both none is no error.
"""

from __future__ import annotations

import polars as pl

__all__ = ["ERRORS", "agreement", "agreement_summary"]

ERRORS = {
    "flash_reads_error_pct": "flash_reads",
    "flash_programs_error_pct": "flash_programs",
    "flash_erases_error_pct": "flash_erases",
    "time_error_pct": "time_ns",
}
"""Column of the error -> column of `cases` it is of."""

_AXES = ["fs", "pattern", "requests", "read_ahead_kib", "seed"]


def agreement(cases: pl.DataFrame) -> pl.DataFrame:
    """A row for each case that both `sim` and `emulator` ran, in the order of `cases`.

    Columns: case_id, the errors of `ERRORS`, axes, and both targets' values (`_sim`, `_emulator`).
    Where the kernel counts none and the simulator some, the error is 100.
    """
    values = list(ERRORS.values())
    emulator = cases.filter(pl.col("target") == "emulator").select("case_id", *values)
    sim = cases.filter(pl.col("target") == "sim").select("case_id", *_AXES, *values)
    both = sim.join(emulator, on="case_id", suffix="_emulator", maintain_order="left")
    return both.select(
        "case_id",
        *(_error_pct(value).alias(error) for error, value in ERRORS.items()),
        *_AXES,
        *(pl.col(value).alias(f"{value}_sim") for value in values),
        *(f"{value}_emulator" for value in values),
    )


def _error_pct(value: str) -> pl.Expr:
    sim, kernel = pl.col(value), pl.col(f"{value}_emulator")
    return (
        pl.when(sim == kernel)
        .then(0.0)
        .when(kernel == 0)
        .then(100.0)
        .otherwise((sim - kernel) / kernel * 100)
    )


def agreement_summary(table: pl.DataFrame) -> pl.DataFrame:
    """Per file system: cases, and the mean and largest size of each error, in percent."""
    return table.group_by("fs", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("cases"),
        *(pl.col(error).abs().mean().alias(f"{error}_mean") for error in ERRORS),
        *(pl.col(error).abs().max().alias(f"{error}_max") for error in ERRORS),
    )
