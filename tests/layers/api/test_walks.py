"""The ways of `run` and `exec` to their targets turn back seldom (tests/support/walk.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import PROJECT

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

CASE = "jffs2-emulated-6.1-sequential-8x4096-of-5242880-ra128-s1"


def _walked(*words: str) -> tuple[int, str, dict[str, set[str]]]:
    """Returns, the rooms that hand the case on, and the names of what they hand on.

    The profiler needs a process of its own.
    """
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.walk", *words],
        cwd=PROJECT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    ((at, line),) = ((at, line) for at, line in enumerate(lines) if " returns; " in line)
    rows = (row.split(maxsplit=1) for row in lines[at + 1 : -1])
    names = {kind: set(own.split(", ")) for kind, own in rows}
    return int(line.split(" returns")[0].split()[-1]), line.partition("through ")[2], names


def test_a_case_of_run_comes_back_to_four_rooms_at_most(tmp_path: Path) -> None:
    """Once it came back 15 times, through nine rooms."""
    returns, rooms, _ = _walked("run", "figure3", "--case", CASE, "--out", str(tmp_path / "r"))
    assert rooms == "cli, api, running, targets"
    assert returns <= 4


def test_what_is_handed_on_has_one_name(tmp_path: Path) -> None:
    """A plan was `cases` and `planned`, a portion `one`. A target's own name for itself is self."""
    *_, names = _walked("run", "figure3", "--case", CASE, "--out", str(tmp_path / "r"))
    several = {kind: own for kind, own in names.items() if len(own - {"self"}) > 1}
    assert not several


def test_a_command_of_exec_never_turns_back() -> None:
    returns, rooms, _ = _walked("exec", "--", "true")
    assert (returns, rooms) == (0, "cli, targets")
