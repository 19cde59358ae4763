"""The emulated board as a target: a real Linux kernel in QEMU, on a clock that counts instructions.

Its chip is our NAND driver. `emulator-nandsim` is the same board on the kernel's own nandsim, to
check our driver. A boot runs many cases, and each is yielded as soon as it is measured. A board
that dies or hangs costs the running case; the rest continues after a reboot.
docs/models/emulator.md says what is measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.locking import clear, tidy
from flashbed.base.paths import cache_folder
from flashbed.stack.file_systems import RAW
from flashbed.stack.profiles import Board
from flashbed.stack.stack import Stack
from flashbed.targets.base import PLAIN, Apart, Batch, Failure, Program, RunOptions
from flashbed.targets.emulator import gc_choices
from flashbed.targets.emulator.debian_kernel import (
    KERNELS,
    KernelFiles,
    fetch_headers,
    fetch_kernel,
)
from flashbed.targets.emulator.image import bootable
from flashbed.targets.emulator.machine import ARCHITECTURE, QEMU, command, find_qemu
from flashbed.targets.guest import initramfs, nand, spi_drivers, yaffs2
from flashbed.targets.guest.agent import NoSqlite, agent, agent_with_sqlite, has_statements
from flashbed.targets.guest.boot import Machine
from flashbed.targets.guest.flash_dump import AtFirst
from flashbed.targets.guest.guest import RUN, Guest, Progress, run_guest
from flashbed.targets.guest.layout_images import (
    Images,
    modules_of_layout,
    modules_of_mount,
    named,
    partitions,
)
from flashbed.targets.guest.module import ModuleNotBuilt, OtherKernel, built_module
from flashbed.targets.guest.results import Measuring, failed
from flashbed.targets.guest.root_files import RootNotMade, images_for, over_root, root_of
from flashbed.targets.unavailable import Unavailable

__all__ = ["EmulatorTarget", "NandsimTarget"]

PATIENCE_S = 300.0
_PATIENCE = "FLASHBED_EMULATOR_PATIENCE_S"


class EmulatorTarget:
    """The emulated board, `qemu-system-arm` with Debian's armhf kernel."""

    name = "emulator"
    software_time = True
    apart = Apart("board", boots=True)
    """Times depend on what the kernel ran before: a board stays whole (docs/models/emulator.md)."""
    has_kprobes = True
    """Whether the agent's tracers work on its kernel."""
    remembers_changes = True
    """Whether the chip can be put into the state of any change (for power cuts)."""

    def __init__(
        self,
        cache_dir: Path | None = None,
        work_dir: Path | None = None,
        *,
        patience_s: float | None = None,
        qemu: str = QEMU,
        wait: str = "halt",
    ) -> None:
        given = os.environ.get(_PATIENCE)
        self.cache = cache_dir or cache_folder()
        self.work = work_dir or paths.work_folder("emulator")
        clear(self.work, RUN)  # leftovers of an earlier run, even if nothing is run now
        tidy(self.cache)
        self.patience_s = patience_s or (float(given) if given else PATIENCE_S)
        self.qemu = qemu
        self.wait = wait
        """How the chip waits (kernel/flashbed_nand/README.md). Halting costs the host less, but
        then a wait is charged at the call's end, and probes see commands before the chip does."""

    def prepare(self, say: Callable[[str], None], kernel: str = KERNELS[0]) -> None:
        """Fetches a kernel, builds the chip's driver, YAFFS2. See `Target.prepare`."""
        if kernel not in KERNELS:
            raise InputError(_no_such(kernel))
        find_qemu(self.qemu)
        agent(ARCHITECTURE)
        self._prepare(fetch_kernel(self.cache, kernel, say), say)

    def _prepare(self, kernel: KernelFiles, say: Callable[[str], None]) -> None:
        bootable(kernel.image)
        self._chip(kernel, say)
        yaffs2.prepare(self.cache, fetch_headers(self.cache, kernel, say), say)

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        """Runs programs, those of one board in as few boots as possible. See `Target.run`."""

        def say(what: str) -> None:
            options.progress(what, 0)

        qemu = find_qemu(self.qemu)
        agent(ARCHITECTURE)
        self.work.mkdir(parents=True, exist_ok=True)
        stacks: dict[tuple[object, ...], list[Program]] = {}
        refused = []
        for program in programs:
            lacking = program.stack.only_in_user_mode
            why = self._refusal(program)
            if lacking is not None:
                refused.append(program.not_measured(lacking))
            elif why:
                refused.append(Failure(case_id=program.case_id, message=why))
            else:
                fs = program.stack.fs
                layout = (repr(program.stack.layout), root_of(program), program.dump)
                of_stack = (*layout, *modules_of_mount(program.stack))
                more = (fs == yaffs2.FS, _only_for(fs), has_statements(program), of_stack)
                same_kernel = (program.stack.kernel.name, program.stack.vm)
                stack = (program.stack.board.sha256, *same_kernel, *more)
                stacks.setdefault(stack, []).append(program)
        guests = []
        for same in stacks.values():
            try:
                kernel = fetch_kernel(self.cache, same[0].stack.kernel.name, say)
                chip = self._chip(kernel, say)
                modules = [chip, *self._modules(kernel, same[0].stack, options.progress)]
                same = [gc_choices.with_choices_traced(program, kernel.modules) for program in same]
                images = images_for(same[0], cache=self.cache, say=say)
                same = over_root(same)
                guest = self._guest(qemu, kernel, same[0], ours=modules, images=images)
                guests.append((guest, same))
            except (ModuleNotBuilt, NoSqlite, RootNotMade) as why:
                never = isinstance(why, (OtherKernel, RootNotMade))
                refused += [
                    Failure(case_id=program.case_id, message=str(why), not_measured=never)
                    for program in same
                ]
        done = len(refused)
        if refused:
            yield failed(refused)
        for guest, same in guests:
            batches = run_guest(guest, same, self.work, options, done=done)
            for batch in batches:
                yield gc_choices.recorded(batch, same)
            done += len(same)

    def _chip(self, kernel: KernelFiles, say: Callable[[str], None]) -> Path:
        """The module of the chip's driver. Raises `Unavailable`."""
        tree = fetch_headers(self.cache, kernel, say)
        return built_module(self.cache, nand.source(), tree, say)

    def _parameters(self, board: Board, parts: Mapping[str, int]) -> str:
        """Parameters of the chip's driver, with the partitions of a layout."""
        return nand.parameters(board, wait=self.wait, parts=parts)

    def _refusal(self, program: Program) -> str | None:
        """Why a program cannot run on the emulated board, before anything is booted."""
        path = paths.shown(program.stack.board.path)
        if program.stack.kernel.name not in KERNELS:
            return _no_such(program.stack.kernel.name)
        if program.stack.board.emulator is None:
            return f"{path}: board {program.stack.board.name} has no [emulator]"
        return None

    def _modules(self, kernel: KernelFiles, stack: Stack, progress: Progress) -> list[Path]:
        """Modules that a stack needs besides the kernel's. Raises `ModuleNotBuilt`."""
        if stack.fs != yaffs2.FS and not spi_drivers.names(stack.board):
            return []

        def say(what: str) -> None:
            progress(what, 0)

        try:
            tree = fetch_headers(self.cache, kernel, say)
        except Unavailable as why:
            raise ModuleNotBuilt(f"fs {stack.fs}: {why}") from None
        driver = spi_drivers.modules_of(
            stack.board, kernel.series, cache=self.cache, tree=tree, say=say
        )
        return [*driver, *yaffs2.modules_of(stack.fs, self.cache, tree, say)]

    def _guest(
        self, qemu: str, kernel: KernelFiles, first: Program, *, ours: list[Path], images: Images
    ) -> Guest:
        board, chip = first.stack.board, ours[0]
        more = [*(module.stem for module in ours[1:]), *_only_for(first.stack.fs)]
        more += [*modules_of_layout(first.stack.layout), *modules_of_mount(first.stack)]
        wanted = (*spi_drivers.names(board), chip.stem, *initramfs.MODULES, *more)
        modules = initramfs.load_order(kernel.modules, wanted, ours)
        loaded = "".join(f"-{name}" for name in more)
        program = agent(ARCHITECTURE)
        if has_statements(first):
            program, loaded = agent_with_sqlite(ARCHITECTURE), f"-sql{loaded}"
        parts, at_first = partitions(first.stack, images), AtFirst.of(first, images)
        loaded = f"{loaded}{named(images, parts)}{at_first.name}-{kernel.series}"
        image = self.work / f"initramfs-{self.name}{loaded}-{self.wait}-{board.sha256[:16]}"
        parameters = {chip.stem: self._parameters(board, parts)}
        initramfs.keep(initramfs.archive(program, modules, parameters, at_first.more), image)
        machine = Machine(
            name="the board",
            process="QEMU",
            command=command(
                qemu, board, bootable(kernel.image), image, parameters=first.stack.boot_parameters
            ),
            patience_s=self.patience_s,
            patience_variable=_PATIENCE,
            # The emulated CPU and QEMU's main thread alternate at every wait.
            one_processor=True,
        )
        measuring = Measuring(software_time=True)
        return Guest(
            machine=machine,
            board=board,
            kernel=kernel.series,
            measuring=measuring,
            layout=at_first.lines,
            remembers_changes=self.remembers_changes,
        )


def _no_such(kernel: str) -> str:
    *others, last = KERNELS
    return f"kernel {kernel}: the emulated board has Linux {', '.join(others)} and {last}"


def _only_for(fs: str) -> tuple[str, ...]:
    """The kernel's modules that only programs on `fs` have loaded."""
    return tuple(RAW[fs].modules) if fs in RAW else ()


class NandsimTarget(EmulatorTarget):
    """The same board on nandsim, with kprobes for its log; it cross-checks our driver."""

    name = "emulator-nandsim"
    remembers_changes = False

    def _chip(self, kernel: KernelFiles, say: Callable[[str], None]) -> Path:  # noqa: ARG002
        return initramfs.modules_of(kernel.modules)["nandsim"]

    def _parameters(self, board: Board, parts: Mapping[str, int]) -> str:  # noqa: ARG002
        return (board.emulator and board.emulator.nandsim) or ""

    def _refusal(self, program: Program) -> str | None:
        layout = program.stack.layout
        if layout is not None and layout.on == "mtd":
            return f"layout={layout.name}: nandsim has one partition"
        if not self._parameters(program.stack.board, {}):
            return f"{paths.shown(program.stack.board.path)}: [emulator] has no nandsim"
        return super()._refusal(program)
