"""Runs programs over as many boots of a guest as needed; yields each case once it is measured.

A guest that dies or hangs costs the running case; the rest continues after a reboot. If it died in
a power cut, it costs that cut: the case runs again, must make the same changes to the chip, and the
remaining cuts follow. A case with cuts is yielded after its last cut.

Invariant: every program ends once, as a row of a batch or as a failure, and so does every cut of a
program that has a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flashbed.base import paths
from flashbed.base.locking import scratch
from flashbed.program.operations import OperationError
from flashbed.stack.conditions import NONE
from flashbed.stack.file_systems import FILE_SYSTEMS, ON_FTL, RAW, has_ftl
from flashbed.stack.profiles import Board
from flashbed.targets.base import Batch, Failure, Program, RunOptions, Survey
from flashbed.targets.fullness import FreeSpace
from flashbed.targets.guest.boot import Boot, Machine, Stopped
from flashbed.targets.guest.disks import disk_refusal
from flashbed.targets.guest.job import Group, JobItem, for_one_boot, groups_of, items_of, text_of
from flashbed.targets.guest.results import (
    Measuring,
    RowsOfCase,
    StrangeLineError,
    batch_of,
    failed,
)
from flashbed.targets.guest.stream import (
    NOT_MEASURED,
    CaseBegun,
    CaseDone,
    CaseRows,
    CutBegun,
    Event,
    GroupReady,
    Info,
    JobDone,
    Reader,
    StreamError,
    Trouble,
)

__all__ = ["RUN", "Guest", "Progress", "run_guest"]

RUN = "run-"
"""Prefix of the boots' folders, below that of their target."""

OPERATIONS_A_SECOND = 1_000
"""Operations a second that any guest does even on a busy host."""
BOOTS_IN_VAIN = 3
"""After this many boots in a row without a finished case, the rest is given up."""
_UBI_BLOCKS = 4
_UBI_BAD_PER_1024 = 20
_PIECE_CHARACTERS = 32_000_000
"""Bytes of bodies in one job, which holds them twice: as the agent reads them, and as text."""
Progress = Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class Guest:
    """A guest that can be booted: the machine, the board it stands for, what it can measure."""

    machine: Machine
    board: Board
    kernel: str
    """The kernel profile that it runs."""
    measuring: Measuring
    layout: Sequence[str] = ()
    """The lines of the layout that all its programs have."""
    remembers_changes: bool = False
    """Whether its chip is flashbed_nand, which power cuts, wear and faults need."""


def run_guest(
    guest: Guest,
    programs: Sequence[Program],
    work: Path,
    options: RunOptions,
    *,
    done: int,
) -> Iterator[Batch]:
    """Yields every program, measured or failed.

    Boots keep their files in a folder of `work`, which is removed unless something failed. `done`
    is where `progress` begins to count. A case with cuts has all its rows in its batch.
    """
    own = scratch(work, RUN)
    run = _Run(guest, own.path, options, done)
    try:
        for piece in _pieces(programs):
            yield from run.all(piece)
    finally:
        own.close(keep=run.troubled)


def _pieces(programs: Sequence[Program]) -> Iterator[Sequence[Program]]:
    """Splits programs, in order, so that each part's operations fit into memory."""
    start = size = 0
    for index, program in enumerate(programs):
        if size and size + len(program.body) > _PIECE_CHARACTERS:
            yield programs[start:index]
            start, size = index, 0
        size += len(program.body)
    if start < len(programs):
        yield programs[start:]


def _refusal(guest: Guest, program: Program) -> str | None:
    """Why a program cannot run on the guest, found before anything is booted."""
    if (program.record_changes or program.cuts or program.chip_commands) and (
        not guest.remembers_changes
    ):
        return f"power cuts: {guest.machine.name}'s chip does not record its changes"
    if (program.stack.erases or program.stack.faults != NONE) and not guest.remembers_changes:
        return f"wear and faults: {guest.machine.name}'s chip cannot be set up for them"
    if has_ftl(program.stack.fs) and program.stack.faults != NONE:
        return f"fs {program.stack.fs}: a chip that fails under a flash translation layer"
    known = (*FILE_SYSTEMS, *RAW, *ON_FTL)
    if program.stack.fs not in known:
        return f"fs {program.stack.fs}: {guest.machine.name}'s kernel has {', '.join(known)}"
    stack = program.stack
    why = _geometry_refusal(stack.fs, stack.board) or disk_refusal(
        stack.fs, stack.board, stack.mount_options
    )
    return f"{paths.shown(program.stack.board.path)}: partition.blocks: {why}" if why else None


