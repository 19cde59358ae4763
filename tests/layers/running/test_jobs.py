"""Cases that several processes run give the bytes of one, whatever happens to a process."""

from __future__ import annotations

import _thread
import os
import signal
from pathlib import Path

import pytest

from flashbed.base.errors import InputError, RunError
from flashbed.results.run_directory import read_table
from flashbed.running.memory import RESERVE_BYTES, MemoryBudget
from flashbed.running.runner import TargetOutcome
from flashbed.running.ways import Way, parse_jobs
from tests.layers.running.conftest import RunWay, same_bytes

pytestmark = pytest.mark.extension

CASES = 96


def workers() -> list[int]:
    """The processes that run tasks for this one."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parent = status.read_text().split("\nPPid:\t")[1].split("\n")[0]
            command = (status.parent / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if int(parent) == os.getpid() and b"flashbed.running.worker" in command:
            found.append(int(status.parent.name))
    return found


def test_three_processes_give_the_bytes_of_one(run_way: RunWay) -> None:
    seen = set()

    def count(_what: str, _done: int, _of: int) -> None:
        seen.update(workers())

    assert run_way("one", Way(1)) == TargetOutcome(
        target="sim", measured=CASES, kept=0, failures=()
    )
    assert run_way("three", Way(3), progress=count) == TargetOutcome(
        target="sim", measured=CASES, kept=0, failures=()
    )
    assert len(seen) == 3
    assert same_bytes("one", "three")
    assert workers() == []


def test_threads_of_one_process_give_the_same_bytes_too(
    run_way: RunWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_way("one", Way(1))
    monkeypatch.setattr("flashbed.running.ways.PROCESS_CASES", {False: CASES + 1})
    run_way("threads", Way(3))
    assert same_bytes("one", "threads")


def test_a_process_that_is_killed_loses_no_finished_case(run_way: RunWay) -> None:
    def kill(_what: str, done: int, _of: int) -> None:
        # Rows may still come from a process that was killed before; then there is none to kill.
        for worker in workers()[:1] if done else ():
            os.kill(worker, signal.SIGKILL)

    with pytest.raises(RunError, match=r"^a process of --jobs ended by signal 9; finished cases"):
        run_way("killed", Way(2), progress=kill)
    there = read_table(Path("killed"), "cases").height
    assert 0 < there < CASES
    assert workers() == []
    assert run_way("killed", Way(2)) == TargetOutcome(
        target="sim", measured=CASES - there, kept=there, failures=()
    )
    run_way("one", Way(1))
    assert same_bytes("one", "killed")


def test_an_interrupt_ends_the_processes_and_keeps_what_is_finished(run_way: RunWay) -> None:
    def interrupt(_what: str, done: int, _of: int) -> None:
        if done:
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        run_way("cut", Way(2), progress=interrupt)
    assert workers() == []
    there = read_table(Path("cut"), "cases").height
    assert 0 < there < CASES
    run_way("cut", Way(2))
    run_way("one", Way(1))
    assert same_bytes("one", "cut")


def test_a_case_that_cannot_be_is_the_same_line(run_way: RunWay) -> None:
    """What a process raises, this one does."""
    settings = ("pattern=sequential", "requests=8,1000000")
    for jobs in (1, 2):
        with pytest.raises(InputError, match="pass the end of a file"):
            run_way(f"odd{jobs}", Way(jobs), settings=settings)


def test_no_process_starts_without_memory_for_it(
    run_way: RunWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flashbed.running.memory.available_bytes", lambda: RESERVE_BYTES)
    most = 0

    def count(_what: str, _done: int, _of: int) -> None:
        nonlocal most
        most = max(most, len(workers()))

    assert run_way("tight", Way(3), progress=count).measured == CASES
    assert most == 1


def test_room_counts_what_guests_may_still_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest that has just started has taken nothing yet."""
    monkeypatch.setattr("flashbed.running.memory.available_bytes", lambda: 1 << 30)
    room = MemoryBudget()
    guest_bytes = 500 << 20
    assert room.has(guest_bytes)
    room.claimed_bytes += guest_bytes
    assert not room.has(guest_bytes)
    assert room.has(200 << 20)
    monkeypatch.setattr("flashbed.running.memory.available_bytes", lambda: 300 << 20)
    assert not room.has(200 << 20), "another program has taken it meanwhile"


@pytest.mark.parametrize("jobs", [0, -1, 1025])
def test_jobs_are_a_number(jobs: int) -> None:
    with pytest.raises(InputError, match=f"^--jobs {jobs}: must be from 1 to 1024$"):
        parse_jobs(jobs)
