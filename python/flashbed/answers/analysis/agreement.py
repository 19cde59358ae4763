"""Compares the simulator with real kernels, case by case.

User-mode Linux, where code takes no time, is compared with the simulator whose software takes none
(target `sim-chip`), if that ran. The error is in percent of the kernel's value, positive where the
simulator counts more. If both count 0 the error is 0; if only the kernel does, it is 100 %. What a
target cannot know (time, on user-mode Linux) is null.
"""

from __future__ import annotations

import polars as pl

from flashbed.results.run_directory import CHIP_ALONE

__all__ = ["ERRORS", "agreement", "agreement_summary", "error_pct"]

ERRORS = {
    "flash_reads_error_pct": "flash_reads",
    "flash_programs_error_pct": "flash_programs",
    "flash_erases_error_pct": "flash_erases",
    "flash_time_error_pct": "flash_time_ns",
    "time_error_pct": "time_ns",
}
"""Column of the error -> its column of `cases`."""

_AXES = ["fs", "pattern", "requests", "read_ahead_kib", "window", "seed"]


def error_pct(simulated: pl.Expr, real: pl.Expr) -> pl.Expr:
    """The simulator's error in percent of the kernel's value."""
    return (
        pl.when(simulated == real)
        .then(0.0)
        .when(real == 0)
        .then(100.0)
        .otherwise((simulated - real) / real * 100)
    )


def agreement(cases: pl.DataFrame) -> pl.DataFrame:
    """A row for each real target and case that it and the simulator ran, in the order of `cases`.

    Columns: target, case_id, the errors of `ERRORS`, axes, and both values (`_sim`, `_real`).
    """
    values = list(ERRORS.values())
    simulated = pl.col("target").is_in(["sim", CHIP_ALONE])
    real = cases.filter(~simulated).select("target", "case_id", *values)
    sim = cases.filter(pl.col("target") == "sim").with_columns(
        pl.lit(real["target"].unique(maintain_order=True).to_list()).alias("target")
    )
    alone = cases.filter(pl.col("target") == CHIP_ALONE).with_columns(pl.lit("uml").alias("target"))
    partners = pl.concat([alone, sim.explode("target")]).unique(
        ["target", "case_id"], keep="first", maintain_order=True
    )
    both = real.join(
        partners.select("target", "case_id", *_AXES, *values),
        on=["target", "case_id"], suffix="_sim", maintain_order="left",
    )  # fmt: skip
    return both.select(
        "target",
        "case_id",
        *(
            error_pct(pl.col(f"{value}_sim"), pl.col(value)).alias(error)
            for error, value in ERRORS.items()
        ),
        *_AXES,
        *(f"{value}_sim" for value in values),
        *(pl.col(value).alias(f"{value}_real") for value in values),
    )


def agreement_summary(table: pl.DataFrame) -> pl.DataFrame:
    """Per target and file system: cases, and mean and maximum of each error's size, percent."""
    return table.group_by("target", "fs", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("cases"),
        *(pl.col(error).abs().mean().alias(f"{error}_mean") for error in ERRORS),
        *(pl.col(error).abs().max().alias(f"{error}_max") for error in ERRORS),
    )
