"""Applies a model: the cost of requests, with a band and parts, and the wear that follows.

It refuses what the tables did not have: another setting or page size, a number or size outside
their range, or more of a term than any of their cases had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flashbed.answers.costs.cost_fit import BAND
from flashbed.answers.costs.model import QUANTITIES, CostModel, Model, Prices, Setting
from flashbed.answers.costs.terms import SqlLoad, terms
from flashbed.answers.lifetimes.counters import wl_threshold_of
from flashbed.answers.lifetimes.estimate import DAY_S, YEAR_S, Observed
from flashbed.answers.lifetimes.subject import RoundWork, Subject
from flashbed.base.errors import InputError
from flashbed.plan.database import Database
from flashbed.stack.profiles import Board

__all__ = ["Predicted", "Prediction", "chosen", "only_database", "predict", "subject_of"]

_SLACK = 1 + 1e-9


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """A quantity, the ends of its band, and each term's part."""

    value: float
    low: float
    high: float
    unit: str
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Prediction:
    """The requests, the model, and the quantities it predicts."""

    model: CostModel
    load: SqlLoad
    quantities: Mapping[str, Predicted | None]


def only_database(model: Model, pattern: str) -> str | None:
    """The name of the database of every model of a pattern; None if there are several."""
    names = {each.setting.database for each in model.models if each.pattern == pattern}
    return names.pop() if len(names) == 1 else None


def chosen(model: Model, pattern: str, wanted: Mapping[str, str]) -> CostModel:
    """The only model of a pattern with the wanted setting. Raises `InputError`."""
    axes = tuple(Setting.model_fields)
    for name in wanted:
        if name not in axes:
            raise InputError(f"--set {name}: a model is chosen by {', '.join(axes)}")
    left = [each for each in model.models if each.pattern == pattern]
    if not left:
        there = ", ".join(dict.fromkeys(each.pattern for each in model.models))
        raise InputError(f"--pattern {pattern}: the model has {there}")
    for name, value in wanted.items():
        there = ", ".join(dict.fromkeys(_axis(each, name) for each in left))
        left = [each for each in left if _axis(each, name) == value]
        if not left:
            raise InputError(f"{name} {value}: of {pattern} the model has {there}")
    if len(left) > 1:
        for name in axes:
            values = dict.fromkeys(_axis(each, name) for each in left)
            if len(values) > 1:
                raise InputError(f"{name}: say which, there are {', '.join(values)}")
    return left[0]


def _axis(model: CostModel, name: str) -> str:
    value = getattr(model.setting, name)
    return str(value).lower() if isinstance(value, bool) else str(value)


def predict(model: CostModel, load: SqlLoad) -> Prediction:
    """The cost of requests. Raises `InputError` for what the tables did not have."""
    amounts = terms(load)
    _check(model, load, amounts)
    row = np.array([amounts[name] for name in model.terms])
    found = {
        name: None if prices is None else _predicted(prices, row)
        for name, prices in model.quantities.items()
    }
    return Prediction(model, load, {name: found[name] for name in QUANTITIES})


def _check(model: CostModel, load: SqlLoad, amounts: Mapping[str, float]) -> None:
    ranges = model.ranges
    names = ["requests", "request_bytes", "cache_pages"]
    names += ["records"] if load.pattern != "insert" else []
    for name in names:
        low, high = getattr(ranges, name)
        value = getattr(load, name)
        if not low <= value <= high:
            span = f"{low:,}" if low == high else f"{low:,} to {high:,}"
            raise InputError(f"{name} {value:,}: the model is of {span}, it says nothing beyond")
    if load.page_bytes not in ranges.page_bytes:
        there = ", ".join(f"{value:,}" for value in ranges.page_bytes)
        raise InputError(f"page_bytes {load.page_bytes:,}: the model is of {there}")
    if load.pattern != "insert" and load.requests > load.records:
        raise InputError(f"{load.requests:,} requests of {load.records:,} records")
    for name, value in amounts.items():
        largest = ranges.terms[name]
        if value > largest * _SLACK:
            raise InputError(
                f"{name} {value:,.0f}: the model's tables have {largest:,.0f} at most"
                " (fewer requests, or smaller ones)"
            )


def _predicted(prices: Prices, row: np.ndarray) -> Predicted:
    each = np.array(list(prices.prices.values()))
    value = float(row @ each)
    own = prices.scatter * max(value, 1.0)
    band = BAND * float(np.sqrt(own**2 + max(0.0, row @ np.array(prices.covariance) @ row)))
    parts = {
        name: float(part) for name, part in zip(prices.prices, row * each, strict=True) if part
    }
    return Predicted(
        value=value, low=max(0.0, value - band), high=value + band, unit=prices.unit, parts=parts
    )


def subject_of(found: Prediction, name: str, rounds_per_day: float, board: Board) -> Subject:
    """The wear of a partition if the requests repeat; no model knows its worst block."""
    erases, programs = found.quantities["flash_erases"], found.quantities["flash_programs"]
    time = found.quantities["time_ns"]
    if erases is None or programs is None:
        raise InputError("--rate: the model knows no erases and page writes")
    chip = board.chip
    synchronous = Database.parse(found.model.setting.database).synchronous
    block_bytes = chip.page_bytes * chip.pages_per_block
    programmed = programs.value * chip.page_bytes
    workload = RoundWork(
        seconds=None if time is None else time.value / 1e9,
        rounds_per_day=rounds_per_day,
        given_rate=True,
        bytes_written=None,
        bytes_by_cause=None,
        bytes_programmed=round(programmed),
        bytes_erased=round(erases.value * block_bytes),
        # A model does not know what stays in memory; without syncs that is everything.
        programs=round(programs.value) if synchronous == "off" else None,
    )
    fs = found.model.setting.fs
    # A year of rounds, so that the model's band decides, and not the few erases of one round.
    rounds = rounds_per_day * YEAR_S / DAY_S
    observed = Observed(
        seconds=YEAR_S,
        blocks=board.partition.blocks,
        erases=erases.value * rounds,
        worst=None,
        erases_slack=(erases.high - erases.value) * rounds,
        programmed_blocks=programmed / block_bytes * rounds,
        wl_threshold=wl_threshold_of(fs),
    )
    return Subject(
        name=name,
        observed=observed,
        board=board,
        blocks_erased=None,
        target=found.model.setting.target,
        fs=fs,
        workload=workload,
    )
