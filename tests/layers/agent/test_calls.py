"""The agent makes the call of each operation of version 2, and runs tasks as the page says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import PROJECT

AGENT = PROJECT / "build" / "agent" / "flashbed-agent-host"
HEADER = "flashbed-ops 2\n"

pytestmark = pytest.mark.skipif(not AGENT.exists(), reason="the agent is not built: make build")


def run(folder: Path, lines: str) -> dict[int, tuple[int, int, int]]:
    """Start, latency and result of each measured line."""
    program = folder / "program.ops"
    program.write_text(HEADER + lines)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    done = subprocess.run(
        [AGENT, "run", program, "--dir", work], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split(" ") for line in done.stdout.splitlines()]
    return {int(row[2]): (int(row[3]), int(row[4]), int(row[5])) for row in rows}


def results(folder: Path, lines: str) -> list[int]:
    return [result for _, _, result in run(folder, lines).values()]


def test_names_of_any_bytes_reach_the_folder(tmp_path: Path) -> None:
    lines = "mkdir %20%0A\nopen 0 %20%0A/%C3%A4%25 rw,create\nclose 0\n"
    assert results(tmp_path, lines) == [0] * 3
    made = list((tmp_path / "work" / " \n").iterdir())
    assert [os.fsencode(path.name) for path in made] == ["ä%".encode()]


def test_links_are_made_read_and_counted(tmp_path: Path) -> None:
    lines = (
        "open 0 a rw,create\nlink a b\nlink a b\nsymlink ../%20x/y s\nreadlink s\nreadlink a\n"
        "stat s\nstat none\nopen 1 . ro,directory\nreaddir 1\nreaddir 1\nreaddir 0\nfsync 1\n"
        "open 2 . rw,tmpfile\nlink SLOT:2 c\nopen 3 s ro,nofollow\n"
    )
    got = results(tmp_path, lines)
    assert got == [0, 0, -17, 0, 7, -22, 0, -2, 0, 5, 5, -20, 0, got[13], got[14], -40]
    assert (tmp_path / "work" / "s").readlink() == Path("../ x/y")
    if got[13] == 0:  # not every file system has O_TMPFILE
        assert got[14] == 0
        assert (tmp_path / "work" / "c").stat().st_nlink == 1


def test_modes_owners_and_times_are_set(tmp_path: Path) -> None:
    file = tmp_path / "work" / "a"
    lines = f"open 0 a rw,create\nchmod a 365\nchown a {os.getuid()} {os.getgid()}\nutimens a\n"
    assert results(tmp_path, lines) == [0] * 4
    assert file.stat().st_mode & 0o7777 == 365


def test_attributes_hold_the_bytes_that_are_filled_in(tmp_path: Path) -> None:
    lines = (
        "open 0 a rw,create\nsetxattr a user.x 5 1 100\ndata aGVsbG8=\nsetxattr a user.y 5 0 data\n"
        "getxattr a user.y\ngetxattr a user.z\nlistxattr a\nremovexattr a user.x\n"
    )
    got = results(tmp_path, lines)
    if got[1] == -95:
        pytest.skip("no user attributes in this folder")
    assert got == [0, 0, 0, 5, -61, 14, 0]
    assert os.getxattr(tmp_path / "work" / "a", "user.y") == b"hello"


def test_ranges_are_allocated_copied_sent_and_synced(tmp_path: Path) -> None:
    lines = (
        "open 0 a rw,create\nopen 1 b rw,create\ndata aGVsbG8=\nwrite 0 3 5 0 data\n"
        "copy 0 3 1 10 9\nsend 0 0 100\nsync_range 0 0 0 write,wait_after\nsyncfs 0\n"
        "fallocate 0 0 10000 keep\nfallocate 0 0 4 punch\nflock 0 exclusive\nopen 2 a ro\n"
        "flock 2 shared\nflock 0 unlock\nflock 2 shared\n"
    )
    got = results(tmp_path, lines)
    assert got == [0, 0, 5, 5, 8, 0, 0, got[7], got[8], 0, 0, -11, 0, 0]
    assert (tmp_path / "work" / "b").read_bytes() == bytes(10) + b"hello"


def test_what_is_stored_through_a_mapping_is_in_the_file(tmp_path: Path) -> None:
    lines = (
        "open 0 a rw,create\ntruncate 0 5000\nmmap 7 0 0 16384 rw\ntouch 7 0 8192\n"
        "data aGVsbG8=\nstore 7 4999 5 0 data\nstore 7 4096 2 9 0\ntouch 7 8192 1\n"
        "store 7 8192 1 1 0\nmsync 7 4096 10 sync\nmunmap 7\nopen 1 b wo,create\n"
        "mmap 8 1 0 1 rw\ntouch 8 0 1\nmsync 8 0 1 sync\nmunmap 8\nopen 2 c rw,create\n"
        "write 2 4096 2 9 0\n"
    )
    got = results(tmp_path, lines)
    # A page that became dirty; a file system in memory knows no dirty pages.
    assert got.pop(4) in (0, 4096)
    assert got == [0, 0, 0, 0, 0, -14, -14, 0, 0, 0, -13, -14, -22, -22, 0, 2]
    content, written = ((tmp_path / "work" / name).read_bytes() for name in "ac")
    assert len(content) == 5000
    assert content[-1:] == b"h"
    assert content[4096:4098] == written[4096:], "bytes are those of the place in the file"


def test_a_thousand_slots_are_open_at_once(tmp_path: Path) -> None:
    lines = "".join(f"open {slot} f{slot} rw,create\n" for slot in range(1024))
    assert results(tmp_path, lines) == [0] * 1024


def test_a_pause_makes_only_its_own_task_wait(tmp_path: Path) -> None:
    rows = run(
        tmp_path,
        "mark\nspawn 1\npause 200000000\ntask 1\nsync\ntask 0\nsync\ntask 1\npause 150000000\n"
        "task 0\nwait 1\nsync\n",
    )
    begun = {line: start for line, (start, _, _) in rows.items()}
    end = {line: start + latency for line, (start, latency, _) in rows.items()}
    assert list(rows) == [3, 4, 6, 8, 10, 12, 13], "task has no row"
    assert rows[3][:2] == (0, 0), "task 1 begins with task 0, when measuring starts"
    assert rows[4][:2] == (0, 200_000_000)
    assert begun[8] >= end[4]
    assert rows[10][:2] == (end[6], 150_000_000), "it counts from the end of the task's own sync"
    assert begun[12] == end[8], "wait is a line of task 0"
    assert begun[13] >= max(end[10], end[8])


def test_a_number_is_spawned_again_with_the_own_time_of_its_new_parent(tmp_path: Path) -> None:
    rows = run(
        tmp_path,
        "mark\nspawn 1\ntask 1\npause 3000000\ntask 0\nwait 1\nspawn 1\ntask 1\npause 5000000\n",
    )
    assert [(start, latency) for start, latency, _ in rows.values()] == [
        (0, 0), (0, 3_000_000), (0, 0), (3_000_000, 0), (3_000_000, 5_000_000),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        ("open 0 a rw,create\nwrite 0 0 100 1 50\n", ["s 100 a", "p 0 100 1:50"]),
        ("open 0 a rw,create\nwrite 0 0 100 1 0+0\n", ["s 100 a", "p 0 100 zero"]),
        (
            "open 0 a rw,create\ndata YQ==\nwrite 0 0 1 0 data\n",
            ["s 1 a", "k 0 YQ==", "p 0 1 =0"],
        ),
        ("symlink a b\n", ["y b a"]),
        ("mkdir d\nopen 0 d/%20 rw,create\n", ["s 0 d/%20"]),
    ],
)
def test_a_survey_says_what_there_is(tmp_path: Path, lines: str, rows: list[str]) -> None:
    run(tmp_path, lines)
    done = subprocess.run(
        [AGENT, "survey", tmp_path / "program.ops", "--dir", tmp_path / "work"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == rows
