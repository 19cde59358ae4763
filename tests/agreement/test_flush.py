"""What a measured part leaves in memory: the same on the simulator and on real kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Batch, Program, Target
from flashbed.targets.emulator.emulator_target import EmulatorTarget
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

HEADER = "flashbed-ops 2\n"
PREPARE = f"{HEADER}open 0 old rw,create\nwrite 0 0 262144 1 0\nfsync 0\nclose 0\nsync\nprepared\n"
BODIES = {
    "unsynced": "open 0 new rw,create\nwrite 0 0 100000 2 30\nclose 0\n",
    "overwritten": "open 0 old rw\nmark\n"
    + "".join(f"write 0 {n * 4096} 4096 {n} 50\n" for n in range(64))
    + "write 0 0 4096 9 0\n",
    "synced": "open 0 old rw\nmark\nwrite 0 4096 4096 3 0\nfsync 0\n",
    "names": "mkdir d\nopen 0 d/a rw,create\nclose 0\nunlink old\n",
    "copied": "open 0 old ro\nopen 1 new rw,create\nmark\ncopy 0 100 1 0 200000\nsend 1 0 5000\n",
    "stored": "open 0 old rw\nmark\nmmap 1 0 0 262144 rw\nstore 1 5000 9000 4 0\n",
    "reading": "drop_caches\nopen 0 old ro\nmark\nread 0 0 65536\n",
}
FLUSH = ("flush_reads", "flush_programs", "flush_erases")
COUNTS = ("flash_reads", "flash_programs", "flash_erases", "bytes", "bytes_written")


def program(name: str, fs: str) -> Program:
    body = f"{HEADER}{BODIES[name]}"
    return Program(
        case_id=name,
        stack=Stack(
            board=load_board("emulated"), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0
        ),
        prepare=PREPARE,
        body=body,
        record_wear=True,
        record_flush=True,
    )


def measured(target: Target, programs: list[Program]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables `cases` and `wear`."""
    batches: list[Batch] = list(target.run(programs))
    assert not [failure for batch in batches for failure in batch.failures]
    cases = pl.concat([batch.cases for batch in batches], how="diagonal").sort("case_id")
    wear = pl.concat([batch.wear for batch in batches], how="diagonal").sort("case_id", "block")
    return cases, wear


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
def test_what_was_written_is_programmed_in_the_measured_part_or_in_the_flush(fs: str) -> None:
    """Written and not synced it cost nothing: UBIFS programs no page before the flusher does."""
    programs = [program(name, fs) for name in BODIES]
    cases, wear = measured(SimTarget(), programs)
    by_name = {case["case_id"]: case for case in cases.to_dicts()}
    for name in ("unsynced", "overwritten"):
        case = by_name[name]
        assert case["bytes_data"] + case["flush_bytes_data"] > 0.4 * case["bytes_written"], name
    if fs == "ubifs":
        assert by_name["unsynced"]["bytes_data"] == 0
        assert by_name["overwritten"]["flash_programs"] == 0
        assert by_name["synced"]["flush_bytes_data"] == 0
    assert [by_name["reading"][name] for name in FLUSH] == [0, 0, 0]
    assert (by_name["copied"]["bytes"], by_name["copied"]["bytes_written"]) == (205_000, 200_000)
    stored = 0 if fs == "jffs2" else 3 * 4096
    """9,000 bytes in pages that became dirty. JFFS2 maps no file that is open for writing."""
    assert (by_name["stored"]["bytes"], by_name["stored"]["bytes_written"]) == (stored, stored)
    page_bytes = load_board("emulated").chip.page_bytes
    for case in cases.to_dicts():
        flushed = sum(case[f"flush_bytes_{cause}"] for cause in (
            "data", "metadata", "padding", "collection", "wear_levelling"))  # fmt: skip
        assert flushed <= case["flush_programs"] * page_bytes
        rows = wear.filter(case_id=case["case_id"])
        assert rows["erases_flush"].sum() == case["flush_erases"]
        assert rows["erases_measured"].sum() == case["flash_erases"]
    # What the measured part did is what it did without.
    plain, _ = measured(SimTarget(), [replace(item, record_flush=False) for item in programs])
    others = [name for name in plain.columns if "flush" not in name and name != "left_bytes"]
    assert plain.select(others).equals(cases.select(others))
    assert plain.select(FLUSH).null_count().row(0) == (len(BODIES),) * 3


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
def test_a_real_kernel_flushes_what_the_simulator_says(tmp_path: Path, fs: str) -> None:
    programs = [program(name, fs) for name in BODIES]
    alone = [item.in_user_mode for item in programs]
    real, real_wear = measured(UmlTarget(work_dir=tmp_path), programs)
    simulated, wear = measured(SimTarget(), alone)
    columns = ("case_id", *COUNTS, *FLUSH)
    assert simulated.select(columns).to_dicts() == real.select(columns).to_dicts()
    of_wear = ("case_id", "block", "erases", "erases_measured", "erases_flush")
    assert wear.select(of_wear).equals(real_wear.select(of_wear))
    assert real["flush_programs"].sum() > 0
    assert real["elapsed_ns"].null_count() == 0


@pytest.mark.emulator
@pytest.mark.extension
def test_the_emulated_board_flushes_what_the_simulator_says(tmp_path: Path) -> None:
    programs = [program(name, "ubifs") for name in BODIES]
    real, real_wear = measured(EmulatorTarget(work_dir=tmp_path), programs)
    simulated, wear = measured(SimTarget(), programs)
    columns = ("case_id", *COUNTS, *FLUSH)
    assert simulated.select(columns).to_dicts() == real.select(columns).to_dicts()
    assert wear["erases_flush"].equals(real_wear["erases_flush"])
