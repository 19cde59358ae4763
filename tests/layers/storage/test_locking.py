"""Locks have one holder, even if processes die; scratch folders of dead processes are cleared."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.base.locking import KEPT_MAX, LOCK, held, locked, scratch, tidy

HOLDS = """
import sys, time
from pathlib import Path
from flashbed.base import locking
with {what} as got:
    print(got, flush=True)
    time.sleep(60)
"""


@contextmanager
def another(what: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that is inside of a context, and what that gave it. Killed at the end."""
    command = [sys.executable, "-c", HOLDS.format(what=what)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_a_folder_that_another_process_holds_is_refused_and_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with another(f"locking.held(Path({str(folder)!r}))") as (process, _):
        said = f"pid {process.pid} on .* is writing there; .* choose another --out"
        with pytest.raises(InputError, match=said), held(folder):
            pass
        process.kill()
        process.wait()
        with held(folder):  # the kernel has released it
            assert (folder / LOCK).read_text().startswith(f"pid {os.getpid()} on ")
    assert not folder.exists()


def test_a_lock_file_that_is_left_over_says_nothing(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("pid 1 on elsewhere\n")
    with held(tmp_path):
        assert f"pid {os.getpid()} " in (tmp_path / LOCK).read_text()
    assert not (tmp_path / LOCK).exists()


def test_only_a_name_is_shown_of_what_a_lock_file_says(tmp_path: Path) -> None:
    with held(tmp_path):
        (tmp_path / LOCK).write_text("pid 1 on \x1b[31mme\n")
        with pytest.raises(InputError, match="another process is writing there"), held(tmp_path):
            pass


def test_a_lock_is_never_a_link_to_another_file(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / LOCK).symlink_to(precious)
    with pytest.raises(InputError, match="a link"), held(tmp_path / "r"):
        pass
    assert precious.read_text() == "mine"


def test_one_after_the_other_where_a_process_waits(tmp_path: Path) -> None:
    """Eight processes add one to a number, each a hundred times; the lock file comes and goes."""
    counter = tmp_path / "count"
    counter.write_text("0")
    adds = f"""
from pathlib import Path
from flashbed.base.locking import locked
path = Path({str(counter)!r})
for _ in range(100):
    with locked(path.with_name("count.lock")):
        path.write_text(str(int(path.read_text()) + 1))
"""
    running = [subprocess.Popen([sys.executable, "-c", adds]) for _ in range(8)]
    assert [process.wait() for process in running] == [0] * 8
    assert counter.read_text() == "800"
    assert list(tmp_path.iterdir()) == [counter]
    with locked(tmp_path / "count.lock"):
        pass


def test_scratch_folders_of_dead_processes_are_cleared_those_of_others_are_not(
    tmp_path: Path,
) -> None:
    """Killed runs left a folder for good, with the chip's image and the job in it."""
    kept = scratch(tmp_path, "run-")
    (kept.path / "console.log").write_text("panic")
    kept.close(keep=True)
    (tmp_path / "run-empty").mkdir()
    what = f"locking.scratch(Path({str(tmp_path)!r}), 'run-')"
    with another(what) as (_, alive), another(what) as (killed, dead):
        (Path(dead) / "boot-0").mkdir()
        (Path(dead) / "boot-0" / "stream").write_text("x")
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        with scratch(tmp_path, "run-") as own:
            assert set(tmp_path.iterdir()) == {own, kept.path, Path(alive)}
        assert not own.exists()
    assert (kept.path / "console.log").read_text() == "panic"


def test_of_folders_that_are_kept_the_newest_stay(tmp_path: Path) -> None:
    """Nothing else would ever remove what failed runs left for a person to read."""
    made = []
    for at in range(KEPT_MAX + 3):
        folder = tmp_path / f"run-{at}"
        folder.mkdir()
        (folder / "console.log").write_text("panic\n")
        os.utime(folder, ns=(at, at))
        made.append(folder)
    (tmp_path / "run-elsewhere").symlink_to(tmp_path)
    with scratch(tmp_path, "run-"):
        assert [folder.exists() for folder in made] == [False] * 3 + [True] * KEPT_MAX
    assert (tmp_path / "run-elsewhere").is_symlink()


def test_a_child_ends_with_its_parent_also_one_that_is_killed_before_the_child_knows() -> None:
    """Between fork and PR_SET_PDEATHSIG the parent's end sends nothing: user-mode Linux ran on."""
    from flashbed.targets.guest.children import dies_with_us

    prefix = dies_with_us()
    if not prefix:
        pytest.skip("no setpriv")
    ours = subprocess.run([*prefix, "echo", "ran"], capture_output=True, text=True, check=True)
    assert ours.stdout == "ran\n"
    orphan = [*prefix[:-1], "1", "echo", "ran"]
    assert subprocess.run(orphan, capture_output=True, text=True, check=False).stdout == ""


def test_a_cache_is_tidied_of_what_killed_processes_left(tmp_path: Path) -> None:
    (tmp_path / "module-dead").mkdir()
    (tmp_path / "module-dead" / LOCK).write_text("pid 1 on x\n")
    (tmp_path / "module-dead" / "part").write_text("x")
    (tmp_path / "a.lock").write_text("pid 1 on x\n")
    (tmp_path / "kept").mkdir()
    with locked(tmp_path / "b.lock"), scratch(tmp_path, "fetch-") as alive:
        tidy(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([alive, tmp_path / "b.lock", tmp_path / "kept"])


GROUP = """
import subprocess, sys
from flashbed.targets.guest.children import GroupKeeper
command = ["sh", "-c", "sleep 60 & echo begun; wait"]
led = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
led.stdout.readline()
kept = GroupKeeper(led.pid)
print(led.pid, flush=True)
sys.stdin.read()
kept.dismiss()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_a_group_ends_with_us_with_all_its_children(killed: bool) -> None:
    """The processes that user-mode Linux had traced continued as programs of the host."""
    us = subprocess.Popen(
        [sys.executable, "-c", GROUP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert us.stdout is not None
    group = int(us.stdout.readline())
    if killed:
        us.kill()
    us.communicate()
    try:
        for _ in range(100 if killed else 5):
            if not _lives(group):
                break
            time.sleep(0.05)
        assert _lives(group) != killed
    finally:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _lives(group: int) -> bool:
    """Whether a process of a group runs; one that has ended and is not waited for does not."""
    listed = subprocess.run(
        ["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in listed.splitlines())
    return any(int(pgid) == group and not state.startswith("Z") for pgid, state in rows)
