"""The first of the two seams: what every target takes and gives.

A target sees operations only (docs/operations.md) and does not know which workload they came from.
It gives tables. `sim`, `emulator` and whatever comes later implement `Target`; nothing outside
`targets/` knows which one it is talking to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import polars as pl

from flashbed.formats.profiles import USUAL_COMPRESSOR, Board, Kernel
from flashbed.plan.case_units import Together
from flashbed.plan.conditions import NONE, Faults
from flashbed.targets.long_rows import LongRows

__all__ = [
    "PLAIN",
    "Apart",
    "Batch",
    "Cut",
    "Failure",
    "Program",
    "Run",
    "RunOptions",
    "Survey",
    "SurveyedDatabase",
    "SurveyedFile",
    "Target",
    "Unavailable",
]


@dataclass(frozen=True)
class Cut:
    """Power fails in the `change`th program or erase of a case, counted from 1 at its mark.

    What is left of that change follows from `seed`.
    """

    change: int
    seed: int


@dataclass(frozen=True)
class Program:
    """One case as a target sees it.

    `prepare` is a flashbed-ops file up to and with its `prepared` line, `body` the rest of the
    case as a file of its own. Programs of the same board, kernel, file system and `prepare`
    start from the same state, which a target may build once. With `check_contents` a target
    that has contents fills `content_crc32` of `requests`. `record_changes` asks for `changes`
    of `requests`, `cuts` (which needs it) for a `Survey` of each after the case, `record_wear`
    for the `wear` table, `record_flush` for the columns `flush_` of `cases` (docs/operations.md);
    without `record_requests` a target may leave out `requests`;
    `chip_commands` are given to the chip's driver at the mark
    (docs/powercut.md). `erases` and the blocks that are bad from the factory are part of that
    state; other faults begin at the mark. A target that cannot do it fails the case.
    """

    case_id: str
    fs: str
    board: Board
    kernel: Kernel
    read_ahead_kib: int | None
    """None leaves the window that the kernel gives the mount; `Batch.cases` has which it was."""
    prepare: str
    body: str
    check_contents: bool = False
    record_changes: bool = False
    record_wear: bool = False
    record_flush: bool = False
    record_requests: bool = True
    cuts: tuple[Cut, ...] = ()
    chip_commands: tuple[str, ...] = ()
    erases: tuple[int, ...] = ()
    """Of each block of the partition, before anything is written; none if it is empty."""
    faults: Faults = NONE
    record_calls: bool = False
    """SQLite's system calls, of a program whose statements are executed there: `Batch.calls`."""
    tracers: str = ""
    """What the agent's tracers are to show of the body, as a job's `trace` line has it."""
    filled: bool = False
    """The preparation brings the partition as a whole into a state (workloads/state.py)."""
    record_gc_choices: bool = False
    """A kernel is to say what its JFFS2 chooses (`Batch.gc_choices`), where that can be seen."""
    gc_choices: tuple[int, ...] = ()
    """What the simulator's JFFS2 chooses from the mark on, as a kernel was seen to."""
    mount_options: str = ""
    """The file system is mounted with these, before anything is prepared: `bulk_read`."""
    compressor: str = USUAL_COMPRESSOR
    """JFFS2 and UBIFS are mounted with this option `compr=`, but for the kernel's own choice."""

    @property
    def in_user_mode(self) -> Program:
        """The same on a board and a kernel as user-mode Linux has them, for the simulator."""
        board, kernel = self.board.without_software(), self.kernel.in_user_mode
        return replace(self, board=board, kernel=kernel)

    @property
    def modelled_kib(self) -> int:
        """The window of its files, of a kernel that does as its profile says."""
        if self.read_ahead_kib is not None:
            return self.read_ahead_kib
        return self.kernel.shipped_kib(self.fs)

    @property
    def mounted(self) -> str:
        """File system and mount options, as the agent is told."""
        usual = self.compressor == USUAL_COMPRESSOR
        return self.simulated_fs if usual else f"{self.simulated_fs},compr={self.compressor}"

    @property
    def simulated_fs(self) -> str:
        """File system and mount options, as the simulator is told, which has `simulated_kernel`."""
        return f"{self.fs},{self.mount_options}" if self.mount_options else self.fs

    @property
    def simulated_board(self) -> str:
        """The board as the simulator is told, with what this compressor costs."""
        return self.board.sim_json_with(self.compressor)

    @property
    def simulated_kernel(self) -> str:
        """The kernel as the simulator is told, with this compressor. Raises `InputError`."""
        return self.kernel.sim_json_with(self.fs, self.compressor)


