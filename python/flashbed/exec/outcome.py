"""What came of a program: the agent's answer (agent/host/launch.c), read."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field

from flashbed.errors import FlashbedError

__all__ = ["Call", "Counts", "NotRunError", "Outcome", "outcome_of"]

NOT_RUN, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
"""Exit statuses, as those of env(1)."""
SIGNALLED = 128


class NotRunError(FlashbedError):
    """The program could not be run to its end; the exit status says why, as env(1) does."""

    def __init__(self, message: str, exit_status: int = NOT_RUN) -> None:
        super().__init__(message)
        self.exit_status = exit_status


@dataclass(frozen=True)
class Counts:
    """Operations of the chip, and the time in which it was busy."""

    reads: int = 0
    programs: int = 0
    erases: int = 0
    busy_ns: int = 0


@dataclass(frozen=True)
class Call:
    """A kind of system call: how many, virtual time in them, bytes written to flash."""

    name: str
    calls: int
    ns: int
    bytes_written: int


@dataclass
class Outcome:
    """All of it. `flushed` is what was still written after the program ended."""

    exit_status: int = 0
    signal: int | None = None
    time_ns: int = 0
    ran: Counts = field(default_factory=Counts)
    flushed: Counts = field(default_factory=Counts)
    calls: list[Call] = field(default_factory=list)
    wear: list[int] = field(default_factory=list)
    page_bytes: int = 0

    @property
    def bytes_written(self) -> int:
        """By the program, to files on flash."""
        return sum(call.bytes_written for call in self.calls)

    @property
    def programs(self) -> int:
        """Those of the flush as well."""
        return self.ran.programs + self.flushed.programs

    @property
    def bytes_programmed(self) -> int:
        """Whole pages."""
        return self.programs * self.page_bytes


def outcome_of(text: str, program: str) -> Outcome | None:
    """The answer, None if it does not go to its end. Raises `NotRunError`."""
    outcome = Outcome()
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        fields = rest.split(" ")
        if word == "end":
            return outcome
        if word == "error":
            raise NotRunError(f"not run: {rest}")
        if word == "cannot":
            _cannot(int(rest), program)
        try:
            _take(outcome, word, fields)
        except (ValueError, IndexError):
            raise NotRunError(f"the guest said what is not understood: {line[:80]}") from None
    return None


def _cannot(number: int, program: str) -> None:
    why = os.strerror(number)
    if number == errno.ENOENT:
        # The program is there: its interpreter or its loader is not.
        raise NotRunError(f"{program}: {why}, or what it is interpreted by", NOT_FOUND)
    raise NotRunError(f"{program}: {why}", NOT_EXECUTABLE)


def _take(outcome: Outcome, word: str, fields: list[str]) -> None:
    if word == "ran":
        number = int(fields[1])
        outcome.signal = number if fields[0] == "signal" else None
        outcome.exit_status = SIGNALLED + number if fields[0] == "signal" else number
    elif word == "time":
        outcome.time_ns = int(fields[0])
    elif word == "counts":
        counts = Counts(*map(int, fields[1:]))
        if fields[0] == "run":
            outcome.ran = counts
        else:
            outcome.flushed = counts
    elif word == "call":
        outcome.calls.append(Call(fields[0], *map(int, fields[1:])))
    elif word == "wear":
        outcome.wear += map(int, fields)
    elif word == "page":
        outcome.page_bytes = int(fields[0])
