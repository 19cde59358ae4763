"""The simulator's columns become tables with names and nulls."""

from __future__ import annotations

import json
import signal
from array import array
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

from flashbed.bench.fuzz.generator import generate
from flashbed.results.run_directory import conform
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.long_rows import LongRows
from flashbed.targets.sim import SimTarget, batch_of, cases_of

if TYPE_CHECKING:
    from flashbed import _sim


def program(case_id: str) -> Program:
    return Program(
        case_id=case_id,
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel("6.1"), fs="jffs2", read_ahead_kib=0
        ),
        prepare="",
        body="",
    )


def column(*values: int) -> bytes:
    return array("q", values).tobytes()


def results(**given: object) -> _sim.Results:
    """What the simulator gives, of nothing but this."""
    lists = ("file_names", "failures", "surveys", "blocks")
    tables = ("cases", "requests", "flash", "wear", "gc_choices", "unpriced", "failed")
    nothing: dict[str, object] = {name: [] for name in lists}
    nothing |= {name: {} for name in tables}
    return cast("_sim.Results", SimpleNamespace(**nothing | given))


@pytest.mark.extension
def test_codes_become_names_and_the_least_integer_null() -> None:
    from flashbed._sim import KIND_NAMES, NULL, OP_NAMES, TASK_NAMES

    one = column(1)
    given = results(
        cases={"case_index": one, "time_ns": column(5), "fresh_bytes": column(2048 * 100),
               "free_bytes": column(2048 * 40), "fresh_pages": column(7), "pages": column(87),
               "flash_time_ns": column(3), "erase_count_mean_milli": column(1500)},
        requests={
            "case_index": column(1, 1),
            "seq": column(0, 1),
            "op_code": column(OP_NAMES.index("read"), OP_NAMES.index("sync")),
            "file_index": column(0, NULL),
            "offset_bytes": column(4096, NULL),
            "latency_ns": column(7, 8),
            "flash_time_ns": column(6, 0),
        },
        flash={"case_index": one, "seq": one, "start_ns": one, "block": column(2),
               "kind": column(KIND_NAMES.index("program")),
               "task": column(0)},
        file_names=["file.bin"],
        failed={1: [(-28, 2), (0, 1)]},
        failures=[SimpleNamespace(case_index=0, message="no space left on device", what=None)],
    )  # fmt: skip
    batch = batch_of(given, [program("a"), program("b")])
    assert batch.cases.to_dicts() == [
        {
            "case_id": "b",
            "time_ns": 5,
            "flash_time_ns": 3,
            "erase_count_mean": 1.5,
            "state_valid": 0.6,
            "state_invalid": pytest.approx(0.2),
            "read_ahead_kib": 0,
            "time_unknown": None,
            "failed_errno": "ENOSPC 2, short 1",
        }
    ]
    assert batch.requests["flash_time_ns"].to_list() == [6, 0]
    assert batch.requests["op"].to_list() == ["read", "sync"]
    assert batch.requests["file"].to_list() == ["file.bin", None]
    assert batch.requests["offset_bytes"].to_list() == [4096, None]
    assert batch.flash.select("case_id", "kind", "task").row(0) == ("b", "program", TASK_NAMES[0])
    assert batch.failures[0].message == "no space left on device"


@pytest.mark.extension
def test_a_run_in_which_every_case_failed_is_an_empty_table() -> None:
    failure = SimpleNamespace(case_index=0, message="why", what=None)
    batch = batch_of(results(failures=[failure]), [program("a")])
    assert (batch.cases.height, batch.requests.height, batch.flash.height) == (0, 0, 0)


def test_a_check_that_fails_at_the_first_of_its_pages_gives_the_chip_back() -> None:
    """JFFS2's thread reads erased blocks 4 KiB a call, two pages of this chip.

    The program meets wrong bits in the first of them, and then reads a file itself.
    """
    board, kernel = load_board("omap3evm"), load_kernel("6.1")
    program = generate("faults", "jffs2", 9122).program(board, kernel)
    (batch,) = SimTarget().run([program])
    assert batch.cases.height + len(batch.failures) == 1


def ended(batches: list[Batch]) -> list[str]:
    return [case_id for batch in batches for case_id in batch.cases["case_id"]]


@pytest.mark.extension
def test_an_interrupt_ends_the_simulator_and_leaves_what_has_ended() -> None:
    """It was seen when the call returned: minutes later, and with every case of it lost."""
    usual = Stack(
        board=load_board("emulated"), kernel=load_kernel("6.1"), fs="jffs2", read_ahead_kib=0
    )
    prepare, head = "flashbed-ops 1\nprepared\n", "flashbed-ops 1\n"
    endless = head + "compute 1000000000000\n" * 100_000
    programs = [
        Program(case_id=name, stack=usual, prepare=prepare, body=body)
        for name, body in (("short", head + "compute 1\n"), ("endless", endless))
    ]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    batches: list[Batch] = []

    def run() -> None:
        given = SimTarget().run(programs)
        for batch in given:
            batches.append(batch)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert ended(batches) == ["short"]


@pytest.mark.extension
def test_a_bug_of_the_simulator_costs_its_case_alone() -> None:
    """A panic was a traceback of two runtimes, and every case of the call was lost."""
    from flashbed._sim import Recorded, run_cases

    board, kernel = load_board("emulated"), load_kernel("6.1")
    programs = [
        Program(
            case_id=fs,
            stack=Stack(board=board, kernel=kernel, fs=fs, read_ahead_kib=0),
            prepare="flashbed-ops 1\nprepared\n",
            body="flashbed-ops 1\n",
        )
        for fs in ("jffs2", "mtd")
    ]
    no_clock = json.loads(kernel.sim_json)
    no_clock["kernel"]["ticks_per_second"] = 0
    cases = cases_of(programs)
    given = run_cases(board.sim_json, json.dumps(no_clock), cases, Recorded(), 2)
    (failure,) = given.failures
    assert (failure.case_index, failure.kind, failure.what) == (0, "failed", None)
    words = failure.message
    assert words.startswith("a bug of flashbed's simulator, please report it with the experiment: ")
    assert "zero at sim/src/sched/ticks.rs:" in words
    assert "\n" not in words
    assert given.cases["case_index"] == column(1)


@pytest.mark.extension
def test_rows_of_a_long_case_are_the_same_in_files_as_in_memory() -> None:
    reads = 150_000
    body = "flashbed-ops 1\nopen 0 f rw,create\nwrite 0 0 8192 1 0\n" + "read 0 0 8192\n" * reads
    case = Program(
        case_id="long",
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel("6.1"), fs="jffs2", read_ahead_kib=0
        ),
        prepare="flashbed-ops 1\nprepared\n",
        body=body + "close 0\n",
    )
    for trace_flash in (False, True):
        (whole,) = SimTarget().run([case], RunOptions(trace_flash=trace_flash))
        long_rows = LongRows()
        options = RunOptions(trace_flash=trace_flash, long_rows=long_rows)
        (rest,) = SimTarget().run([case], options)
        begun = long_rows.rows("requests", "long")
        assert begun is not None
        assert 0 < rest.requests.height < reads / 2
        given = pl.concat([begun.collect(), conform(rest.requests, "requests")])
        assert given.equals(conform(whole.requests, "requests"))
        assert rest.cases.equals(whole.cases)
