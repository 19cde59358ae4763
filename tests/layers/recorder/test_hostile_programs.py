"""Programs that a recorder must outlive: one that stops it, leaves a daemon, does not exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flashbed._sim", reason="the simulator is not compiled; make build")

from flashbed.program.recording.file import open_recording

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


@pytest.mark.parametrize(
    ("word", "status", "why"),
    [("./no", 127, "No such file or directory"), (".", 126, "Permission denied"),
     ("./text", 126, "Exec format error")],
)  # fmt: skip
def test_a_program_that_does_not_begin_leaves_one_line(
    word: str, status: int, why: str, folder: Path
) -> None:
    """Five lines and an empty recording, whose time was that since the machine was started."""
    (folder / "text").write_text("hello\n")
    (folder / "text").chmod(0o755)
    out = folder.parent / "out.rec"
    done = subprocess.run(
        [FLASHBED, "record", "-o", str(out), "--", word], cwd=folder,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == f"flashbed: not recorded: {word}: {why}\n"
    assert done.returncode == status
    assert list(folder.parent.iterdir()) == [folder]


def test_a_program_may_remove_the_folder_that_it_works_in(folder: Path) -> None:
    """`record` then ended in "No such file or directory", although the recording was whole."""
    said = recorded(folder, "echo a > f; rm f; rmdir ../work")
    assert "out.rec: next" in said


def test_calls_on_files_of_too_long_a_path_are_counted(folder: Path) -> None:
    """They were left out without a word."""
    script = (
        "import os\n"
        "for _ in range(50): os.mkdir('d' * 100); os.chdir('d' * 100)\n"
        "open('f', 'w').close()"
    )
    said = recorded(folder, f'{sys.executable} -I -c "{script}"')
    assert "not followed: calls on files of too long a path (" in said


def test_a_word_of_the_command_that_is_no_utf_8_is_kept(folder: Path) -> None:
    out = folder.parent / "out.rec"
    command: list[str | bytes] = [FLASHBED, "record", "-o", str(out), "--", "touch", b"\xff"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    assert open_recording(out).about.command == ("touch", "\\xff")


def test_parts_that_became_a_link_are_not_written_through(folder: Path) -> None:
    """The program may move the folder of a recording's parts, and put a link there."""
    out, victim = folder.parent / "out.rec", folder.parent / "victim"
    victim.mkdir()
    script = f"mv {out}.parts {out}.old; ln -s {victim} {out}.parts; echo a > f"
    command = [FLASHBED, "record", "-o", str(out), "--", "sh", "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr.startswith(f"flashbed: {out}.parts: a link, which")
    assert (done.returncode, list(victim.iterdir())) == (2, [])
