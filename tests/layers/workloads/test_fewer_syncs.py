"""A program that syncs at most every N seconds makes one sync for all that was left to sync."""

from __future__ import annotations

import pytest

from flashbed.plan.workloads.fewer_syncs import synced_every
from flashbed.program.operations import parse

SECOND = "pause 1000000000"
LINE = ["write 0 0 10 1 0", "fsync 0", SECOND]


def syncs(body: str) -> list[str]:
    return [line for line in body.splitlines() if "sync" in line]


def test_0_leaves_the_program_as_it_is() -> None:
    body = "flashbed-ops 2\nsync\n"
    assert synced_every(body, 0, None) is body


@pytest.mark.parametrize(("seconds", "kept"), [(1, 9), (3, 3), (5, 1), (10, 0)])
def test_one_sync_is_made_each_time_the_seconds_have_passed(seconds: int, kept: int) -> None:
    body = "\n".join(["flashbed-ops 2", "open 0 log rw,create", *LINE * 10, ""])
    found = synced_every(body, seconds, None)
    parse(found)
    assert len(syncs(found)) == kept
    lines = [line for line in body.splitlines() if line != "fsync 0"]
    assert [line for line in found.splitlines() if "sync" not in line] == lines


@pytest.mark.parametrize(
    ("between", "made"),
    [
        ([], ["fsync 0"]),
        (["fdatasync 0"], ["fsync 0"]),
        (["open 1 b rw,create", "fdatasync 1"], ["fdatasync 1", "fsync 0"]),
        (["open 1 b rw,create", "fdatasync 1", "close 1"], ["sync"]),
        (["open 1 b rw,create", "fdatasync 1", "close 1", "open 1 c rw,create"], ["sync"]),
        (["sync"], ["sync"]),
        (["syncfs 0"], ["sync"]),
    ],
)
def test_what_was_left_to_sync_is_made_up_for(between: list[str], made: list[str]) -> None:
    """A file that is closed by then has only `sync`, which on UBIFS runs a commit besides."""
    lines = ["flashbed-ops 2", "open 0 a rw,create", SECOND, "fsync 0", *between, SECOND, "fsync 0"]
    found = synced_every("\n".join([*lines, ""]), 1, None)
    parse(found)
    assert syncs(found) == ["fsync 0", *made]


def test_a_task_goes_by_its_own_time_and_its_work_counts_where_its_price_is_known() -> None:
    other = ["task 1", "sync", "task 0"]
    lines = ["flashbed-ops 2", "spawn 1", SECOND, *other, "compute 1000", "sync", ""]
    assert syncs(synced_every("\n".join(lines), 1, None)) == ["sync"]
    work = ["flashbed-ops 2", "compute 1000000000", "sync", ""]
    assert syncs(synced_every("\n".join(work), 1, None)) == []
    assert syncs(synced_every("\n".join(work), 1, 1000)) == ["sync"]
