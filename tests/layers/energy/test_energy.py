"""Energy of cases, recomputed from what the papers print."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flashbed.answers.analysis import energy_gaps, energy_summary, rates, savings
from flashbed.answers.energy.fold import COMPONENTS, energy_of, power_row
from flashbed.answers.lifetimes.subject import CAUSES
from flashbed.base.toml import read_model
from flashbed.plan import case as plan_case
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import Settings, plan
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.runner import run_target
from flashbed.stack.energy import Energy
from flashbed.stack.profiles import ProfileError, load_board
from flashbed.targets import load_target
from tests.support.fake import FakeTarget

USUAL = {axis: str(plan_case.AXES[axis].usual) for axis in plan_case.CONDITIONS}

OMAP = {"omap3evm": load_board("omap3evm").energy}


def case(**given: Any) -> dict[str, Any]:
    return {
        "case_id": "a", "board": "omap3evm", "fs": "jffs2", "pattern": "sequential",
        "read_ahead_kib": 128, "time_ns": 10_000_000, "bytes": 4096, "flash_reads": 2,
        "flash_programs": 0, "flash_erases": 0, **given,
    }  # fmt: skip


def operations(*names: str, flash_time_ns: int | None = 0) -> pl.DataFrame:
    rows = [{"case_id": "a", "op": name, "flash_time_ns": flash_time_ns} for name in names]
    return pl.DataFrame(rows, schema_overrides={"flash_time_ns": pl.Int64})


def energy(
    *names: str, given: str | None = None, flash_time_ns: int | None = 0, **axes: Any
) -> dict[str, Any]:
    requests = operations(*(names or ("open", "read")), flash_time_ns=flash_time_ns)
    cases = pl.DataFrame([case(**axes)], schema_overrides={"time_ns": pl.Int64})
    (row,) = energy_of(cases, requests, boards=OMAP, given_activity=given).to_dicts()
    return row


# Table 2: (W on the CPU's rail, W on that of RAM and flash); the energies of 10 ms are by hand.
TABLE_2 = [
    ("jffs2", "sequential", 128, 2_230_000, 290_000, 2_520_000),
    ("jffs2", "sequential", 0, 2_230_000, 240_000, 2_470_000),
    ("jffs2", "random", 128, 2_230_000, 230_000, 2_460_000),
    ("jffs2", "random", 0, 2_230_000, 230_000, 2_460_000),
    ("yaffs2", "sequential", 128, 2_110_000, 280_000, 2_390_000),
    ("yaffs2", "sequential", 0, 2_140_000, 280_000, 2_420_000),
    ("yaffs2", "random", 128, 2_110_000, 240_000, 2_350_000),
    ("yaffs2", "random", 0, 2_140_000, 260_000, 2_400_000),
]


@pytest.mark.parametrize(("fs", "pattern", "window", "cpu_nj", "mem_nj", "total_nj"), TABLE_2)
def test_ten_milliseconds_of_reading_are_what_table_2_makes_of_them(
    fs: str, pattern: str, window: int, cpu_nj: int, mem_nj: int, total_nj: int
) -> None:
    row = energy(fs=fs, pattern=pattern, read_ahead_kib=window)
    assert row["energy_convention"] == "paper"
    assert (row["energy_cpu_nj"], row["energy_mem_nj"]) == (cpu_nj, mem_nj)
    assert row["energy_nj"] == total_nj


# Table 3; a pattern is no part of it. By hand: W times 10 ms.
@pytest.mark.parametrize(
    ("fs", "window", "cpu_nj", "mem_nj", "total_nj"),
    [
        ("jffs2", 128, 2_456_500, 301_880, 2_758_380),
        ("jffs2", 0, 2_392_500, 368_630, 2_761_130),
        ("yaffs2", 128, 2_458_140, 333_250, 2_791_390),
        ("yaffs2", 0, 2_452_960, 363_190, 2_816_150),
    ],
)
def test_selects_have_powers_of_their_own(
    fs: str, window: int, cpu_nj: int, mem_nj: int, total_nj: int
) -> None:
    row = energy("read", "compute", given="select", fs=fs, read_ahead_kib=window, pattern="random")
    assert (row["energy_cpu_nj"], row["energy_mem_nj"]) == (cpu_nj, mem_nj)
    assert row["energy_nj"] == total_nj


SIMULATED_W = {
    ("jffs2", "sequential", 128): ("0.223", "0.029"),
    ("jffs2", "sequential", 0): ("0.223", "0.024"),
    ("jffs2", "random", 128): ("0.223", "0.023"),
    ("yaffs2", "sequential", 128): ("0.211", "0.028"),
    ("yaffs2", "random", 128): ("0.211", "0.024"),
    ("yaffs2", "random", 0): ("0.214", "0.026"),
}


@pytest.mark.extension
def test_a_simulated_run_has_the_energy_of_its_times(tmp_path: Path) -> None:
    experiment = load_experiment("readahead/figure3")
    settings: Settings = {
        "board": ("omap3evm",),
        "kernel": ("2.6.37",),
        "requests": (64,),
        "seed": (1,),
    }
    directory = RunDirectory.create(tmp_path / "run", experiment.id)
    planned = plan(experiment, settings)
    run_target(
        experiment, planned, load_target("sim"), directory, trace_flash=False,
        progress=lambda *_: None,
    )  # fmt: skip
    found = {}
    for row in read_table(directory.path, "cases").to_dicts():
        found[row["fs"], row["pattern"], row["read_ahead_kib"]] = row
    for point, watts in SIMULATED_W.items():
        expected_nj = sum(Fraction(watt) * found[point]["time_ns"] for watt in watts)
        assert abs(found[point]["energy_nj"] - expected_nj) <= 1, point
    for window in (0, 128):
        assert found["ubifs", "random", window]["energy_nj"] is None
        assert found["ubifs", "random", window]["energy_convention"] is None


def test_a_page_by_the_driver_is_what_the_slides_measured() -> None:
    """36.8 uJ a read; 74.6 and 6.3 uJ, printed as 81, a write; nothing else happened."""
    read = energy(time_ns=185_065, bytes=0, flash_reads=1)
    assert sum(read[name] for name in COMPONENTS) == 36_800
    program = energy("write", time_ns=407_600, bytes=0, flash_reads=0, flash_programs=1)
    assert sum(program[name] for name in COMPONENTS) == 80_900


def test_what_reaches_no_program_costs_no_copy() -> None:
    """Two reads of 185.065 us leave 9.62987 ms of 10 at 37.1 mW; 4096 * 0.854 nJ = 3_498 nJ."""
    assert energy(fs="mtd")["component_memory_nj"] == 357_268 + 3_498
    assert energy(fs="mtd-driver")["component_memory_nj"] == 357_268
    assert energy(fs="mtd-driver", time_ns=370_130)["component_memory_nj"] == 0


def test_components_add_up_by_hand() -> None:
    """Two reads of 185.065 us in 1 ms leave the CPU 629.87 us at 0.28 W."""
    row = energy(time_ns=1_000_000, bytes=4096, flash_reads=2)
    assert row["component_cpu_busy_nj"] == 176_364  # 629_870 ns * 0.28 W = 176_363.6 nJ
    assert row["component_cpu_driver_nj"] == 69_200
    assert row["component_flash_read_nj"] == 1_400
    assert row["component_bus_nj"] == 3_000
    # 629_870 ns * 37.1 mW = 23_368.2 nJ, 4096 * 0.854 nJ = 3_498.0 nJ
    assert row["component_memory_nj"] == 23_368 + 3_498
    assert row["component_flash_program_nj"] == row["component_flash_erase_nj"] == 0


def test_an_erase_is_a_wait_at_the_power_of_the_drivers_other_waits() -> None:
    """By hand, two equations of the slides' read and program: 94.70 uJ of the CPU; 9 of the chip.

    The CPU takes x in the driver and w while it waits for the array, 25 us of a read and 200 of a
    program.
    """
    erase = energy("erase", time_ns=531_900, bytes=0, flash_reads=0, flash_erases=1)
    x = Fraction("34.6") * 200 - Fraction("74.6") * 25
    x /= Fraction("160.065") * 200 - Fraction("207.6") * 25
    w = (Fraction("34.6") - Fraction("160.065") * x) / 25
    assert erase["component_cpu_driver_nj"] == round(float(Fraction("31.9") * x + 500 * w), 1) * 1e3
    assert erase["component_flash_erase_nj"] == 9_000
    assert sum(erase[name] for name in COMPONENTS) == 103_700


def test_of_a_board_without_currents_only_the_chip_is_known() -> None:
    """apf27: 14.4 mW for 25, 300 and 500 us; nothing published says what its CPU takes."""
    cases = pl.DataFrame([case(board="apf27", flash_programs=3, flash_erases=1)])
    boards = {"apf27": load_board("apf27").energy}
    (row,) = energy_of(cases, operations("write"), boards=boards).to_dicts()
    assert row["component_flash_read_nj"] == 2 * 360
    assert row["component_flash_program_nj"] == 3 * 4_320
    assert row["component_flash_erase_nj"] == 7_200
    unknown = ("cpu_busy", "cpu_driver", "memory", "bus")
    assert all(row[f"component_{name}_nj"] is None for name in unknown)
    assert row["energy_nj"] is None


def test_what_the_sources_do_not_give_is_null_where_it_is_needed() -> None:
    written = energy("write", flash_programs=1)
    assert written["energy_nj"] is None  # no power of writing is published by file system
    untimed = energy(time_ns=None)
    assert untimed["energy_nj"] is None
    assert untimed["component_cpu_busy_nj"] is None
    assert untimed["component_cpu_driver_nj"] == 69_200
    other = energy(board="emulated")
    assert all(other[name] is None for name in ("energy_nj", "energy_convention", *COMPONENTS))


def test_what_a_case_does_is_read_off_its_operations() -> None:
    assert energy("open", "read", "pause", "close")["energy_nj"] == 2_520_000
    for others in (("write",), ("read", "fsync"), ("read", "compute"), ("pause",)):
        assert energy(*others)["energy_nj"] is None, others


def test_a_case_that_did_nothing_has_no_power() -> None:
    cases = pl.DataFrame([case(time_ns=0, bytes=0, flash_reads=0)])
    (row,) = energy_of(cases, pl.DataFrame(), boards=OMAP).to_dicts()
    assert row["energy_nj"] is None
    assert row["component_cpu_driver_nj"] == 0


def test_the_cpu_is_unknown_where_the_chip_worked_in_a_pause() -> None:
    assert energy("write", "pause", flash_time_ns=5)["component_cpu_busy_nj"] is None
    assert energy("write", "pause", flash_time_ns=0)["component_cpu_busy_nj"] is not None


def test_a_trace_tells_which_operations_fell_into_a_pause() -> None:
    """By hand: of a program and two reads one read is in the pause; 1 ms - 592.665 us at 0.28 W."""
    requests = pl.DataFrame(
        {
            "case_id": ["a", "a"], "op": ["write", "pause"], "start_ns": [0, 1_000_000],
            "flash_time_ns": [435_000, 130_000],
        }
    )  # fmt: skip
    flash = pl.DataFrame(
        {
            "case_id": ["a"] * 3, "kind": ["read", "program", "read"],
            "start_ns": [10_000, 300_000, 1_500_000],
        }
    )  # fmt: skip
    cases = pl.DataFrame([case(time_ns=1_000_000, bytes=0, flash_reads=2, flash_programs=1)])
    untraced, traced = (
        energy_of(cases, requests, boards=OMAP, given_activity=None, flash=trace).to_dicts()[0]
        for trace in (None, flash)
    )
    assert untraced["component_cpu_busy_nj"] is None
    assert traced["component_cpu_busy_nj"] == 114_054  # 407_335 ns * 0.28 W = 114_053.8 nJ
    assert traced["component_cpu_driver_nj"] == 2 * 34_600 + 74_600  # wherever it was


def test_a_time_shorter_than_the_driver_needs_is_not_clipped() -> None:
    assert energy(time_ns=300_000, flash_reads=2)["component_cpu_busy_nj"] is None


def point(**given: Any) -> dict[str, Any]:
    return {
        "target": "sim", "kernel": "2.6.37", "requests": 8, "request_bytes": 4096,
        "file_bytes": 8192, "seed": 1, "pause_ns": 0, "advice": "none", "window": "forced",
        **USUAL,
        **{f"bytes_{cause}": None for cause in CAUSES},
        "ecc_corrected": None, "ecc_failed": None, "flash_time_ns": 1,
        **case(**given),
    }  # fmt: skip


def test_energy_saved_is_of_energies_not_of_times() -> None:
    """By hand: on 20 ms * 0.252 W = 5.04 mJ, off 10 ms * 0.247 W = 2.47 mJ: 50.99 % less."""
    points = pl.DataFrame(
        [
            point(case_id="on", time_ns=20_000_000, read_ahead_kib=128, flash_reads=60),
            point(case_id="off", time_ns=10_000_000, read_ahead_kib=0, flash_reads=20),
        ]
    )
    requests = pl.concat(
        [operations("read").with_columns(case_id=pl.lit(n)) for n in ("on", "off")]
    )
    table = points.join(energy_of(points, requests, boards=OMAP), on="case_id")
    (row,) = savings(table).to_dicts()
    assert row["time_saved_pct"] == 50
    assert row["energy_saved_pct"] == pytest.approx(100 * (5.04 - 2.47) / 5.04)
    # Components: on 60 * 36.8 + (20 - 11.1039) ms * 0.3171 W + 3.4980; off 20 * 36.8 + ...
    on = 60 * 36.8 + (20_000 - 60 * 185.065) * 0.3171 + 3.4980
    off = 20 * 36.8 + (10_000 - 20 * 185.065) * 0.3171 + 3.4980
    assert row["component_energy_saved_pct"] == pytest.approx(100 * (on - off) / on, abs=1e-3)
    unknown = table.with_columns(pl.lit(None, pl.Int64).alias("energy_nj"))
    assert savings(unknown)["energy_saved_pct"].to_list() == [None]


def test_energies_of_single_cases_are_metrics() -> None:
    points = pl.DataFrame([point()])
    table = points.join(energy_of(points, operations("read"), boards=OMAP), on="case_id")
    requests = operations("read").with_columns(
        target=pl.lit("sim"), latency_ns=pl.lit(1), offset_bytes=pl.lit(0), result=pl.lit(1)
    )
    (row,) = rates(table, requests).to_dicts()
    assert row["energy_mj"] == pytest.approx(2.52)
    assert row["energy_cpu_mj"] == pytest.approx(2.23)
    assert row["energy_mem_mj"] == pytest.approx(0.29)
    assert row["component_energy_mj"] == pytest.approx(
        2 * 0.0368 + (10 - 0.37013) * 0.3171 + 0.0034980, abs=2e-6
    )
    assert row["component_cpu_mj"] == pytest.approx(2 * 0.0346 + (10 - 0.37013) * 0.28, abs=1e-6)
    memory_mj = 2 * 0.0022 + (10 - 0.37013) * 0.0371 + 0.0034980
    assert row["component_mem_mj"] == pytest.approx(memory_mj, abs=1e-6)
    assert row["component_flash_mj"] == pytest.approx(2 * 0.0007)
    assert row["component_cpu_mw"] == pytest.approx(row["component_cpu_mj"] / 10 * 1e3)
    assert row["component_mem_mw"] == pytest.approx(row["component_mem_mj"] / 10 * 1e3)
    assert row["component_access_pct"] == pytest.approx(
        2 * 0.0368 / row["component_energy_mj"] * 100
    )
    milliwatts = row["component_cpu_mw"] + row["component_mem_mw"]
    assert milliwatts == pytest.approx(row["component_energy_mj"] / 10e-3)


def summarised(*cases: dict[str, Any]) -> list[dict[str, Any]]:
    rows = pl.DataFrame(cases, schema_overrides={"time_ns": pl.Int64})
    named = [operations("read").with_columns(case_id=pl.lit(each["case_id"])) for each in cases]
    energies = energy_of(rows, pl.concat(named), boards=OMAP)
    return energy_summary(rows.join(energies, on="case_id", maintain_order="left"))


def test_a_report_has_the_means_of_either_convention_by_what_ran() -> None:
    (jffs2, ubifs) = summarised(
        point(case_id="a"), point(case_id="b", time_ns=20_000_000), point(case_id="c", fs="ubifs"),
        point(case_id="d", board="emulated"),
    )  # fmt: skip
    assert (jffs2["fs"], jffs2["cases"], jffs2["known"], jffs2["convention"]) == (
        "jffs2", 2, 2, "paper",
    )  # fmt: skip
    assert jffs2["energy_mj"] == pytest.approx((2.52 + 5.04) / 2)
    assert jffs2["energy_cpu_mj"] == pytest.approx((2.23 + 4.46) / 2)
    assert sum(jffs2["parts"].values()) == pytest.approx(jffs2["component_mj"])
    assert (ubifs["known"], ubifs["energy_mj"], ubifs["component_known"]) == (0, None, 1)


def test_a_report_says_what_is_not_known_and_why() -> None:
    cases = [
        point(case_id="a"), point(case_id="b", fs="ubifs"), point(case_id="c", board="emulated"),
        point(case_id="d", target="uml", time_ns=None),
    ]  # fmt: skip
    rows = pl.DataFrame(cases, schema_overrides={"time_ns": pl.Int64})
    named = [operations("read").with_columns(case_id=pl.lit(each["case_id"])) for each in cases]
    table = rows.join(energy_of(rows, pl.concat(named), boards=OMAP), on="case_id")
    assert energy_gaps(table, OMAP) == [
        "The mean powers of board omap3evm do not cover any case on ubifs.",
        "The profile of board emulated has no [energy].",
        "Code takes no time on uml, so there is no energy.",
    ]


POWER = {"activity": "read", "cpu_uw": 10, "mem_uw": 1}


def read(values: dict[str, Any]) -> Energy:
    return read_model(Energy, values, Path("board.toml"), ProfileError)


def test_the_most_exact_row_is_taken() -> None:
    rows = [POWER, {**POWER, "fs": "jffs2", "cpu_uw": 20}, {**POWER, "fs": "ubifs", "cpu_uw": 30}]
    boards: dict[str, Energy | None] = {"omap3evm": read({"paper": {"source": "s", "power": rows}})}
    for fs, expected in (("jffs2", 200), ("ubifs", 300), ("yaffs2", 100)):
        table = pl.DataFrame([case(fs=fs)])
        found = energy_of(table, operations("read"), boards=boards)["energy_cpu_nj"].to_list()
        assert found == [expected], fs


def test_a_supply_measured_as_a_whole_is_a_convention_of_its_own() -> None:
    row = {"activity": "read", "supply_uw": 500_000}
    boards: dict[str, Energy | None] = {
        "omap3evm": read({"supply": {"source": "s", "power": [row]}})
    }
    (found,) = energy_of(pl.DataFrame([case()]), operations("read"), boards=boards).to_dicts()
    assert found["energy_convention"] == "supply"
    assert found["energy_nj"] == 5_000_000
    assert found["energy_cpu_nj"] is None
    assert found["energy_mem_nj"] is None


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"paper": {"source": "s", "power": [POWER, POWER]}}, "two rows are for read"),
        ({"paper": {"source": "s", "power": []}}, "paper.power"),
        ({"paper": {"source": "s", "power": [{**POWER, "gpu_uw": 1}]}}, "gpu_uw: unknown key"),
        ({"paper": {"power": [POWER]}}, "paper.source: missing"),
        (
            {
                "paper": {"source": "s", "power": [POWER]},
                "supply": {"source": "s", "power": [{"activity": "read", "supply_uw": 1}]},
            },
            "one of them",
        ),
    ],
)
def test_constants_that_cannot_be_are_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ProfileError, match=words):
        read(values)


def test_every_target_gets_its_energy_when_it_is_kept(tmp_path: Path) -> None:
    experiment = load_experiment("readahead/figure3")
    settings: Settings = {"board": ("omap3evm",), "fs": ("jffs2",), "requests": (8,), "seed": (1,)}
    directory = RunDirectory.create(tmp_path / "run", experiment.id)
    run_target(
        experiment, plan(experiment, settings), FakeTarget("sim"), directory, trace_flash=False,
        progress=lambda *_: None,
    )  # fmt: skip
    rows = read_table(directory.path, "cases").filter(pattern="sequential").to_dicts()
    for row in rows:
        watts = Fraction("0.252") if row["read_ahead_kib"] else Fraction("0.247")
        assert abs(row["energy_nj"] - watts * row["time_ns"]) <= 1


def test_a_power_at_random_is_one_of_every_random_order() -> None:
    energy = load_board("omap3evm").energy
    rows = [
        power_row(energy, "read", fs="jffs2", pattern=order, read_ahead_kib=128)
        for order in ("random", "random-byte")
    ]
    assert (
        rows[0]
        == rows[1]
        != power_row(energy, "read", fs="jffs2", pattern="sequential", read_ahead_kib=128)
    )
