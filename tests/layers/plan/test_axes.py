"""Axes: what one is written as, what becomes of it, and that the documents name all of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.answers.lifetimes.observed import cases_of
from flashbed.base.errors import InputError
from flashbed.plan.case import AXES, Case
from flashbed.plan.experiment import ExperimentError, load_experiment, read_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.report.collect import collect, figure_tables
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.programs import programs_of
from flashbed.running.runner import run_target
from flashbed.stack.profiles import load_board
from flashbed.targets import load_target
from flashbed.targets.sim import SimTarget
from tests.support import PROJECT

DOCS = PROJECT / "docs"
ONE = ("requests=8", "pattern=sequential", "read_ahead_kib=0", "seed=1")


def cases(*settings: str) -> list[Case]:
    return [item.case for item in plan(load_experiment("one"), parse_settings(settings))]


def measured(folder: Path, *settings: str, wear: bool = False) -> pl.DataFrame:
    experiment = load_experiment("one")
    directory = RunDirectory.create(folder, experiment.id)
    outcome = run_target(
        experiment, plan(experiment, parse_settings(settings)), load_target("sim"), directory,
        trace_flash=False, progress=lambda *_: None, record_wear=wear,
    )  # fmt: skip
    assert outcome.failures == ()
    return read_table(folder, "cases")


def test_the_documents_have_a_row_for_every_axis_and_name_its_column() -> None:
    rows = (DOCS / "reference/experiment-file.md").read_text()
    for axis, about in AXES.items():
        assert f"| `{axis}` | {about.means} |" in rows, axis


def test_a_number_of_the_chip_is_an_axis(small: Path, tmp_path: Path) -> None:
    settings = (*ONE, "fs=jffs2", "kernel=6.1", "board=emulated")
    asked = cases(*settings, "chip.read_array_ns=25000,60000")
    assert [str(case.chip) for case in asked] == ["read_array_ns=25000", "read_array_ns=60000"]
    (plain,) = cases(*settings)
    assert asked[1].case_id == f"{plain.case_id}-chip.read_array_ns=60000"
    assert cases(*settings, "chip=read_array_ns=60000") == asked[1:]

    found = measured(tmp_path / "run", *settings, "chip.read_array_ns=25000,60000")
    fast, slow = found.to_dicts()
    assert fast["flash_reads"] == slow["flash_reads"] > 0
    assert slow["flash_time_ns"] - fast["flash_time_ns"] == slow["flash_reads"] * 35_000
    assert fast["board_sha256"] != slow["board_sha256"]


def test_several_keys_are_multiplied_and_what_cannot_be_is_refused_by_file(small: Path) -> None:
    settings = (*ONE, "fs=jffs2", "kernel=6.1", "board=emulated")
    both = cases(*settings, "chip.read_array_ns=1,2", "chip.program_array_ns=3,4")
    assert len(both) == len({str(case.chip) for case in both}) == 4
    (odd,) = cases(*settings, "chip.page_bytes=3000")
    with pytest.raises(InputError, match=r"emulated\.toml: chip: page_bytes = 3000 is not a power"):
        programs_of(load_experiment("one"), [odd])
    (past,) = cases(*settings, "partition.blocks=60000")
    with pytest.raises(InputError, match=r"partition\.blocks: the partition ends at block"):
        programs_of(load_experiment("one"), [past])


def test_a_setting_of_write_back_is_an_axis(small: Path, tmp_path: Path) -> None:
    """`exec --sysctl` had it, and no experiment: the two could not be compared."""
    settings = (*ONE, "fs=jffs2", "kernel=6.1", "board=emulated")
    asked = cases(*settings, "vm.dirty_expire_centisecs=500,3000", "vm.dirty_ratio=5")
    assert [case.case_id.partition("-s1")[2] for case in asked] == [
        "-vm.dirty_expire_centisecs=500+dirty_ratio=5",
        "-vm.dirty_expire_centisecs=3000+dirty_ratio=5",
    ]
    programs = programs_of(load_experiment("one"), asked)
    assert programs[0].stack.boot_parameters == [
        "sysctl.vm.dirty_expire_centisecs=500", "sysctl.vm.dirty_ratio=5",
    ]  # fmt: skip
    found = measured(tmp_path / "run", *settings, "vm.dirty_expire_centisecs=500,3000")
    assert sorted(found["vm"]) == ["dirty_expire_centisecs=3000", "dirty_expire_centisecs=500"]


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("vm.swappiness=1", "no key of vm; keys are dirty_expire_centisecs"),
        ("vm.dirty_ratio=101", "dirty_ratio"),
        ("vm.dirty_bytes=4096", "dirty_bytes"),
        ("vm=dirty_ratio=5+dirty_bytes=9000", "dirty_bytes and dirty_ratio: only one of them"),
    ],
)
def test_a_setting_that_the_kernel_refuses_is_refused(small: Path, setting: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        cases(*ONE, "fs=jffs2", "kernel=6.1", "board=emulated", setting)


def test_another_partition_is_what_is_worn(small: Path, tmp_path: Path) -> None:
    settings = (*ONE, "fs=jffs2", "kernel=6.1", "board=emulated", "partition.blocks=64")
    measured(tmp_path / "run", *settings, wear=True)
    assert read_table(tmp_path / "run", "wear").height == 64
    (subject,) = cases_of(tmp_path / "run", 1.0)
    assert subject.board is not None
    assert subject.board.partition.blocks == 64


def test_a_board_with_another_chip_is_another_board() -> None:
    board = load_board("omap3evm")
    slower = board.changed({"chip": {"read_array_ns": 60_000}, "partition": {}})
    assert board.changed({}) is board
    assert (slower.chip.read_array_ns, board.chip.read_array_ns) == (60_000, 25_000)
    assert slower.sha256 != board.sha256
    assert slower.energy is None
    assert slower.path == board.path


def test_a_chip_that_is_not_the_profiles_has_no_energy(small: Path, tmp_path: Path) -> None:
    settings = (*ONE, "fs=jffs2", "kernel=2.6.37", "chip=default,read_array_ns=60000")
    plain, other = measured(tmp_path / "run", *settings).to_dicts()
    energies = ("energy_nj", "component_flash_read_nj")
    assert (plain["chip"], other["chip"]) == ("default", "read_array_ns=60000")
    assert None not in [plain[energy] for energy in energies]
    assert [other[energy] for energy in energies] == [None, None]


def test_a_mount_option_leaves_other_file_systems_as_they_are(small: Path) -> None:
    found = cases(*ONE, "kernel=6.1", "board=emulated", "mount=ubifs:bulk_read")
    assert {(case.fs, case.mount, case.mount_options) for case in found} == {
        ("jffs2", "default", ""),
        ("ubifs", "ubifs:bulk_read", "bulk_read"),
    }
    without = cases(*ONE, "fs=yaffs2", "mount=yaffs2:no-cache")
    assert {case.mount_options for case in without} == {"no-cache"}
    two = cases(*ONE, "fs=ubifs", "mount=ubifs:bulk_read+no_chk_data_crc")
    assert {case.mount_options for case in two} == {"bulk_read,no_chk_data_crc"}
    with pytest.raises(ExperimentError, match="grid: mount: ubifs:bulk_read: no grid has ubifs"):
        cases(*ONE, "fs=jffs2", "mount=ubifs:bulk_read")


def test_a_key_of_a_database_is_an_axis_of_a_figure(small: Path, tmp_path: Path) -> None:
    """`x` alone is enough: stacks have colours then."""
    file = small / "experiments" / "small" / "one.toml"
    head = file.read_text().split("[[grid]]")[0].replace("micro-read", "sqlite")
    head = "".join(line for line in head.splitlines(keepends=True) if "file_bytes" not in line)
    file.write_text(
        f"""{head}
