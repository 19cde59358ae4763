"""User-mode Linux as a target: a real kernel as a process, whose clock skips every wait.

With `time-travel=inf-cpu` and a fixed start, running code takes no time, and a wait takes exactly
its length without costing the host anything. Flash operations and flash time are therefore exact
and reproducible; software time is unknown, null in the tables. kernel/uml/README.md says what is
measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.base.locking import clear, tidy
from flashbed.base.paths import cache_folder
from flashbed.stack.file_systems import has_ftl
from flashbed.targets.base import PLAIN, Apart, Batch, Failure, Program, RunOptions
from flashbed.targets.guest import disks, initramfs, nand, yaffs2
from flashbed.targets.guest.agent import NoSqlite, agent, agent_with_sqlite, has_statements
from flashbed.targets.guest.boot import Machine
from flashbed.targets.guest.flash_dump import AtFirst
from flashbed.targets.guest.guest import RUN, Guest, Progress, run_guest
from flashbed.targets.guest.layout_images import named, partitions
from flashbed.targets.guest.module import BuildTree, ModuleNotBuilt, OtherKernel, built_module
from flashbed.targets.guest.results import Measuring, failed, gathered
from flashbed.targets.guest.root_files import RootNotMade, images_for, over_root, root_of
from flashbed.targets.uml.host_process import at_fixed_addresses, memory_folder
from flashbed.targets.uml.kernel_options import case_options
from flashbed.targets.uml.uml_kernel import KERNELS, UmlKernel, built_kernel, kernels

__all__ = ["UmlTarget"]

ARCHITECTURE = "host"
"""Architecture of the agent."""
PATIENCE_S = 120.0
BATCH_S = 0.3
_PATIENCE = "FLASHBED_UML_PATIENCE_S"
_START_NS = 1_577_836_800_000_000_000
"""2020-01-01 in the kernel's unit. Without a fixed start some sums differ by a microsecond; from a
fraction of a second, files get other timestamps in seconds than in the simulator."""


class UmlTarget:
    """User-mode Linux on our own NAND driver."""

    name = "uml"
    software_time = False
    apart = Apart("preparation", boots=True)

    def __init__(
        self,
        cache_dir: Path | None = None,
        work_dir: Path | None = None,
        *,
        patience_s: float | None = None,
    ) -> None:
        given = os.environ.get(_PATIENCE)
        self.cache = cache_dir or cache_folder()
        self.work = work_dir or paths.work_folder("uml")
        clear(self.work, RUN)  # leftovers of an earlier run, even if nothing is run now
        tidy(self.cache)
        self.patience_s = patience_s or (float(given) if given else PATIENCE_S)

    def prepare(
        self, say: Callable[[str], None], kernel: str = KERNELS[0], more: Sequence[str] = ()
    ) -> None:
        """Builds a kernel with more options, the chip's driver, YAFFS2. See `Target.prepare`."""
        if kernel not in kernels(self.cache):
            raise InputError(_no_such(kernel, self.cache))
        agent(ARCHITECTURE)
        tree = BuildTree(built_kernel(self.cache, kernel, say, more=more).tree, "um")
        built_module(self.cache, nand.source(), tree, say)
        yaffs2.prepare(self.cache, tree, say)
        disks.prepare(self.cache, tree, say)

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        """Runs programs, those of one board and kernel in as few boots as possible."""
        agent(ARCHITECTURE)
        stacks: dict[tuple[object, ...], list[Program]] = {}
        refused = []
        for program in programs:
            if program.stack.kernel.name not in kernels(self.cache):
                why = _no_such(program.stack.kernel.name, self.cache)
                refused.append(Failure(case_id=program.case_id, message=why))
                continue
            wanted = program.stack
            lacking = wanted.only_simulated or wanted.refused_on_nor
            if lacking is not None:
                refused.append(program.not_measured(lacking))
                continue
            fs = program.stack.fs
            own = fs if fs == yaffs2.FS or has_ftl(fs) else ""
            of_kernel = (
                repr(wanted.layout),
                bool(wanted.protection),
                root_of(program),
                program.dump,
            )
            more = (own, has_statements(program), *of_kernel)
            stack = (program.stack.board.sha256, program.stack.kernel.name, program.stack.vm, *more)
            stacks.setdefault(stack, []).append(program)
        guests = []
        for same in stacks.values():
            try:
                guests.append((self._guest(same[0], options.progress), over_root(same)))
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
            yield from gathered(batches, BATCH_S)
            done += len(same)

    def _guest(self, first: Program, progress: Progress) -> Guest:
        def say(what: str) -> None:
            progress(what, 0)

        board, series, fs = first.stack.board, first.stack.kernel.name, first.stack.fs
        kernel = built_kernel(self.cache, series, say, more=case_options(first.stack))
        images = images_for(first, cache=self.cache, say=say)
        at_first = AtFirst.of(first, images)
        tree = BuildTree(kernel.tree, "um")
        chip = built_module(self.cache, nand.source(), tree, say)
        modules = [chip, *yaffs2.modules_of(fs, self.cache, tree, say)]
        modules += disks.modules_of(fs, self.cache, tree, say)
        makers = disks.makers(fs, self.cache, say).and_(at_first.more)
        self.work.mkdir(parents=True, exist_ok=True)
        loaded = "".join(f"-{module.stem}" for module in modules[1:])
        loaded += f"-{fs}" if has_ftl(fs) else ""
        parts = partitions(first.stack, images)
        loaded += named(images, parts) + at_first.name
        program = agent(ARCHITECTURE)
        if has_statements(first):
            program, loaded = agent_with_sqlite(ARCHITECTURE), f"-sql{loaded}"
        # Kernels with other options have modules of their own, in folders of their own.
        image = self.work / f"initramfs-{series}{loaded}-{chip.parent.name}-{board.sha256[:16]}"
        parameters = {chip.stem: nand.parameters(board, wait="busy", parts=parts)}
        memory_mib = nand.memory_mib(board) + disks.memory_mib(fs) + at_first.mib
        initramfs.keep(initramfs.archive(program, modules, parameters, makers), image)
        machine = Machine(
            name="user-mode Linux",
            process="the kernel",
            command=_command(kernel, first, image, memory_mib),
            patience_s=self.patience_s,
            patience_variable=_PATIENCE,
            console_is_output=True,
            # A system call of the guest takes a dozen switches between kernel and program. Each
            # costs seven times as much from one processor to another.
            one_processor=True,
            has_children=True,
            environment={"HOME": "{folder}", "TMPDIR": memory_folder(memory_mib)},
        )
        measuring = Measuring(software_time=False)
        return Guest(
            machine=machine, board=board, kernel=series, measuring=measuring,
            layout=at_first.lines, remembers_changes=True,
        )  # fmt: skip


def _no_such(kernel: str, cache: Path) -> str:
    *others, last = kernels(cache)
    return f"kernel {kernel}: uml has Linux {', '.join(others)} and {last}"


def _command(kernel: UmlKernel, program: Program, image: Path, memory_mib: int) -> list[str]:
    return [
        *at_fixed_addresses(),
        str(kernel.program),
        f"mem={memory_mib}M",
        # No path of the host: the kernel mixes its command line into its random numbers.
        f"initrd=../../{image.name}",
        "time-travel=inf-cpu",
        f"time-travel-start={_START_NS}",
        *("con=null", "con0=fd:0,fd:1", "ssl=null"),
        *("hostfs=/proc/self/cwd", "quiet", "panic=-1", "oops=panic"),
        # Until its random numbers are ready the kernel wakes a worker every 2 s
        # (fill_ptr_key_workfn).
        "random.trust_cpu=on",
        # JFFS2 writes a field of its nodes that it never sets; this makes it 0, not old memory.
        "init_on_alloc=1",
        *program.stack.boot_parameters,
    ]
