"""The wear table has the erases of each block, and agrees with every other count of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.answers.analysis import wear_map, wear_summary
from flashbed.answers.lifetimes.subject import CAUSES
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.workloads.layout_files import prepared, written_file
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.runner import run_target
from flashbed.stack.conditions import State, Worn
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, RunOptions
from flashbed.targets.guest.job import groups_of, items_of, text_of
from flashbed.targets.guest.results import Measuring, batch_of
from flashbed.targets.guest.stream import CaseDone, Reader
from flashbed.targets.sim import SimTarget
from tests.support.fake import FakeTarget

HEADER = "flashbed-ops 1\n"
RING_BYTES = 4 << 20


def ring(case_id: str, fs: str, writes: int = 3000, *, record_wear: bool = True) -> Program:
    """A file of 4 MiB that is overwritten in order, again and again, and synced at every write."""
    offsets = range(0, RING_BYTES, 4096)
    prepare = [f"write 0 {offset} 4096 1 0" for offset in offsets]
    text = "\n".join(["open 0 ring rw,create", *prepare, "fsync 0", "close 0", "sync", "prepared"])
    again = "\n".join(f"write 0 {n * 4096 % RING_BYTES} 4096 2 0\nfsync 0" for n in range(writes))
    return Program(
        case_id=case_id,
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0
        ),
        prepare=f"{HEADER}{text}\n",
        body=f"{HEADER}open 0 ring rw\n{again}\nmark\n{again}\n",
        record_wear=record_wear,
    )


def erases_of(flash: pl.DataFrame) -> dict[int, int]:
    """Erases by block in a flash table."""
    erases = flash.filter(pl.col("kind") == "erase").group_by("block").len()
    return dict(erases.iter_rows())


def check_whole(batch: Batch) -> None:
    """A row each block of the partition, and sums that agree with `cases` and `flash`."""
    (case,) = batch.cases.to_dicts()
    wear = batch.wear
    assert wear["block"].to_list() == list(range(load_board("emulated").partition.blocks))
    assert case["erase_count_max"] == wear["erases"].max()
    assert case["erase_count_mean"] == pytest.approx(wear["erases"].mean(), abs=0.001)
    assert case["flash_erases"] == wear["erases_measured"].sum()
    measured = {block: n for block, n in wear.select("block", "erases_measured").rows() if n}
    assert measured == erases_of(batch.flash)
    assert set(wear["state"]) == {"good"}


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "ubifs", "yaffs2"])
def test_the_simulators_wear_is_what_its_flash_table_says(fs: str) -> None:
    program = ring("a", fs, 400)
    (batch,) = SimTarget().run([program], RunOptions(trace_flash=True))
    assert not batch.failures
    check_whole(batch)
    # Making the file system leaves the wear of a block as it was.
    assert (batch.wear["erases"] - batch.wear["erases_measured"]).min() == 0


@pytest.mark.extension
def test_a_ring_file_on_ubifs_wears_some_blocks_many_times() -> None:
    (batch,) = SimTarget().run([ring("a", "ubifs")], RunOptions(trace_flash=True))
    check_whole(batch)
    assert batch.wear["erases_measured"].sum() > 100


@pytest.mark.extension
def test_a_block_that_cannot_be_moved_yet_does_not_stop_the_writer() -> None:
    """The simulator tried for ever, for a try took no time.

    UBI's thread tries again while the writer has the LEB locked. The driver of this board keeps the
    page with the header, and its profile has no price for reading it from there.
    """
    board = load_board("apf27")
    state = State(worn=Worn(mean=50_000, spread=20_000))
    writes = "\n".join(
        f"write 0 {n * 37 % 1280 * 4096} 4096 {n} 0" + ("\nfsync 0" if n % 8 == 7 else "")
        for n in range(3000)
    )
    prepare = prepared([written_file("file.bin", 5 << 20, 4096, 1)], 10_000_000_000)
    program = Program(
        case_id="a",
        stack=Stack(
            board=board,
            kernel=load_kernel("2.6.29"),
            fs="ubifs",
            read_ahead_kib=0,
            erases=state.erases(board.partition.blocks),
        ),
        prepare=prepare,
        body=f"{HEADER}open 0 file.bin rw\nmark\n{writes}\n",
    )
    (batch,) = SimTarget().run([program])
    assert batch.cases["bytes_wear_levelling"].item() > 0


@pytest.mark.extension
def test_every_programmed_byte_has_one_cause() -> None:
    """UBI's headers are sub-pages of 512 bytes, what else is programmed here whole pages."""
    (batch,) = SimTarget().run([ring("a", "ubifs")], RunOptions(trace_flash=True))
    (case,) = batch.cases.to_dicts()
    causes = [case[f"bytes_{name}"] for name in CAUSES]
    assert case["bytes_data"] == case["bytes"] == 3000 * 4096
    assert case["bytes_collection"] == case["bytes_wear_levelling"] == 0
    headers, rest = divmod(case["flash_programs"] * 2048 - sum(causes), 2048 - 512)
    assert rest == 0
    # An erase-counter header for each block that was erased, a volume header for each in use.
    assert case["flash_erases"] <= headers <= 2 * case["flash_erases"] + 10


