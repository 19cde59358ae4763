"""A program that runs several times makes the same calls, on the files that the run before left."""

from __future__ import annotations

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.workloads.rounds import TEXT_BYTES_MAX, in_rounds, rest_ns
from flashbed.program.operations import parse
from flashbed.stack.changes import VmChange

BODY = """flashbed-ops 2
drop_caches
mark
open 0 log rw,create,excl,append
write 0 0 10 1 0
mmap 3 0 0 10 rw
spawn 1
task 1
open 7 b ro
"""


def test_one_round_is_the_program_as_it_is() -> None:
    assert in_rounds(BODY, 1) is BODY


def test_a_later_round_ends_what_the_first_left_open_and_needs_no_new_file() -> None:
    text = in_rounds(BODY, 3)
    parse(text)
    ended = ["munmap 3", "close 0", "close 7", "task 0", "wait 1"]
    first = [*BODY.splitlines()[1:], *ended]
    again = [line.replace(",excl", "") for line in first if line != "mark"]
    rest = "pause 40000000000"
    assert text.splitlines() == ["flashbed-ops 2", *first, rest, *again, rest, *again]


@pytest.mark.parametrize(
    ("vm", "seconds"),
    [
        ({}, 40),
        ({"dirty_expire_centisecs": 12_000}, 130),
        ({"dirty_expire_centisecs": 100, "dirty_writeback_centisecs": 200}, 8),
    ],
)
def test_a_rest_is_as_long_as_the_flusher_waits(vm: dict[str, int], seconds: int) -> None:
    """It was 40 s: with two minutes of age, a run's pages met those of the next in memory."""
    change = VmChange(**vm)
    assert rest_ns(change) == seconds * 10**9
    assert f"pause {seconds}000000000" in in_rounds(BODY, 2, change).splitlines()


def test_a_program_of_version_1_becomes_one_of_version_2() -> None:
    assert in_rounds("flashbed-ops 1\nsync\n", 2).startswith("flashbed-ops 2\nsync\npause ")


def test_rounds_beyond_what_memory_holds_are_refused() -> None:
    with pytest.raises(InputError, match=r"rounds=1000000: .* are the most"):
        in_rounds("flashbed-ops 1\n" + "sync\n" * (TEXT_BYTES_MAX // 10**6), 10**6)
