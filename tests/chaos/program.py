"""The program as a process of its own, which can be stopped at any moment, and what it leaves."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ended", "bytes_of", "finish", "left_behind", "start"]


@dataclass(frozen=True)
class Ended:
    """How a process ended, and what it said."""

    status: int
    out: str
    err: str

    @property
    def said_so(self) -> bool:
        """Whether a failure is printed as users get it: a line, and no traceback."""
        lines = [line for line in self.err.splitlines() if line.startswith("flashbed: ")]
        bug = "Traceback" in self.err or "internal error" in self.err or "panicked" in self.err
        return not bug and (self.status == 0 or bool(lines))


def start(
    words: Sequence[str], folder: Path, *, before: str = "", more: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """`flashbed WORDS` in a folder, after the Python statements `before`, in a group of its own."""
    code = f"{before}\nfrom flashbed.cli import main\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(more or {})},
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> Ended:
    """Waits for its end."""
    out, err = process.communicate(timeout=240)
    return Ended(process.returncode, out, err)


def bytes_of(folder: Path) -> dict[str, str]:
    """Path in the folder -> hash of the file, of every file that is there, hidden or not."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def left_behind(folders: Sequence[Path]) -> list[str]:
    """Processes that still run in one of the folders, or on it, and what they run."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            where = (process / "cwd").readlink()
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if any(where.is_relative_to(folder) or f"{folder}/" in command for folder in folders):
            found.append(f"{process.name} {command}")
    return found
