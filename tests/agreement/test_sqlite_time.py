"""A statement takes the emulated board as long as its recorded calls and its work are said to.

On YAFFS2, which compresses nothing, so that what is written does not differ. The work's prices were
fitted to other statements on other tables (plan/sqlite/work.py).
"""

from __future__ import annotations

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
from flashbed.targets.guest import yaffs2
from flashbed.targets.guest.agent import path_of

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not path_of("sql-armv7").is_file(),
        reason="the agent with SQLite is not built: make sql-agents",
    ),
    pytest.mark.skipif(not yaffs2.core_found().found, reason="YAFFS2 is not there"),
]

PATTERNS = ("insert", "select", "update", "join")
REQUESTS = 120


def program(pattern: str, executed: str) -> Program:
    database = Database.model_validate(
        {"records": 150, "executed": executed, "contents": "letters"}
    )
    case = Case(
        experiment="sqlite/x", board="emulated", kernel="6.1", fs="yaffs2", read_ahead_kib=128,
        pattern=pattern, requests=REQUESTS, request_bytes=450, file_bytes=0, seed=1,
        database=database,
    )  # fmt: skip
    prepare, body = operations(case, 10_000_000_000)
    board, kernel = load_board(case.board), load_kernel(case.kernel)
    return Program(
        case_id=f"{pattern}-{executed}",
        stack=Stack(board=board, kernel=kernel, fs=case.fs, read_ahead_kib=128),
        prepare=prepare,
        body=body,
    )


@pytest.fixture(scope="module")
def took() -> dict[str, list[int]]:
    """Case -> what its statements took."""
    programs = [program(pattern, where) for where in ("host", "board") for pattern in PATTERNS]
    run = load_target("emulator").run(programs)
    batches = list(run)
    assert not [failure for batch in batches for failure in batch.failures]
    rows = pl.concat(batch.requests for batch in batches)
    found = statements(rows.with_columns(pl.lit("emulator").alias("target")))
    return {p.case_id: found.filter(case_id=p.case_id)["latency_ns"].to_list() for p in programs}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_kind_of_request_takes_as_long_as_on_the_board(
    took: dict[str, list[int]], pattern: str
) -> None:
    """BEGIN with the opening, the requests in the mean, END: each within a tenth."""
    host, board = took[f"{pattern}-host"], took[f"{pattern}-board"]
    assert len(host) == len(board) == (3 if pattern == "join" else REQUESTS + 2)
    assert host[0] == pytest.approx(board[0], rel=0.1)
    assert sum(host[1:-1]) == pytest.approx(sum(board[1:-1]), rel=0.1)
    few_us = 10_000  # END of what has read only
    assert host[-1] == pytest.approx(board[-1], rel=0.1, abs=few_us)
