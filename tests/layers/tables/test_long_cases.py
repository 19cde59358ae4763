"""Cases too long to hold: their rows go to files as they come, and tables are the same."""

from __future__ import annotations

import os
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from flashbed.cli.trace import _of_operations
from flashbed.program.operations import each, parse, text_of
from flashbed.results import merging
from flashbed.results.columns import conform
from flashbed.results.run_directory import RunDirectory
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.guest.job import items_of
from flashbed.targets.guest.results import Measuring, RowsOfCase, StrangeLineError, batch_of
from flashbed.targets.guest.stream import CaseDone, CaseRows, Reader
from flashbed.targets.long_rows import LongRows

BODY = "flashbed-ops 1\nopen 0 a rw\nmark\n" + "read 0 0 10\nwrite 0 10 20 1 0\n" * 3
PROGRAM = Program(
    case_id="one",
    stack=Stack(
        board=load_board("emulated"), kernel=load_kernel("6.1"), fs="jffs2", read_ahead_kib=0
    ),
    prepare="flashbed-ops 1\nprepared\n",
    body=BODY,
)
MEASURING = Measuring(software_time=True)
MIB = 1 << 20


def stream(lines: Iterator[int]) -> bytes:
    flash = (f"f {n} {n} read 0 {n} 0 10 program 5\n" for n in range(5))
    rows = (f"r {n} {line} {10 * n} 4 {10 + n} 3 - -\n" for n, line in enumerate(lines))
    text = ("flashbed-stream 1\ncase c0\n", *flash, "c 5 0 0 0\n", *rows, "end c0\n")
    return "".join(text).encode()


def test_a_guest_s_rows_in_pieces_are_the_rows_of_the_whole_case() -> None:
    (item,) = items_of([PROGRAM], {"one": 0})
    text = stream(iter(range(4, 10)))
    *_, whole = Reader().feed(text)
    assert isinstance(whole, CaseDone)
    expected = batch_of(item, whole, space=None, kernel_release="6.1", measuring=MEASURING)

    rows = RowsOfCase(item, MEASURING)
    given: dict[str, list[pl.DataFrame]] = {"requests": [], "flash": []}
    _, *pieces, last = Reader(rows_at_once=2).feed(text)
    for piece in pieces:
        assert isinstance(piece, CaseRows)
        assert max(len(piece.requests), len(piece.flash)) <= 2
        for name, frame in rows.tables(piece).items():
            given[name].append(frame)
    assert len(pieces) == 4
    assert isinstance(last, CaseDone)
    batch = batch_of(item, last, space=None, kernel_release="6.1", measuring=MEASURING, rows=rows)
    assert batch.cases.equals(expected.cases)
    assert pl.concat([*given["requests"], batch.requests]).equals(expected.requests)
    assert pl.concat([*given["flash"], batch.flash]).equals(expected.flash)


@pytest.mark.parametrize("lines", [[4, 99], [4, 4], [5, 4], [1]])
def test_an_answer_for_no_operation_or_out_of_order_is_strange(lines: list[int]) -> None:
    (item,) = items_of([PROGRAM], {"one": 0})
    *_, done = Reader().feed(stream(iter(lines)))
    assert isinstance(done, CaseDone)
    with pytest.raises(StrangeLineError, match=f"answers for line {lines[-1]}, which is no"):
        RowsOfCase(item, MEASURING).tables(done)
    (failure,) = batch_of(
        item, done, space=None, kernel_release="6.1", measuring=MEASURING
    ).failures
    assert failure.message.endswith("which is no operation")


def test_operations_are_the_same_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of(BODY.splitlines()[1:])
    assert text == BODY
    whole = parse(text)
    for at_once in (1, 7, 64):
        monkeypatch.setattr("flashbed.program.operations._READ_AT_ONCE", at_once)
        monkeypatch.setattr("flashbed.program.operations._LINES_AT_ONCE", at_once)
        assert list(each(text)) == whole
        assert text_of(BODY.splitlines()[1:]) == text


