"""A program runs until its free space is used up, so that both ends of an answer are measured.

The truth here is a run that continues, four times as long: its counts a round are the same.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flashbed.answers.lifetimes.ageing import STEPS_MAX, rounds_to_use_up, steps_of
from flashbed.answers.lifetimes.estimate_text import notes
from flashbed.answers.lifetimes.observed import cases_of
from flashbed.api.replayed_often import aged_by
from flashbed.cli.lifetime import lifetime
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.results.run_directory import read_table
from tests.support.exec_programs import FLASHBED

pytestmark = [pytest.mark.extension, pytest.mark.timeout(200)]

LOGGER = """flashbed-ops 2
open 0 log rw,create,append
{lines}close 0
"""
LINE = "write 0 {at} 70 1 50\nfsync 0\npause 5000000000\n"
SMALL = ("--set", "partition.blocks=100", "--set", "state=valid0.3")


def logger(folder: Path, lines: int = 100) -> Path:
    path = folder / "logger.ops"
    text = "".join(LINE.format(at=70 * number) for number in range(lines))
    path.write_text(LOGGER.format(lines=text))
    return path


def ran(folder: Path, *words: str) -> tuple[dict[str, Any], str]:
    done = subprocess.run(
        [FLASHBED, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout) if "json" in words else {}
    return found, done.stderr


def years_of(folder: Path, *words: str) -> tuple[dict[str, Any], str]:
    found, said = ran(folder, "lifetime", "logger.ops", *words, "--format", "json")
    (answer,) = found["lifetime"]
    return answer, said


@pytest.mark.parametrize("fs", ["ubifs", "jffs2", "yaffs2"])
def test_both_ends_are_measured_and_a_long_run_agrees(tmp_path: Path, fs: str) -> None:
    logger(tmp_path)
    answer, said = years_of(tmp_path, "--set", f"fs={fs}", *SMALL)
    before = answer["rounds_before"]
    assert before == answer["rounds_measured"] > 1
    assert f"runs {2 * before:,} times, to use up free space and measure" in said
    assert answer["steady"]
    assert answer["erases"] > 20
    assert any(f"it ran {before} times to use up free space" in s for s in answer["assumes"])
    assert 0 < answer["years"]["low"] < answer["years"]["high"]

    settings = ("--set", f"fs={fs}", "--set", f"rounds={4 * before}", *SMALL)
    ran(tmp_path, "run", "logger.ops", "--trace", "wear", "--out", "long", *settings)
    (case,) = read_table(tmp_path / "long", "cases").to_dicts()
    wear = sum(read_table(tmp_path / "long", "wear")["erases_measured"].to_list())
    long_programs = case["flash_programs"] / (4 * before)
    assert answer["programs_per_day"] / answer["rounds_per_day"] == pytest.approx(
        long_programs, rel=0.05
    )
    # The long run began on an empty partition: what it then filled was not erased yet.
    not_yet = 100 * 0.7 / wear
    assert answer["erases"] / before == pytest.approx(wear / (4 * before), rel=0.05 + not_yet)


def test_a_folder_of_results_answers_as_the_command_that_made_it(tmp_path: Path) -> None:
    logger(tmp_path)
    answer, _ = years_of(tmp_path, *SMALL)
    found, _ = ran(tmp_path, "lifetime", "results/lifetime/operations/logger", "--format", "json")
    assert found["lifetime"] == [answer]
    (subject,) = cases_of(tmp_path / "results/lifetime/operations/logger", None)
    assert rounds_to_use_up(subject) is None


def test_a_program_that_writes_once_in_hours_is_measured_over_years(tmp_path: Path) -> None:
    """A configuration store: its runs took longer than a table was trusted to say, 104 days."""
    path = logger(tmp_path)
    path.write_text(path.read_text().replace("pause 5000000000", "pause 10000000000000"))
    answer, _ = years_of(tmp_path, *SMALL)
    assert answer["steady"]
    assert answer["rounds_measured"] * answer["round_s"] > 104 * 86_400


def test_runs_of_more_than_31_years_are_not_tried(tmp_path: Path) -> None:
    path = logger(tmp_path)
    path.write_text(path.read_text().replace("pause 5000000000", "pause 1000000000000000"))
    answer, said = years_of(tmp_path, *SMALL)
    assert answer["rounds_before"] == 0
    assert "to use up free space" not in said
    assert any("runs are longer than 31 years" in line for line in answer["assumes"])


def test_the_time_of_a_replay_is_no_warning_where_a_rate_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An update once a month was warned of, because its replay took 6.8 s and not 3.6 s."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("flashbed.api.replays.time_notes", lambda *_: ["WARNING: another time"])
    logger(tmp_path, lines=3)
    lifetime(["logger.ops@1/mo"], settings=["partition.blocks=70"])
    assert "another time" not in capfd.readouterr().err
    lifetime(["logger.ops"], settings=["partition.blocks=70"])
    assert "another time" in capfd.readouterr().err


def never(what: object) -> None:
    raise AssertionError(what)


def test_what_takes_too_long_is_bounded_and_says_how_to_measure_it(tmp_path: Path) -> None:
    path = logger(tmp_path, lines=3)
    ran(tmp_path, "run", "logger.ops", "--trace", "wear", "--out", "once", *SMALL)
    experiment = load_experiment(str(path))
    settings = [word for word in SMALL if word != "--set"]
    (found,) = aged_by(
        experiment, plan(experiment, parse_settings(settings)), target="emulator", run=never,
        read=lambda: cases_of(tmp_path / "once", None), say=never,
    )  # fmt: skip
    assert found.rounds_before == 0
    said = notes(found, found.lasting(100_000), "")
    (why,) = [line for line in said if line.startswith("free space was not used up")]
    assert "runs are too many unasked; `flashbed run` with `--trace wear --set rounds=1," in why
    assert any("too few blocks were erased to measure it" in line for line in said)


def test_cases_that_are_compared_run_equally_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first used up the bound of all, so that the second of two equal cases had other ends."""
    path = logger(tmp_path, lines=3)
    ran(tmp_path, "run", "logger.ops", "--trace", "wear", "--out", "once", *SMALL)
    (one,) = cases_of(tmp_path / "once", None)
    experiment = load_experiment(str(path))
    settings = [word for word in SMALL if word != "--set"]
    planned = plan(experiment, parse_settings([*settings, "seed=1,2"]))
    both = [replace(one, name=each.case.case_id) for each in planned]
    rounds = rounds_to_use_up(one)
    assert rounds is not None
    assert one.workload is not None
    lines = path.read_text().count("\n")
    bound = 1.5 * steps_of(rounds, lines, one.workload.programs or 0)
    monkeypatch.setitem(STEPS_MAX, "sim", bound)
    found = aged_by(experiment, planned, target="sim", run=never, read=lambda: both, say=never)
    assert len(found) == 2
    assert all("too many unasked" in (one.unaged or "") for one in found)


def test_a_program_that_cannot_run_again_is_bounded_and_says_why(tmp_path: Path) -> None:
    """It removes its input: the second run finds none."""
    text = LOGGER.format(lines=LINE.format(at=0) * 40)
    made = "open 1 input rw,create\nwrite 1 0 100 1 0\nclose 1\nprepared\n"
    used = "open 1 input ro\nread 1 0 100\nclose 1\nunlink input\n"
    (tmp_path / "logger.ops").write_text(
        text.replace("flashbed-ops 2\n", f"flashbed-ops 2\n{made}{used}")
    )
    answer, _ = years_of(tmp_path, *SMALL)
    assert answer["rounds_before"] == 0
    assert any("when it ran again, " in line and "EBADF" in line for line in answer["assumes"])
    assert pl.Series([answer["years"]["low"], answer["years"]["high"]]).is_not_null().all()
