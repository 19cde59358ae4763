"""A program that runs several times makes the same calls, on the files that the run before left."""

from __future__ import annotations

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.workloads.rounds import REST_NS, TEXT_BYTES_MAX, in_rounds
from flashbed.program.operations import parse

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
    rest = f"pause {REST_NS}"
    assert text.splitlines() == ["flashbed-ops 2", *first, rest, *again, rest, *again]


def test_a_program_of_version_1_becomes_one_of_version_2() -> None:
    assert in_rounds("flashbed-ops 1\nsync\n", 2).startswith("flashbed-ops 2\nsync\npause ")


def test_rounds_beyond_what_memory_holds_are_refused() -> None:
    with pytest.raises(InputError, match=r"rounds=1000000: .* are the most"):
        in_rounds("flashbed-ops 1\n" + "sync\n" * (TEXT_BYTES_MAX // 10**6), 10**6)
