"""The omap3evm's own flash operations against the simulator's (evidence/board-traces.md).

The traces have no licence and are not in the repository: FLASHBED_BOARD_TRACES names their folder,
or they lie in ../shared/data next to the checkout.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.sim import SimTarget
from tests.support.replay.board_traces import (
    FlashmonLog,
    counts_by_run,
    insert_series,
    read_flashmon,
    select_program,
)
from tests.support.replay.inserts import PAGE_BYTES, transactions
from tests.support.replay.strace import DATABASE, Call, read_strace

NEXT_TO_CHECKOUT = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("FLASHBED_BOARD_TRACES", NEXT_TO_CHECKOUT)) / "omap3evm-sqlite"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the board's traces are not here")

RECORD_BYTES = {"128": 682, "4096": 20_522}
"""Five fields and 42 bytes: with 34 to 50 SQLite writes the pages of insert-4096's strace in its
order, with fewer or more it does not. insert-128's is the same with any."""
RUNS = (1, 3, 5)
PAGES_OF_ERASED_BLOCK = 64
"""JFFS2 reads each page of a block it has erased."""


def simulated(program: Program) -> Batch:
    (batch,) = SimTarget().run([program], RunOptions(trace_flash=True))
    assert not batch.failures
    return batch


def strace(run: str) -> list[Call]:
    return read_strace(DATA / f"{run}.syscalls.csv")


def flashmon(run: str) -> FlashmonLog:
    return read_flashmon(DATA / f"{run}.flashmon.csv")


def total(counts: Counter[tuple[str, str]], kind: str) -> int:
    return sum(count for (its, _), count in counts.items() if its == kind)


@dataclass(frozen=True)
class Inserts:
    """A series of INSERT runs, on the simulator and as Flashmon logged it."""

    logs: dict[int, FlashmonLog]
    batch: Batch
    simulated: list[Counter[tuple[str, str]]]

    def of(self, run: int, kind: str) -> tuple[int, int]:
        """Operations of a kind in a run: simulated, on the board."""
        return total(self.simulated[run - 1], kind), self.logs[run].total(kind)


@cache
def inserts(size: str) -> Inserts:
    logs = {run: flashmon(f"insert-{size}-run{run}") for run in RUNS}
    series = insert_series(RECORD_BYTES[size], logs, strace(f"insert-{size}-run1"))
    batch = simulated(series.program)
    return Inserts(logs, batch, counts_by_run(batch, series))


@pytest.mark.parametrize("size", RECORD_BYTES)
def test_sqlite_writes_the_pages_of_the_strace_in_its_order(size: str) -> None:
    traced = [
        call.offset_bytes // PAGE_BYTES
        for call in strace(f"insert-{size}-run1")
        if (call.name, call.file) == ("write", DATABASE)
    ]
    made = transactions(RECORD_BYTES[size], 100)
    assert [page.number for insert in made for page in insert.written] == traced


@pytest.mark.parametrize("size", RECORD_BYTES)
def test_sync_supers_comes_when_it_came_on_the_board(size: str) -> None:
    series = inserts(size)
    background = series.batch.flash.filter(
        (pl.col("task") == "background") & (pl.col("kind") == "program")
    )
    rounds = Counter(round(time_ns / 1e8) % 60 for time_ns in background["start_ns"])
    assert rounds.most_common(1)[0][0] == 0  # the machine's clock is at a multiple of 6 s at 0


@pytest.mark.parametrize("size", RECORD_BYTES)
@pytest.mark.parametrize("run", RUNS)
def test_an_insert_run_reads_and_programs_as_often_as_on_the_board(size: str, run: int) -> None:
    programs, wanted = inserts(size).of(run, "program")
    assert programs == pytest.approx(wanted, rel=0.05)
    # Which run the erase of a block falls in hangs on where the run before ended.
    erases, wanted_erases = inserts(size).of(run, "erase")
    assert erases == pytest.approx(wanted_erases, abs=1)
    reads, wanted = inserts(size).of(run, "read")
    moved = PAGES_OF_ERASED_BLOCK * (erases - wanted_erases)
    assert reads - moved == pytest.approx(wanted, rel=0.05)


@pytest.mark.parametrize("size", RECORD_BYTES)
@pytest.mark.parametrize("kind", ["read", "program", "erase"])
def test_the_insert_runs_of_a_series_together_are_as_on_the_board(size: str, kind: str) -> None:
    pairs = [inserts(size).of(run, kind) for run in RUNS]
    simulated_sum, board_sum = (sum(column) for column in zip(*pairs, strict=True))
    assert simulated_sum == pytest.approx(board_sum, rel=0.05)


def select(size: str, run: int, *, evicted: bool = False) -> tuple[int, int]:
    """Flash reads of a SELECT run, and pages read into the cache."""
    calls = strace(f"select-{size}-run{run}")
    inserted = strace(f"insert-{size}-run1")
    batch = simulated(select_program(RECORD_BYTES[size], calls, inserted, evicted=evicted))
    return batch.flash.filter(pl.col("kind") == "read").height, batch.cases["cache_adds"].item()


@pytest.mark.parametrize(("size", "pages"), [("128", 34), ("4096", 513)])
def test_selects_fill_as_many_pages_as_the_board_called_readpage(size: str, pages: int) -> None:
    assert select(size, 3)[1] == pages


@pytest.mark.parametrize("run", [1, 3])
def test_long_selects_read_as_often_as_the_board(run: int) -> None:
    reads, _ = select("4096", run)
    assert reads == pytest.approx(flashmon(f"select-4096-run{run}").total("read"), rel=0.02)


def test_a_select_whose_inode_was_evicted_reads_every_node_first() -> None:
    board = [flashmon(f"select-128-run{run}").total("read") for run in (1, 3)]
    (first, _), (later, _) = select("128", 1, evicted=True), select("128", 3)
    assert board[0] - board[1] == 27
    assert first - later == pytest.approx(27, abs=1)
