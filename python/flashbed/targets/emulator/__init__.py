"""The emulated board as a target: a real Linux kernel in QEMU, on a clock that counts instructions.

Many cases a boot; each is yielded as soon as it is measured. A board that dies or hangs costs the
case it was running: the rest goes on after a reboot. docs/emulator.md says what is measured.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from flashbed import places
from flashbed.operations import OperationError
from flashbed.profiles import Board
from flashbed.targets.base import Batch, Failure, Program, Unavailable
from flashbed.targets.emulator import initramfs
from flashbed.targets.emulator.job import Group, Item, groups_of, items_of, text_of
from flashbed.targets.emulator.machine import QEMU, Boot, Stopped, command, find_qemu
from flashbed.targets.emulator.packages import cache_folder, fetch_kernel
from flashbed.targets.emulator.results import batch_of, failed
from flashbed.targets.emulator.stream import (
    CaseBegun,
    CaseDone,
    Done,
    Event,
    GroupReady,
    Info,
    Reader,
    StreamError,
    Trouble,
)

__all__ = ["EmulatorTarget"]

KERNEL = "6.1"
PATIENCE_S = 300.0
"""Wall time without a new row after which the board counts as hung."""
BOOTS_IN_VAIN = 3
"""After this many boots in a row that finished no case, the rest is given up."""
_SMALLEST_BLOCKS = {"jffs2": 5, "ubifs": 17 + 4}
_Progress = Callable[[str, int], None]


class EmulatorTarget:
    """The emulated board, `qemu-system-arm` with Debian's armhf kernel."""

    name = "emulator"

    def __init__(
        self,
        cache_dir: Path | None = None,
        work_dir: Path | None = None,
        *,
        patience_s: float | None = None,
        qemu: str = QEMU,
    ) -> None:
        given = os.environ.get("FLASHBED_EMULATOR_PATIENCE_S")
        self.cache = cache_dir or cache_folder()
        self.work = work_dir or places.root() / "build" / "emulator"
        self.patience_s = patience_s or (float(given) if given else PATIENCE_S)
        self.qemu = qemu

    def run(
        self, programs: Sequence[Program], *, trace_flash: bool, progress: _Progress
    ) -> Iterator[Batch]:
        """Runs programs, those of one board in as few boots as possible. See `Target.run`."""
        qemu, agent = find_qemu(self.qemu), _agent()
        kernel = fetch_kernel(self.cache, lambda what: progress(what, 0))
        self.work.mkdir(parents=True, exist_ok=True)
        boards: dict[str, list[Program]] = {}
        for program in programs:
            boards.setdefault(program.board.sha256, []).append(program)
        done = 0
        for same in boards.values():
            folder = Path(tempfile.mkdtemp(prefix="run-", dir=self.work))
            image = folder / "initramfs"
            board = same[0].board
            modules = initramfs.load_order(kernel.modules)
            parameters = {"nandsim": board.emulator.nandsim if board.emulator else ""}
            image.write_bytes(initramfs.archive(agent, modules, parameters))
            arguments = command(qemu, board, kernel.image, image)
            run = _Run(board, folder, arguments, self.patience_s, trace_flash, progress, done)
            yield from run.all(same)
            done += len(same)
            if not run.troubled:
                shutil.rmtree(folder, ignore_errors=True)


def _agent() -> bytes:
    path = places.root() / "build" / "agent" / "flashbed-agent-armv7"
    if not path.is_file():
        raise Unavailable(f"{places.shown(path)} is not there; `make build` builds it")
    return path.read_bytes()


def _refusal(program: Program) -> str | None:
    """Why a program cannot run on the emulated board, before anything is booted."""
    smallest = _SMALLEST_BLOCKS.get(program.fs)
    if program.kernel.name != KERNEL:
        return f"kernel {program.kernel.name}: the emulated board has Linux {KERNEL}"
    if program.board.emulator is None:
        return f"{places.shown(program.board.path)}: board {program.board.name} has no [emulator]"
    if smallest is None:
        return f"fs {program.fs}: the emulated board's kernel has {', '.join(_SMALLEST_BLOCKS)}"
    if program.board.partition.blocks < smallest:
        return (
            f"{places.shown(program.board.path)}: partition.blocks:"
            f" {program.board.partition.blocks} is too small, {program.fs} needs {smallest}"
        )
    return None


def _mismatch(board: Board, info: dict[str, str]) -> str | None:
    """Where the board that booted is not the one in the profile."""
    chip = board.chip
    expected = {
        "page_bytes": ("chip.page_bytes", chip.page_bytes),
        "oob_bytes": ("chip.oob_bytes", chip.oob_bytes),
        "block_bytes": ("chip.pages_per_block", chip.page_bytes * chip.pages_per_block),
        "partition_bytes": (
            "partition.blocks",
            board.partition.blocks * chip.page_bytes * chip.pages_per_block,
        ),
    }
    for key, (name, value) in expected.items():
        if key in info and int(info[key]) != value:
            return (
                f"{places.shown(board.path)}: {name}: the profile makes {key} {value}, the"
                f" emulated chip has {info[key]} (emulator.nandsim)"
            )
    return None


