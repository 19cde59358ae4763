"""The tracers against what else is known of the run: the chip's log, the program's calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import polars as pl
import pytest

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.emulator.emulator_target import EmulatorTarget

pytestmark = [pytest.mark.emulator, pytest.mark.timeout(300)]

HEADER = "flashbed-ops 1\n"
FILES = 12
PAGES = 96
PREPARE = (
    f"{HEADER}open 0 old wo,create\n"
    + "".join(f"write 0 {page * 4096} 4096 1 0\n" for page in range(PAGES))
    + "fsync 0\nclose 0\nsync\nprepared\n"
)
BODY = (
    f"{HEADER}drop_caches\nmark\nopen 0 old rw\n"
    + "".join(f"read 0 {page * 4096} 4096\n" for page in range(0, PAGES, 3))
    + "".join(f"write 0 {page * 4096 + 512} 1000 2 50\n" for page in range(0, PAGES, 5))
    + "fsync 0\nclose 0\n"
    + "".join(
        f"open 1 f{number} wo,create\nwrite 1 0 9000 3 20\nfdatasync 1\nclose 1\n"
        for number in range(FILES)
    )
    + "".join(f"unlink f{number}\n" for number in range(0, FILES, 2))
    + "sync\n"
)
FUNCTIONS = "func=jffs2_write_end func=jffs2_do_readpage_nolock func=ubifs_writepage"


def program(fs: str, board: str, tracers: str) -> Program:
    case_id = f"{fs} {board} {tracers}"
    profile, kernel = load_board(board), load_kernel("6.1")
    return Program(
        case_id=case_id,
        stack=Stack(board=profile, kernel=kernel, fs=fs, read_ahead_kib=128),
        prepare=PREPARE,
        body=BODY,
        tracers=tracers,
    )


PROGRAMS = [
    program(fs, board, f"flash vfs {FUNCTIONS}")
    for board in ("emulated", "emulated-4k")
    for fs in ("jffs2", "ubifs", "yaffs2")
]
USUAL = PROGRAMS[:1]
"""The other file systems and the second board are for `--long`."""
CASES = [
    pytest.param(
        case,
        id=f"{case.stack.fs}-{case.stack.board.name}",
        marks=() if case in USUAL else pytest.mark.long,
    )
    for case in PROGRAMS
]
SMALL = replace(PROGRAMS[0], case_id="overflow", tracers="flash vfs buffer_kib=8")


@pytest.fixture(scope="module")
def measured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Batch]:
    target = EmulatorTarget(work_dir=tmp_path_factory.mktemp("boards"), patience_s=120)
    programs = PROGRAMS if request.config.getoption("--long") else USUAL
    batches = target.run([*programs, SMALL], RunOptions(trace_flash=True))
    found: dict[str, Batch] = {}
    for batch in batches:
        assert not batch.failures
        found |= dict.fromkeys(batch.cases["case_id"], batch)
    return found


def rows(batch: Batch, word: str) -> list[list[str]]:
    (traced,) = batch.traced.values()
    return [row.split(" ")[1:] for row in traced if row.startswith(f"{word} ")]


@pytest.mark.parametrize("case", CASES)
def test_flashmon_agrees_with_the_chip_event_by_event(
    measured: dict[str, Batch], case: Program
) -> None:
    batch = measured[case.case_id]
    log = batch.flash.select("kind", "block", "page", "offset_bytes", "length_bytes", "task")
    seen = [
        (kind, *map(int, numbers), task) for _, kind, *numbers, _pid, task in rows(batch, "flash")
    ]
    assert {kind for kind, *_ in seen} >= {"read", "program"}
    assert seen == log.rows()
    assert rows(batch, "lost") == [["0"]]
    # The probe is at the function's entry, the log at the chip: the same moment but for the code
    # between, and for what the driver has yet to wait for of the operations before.
    late = [
        start - int(row[0])
        for start, row in zip(batch.flash["start_ns"], rows(batch, "flash"), strict=True)
    ]
    assert min(late) >= 0


@pytest.mark.parametrize("case", CASES)
def test_vfsmon_agrees_with_the_programs_calls(measured: dict[str, Batch], case: Program) -> None:
    batch = measured[case.case_id]
    asked = batch.requests.filter(pl.col("op").is_in(["read", "write", "fdatasync", "fsync"]))
    expected = [
        (op, file, offset, length, result, start, latency)
        for op, file, offset, length, result, start, latency in asked.select(
            "op", "file", "offset_bytes", "length_bytes", "result", "start_ns", "latency_ns"
        ).rows()
    ]
    own = [row for row in rows(batch, "vfs") if row[9] in {file for _, file, *_ in expected}]
    own.sort(key=lambda row: int(row[0]))
    assert len(own) == len(expected)
    for row, (op, file, offset, length, result, start, latency) in zip(own, expected, strict=True):
        began, took, kind, _inode, at, of, came, _pid, task, name = row
        assert (kind, name, task, int(came)) == (op, file, "init", result)
        if op in ("read", "write"):
            assert (int(at), int(of)) == (offset, length)
        assert start <= int(began)
        assert int(began) + int(took) <= start + latency


def test_every_page_that_is_read_enters_the_cache(measured: dict[str, Batch]) -> None:
    for case in USUAL:
        traced = rows(measured[case.case_id], "vfs")
        added = {(row[3], row[4]) for row in traced if row[2] == "cache-add"}
        read = {(row[3], row[4]) for row in traced if row[2] == "read" and row[9] == "old"}
        assert len(read) == PAGES // 3
        assert read <= added
        ahead = [row for row in traced if row[2] == "readahead"]
        assert ahead
        # All of a round's pages are read within it, as MTD file systems read at once.
        for row in ahead:
            begin, end = int(row[0]), int(row[0]) + int(row[1])
            within = [r for r in traced if r[2] == "cache-add" and begin <= int(r[0]) <= end]
            assert len(within) <= int(row[5]) // 4096


def _pages_of(writes: pl.DataFrame) -> int:
    """Pages that each write touches."""
    return sum(
        (at + length - 1) // 4096 - at // 4096 + 1
        for at, length in writes.select("offset_bytes", "length_bytes").rows()
    )


def test_functions_add_up_to_what_was_asked(measured: dict[str, Batch]) -> None:
    jffs2 = measured[PROGRAMS[0].case_id]
    calls = Counter(row[2] for row in rows(jffs2, "func"))
    added = sum(row[2] == "cache-add" for row in rows(jffs2, "vfs"))
    writes = jffs2.requests.filter(op="write")
    pages = _pages_of(writes)
    assert calls["jffs2_write_end"] == pages
    assert 0 < calls["jffs2_do_readpage_nolock"] <= added + pages
    assert calls["ubifs_writepage"] == 0


@pytest.mark.long
def test_ubifs_writes_each_page_by_its_function(measured: dict[str, Batch]) -> None:
    ubifs = measured[PROGRAMS[1].case_id]
    calls = Counter(row[2] for row in rows(ubifs, "func"))
    writes = ubifs.requests.filter(op="write")
    assert calls["ubifs_writepage"] == _pages_of(writes)
    assert {row[3] for row in rows(ubifs, "func")} == {"0"}


def test_what_does_not_fit_the_buffer_is_said(measured: dict[str, Batch]) -> None:
    whole, cut = measured[PROGRAMS[0].case_id], measured["overflow"]
    ((lost,),) = rows(cut, "lost")
    kept = len(rows(cut, "flash"))
    assert int(lost) > 0
    assert kept < cut.flash.height == whole.flash.height
    # What was there first is there whole.
    log = cut.flash.select("kind", "page").rows()[:kept]
    assert [(row[1], int(row[3])) for row in rows(cut, "flash")] == log
