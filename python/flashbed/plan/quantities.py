"""What an experiment reads from its points: metrics, axes, figures, and numbers in texts.

This is the model of `[[figure]]` and of the number that a claim or a text states (`ReducedMetric`),
and the metrics and axes both use (experiments/FIGURES.md). plan/claims.py has
`[[claim]]`, answers/analysis/points.py makes the points, answers/analysis/verdicts.py judges
claims, report/figures draws figures.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Field, model_validator

from flashbed.base.toml import Strict
from flashbed.plan.axes import Positive
from flashbed.plan.case import AXES
from flashbed.plan.grid import LIST, TargetName
from flashbed.stack.file_systems import FileSystem
from flashbed.stack.names import ExperimentId, Label, Name, Pattern, Text

__all__ = [
    "AgedMetric",
    "Figure",
    "FileReadMetric",
    "Metric",
    "Number",
    "Numbers",
    "PointAxis",
    "PowerMetric",
    "PublishedPoint",
    "RateMetric",
    "ReducedMetric",
    "RequestExtreme",
    "RequestMetric",
    "SavingMetric",
    "StatementMetric",
    "TargetNumber",
    "Value",
    "check_numbers",
    "filled",
    "placeholders",
    "with_words",
]  # fmt: skip

DrawnSaving = Literal[
    "time_saved_pct",
    "flash_reads_saved_pct",
    "energy_saved_pct",
    "component_energy_saved_pct",
    "component_cpu_saved_pct",
    "component_mem_saved_pct",
]
UndrawnSaving = Literal[
    "energy_apart_points",
    "component_energy_apart_points",
    "cache_hit_pct",
    "prefetch_kib",
    "flash_reads_per_stall",
]
"""Without standard deviations, so that no figure has their bands."""
SavingMetric = Literal[DrawnSaving, UndrawnSaving]
"""Metrics of pairs of cases with read-ahead on and off (answers/analysis/measures.py)."""
RateMetric = Literal[
    "time_ms",
    "flash_time_ms",
    "response_ms",
    "flash_response_ms",
    "throughput_mb_s",
    "flash_reads",
    "flash_programs",
    "flash_erases",
    "flash_reads_per_request",
    "flash_programs_per_request",
    "flash_share_pct",
    "background_flash_pct",
    "data_kib_s",
    "flash_reads_per_kib",
    "flash_programs_per_kib",
    "flash_erases_per_kib",
    "energy_mj",
    "energy_cpu_mj",
    "energy_mem_mj",
    "component_energy_mj",
    "write_amplification",
    "collected_kib",
    "levelled_kib",
    "ecc_corrected",
    "ecc_failed",
    "component_cpu_mj",
    "component_mem_mj",
    "component_flash_mj",
    "component_cpu_mw",
    "component_mem_mw",
    "component_flash_mw",
    "component_access_pct",
    "read_end_kb",
]
"""Metrics of one case (answers/analysis/rates.py)."""
AgedMetric = Literal[
    "time_over_new", "flash_time_over_new", "flash_reads_over_new", "flash_programs_over_new"
]
"""Metrics of a case that does not start from a new partition (answers/analysis/aged.py)."""
RequestMetric = Literal["latency_ms", "flash_pages"]
"""Metrics of one request (answers/analysis/rates.py)."""
RequestExtreme = Literal[
    "longest_ms", "shortest_ms", "tail_flash_ms", "most_flash_pages", "fewest_flash_pages"
]
"""Metrics of a case's requests furthest from the mean (answers/analysis/rates.py)."""
PowerMetric = Literal["power_mw", "component_power_mw"]
"""Power over time of a case, in either convention (answers/analysis/power_curves.py)."""
FileReadMetric = Literal["read_throughput_mb_s", "read_throughput_mib_s", "read_throughput_ratio"]
"""Metrics of files read from the first byte on (answers/analysis/file_reads.py)."""
StatementMetric = Literal["statement_ms", "statement_flash_ms", "statement_writes"]
"""Metrics of one SQL statement (answers/analysis/statements.py)."""
Metric = SavingMetric | RateMetric | RequestExtreme | FileReadMetric | StatementMetric | AgedMetric
_DERIVED = ("pause_ms", "window", "disabled_by", "read_pct", "statement")
"""Columns of points that are not axes of cases."""
POINT_AXES = (*(axis for axis in AXES if axis not in ("seed", "pause_ns")), *_DERIVED)


def _point_axis(name: str) -> str:
    if name not in POINT_AXES:
        raise ValueError(f"{name!r} is no axis; there are {', '.join(POINT_AXES)}")
    return name


PointAxis = Annotated[str, AfterValidator(_point_axis)]
"""A column of the points of figures and claims (experiments/FIGURES.md)."""

_OVER_AXES = (*get_args(FileReadMetric), *get_args(StatementMetric), *get_args(AgedMetric))
"""Metrics with an axis of their own."""

