"""A case: one point of an experiment, frozen, with a name that says what it is.

The target is not part of a case: the same case is run on the simulator and on a real kernel, and
the two are held against each other by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from flashbed.formats.names import FORCED, SHIPPED
from flashbed.formats.profiles import USUAL_COMPRESSOR
from flashbed.plan.conditions import NEW, NONE, Faults, State
from flashbed.plan.database import PAPERS, Database

__all__ = ["AXES", "NO_ADVICE", "Case", "ReadAhead"]

AXES = (
    "board",
    "kernel",
    "fs",
    "read_ahead_kib",
    "window",
    "bulk_read",
    "compressor",
    "pattern",
    "requests",
    "request_bytes",
    "file_bytes",
    "seed",
    "pause_ns",
    "advice",
    "state",
    "faults",
    "database",
)
"""The common axes, in the order of the `cases` table."""


NO_ADVICE = "none"
ReadAhead = int | Literal["shipped"]
"""KiB, 0 is off; or that which the kernel ships, known when the case was measured."""


@dataclass(frozen=True)
class Case:
    """One point of an experiment.

    `pause_ns` is between two requests, `advice` what posix_fadvise says of an opened file,
    `compressor` the mount option `compr=`.
    """

    experiment: str
    board: str
    kernel: str
    fs: str
    read_ahead_kib: ReadAhead
    pattern: str
    requests: int
    request_bytes: int
    file_bytes: int
    seed: int
    state: State = NEW
    faults: Faults = NONE
    database: Database = PAPERS
    pause_ns: int = 0
    advice: str = NO_ADVICE
    bulk_read: bool = False
    compressor: str = USUAL_COMPRESSOR

    @property
    def forced_kib(self) -> int | None:
        """The window that is set; None leaves the one that the kernel gives."""
        return None if self.read_ahead_kib == SHIPPED else self.read_ahead_kib

    @property
    def window(self) -> str:
        """Who chose the read-ahead window."""
        return SHIPPED if self.forced_kib is None else FORCED

    @cached_property
    def case_id(self) -> str:
        """The case's name, the same on every machine; running it alone repeats this case."""
        of = f"-of-{self.file_bytes}" if self.file_bytes else ""
        name = (
            f"{self.fs}-{self.board}-{self.kernel}-{self.pattern}-{self.requests}x"
            f"{self.request_bytes}{of}-ra{self.read_ahead_kib}-s{self.seed}"
        )
        if self.pause_ns:
            name += f"-pause{_duration(self.pause_ns)}"
        if self.advice != NO_ADVICE:
            name += f"-{self.advice}advice"
        others = ((self.state, NEW), (self.faults, NONE), (self.database, PAPERS))
        mounted = ["bulk"] if self.bulk_read else []
        if self.compressor != USUAL_COMPRESSOR:
            mounted.append(f"{self.compressor}compr")
        return "-".join(
            [name, *mounted, *(str(given) for given, usual in others if given != usual)]
        )


def _duration(nanoseconds: int) -> str:
    whole, rest = divmod(nanoseconds, 1_000_000)
    return f"{nanoseconds}ns" if rest else f"{whole}ms"
