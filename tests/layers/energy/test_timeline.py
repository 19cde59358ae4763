"""Power over time has the area of the energies that tables tell, and figures draw it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from flashbed.answers.analysis import measured_points, power_points
from flashbed.answers.energy.fold import COMPONENTS
from flashbed.answers.energy.timeline import power_over_time, sampled
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import Settings, plan
from flashbed.report.figures import power_figure
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.runner import run_target
from flashbed.stack.profiles import load_board
from flashbed.targets import load_target

ENERGY = load_board("omap3evm").energy
CASE: dict[str, Any] = {
    "case_id": "a", "fs": "jffs2", "pattern": "sequential", "read_ahead_kib": 128,
}  # fmt: skip


def requests(*rows: tuple[str, int, int, int]) -> pl.DataFrame:
    names = ["op", "start_ns", "latency_ns", "result"]
    return pl.DataFrame(rows, schema=names, orient="row")


def flash(*rows: tuple[str, int]) -> pl.DataFrame:
    schema = {"kind": pl.String, "start_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def area_nj(steps: pl.DataFrame, rail: str) -> float:
    rows = steps.filter(rail=rail)
    return float(((rows["end_ns"] - rows["start_ns"]) * rows["power_uw"]).sum()) / 1e6


def test_the_papers_power_is_a_square_a_request() -> None:
    """By hand: 0.223 W for 1 ms and for 2 ms, nothing in the pause between."""
    ran = requests(
        ("read", 0, 1_000_000, 0), ("pause", 1_000_000, 5, 0), ("read", 4_000_000, 2_000_000, 0)
    )
    steps = power_over_time(
        CASE, "read", requests=ran, flash=flash(), energy=ENERGY, convention="paper"
    )
    cpu = steps.filter(rail="cpu").select("start_ns", "end_ns", "power_uw").rows()
    assert cpu == [
        (0, 1_000_000, 223_000),
        (1_000_000, 4_000_000, 0),
        (4_000_000, 6_000_000, 223_000),
    ]
    assert area_nj(steps, "mem") == pytest.approx(29 * 3_000)


def test_components_come_and_go_with_the_drivers_operations() -> None:
    """One read of 4 KiB in 1 ms with one page from the chip, from 0.1 ms on."""
    steps = power_over_time(
        CASE,
        "read",
        requests=requests(("read", 0, 1_000_000, 4096)),
        flash=flash(("read", 100_000)),
        energy=ENERGY,
        convention="component",
    )
    cpu = steps.filter(rail="cpu").select("start_ns", "end_ns", "power_uw").rows()
    assert [row[:2] for row in cpu] == [(0, 100_000), (100_000, 285_065), (285_065, 1_000_000)]
    driver_uw = 34_600 / 185_065 * 1e6
    assert [row[2] for row in cpu] == pytest.approx([280_000, driver_uw, 280_000])
    busy_ns = 1_000_000 - 185_065
    assert area_nj(steps, "mem") == pytest.approx(2_200 + busy_ns * 0.0371 + 4096 * 0.854)


def test_what_is_unknown_is_not_drawn() -> None:
    ran = requests(("read", 0, 1_000_000, 4096))
    assert not power_over_time(
        CASE, "read", requests=ran, flash=flash(), energy=None, convention="paper"
    ).height
    ubifs = CASE | {"fs": "ubifs"}
    assert not power_over_time(
        ubifs, "read", requests=ran, flash=flash(), energy=ENERGY, convention="paper"
    ).height
    assert not power_over_time(
        CASE, "read", requests=ran, flash=flash(), energy=ENERGY, convention="component"
    ).height  # no trace
    apf27 = load_board("apf27").energy  # what its CPU takes is in no source
    assert not power_over_time(
        CASE, "write", requests=ran, flash=flash(("erase", 0)), energy=apf27, convention="component"
    ).height


def test_collection_in_a_pause_takes_the_drivers_power_and_no_less() -> None:
    """A flash operation in a pause was drawn at the driver's power less that of a busy CPU.

    The CPU is idle in a pause but for the driver, so that took a negative power.
    """
    ran = requests(("write", 0, 100_000, 0), ("pause", 100_000, 5_000_000, 0))
    steps = power_over_time(
        CASE,
        "write",
        requests=ran,
        flash=flash(("erase", 1_000_000)),
        energy=ENERGY,
        convention="component",
    )
    erased = steps.filter(pl.col("start_ns") == 1_000_000, rail="cpu")
    assert erased["power_uw"].to_list() == pytest.approx([94_700 / 531_900 * 1e6])
    assert area_nj(steps, "cpu") == pytest.approx(94_700 + 100_000 * 0.28)


def test_samples_have_the_area_of_the_steps() -> None:
    ran = requests(("read", 0, 999_983, 0), ("read", 3_000_000, 1_234_567, 0))
    steps = power_over_time(
        CASE, "read", requests=ran, flash=flash(), energy=ENERGY, convention="paper"
    )
    for step_ns in (1_000, 12_345, 10_000_000):
        samples = sampled(steps, step_ns).filter(rail="cpu")
        sampled_nj = float(samples["power_uw"].sum()) * step_ns / 1e6
        assert sampled_nj == pytest.approx(area_nj(steps, "cpu"))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figure 5's experiment, simulated."""
    experiment = load_experiment("readahead/figure5")
    directory = RunDirectory.create(tmp_path_factory.mktemp("figure5") / "run", experiment.id)
    settings: Settings = {"requests": (16,)}
    run_target(
        experiment, plan(experiment, settings), load_target("sim"), directory, trace_flash=False,
        progress=lambda *_: None,
    )  # fmt: skip
    return directory.path