@pytest.mark.extension
def test_wear_costs_nothing_where_it_is_not_asked_for() -> None:
    programs = [ring("a", "jffs2", 40), ring("b", "jffs2", 40, record_wear=False)]
    batches = list(SimTarget().run(programs))
    wear = pl.concat([batch.wear for batch in batches], how="diagonal")
    assert wear["case_id"].unique().to_list() == ["a"]
    counts = pl.concat([batch.cases.drop("case_id") for batch in batches])
    assert counts.unique().height == 1


def test_the_job_asks_for_wear_of_the_case_and_of_its_group() -> None:
    items = items_of([ring("a", "jffs2", 2), ring("b", "ubifs", 2, record_wear=False)],
                     {"a": 1, "b": 2})  # fmt: skip
    text = text_of(groups_of(items), trace_flash=False, our_chip=True)
    assert "group g0 jffs2 wear\n" in text
    assert "\ncase c1 0 counts,wear\n" in text
    assert "group g1 ubifs\n" in text
    assert "\ncase c2 0 counts\n" in text


def stream(rows: str) -> CaseDone:
    text = f"flashbed-stream 1\ncase c1\nr 0 2 0 5 0 - - -\n{rows}c 0 0 2 0\nend c1\n"
    (done,) = [event for event in Reader().feed(text.encode()) if isinstance(event, CaseDone)]
    return done


def guest_batch(rows: str, body: str = "sync\n", *, record_flush: bool = False) -> Batch:
    program = Program(
        case_id="a",
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel("6.1"), fs="jffs2", read_ahead_kib=0
        ),
        prepare=f"{HEADER}prepared\n",
        body=f"{HEADER}{body}",
        record_wear=True,
        record_flush=record_flush,
    )
    (item,) = items_of([program], {"a": 1})
    return batch_of(
        item,
        stream(rows),
        space=None,
        kernel_release="6.1.0",
        measuring=Measuring(software_time=True),
    )


def test_a_driver_that_knows_its_blocks_fills_the_whole_table() -> None:
    """It names the chip's blocks; those of the partition are kept."""
    rows = "".join(f"w {n} {n % 3} {n % 2} {'bad' if n == 7 else 'good'}\n" for n in range(2048))
    batch = guest_batch(rows)
    assert batch.wear.height == 400
    assert batch.wear.row(7) == ("a", 7, 1, 1, "bad", None)
    assert batch.cases.select("erase_count_max", "erase_count_mean").row(0) == (2, 399 / 400)


def test_kprobes_know_the_erases_they_saw_and_nothing_of_before() -> None:
    batch = guest_batch("w 3 - 2 -\n")
    assert batch.wear.height == 400
    assert batch.wear.row(3) == ("a", 3, None, 2, None, None)
    assert batch.wear.row(4) == ("a", 4, None, 0, None, None)
    assert batch.cases.select("erase_count_max", "erase_count_mean").row(0) == (None, None)