@pytest.mark.extension
def test_a_long_file_of_operations_is_in_memory_once(tmp_path: Path) -> None:
    """The text, its part after `prepared`, and the copy with a header were in memory together."""
    before = "flashbed-ops 1\nopen 0 a rw,create\nclose 0\nprepared\n"
    rest = "open 0 a ro\n" + "read 0 0 10\n" * 500_000
    file = tmp_path / "long.ops"
    file.write_text(before)
    _of_operations(file, ["fs=jffs2"])  # imports and profiles are read once
    file.write_text(before + rest)
    tracemalloc.start()
    try:
        program = _of_operations(file, ["fs=jffs2"])
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert program.prepare == before
    assert program.body == f"flashbed-ops 1\n{rest}"
    assert peak_bytes < len(rest) + 4 * MIB


def table(case_id: str, target: str, rows: range) -> pl.DataFrame:
    key = {"case_id": case_id, "target": target}
    return pl.DataFrame([{**key, "seq": seq, "op": "read", "start_ns": seq} for seq in rows])


def kept(path: Path, batches: list[list[tuple[str, str, int, int]]]) -> dict[str, bytes]:
    """The files of a run whose batches are (case, target, rows, those of them that came before)."""
    directory = RunDirectory.create(path, "study/one")
    for batch in batches:
        long_rows = LongRows(directory.parts(), batch[0][1])
        last = []
        for case_id, target, rows, before in batch:
            for at in range(0, before, 5):
                piece = table(case_id, target, range(at, min(at + 5, before)))
                long_rows.add(case_id, {"requests": piece})
            last.append(table(case_id, target, range(before, rows)))
        frames = {
            "cases": conform(pl.DataFrame([{"case_id": c, "target": t} for c, t, *_ in batch]),
                             "cases"),
            "requests": pl.concat([conform(frame, "requests") for frame in last]),
        }  # fmt: skip
        done = frames["cases"].select("case_id", "target", pl.lit("key").alias("key"))
        pieces = [file for case_id, *_ in batch for file in long_rows.take("requests", case_id)]
        directory.add(frames, done, {"requests": pieces})
        long_rows.close()
    directory.merge(["a", "b", "c"])
    assert not list(path.glob(".*"))
    return {file.name: file.read_bytes() for file in path.glob("*.parquet")}


@pytest.mark.parametrize("at_once", [1, 8, 30, 1000])
def test_merged_tables_do_not_depend_on_parts_and_pieces(
    tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = kept(tmp_path / "whole", [
        [("a", "sim", 20, 0), ("b", "sim", 3, 0), ("c", "sim", 40, 0)],
        [("a", "uml", 20, 0), ("c", "uml", 7, 0)],
    ])  # fmt: skip
    monkeypatch.setattr(merging, "ROWS_AT_ONCE", at_once)
    found = kept(tmp_path / "pieces", [
        [("c", "uml", 7, 0)],
        [("c", "sim", 50, 45)],  # of another version; the last word is below
        [("a", "uml", 20, 15)],
        [("c", "sim", 40, 35)],
        [("b", "sim", 3, 0)],
        [("a", "sim", 20, 10)],
    ])  # fmt: skip
    assert found == expected
    again = kept(tmp_path / "pieces", [[("b", "sim", 3, 0)]])
    assert again == expected


def peak_bytes(arguments: list[str]) -> int:
    """The most memory that a run of the program had."""
    program = [sys.executable, "-c", "from flashbed.__main__ import main; main()", *arguments]
    pid = os.spawnv(os.P_NOWAIT, sys.executable, program)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return usage.ru_maxrss << 10


EXPERIMENT = """
[experiment]
id = "memory/many"
title = "Many requests"
question = "How much memory do they take?"
source = "none"

[workload]
kind = "micro-read"
request_bytes = 4096
file_bytes = 65_536
settle_ns = 1_000_000_000

[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1"]
fs = ["ubifs"]
read_ahead_kib = [0]
pattern = ["random"]
requests = [60_000, 600_000]
seed = [1]
"""


@pytest.mark.extension
def test_ten_times_the_requests_of_a_run_take_hardly_more_memory(tmp_path: Path) -> None:
    """A request took half a kilobyte: of a million of them a run had 740 MB."""
    file = tmp_path / "many.toml"
    file.write_text(EXPERIMENT)
    peaks = []
    for requests in (60_000, 600_000):
        out = tmp_path / str(requests)
        chosen = ["--set", f"requests={requests}", "--out", str(out)]
        peaks.append(peak_bytes(["run", str(file), *chosen]))
        counted = pl.scan_parquet(out / "requests.parquet").select(pl.len()).collect().item()
        assert counted == requests
    assert peaks[1] - peaks[0] < 160 * MIB
