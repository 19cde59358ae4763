"""Calls that failed are counted with the case, by the same rule on every target.

On 62 blocks 11,257 calls of a program returned ENOSPC; it wrote 869,603 of 17,459,789 bytes, was
ranked first under "the same work for each" and got a lifetime of decades.
"""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import replace

import pytest

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.failing import SHORT, failure, failure_of, failures_text
from flashbed.targets.guest.job import items_of
from flashbed.targets.guest.results import Measuring, batch_of
from flashbed.targets.guest.stream import CaseDone, Reader
from flashbed.targets.sim import SimTarget

PREPARED = "flashbed-ops 2\nsync\nprepared\n"
FULL = "".join(f"write 0 {at * 65536} 65536 {at} 0\n" for at in range(400))
LOOKS = """stat nothing
open 1 a wo,create,excl
unlink nothing
mkdir here
mkdir here
rmdir nothing/there
rename nothing other
flock 0 shared
fallocate 0 0 4096 allocate
"""
MAPPED = """truncate 0 8192
mmap 0 0 0 8192 rw
store 0 0 4096 1 0
munmap 0
"""
BODIES = {
    "full": f"open 0 a rw,create\nmark\n{FULL}fsync 0\nclose 0\n",
    "looks": f"open 0 a rw,create\nmark\n{LOOKS}close 0\n",
    "mapped": f"open 0 a rw,create\nmark\n{MAPPED}close 0\n",
    "missing": "mark\nopen 0 nothing ro\nclose 0\n",
    "unread": "mark\nopen 0 nothing ro\nread 0 0 10\nclose 0\n",
}


def program(fs: str, body: str, *, blocks: int = 62) -> Program:
    board = load_board("emulated")
    board = board.model_copy(update={"partition": board.partition.model_copy(
        update={"blocks": blocks})})  # fmt: skip
    text = f"flashbed-ops 2\n{BODIES[body]}"
    return Program(
        case_id=body,
        stack=Stack(board=board, kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0),
        prepare=PREPARED,
        body=text,
    )


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "ubifs", "yaffs2"])
def test_the_simulator_counts_by_the_rule_with_and_without_rows(fs: str) -> None:
    full = program(fs, "full")
    (batch,) = SimTarget().run([full])
    rows = batch.requests.select("op", "length_bytes", "result").iter_rows()
    kinds = Counter(kind for row in rows if (kind := failure(*row)) is not None)
    counted = batch.cases.select("failed", "failed_errno").row(0)
    assert counted == (kinds.total(), failures_text(kinds))
    assert kinds["ENOSPC"] > 100
    (alone,) = SimTarget().run([replace(full, record_requests=False)])
    assert alone.cases.select("failed", "failed_errno").row(0) == counted


@pytest.mark.extension
@pytest.mark.parametrize(
    ("fs", "body", "failed"),
    [
        ("ubifs", "looks", None),
        ("jffs2", "looks", None),
        ("ubifs", "mapped", None),
        ("jffs2", "mapped", "EINVAL 2, EFAULT 1"),
        ("ubifs", "missing", None),
        ("ubifs", "unread", "EBADF 1"),
    ],
)
def test_an_answer_about_a_name_is_no_failure(fs: str, body: str, failed: str | None) -> None:
    """Programs ask with calls whether a name is there; JFFS2 has no shared writable mappings.

    SQLite's look at a journal counted as two failures: 816 calls of four databases that worked.
    """
    (batch,) = SimTarget().run([program(fs, body)])
    assert batch.failures == ()
    assert batch.cases["failed_errno"].to_list() == [failed]


@pytest.mark.parametrize(
    ("results", "failed", "text"),
    [
        ((20, -28, 7), 2, "ENOSPC 1, short 1"),
        ((20, 20, 20), 0, None),
        ((0, -5, -5), 3, "EIO 2, short 1"),
    ],
)  # fmt: skip
def test_a_guest_s_failed_calls_are_counted(
    results: tuple[int, ...], failed: int, text: str | None
) -> None:
    body = "flashbed-ops 1\nopen 0 a rw\nmark\n" + "write 0 0 20 1 0\n" * 3
    (item,) = items_of([replace(program("jffs2", "full"), case_id="one", body=body)], {"one": 0})
    rows = "".join(f"r {n} {n + 4} {n} 1 {made} 0 - -\n" for n, made in enumerate(results))
    stream = f"flashbed-stream 1\ncase c0\nc 0 0 0 0\n{rows}end c0\n"
    *_, done = Reader().feed(stream.encode())
    assert isinstance(done, CaseDone)
    cases = batch_of(
        item, done, space=None, kernel_release="6.1", measuring=Measuring(software_time=True)
    ).cases
    assert cases.select("failed", "failed_errno").row(0) == (failed, text)


def test_kinds_have_the_kernel_s_names() -> None:
    assert failure("sql", None, -13) == "SQLite 13"
    assert failure("write", 8, 7) == SHORT == failure_of(0)
    assert failure("read", 8, 0) is None
    assert failure("fsync", None, -errno.EIO) == "EIO"
