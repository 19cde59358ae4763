"""JFFS2's space on the simulator: a small partition is collected, worn evenly enough, and full."""

from __future__ import annotations

import polars as pl

from flashbed.program.operations import HEADER
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.sim import SimTarget

BLOCKS = 24
BLOCK_PAGES = 64


def ran(*lines: str) -> Batch:
    board, kernel = load_board("emulated-small"), load_kernel("6.1")
    body = "\n".join([HEADER, *lines]) + "\n"
    prepare = f"{HEADER}\nprepared\n"
    program = Program(
        case_id="a",
        stack=Stack(board=board, kernel=kernel, fs="jffs2", read_ahead_kib=0),
        prepare=prepare,
        body=body,
    )
    (batch,) = SimTarget().run([program], RunOptions(trace_flash=True))
    assert not batch.failures
    return batch


def test_what_is_overwritten_is_erased_and_written_again() -> None:
    rounds = [f"write 0 0 300000 {seed} 0" for seed in range(1, 41)]
    batch = ran("open 0 a rw,create", "mark", *rounds, "fsync 0")
    row = batch.cases.row(0, named=True)
    assert row["flash_erases"] > 2 * BLOCKS
    # Each write is 150 pages of data and their headers; hardly anything good is ever collected.
    assert 40 * 150 < row["flash_programs"] - row["flash_erases"] < 40 * 160
    assert row["erase_count_max"] <= 4 * row["erase_count_mean"]


def test_an_erased_block_is_read_whole_before_it_is_marked() -> None:
    rounds = [f"write 0 0 300000 {seed} 0" for seed in range(1, 21)]
    flash = ran("open 0 a rw,create", "mark", *rounds, "pause 60000000000").flash
    marks = flash.filter((pl.col("kind") == "program") & (pl.col("offset_bytes") >= 2048))
    assert marks.height > 0
    for seq, page in marks.select("seq", "page").iter_rows():
        before = flash.filter(pl.col("seq") < seq)
        erased = before.filter((pl.col("kind") == "erase") & (pl.col("page") == page))
        last = erased["seq"].max()
        read = before.filter(
            (pl.col("seq") > last) & (pl.col("kind") == "read")
            & pl.col("page").is_between(page, page + BLOCK_PAGES - 1)
        )  # fmt: skip
        assert sorted(read["page"]) == list(range(page, page + BLOCK_PAGES))


def test_a_full_partition_says_so_and_stays_full() -> None:
    writes = [f"write 0 {at} 100000 1 0" for at in range(0, 4_000_000, 100_000)]
    results = ran("open 0 a rw,create", "mark", *writes).requests["result"].to_list()
    assert results[0] == 100_000
    assert results[-1] == -28
    written = sum(result for result in results if result > 0)
    assert 0.7 * BLOCKS * 131_072 < written < 0.9 * BLOCKS * 131_072