Positives = Annotated[tuple[Positive, ...], LIST]
FileSystems = Annotated[tuple[FileSystem, ...], LIST]
Patterns = Annotated[tuple[Pattern, ...], LIST]
Value = int | float | str
Values = Annotated[tuple[Value, ...], LIST]

Reduce = Literal[
    "min",
    "max",
    "mean",
    "only",
    "spread",
    "largest_rise",
    "smallest_rise",
    "share_of_rise",
    "last_above_lowest",
    "last_above_rest",
    "last_ratio_above_rest",
    "largest_difference_between_fs",
    "smallest_ratio_of_patterns",
    "smallest_ratio_of_fs",
    "median_ratio_of_fs",
    "largest_ratio_of_fs",
    "mean_ratio_of_patterns",
    "mean_ratio_of_fs",
    "mean_difference_of_patterns",
    "largest_over_smallest",
]
"""How values at several points are reduced to one number (experiments/FIGURES.md)."""


class ReducedMetric(Strict):
    """One number from the tables: a metric at some points, reduced.

    The points are the product of `requests`, `request_bytes` and `at`, or those of `points`, for
    each file system and pattern. `along` is the axis of the curves, if not all points form one
    curve.
    """

    metric: Metric
    fs: FileSystems
    pattern: Patterns
    requests: Positives | None = None
    request_bytes: Positives | None = None
    at: dict[PointAxis, Values] = Field(default_factory=dict)
    points: tuple[dict[PointAxis, Value], ...] = Field(default=(), strict=False)
    along: PointAxis | None = None
    reduce: Reduce

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if bool(self.points) == bool(self.requests):
            raise ValueError("requests: either they, with what is at other axes, or points")
        if self.points and (self.at or self.request_bytes or self.along):
            raise ValueError("points: name all axes, and go with no other key of them")
        if len({tuple(sorted(point)) for point in self.points}) > 1:
            raise ValueError("points: have the same axes")
        points = len(self.places)
        if self.reduce == "only" and len(self.pattern) * points != 1:
            raise ValueError("reduce = 'only' takes one pattern and one number of requests")
        if self.along is not None and self.along not in self.axes:
            raise ValueError(f"along = {self.along!r} is no axis of its points")
        curve = len(self.axes[self.along]) if self.along else points
        steps = (
            "largest_rise", "smallest_rise", "last_above_lowest", "last_above_rest",
            "last_ratio_above_rest",
        )  # fmt: skip
        if self.reduce in steps and curve < 2:
            raise ValueError(f"reduce = {self.reduce!r} takes two numbers of requests or more")
        if self.reduce == "share_of_rise" and curve != 3:
            raise ValueError("reduce = 'share_of_rise' takes three points a curve")
        fixed = {"fs", "pattern", "requests", "request_bytes", "board"} & self.at.keys()
        if fixed:
            raise ValueError(f"at: {min(fixed)}: has a key of its own, or is `compared`'s")
        pairs = ("largest_difference_between_fs", "last_ratio_above_rest")
        if self.reduce in pairs and len(self.fs) != 2:
            raise ValueError(f"reduce = {self.reduce!r} takes two file systems")
        if self.reduce.endswith("_of_patterns") and len(self.pattern) < 2:
            raise ValueError(f"reduce = {self.reduce!r} takes two patterns or more")
        if self.reduce.endswith("_ratio_of_fs") and len(self.fs) < 2:
            raise ValueError(f"reduce = {self.reduce!r} takes two file systems or more")
        return self

    @property
    def axes(self) -> dict[str, Values]:
        """The axes whose product is its points, besides file system and pattern."""
        counts = {"requests": self.requests} if self.requests else {}
        sizes = {"request_bytes": self.request_bytes} if self.request_bytes else {}
        return {**counts, **sizes, **{str(axis): values for axis, values in self.at.items()}}

    @property
    def places(self) -> list[dict[str, Value]]:
        """Its points, besides file system and pattern: axis -> value each, the last one fastest."""
        if self.points:
            return [{str(axis): value for axis, value in point.items()} for point in self.points]
        axes = self.axes
        return [
            dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())
        ]

    @property
    def chosen(self) -> set[str]:
        """The axes that it chooses values of."""
        return {*self.axes, *(str(axis) for point in self.points for axis in point)}


class TargetNumber(ReducedMetric):
    """A number of flashbed's: of `experiment` (by default this one), on one machine of `target`.

    By default the machine is the board and kernel that represent the paper's. A text shows the
    number with `digits` decimals.
    """

    digits: Annotated[int, Field(ge=0, le=6)] = 0
    target: TargetName = "sim"
    experiment: ExperimentId | None = None
    board: Name | None = None
    kernel: Name | None = None

    def text(self, value: float) -> str:
        """A value as a text shows it."""
        return f"{value:,.{self.digits}f}"


class Number(TargetNumber):
    """`numbers.NAME`: a number of flashbed's in an explaining text, and how it is computed.

    The text shows `value` in place of `{NAME}`. `flashbed verdicts` and the tests recompute it.
    """

    value: float = Field(strict=False)

    @property
    def shown(self) -> str:
        """The number as the text shows it."""
        return f"{self.value:.{self.digits}f}"


