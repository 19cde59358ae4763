"""Reads the agent's answer about a program (agent/host/launch.c)."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from flashbed.base.errors import FlashbedError
from flashbed.targets.exec.unpacking import UnpackedFiles
from flashbed.targets.recorder.recorded_run import RecordedRun

__all__ = [
    "CallKind",
    "ChipCounts",
    "CutBoot",
    "ExecOutcome",
    "FailedCall",
    "FileRead",
    "FileUse",
    "FoundState",
    "MountStep",
    "NotRunError",
    "outcome_of",
]

NOT_RUN, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
"""Exit statuses, as env(1) uses them."""
SIGNALLED = 128
_OF_CUTS = ("before", "after", "changes", "cut", "unbootable", "space", "nofile", "found")
_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")


class NotRunError(FlashbedError):
    """The program did not run to its end; the exit status says why, as that of env(1) does."""

    def __init__(self, message: str, exit_status: int = NOT_RUN) -> None:
        super().__init__(message)
        self.exit_status = exit_status

    @property
    def of_command(self) -> bool:
        """Whether the command is at fault, which is the same on every system."""
        return self.exit_status in (NOT_EXECUTABLE, NOT_FOUND)


@dataclass(frozen=True)
class ChipCounts:
    """Operations of the chip, and for how long it was busy."""

    reads: int = 0
    programs: int = 0
    erases: int = 0
    busy_ns: int = 0


@dataclass(frozen=True)
class MountStep:
    """A step from attaching to the mounted stack. `chip` is None where its chip is not seen."""

    name: str
    ns: int
    chip: ChipCounts | None


@dataclass
class FoundState:
    """The files of a list: of each its checksum and size, or why it cannot be read.

    `space_bytes` is what df calls available.
    """

    space_bytes: int = 0
    files: list[tuple[int, int] | str] = field(default_factory=list)


@dataclass(frozen=True)
class CutBoot:
    """What a boot found after a power cut in a change of the chip; `failed` says why it did not."""

    change: int
    ns: int = 0
    failed: str | None = None
    found: FoundState = field(default_factory=FoundState)


@dataclass(frozen=True)
class FileRead:
    """A file that was read whole after a boot. `chip` is None where its chip is not seen."""

    ns: int
    bytes: int
    chip: ChipCounts | None


@dataclass(frozen=True)
class CallKind:
    """One kind of system call: how many, their virtual time, the bytes they wrote to flash."""

    name: str
    calls: int
    ns: int
    bytes_written: int


@dataclass(frozen=True)
class FailedCall:
    """Calls of one kind that failed alike on flash: `write`, `ENOSPC`; `short` of short writes."""

    name: str
    why: str
    calls: int


@dataclass(frozen=True, kw_only=True)
class FileUse:
    """What the program's calls did with a file on flash, and their time.

    `bytes_mapped` counts pages that became dirty through a shared mapping.
    """

    path: str
    reads: int
    bytes_read: int
    writes: int
    bytes_written: int
    bytes_mapped: int
    syncs: int
    ns: int


_NUMBERS = [column.name for column in fields(FileUse)][1:]


@dataclass(kw_only=True)
class ExecOutcome:
    """The whole answer. `flushed` is what was written after the program had ended."""

    exit_status: int = 0
    signal: int | None = None
    time_ns: int = 0
    ran: ChipCounts = field(default_factory=ChipCounts)
    flushed: ChipCounts = field(default_factory=ChipCounts)
    steps: list[MountStep] = field(default_factory=list)
    """Of the mount before the program, in order."""
    boot: list[MountStep] = field(default_factory=list)
    """Those of a boot after the program."""
    reads: list[FileRead | str] = field(default_factory=list)
    """Of each file of the list, or why it could not be read."""
    before: FoundState = field(default_factory=FoundState)
    """The files of the list before the program ran, where the power is cut."""
    after: FoundState = field(default_factory=FoundState)
    """The same, after all of its changes."""
    changes: int = 0
    """Page writes and erases of the program, and of the write-back after it."""
    cuts: list[CutBoot] = field(default_factory=list)
    looked: FoundState = field(default_factory=FoundState)
    """The one of these that the next lines of the answer belong to."""
    calls: list[CallKind] = field(default_factory=list)
    failed: list[FailedCall] = field(default_factory=list)
    files: list[FileUse] = field(default_factory=list)
    until: int | None = None
    """The signal that `--until` sent, when its time was up."""
    spun: int = 0
    """How many of its processes `--spin` ended."""
    unseen: str | None = None
    """Why flash operations could not be observed; there are no counts then."""
    missed: int = 0
    wear: list[int] = field(default_factory=list)
    page_bytes: int = 0
    kept: UnpackedFiles | None = None
    recorded: RecordedRun | None = None

    @property
    def failure(self) -> str | None:
        """Why the program did not do all of its work; None if nothing tells so."""
        if self.spun:
            return (
                f"{self.spun} of its processes spun and {'was' if self.spun == 1 else 'were'} ended"
            )
        if self.until is None and self.signal is not None:
            return f"signal {self.signal} ended the program"
        if self.until is None and self.exit_status:
            return f"the program failed with exit status {self.exit_status}"
        calls = sum(failed.calls for failed in self.failed)
        return f"{calls:,} call{'s' if calls > 1 else ''} failed" if calls else None

    @property
    def bytes_written(self) -> int:
        """Bytes the program wrote to files on flash, by calls and through shared mappings."""
        return sum(call.bytes_written for call in self.calls) + self.bytes_mapped

    @property
    def bytes_mapped(self) -> int:
        """Bytes of pages that became dirty through a shared mapping."""
        return sum(file.bytes_mapped for file in self.files)

    @property
    def programs(self) -> int:
        """Programmed pages, those of the flush included."""
        return self.ran.programs + self.flushed.programs

    @property
    def bytes_programmed(self) -> int:
        """Bytes of the programmed pages; a page counts whole."""
        return self.programs * self.page_bytes


def outcome_of(text: str, program: str) -> ExecOutcome | None:
    """The parsed answer; None if it ends early. Raises `NotRunError`."""
    outcome = ExecOutcome()
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        words = rest.split(" ")
        if word == "end":
            outcome.files = _by_path(outcome.files)
            return outcome
        if word == "error":
            raise NotRunError(f"not run: {rest}")
        if word == "cannot":
            _cannot(int(rest), program)
        try:
            _take(outcome, word, words)
        except (ValueError, IndexError):
            raise NotRunError(f"the guest sent an unknown line: {line[:80]}") from None
    return None


def _by_path(files: Sequence[FileUse]) -> list[FileUse]:
    """A row for each path: files that had the same name one after the other are added up."""
    rows: dict[str, FileUse] = {}
    for file in files:
        seen = rows.get(file.path)
        numbers = {
            name: getattr(file, name) + (getattr(seen, name) if seen else 0) for name in _NUMBERS
        }
        rows[file.path] = FileUse(path=file.path, **numbers)
    return [rows[path] for path in sorted(rows)]


def _cannot(number: int, program: str) -> None:
    why = os.strerror(number)
    if number == errno.ENOENT:
        # The kernel says ENOENT of a program that exists if its interpreter or loader is missing.
        raise NotRunError(f"{program}: {why}, or its interpreter or loader is missing", NOT_FOUND)
    raise NotRunError(f"{program}: {why}", NOT_EXECUTABLE)


def _take_cut(outcome: ExecOutcome, word: str, words: list[str]) -> None:
    if word == "changes":
        outcome.changes = int(words[0])
    elif word == "cut":
        outcome.cuts.append(CutBoot(int(words[0]), ns=int(words[1])))
    elif word == "unbootable":
        outcome.cuts.append(CutBoot(int(words[0]), failed=" ".join(words[1:])))
    elif word == "nofile":
        outcome.looked.files.append(os.strerror(int(words[0])))
    elif word == "found":
        outcome.looked.files.append((int(words[0]), int(words[1])))
    elif word == "space":
        outcome.looked.space_bytes = int(words[0])
    if word in ("before", "after"):
        outcome.looked = getattr(outcome, word)
    elif word == "cut":
        outcome.looked = outcome.cuts[-1].found


def _chip(words: list[str]) -> ChipCounts | None:
    return ChipCounts(*map(int, words)) if words else None


def _take(outcome: ExecOutcome, word: str, words: list[str]) -> None:
    if word == "ran":
        number = int(words[1])
        outcome.signal = number if words[0] == "signal" else None
        outcome.exit_status = SIGNALLED + number if words[0] == "signal" else number
    elif word == "time":
        outcome.time_ns = int(words[0])
    elif word == "counts":
        counts = ChipCounts(*map(int, words[1:]))
        if words[0] == "run":
            outcome.ran = counts
        else:
            outcome.flushed = counts
    elif word in ("step", "boot"):
        steps = outcome.steps if word == "step" else outcome.boot
        steps.append(MountStep(words[0], int(words[1]), _chip(words[2:])))
    elif word in _OF_CUTS:
        _take_cut(outcome, word, words)
    elif word == "read":
        outcome.reads.append(FileRead(int(words[0]), int(words[1]), _chip(words[2:])))
    elif word == "unread":
        outcome.reads.append(os.strerror(int(words[0])))
    elif word == "call":
        outcome.calls.append(CallKind(words[0], *map(int, words[1:])))
    elif word == "failed":
        why = errno.errorcode.get(int(words[1]), f"errno {words[1]}") if int(words[1]) else "short"
        outcome.failed.append(FailedCall(words[0], why, int(words[2])))
    elif word == "file":
        path = _OCTAL.sub(lambda found: bytes([int(found[1], 8)]), os.fsencode(words[0]))
        numbers = dict(zip(_NUMBERS, map(int, words[1:]), strict=True))
        outcome.files.append(FileUse(path=os.fsdecode(path), **numbers))
    elif word == "unseen":
        outcome.unseen = " ".join(words)
    elif word == "missed":
        outcome.missed += int(words[0])
    elif word == "until":
        outcome.until = int(words[0])
    elif word == "wear":
        outcome.wear += map(int, words)
    elif word == "page":
        outcome.page_bytes = int(words[0])
