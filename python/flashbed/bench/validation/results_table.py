"""The table of `validate`'s results over all boards, suites and targets, for reports.

A row is a case, as `compare` returns it. Running a suite again replaces its rows; the others stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from flashbed.base.errors import InputError
from flashbed.base.files import whole
from flashbed.base.frames import DamagedError, read_parquet
from flashbed.base.locking import held
from flashbed.base.paths import shown
from flashbed.bench.validation import LIMITS, MEASURES, SUITES, ComparedSuite, summary
from flashbed.bench.validation.comparison import limits_kept
from flashbed.results.plausible import implausible
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.names import is_name

__all__ = ["KEPT", "has_results", "keep", "read_results", "summaries", "worst_cases"]

KEPT = "validation.parquet"
RUN = ("board", "kernel", "target", "suite")
"""The columns that identify a run of `validate`."""


def keep(
    directory: Path, run: dict[str, str], compared: ComparedSuite, provenance: dict[str, Any]
) -> None:
    """Puts a run into a directory's table, whole or not at all."""
    table = compared.table.with_columns(
        *(pl.lit(run[name]).alias(name) for name in RUN),
        pl.col("case_id").replace_strict(compared.kinds, return_dtype=pl.String).alias("kind"),
        *(pl.lit(value, pl.String).alias(name) for name, value in provenance.items()),
    )
    told = {**compared.refused, **compared.failed}
    missing = pl.DataFrame(
        [{**run, "case_id": case_id, "message": message} for case_id, message in told.items()],
        schema={**dict.fromkeys((*RUN, "case_id", "message"), pl.String)},
    )
    rows = pl.concat([table, missing], how="diagonal")
    path = directory / KEPT
    with held(directory, wait=True):
        if path.is_file():
            others = read_results(directory).join(pl.DataFrame([run]), on=RUN, how="anti")
            rows = pl.concat([others, rows], how="diagonal")
        with whole(path) as new:
            rows.sort(*RUN, maintain_order=True).write_parquet(new)


def has_results(directory: Path) -> bool:
    """Whether `validate` has kept something there."""
    return (directory / KEPT).is_file()


def read_results(directory: Path) -> pl.DataFrame:
    """The table of a directory. Raises `InputError`."""
    path = directory / KEPT
    try:
        table = read_parquet(path)
        if not _is_results(table):
            raise DamagedError("not a table of `validate`")
    except DamagedError:
        raise InputError(f"{shown(path)}: cannot be read; run `flashbed validate` again") from None
    return table


def _is_results(table: pl.DataFrame) -> bool:
    """Whether `keep` can have written a table, which may come from a stranger."""
    numbers = [f"{name}{end}" for name in MEASURES for end in ("", "_real", "_error_pct")]
    if not {"case_id", *RUN, *numbers} <= set(table.columns):
        return False
    for name, kind in table.schema.items():
        if name in numbers or name == "gc_choices":
            if not kind.is_numeric():
                return False
        elif kind != pl.String:
            return False
    words = {name: table[name].unique().to_list() for name in RUN}
    names = [*words["board"], *words["kernel"], *words["target"]]
    return (
        implausible(table, "validation") is None
        and all(isinstance(name, str) and is_name(name) for name in names)
        and set(words["suite"]) <= set(SUITES)
    )


def summaries(table: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each run, then one for each of its file systems: cases, errors, and `limits`.

    Limits apply to the run as a whole.
    """
    rows = []
    for key, run in sorted(table.partition_by(RUN, as_dict=True).items(), key=_sort_key):
        board, kernel, target, suite = key
        compared = run.filter(pl.col("message").is_null()) if "message" in run.columns else run
        told = summary(compared)
        limits = limits_kept(told, LIMITS[suite].get(target, {}))
        named = {"board": board, "kernel": kernel, "target": target, "suite": suite}
        missing = run.height - compared.height
        rows.append({**named, "fs": None, **told, "limits": limits, "missing": missing})
        for fs in FILE_SYSTEMS:
            part = compared.filter(pl.col("case_id").str.starts_with(f"validate-{fs}-"))
            if part.height:
                rows.append({**named, "fs": fs, **summary(part), "limits": {}, "missing": 0})
    return rows


def _sort_key(item: tuple[tuple[Any, ...], pl.DataFrame]) -> tuple[Any, ...]:
    board, kernel, target, suite = item[0]
    return board, kernel, target != "uml", target, list(SUITES).index(suite)


def worst_cases(table: pl.DataFrame, count: int) -> list[dict[str, Any]]:
    """The cases of each run with the largest errors, without exact ones."""
    errors = [f"{name}_error_pct" for name in MEASURES]
    largest = pl.max_horizontal(pl.col(error).abs() for error in errors)
    known = table.with_columns(largest.alias("largest")).filter(pl.col("largest") > 0)
    runs = known.sort("largest", descending=True, maintain_order=True).partition_by(
        RUN, as_dict=True
    )
    return [
        row for _, run in sorted(runs.items(), key=_sort_key) for row in run.head(count).to_dicts()
    ]