class _Run:
    """The programs of one board, over as many boots as it takes."""

    def __init__(
        self,
        board: Board,
        folder: Path,
        arguments: list[str],
        patience_s: float,
        trace_flash: bool,
        progress: _Progress,
        done: int,
    ) -> None:
        self.board = board
        self.folder = folder
        self.arguments = arguments
        self.patience_s = patience_s
        self.trace_flash = trace_flash
        self.progress = progress
        self.done = done
        self.troubled = False
        self.info: dict[str, str] = {}
        self.left: dict[str, Item] = {}
        self.groups: dict[str, Group] = {}
        self.running: str | None = None
        self.preparing: str | None = None

    def all(self, programs: Sequence[Program]) -> Iterator[Batch]:
        """Every program: measured, or a failure."""
        refused = []
        for number, program in enumerate(programs):
            why = _refusal(program)
            try:
                items = [] if why else items_of([program], {program.case_id: number})
            except OperationError as error:
                why, items = f"operations: {error}", []
            self.left.update((item.name, item) for item in items)
            if why:
                refused.append(Failure(program.case_id, why))
        if refused:
            yield self._failures(refused)
        boots = in_vain = 0
        while self.left:
            before = len(self.left)
            finished = False
            for batch in self._boot(boots):
                finished = finished or batch.cases.height > 0
                yield batch
            boots += 1
            in_vain = 0 if finished else in_vain + 1
            if self.left and (in_vain == BOOTS_IN_VAIN or len(self.left) == before):
                yield self._fail(list(self.left), "given up: the board died again and again")

    def _boot(self, number: int) -> Iterator[Batch]:
        groups = groups_of(self.left.values())
        self.groups = {group.name: group for group in groups}
        self.running, self.preparing = None, groups[0].name
        self.info = {}
        text = text_of(groups, trace_flash=self.trace_flash)
        self.progress("booting the emulated board", self.done)
        reader, ended = Reader(), False
        with Boot(self.folder / f"boot-{number}", self.arguments, text, self.patience_s) as boot:
            try:
                for data in boot.stream():
                    for event in reader.feed(data):
                        ended = ended or isinstance(event, Done)
                        yield from self._handle(event)
                why = None if ended else boot.why_ended()
            except (Stopped, StreamError) as error:
                why = str(error)
        if why is None and self.left:
            why = "the board said nothing of this case"
        if why is not None:
            self.troubled = True
            yield self._blame(why)

    def _handle(self, event: Event) -> Iterator[Batch]:
        match event:
            case Info(key, value):
                self.info[key] = value
                wrong = _mismatch(self.board, {key: value})
                if wrong:
                    yield self._fail(list(self.left), wrong)
            case GroupReady(name):
                self.preparing = None
                self.progress(f"{self.groups[name].items[0].program.fs}: prepared", self.done)
            case CaseBegun(name):
                self.running = name
                item = self.left.get(name)
                if item:
                    self.progress(f"Linux {self._release()}: {item.program.case_id}", self.done)
            case CaseDone():
                yield from self._finish(event)
            case Trouble():
                yield self._trouble(event)
            case Done():
                pass

    def _release(self) -> str:
        return self.info.get("kernel", "?")

    def _finish(self, case: CaseDone) -> Iterator[Batch]:
        item = self.left.pop(case.case_id, None)
        self.running = None
        if item is None:
            return
        group = next(group for group in self.groups.values() if item in group.items)
        if item is group.items[-1]:
            following = list(self.groups)[list(self.groups).index(group.name) + 1 :]
            self.preparing = following[0] if following else None
        self.done += 1
        yield batch_of(item, case, self._release())
        self.progress(f"Linux {self._release()}: {item.program.case_id}", self.done)

    def _trouble(self, trouble: Trouble) -> Batch:
        where = f"line {trouble.line} of its operations: " if trouble.line else ""
        full = " (the board's file system is full)" if trouble.code == "ENOSPC" else ""
        what = f"{where}{trouble.code}: {trouble.message}{full}"
        if trouble.scope == "case":
            self.running = None
            return self._fail([trouble.name], what)
        if trouble.scope == "group":
            names = [item.name for item in self.groups[trouble.name].items]
            return self._fail(names, f"preparation: {what}")
        return self._fail(list(self.left), what)

    def _blame(self, why: str) -> Batch:
        """Whose fault it is that the board stopped: the case that ran, the group that was made."""
        if self.running in self.left:
            return self._fail([str(self.running)], why)
        group = self.groups.get(self.preparing or "")
        names = [item.name for item in group.items] if group and self.info else list(self.left)
        return self._fail(names, f"before it began: {why}")

    def _fail(self, names: Sequence[str], why: str) -> Batch:
        self.troubled = True
        items = [self.left.pop(name) for name in names if name in self.left]
        return self._failures([Failure(item.program.case_id, why) for item in items])

    def _failures(self, failures: Sequence[Failure]) -> Batch:
        self.done += len(failures)
        for failure in failures:
            self.progress(f"{failure.case_id} failed", self.done)
        return failed(failures)
