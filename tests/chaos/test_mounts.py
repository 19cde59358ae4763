"""Real file systems that are full or cannot be written: one line, and nothing lost when they can.

Mounting needs root; without it there is only what strikes.py pretends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.program import bytes_of, finish, start

pytestmark = pytest.mark.extension

FEW = ("--set", "kernel=6.1", "--set", "seed=1", "--set", "requests=8")
RUN = ("run", "small/one", *FEW, "--trace", "flash,wear", "--out", "r")
COMMANDS = {
    "run": ((), RUN),
    "reproduce": ((), ("reproduce", "small", "--on", "sim", *FEW, "--out", "r")),
    "report": (RUN, ("report", "r", "--out", "page.html")),
    "trace": (
        (),
        ("trace", "small/one", *FEW, "--set", "fs=jffs2", "--set", "pattern=random", "--on", "sim",
         "--flash", "--set", "read_ahead_kib=0", "--export", "perfetto", "--out", "t"),
    ),
}  # fmt: skip
"""What runs before, with room, and the command."""


class Mount:
    """A tmpfs whose size and flags can be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def set(self, options: str) -> None:
        """Remounts it."""
        subprocess.run(["mount", "-o", f"remount,{options}", self.folder], check=True)

    def used_kib(self) -> int:
        """What is on it."""
        return shutil.disk_usage(self.folder).used >> 10


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    folder = tmp_path / "mounted"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as why:
        pytest.skip(f"no tmpfs can be mounted: {why}")
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted: {done.stderr.strip()}")
    yield Mount(folder)
    subprocess.run(["umount", str(folder)], check=True)


def completed(name: str, folder: Path) -> dict[str, str]:
    """The bytes that a command leaves where nothing is in its way."""
    folder.mkdir(exist_ok=True)
    for words in filter(None, COMMANDS[name]):
        ended = finish(start(words, folder))
        assert ended.status == 0, ended.err
    return bytes_of(folder)


@pytest.mark.parametrize("name", COMMANDS if "FLASHBED_CHAOS" in os.environ else ("run", "trace"))
@pytest.mark.parametrize("flag", ["full", "read-only"])
def test_a_command_says_so_and_completes_later(
    name: str, flag: str, small: Path, mount: Mount, tmp_path: Path
) -> None:
    expected = completed(name, tmp_path / "alone")
    before, words = COMMANDS[name]
    if before:
        assert finish(start(before, mount.folder)).status == 0
    mount.set(f"size={mount.used_kib() + 12}k" if flag == "full" else "ro")
    ended = finish(start(words, mount.folder))
    assert ended.status in (1, 2), ended.err
    assert ended.said_so, ended.err
    said = "No space left on device" if flag == "full" else "Read-only file system"
    assert said in ended.err
    assert len([line for line in ended.err.splitlines() if line.startswith("flashbed: ")]) == 1
    mount.set("size=64m" if flag == "full" else "rw")
    ended = finish(start(words, mount.folder))
    assert ended.status == 0, ended.err
    assert bytes_of(mount.folder) == expected