def _geometry_refusal(fs: str, board: Board) -> str | None:
    """Why fs/jffs2/fs.c, yaffs_guts.c, ubi/build.c or fs/ubifs/super.c refuses the size."""
    blocks = board.partition.blocks
    if fs in RAW or fs in ON_FTL:
        return None
    row = FILE_SYSTEMS[fs]
    bytes_there = blocks * board.chip.block_bytes
    if row.mib_end is not None and bytes_there >= row.mib_end << 20:
        return f"{blocks} is too large, {fs} counts the bytes of a partition in 32 bits"
    smallest, why = row.blocks_min, f", {row.blocks_min_why}" if row.blocks_min_why else ""
    if row.stands_on == "ubi":
        # The driver gives the NAND core the next power of two.
        chip_blocks = 1 << (board.chip.blocks - 1).bit_length()
        reserve = -(-chip_blocks * _UBI_BAD_PER_1024 // 1024)
        smallest += _UBI_BLOCKS + reserve
        why = f", {reserve} of them for the blocks of the chip that may go bad"
    return f"{blocks} is too small, {fs} needs {smallest}{why}" if blocks < smallest else None


def _mismatch(board: Board, info: dict[str, str]) -> str | None:
    """How the booted board differs from its profile."""
    chip = board.chip
    expected = {
        "page_bytes": ("chip.page_bytes", chip.page_bytes),
        "oob_bytes": ("chip.oob_bytes", chip.oob_bytes),
        "block_bytes": ("chip.pages_per_block", chip.block_bytes),
        "partition_bytes": ("partition.blocks", board.partition_bytes),
    }
    for key, (name, value) in expected.items():
        if key in info and int(info[key]) != value:
            return (
                f"{paths.shown(board.path)}: {name}: the profile makes {key} {value}, the"
                f" chip that booted has {info[key]}"
            )
    return None


def _patient(machine: Machine, groups: Sequence[Group]) -> Machine:
    """The machine with more patience, 1 s per 1,000 operations: answers lag behind."""
    texts = {item.body for group in groups for item in group.items}
    texts |= {item.prepare for group in groups for item in group.items}
    operations = max(text.count("\n") for text in texts)
    return replace(machine, patience_s=machine.patience_s + operations // OPERATIONS_A_SECOND)


def _same_changes(a: Batch, b: Batch) -> bool:
    columns = ("op", "result", "changes")
    return a.requests.select(columns).equals(b.requests.select(columns))


class _Run:
    """The programs of one guest, over as many boots as needed."""

    def __init__(
        self,
        guest: Guest,
        folder: Path,
        options: RunOptions,
        done: int,
    ) -> None:
        self.guest = guest
        self.folder = folder
        self.options = options
        self.progress = options.progress
        self.done = done
        self.troubled = False
        self.info: dict[str, str] = {}
        self.left: dict[str, JobItem] = {}
        self.groups: dict[str, Group] = {}
        self.group_after: dict[str, str] = {}
        """Last case of a group -> the group that is prepared next."""
        self.running: str | None = None
        self.rows: RowsOfCase | None = None
        """Rows of the running case."""
        self.preparing: str | None = None
        self.space: FreeSpace | None = None
        """Free space after the running group's preparation."""
        self.cutting: int | None = None
        """The running case's cut that is being made."""
        self.measured: dict[str, Batch] = {}
        """Items that have cuts left to make."""
        self.surveys: dict[str, list[Survey]] = {}
        self.finished = 0
        """Cases and cuts that have ended."""
        self.boots = 0
        self.named = 0
        """Programs numbered so far."""

    def all(self, programs: Sequence[Program]) -> Iterator[Batch]:
        """Yields every program, measured or failed."""
        refused = []
        for number, program in enumerate(programs, start=self.named):
            why = _refusal(self.guest, program)
            try:
                items = [] if why else items_of([program], {program.case_id: number})
            except OperationError as error:
                why, items = f"operations: {error}", []
            self.left.update((item.name, item) for item in items)
            if why:
                refused.append(Failure(case_id=program.case_id, message=why))
        self.named += len(programs)
        if refused:
            yield self._failures(refused)
        in_vain = 0
        while self.left:
            before, finished = self._to_do(), self.finished
            yield from self._boot(self.boots)
            self.boots += 1
            in_vain = in_vain + 1 if self.finished == finished else 0
            if self.left and (in_vain == BOOTS_IN_VAIN or self._to_do() == before):
                name = self.guest.machine.name
                yield from self._fail(list(self.left), f"given up: {name} died again and again")

    def _to_do(self) -> int:
        return sum(1 + len(item.cuts) for item in self.left.values())

    def _boot(self, number: int) -> Iterator[Batch]:
        groups = for_one_boot(groups_of(self.left.values()))
        planned = {item.name for group in groups for item in group.items}
        self.groups = {group.name: group for group in groups}
        ends = itertools.pairwise(groups)
        self.group_after = {group.items[-1].name: after.name for group, after in ends}
        self.running, self.preparing, self.cutting = None, groups[0].name, None
        self.info = {}
        ours = self.guest.remembers_changes
        text = text_of(
            groups,
            layout=self.guest.layout, trace_flash=self.options.trace_flash, our_chip=ours,
        )  # fmt: skip
        self.progress(f"booting {self.guest.machine.name}", self.done)
        reader, ended = Reader(), False
        try:
            if self.guest.machine.ready is not None:
                self.guest.machine.ready()
        except Stopped as error:
            self.troubled = True
            yield from self._blame(str(error))
            return
        machine = _patient(self.guest.machine, groups)
        folder = self.folder / f"boot-{number}"
        with Boot(folder, machine, text, self.options.processor) as boot:
            try:
                for data in boot.stream():
                    for event in reader.feed(data):
                        ended = ended or isinstance(event, JobDone)
                        yield from self._handle(event)
                why = None if ended else boot.why_ended()
            except (Stopped, StreamError) as error:
                why = str(error)
        if why is None and planned & self.left.keys():
            why = f"{self.guest.machine.name} reported nothing about this case"
        if why is not None:
            self.troubled = True
            yield from self._blame(why)

    def _handle(self, event: Event) -> Iterator[Batch]:
        match event:
            case Info(key, value):
                self.info[key] = value
                wrong = _mismatch(self.guest.board, {key: value})
                if wrong:
                    yield from self._fail(list(self.left), wrong)
            case GroupReady(name, space):
                self.preparing, self.space = None, space
                self.progress(f"{self.groups[name].items[0].program.stack.fs}: prepared", self.done)
            case CaseBegun(name):
                self.running = name
                item = self.left.get(name)
                self._forget_rows()
                if item:
                    self.rows = RowsOfCase(item, self.guest.measuring)
                    self.progress(f"Linux {self._release()}: {item.program.case_id}", self.done)
            case CaseRows():
                yield from self._keep(event)
            case CaseDone():
                yield from self._finish(event)
            case CutBegun():
                self.cutting = event.change
            case Survey():
                yield from self._take(event)
            case Trouble():
                yield from self._trouble(event)
            case JobDone():
                pass

    def _release(self) -> str:
        return self.info.get("kernel", "?")

    def _keep(self, rows: CaseRows) -> Iterator[Batch]:
        """Keeps some rows of a case that is still running."""
        item = self.left.get(rows.case_id)
        if item is None or self.rows is None:
            return
        try:
            tables = self.rows.tables(rows)
        except StrangeLineError as why:
            yield from self._fail([item.name], str(why))
            return
        # A case with cuts runs again, and its rows are then compared: they stay in memory.
        if self.options.long_rows is None or item.program.cuts:
            self.rows.hold(tables)
        else:
            self.options.long_rows.add(item.program.case_id, tables)

    def _forget_rows(self) -> None:
        """Drops the rows of a case that did not finish."""
        if self.rows is not None and self.options.long_rows is not None:
            self.options.long_rows.forget(self.rows.case_id)
        self.rows = None

    def _finish(self, case: CaseDone) -> Iterator[Batch]:
        item = self.left.get(case.case_id)
        if item is None:
            self.running, self.preparing = None, self.group_after.get(case.case_id)
            return
        rows = self.rows
        batch = batch_of(
            item,
            case,
            space=self.space,
            kernel_release=self._release(),
            measuring=self.guest.measuring,
            rows=rows,
        )
        if batch.failures:
            self._forget_rows()
        self.rows = None
        before = self.measured.get(item.name)
        if before is not None and not _same_changes(before, batch):
            yield from self._fail([item.name], "its second run made other changes to the chip")
            return
        self.measured[item.name] = batch
        if batch.failures or not item.cuts:
            yield self._complete(item.name)

    def _take(self, survey: Survey) -> Iterator[Batch]:
        name, self.cutting = survey.case_id, None
        if name not in self.measured:
            return
        case_id = self.left[name].program.case_id
        self.surveys.setdefault(name, []).append(replace(survey, case_id=case_id))
        self.finished += 1
        yield from self._after_cut(name, survey.change)

    def _after_cut(self, name: str, change: int) -> Iterator[Batch]:
        """Continues after a cut, made or failed: with the case's next cut, or with its end."""
        item = self.left[name]
        cuts = tuple(cut for cut in item.cuts if cut.change != change)
        self.left[name] = replace(item, cuts=cuts)
        made = len(item.program.cuts) - len(cuts)
        what = f"{item.program.case_id}: {made} of {len(item.program.cuts)} power cuts"
        self.progress(what, self.done)
        if not cuts:
            yield self._complete(name)

    def _complete(self, name: str) -> Batch:
        """A finished case: its tables and surveys, or its failure."""
        item, batch = self.left.pop(name), self.measured.pop(name)
        surveys = sorted(self.surveys.pop(name, []), key=lambda survey: survey.change)
        if self.running in (name, None):
            self.running, self.preparing = None, self.group_after.get(name)
        self.done += 1
        self.finished += batch.cases.height
        self.progress(f"Linux {self._release()}: {item.program.case_id}", self.done)
        return replace(batch, surveys=tuple(surveys))

    def _trouble(self, trouble: Trouble) -> Iterator[Batch]:
        where = f"line {trouble.line} of its operations: " if trouble.line else ""
        full = " (the board's file system is full)" if trouble.code == "ENOSPC" else ""
        what = f"{where}{trouble.code}: {trouble.message}{full}"
        if trouble.scope == "case" and trouble.code == NOT_MEASURED:
            self.running = None
            yield from self._lacking(trouble.name, f"read_ahead_kib: {trouble.message}")
        elif trouble.scope == "case":
            self.running = None
            yield from self._fail([trouble.name], what)
        elif trouble.scope == "group":
            names = [item.name for item in self.groups[trouble.name].items]
            yield from self._fail(names, f"preparation: {what}")
        else:
            yield from self._fail(list(self.left), what)

    def _blame(self, why: str) -> Iterator[Batch]:
        """Assigns a stop of the board to the running cut, case or preparation."""
        if self.running in self.measured and self.cutting is not None:
            name, change = str(self.running), self.cutting
            case_id = self.left[name].program.case_id
            yield failed([Failure(case_id=case_id, message=f"cut {change}: {why}", change=change)])
            yield from self._after_cut(name, change)
            return
        if self.running in self.left:
            yield from self._fail([str(self.running)], why)
            return
        group = self.groups.get(self.preparing or "")
        names = [item.name for item in group.items] if group and self.info else list(self.left)
        if not group and self.info:
            names = names[:1]
        yield from self._fail(names, f"before it began: {why}")

    def _fail(self, names: Sequence[str], why: str) -> Iterator[Batch]:
        """Fails items; a case that was measured keeps the results of its cuts."""
        self.troubled = True
        failures = []
        for name in [name for name in names if name in self.left]:
            item = self.left[name]
            if name in self.measured:
                change, more = item.cuts[0].change, len(item.cuts) - 1
                what = f"cut {change}{f' and {more} more' if more else ''}: {why}"
                yield failed([Failure(case_id=item.program.case_id, message=what, change=change)])
                yield self._complete(name)
            else:
                failures.append(Failure(case_id=item.program.case_id, message=why))
                del self.left[name]
        if failures:
            yield self._failures(failures)

    def _lacking(self, name: str, why: str) -> Iterator[Batch]:
        """Marks an item not measured: the guest's kernel lacks something for it."""
        item = self.left.pop(name, None)
        if item is not None:
            yield self._failures([item.program.not_measured(why)])

    def _failures(self, failures: Sequence[Failure]) -> Batch:
        self.done += len(failures)
        for failure in failures:
            came = "not measured" if failure.not_measured else "failed"
            self.progress(f"{failure.case_id} {came}", self.done)
        return failed(failures)
