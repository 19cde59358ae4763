"""Axes: what an axis of experiments is, and the types of its values.

An axis is a field of `Case` (plan/case.py) that `axis` describes. From it follow the keys of
`[[grid]]` and their checks (plan/grid.py), what `--set` accepts (plan/narrowing.py), names of
cases, columns of the `cases` table (results/columns.py), and what figures and claims may choose
(plan/quantities.py, answers/analysis/points.py). What an axis does is left to its consumer: a
workload, or the runner, which passes it to the targets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.profiles import USUAL_COMPRESSOR

__all__ = [
    "READ_AHEAD_KIB_MAX",
    "REQUIRED",
    "Axis",
    "Count",
    "DefaultWindow",
    "FileBytes",
    "Positive",
    "ReadAhead",
    "RequestBytes",
    "Requests",
    "Rounds",
    "Seconds",
    "WindowKib",
    "axis",
    "duration",
    "read_window",
    "takes_compressor",
]

Positive = Annotated[int, Field(gt=0, lt=2**40)]
Count = Annotated[int, Field(ge=0, lt=2**40)]
Requests = Annotated[int, Field(gt=0, le=10_000_000)]
Rounds = Annotated[int, Field(gt=0, le=1_000_000)]
Seconds = Annotated[int, Field(ge=0, le=86_400)]
RequestBytes = Annotated[int, Field(gt=0, le=1 << 30)]
"""The most that one operation can move (docs/reference/operations.md)."""
FileBytes = Annotated[int, Field(gt=0, le=1 << 33)]
READ_AHEAD_KIB_MAX = 1 << 20
"""1 GiB."""
WindowKib = Annotated[int, Field(ge=0, le=READ_AHEAD_KIB_MAX)]
DefaultWindow = Annotated[
    Literal["default"],
    BeforeValidator(lambda given: "default" if given == "shipped" else given),
]
"""The kernel's own window. Until version 0.2 also under its old name, `shipped`."""
ReadAhead = int | Literal["default"]
"""KiB, 0 for off; or the kernel's default, which is known once the case is measured."""

REQUIRED: Any = object()
"""The default of an axis that every grid must name."""


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What flashbed knows about an axis.

    `means` describes it in a line; `type` is pydantic's type of one value. `read` parses a word of
    `--set` (raising `ValueError` or `KeyError`), and `takes` says what it accepts. `adds` says what
    `--set` does with a value that no grid has: an error, a further value of all grids, or (for a
    profile's name) grids of its own. A case's name has `part` with each value that is not the
    default `usual`. `column` is its type in tables. For an axis that is `assumed`, a figure or
    claim that names no value means the default. `unfit` says why a file system lacks a value.
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
    """The value of `[workload]` applies where a grid does not name it."""
    chosen: bool = False
    """A designer chooses its value. The other axes describe the program and its initial state."""
    of_stack: bool = False
    """It is below a program that starts on a new file system: `exec` takes it (plan/stacks.py)."""

    def cell(self, value: Any) -> int | str:
        """A value as tables store it."""
        return value if self.column is int and isinstance(value, int) else str(value)

    @property
    def is_table(self) -> bool:
        """Whether its values are TOML tables that can also be written as one word."""
        return hasattr(self.type, "parse")


def axis(means: str, of: Any, **facts: Any) -> Any:
    """Makes a field of `Case` an axis; `facts` are the fields of `Axis`."""
    about = Axis(means=means, type=of, **facts)
    if about.is_table:
        about = dataclasses.replace(
            about, read=of.parse, takes=f"names, and words such as {of.example}", adds="value"
        )
    default = dataclasses.MISSING if about.usual is REQUIRED else about.usual
    return dataclasses.field(default=default, metadata={"axis": about})


def duration(nanoseconds: int) -> str:
    """Formats whole milliseconds, or nanoseconds."""
    whole, rest = divmod(nanoseconds, 1_000_000)
    return f"{nanoseconds}ns" if rest else f"{whole}ms"


def read_window(word: str) -> ReadAhead:
    """Parses a read-ahead window. Until version 0.2 also by its old name, `shipped`."""
    return "default" if word in ("default", "shipped") else int(word)


def takes_compressor(fs: str, compressor: str) -> str | None:
    """Why a file system cannot be mounted with this `compr=`; None if it can."""
    able = FILE_SYSTEMS[fs].compr if fs in FILE_SYSTEMS else ()
    if compressor == USUAL_COMPRESSOR or compressor in able:
        return None
    return f"{fs} takes {', '.join([USUAL_COMPRESSOR, *able])}, not {compressor}"
