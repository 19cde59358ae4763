"""Axes: what an axis of experiments is, and the types that their values have.

An axis is one entry, a field of `Case` (plan/case.py) that `axis` describes. From these follow the
keys of `[[grid]]` and their checks (plan/grid.py), what `--set` takes (plan/narrowing.py), names of
cases, columns of the `cases` table (tables/columns.py), and what figures and claims may choose
(plan/quantities.py, analysis/points.py). What an axis does is its consumer's: a workload's, or the
runner's, which hands it to the targets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from flashbed.formats.profiles import COMPR_OPTIONS, USUAL_COMPRESSOR

__all__ = [
    "READ_AHEAD_KIB_MAX",
    "REQUIRED",
    "Axis",
    "Count",
    "FileBytes",
    "Positive",
    "ReadAhead",
    "RequestBytes",
    "Requests",
    "WindowKib",
    "axis",
    "duration",
    "read_window",
    "takes_compressor",
]

Positive = Annotated[int, Field(gt=0, lt=2**40)]
Count = Annotated[int, Field(ge=0, lt=2**40)]
Requests = Annotated[int, Field(gt=0, le=10_000_000)]
RequestBytes = Annotated[int, Field(gt=0, le=1 << 30)]
"""As much as one operation moves (docs/operations.md)."""
FileBytes = Annotated[int, Field(gt=0, le=1 << 33)]
READ_AHEAD_KIB_MAX = 1 << 20
"""1 GiB."""
WindowKib = Annotated[int, Field(ge=0, le=READ_AHEAD_KIB_MAX)]
ReadAhead = int | Literal["shipped"]
"""KiB, 0 is off; or that which the kernel ships, known when the case was measured."""

REQUIRED: Any = object()
"""The usual value of an axis that every grid names."""


@dataclass(frozen=True)
class Axis:
    """What there is to know about an axis.

    `means` says it in a line, `type` is pydantic's, of one value. `read` makes a value of a word of
    `--set` (raising `ValueError` or `KeyError`), which takes what `takes` says. `adds` is what
    becomes of a value that no grid has: an error, another value of all grids, or (a profile's name)
    grids of its own. A case's name has `part` of a value that is not the usual one. `column` is its
    type in tables. A figure or claim that names no value of an axis that is `assumed` means the
    usual one. `unfit` says why a file system does not have a value.
    """

    means: str
    type: Any
    read: Callable[[str], Any] = str
    takes: str = "words"
    adds: Literal["nothing", "value", "profile"] = "nothing"
    part: Callable[[Any], str] = str
    column: type[int] | type[str] = str
    assumed: bool = False
    unfit: Callable[[str, Any], str | None] = lambda _fs, _value: None
    usual: Any = REQUIRED
    of_workload: bool = False
    """Where a grid does not name it, its value is that of `[workload]`."""
    chosen: bool = False
    """A designer chooses it; the other axes say what the program does and where it starts from."""

    def cell(self, value: Any) -> int | str:
        """A value as tables have it."""
        return value if self.column is int and isinstance(value, int) else str(value)

    @property
    def is_table(self) -> bool:
        """Whether its values are tables that can be written as one word."""
        return hasattr(self.type, "parse")


def axis(means: str, of: Any, **facts: Any) -> Any:
    """A field of `Case` that is an axis; `facts` are those of `Axis`."""
    about = Axis(means, of, **facts)
    if about.is_table:
        about = dataclasses.replace(
            about, read=of.parse, takes=f"names, and words such as {of.example}", adds="value"
        )
    default = dataclasses.MISSING if about.usual is REQUIRED else about.usual
    return dataclasses.field(default=default, metadata={"axis": about})


def duration(nanoseconds: int) -> str:
    """Whole milliseconds, or nanoseconds."""
    whole, rest = divmod(nanoseconds, 1_000_000)
    return f"{nanoseconds}ns" if rest else f"{whole}ms"


def read_window(word: str) -> ReadAhead:
    """A window of read-ahead."""
    return "shipped" if word == "shipped" else int(word)


def takes_compressor(fs: str, compressor: str) -> str | None:
    """Why a file system is not mounted with `compr=`."""
    able = COMPR_OPTIONS.get(fs, ())
    if compressor == USUAL_COMPRESSOR or compressor in able:
        return None
    return f"{fs} takes {', '.join([USUAL_COMPRESSOR, *able])}, not {compressor}"
