"""The programs that ship: small recordings whose replay is valid on every file system."""

from __future__ import annotations

import pytest

from flashbed.plan.experiment import experiment_names, load_experiment
from flashbed.program.operations import parse
from flashbed.program.recording.file import open_recording
from flashbed.running.programs import programs_of
from tests.support import PROJECT

FOLDER = PROJECT / "experiments" / "programs"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))
BYTES_MAX = 100_000
NEVER_SYNC = ("git", "postmark", "fio-seq-write")


def test_each_has_an_experiment_and_is_small() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.parquet")) == NAMES
    assert {f"programs/{name}" for name in NAMES} <= set(experiment_names())
    assert all(path.stat().st_size < BYTES_MAX for path in FOLDER.glob("*.parquet"))


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_says_nothing_of_where_it_was_made(name: str) -> None:
    about = open_recording(FOLDER / f"{name}.parquet").about
    assert about.complete
    assert about.think == "cpu"
    assert about.step_ps
    assert about.machine == "Linux x86_64"
    assert all(not word.startswith("/") or "/flashbed-programs/" in word for word in about.command)


@pytest.mark.parametrize("name", NAMES)
def test_its_replay_is_valid_and_makes_what_it_writes_durable(name: str) -> None:
    experiment = load_experiment(f"programs/{name}")
    programs = programs_of(experiment, [item.case for item in experiment.planned])
    assert {program.stack.fs for program in programs} == {"jffs2", "yaffs2", "ubifs"}
    for program in programs:
        parse(program.prepare)
        names = [operation.name for operation in parse(program.body)]
        assert "write" in names
        assert name in NEVER_SYNC or {"fsync", "fdatasync"} & set(names)
