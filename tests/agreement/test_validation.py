"""The suites: reading and writing as no experiment does, simulated and on real kernels."""

from __future__ import annotations

import polars as pl
import pytest

from flashbed.bench.validation import compare, kinds, programs, summary
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets import load_target
from flashbed.targets.base import Program, RunOptions

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.extension,
    pytest.mark.sampled,
    pytest.mark.timeout(600),
]

COUNTS = ("flash_reads", "flash_programs", "flash_erases")


def measured(target: str, suite: list[Program], *, trace_flash: bool = False) -> list[pl.DataFrame]:
    """Its cases and its flash operations."""
    run = load_target(target).run(suite, RunOptions(trace_flash=trace_flash))
    batches = list(run)
    assert [failure for batch in batches for failure in batch.failures] == []
    tables = ([batch.cases for batch in batches], [batch.flash for batch in batches])
    return [pl.concat(frames, how="diagonal") for frames in tables]


@pytest.fixture(
    scope="module", params=["emulated", pytest.param("emulated-4k", marks=pytest.mark.long)]
)
def suite(request: pytest.FixtureRequest) -> list[Program]:
    """The suite of reads; every third of it without `--long`."""
    every = programs("reads", load_board(request.param), load_kernel("6.1"))
    assert len(every) == 234
    return every if request.config.getoption("--long") else every[::3]


@pytest.fixture(scope="module")
def emulated(suite: list[Program]) -> pl.DataFrame:
    return measured("emulator", suite)[0]


def test_counts_are_exact_in_nearly_all_cases_and_times_close(
    suite: list[Program], emulated: pl.DataFrame
) -> None:
    told = summary(compare(measured("sim", suite)[0], emulated))
    assert told["cases"] == len(suite)
    for name in COUNTS:
        assert told[name]["exact_share"] >= 0.9
        assert told[name]["worst_error_pct"] <= 2
    assert told["time"]["mean_error_pct"] <= 5
    assert told["time"]["worst_error_pct"] <= 10


@pytest.mark.uml
def test_user_mode_linux_and_the_emulated_board_do_the_same_to_the_chip(
    suite: list[Program], emulated: pl.DataFrame
) -> None:
    columns = ("case_id", *COUNTS, "flash_time_ns")
    user_mode = measured("uml", suite)[0]
    assert (
        user_mode.select(columns).sort("case_id").equals(emulated.select(columns).sort("case_id"))
    )


@pytest.mark.long
def test_our_driver_and_nandsim_are_asked_the_same() -> None:
    """Ours by its log, nandsim by kprobes: kind, place and bytes of every operation, in order."""
    wanted = ("ordered-4096-ra128", "scattered-4096-ra0", "again-ra0", "opening-c-ra0")
    whole = programs("reads", load_board("emulated"), load_kernel("6.1"))
    some = [
        program
        for program in whole
        if program.case_id.endswith(wanted) and program.stack.fs in ("jffs2", "ubifs")
    ]
    assert len(some) == 2 * len(wanted)
    columns = ["case_id", "seq", "kind", "block", "page", "offset_bytes", "length_bytes", "task"]
    (ours, log), (theirs, probes) = (
        measured(name, some, trace_flash=True) for name in ("emulator", "emulator-nandsim")
    )
    assert log.select(columns).equals(probes.select(columns))
    # nandsim's own code is on the emulated CPU as well: some 13 us a command.
    commands = ours["flash_reads"]
    more_ns = (theirs["time_ns"] - ours["time_ns"]) / commands
    assert more_ns.is_between(10_000, 16_000).all(), more_ns


BUSY_ELSEWISE = {"emulated": set(), "emulated-4k": {"validate-yaffs2-remount-and-write"}}
"""Cases of equal counts whose chip is busy for another time (evidence/validation.md)."""


@pytest.mark.uml
@pytest.mark.parametrize("board_name", ["emulated", "emulated-4k"])
def test_what_writes_do_to_the_chip_is_exact(board_name: str) -> None:
    """On user-mode Linux code takes no time, so on the simulator none does either.

    Cases on a full partition take long; `flashbed validate` has them.
    """
    board = load_board(board_name)
    kind_of = kinds("writes", board)
    every = programs("writes", board, load_kernel("6.1"))
    chosen = [program for program in every if not kind_of[program.case_id].endswith("full")]
    assert len(chosen) == 174
    alike = [program.in_user_mode for program in chosen]
    compared = compare(measured("sim", alike)[0], measured("uml", chosen)[0])
    for name in COUNTS:
        assert summary(compared)[name]["exact_share"] == 1
    off = compared.filter(compared["flash_time"] != compared["flash_time_real"])["case_id"]
    assert set(off) == BUSY_ELSEWISE[board_name]
