"""Counts `power_cuts` and `cut_files` by case, for the terminal, the report and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from flashbed.base.human import aligned, time_text
from flashbed.bench.powercut.judge import RECOVERED, VERDICTS
from flashbed.bench.powercut.program_files import DAMAGED, NOT_JUDGED, OLD, STATES
from flashbed.results.columns import empty_table
from flashbed.results.run_directory import read_table
from flashbed.stack.names import escaped

__all__ = ["BAD_SHOWN", "cut_tables", "lines", "summary"]

BAD_SHOWN = 10
FILES_SHOWN = 10
_HEADS = ("file", *STATES, "lost at most", "what would have kept it")


def cut_tables(directory: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `power_cuts` and `cut_files` of a run; the latter may have no rows and no file."""
    there = (directory / "cut_files.parquet").is_file()
    files = read_table(directory, "cut_files") if there else empty_table("cut_files")
    return read_table(directory, "power_cuts"), files


def summary(cuts: pl.DataFrame, states: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each case and target, in the table's order.

    It has the number of cuts, of each verdict, and of acknowledged files (over all cuts), the
    minimum, median and maximum of the mount time, the first cuts that did not recover, and the
    program's files (`cut_files`) that were not new after every cut.
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
                "damaging_cuts": part.filter(pl.col("damaged_files") > 0).height,
                "program_files": part["program_files"].max(),
                "lost_transactions": part["lost_transactions"].max(),
                "files": _files(
                    states.filter((pl.col("case_id") == case_id) & (pl.col("target") == target))
                ),
                "first_bad": bad.head(BAD_SHOWN).select("change", "verdict", "reason").to_dicts(),
            }
        )
    return rows


def _files(states: pl.DataFrame) -> list[dict[str, Any]]:
    """The files that were not new after every cut: of each state how many, damaged ones first.

    A file that is not judged has no counts and stands last.
    """
    rows = []
    for (file,), part in states.group_by("file", maintain_order=True):
        counts = {state: part.filter(pl.col("state") == state).height for state in STATES}
        damaged = part.filter(pl.col("state").is_in(DAMAGED))
        worst = damaged if damaged.height else part.filter(pl.col("state") == OLD)
        advice = worst["kept_by"].value_counts().sort("count", "kept_by", descending=True)
        kept_by = advice["kept_by"][0] if advice.height else None
        lost_ns = part["lost_ns"].max()
        judged = part["state"][0] != NOT_JUDGED
        rows.append(
            {"file": file, "judged": judged, **counts, "lost_ns": lost_ns, "kept_by": kept_by}
        )
    return sorted(rows, key=_damage)


def _damage(row: dict[str, Any]) -> tuple[bool, int, str]:
    return not row["judged"], -sum(row[state] for state in DAMAGED), row["file"]


def lines(rows: list[dict[str, Any]]) -> list[str]:
    """A summary for the terminal: a line per case, then the first cuts that did not recover."""
    said = []
    for row in rows:
        said.append(f"{row['case_id']} on {row['target']}: {_counted(row)}")
        said.append(f"  mounted in {_times(row)}")
        for bad in row["first_bad"]:
            said.append(f"  cut {bad['change']}: {bad['verdict']}: {bad['reason']}")
        more = row["cuts"] - row[RECOVERED] - len(row["first_bad"])
        if more:
            said.append(f"  and {more} more (flashbed table DIR power_cuts)")
        said += _file_lines(row)
    return said


def _file_lines(row: dict[str, Any]) -> list[str]:
    """What the program found of its own files, as a table."""
    if not row["program_files"] and not row["files"]:
        return []
    judged = [file for file in row["files"] if file["judged"]]
    aside = [
        f"    {escaped(file['file'])}: not judged; SQLite repairs it when it is opened"
        for file in row["files"]
        if not file["judged"]
    ]
    if not judged:
        count = row["program_files"] or 0
        return [*([f"  the program's files ({count}): as it had left them"] if count else ()),
                *aside]  # fmt: skip
    table = [
        [escaped(file["file"]), *(str(file[state]) for state in STATES),
         time_text(file["lost_ns"]), escaped(file["kept_by"])]
        for file in judged[:FILES_SHOWN]
    ]  # fmt: skip
    said = ["  the program's files after the cuts, those that were not always new:"]
    said += (f"    {line}" for line in aligned([_HEADS, *table]))
    more = len(judged) - FILES_SHOWN
    if more > 0:
        said.append(f"    and {more} more (flashbed table DIR cut_files)")
    return [*said, *aside]


def _counted(row: dict[str, Any]) -> str:
    others = [
        f"{row[name.replace(' ', '_')]} {name}"
        for name in VERDICTS
        if name != RECOVERED and row[name.replace(" ", "_")]
    ]
    if row["damaging_cuts"]:
        others.append(f"{row['damaging_cuts']} damaged the program's files")
    return ", ".join([f"{row[RECOVERED]} of {row['cuts']} cuts recovered", *others])


def _times(row: dict[str, Any]) -> str:
    if row["mount_time_min_ns"] is None:
        return "no time: it never mounted"
    return (
        " / ".join(f"{row[f'mount_time_{name}_ns'] / 1e6:.1f}" for name in ("min", "median", "max"))
        + " ms (min / median / max)"
    )