def test_a_flush_is_asked_for_where_a_case_writes_and_its_rows_are_columns() -> None:
    writing, reading = ring("a", "jffs2", 2), replace(ring("b", "ubifs", 0), body=f"{HEADER}sync\n")
    items = items_of([replace(one, record_flush=True) for one in (writing, reading)],
                     {"a": 1, "b": 2})  # fmt: skip
    text = text_of(groups_of(items), trace_flash=False, our_chip=True)
    assert "\ncase c1 0 counts,wear,flush\n" in text
    assert "\ncase c2 0 counts,wear\n" in text

    columns = ("flush_reads", "flush_programs", "flush_erases")
    batch = guest_batch("w 3 5 2 good\nb 3 1\nl 7 9 1 0\n", "mkdir d\n", record_flush=True)
    assert batch.cases.select(columns).row(0) == (7, 9, 1)
    assert batch.wear.filter(pl.col("erases_flush") > 0)["block"].to_list() == [3]
    lost = guest_batch("b 3 1\nl 7 9 1 4\n", "mkdir d\n", record_flush=True)
    assert lost.cases.select(columns).row(0) == (None, None, None)
    assert lost.wear["erases_flush"].null_count() == 400
    read_only = guest_batch("", record_flush=True)
    assert read_only.cases.select(columns).row(0) == (0, 0, 0)


def test_a_run_keeps_wear_where_command_or_experiment_ask_for_it(small: Path) -> None:
    def run(name: str, *, record_wear: bool) -> Path:
        experiment = load_experiment("one")
        directory = RunDirectory.create(Path(name), experiment.id)
        run_target(
            experiment, plan(experiment), FakeTarget("sim"), directory,
            trace_flash=False, record_wear=record_wear, progress=lambda *_: None,
        )  # fmt: skip
        return directory.path

    assert not (run("without", record_wear=False) / "wear.parquet").exists()
    wear = read_table(run("asked", record_wear=True), "wear")
    counts = ["erases", "erases_measured", "state", "erases_flush"]
    assert wear.columns == ["case_id", "target", "block", *counts]
    file = small / "experiments" / "small" / "one.toml"
    file.write_text(file.read_text().replace("[experiment]\n", '[experiment]\ntrace = ["wear"]\n'))
    assert read_table(run("experiment", record_wear=False), "wear").equals(wear)


def wear_rows(blocks: int, first: int = 0) -> pl.DataFrame:
    """Block n of a case has had n erases, a tenth of which while measured; the last one is bad."""
    return pl.DataFrame(
        {
            "case_id": ["a"] * blocks,
            "target": ["sim"] * blocks,
            "block": range(first, first + blocks),
            "erases": range(blocks),
            "erases_measured": [n // 10 for n in range(blocks)],
            "state": ["good"] * (blocks - 1) + ["bad"],
        }
    )


def test_a_map_has_a_cell_a_block_in_rows_of_32() -> None:
    cells = wear_map(wear_rows(100, first=8))
    assert cells.height == 100
    shown = cells.select("column", "row", "blocks", "erases", "measured", "state")
    assert shown.row(0) == (0, 8, "8", 0, 0, "good")
    assert shown.row(33) == (1, 40, "41", 33, 3, "good")
    assert shown.row(99) == (3, 104, "107", 99, 9, "bad")


def test_blocks_that_no_screen_tells_apart_share_a_cell_with_the_worst_of_them() -> None:
    cells = wear_map(wear_rows(5000))
    assert cells.height == 1667
    shown = cells.select("column", "row", "blocks", "erases", "state")
    assert shown.row(0) == (0, 0, "0 to 2", 2, "good")
    assert shown.row(64) == (0, 192, "192 to 194", 194, "good")
    assert shown.row(1666) == (2, 4992, "4998 to 4999", 4999, "bad")


def test_a_map_of_erases_that_were_only_seen_while_measuring() -> None:
    unknown = wear_rows(20).with_columns(pl.lit(None, pl.Int64).alias("erases"))
    assert wear_map(unknown)["erases"].to_list() == [n // 10 for n in range(20)]


def test_bad_blocks_are_no_part_of_the_sums() -> None:
    axes = {"case_id": "a", "target": "sim", "board": "b", "kernel": "6.1", "fs": "jffs2",
            "read_ahead_kib": 0, "window": "forced", "pattern": "random", "requests": 8,
            "seed": 1}  # fmt: skip
    cases = pl.DataFrame({name: [value] for name, value in axes.items()})
    (line,) = wear_summary(wear_rows(101), cases, {"b": 100_000}).to_dicts()
    assert (line["blocks"], line["erased"], line["worst"], line["mean"]) == (100, 90, 99, 49.5)
    assert line["worst_pct"] == pytest.approx(0.099)
    (line,) = wear_summary(wear_rows(101), cases, {"b": None}).to_dicts()
    assert line["worst_pct"] is None
