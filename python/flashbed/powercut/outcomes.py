"""Counts the `power_cuts` table by case, for the terminal, the report and JSON."""

from __future__ import annotations

from typing import Any

import polars as pl

from flashbed.powercut.judge import RECOVERED, VERDICTS

__all__ = ["BAD_SHOWN", "lines", "summary"]

BAD_SHOWN = 10


def summary(cuts: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each case and target, in the table's order.

    It has the number of cuts, of each verdict, and of acknowledged files (over all cuts), the
    minimum, median and maximum of the mount time, and the first cuts that did not recover.
    """
    rows = []
    for (case_id, target), part in cuts.group_by("case_id", "target", maintain_order=True):
        times = part.filter("mounted")["mount_time_ns"]
        bad = part.filter(pl.col("verdict") != RECOVERED)
        rows.append(
            {
                "case_id": case_id,
                "target": target,
                "cuts": part.height,
                **{
                    verdict.replace(" ", "_"): part.filter(pl.col("verdict") == verdict).height
                    for verdict in VERDICTS
                },
                "acknowledged_files": part["acknowledged_files"].sum(),
                "mount_time_min_ns": times.min(),
                "mount_time_median_ns": times.quantile(0.5, "lower"),
                "mount_time_max_ns": times.max(),
                "first_bad": bad.head(BAD_SHOWN).select("change", "verdict", "reason").to_dicts(),
            }
        )
    return rows


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """A summary for the terminal: a line per case, then the first cuts that did not recover."""
    said = []
    for row in rows:
        said.append(
            f"{row['case_id']} on {row['target']}: {_counted(row)}; mounted in {_times(row)}"
        )
        for bad in row["first_bad"]:
            said.append(f"  cut {bad['change']}: {bad['verdict']}: {bad['reason']}")
        more = row["cuts"] - row[RECOVERED] - len(row["first_bad"])
        if more:
            said.append(f"  and {more} more (flashbed table DIR power_cuts)")
    return said


def _counted(row: dict[str, Any]) -> str:
    others = [
        f"{row[name.replace(' ', '_')]} {name}"
        for name in VERDICTS
        if name != RECOVERED and row[name.replace(" ", "_")]
    ]
    return ", ".join([f"{row[RECOVERED]} of {row['cuts']} cuts recovered", *others])


def _times(row: dict[str, Any]) -> str:
    if row["mount_time_min_ns"] is None:
        return "no time: it never mounted"
    return (
        " / ".join(f"{row[f'mount_time_{name}_ns'] / 1e6:.1f}" for name in ("min", "median", "max"))
        + " ms (min / median / max)"
    )
