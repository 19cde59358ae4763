"""What SQLite asks for costs the simulated flash what it costs a real kernel's."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from flashbed.answers.analysis.statements import statements
from flashbed.plan.case import Case
from flashbed.plan.database import Database
from flashbed.plan.workloads.sqlite import operations
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Program

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(300)]

CASES = [
    (fs, pattern, journal)
    for fs in ("jffs2", "ubifs")
    for pattern in ("insert", "select", "select-random", "join", "update")
    for journal in (("delete", "wal") if pattern in ("insert", "update") else ("delete",))
]
PAUSES_S = (0.5, 1, 3, 10, 15)
"""Each request commits by itself, and so long passes to the next: the flusher writes.

One interrupt may wake the program and a thread. With 5 s one UBIFS case differs by a page write.
"""
CASES += [
    (fs, f"{pattern}-{pause_s}s", journal)
    for fs in ("jffs2", "ubifs")
    for pattern in ("insert", "update")
    for journal in ("delete", "wal")
    for pause_s in PAUSES_S
]
AT_A_RATE = "rated-insert"
"""A transaction begins every seven seconds, whatever the one before it took."""
CASES += [(fs, AT_A_RATE, journal) for fs in ("jffs2", "ubifs") for journal in ("delete", "wal")]


def program(fs: str, pattern: str, journal: Any) -> Program:
    """On a board whose software takes no time, as in user mode."""
    rated = pattern == AT_A_RATE
    paced = pattern.endswith("s")
    pattern, _, pause_s = pattern.removesuffix("s").partition("-") if paced else (pattern, "", "0")
    database = Database(
        records=400, journal=journal, autocommit=paced,
        synchronous="normal" if paced or rated else "full",
        transactions_per_s=1 / 7 if rated else None, contents="letters",
    )  # fmt: skip
    case = Case(
        experiment="sqlite/x", board="emulated", kernel="6.1", fs=fs, read_ahead_kib=128,
        pattern="insert" if rated else pattern, requests=100 if paced else 200,
        request_bytes=600, file_bytes=0,
        seed=1, database=database, pause_ns=round(float(pause_s) * 1e9),
    )  # fmt: skip
    prepare, body = operations(case, 10_000_000_000)
    board, kernel = load_board(case.board), load_kernel(case.kernel)
    program = Program(
        case_id=case.case_id,
        stack=Stack(board=board, kernel=kernel, fs=fs, read_ahead_kib=case.forced_kib),
        prepare=prepare,
        body=body,
    )
    return program.in_user_mode


Ran = dict[str, tuple[pl.DataFrame, pl.DataFrame]]


@pytest.fixture(scope="module")
def both() -> Ran:
    """Target -> its cases and requests."""
    programs = [program(*case) for case in CASES]
    ran: Ran = {}
    for target in ("sim", "uml"):
        # A boot each: JFFS2's counters of the kernel outlive a case.
        alone = load_target(target)
        batches = [batch for program in programs for batch in alone.run([program])]
        assert not [failure for batch in batches for failure in batch.failures]
        cases = pl.concat(batch.cases for batch in batches)
        requests = pl.concat(batch.requests for batch in batches)
        ran[target] = cases, requests.with_columns(pl.lit(target).alias("target"))
    return ran


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_every_call_answers_the_same_and_the_flash_does_as_much(
    both: Ran, case: tuple[str, str, str]
) -> None:
    """JFFS2's thread may take the processor in another call (docs/models/jffs2.md)."""
    name = program(*case).case_id
    counts = ["flash_reads", "flash_programs", "flash_erases", "flash_time_ns"]
    (sim, asked), (uml, answered) = (
        tuple(table.filter(pl.col("case_id") == name) for table in both[target])
        for target in ("sim", "uml")
    )
    assert asked.height > 200
    calls = ["seq", "op", "result"]
    assert asked.sort("seq").select(calls).rows() == answered.sort("seq").select(calls).rows()
    assert sim.select(counts).rows() == uml.select(counts).rows()


@pytest.mark.parametrize("target", ["sim", "uml"])
def test_the_46th_and_the_110th_select_read_ahead(both: Ran, target: str) -> None:
    """SQLite paper, Table III: records of 600 B on JFFS2, 42 ms at queries 46 and 110."""
    name = program("jffs2", "select", "delete").case_id
    found = statements(both[target][1].filter(pl.col("case_id") == name))
    chip = dict(found.select("statement", "flash_time_ns").rows())
    assert {46, 110} <= {number for number, time in chip.items() if time > 20_000_000}
    near = [*range(43, 46), *range(47, 53), 109, 111, 112]  # what the table shows beside them
    assert all(chip[number] == 0 for number in near)
