"""The omap3evm's own flash operations against the simulator's (docs/board-traces.md).

The traces have no licence and are not in the repository: FLASHBED_BOARD_TRACES names their folder,
or they lie in ../shared/data next to the checkout.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from flashbed.replay.board import FlashmonLog, insert_case, read_flashmon, select_case
from flashbed.replay.strace import Content, read_strace
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget

NEXT_TO_CHECKOUT = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("FLASHBED_BOARD_TRACES", NEXT_TO_CHECKOUT)) / "omap3evm-sqlite"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the board's traces are not here")

CONTENT = {"128": Content(records=20), "4096": Content(records=26)}
"""Fitted to the programs of insert-128 run 3 and insert-4096 run 1 alone."""
INSERTS = [("128", 3), ("128", 5), ("4096", 1), ("4096", 3), ("4096", 5)]


def simulated(program: Program) -> tuple[Counter[str], int]:
    """Flash operations by kind, and the pages added to the page cache."""
    (batch,) = SimTarget().run([program], trace_flash=True, progress=lambda *_: None)
    assert not batch.failures
    return Counter(batch.flash["kind"].to_list()), batch.cases["cache_adds"].item()


def insert(size: str, run: int) -> tuple[Counter[str], FlashmonLog]:
    name = f"insert-{size}-run{run}"
    log = read_flashmon(DATA / f"{name}.flashmon.csv")
    calls = read_strace(DATA / f"{name}.syscalls.csv")
    counts, _ = simulated(insert_case(name, calls, log.duration_ns, CONTENT[size], run))
    return counts, log


@pytest.mark.parametrize(("size", "run"), INSERTS)
def test_inserts_read_and_program_as_often_as_the_board(size: str, run: int) -> None:
    counts, log = insert(size, run)
    assert counts["program"] == pytest.approx(log.total("program"), rel=0.05)
    assert counts["read"] == pytest.approx(log.total("read"), rel=0.05)
    # One erase is 7 to 9 % of a run's: which run it falls in hangs on where the run before ended.
    assert counts["erase"] == pytest.approx(log.total("erase"), abs=1)


@pytest.mark.parametrize(("size", "run"), [("4096", 1), ("4096", 3)])
def test_long_selects_read_as_often_as_the_board(size: str, run: int) -> None:
    reads, total, _ = select(size, run)
    assert reads == pytest.approx(total, rel=0.02)


@pytest.mark.parametrize(("size", "pages"), [("128", 34), ("4096", 513)])
def test_selects_fill_as_many_pages_as_the_board_called_readpage(size: str, pages: int) -> None:
    assert select(size, 3)[2] == pages


def select(size: str, run: int) -> tuple[int, int, int]:
    """Flash reads simulated and on the board, and pages read into the cache."""
    name = f"select-{size}-run{run}"
    log = read_flashmon(DATA / f"{name}.flashmon.csv")
    calls = read_strace(DATA / f"{name}.syscalls.csv")
    inserts = read_strace(DATA / f"insert-{size}-run1.syscalls.csv")
    case = select_case(name, calls, log.duration_ns, CONTENT[size], inserts)
    counts, pages = simulated(case)
    return counts["read"], log.total("read"), pages
