"""Programs that a recorder must outlive: one that stops it, leaves a daemon, writes a gigabyte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

from flashbed.recording.file import open_recording

AGENT = Path(__file__).parents[3] / "build" / "agent" / "flashbed-agent-host"
FLASHBED = str(Path(sys.executable).parent / "flashbed")
pytestmark = pytest.mark.skipif(not AGENT.is_file(), reason="the agent is not built; make build")


def recorded(folder: Path, *words: str, contents: bool = False) -> str:
    """What recording a shell's commands says on standard error."""
    out = str(folder.parent / "out.rec")
    options = ["--contents"] if contents else []
    done = subprocess.run(
        [FLASHBED, "record", *options, "-o", out, "--", "sh", "-c", *words], cwd=folder,
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


def test_a_program_that_stops_its_parent_goes_on(folder: Path) -> None:
    """The recorder is that parent: both waited for ever, also at Ctrl-C."""
    recorded(folder, "echo a > a; kill -STOP $PPID; echo b > b")
    assert (folder / "b").read_text() == "b\n"


def test_a_daemon_that_is_left_is_said(folder: Path) -> None:
    """It is recorded to its end, and until then nothing was said."""
    said = recorded(folder, "(sleep 3; echo late > late) > /dev/null 2>&1 &")
    assert "the program has ended" in said
    assert (folder / "late").exists()


def test_of_a_long_write_only_the_sizes_are_kept(folder: Path) -> None:
    """A gigabyte with `--contents` took 12 GB of memory: a table's row is copied several times."""
    recorded(folder, "dd if=/dev/zero of=a bs=65M count=1; echo small > b", contents=True)
    recording = open_recording(folder.parent / "out.rec")
    writes = [call.written for call in recording.calls() if call.name == "write"]
    assert b"small\n" in writes
    assert any(isinstance(written, tuple) and len(written) == 65 * 256 for written in writes)
    assert "The contents of 1 writes of more than 64 MiB." in recording.about.lacks
