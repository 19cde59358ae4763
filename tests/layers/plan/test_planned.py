"""A plan describes its cases by their axes: the same cases as the grids, without holding them."""

from __future__ import annotations

import itertools
import tracemalloc
from pathlib import Path

import pytest

from flashbed.plan import case_units
from flashbed.plan.case import AXES, Case
from flashbed.plan.case_units import UNIT_CASES, portions, units
from flashbed.plan.experiment import Experiment, read_experiment
from flashbed.plan.planned import Planned, Product, as_plan, plan_of

KIB = 1 << 10
OVERLAPPING = """
[experiment]
id = "plan/overlapping"
title = "Grids that share cases"
question = "Is each case there once?"
source = "none"

[workload]
kind = "micro-read"
request_bytes = 4096
file_bytes = 65_536
settle_ns = 1_000_000_000

[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1", "2.6.37"]
fs = ["jffs2", "ubifs"]
mount = ["default", "ubifs:bulk_read"]
pattern = ["random"]
requests = [8, 4, 8]
read_ahead_kib = [0, 128]
seed = [1, 2]
state = [{}, {valid = 0.2}]

[[grid]]
targets = ["uml", "sim"]
board = ["emulated"]
kernel = ["6.1"]
fs = ["ubifs", "yaffs2"]
pattern = ["random"]
requests = [4, 16]
read_ahead_kib = [128, "default"]
seed = [2, 3]
"""


def one_by_one(experiment: Experiment) -> list[Planned]:
    """The cases of grids, made and compared one after another."""
    workload = experiment.workload
    sizes = {"file_bytes": workload.file_bytes, "request_bytes": workload.request_bytes}
    targets: dict[Case, tuple[str, ...]] = {}
    for grid in experiment.grid:
        for values in itertools.product(*(grid.of(axis) or (sizes[axis],) for axis in AXES)):
            case = Case(experiment=experiment.id, **dict(zip(AXES, values, strict=True)))
            targets[case] = tuple(dict.fromkeys((*targets.get(case, ()), *grid.targets)))
    stacks = list(dict.fromkeys((case.board, case.kernel) for case in targets))
    order = sorted(targets, key=lambda case: stacks.index((case.board, case.kernel)))
    return [Planned(case, targets[case]) for case in order]


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    file = tmp_path / "overlapping.toml"
    file.write_text(OVERLAPPING)
    return read_experiment(file)


def test_a_plan_has_the_cases_of_the_grids_each_once(experiment: Experiment) -> None:
    expected, found = one_by_one(experiment), experiment.planned
    assert {item.targets for item in expected} == {("sim",), ("uml", "sim"), ("sim", "uml")}
    assert list(found) == expected
    assert len(found) == len(expected)
    assert list(found.names) == [item.case.case_id for item in expected]
    assert found[-1] == expected[-1]
    assert found[2:5] == expected[2:5]
    for target in ("sim", "uml", "emulator"):
        own = [item.case for item in expected if target in item.targets]
        assert list(found.on(target)) == own
        assert len(found.on(target)) == len(own)
    both = [item.case for item in expected if {"sim", "uml"} <= set(item.targets)]
    beside = found.retargeted(("sim-chip",), needed=("sim", "uml"))
    assert list(beside) == [Planned(case, ("sim-chip",)) for case in both]
    assert list(beside.names) == [case.case_id for case in both]
    some = expected[::7]
    assert list(as_plan(some)) == some
    assert list(found.only(expected[9].case.case_id)) == [expected[9]]


def test_every_case_is_in_one_unit_also_where_units_end_early(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = experiment.planned.on("sim")
    whole = list(units(cases, "preparation"))
    monkeypatch.setattr(case_units, "HELD_CASES", 3)
    early = list(units(cases, "preparation"))
    assert len(early) > len(whole)
    names = sorted(case.case_id for case in cases)
    for found in (whole, early):
        assert sorted(case.case_id for unit in found for case in unit) == names
        for unit in found:
            assert len({(case.fs, case.kernel, case.mount, case.state) for case in unit}) == 1


def peak_bytes(seeds: int) -> int:
    """The memory that planning a sweep takes, besides the list of its seeds."""
    one = next(iter(as_plan([Planned(case(), ("sim",))]).blocks)).product
    values = dict(zip(AXES, one.values, strict=True)) | {
        "fs": ("jffs2", "ubifs"),
        "state": (case().state, case().state.model_copy(update={"valid": 0.5})),
        "seed": tuple(range(seeds)),
    }
    planned = plan_of([(Product("plan/sweep", tuple(values.values())), ("sim",))])
    tracemalloc.start()
    try:
        found = portions(units(planned.on("sim"), "preparation"), 20 * UNIT_CASES)
        assert sum(map(len, found)) == 4 * seeds
        assert sum(1 for _ in planned.names) == 4 * seeds
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def case() -> Case:
    return Case(
        experiment="plan/sweep", board="emulated", kernel="6.1", fs="jffs2", pattern="random",
        requests=8, read_ahead_kib=0, seed=1, file_bytes=65_536, request_bytes=4096,
    )  # fmt: skip


def test_ten_times_the_cases_take_hardly_more_memory_to_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A case took 0.4 KiB: a million of them 400 MiB, before the first one ran."""
    monkeypatch.setattr(case_units, "HELD_CASES", 1 << 8)
    few, many = peak_bytes(150), peak_bytes(1500)
    assert many - few < 512 * KIB
