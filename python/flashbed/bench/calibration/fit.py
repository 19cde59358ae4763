"""Fits a board's software prices to the times of a calibration's cases.

Chip timing is known and not fitted; the rest of a case's time is the CPU's. The simulator counts
how often each price occurs in a case: it runs with that price set to a unit and all others to zero
(the model is linear in its prices). Non-negative least squares over the relative errors gives the
prices.

A board that lacks a file system measures the other cases. Prices that occur in no case keep the
profile's value. A fit of some prices alone takes all others from the profile. Left out: prices
that no case can separate (stack/prices.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from flashbed.answers.analysis.least_squares import non_negative
from flashbed.base.errors import InputError
from flashbed.bench.calibration.cases import PAUSE_NS
from flashbed.bench.calibration.price_counts import FITTED, price_counts, times_ns, unit_of
from flashbed.stack.prices import How, Price, known_price, prices
from flashbed.stack.profiles import Board
from flashbed.targets.base import Program

__all__ = [
    "FITTED",
    "TIMER_SLACK_NS",
    "Fit",
    "cases_with",
    "fit",
    "seen_costs",
    "with_prices",
    "with_software_table",
]

TIMER_SLACK_NS = 50_000
"""Delay of an ordinary thread's timers (timer_slack_ns)."""


def seen_costs(requests: pl.DataFrame, syscall_ns: int) -> dict[str, int]:
    """The costs that single requests, or the gaps between them, show without a fit."""
    return {"fill_byte_ps": _fill_byte_ps(requests), "wake_ns": _wake_ns(requests, syscall_ns)}


def _fill_byte_ps(requests: pl.DataFrame) -> int:
    """The program's cost of generating a byte that it writes, from the gaps between requests.

    Uses the cases with long writes, whose gaps hold less than a thousandth of anything else.
    """
    case = pl.col("case_id")
    long = case.str.ends_with("kept-8192") | case.str.ends_with("kept-49152")
    ended = (pl.col("start_ns") + pl.col("latency_ns")).shift(1).over("case_id")
    gap = (pl.col("start_ns") - ended).alias("gap_ns")
    gaps = requests.filter(long).select(gap, "length_bytes").drop_nulls()
    gap_ns, filled = (int(gaps[column].sum()) for column in ("gap_ns", "length_bytes"))
    return round(1000 * gap_ns / filled)


def _wake_ns(requests: pl.DataFrame, syscall_ns: int) -> int:
    """Time from a timer's interrupt to the program that slept.

    Takes the lower decile of the gaps. A thread or a tick in between makes many of them longer; a
    processor that something else had already woken makes one in thirty shorter.
    """
    pauses = requests.filter(pl.col("case_id").str.ends_with("paused"), op="pause")
    undisturbed = pauses.select(pl.col("latency_ns").quantile(0.1, "lower")).item()
    return max(0, int(undisturbed) - PAUSE_NS - TIMER_SLACK_NS - syscall_ns)


def with_software_table(
    text: str, fitted: Fit, *, seen: dict[str, int], board: Board, source: str
) -> str:
    """A profile's text with the fitted costs as `[software]`, which must be its last table."""
    head = _before_software(text, board)
    lines = ["[software]", f"source = {json.dumps(source)}"]
    kept = {name: known_price(board.software, name) for name in fitted.kept}
    lines += [
        f"{name} = {value:_}  # not measured" for name, value in kept.items() if value is not None
    ]
    lines += _not_known(name for name, value in kept.items() if value is None)
    for name, value in fitted.costs.items():
        lines.append(f"{name} = {value:_}  # {_known(fitted, name)}")
    # These are facts of the board's kernel and no costs.
    for name in ("sched_clock_ns", "pointer_bytes"):
        if name in board.software.model_fields_set:
            lines.append(f"{name} = {getattr(board.software, name):_}")
    for price in _of("folded"):
        lines.append(f"{price.key} = {seen.get(price.key, 0):_}  # {price.why}")
    for price in _of("by hand"):
        there = known_price(board.software, price.key)
        if there is not None:
            lines.append(f"{price.key} = {there:_}  # {price.why}")
    return "\n".join([head.rstrip("\n"), "", *lines, ""])


