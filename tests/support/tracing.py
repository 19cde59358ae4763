"""A board on which the tracers are tried alone: the harness of tests/layers/agent/test_tracers.py.

The guest is the emulated board with tests/support/guest/trace_guest.c and the agent as its one
program; it obeys a script and writes what comes of each line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.stack.profiles import load_board
from flashbed.targets.emulator.debian_kernel import fetch_headers, fetch_kernel
from flashbed.targets.emulator.image import bootable
from flashbed.targets.emulator.machine import command
from flashbed.targets.guest import initramfs, nand
from flashbed.targets.guest.boot import Boot, Machine
from flashbed.targets.guest.module import built_module
from tests.support import PROJECT, built_once

FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s")
TARGET = ("-target", "arm-linux-musleabihf", "-mcpu=generic+v7a")
KPROBES = "/sys/kernel/debug/tracing/kprobe_events"
INSTANCES = "/sys/kernel/debug/tracing/instances"


@dataclass(frozen=True)
class Said:
    """The result of one line of a script: the agent's own lines, and how it ended."""

    line: str
    shown: tuple[str, ...]
    ended: str

    @property
    def rows(self) -> list[list[str]]:
        """The words of each row of a stream."""
        return [row.split(" ") for row in self.shown]

    def of(self, word: str) -> list[list[str]]:
        """Rows of a kind, without its word."""
        return [row[1:] for row in self.rows if row[0] == word]


@pytest.fixture(scope="session")
def tracing_guest(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The program: the guest's main and the agent."""
    return (built_once(tmp_path_factory, "tracing_guest", _build) / "guest").read_bytes()


def _build(folder: Path) -> None:
    agent = PROJECT / "agent"
    compiler = [sys.executable, "-m", "ziglang", "cc", *FLAGS, *TARGET, f"-I{agent}"]
    main = folder / "main.o"
    made = [[*compiler, "-c", "-Dmain=agent_main", "-o", str(main), str(agent / "main.c")]]
    rooms = ("base", "tracing", "fs", "job", "board", "host", "record")
    sources = [str(path) for room in rooms for path in sorted((agent / room).glob("*.c"))]
    sources += [str(agent / "sql" / "none.c"), str(main)]
    sources += [str(PROJECT / "tests" / "support" / "guest" / "trace_guest.c")]
    made += [[*compiler, "-o", str(folder / "guest"), *sources]]
    for line in made:
        subprocess.run(line, check=True, timeout=250)


def obeyed(guest: bytes, folder: Path, script: Sequence[str]) -> list[Said]:
    """Boots the board with a script."""
    cache, board = cache_folder(), load_board("emulated-small")
    kernel = fetch_kernel(cache, "6.1", print)
    chip = built_module(cache, nand.source(), fetch_headers(cache, kernel, print), print)
    modules = initramfs.load_order(kernel.modules, (chip.stem, *initramfs.MODULES), [chip])
    image = folder / "initramfs"
    parameters = {chip.stem: nand.parameters(board, wait="halt")}
    initramfs.keep(initramfs.archive(guest, modules, parameters), image)
    machine = Machine(
        name="the board",
        process="QEMU",
        command=command("qemu-system-arm", board, bootable(kernel.image), image),
        patience_s=60,
        patience_variable="",
        one_processor=True,
        environment=dict(os.environ),
    )
    with Boot(folder / "boot", machine, "\n".join(script) + "\n") as boot:
        text = b"".join(boot.stream()).decode()
    said: list[Said] = []
    for part in text.split("> ")[1:]:
        line, *rows = part.splitlines()
        shown = tuple(row[2:] for row in rows if row[:2] in ("| ", "- "))
        ended = next((row for row in rows if row[:2] not in ("| ", "- ")), "")
        said.append(Said(line, shown, ended))
    assert [one.line for one in said] == list(script), text
    return said