@dataclass(frozen=True)
class Failure:
    """A case that could not be measured, or one cut of it, and why, in one line."""

    case_id: str
    message: str
    change: int | None = None
    """The cut's."""
    not_measured: bool = False
    """It is no fault of anything: the target lacks what the case needs."""
    not_modelled: str | None = None
    """What the simulator leaves out, if that is why it refuses the case."""


@dataclass(frozen=True)
class Run:
    """Bytes of a file in a row that are all one thing.

    `what` is the seed and compressibility they were generated from, "zero", "other" (none of what
    was ever written there), or the negative errno with which they could not be read.
    """

    offset_bytes: int
    length_bytes: int
    what: tuple[int, int] | str | int


@dataclass(frozen=True)
class SurveyedFile:
    """A file that was found, and what it holds."""

    path: str
    size_bytes: int
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class SurveyedDatabase:
    """A database that was opened after a cut, so that SQLite has recovered it.

    `result` is 0 or SQLite's code, negative; `words` what PRAGMA integrity_check says, "ok" if
    nothing is wrong. `tables` has for each its rows and a sum over their values
    (sqlite/call_tables.py).
    """

    path: str
    result: int
    words: str
    tables: Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Survey:
    """What was found when power came back.

    Results are 0 or a negative errno. `probe_result` is that of writing, syncing and reading a new
    file; None if the file system could not be mounted.
    """

    case_id: str
    change: int
    mount_result: int
    mount_time_ns: int
    files: tuple[SurveyedFile, ...]
    probe_result: int | None
    database: SurveyedDatabase | None = None
    """Where SQLite runs on the board: the one that was opened last."""


@dataclass(frozen=True)
class Batch:
    """Whole cases, as tables with the measured columns of docs/operations.md.

    The caller adds axes, target and provenance. A case's surveys come with the case. `power_cuts`
    is what was made of them (powercut/), not a target's to fill.
    """

    cases: pl.DataFrame
    requests: pl.DataFrame
    flash: pl.DataFrame
    failures: tuple[Failure, ...] = ()
    surveys: tuple[Survey, ...] = ()
    power_cuts: pl.DataFrame = field(default_factory=pl.DataFrame)
    wear: pl.DataFrame = field(default_factory=pl.DataFrame)
    calls: pl.DataFrame = field(default_factory=pl.DataFrame)
    """case_id, seq of the statement, call (an operation without the bytes of a write)."""
    traced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """case_id -> rows of `flashbed-trace 1`, times since the mark."""
    gc_choices: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """case_id -> `jiffies % 128` of each of JFFS2's choices from the mark on (docs/validation.md).

    The simulator always says, a kernel if `record_gc_choices` asks for it.
    """


class Unavailable(Exception):
    """The target cannot run here: one line on what is missing and how to get it.

    The line does not name the target; whoever shows it does.
    """


def _silent(_what: str, _done: int) -> None:
    """Says nothing."""


@dataclass(frozen=True)
class RunOptions:
    """How programs are run, and who is told.

    `progress(what, cases_done)` is called whenever there is something to say. To `long_rows` go the
    first rows of long cases, those of `requests` and `flash`, and the batch has the last; without
    it the batch has all.
    """

    trace_flash: bool = False
    progress: Callable[[str, int], None] = _silent
    long_rows: LongRows | None = None
    threads: int | None = None
    """The simulator's; None is one for each of the host's processors."""
    processor: int | None = None
    """The number, among those that this process may use, of the host's processor for a guest. None
    is any."""


PLAIN = RunOptions()


@dataclass(frozen=True)
class Apart:
    """How far a target's programs may be run apart from each other, with the same results."""

    together: Together = "everything"
    """What is not parted."""
    boots: bool = False
    """Whether it boots guests, each of which takes as much memory as its board has."""


class Target(Protocol):
    """Runs programs and yields whole cases as they are finished."""

    name: str

    @property
    def apart(self) -> Apart:
        """How far its programs may be run apart."""
        ...

    @property
    def software_time(self) -> bool:
        """Whether code takes time there."""
        ...

    def prepare(self, say: Callable[[str], None]) -> None:
        """Fetches and builds what a run would; `say(what)` when it begins something long.

        Raises `Unavailable`.
        """
        ...

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        """Runs every program, in the order given.

        Raises `Unavailable` before any case has run; a case that fails is a `Failure` in a batch
        and the others go on.
        """
        ...
