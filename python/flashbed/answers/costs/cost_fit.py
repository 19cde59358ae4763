"""Fits prices of the terms to `cases` tables; holds some cases out to test the fit.

Cases of one setting and pattern make a model. A case's error counts in percent, so a small
transaction weighs as much as a large one. Held out are all cases of the middle record size, and
every third number of requests except the smallest and the largest, so that predictions interpolate.
The saved model is the one that has not seen them.

Left out: databases with a name of their own, which does not tell their settings; scripts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from flashbed import __version__
from flashbed.answers.analysis.least_squares import Solution, non_negative
from flashbed.answers.analysis.measures import COMPONENT_NJ
from flashbed.answers.costs.model import (
    QUANTITIES,
    CostModel,
    CostSource,
    Model,
    Prices,
    Ranges,
    Setting,
)
from flashbed.answers.costs.terms import PATTERNS, SqlLoad, terms
from flashbed.base.errors import InputError
from flashbed.plan.case import AXES, CONDITIONS
from flashbed.plan.database import PAPERS, Database
from flashbed.results.run_directory import read_table

__all__ = ["BAND", "Fitted", "fit_cases", "fit_runs", "word_of"]

BAND = 1.96
"""Standard deviations on either side of a prediction: 95 %."""
HELD_OUT_EVERY = 3
_ALONE = 1e-6
"""A column with less of its length left is explained by the columns before it."""


@dataclass(frozen=True)
class Fitted:
    """The model, and the cases left out of it: reason -> number of cases."""

    model: Model
    left_out: dict[str, int]


def fit_runs(directories: Sequence[Path]) -> Fitted:
    """The model of the cases of runs. Raises `InputError`."""
    tables = [read_table(directory, "cases") for directory in directories]
    return fit_cases(pl.concat(tables))


def fit_cases(cases: pl.DataFrame) -> Fitted:
    """The model of a `cases` table. Raises `InputError` if there is nothing to fit it to."""
    cases = cases.unique(["case_id", "target"], keep="last", maintain_order=True)
    cases = cases.with_columns(COMPONENT_NJ.alias("component_energy_nj"))
    groups: dict[tuple[Setting, str], list[_Row]] = {}
    left_out: dict[str, int] = {}
    for case in cases.iter_rows(named=True):
        try:
            row = _row(case)
        except InputError as why:
            left_out[str(why)] = left_out.get(str(why), 0) + 1
            continue
        groups.setdefault((row.setting, row.load.pattern), []).append(row)
    if not groups:
        reasons = "; ".join(f"{count} cases: {why}" for why, count in left_out.items())
        raise InputError(f"nothing to fit a model to: {reasons or 'no cases'}")
    settings = list(dict.fromkeys(setting for setting, _ in groups))
    ordered = sorted(groups.items(), key=lambda item: settings.index(item[0][0]))
    models = tuple(_model(*key, rows) for key, rows in ordered)
    used = [row.case for rows in groups.values() for row in rows]
    return Fitted(
        Model(flashbed_version=__version__, sources=_sources(used), models=models), left_out
    )


@dataclass(frozen=True)
class _Row:
    case: dict[str, Any]
    setting: Setting
    load: SqlLoad


def _row(case: dict[str, Any]) -> _Row:
    """A case as a row. Raises `InputError` with the reason why it is left out."""
    if case["pattern"] not in PATTERNS:
        raise InputError(f"pattern {case['pattern']} has no terms")
    try:
        database = Database.parse(case["database"])
    except InputError:
        raise InputError(f"database {case['database']} is a name of your own") from None
    settings = [name for name in Setting.model_fields if name != "database"]
    for axis in CONDITIONS:
        known = axis in Setting.model_fields or case.get(axis) in (
            None, AXES[axis].cell(AXES[axis].usual),
        )  # fmt: skip
        if not known:
            raise InputError(f"{axis} {case[axis]} is not a setting of a model")
    load = SqlLoad(
        pattern=case["pattern"],
        requests=case["requests"],
        request_bytes=case["request_bytes"],
        page_bytes=database.page_bytes,
        cache_pages=database.cache_pages,
        records=database.records,
        read_ahead_kib=case["read_ahead_kib"],
    )
    setting = Setting(**{name: case[name] for name in settings}, database=word_of(database))
    return _Row(case, setting, load)


def word_of(database: Database) -> str:
    """The database's word, without what a model has terms or ranges for."""
    others = {name: getattr(PAPERS, name) for name in ("page_bytes", "cache_pages", "records")}
    return str(database.model_copy(update=others))


def _sources(used: Sequence[dict[str, Any]]) -> tuple[CostSource, ...]:
    keys = ("experiment", "experiment_sha256", "commit")
    counts: dict[tuple[Any, ...], int] = {}
    for case in used:
        key = tuple(case[name] for name in keys)
        counts[key] = counts.get(key, 0) + 1
    return tuple(
        CostSource(**dict(zip(keys, key, strict=True)), cases=count)
        for key, count in counts.items()
    )


