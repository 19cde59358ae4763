"""A table of choices with the quantiles of their calls, and what may be concluded from it.

A row is a choice on a target, as in `answer`. The calls that count are the rows of `requests`: each
system call from the mark to the end, failed ones too. What is no call is left out: pauses, the
program's own computing, and tasks that begin and end. A quantile is the nearest rank: p99 is the
shortest latency that at least 99 % of the calls do not exceed.

Page reads, page writes and erases include those of the `sync()` after the program, because cached
data reaches the flash later. A choice in which calls failed did not do the work, so it stands last
and no sentence compares it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl

from flashbed.answers.lifetimes.estimate import FEW_ERASES
from flashbed.answers.lifetimes.estimate_text import years_text
from flashbed.plan.case import AXES, Case

__all__ = [
    "BY", "CALLS", "CASES", "HEADS", "MEASURES", "NO_CALLS", "SAME", "Comparison",
    "case_words", "cautions", "changes", "compared", "effect", "ordered", "orders", "quantiles",
    "same", "sentences", "versus", "with_calls", "with_years",
]  # fmt: skip

SAME = 0.02
"""Simulator and kernel agree within 2 %, so a smaller difference is called none."""
HEADS = {
    "failed": "failed calls",
    "time_ns": "time in calls",
    "p50_ns": "p50",
    "p99_ns": "p99",
    "worst_ns": "worst",
    "flash_time_ns": "chip busy",
    "page_reads": "page reads",
    "page_writes": "page writes",
    "left_in_cache": "left in cache",
    "erases": "erases",
    "amplification": "WAF",
    "years_low": "years from",
    "years_high": "years to",
    "energy_nj": "energy",
    "left_bytes": "bytes left",
}
"""Columns of measures, in the order of the table -> their headings."""
MEASURES = tuple(HEADS)
BY = {
    "time": "time_ns", "chip-time": "flash_time_ns", "p50": "p50_ns", "p99": "p99_ns",
    "worst": "worst_ns", "reads": "page_reads", "writes": "page_writes", "erases": "erases",
    "years": "years_low", "energy": "energy_nj", "bytes-left": "left_bytes",
}  # fmt: skip
"""What rows can be ordered by -> the column."""
CASES = ("case_id", "target", "flush_reads", "flush_erases", "left_bytes")
"""Columns of `cases` that are read beside the axes."""
CALLS = ("case_id", "target", "op", "latency_ns")
"""Columns of `requests` that are read."""
_ORDERED = ("time_ns", "flash_time_ns", "page_reads", "page_writes", "erases")
"""Measures by which targets may order choices: where both know them."""
_SAID = {
    "time_ns": "time in calls", "p99_ns": "p99 latency", "flash_time_ns": "chip time in calls",
    "page_reads": "page reads", "page_writes": "page writes", "erases": "erases",
    "energy_nj": "energy",
}  # fmt: skip
"""What sentences compare, and how it is named there."""
_THAN = {
    "time_ns": "less", "p99_ns": "lower", "flash_time_ns": "less", "energy_nj": "less",
}  # fmt: skip
"""The word for a smaller value; of what is counted there are fewer."""
_MORE = {"p99_ns": "higher"}
"""The word for a larger value, where it is not more."""
_TITLES = {
    "years_low": "years", "p50_ns": "p50 latency", "p99_ns": "p99 latency",
    "worst_ns": "latency of the worst call", "flash_time_ns": "chip time in calls",
}  # fmt: skip
"""Where the heading of a column is no name of what is in it."""
NO_CALLS = ("pause", "compute", "spawn", "wait")
"""Operations that are no system call of the program."""
_PER_MILLE = {"p50_ns": 500, "p99_ns": 990, "p999_ns": 999, "worst_ns": 1000}
"""Columns of quantiles -> the share of calls that do not take longer."""
_SYNC_CAUTION = (
    "synchronous modes of a database differ in what a power cut loses: the fastest one may keep the"
    " least (docs/guide/power-cuts.md)"
)
_VM_CAUTION = (
    "a longer write-back interval keeps more data in memory only: a power cut loses what was not"
    " written yet"
)
_MOST = ("years_low", "left_bytes")
"""Measures of which more is better."""
_ONLY_DECIDING = ("flash_time_ns", "left_bytes")
_FEW = 6
"""How many of a kind are named."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Rows of choices, best first by the column `by`; `axes` are the columns in which they differ.

    On several targets the rows of a choice stand together, in the order of the first target.
    """

    axes: tuple[str, ...]
    rows: pl.DataFrame
    by: str

    @property
    def measured(self) -> list[str]:
        """Measures that are known somewhere; failed calls and a cache only where there are any.

        The chip's time and the bytes left are measures only where they decide.
        """
        unsaid = {"failed": {None, 0}, "left_in_cache": {None, 0}}
        for name in _ONLY_DECIDING:
            if self.by != name:
                unsaid[name] = set(self.rows[name])
        return [name for name in MEASURES if not set(self.rows[name]) <= unsaid.get(name, {None})]

    @property
    def title(self) -> str:
        """What the rows are, and which is first."""
        count = self.rows.height
        if count == 1:
            return "1 configuration"
        most = "most" if self.by in _MOST else "least"
        word = most if self.by in (*_THAN, *_MOST) or self.by.endswith("_ns") else "fewest"
        first = f"{word} {_TITLES.get(self.by, HEADS[self.by])} first"
        return f"{count:,} configurations, {'fastest first' if self.by == 'time_ns' else first}"

    @property
    def choices(self) -> list[str]:
        """The axes without the target."""
        return [axis for axis in self.axes if axis != "target"]


def compared(
    rows: pl.DataFrame, axes: Sequence[str], cases: pl.DataFrame, requests: pl.LazyFrame
) -> pl.DataFrame:
    """The rows of an `Answer` with every measure; null is unknown. Years are unknown here."""
    flushed = _flushed(cases, axes)
    with_flush = _joined(rows, flushed, axes)
    counted = with_flush.select(
        *axes, "cases", "failed", "time_ns", "flash_time_ns",
        (pl.col("flash_reads") + pl.col("flush_reads").fill_null(0)).alias("page_reads"),
        (pl.col("flash_programs") + pl.col("flush_programs").fill_null(0)).alias("page_writes"),
        pl.col("flush_programs").alias("left_in_cache"),
        (pl.col("flash_erases") + pl.col("flush_erases").fill_null(0)).alias("erases"),
        "amplification",
        "energy_nj",
        "left_bytes",
        pl.lit(None, pl.Float64).alias("years_low"),
        pl.lit(None, pl.Float64).alias("years_high"),
    )  # fmt: skip
    return with_calls(counted, axes, cases, requests).select(*axes, "cases", *MEASURES)


def _flushed(cases: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """What the `sync()` after each choice read and erased, and the least that was left then.

    Null if any of its cases is unknown.
    """
    least = {"left_bytes": pl.col("left_bytes").min()}
    names = ("flush_reads", "flush_erases", "left_bytes")
    known = [
        pl.when(pl.col(name).null_count() == 0).then(least.get(name, pl.col(name).sum()))
        for name in names
    ]
    return cases.group_by(_keys(axes)).agg(known)


def quantiles(*names: str) -> list[pl.Expr]:
    """Nearest ranks of `latency_ns` by the names of their columns; null if any is unknown."""
    latency, count = pl.col("latency_ns"), pl.len().cast(pl.Int64)
    return [
        pl.when(latency.null_count() == 0)
        .then(latency.sort().get((count * share + 999) // 1000 - 1, null_on_oob=True))
        .alias(name)
        for name, share in ((name, _PER_MILLE[name]) for name in names)
    ]


def with_calls(
    rows: pl.DataFrame, axes: Sequence[str], cases: pl.DataFrame, requests: pl.LazyFrame
) -> pl.DataFrame:
    """Rows with `p50_ns`, `p99_ns` and `worst_ns` of their calls; null if any is unknown."""
    keys = cases.lazy().select("case_id", "target", *(axis for axis in axes if axis != "target"))
    found = (
        requests.filter(~pl.col("op").is_in(NO_CALLS))
        .join(keys, on=["case_id", "target"])
        .group_by(_keys(axes))
        .agg(quantiles("p50_ns", "p99_ns", "worst_ns"))
    )
    return _joined(rows, found.collect(engine="streaming"), axes)


def _keys(axes: Sequence[str]) -> list[pl.Expr]:
    """What rows are grouped by; without any axis there is one group."""
    return [pl.col(axis) for axis in axes] or [pl.lit(0).alias("_whole")]


def _joined(rows: pl.DataFrame, more: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """Rows with what `more` has of the same choice; without axes it has `_whole` instead."""
    keyed = rows if axes else rows.with_columns(pl.lit(0).alias("_whole"))
    on = list(axes) or ["_whole"]
    found = keyed.join(more, on=on, how="left", nulls_equal=True, maintain_order="left")
    return found if axes else found.drop("_whole")


def with_years(
    rows: pl.DataFrame, axes: Sequence[str], cases: pl.DataFrame, years: pl.DataFrame
) -> pl.DataFrame:
    """Rows with the years of their case; a row of several cases has none.

    `years` has `case_id`, `target`, `years_low` and `years_high`.
    """
    of_axes = cases.join(years, on=["case_id", "target"]).select(*axes, "years_low", "years_high")
    alone = rows.drop("years_low", "years_high")
    if not axes:
        of_axes = of_axes.with_columns(pl.lit(0).alias("_whole"))
    if rows["cases"].max() != 1 or of_axes.is_empty():
        return rows
    return _joined(alone, of_axes, axes).select(rows.columns)


def years_words(rows: pl.DataFrame) -> pl.Series:
    """The years of each row in words, as a column `years`; null where neither end is known."""
    words = [
        None if low is None and high is None else years_text(low, high)
        for low, high in rows.select("years_low", "years_high").rows()
    ]
    return pl.Series("years", words, pl.String)


def ordered(rows: pl.DataFrame, axes: Sequence[str], by: str, targets: Sequence[str]) -> Comparison:
    """The rows, best first by a column; failed ones last, and unknown values behind known ones."""
    failing = pl.col("failed").fill_null(0) > 0
    best = rows.with_row_index("_first").sort(
        failing, by, "page_writes", "_first",
        descending=[False, by in _MOST, False, False], nulls_last=True,
    )  # fmt: skip
    choices = [axis for axis in axes if axis != "target"]
    if "target" in axes and choices:
        of_first = best.with_columns(
            pl.col("target").replace_strict(
                {name: at for at, name in enumerate(targets)}, default=len(targets)
            ).alias("_target")
        ).sort("_target", maintain_order=True)  # fmt: skip
        of_first = of_first.with_row_index("_rank")
        place = pl.col("_rank").min().over(choices)
        best = of_first.sort(place, "_target")
    return Comparison(axes=tuple(axes), rows=best.select(rows.columns), by=by)


def label(row: Mapping[str, Any], axes: Sequence[str]) -> str:
    """A choice in words: `ubifs with zstd, vm.dirty_ratio=5`."""
    words = [_word(axis, row[axis]) for axis in axes if axis not in ("fs", "compressor")]
    compressor = str(row["compressor"]) if "compressor" in axes else ""
    if "fs" in axes:
        words.insert(0, f"{row['fs']} with {compressor}" if compressor else str(row["fs"]))
    elif compressor:
        words.insert(0, f"compressor {compressor}")
    return ", ".join(words) or "it"


def case_words(cases: Sequence[Case]) -> dict[str, str]:
    """Case names -> what tells each from the others, in words; nothing for a single case."""
    values = {axis: {str(getattr(case, axis)) for case in cases} for axis in AXES}
    axes = [axis for axis, found in values.items() if len(found) > 1]
    rows = {case.case_id: {axis: str(getattr(case, axis)) for axis in axes} for case in cases}
    return {name: label(row, axes) if axes else "" for name, row in rows.items()}


def _word(axis: str, value: object) -> str:
    """As `--set` writes a key of an axis; otherwise the axis and its value."""
    return f"{axis}.{value}" if "=" in str(value) else f"{axis} {value}"


def sentences(found: Comparison) -> list[str]:
    """On each target, the best choice against each other one; failed choices are left out.

    Those that differ from it in nothing share a sentence.
    """
    said = []
    targets = found.rows["target"].unique(maintain_order=True) if "target" in found.axes else [None]
    for target in targets:
        rows = [row for row in found.rows.to_dicts() if target in (None, row.get("target"))]
        rows = [row for row in rows if not row["failed"] and row[found.by] is not None]
        rows.sort(key=lambda row: row[found.by], reverse=found.by in _MOST)
        before = "" if target is None else f"{target}: "
        alike = []
        for other in rows[1:]:
            names = (label(rows[0], found.choices), label(other, found.choices))
            text = versus(rows[0], other, names, by=found.by)
            if text is None:
                alike.append(label(other, found.choices))
            else:
                said.append(before + text)
        if alike:
            more = f" and {len(alike) - _FEW:,} more" if len(alike) > _FEW else ""
            those = f"{'; '.join(alike[:_FEW])}{more}"
            said.append(f"{before}{label(rows[0], found.choices)}: no difference from {those}")
    return said


def versus(
    best: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, str], *, by: str
) -> str | None:
    """How much less one row needs than another, and what it needs more of; None if no difference.

    `names` are theirs, and `by` is the measure that matters.
    """
    better, worse = _space(best, other, by)
    alike, few = [], ""
    for name, what in _SAID.items():
        one, two = best[name], other[name]
        if one is None or two is None or (name == "flash_time_ns" and by != name):
            continue
        if name == "erases" and max(one, two) < FEW_ERASES:
            few = "; too few erases to compare"
        elif same(one, two):
            alike.append(what)
        elif one < two:
            better.append(_less(name, one, two))
        else:
            worse.append(_less(name, two, one))
    years = _years(best, other)
    if not better and not worse and (years is None or years.apart is False):
        return None
    text = f"{names[0]}: "
    text += f"{', '.join(better)} than {names[1]}" if better else f"nothing better than {names[1]}"
    if worse:
        text += f", which has {', '.join(worse)}"
    if alike:
        text += f"; no difference in {', '.join(alike)}"
    text += few
    return text if years is None else f"{text}; {years.text}"


def effect(row: Mapping[str, Any], base: Mapping[str, Any], *, by: str) -> str | None:
    """What a row does better and worse than a base; None if no difference. `by` as in `versus`."""
    better, worse = _space(row, base, by)
    for name, what in _SAID.items():
        one, two = row[name], base[name]
        if one is None or two is None or (name == "flash_time_ns" and by != name):
            continue
        few = name == "erases" and max(one, two) < FEW_ERASES
        if few or same(one, two):
            continue
        if one < two:
            better.append(_less(name, one, two))
        else:
            times = f"{one / two:,.2f} times" if two else f"{one:,.0f} instead of no"
            worse.append(f"{times} {_MORE.get(name, 'more')} {what}")
    if not better and not worse:
        return None
    text = ", ".join(better)
    if worse:
        text += f"{', but ' if better else ''}{', '.join(worse)}"
    return text


def _space(row: Mapping[str, Any], base: Mapping[str, Any], by: str) -> tuple[list[str], list[str]]:
    """How many times more bytes are left, and in `worse` how many less, where that matters."""
    one, two = row.get("left_bytes"), base.get("left_bytes")
    if by != "left_bytes" or not one or not two or same(one, two):
        return [], []
    if one > two:
        return [f"{one / two:,.2f} times more bytes left"], []
    return [], [f"{two / one:,.2f} times fewer bytes left"]


def same(one: float, two: float) -> bool:
    """Whether two values of a measure cannot be told apart."""
    return abs(one - two) < SAME * max(abs(one), abs(two)) or one == two


def _less(name: str, one: float, two: float) -> str:
    """How much less the first is."""
    what = _SAID[name]
    if one == 0:
        return f"no {what}" if name in _THAN else f"no {what} instead of {two:,.0f}"
    return f"{two / one:,.2f} times {_THAN.get(name, 'fewer')} {what}"


class _Years(NamedTuple):
    text: str
    apart: bool


def _years(best: Mapping[str, Any], other: Mapping[str, Any]) -> _Years | None:
    """Both ranges of years; where they overlap they cannot be told apart."""
    ranges = [(row["years_low"], row["years_high"]) for row in (best, other)]
    if (None, None) in ranges:
        return None
    words = [years_text(*each) for each in ranges]
    if words[0] == words[1]:
        return _Years(f"{words[0]} for both", apart=False)
    (low, high), (low_2, high_2) = (
        (low or 0.0, math.inf if high is None else high) for low, high in ranges
    )
    both = f"{words[0]} against {words[1]}"
    if high < low_2 or high_2 < low:
        return _Years(both, apart=True)
    return _Years(f"{both}: these ranges overlap, so the years may be equal", apart=False)


def orders(found: Comparison) -> list[str]:
    """Whether targets put the choices in the same order, by each measure that all of them know.

    Only pairs count that differ by 2 % or more on both targets.
    """
    if "target" not in found.axes or not found.choices:
        return []
    good = found.rows.filter(pl.col("failed").fill_null(0) == 0)
    by_target: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {}
    for row in good.to_dicts():
        key = tuple(row[axis] for axis in found.choices)
        by_target.setdefault(row["target"], {})[key] = row
    names = list(by_target)
    said = []
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            said += _order(found, by_target[first], by_target[second], (first, second))
    return said


def _order(
    found: Comparison, one: Mapping[Any, dict[str, Any]], two: Mapping[Any, dict[str, Any]],
    names: tuple[str, str],
) -> list[str]:  # fmt: skip
    alike: list[str] = []
    said: list[str] = []
    for name in _ORDERED:
        pairs = list(_apart(name, one, two))
        turned = [pair for pair in pairs if not pair.same_order]
        if pairs and not turned:
            alike.append(HEADS[name])
        word = "less" if name in _THAN else "fewer"
        for pair in turned[:_FEW]:
            first, second = (label(one[key], found.choices) for key in (pair.better, pair.worse))
            said.append(
                f"{HEADS[name]}: on {names[0]} {word} with {first} than with {second},"
                f" on {names[1]} the other way round"
            )
        if len(turned) > _FEW:
            said.append(f"{HEADS[name]}: {len(turned) - _FEW:,} more pairs in another order")
    if alike:
        those = ", ".join(alike)
        said.insert(0, f"{names[0]} and {names[1]} order the configurations alike by {those}")
    return said


class _Pair(NamedTuple):
    """Two choices by their keys, the better one of the first target first."""

    better: Any
    worse: Any
    same_order: bool


def _apart(
    name: str, one: Mapping[Any, dict[str, Any]], two: Mapping[Any, dict[str, Any]]
) -> Iterator[_Pair]:
    """Pairs of choices that both targets tell apart by a measure."""
    values = [(key, one[key][name], two[key][name]) for key in one if key in two]
    known = [each for each in values if each[1] is not None and each[2] is not None]
    for (key, first, first_2), (other, second, second_2) in itertools.combinations(known, 2):
        few = name == "erases" and max(first, second, first_2, second_2) < FEW_ERASES
        if few or same(first, second) or same(first_2, second_2):
            continue
        same_order = (first < second) == (first_2 < second_2)
        yield _Pair(*((key, other) if first < second else (other, key)), same_order)


def cautions(found: Comparison) -> list[str]:
    """What choices risk that the measures do not show."""
    said = []
    if "database" in found.axes:
        modes = {word for name in found.rows["database"] for word in name.split("-")}
        said += [_SYNC_CAUTION] if any(word.startswith("sync") for word in modes) else []
    return [*said, _VM_CAUTION] if "vm" in found.axes else said


def changes(rows: pl.DataFrame, kept: pl.DataFrame, axes: Sequence[str]) -> pl.DataFrame:
    """The axes, and how much of each measure changed against kept rows, in percent.

    Null where a value is not known, the kept one is 0 and this is not, or there is no kept row.
    """
    wanted = [name for name in MEASURES if name != "failed"]
    old = kept.select(*axes, *(pl.col(name).alias(f"{name} kept") for name in wanted))
    if not axes:
        old = old.with_columns(pl.lit(0).alias("_whole"))
    both = _joined(rows, old, axes)
    return both.select(*axes, *(_change(name) for name in wanted))


def _change(name: str) -> pl.Expr:
    now, old = pl.col(name), pl.col(f"{name} kept")
    change = pl.when(now == old).then(0.0).when(old != 0).then((now / old - 1) * 100)
    return change.alias(f"{name}_change_pct")
