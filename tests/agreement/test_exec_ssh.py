"""Programs of a board over ssh, on a partition that is named: what they do, and the board after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.test_ssh import FLASHBED, flashbed, settled, state_of
from tests.support.board import SshBoard

pytestmark = [pytest.mark.emulator, pytest.mark.timeout(600)]

USED = ("--on", "ssh://board", "--erase", "mtd0:flashbed")
PROCESSES = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo; done"


@pytest.fixture
def unchanged(shared_board: SshBoard) -> Iterator[SshBoard]:
    """The shared board, which is afterwards as it was, with nothing left running."""
    before = state_of(shared_board)
    yield shared_board
    assert settled(shared_board, before) == before
    assert "flashbed-agent" not in shared_board.run(PROCESSES).stdout


def _answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    answers: list[dict[str, Any]] = json.loads(done.stdout)["exec"]
    return answers[0]


@pytest.mark.parametrize("fs", ["ubifs", "jffs2"])
def test_a_program_of_the_board_runs_on_the_partition(
    unchanged: SshBoard, tmp_path: Path, fs: str
) -> None:
    (tmp_path / "given").write_text("a file\n")
    script = "cat given > copy; sync; cat; echo error >&2; pwd | grep -c mnt; exit 3"
    done = flashbed(
        unchanged, "exec", *USED, "--fs", fs, "--put", str(tmp_path / "given"), "--keep",
        str(tmp_path / "kept"), "--format", "json", "--", "sh", "-c", script,
        text="from here\n", check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "from here\n1\n" in done.stderr
    assert "error\n" in done.stderr
    answer = _answer(done)
    assert answer["kernel"] == unchanged.release
    assert answer["exit_status"] == 3
    assert answer["time_ns"] > 0
    assert answer["run"]["programs"] + answer["flush"]["programs"] > 0
    assert (tmp_path / "kept" / "copy").read_text() == "a file\n"


def test_a_partition_of_the_system_is_refused(unchanged: SshBoard) -> None:
    done = flashbed(
        unchanged, "exec", "--on", "ssh://board", "--erase", "mtd1:u-boot", "--", "true",
        check=False,
    )  # fmt: skip
    assert done.returncode == 125
    assert "u-boot" in done.stderr or "partition.blocks" in done.stderr
    done = flashbed(unchanged, "exec", "--on", "ssh://board", "--", "true", check=False)
    assert done.returncode == 2
    assert "--erase" in done.stderr


def test_no_such_program_on_the_board_is_127(unchanged: SshBoard) -> None:
    done = flashbed(unchanged, "exec", *USED, "--", "no-such-program", check=False)
    assert done.returncode == 127


def test_daemons_that_left_their_group_are_ended(unchanged: SshBoard) -> None:
    script = "(setsid sleep 4242 &) ; sleep 4242"
    done = flashbed(unchanged, "exec", *USED, "--until", "1", "--", "sh", "-c", script)
    assert "by --until" in done.stderr
    assert "4242" not in unchanged.run(PROCESSES).stdout


@pytest.mark.parametrize("how", ["killed", pytest.param("interrupted", marks=pytest.mark.long)])
def test_what_ends_flashbed_ends_the_program(unchanged: SshBoard, how: str) -> None:
    process = subprocess.Popen(
        [FLASHBED, "exec", *USED, "--", "sh", "-c", "(setsid sleep 4343 &); sleep 4343"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "FLASHBED_SSH": f"ssh -F {unchanged.config}"},
    )  # fmt: skip
    until = time.monotonic() + 120
    while "sleep 4343" not in unchanged.run(PROCESSES).stdout and time.monotonic() < until:
        time.sleep(1)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGINT)
    process.wait(60)
    until = time.monotonic() + 60
    while "4343" in unchanged.run(PROCESSES).stdout and time.monotonic() < until:
        time.sleep(1)
    assert "4343" not in unchanged.run(PROCESSES).stdout