def _model(setting: Setting, pattern: str, rows: Sequence[_Row]) -> CostModel:
    where = f"{setting.fs} {pattern} on {setting.target}, {setting.board}, Linux {setting.kernel}"
    same = {
        name: _only(rows, name, where)
        for name in ("board_sha256", "kernel_sha256", "energy_convention")
    }
    counts = sorted({row.load.requests for row in rows})
    sizes = sorted({row.load.request_bytes for row in rows})
    held_counts = tuple(counts[1:-1:HELD_OUT_EVERY])
    held_sizes = (sizes[len(sizes) // 2],) if len(sizes) > 2 else ()
    held = np.array(
        [row.load.requests in held_counts or row.load.request_bytes in held_sizes for row in rows]
    )
    amounts = [terms(row.load) for row in rows]
    every = np.array([list(each.values()) for each in amounts])
    columns = _told_apart(every[~held])
    names = tuple(list(amounts[0])[column] for column in columns)
    if not held.any() or int((~held).sum()) <= len(names):
        raise InputError(
            f"{where}: {len(rows)} cases, of which {int((~held).sum())} are left to fit"
            f" {len(names)} prices to; run more numbers of requests and sizes of records"
        )
    system = every[:, columns]
    return CostModel(
        setting=setting,
        pattern=pattern,
        **same,
        cases=len(rows),
        held_out_cases=int(held.sum()),
        held_out_requests=held_counts,
        held_out_request_bytes=held_sizes,
        ranges=_ranges(rows, amounts),
        terms=names,
        quantities={
            name: _prices(rows, name, names=names, system=system, held=held) for name in QUANTITIES
        },
    )


def _only(rows: Sequence[_Row], name: str, where: str) -> Any:
    values = {row.case[name] for row in rows}
    if len(values) > 1:
        raise InputError(f"{where}: runs differ in {name}; run them again")
    return values.pop()


def _told_apart(amounts: np.ndarray) -> list[int]:
    """The columns that are no linear combination of columns before them."""
    kept: list[int] = []
    for column in range(amounts.shape[1]):
        length = np.linalg.norm(amounts[:, column])
        if not length:
            continue
        unit = amounts[:, column] / length
        before = amounts[:, kept]
        if kept:
            before = before / np.linalg.norm(before, axis=0)
            explained, *_ = np.linalg.lstsq(before, unit, rcond=None)
            unit = unit - before @ explained
        if np.linalg.norm(unit) > _ALONE:
            kept.append(column)
    return kept


def _ranges(rows: Sequence[_Row], amounts: Sequence[dict[str, float]]) -> Ranges:
    def bounds(name: str) -> tuple[int, int]:
        values = [getattr(row.load, name) for row in rows]
        return min(values), max(values)

    return Ranges(
        requests=bounds("requests"),
        request_bytes=bounds("request_bytes"),
        page_bytes=tuple(sorted({row.load.page_bytes for row in rows})),
        cache_pages=bounds("cache_pages"),
        records=bounds("records"),
        terms={name: max(each[name] for each in amounts) for name in amounts[0]},
    )


def _prices(
    rows: Sequence[_Row],
    quantity: str,
    *,
    names: Sequence[str],
    system: np.ndarray,
    held: np.ndarray,
) -> Prices | None:
    measured = [row.case[quantity] for row in rows]
    if any(value is None for value in measured):
        return None
    values = np.array(measured, dtype=float)
    weights = 1 / np.maximum(values, 1.0)
    weighted, wanted = system * weights[:, None], values * weights
    found = non_negative(weighted[~held], wanted[~held])
    missed = weighted[held] @ found.values - wanted[held]
    scatter = float(max(np.sqrt(found.variance), np.sqrt(np.mean(missed**2))))
    return Prices(
        unit=QUANTITIES[quantity],
        prices=dict(zip(names, found.values.tolist(), strict=True)),
        standard_errors=dict(zip(names, found.standard_errors.tolist(), strict=True)),
        covariance=tuple(tuple(line) for line in found.covariance.tolist()),
        scatter=scatter,
        residual_mean_pct=100 * float(np.abs(found.residual).mean()),
        residual_max_pct=100 * float(np.abs(found.residual).max()),
        held_out_mean_pct=100 * float(np.abs(missed).mean()),
        held_out_max_pct=100 * float(np.abs(missed).max()),
        held_out_within=_within(found, scatter, system[held], values[held]),
    )


def _within(found: Solution, scatter: float, system: np.ndarray, values: np.ndarray) -> float:
    predicted = system @ found.values
    own = scatter * np.maximum(predicted, 1.0)
    prices = np.einsum("ij,jk,ik->i", system, found.covariance, system)
    band = BAND * np.sqrt(own**2 + np.maximum(prices, 0.0))
    return float((np.abs(predicted - values) <= band + 1e-9 * np.abs(values)).mean())
