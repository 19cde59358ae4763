"""Runs a program on the emulated board: one boot of QEMU, its files in the initramfs.

Time is a count of instructions, so the answer includes the time of software. The program's
standard input is read to its end before the board boots; its output is printed after it has ended.
The board has no semihosting, which would let a program open files of the host, so the answer comes
through a port that writes into one file.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

from flashbed.base import paths
from flashbed.base.locking import scratch
from flashbed.base.paths import cache_folder
from flashbed.targets.emulator.debian_kernel import KernelFiles, fetch_headers, fetch_kernel
from flashbed.targets.emulator.image import bootable
from flashbed.targets.emulator.machine import (
    ARCHITECTURE,
    ONE_FILE,
    ONE_FILE_MODULES,
    command,
    find_qemu,
)
from flashbed.targets.exec.answer_stream import hand_on
from flashbed.targets.exec.outcome import ExecOutcome, NotRunError
from flashbed.targets.exec.request import ExecRequest
from flashbed.targets.exec.symbols import elf, functions
from flashbed.targets.exec.sysroot import Sysroot
from flashbed.targets.guest import initramfs, nand, spi_drivers, yaffs2
from flashbed.targets.guest.agent import agent
from flashbed.targets.guest.children import dies_with_us
from flashbed.targets.guest.layout_images import (
    modules_of_layout,
    modules_of_mount,
    partitions,
)
from flashbed.targets.guest.module import built_module

__all__ = ["execute"]

TIMED_OUT = 124
_RUN = "emulated-"
_POLL_S = 0.02
_INPUT_BYTES_MAX = 64 << 20
_CONSOLE_LINES = 3
_MIB = 1 << 20

Say = Callable[[str], None]


def execute(
    request: ExecRequest, say: Say, *, aside: bool = False
) -> tuple[ExecRequest, ExecOutcome]:
    """See `exec.executors.Execute`. The request has a `sysroot`."""
    sysroot, gdb = request.sysroot, request.gdb
    assert sysroot is not None
    qemu = find_qemu()
    cache = cache_folder()
    kernel = fetch_kernel(cache, request.kernel, say)
    given = _standard_input()
    work = paths.work_folder("exec")
    work.mkdir(parents=True, exist_ok=True)
    with scratch(work, _RUN) as folder:
        image = _image(request, sysroot, kernel=kernel, given=given, say=say)
        # The initramfs gets memory on top of the board's, so that it leaves the program as much.
        more_mib = (len(image) + sysroot.size_bytes) // _MIB + 1
        qemu_command = command(
            qemu, request.board, bootable(kernel.image), Path("image"),
            more_mib=more_mib, channel=ONE_FILE,
        )  # fmt: skip
        if gdb is not None:
            alike = _image(
                replace(request, symbols=True), sysroot, kernel=kernel, given=given, say=say
            )
            (folder / "image").write_bytes(alike)
            file = _symbols(qemu_command, request, folder)
            say(
                f"the board waits for a debugger: gdb-multiarch {paths.shown(file)}"
                f" -ex 'target remote 127.0.0.1:{gdb}' -ex 'hbreak FUNCTION' -ex continue"
            )
            qemu_command += ["-gdb", f"tcp:127.0.0.1:{gdb}", "-S"]
        (folder / "image").write_bytes(image)
        _boot(qemu_command, request, folder)
        return request, _outcome(request, folder, aside)


def _symbols(qemu_command: list[str], request: ExecRequest, folder: Path) -> Path:
    """Boots the board once to read its functions' addresses; returns the file of symbols."""
    _boot(qemu_command, request, folder)
    said = folder / "answer"
    found = functions(said.read_text(encoding="ascii", errors="replace"))
    if not found:
        raise NotRunError(f"the board did not list its functions: {_last_words(folder)}")
    said.unlink()
    content = elf(found)
    file = cache_folder() / f"symbols-{hashlib.sha256(content).hexdigest()[:12]}.elf"
    if not file.is_file():
        with scratch(file.parent, "fetch-") as work:
            (work / "part").write_bytes(content)
            (work / "part").replace(file)
    return file


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    given = sys.stdin.buffer.read(_INPUT_BYTES_MAX + 1)
    if len(given) > _INPUT_BYTES_MAX:
        raise NotRunError(f"standard input is more than {_INPUT_BYTES_MAX >> 20} MiB")
    return given


def _image(
    request: ExecRequest, sysroot: Sysroot, *, kernel: KernelFiles, given: bytes, say: Say
) -> bytes:
    cache = cache_folder()
    tree = fetch_headers(cache, kernel, say)
    chip = built_module(cache, nand.source(), tree, say)
    driver = spi_drivers.modules_of(request.board, request.kernel, cache=cache, tree=tree, say=say)
    ours = [chip, *driver, *yaffs2.modules_of(request.fs, cache, tree, say)]
    wanted = (
        *spi_drivers.names(request.board),
        chip.stem,
        *initramfs.MODULES,
        *ONE_FILE_MODULES,
        *(module.stem for module in ours[1:]),
        *modules_of_layout(request.stack.layout),
        *modules_of_mount(request.stack),
    )
    modules = initramfs.load_order(kernel.modules, wanted, ours)
    files = {"request": (0o600, request.text().encode("ascii")), "io/in": (0o644, given)}
    for number, put in enumerate(request.puts):
        if put.kind == "file":
            files[request.source(number).lstrip("/")] = (0o600, Path(put.source).read_bytes())
    parts = partitions(request.stack, request.images)
    parameters = {chip.stem: nand.parameters(request.board, wait="halt", parts=parts)}
    more = sysroot.more(files, ("io", "put")).and_(request.images.more)
    if request.dump is not None:
        more = more.and_(request.dump.more)
    return initramfs.archive(agent(ARCHITECTURE), modules, parameters, more)


def _boot(qemu_command: list[str], request: ExecRequest, folder: Path) -> None:
    with (folder / "said.log").open("wb") as said:
        process = subprocess.Popen(
            [*dies_with_us(), *qemu_command], cwd=folder, stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(process.pid, {allowed[process.pid % len(allowed)]})
        began = monotonic()
        while process.poll() is None:
            if request.patience_s is not None and monotonic() - began > request.patience_s:
                raise NotRunError(
                    f"the program did not end within {request.patience_s:g} s (--host-timeout)",
                    TIMED_OUT,
                )
            sleep(_POLL_S)
    finally:
        process.kill()
        process.wait()


def _outcome(request: ExecRequest, folder: Path, aside: bool) -> ExecOutcome:
    def ended() -> str:
        return f"the board stopped early: {_last_words(folder)}"

    path = folder / "answer"
    if not path.is_file():
        raise NotRunError(ended())
    with path.open("rb") as stream:
        return hand_on(stream, request, aside, ended)


def _last_words(folder: Path) -> str:
    lines: list[str] = []
    for name in ("said.log", "console.log"):
        path = folder / name
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            lines += [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-_CONSOLE_LINES:]) or "it printed nothing"
