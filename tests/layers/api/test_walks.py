"""The ways of `run` and `exec` to their targets turn back seldom (tests/support/walk.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import PROJECT

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

CASE = "jffs2-emulated-6.1-sequential-8x4096-of-5242880-ra128-s1"


def _walked(*words: str) -> tuple[int, str]:
    """Returns, and the rooms that hand the case on; the profiler needs a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.walk", *words],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    (line,) = (line for line in done.stdout.splitlines() if " returns; " in line)
    return int(line.split(" returns")[0].split()[-1]), line.partition("through ")[2]


def test_a_case_of_run_comes_back_to_five_rooms_at_most(tmp_path: Path) -> None:
    """Once it came back 15 times, through nine rooms."""
    returns, rooms = _walked("run", "figure3", "--case", CASE, "--out", str(tmp_path / "r"))
    assert rooms == "cli, api, running, targets"
    assert returns <= 5


def test_a_command_of_exec_never_turns_back() -> None:
    assert _walked("exec", "--", "true") == (0, "cli, targets")
