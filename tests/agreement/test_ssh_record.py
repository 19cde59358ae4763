"""A program of a board recorded over ssh: the agent of another architecture, another kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flashbed.program.recording.file import open_recording
from tests.support.board import SshBoard
from tests.support.recorded import calls_of

pytestmark = [pytest.mark.emulator, pytest.mark.timeout(900)]

FLASHBED = str(Path(sys.executable).parent / "flashbed")
STATE = "ls -A /tmp /run; cat /proc/mounts"
SCRIPT = (
    "echo hello > a; cat a; mkdir d; mv a d/b; dd if=/dev/zero of=z bs=5000 count=3 2>/dev/null;"
    " sync; dd if=z of=y bs=4096 skip=1 2>/dev/null; rm z; ls d; exit 6"
)


def test_a_program_on_a_board_is_recorded_and_the_board_is_as_it_was(
    shared_board: SshBoard, tmp_path: Path
) -> None:
    board, out = shared_board, tmp_path / "x.parquet"
    board.run("rm -rf /tmp/work; mkdir /tmp/work")
    before = board.run(STATE).stdout
    command = [FLASHBED, "record", "--on", "ssh://board/tmp/work", "-o", str(out), "--"]
    environment = {**os.environ, "FLASHBED_SSH": f"ssh -F {board.config}"}
    done = subprocess.run(
        [*command, "sh", "-c", SCRIPT], env=environment,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 6, done.stderr
    assert "hello\n" in done.stderr
    assert board.run(STATE).stdout == before
    recording = open_recording(out)
    assert recording.about.complete
    assert recording.about.machine == f"Linux {board.release} armv7l"
    assert recording.about.step_ps
    calls = calls_of(out)
    writes = [call.result for call in calls if call.name.startswith("write")]
    assert writes == [6, 5000, 5000, 5000, 4096, 4096, 2712]
    (first,) = [call for call in calls if call.result == 6 and call.name == "write"]
    assert first.written is not None
    (made,) = [call for call in calls if call.name.startswith("mkdir")]
    assert made.path() == b"d"
    (moved,) = [call for call in calls if call.name.startswith("rename")]
    assert (moved.path(), moved.path("to_path")) == (b"a", b"d/b")
    removed = [call.path() for call in calls if call.name.startswith("unlink")]
    assert removed == [b"z"]
    opened = [call for call in calls if call.name.startswith("open") and call.path() == b"z"]
    # O_WRONLY | O_CREAT | O_TRUNC as x86-64 numbers them, whatever the C library adds.
    assert [call.number("flags") & 0o1103 for call in opened] == [0o1101, 0]
    assert all(call.start_ns >= 0 and (call.duration_ns or 0) >= 0 for call in calls)
