"""What reads return, from the job that asks for it to the table that keeps it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.guest.job import groups_of, items_of, text_of
from flashbed.targets.guest.results import Measuring, batch_of
from flashbed.targets.guest.stream import CaseDone, Reader, StreamError

BODY = "flashbed-ops 1\nopen 0 a ro\nmark\nread 0 0 10\nsync\n"
HEAD = b"flashbed-stream 1\n"
PROGRAM = Program(
    case_id="one",
    stack=Stack(
        board=load_board("emulated"), kernel=load_kernel("6.1"), fs="jffs2", read_ahead_kib=0
    ),
    prepare="flashbed-ops 1\nprepared\n",
    body=BODY,
)


def test_a_program_asks_for_its_own_contents() -> None:
    programs = [PROGRAM, replace(PROGRAM, case_id="two", check_contents=True)]
    items = items_of(programs, {"one": 0, "two": 1})
    text = text_of(groups_of(items), trace_flash=True, our_chip=True)
    assert "\ncase c0 0 flash\n" in text
    assert "\ncase c1 0 flash,contents\n" in text
    assert "\ncase c1 0 counts,contents\n" in text_of(
        groups_of(items), trace_flash=False, our_chip=True
    )


def test_a_sum_becomes_a_column_and_no_sum_is_null() -> None:
    (item,) = items_of([PROGRAM], {"one": 0})
    text = b"case c0\nr 0 4 1 2 10 7 4294967295 -\nr 1 5 3 4 0 - - -\nc 0 0 0 0\nend c0\n"
    done = list(Reader().feed(HEAD + text))[-1]
    assert isinstance(done, CaseDone)
    requests = batch_of(
        item, done, space=None, kernel_release="6.1", measuring=Measuring(software_time=True)
    ).requests
    assert requests["content_crc32"].to_list() == [4294967295, None]
    assert requests["flash_time_ns"].to_list() == [7, None]
    assert requests["latency_ns"].to_list() == [2, 4]


def test_without_software_time_latencies_are_unknown() -> None:
    (item,) = items_of([PROGRAM], {"one": 0})
    text = b"case c0\nr 0 4 1 2 10 2 - -\nr 1 5 3 4 0 4 - -\nc 0 0 0 0\nend c0\n"
    done = list(Reader().feed(HEAD + text))[-1]
    assert isinstance(done, CaseDone)
    batch = batch_of(
        item, done, space=None, kernel_release="6.1", measuring=Measuring(software_time=False)
    )
    assert batch.requests["latency_ns"].to_list() == [None, None]
    assert batch.cases.select("time_ns", "flash_time_ns").rows() == [(None, 6)]


@pytest.mark.parametrize("row", ["r 0 4 1 2 10 x - -", "r 0 4 1 2 10 1 -", "r 0 4 1 2"])
def test_a_row_of_another_shape_is_refused(row: str) -> None:
    with pytest.raises(StreamError):
        list(Reader().feed(HEAD + f"case c0\n{row}\n".encode()))


def test_a_remount_changes_what_the_next_case_starts_from() -> None:
    remounting = replace(PROGRAM, body="flashbed-ops 1\nremount\n")
    (item,) = items_of([remounting], {"one": 0})
    assert item.writes