Numbers = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Number]
_PLACEHOLDER = re.compile(r"{([^{}]*)}")


def filled(text: str, numbers: Mapping[str, Number]) -> str:
    """A text with its numbers filled in."""
    return with_words(text, {name: number.shown for name, number in numbers.items()})


def with_words(text: str, words: Mapping[str, str]) -> str:
    """A text with a word in place of each name."""
    return _PLACEHOLDER.sub(lambda found: words[found.group(1)], text)


def placeholders(text: str) -> set[str]:
    """The names of the numbers that a text has places for."""
    return set(_PLACEHOLDER.findall(text))


def check_numbers(texts: Sequence[str | None], numbers: Mapping[str, Number]) -> None:
    """Raises `ValueError` unless the texts name exactly these numbers."""
    named = {name for text in texts if text for name in _PLACEHOLDER.findall(text)}
    odd = sorted(named ^ numbers.keys())
    if odd:
        problem = "missing" if odd[0] in named else "in no text"
        raise ValueError(f"numbers.{odd[0]}: {problem}")


class PublishedPoint(Strict):
    """`[[figure.published]]`: a value the paper states, for all its file systems.

    `at` has its values on further axes; `low` and `high` are the range that rounding leaves.
    """

    fs: FileSystems
    pattern: Pattern
    requests: Positive
    request_bytes: Positive | None = None
    at: dict[PointAxis, Value] = Field(default_factory=dict)
    value: float = Field(strict=False)
    low: float | None = Field(default=None, strict=False)
    high: float | None = Field(default=None, strict=False)
    text: Text


def _along(name: str) -> str:
    """What a figure is drawn along: an axis, or something within a case."""
    return name if name in (*_OF_REQUESTS, "time") else _point_axis(name)


def _coloured(name: str) -> str:
    """What colours show: an axis, or who measured."""
    return name if name == "stack" else _point_axis(name)


_OF_REQUESTS = ("request", "arrival_ms")
"""What single requests are drawn along: their number, or when they arrive."""
_USUAL_X = ("requests", "request_bytes", "request", "pattern", "fs", "time")


class Figure(Strict):
    """`[[figure]]`: one figure of the report. Savings are drawn over the number of requests.

    `only` selects points. With `colour`, `rows` or `columns` a figure is drawn over any axes
    (experiments/FIGURES.md). `text` says in words what the figure shows.
    """

    id: Label
    title: Text
    caption: Text
    text: Text | None = None
    metric: Metric | RequestMetric | PowerMetric
    scale: Literal["linear", "log"] = "linear"
    x: Annotated[str, AfterValidator(_along)] = "requests"
    only: dict[PointAxis, Values] = Field(default_factory=dict)
    colour: Annotated[str, AfterValidator(_coloured)] | None = None
    rows: PointAxis | None = None
    columns: PointAxis | None = None
    published: tuple[PublishedPoint, ...] = Field(default=(), strict=False)
    numbers: Numbers = Field(default_factory=dict)

    @property
    def chosen(self) -> set[str]:
        """The axes that it chooses values of."""
        named = (self.x, self.colour, self.rows, self.columns)
        return {*map(str, self.only), *(axis for axis in named if axis)}

    @property
    def filled_text(self) -> str | None:
        """Its text with numbers filled in."""
        return filled(self.text, self.numbers) if self.text else None

    @property
    def over_axes(self) -> bool:
        """Whether it names its axes and is none of the predefined figures."""
        return bool(self.colour or self.rows or self.columns)

    @model_validator(mode="before")
    @classmethod
    def _by_stack(cls, given: Any) -> Any:
        """Colours stacks, if the figure is along an axis that no predefined figure has."""
        placed = ("colour", "rows", "columns")
        if not isinstance(given, dict) or given.get("x", "requests") in _USUAL_X:
            return given
        if any(key in given for key in placed):
            return given
        return given | {"colour": "stack", "rows": "pattern", "columns": "fs"}

    @model_validator(mode="after")
    def _drawable(self) -> Self:
        check_numbers([self.text], self.numbers)
        if (self.x in _OF_REQUESTS) != (self.metric in get_args(RequestMetric)):
            raise ValueError(
                "x = 'request' or 'arrival_ms' goes with latency_ms and flash_pages, and no other"
            )
        if (self.x == "time") != (self.metric in get_args(PowerMetric)):
            raise ValueError("x = 'time' goes with power_mw and component_power_mw, and no other")
        if self.over_axes:
            if None in (self.colour, self.rows, self.columns):
                raise ValueError("colour, rows and columns go together")
        elif self.scale != "linear":
            raise ValueError("scale: goes with colour, rows and columns")
        elif self.x not in _USUAL_X or self.only or self.metric in _OVER_AXES:
            raise ValueError("colour, rows, columns: missing, and it is no predefined figure")
        elif self.metric in get_args(UndrawnSaving):
            raise ValueError(f"metric = {self.metric!r} is drawn over colour, rows and columns")
        return self