def _not_known(names: Iterable[str]) -> list[str]:
    """The line for prices of no compressor that stay unknown."""
    found = [name for name in names if "." not in name]
    return [f"not_known = {json.dumps(found)}"] if found else []


def _before_software(text: str, board: Board) -> str:
    head, found, tail = text.partition("[software]")
    if not found or "\n[" in tail:
        raise InputError(f"{board.path}: [software] is not the last table of the profile")
    return head


def with_prices(text: str, fitted: Fit, board: Board) -> str:
    """A profile's text with costs that were fitted alone instead of those that it has.

    Its `[software]` must be its last table.
    """
    head = _before_software(text, board)
    table = text[len(head) :]
    for name, value in fitted.costs.items():
        line = f"{name} = {value:_}  # {_known(fitted, name)}, fitted alone"
        table, found = re.subn(rf"(?m)^{re.escape(name)} *=.*$", line, table)
        if not found:
            table = f"{table.rstrip()}\n{line}\n"
    return head + table


@dataclass(frozen=True)
class Fit:
    """Fitted costs (ns or ps), their standard errors, and each case's relative error (percent).

    `kept` holds the costs that were to be fitted and occur in no case.
    """

    costs: dict[str, int]
    standard_errors: dict[str, float]
    cases: pl.DataFrame
    kept: tuple[str, ...] = ()


def _known(fitted: Fit, name: str) -> str:
    error = fitted.standard_errors[name]
    return f"+- {error:,.0f}" if fitted.costs[name] else "0 fits best"


def _of(how: How) -> list[Price]:
    return [price for price in prices() if price.how == how]


def _held(board: Board, only: Sequence[str]) -> dict[str, int]:
    """The board's prices besides these. Raises `InputError` for one that is not fitted."""
    unknown = sorted(set(only) - set(FITTED))
    if unknown:
        raise InputError(f"--only {','.join(unknown)}: no price that a calibration fits")
    values = {
        name: known_price(board.software, name) for name in FITTED if only and name not in only
    }
    return {name: value for name, value in values.items() if value is not None}


def cases_with(cases: Sequence[Program], only: Sequence[str]) -> list[Program]:
    """The cases in which one of these prices occurs. Raises `InputError` as `fit`."""
    _held(cases[0].stack.board, only)
    times = times_ns(cases, {name: unit_of(name) for name in only})
    (rows,) = np.nonzero(times - times_ns(cases, {}))
    return [cases[int(row)] for row in rows]


def fit(cases: Sequence[Program], measured_ns: Sequence[int], only: Sequence[str] = ()) -> Fit:
    """Fits the prices of the cases' board to their measured times, ns, in the same order.

    With `only` just these; the others are the profile's. Raises `InputError` for a price that is
    not fitted.
    """
    measured = np.asarray(measured_ns, dtype=float)
    held = _held(cases[0].stack.board, only)
    free = tuple(name for name in FITTED if not only or name in only)
    chip = times_ns(cases, {})
    base = times_ns(cases, held) if held else chip
    counts = price_counts(cases, free, held)
    occurs = np.asarray(counts.any(axis=0))
    names = [name for name, there in zip(free, occurs, strict=True) if there]
    weights = 1.0 / measured
    system = counts[:, occurs] * weights[:, None]
    found = non_negative(system, (measured - base) * weights)
    table = pl.DataFrame(
        {
            "case_id": [program.case_id for program in cases],
            "measured_ns": [int(value) for value in measured],
            "chip_ns": [int(value) for value in chip],
            "error_pct": [round(100 * float(value), 2) for value in found.residual],
        }
    )
    costs = {name: round(float(value)) for name, value in zip(names, found.values, strict=True)}
    errors = [float(error) for error in found.standard_errors]
    kept = tuple(name for name in free if name not in costs)
    return Fit(costs, dict(zip(names, errors, strict=True)), table, kept)
