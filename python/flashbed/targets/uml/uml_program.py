"""Runs a program on a fresh user-mode Linux: one boot, in a folder that is removed afterwards.

The kernel is started with descriptors 3 to 9. 3 and 4 are the request and the answer. 5 to 7 are
this process's standard input, output and error, which the kernel passes to the program
(kernel/uml/programs). 8 takes the files for `--keep`. 9 is the terminal, or takes the recorder's
stream. The kernel's own console is a file. When this process ends or is killed, the guest ends too.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from math import inf
from pathlib import Path
from time import monotonic

from flashbed.base import paths
from flashbed.base.locking import scratch, tidy
from flashbed.base.paths import cache_folder
from flashbed.program.recording.about import About, shortened
from flashbed.targets.exec.outcome import ExecOutcome, NotRunError, outcome_of
from flashbed.targets.exec.progress import EVERY_S, ProgressLine, progress_line
from flashbed.targets.exec.request import ExecRequest
from flashbed.targets.exec.spinning import LOOK_EVERY_S, SpinWatch
from flashbed.targets.exec.terminal import Terminal
from flashbed.targets.exec.unpacking import unpack
from flashbed.targets.guest import disks, initramfs, nand, yaffs2
from flashbed.targets.guest.agent import agent
from flashbed.targets.guest.children import GroupKeeper, dies_with_us
from flashbed.targets.guest.layout_images import partitions
from flashbed.targets.guest.module import BuildTree, built_module
from flashbed.targets.recorder.recorded_run import CONTENTS_THERE, LACKS, RecordedRun
from flashbed.targets.uml.host_process import at_fixed_addresses, memory_folder
from flashbed.targets.uml.kernel_options import program_options
from flashbed.targets.uml.programs_kernel import programs_kernel
from flashbed.targets.uml.uml_kernel import UmlKernel, built_kernel

__all__ = ["execute", "prepare"]

TIMED_OUT = 124
"""The exit status of timeout(1) when the time is up."""
_RUN = "exec-"
_SHELL = 'exec "$@" 3<job 4>answer 5<&0 6>&1 7>&2 8>kept 0</dev/null 1>console.log 2>&1'
_TO_STANDARD_ERROR = _SHELL.replace("6>&1", "6>&2")
_TERMINAL = 9
_START_NS = 2_082_758_400_000_000_000
"""2036-01-01: later than any file of the host, and its seconds still fit into 31 bits."""
_SAID_AFTER_S = 10.0
_RELAY_S = 0.05
_CONSOLE_LINES = 3

Say = Callable[[str], None]


def prepare(kernel: str, say: Say, more: Sequence[str] = ()) -> tuple[UmlKernel, Path]:
    """Builds the kernel for programs, with more options, and its chip driver if needed.

    Raises `Unavailable`.
    """
    agent("host")
    cache = cache_folder()
    tidy(cache)
    built = built_kernel(cache, kernel, say, programs_kernel(more))
    return built, built_module(cache, nand.source(), BuildTree(built.tree, "um"), say)


def execute(
    request: ExecRequest, say: Say, *, aside: bool = False
) -> tuple[ExecRequest, ExecOutcome]:
    """See `exec.executors.Execute`."""
    kernel, chip = prepare(request.kernel, say, program_options(request.stack))
    cache, tree = cache_folder(), BuildTree(kernel.tree, "um")
    modules = [chip, *yaffs2.modules_of(request.fs, cache, tree, say)]
    modules += disks.modules_of(request.fs, cache, tree, say)
    makers = disks.makers(request.fs, cache, say)
    work = paths.work_folder("exec")
    work.mkdir(parents=True, exist_ok=True)
    with scratch(work, _RUN) as folder, _terminal(request) as terminal:
        parts = partitions(request.stack, request.images)
        parameters = {chip.stem: nand.parameters(request.board, wait="busy", parts=parts)}
        more = makers.and_(request.images.more)
        image = initramfs.archive(agent("host"), modules, parameters, more)
        (folder / "image").write_bytes(image)
        (folder / "job").write_text(request.text(), encoding="ascii")
        shell = _TO_STANDARD_ERROR if aside else _SHELL
        if request.record is not None:
            shell = f"{shell} {_TERMINAL}>stream"
        if terminal is not None:
            # The terminal is opened first: a later redirection could reuse its descriptor.
            opened = f"{_TERMINAL}<>/proc/self/fd/{terminal.inner}"
            shell = shell.replace('"$@"', f'"$@" {opened}')
        command = ["/bin/sh", "-c", shell, "sh", *_command(kernel, request)]
        if terminal is None:
            with progress_line(folder, request.until_s) as progress:
                spun = _boot(command, request, folder=folder, say=say, shows=progress)
        else:
            spun = _boot(command, request, folder=folder, say=say, shows=terminal)
        # Not as text: a carriage return in a file's name would become the end of a line.
        answer = (folder / "answer").read_bytes().decode("utf-8", "surrogateescape")
        outcome = outcome_of(answer, request.name)
        if outcome is None:
            raise NotRunError(f"user-mode Linux stopped early: {_last_words(folder)}")
        outcome.spun = spun
        if request.record is not None:
            outcome.recorded = _recorded(request, kernel, folder / "stream")
        if request.keep is not None:
            with (folder / "kept").open("rb") as stream:
                outcome.kept = unpack(stream, request.keep, request.board.partition_bytes)
        return request, outcome


def _recorded(request: ExecRequest, kernel: UmlKernel, stream: Path) -> RecordedRun:
    """Turns the recorder's stream into a recording. Raises `NotRunError` if it is not whole."""
    from flashbed.targets.recorder.session import keep_stream

    assert request.record is not None
    about = About(
        source="flashbed exec",
        command=shortened(request.words),
        machine=f"Linux {kernel.series} (user-mode Linux, {request.fs}, virtual time)",
        think="slept",
        mapped="present",
        # The folder starts empty: only files of --put are there, and their contents are known.
        lacks=tuple(each for each in LACKS if each != CONTENTS_THERE),
        dump=None if request.dump is None else request.dump.facts,
    )
    there = {os.fsencode(put.path): Path(put.source) for put in request.puts if put.kind == "file"}
    with stream.open("rb") as of:
        recorded = keep_stream(
            of.fileno(), about, request.record, there=there, contents=request.contents
        )
    if not recorded.complete:
        raise NotRunError(f"{paths.shown(request.record)}: the recorder ended before the program")
    return recorded


