"""Programs recorded by the host's agent, for tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

import pytest

from flashbed.program.recording.calls import Call
from flashbed.program.recording.file import open_recording
from flashbed.targets.guest.agent import path_of
from flashbed.targets.recorder.places import HerePlace
from flashbed.targets.recorder.recorded_run import RecordedRun
from flashbed.targets.recorder.session import record

__all__ = ["AGENT", "NOT_OF_FILES", "calls_of", "compiled", "needs", "recorded"]

AGENT = path_of("host")
NOT_OF_FILES = frozenset({"clone", "execve", "exit", "wait4", "waitid"})
"""Rows that are events, and that strace shows otherwise."""


def needs(*programs: str) -> None:
    """Skips a test where the agent or a program is missing."""
    if not AGENT.is_file():
        pytest.skip("the agent is not built: make build")
    for name in programs:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is missing")


def recorded(
    command: Sequence[str], folder: Path, out: Path,
    *, below: Sequence[str] = (), contents: bool = False,
) -> RecordedRun:  # fmt: skip
    """A command recorded in a folder."""
    needs()
    with chdir(folder):
        return record(HerePlace(), command, out, below=below, contents=contents)


def calls_of(path: Path) -> list[Call]:
    """The calls of a recording; reading them checks each."""
    return list(open_recording(path).calls())


def compiled(source: str, folder: Path, *flags: str) -> Path:
    """A C program, static, by the compiler that builds the agent."""
    text = folder / "program.c"
    text.write_text(source, encoding="ascii")
    program = folder / "program"
    # With the flags of the agent, whose C library zig then need not compile again.
    flags = ("-std=gnu99", "-O2", "-s", *flags)
    command = [sys.executable, "-m", "ziglang", "cc", *flags, "-o", str(program)]
    subprocess.run([*command, str(text)], check=True, capture_output=True)
    return program
