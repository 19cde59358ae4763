"""The interface of targets: what every target takes and returns.

A target sees operations only (docs/reference/operations.md) and does not know which workload they
came from. It returns tables. Nothing outside `targets/` knows which target it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import polars as pl

from flashbed.plan.case_units import Together
from flashbed.stack.flash_image import DumpFile
from flashbed.stack.stack import Stack
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
]


@dataclass(frozen=True)
class Cut:
    """Power fails in the `change`th program or erase of a case, counted from 1 at its mark.

    `seed` decides what is left of that change.
    """

    change: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Program:
    """One case as a target sees it.

    `prepare` is a flashbed-ops file up to and including its `prepared` line, `body` the rest of the
    case as a file of its own. Programs with equal stacks and the same `prepare` start from the same
    state, which a target may build once. A target that lacks something fails the case.

    Some fields ask for results (docs/reference/operations.md). `check_contents`: `content_crc32` of
    `requests`, on targets that have contents. `record_changes`: `changes` of `requests`. `cuts`: a
    `Survey` of each cut after the case; needs `record_changes`. `record_wear`: the `wear` table.
    `record_flush`: the `flush_` columns of `cases`. Without `record_requests` a target may leave
    out `requests`. `chip_commands` go to the chip's driver when measuring starts
    (docs/models/power-cuts.md).
    """

    case_id: str
    stack: Stack
    prepare: str
    body: str
    check_contents: bool = False
    record_changes: bool = False
    record_wear: bool = False
    record_flush: bool = False
    record_requests: bool = True
    cuts: tuple[Cut, ...] = ()
    chip_commands: tuple[str, ...] = ()
    record_calls: bool = False
    """Records SQLite's system calls, where the target executes the statements: `Batch.calls`."""
    tracers: str = ""
    """What the agent's tracers record of the body, in the words of a job's `trace` line."""
    filled: bool = False
    """The preparation brings the whole partition into a state (plan/workloads/state.py)."""
    record_gc_choices: bool = False
    """Records JFFS2's choices (`Batch.gc_choices`), on kernels where that is possible."""
    dump: DumpFile | None = None
    """What the chip holds before the preparation, in place of a new file system."""
    gc_choices: tuple[int, ...] = ()
    """Choices that the simulator's JFFS2 replays from the mark on, as a kernel made them."""

    def not_measured(self, why: str) -> Failure:
        """That a target lacks what the program needs."""
        return Failure(case_id=self.case_id, message=why, not_measured=True)

    @property
    def in_user_mode(self) -> Program:
        """The program on user-mode Linux's board and kernel, for the simulator."""
        return replace(self, stack=self.stack.in_user_mode)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A case that could not be measured, or one cut of it, and why, in one line."""

    case_id: str
    message: str
    change: int | None = None
    """The number of the cut that failed."""
    not_measured: bool = False
    """The target lacks what the case needs; nothing went wrong."""
    not_modelled: str | None = None
    """What the simulator does not model, if it refuses the case for that."""


@dataclass(frozen=True)
class Run:
    """A stretch of a file's bytes with one origin.

    `what` is the seed and compressibility they were generated from, "zero", the bytes themselves,
    or the negative errno with which they could not be read.
    """

    offset_bytes: int
    length_bytes: int
    what: tuple[int, int] | str | bytes | int


@dataclass(frozen=True)
class SurveyedFile:
    """A file or symbolic link found after a cut, and what it holds."""

    path: str
    size_bytes: int
    runs: tuple[Run, ...]
    target: str | None = None
    """Where a symbolic link leads; it has no size and no bytes."""


@dataclass(frozen=True)
class SurveyedDatabase:
    """A database that SQLite opened, and so recovered, after a cut.

    `result` is 0 or SQLite's code, negative. `words` is the output of PRAGMA integrity_check, "ok"
    if nothing is wrong. `tables` has for each table its number of rows and a checksum of their
    values (plan/sqlite/call_tables.py).
    """

    path: str
    result: int
    words: str
    tables: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, kw_only=True)
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
    """The database opened last, where SQLite runs on the board."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Whole cases, as tables with the measured columns of docs/reference/operations.md.

    The caller adds axes, target and provenance. A case's surveys are in the same batch as the case.
    `power_cuts` and `cut_files` are what powercut/ makes of them; targets leave them empty.
    """

    cases: pl.DataFrame
    requests: pl.DataFrame
    flash: pl.DataFrame
    failures: tuple[Failure, ...] = ()
    surveys: tuple[Survey, ...] = ()
    power_cuts: pl.DataFrame = field(default_factory=pl.DataFrame)
    cut_files: pl.DataFrame = field(default_factory=pl.DataFrame)
    wear: pl.DataFrame = field(default_factory=pl.DataFrame)
    calls: pl.DataFrame = field(default_factory=pl.DataFrame)
    """case_id, seq of the statement, call (an operation; a write without its bytes)."""
    traced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """case_id -> rows of `flashbed-trace 1`, times since the mark."""
    gc_choices: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """case_id -> `jiffies % 128` of each of JFFS2's choices from the start of measuring on.

    The simulator always reports them, a kernel if `record_gc_choices` is set.
    """


def _silent(_what: str, _done: int) -> None:
    """The default progress: prints nothing."""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How programs are run, and where progress is reported.

    `progress(what, cases_done)` is called whenever there is something to report. `long_rows` takes
    the first rows of `requests` and `flash` of long cases; the batch then has only the last ones.
    Without `long_rows` the batch has all.
    """

    trace_flash: bool = False
    trace_waits: bool = False
    """Records what each request waited for, where the target knows it."""
    progress: Callable[[str, int], None] = _silent
    long_rows: LongRows | None = None
    threads: int | None = None
    """Processors for the simulator; None for all of the host's."""
    processor: int | None = None
    """Which of the host's processors a guest runs on, counted among those this process may use.
    None for any."""


PLAIN = RunOptions()


@dataclass(frozen=True)
class Apart:
    """How a target's programs may be split between processes without changing results."""

    together: Together = "everything"
    """The cases that must stay together."""
    boots: bool = False
    """Whether it boots guests, each of which takes as much memory as its board has."""


class Target(Protocol):
    """Runs programs and yields whole cases as they finish."""

    name: str

    @property
    def apart(self) -> Apart:
        """How far its programs may be split between processes."""
        ...

    @property
    def software_time(self) -> bool:
        """Whether running code takes time on this target."""
        ...

    def prepare(self, say: Callable[[str], None]) -> None:
        """Fetches and builds what a run needs; calls `say(what)` before each long step.

        Raises `Unavailable`.
        """
        ...

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        """Runs every program, in the given order.

        Raises `Unavailable` before any case has run. A case that fails is a `Failure` in a batch;
        the others continue.
        """
        ...
