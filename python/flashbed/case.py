"""A case: one point of an experiment, frozen, with a name that says what it is.

The target is not part of a case: the same case is run on the simulator and on a real kernel, and
the two are held against each other by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flashbed.conditions import NEW, NONE, Faults, State

__all__ = ["AXES", "Case"]

AXES = (
    "board",
    "kernel",
    "fs",
    "read_ahead_kib",
    "bulk_read",
    "pattern",
    "requests",
    "request_bytes",
    "file_bytes",
    "seed",
    "state",
    "faults",
)
"""The common axes, in the order of the `cases` table."""


@dataclass(frozen=True)
class Case:
    """One point of an experiment. `read_ahead_kib` 0 is off."""

    experiment: str
    board: str
    kernel: str
    fs: str
    read_ahead_kib: int
    pattern: str
    requests: int
    request_bytes: int
    file_bytes: int
    seed: int
    state: State = NEW
    faults: Faults = NONE
    bulk_read: bool = False

    @cached_property
    def case_id(self) -> str:
        """The case's name, the same on every machine; running it alone repeats this case."""
        name = (
            f"{self.fs}-{self.board}-{self.kernel}-{self.pattern}-{self.requests}x"
            f"{self.request_bytes}-of-{self.file_bytes}-ra{self.read_ahead_kib}-s{self.seed}"
        )
        others = ((self.state, NEW), (self.faults, NONE))
        bulk = ["bulk"] if self.bulk_read else []
        return "-".join([name, *bulk, *(str(given) for given, usual in others if given != usual)])