[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1"]
fs = ["jffs2", "ubifs"]
read_ahead_kib = [0]
pattern = ["insert"]
requests = [8]
seed = [1]
database = [{{}}, {{ page_bytes = 4096 }}]

[[figure]]
id = "d"
title = "Flash programs (pages)"
caption = "By database."
metric = "flash_programs"
x = "database"
"""
    )
    names = {str(case.database) for case in cases("database.page_bytes=512,4096")}
    assert names == {"page512", "page4096"}
    measured(tmp_path / "run")
    content = collect(tmp_path / "run")
    points, _ = figure_tables(content, read_experiment(file).figure[0])
    assert set(points["database"]) == {"papers", "page4096"}
    assert set(points["fs"]) == {"jffs2", "ubifs"}


def test_an_option_that_the_simulator_does_not_know_is_refused_by_name(small: Path) -> None:
    settings = (*ONE, "fs=ubifs", "mount=default,ubifs:no_chk_data_crc")
    plain, other = programs_of(load_experiment("one"), cases(*settings))
    refused, measured = SimTarget().run([plain, other])
    (failure,) = refused.failures
    assert failure.case_id == other.case_id
    assert failure.not_modelled == "mount option 'no_chk_data_crc' of ubifs"
    assert measured.cases["case_id"].to_list() == [plain.case_id]