@pytest.mark.extension
def test_the_area_is_the_energy_of_the_case(run: Path) -> None:
    for case in read_table(run, "cases").to_dicts():
        own = {"case_id": case["case_id"]}
        ran, traced = (read_table(run, name).filter(**own) for name in ("requests", "flash"))
        paper = power_over_time(
            case, "read", requests=ran, flash=traced, energy=ENERGY, convention="paper"
        )
        assert area_nj(paper, "cpu") == pytest.approx(case["energy_cpu_nj"], abs=1)
        assert area_nj(paper, "mem") == pytest.approx(case["energy_mem_nj"], abs=1)
        parts = power_over_time(
            case, "read", requests=ran, flash=traced, energy=ENERGY, convention="component"
        )
        cpu = case["component_cpu_busy_nj"] + case["component_cpu_driver_nj"]
        mem = sum(case[name] for name in COMPONENTS if "cpu" not in name)
        assert area_nj(parts, "cpu") == pytest.approx(cpu, abs=1)
        assert area_nj(parts, "mem") == pytest.approx(mem, abs=1)


@pytest.mark.extension
def test_a_figure_has_a_line_a_case_and_what_was_measured_under_it(run: Path) -> None:
    cases, ran, traced = (read_table(run, name) for name in ("cases", "requests", "flash"))
    points = power_points(cases, ran, flash=traced, boards={"omap3evm": ENERGY}, convention="paper")
    assert points["line"].unique().sort().to_list() == ["read-ahead off", "read-ahead on"]
    assert points["rail"].unique().sort().to_list() == ["CPU", "RAM and flash"]
    assert points["value"].max() == pytest.approx(223)
    ends = points.group_by("fs", "rail", "line").agg(pl.col("value").last())
    assert ends["value"].to_list() == [0.0] * 8
    time_s = np.arange(0, 1, 1e-4)
    laid = measured_points(
        points,
        "cpu",
        name="trace.csv",
        time_s=time_s,
        above_idle_w=np.full(time_s.size, 0.2),
        begin_s=0.5,
    )
    assert laid["fs"].unique().sort().to_list() == ["jffs2", "yaffs2"]
    assert laid["value"].to_list() == pytest.approx([200] * laid.height)
    assert float(laid["time_ms"].abs().max()) < 100  # type: ignore[arg-type]
    specification = power_figure(pl.concat([points, laid]))
    domain = specification["spec"]["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert domain == ["read-ahead off", "read-ahead on", "measured: trace.csv"]
