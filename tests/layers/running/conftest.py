"""Small portions, so that few cases are many of them, and processes run them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.results.run_directory import RunDirectory
from flashbed.running.runner import TargetOutcome, run_target
from flashbed.running.ways import Way
from flashbed.targets import load_target

Progress = Callable[[str, int, int], None]
RunWay = Callable[..., TargetOutcome]
TABLES = ("cases", "requests", "flash", "finished")


@pytest.fixture
def run_way(small: Path, monkeypatch: pytest.MonkeyPatch) -> RunWay:
    """Runs the small experiment with its flash operations into a folder."""
    monkeypatch.setattr("flashbed.running.ways.PROCESS_CASES", {False: 1, True: 1})
    monkeypatch.setattr("flashbed.running.ways._PORTION_CASES", {False: (1, 4), True: (1, 4)})
    monkeypatch.setattr("flashbed.plan.case_units.UNIT_CASES", 3)

    def run(
        out: str,
        way: Way,
        target: str = "sim",
        progress: Progress = lambda *_: None,
        settings: tuple[str, ...] = (),
    ) -> TargetOutcome:
        experiment = load_experiment("one")
        directory = RunDirectory.create(Path(out), experiment.id)
        planned = plan(experiment, parse_settings(settings))
        return run_target(
            experiment, planned, load_target(target), directory,
            trace_flash=True, progress=progress, way=way,
        )  # fmt: skip

    return run


def same_bytes(one: str, other: str) -> bool:
    """Whether two folders have the same tables, to the byte."""
    there = [sorted(path.name for path in Path(folder).iterdir()) for folder in (one, other)]
    files = (f"{table}.parquet" for table in TABLES)
    return there[0] == there[1] and all(
        (Path(one) / file).read_bytes() == (Path(other) / file).read_bytes() for file in files
    )