def _terminal(request: ExecRequest) -> AbstractContextManager[Terminal | None]:
    return Terminal() if request.terminal or request.shell else nullcontext()


def _command(kernel: UmlKernel, request: ExecRequest) -> list[str]:
    return [
        *at_fixed_addresses(),
        str(kernel.program),
        # Images get memory on top of the board's, so that they leave the program as much.
        f"mem={request.memory + request.images.mib}M",
        "initrd=image",
        "time-travel=inf-cpu",
        f"time-travel-start={_START_NS}",
        f"syscall_ns={request.costs.each_ns}",
        *([f"flashbed_terminal={_TERMINAL}"] if request.terminal or request.shell else ()),
        *request.stack.of_ubi,
        *("con=null", "con0=null,fd:1", "ssl=null"),
        *("quiet", "panic=-1", "oops=panic"),
        # The same options as for experiments (flashbed.targets.uml.uml_target).
        *("random.trust_cpu=on", "init_on_alloc=1"),
    ]


def _boot(
    command: list[str],
    request: ExecRequest,
    *,
    folder: Path,
    say: Say,
    shows: Terminal | ProgressLine,
) -> int:
    """Runs the guest to its end; returns how many of its processes spun and were ended."""
    process = subprocess.Popen(
        [*dies_with_us("TERM"), *command],
        cwd=folder,
        start_new_session=True,
        pass_fds=(shows.inner,) if isinstance(shows, Terminal) else (),
        # The kernel gets none of the host's environment: the program must not see it.
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder.resolve()),
            "TMPDIR": memory_folder(request.memory).replace("{folder}", str(folder.resolve())),
        },
    )
    keeper = GroupKeeper(process.pid, folder.resolve())
    spinning = SpinWatch(
        kernel=process.pid, bound_s=inf if request.spin_s is None else request.spin_s
    )
    try:
        _one_processor(process.pid)
        if isinstance(shows, Terminal):
            while process.poll() is None:
                shows.relay(_RELAY_S)
        else:
            _waited(process, request.patience_s, spinning=spinning, say=say, progress=shows)
    finally:
        keeper.dismiss()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return spinning.ended


def _one_processor(pid: int) -> None:
    """Pins the guest to one processor: its task switches cost more between processors."""
    allowed = sorted(os.sched_getaffinity(0))
    with suppress(OSError):
        os.sched_setaffinity(pid, {allowed[pid % len(allowed)]})


def _waited(
    process: subprocess.Popen[bytes],
    patience_s: float | None,
    *,
    spinning: SpinWatch,
    say: Say,
    progress: ProgressLine,
) -> None:
    began = monotonic()
    said_s = _SAID_AFTER_S
    patience_s = inf if patience_s is None else patience_s
    while True:
        left_s = patience_s - (monotonic() - began)
        if left_s <= 0:
            raise NotRunError(
                f"the program did not end within {patience_s:g} s (--host-timeout); running code"
                " takes no time here: --spin SECONDS ends a process that only computes, and --until"
                " SECONDS of virtual time a program that does not end by itself",
                TIMED_OUT,
            )
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(left_s, EVERY_S, LOOK_EVERY_S))
            return
        progress.show()
        if spinning.look():
            progress.erase()
            say(
                f"a process computed for {spinning.bound_s:g} s without a system call, which takes"
                " no time here and would never end: SIGILL ends it (--spin)"
            )
        if said_s < monotonic() - began < patience_s:
            progress.erase()
            say(
                f"running for {monotonic() - began:.0f} s; --host-timeout ends it at {patience_s:g}"
                " s; --until SECONDS of virtual time ends a program that does not end by itself"
            )
            said_s *= 2


def _last_words(folder: Path) -> str:
    console = folder / "console.log"
    if not console.exists():  # it did not even begin
        return "it printed nothing"
    text = console.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-_CONSOLE_LINES:]) or "it printed nothing"
