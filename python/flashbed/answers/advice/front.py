"""Which choices no other one beats, and which values of a setting help (docs/models/advice.md).

A row of a choice has the measures of `compare`. Less is better in each of them but bytes left.
Values within 2 % of each other are equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from math import inf, prod
from typing import Any

from flashbed.answers.advice.settings import Combination, Factor
from flashbed.answers.analysis.compared_choices import same

__all__ = [
    "Row", "Rows", "bases", "combined", "front", "gain", "helping", "one_at_a_time", "usable",
]  # fmt: skip

_MORE_IS_BETTER = ("left_bytes",)
_OF_A_FILE_SYSTEM = ("fs", "compressor", "mount")
Row = Mapping[str, Any]
Rows = Mapping[Combination, Row]
Levels = dict[str, list[str]]
"""Key -> values that help."""


def usable(row: Row) -> bool:
    """Whether the program did its work there."""
    return not row["failed"]


def gain(row: Row, base: Row, measure: str) -> float:
    """How many times better a row is; 1 where both are equal or not known."""
    one, two = row[measure], base[measure]
    if measure in _MORE_IS_BETTER:
        one, two = two, one
    if one is None or two is None or same(one, two):
        return 1.0
    return two / one if one else inf


def bases(now: Combination, file_systems: Sequence[str]) -> list[Combination]:
    """How it is now, and each other file system with what now sets for all of them."""
    shared = {key: value for key, value in now.sets if key not in _OF_A_FILE_SYSTEM}
    others = [fs for fs in file_systems if fs != now.fs]
    return [now, *(Combination(()).with_values(shared | {"fs": fs}) for fs in others)]


def one_at_a_time(
    base: Combination, settings: Iterable[Factor], *, apart: bool
) -> list[Combination]:
    """Each value of each setting alone, on a choice."""
    return [
        base.with_values({setting.key: value})
        for setting in settings
        if setting.key != "fs" and setting.apart == apart and setting.fits(base.fs)
        for value in setting.values
        if base.values.get(setting.key) != value
    ]


def helping(base: Combination, rows: Rows, measures: Sequence[str]) -> Levels:
    """The values that alone improve some measure, by their setting."""
    found: Levels = {}
    for choice, row in rows.items():
        new = [pair for pair in choice.sets if pair not in base.sets]
        if len(new) != 1 or choice.fs != base.fs or not usable(row):
            continue
        if any(gain(row, rows[base], measure) > 1 for measure in measures):
            (key, value) = new[0]
            found.setdefault(key, []).append(value)
    return found


def combined(
    base: Combination, rows: Rows, levels: Levels, *, goal: str, most: int
) -> list[Combination]:
    """Combinations of values that help, at most so many.

    The settings that help the goal most are combined. Each other one is at the value that is best
    for the goal, or as it is where none helps that.
    """

    def of(key: str, value: str) -> float:
        return gain(rows[base.with_values({key: value})], rows[base], goal)

    ranked = sorted(levels, key=lambda key: -max(of(key, value) for value in levels[key]))
    crossed: list[str] = []
    for key in ranked:
        if prod(len(levels[each]) + 1 for each in [*crossed, key]) <= most:
            crossed.append(key)
    fixed = {}
    for key in ranked:
        best = max(levels[key], key=lambda value: of(key, value))
        if key not in crossed and of(key, best) > 1:
            fixed[key] = best
    start = base.with_values(fixed)
    options = [[None, *levels[key]] for key in crossed]
    return [
        start.with_values({k: v for k, v in zip(crossed, values, strict=True) if v is not None})
        for values in itertools.product(*options)
    ]


def front(rows: Rows, measures: Sequence[str]) -> list[Combination]:
    """The choices that no other one beats; of equal ones that which sets least, given first."""
    kept: list[Combination] = []
    order = [choice for choice in rows if usable(rows[choice])]
    order.sort(key=lambda choice: (_sum_of_logs(rows[choice], measures), len(choice.sets)))
    for choice in order:
        row = rows[choice]
        if any(_covers(rows[other], row, measures) for other in kept):
            continue
        kept = [other for other in kept if not _covers(row, rows[other], measures)]
        kept.append(choice)
    return list(dict.fromkeys(_simplest(choice, rows, measures) for choice in kept))


def _sum_of_logs(row: Row, measures: Sequence[str]) -> float:
    """What no choice can have less of than one that it is beaten by: the product of measures."""
    factors = {measure: max(float(row[measure] or 0), 1.0) for measure in measures}
    return prod(1 / each if name in _MORE_IS_BETTER else each for name, each in factors.items())


def _covers(one: Row, two: Row, measures: Sequence[str]) -> bool:
    """Whether the first is at least as good in every measure that both know."""
    pairs = [
        (two[name], one[name]) if name in _MORE_IS_BETTER else (one[name], two[name])
        for name in measures
    ]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    return all(a <= b or same(a, b) for a, b in known)


def _simplest(choice: Combination, rows: Rows, measures: Sequence[str]) -> Combination:
    """Of the choices that are equal to this one in every measure, that which sets least."""
    equal = [
        other
        for other in rows
        if usable(rows[other])
        and _covers(rows[other], rows[choice], measures)
        and _covers(rows[choice], rows[other], measures)
    ]
    return min(equal, key=lambda other: len(other.sets))
