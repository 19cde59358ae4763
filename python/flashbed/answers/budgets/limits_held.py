"""Judges what was measured by a budget's limits and by its baseline.

A line is one measure of one program on one stack. With a limit, the limit decides. Without one, a
measure that is worse than the baseline breaks the budget. The simulator repeats a run to the byte,
so there is no tolerance.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from flashbed.base.human import number_reader

__all__ = [
    "BROKEN",
    "MEASURES",
    "JudgedLine",
    "Row",
    "Verdict",
    "judged",
    "measures_of",
    "rounded",
    "text_of",
]

Verdict = Literal["holds", "broken", "worse", "not known", "better", "same", "new"]
BROKEN = ("broken", "worse", "not known")
"""Verdicts that break a budget."""
_DIGITS = 6


class Measure(NamedTuple):
    """A column of a comparison, what a limit's unit is of the column's, and how it is called."""

    column: str
    unit: float
    called: str
    at_least: bool = False


MEASURES: Mapping[str, Measure] = {
    "failed_calls": Measure("failed", 1, "failed calls"),
    "time_ms": Measure("time_ns", 1e6, "time"),
    "p50_latency_ms": Measure("p50_ns", 1e6, "p50 latency"),
    "p99_latency_ms": Measure("p99_ns", 1e6, "p99 latency"),
    "worst_latency_ms": Measure("worst_ns", 1e6, "worst latency"),
    "page_reads": Measure("page_reads", 1, "page reads"),
    "page_writes": Measure("page_writes", 1, "page writes"),
    "erases": Measure("erases", 1, "erases"),
    "amplification": Measure("amplification", 1, "amplification"),
    "energy_mj": Measure("energy_nj", 1e6, "energy"),
    "erases_per_day": Measure("erases_per_day", 1, "erases a day"),
    "years": Measure("years_low", 1, "years", at_least=True),
    "bytes_free": Measure("left_bytes", 1, "bytes left", at_least=True),
}
"""Keys of limits, in the order of the output."""
_USUAL_LIMITS = {"failed_calls": 0}
"""A program whose calls fail did not do its work."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one program did on one stack; `choice` tells its cases apart, if there are several.

    `measures` are in the units of limits; None is unknown. `inputs` are hashes of what it was
    measured with. `why` says of a measure why it is not known.
    """

    stack: str
    program: str
    choice: str
    measures: Mapping[str, float | None]
    limits: Mapping[str, float]
    inputs: Mapping[str, str]
    why: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, str]:
        """What a baseline finds it by."""
        return self.stack, self.program, self.choice

    @property
    def label(self) -> str:
        """The row in words."""
        return ", ".join(word for word in self.key if word)


@dataclass(frozen=True, kw_only=True)
class JudgedLine:
    """One measure of a row and its verdict. `kept` is the baseline's value."""

    row: Row
    measure: str
    value: float | None
    limit: float | None
    kept: float | None
    verdict: Verdict

    @property
    def breaks(self) -> bool:
        """Whether it breaks the budget."""
        return self.verdict in BROKEN

    @property
    def text(self) -> str:
        """The line as a sentence: what it is, what it may be, and by how much it differs."""
        about = MEASURES[self.measure]
        said = f"{self.row.label}: {about.called}"
        if self.value is None:
            return f"{said}: not known{self.row.why.get(self.measure, '')}"
        said = f"{said} {text_of(self.measure, self.value)}"
        if self.verdict in ("holds", "broken") and self.limit is not None:
            edge = "at least" if about.at_least else "at most"
            said += f", {edge} {text_of(self.measure, self.limit)}"
            return said + (f": {_by(self, self.limit)}" if self.breaks else "")
        if self.kept is None:
            return f"{said}: not in the baseline"
        said += f", {text_of(self.measure, self.kept)} in the baseline"
        return said if self.verdict == "same" else f"{said}: {_by(self, self.kept)}"


def _by(line: JudgedLine, other: float) -> str:
    """How far a value is from another, and in percent of it."""
    assert line.value is not None
    difference = line.value - other
    share = f" ({abs(difference) / other:.1%})" if other else ""
    word = "more" if difference > 0 else "less"
    return f"{text_of(line.measure, abs(difference))} {word}{share}"


def text_of(measure: str, value: float | None) -> str:
    """A value as `compare` prints it."""
    if value is None:
        return "-"
    about = MEASURES[measure]
    reads = number_reader(about.column, whole=value == int(value) and about.unit == 1)
    return reads(value * about.unit)


def rounded(value: float | None) -> float | None:
    """A value as a baseline keeps it: whole numbers as they are, others with six digits."""
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.{_DIGITS}g}")


def measures_of(found: Mapping[str, Any]) -> dict[str, float | None]:
    """The measures of a comparison's row, in the units of limits."""
    measures: dict[str, float | None] = {}
    for name, about in MEASURES.items():
        value = found.get(about.column)
        if value is not None and about.unit != 1:
            value = value / about.unit
        measures[name] = value
    return measures


def judged(
    rows: Sequence[Row],
    kept: Mapping[tuple[str, str, str], Mapping[str, float | None]] | None,
    watched: Collection[str] = tuple(MEASURES),
) -> Iterator[JudgedLine]:
    """A line for each limit, and for each watched measure that is known now or in the baseline."""
    for row in rows:
        before = None if kept is None else kept.get(row.key)
        for measure in MEASURES:
            value = row.measures.get(measure)
            usual = None if value is None else _USUAL_LIMITS.get(measure)
            limit = row.limits.get(measure, usual)
            old = None if before is None else before.get(measure)
            if limit is None and measure not in watched:
                continue
            if value is None and limit is None and old is None:
                continue
            verdict = _verdict(measure, value, limit, old)
            if verdict == "new" and before is None and kept is None:
                continue  # there is no baseline
            yield JudgedLine(
                row=row, measure=measure, value=value, limit=limit, kept=old, verdict=verdict
            )


def _verdict(measure: str, value: float | None, limit: float | None, kept: float | None) -> Verdict:
    at_least = MEASURES[measure].at_least
    if value is None:
        return "not known"
    if limit is not None:
        return "holds" if (value >= limit if at_least else value <= limit) else "broken"
    if kept is None:
        return "new"
    now = rounded(value)
    assert now is not None
    if now == kept:
        return "same"
    return "better" if (now > kept) == at_least else "worse"
