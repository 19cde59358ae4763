"""The emulated board itself: a real kernel, the same to the last digit every time."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.emulator.emulator_target import EmulatorTarget

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.timeout(300),
]

HEADER = "flashbed-ops 1\n"
PAGES = 64
WRITES = "".join(f"write 0 {page * 4096} 4096 1 0\n" for page in range(PAGES))
PREPARE = (
    f"{HEADER}open 0 file.bin wo,create\n{WRITES}fsync 0\nclose 0\nsync\n"
    "pause 10000000000\nprepared\n"
)
READS = "".join(f"read 0 {page * 4096} 4096\n" for page in range(8))
READ = f"{HEADER}drop_caches\nopen 0 file.bin ro\nmark\n{READS}"
FILL = "".join(f"write 0 {part << 20} 1048576 1 0\n" for part in range(5))
"""More than the partition of `emulated-small` has room for."""


def program(
    case_id: str, fs: str, read_ahead_kib: int = 0, body: str = READ, prepare: str = PREPARE
) -> Program:
    board, kernel = load_board("emulated"), load_kernel("6.1")
    return Program(
        case_id=case_id,
        stack=Stack(board=board, kernel=kernel, fs=fs, read_ahead_kib=read_ahead_kib),
        prepare=prepare,
        body=body,
    )


PROGRAMS = [
    program(f"{fs}-{read_ahead_kib}", fs, read_ahead_kib=read_ahead_kib)
    for fs in ("jffs2", "ubifs")
    for read_ahead_kib in (0, 128)
] + [
    program(
        "sql", "jffs2", body=f"{HEADER}sql_open a.db 1 fsync SELECT 1\nsql a.db SELECT it\nmark\n"
    ),
    program("writes", "jffs2", body=f"{HEADER}open 0 b wo,create\nmark\n{WRITES}fsync 0\n"),
    program("missing", "jffs2", body=f"{HEADER}open 0 nothing ro\nmark\nread 0 0 1\n"),
]

# A boot of its own, so that what comes before it is the same with and without it.
FULL = replace(
    program("full", "jffs2", prepare=f"{HEADER}open 0 big wo,create\n{FILL}close 0\nprepared\n"),
    stack=replace(
        program(
            "full", "jffs2", prepare=f"{HEADER}open 0 big wo,create\n{FILL}close 0\nprepared\n"
        ).stack,
        board=load_board("emulated-small"),
    ),
)


def measured(
    work: Path, programs: list[Program], *, trace_flash: bool, wait: str = "halt"
) -> Batch:
    target = EmulatorTarget(work_dir=work, patience_s=120, wait=wait)
    batches = list(target.run(programs, RunOptions(trace_flash=trace_flash)))
    return Batch(
        cases=pl.concat([batch.cases for batch in batches]),
        requests=pl.concat([batch.requests for batch in batches]),
        flash=pl.concat([batch.flash for batch in batches]),
        failures=tuple(failure for batch in batches for failure in batch.failures),
    )


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    return measured(tmp_path_factory.mktemp("traced"), [*PROGRAMS, FULL], trace_flash=True)


def test_tracing_does_not_change_what_is_traced(traced: Batch, tmp_path: Path) -> None:
    counted = measured(tmp_path, PROGRAMS, trace_flash=False)
    assert counted.flash.height == 0
    counts = [f"flash_{kind}s" for kind in ("read", "program", "erase")]
    assert counted.cases.select("case_id", *counts).equals(traced.cases.select("case_id", *counts))
    times = counted.cases["time_ns"] / traced.cases["time_ns"]
    assert times.is_between(0.999, 1.001).all()


def test_who_is_let_in_does_not_depend_on_how_the_chip_waits(tmp_path: Path) -> None:
    """UBI's thread erases the blocks of a removed file, beside a sync.

    A tick falls into the second erase. Later ones fall so that the microseconds tell by which the
    two waits differ.
    """
    big = f"open 0 a rw,create\n{FILL.splitlines()[0]}\nclose 0\nsync\npause 10000000000\n"
    body = f"{HEADER}mark\nunlink a\nsync\npause 1000000000\n"
    case = program("a", "ubifs", body=body, prepare=f"{HEADER}{big}prepared\n")
    case = replace(case, stack=replace(case.stack, board=load_board("emulated-4k")))
    halting, spinning = (
        measured(tmp_path / wait, [case], trace_flash=True, wait=wait)
        .flash.select("kind", "page", "task")
        .head(12)
        for wait in ("halt", "busy")
    )
    assert halting["task"].to_list().count("ubi_bgt0d") == 6
    assert halting.equals(spinning)


def test_two_runs_are_the_same_to_the_last_digit(traced: Batch, tmp_path: Path) -> None:
    again = measured(tmp_path, PROGRAMS, trace_flash=True)
    assert again.cases.equals(traced.cases)
    assert again.requests.equals(traced.requests)
    assert again.flash.equals(traced.flash)


def test_the_trace_holds_what_was_counted(traced: Batch) -> None:
    rows = traced.flash.group_by("case_id", "kind").len()
    for case in traced.cases.iter_rows(named=True):
        for kind in ("read", "program", "erase"):
            found = rows.filter(case_id=case["case_id"], kind=kind)["len"].sum()
            assert found == case[f"flash_{kind}s"], (case["case_id"], kind)
    assert (traced.flash["page"] // 64 == traced.flash["block"]).all()
    assert set(traced.flash["task"]) >= {"init"}


def test_read_ahead_reads_more_of_the_flash(traced: Batch) -> None:
    reads = dict(traced.cases.select("case_id", "flash_reads").rows())
    assert 3 * 8 <= reads["jffs2-0"] <= 4 * 8 + 2
    assert reads["jffs2-128"] > 3 * reads["jffs2-0"]
    assert reads["ubifs-128"] > 3 * reads["ubifs-0"]


def test_what_fails_is_one_line_and_the_rest_is_measured(traced: Batch) -> None:
    said = {failure.case_id: failure.message for failure in traced.failures}
    assert set(said) == {"full", "sql", "missing"}
    assert "ENOSPC: write: No space left on device" in said["full"]
    assert said["sql"] == "line 3 of its operations: SQLite: sql: no such column: it"
    assert said["missing"].endswith(
        "line 2 of its operations: ENOENT: open: No such file or directory"
    )
    cases = traced.cases
    assert cases.height == 5
    writes = cases.row(by_predicate=pl.col("case_id") == "writes", named=True)
    assert writes["bytes"] == PAGES * 4096
    assert writes["flash_programs"] >= 2 * PAGES


def test_qemu_killed_in_the_middle_costs_one_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = EmulatorTarget(work_dir=tmp_path / "work", patience_s=120)
    programs = [program(f"c{number}", "jffs2") for number in range(3)]
    killed = False

    def progress(what: str, _done: int) -> None:
        nonlocal killed
        if what.endswith(": c1") and not killed:
            killed = True
            for folder in Path("/proc").glob("[0-9]*"):
                if (folder / "cwd").is_symlink() and _works_in(folder, tmp_path):
                    os.kill(int(folder.name), signal.SIGKILL)

    batches = list(target.run(programs, RunOptions(progress=progress)))
    failures = [failure for batch in batches for failure in batch.failures]
    if not failures:
        pytest.skip("the case was over before the signal came")
    (failure,) = failures
    assert "QEMU ended by signal 9" in failure.message
    done = [name for batch in batches for name in batch.cases["case_id"]]
    assert sorted([*done, failure.case_id]) == ["c0", "c1", "c2"]


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return folder / "work" in (process / "cwd").readlink().parents
    except OSError:
        return False
