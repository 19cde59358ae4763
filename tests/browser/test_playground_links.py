"""A report's links to the playground show the report's numbers, in headless Chromium."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from flashbed.base import paths
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.report import write_report
from flashbed.results.run_directory import RunDirectory, read_table
from flashbed.running.runner import run_target
from flashbed.targets.sim import SimTarget
from tests.browser.test_playground import SAME, settled
from tests.support.chromium import CHROMIUM, Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is missing: apt-get install chromium"),
    pytest.mark.skipif(not paths.playground().is_file(), reason="make playground makes the page"),
]
WRITES = """
[experiment]
id = "mine/writes"
title = "Writes"
question = "What does a write cost?"
source = "ours"

[workload]
kind = "micro-write"
request_bytes = 2048
file_bytes = 1_048_576
settle_ns = 10_000_000_000

[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1", "3.12"]
fs = ["jffs2", "ubifs"]
read_ahead_kib = ["default", 64]
pattern = ["sequential"]
requests = [32]
seed = [3]
state = [{ worn = 50 }]
faults = [{ bad_blocks = [50, 150] }]
partition = [{ blocks = 200 }]
chip = [{}, { read_array_ns = 60_000, erase_array_ns = 1_000_000 }]
"""
NUMBERS = "JSON.stringify([playground.state.address, playground.state.shown.answer.counts])"


def ran(file: Path, out: Path) -> Path:
    """A run directory of an experiment on the simulator."""
    experiment = load_experiment(str(file))
    directory = RunDirectory.create(out, experiment.id)
    run_target(
        experiment, plan(experiment), SimTarget(), directory, trace_flash=False,
        record_wear=False, progress=lambda *_: None,
    )  # fmt: skip
    return out


def test_each_link_of_a_report_shows_its_case(tmp_path: Path) -> None:
    own = tmp_path / "writes.toml"
    own.write_text(WRITES, encoding="utf-8")
    config = paths.root() / "experiments/programs/config.toml"
    runs = [
        ran(own, tmp_path / "results/writes"),
        ran(config, tmp_path / "results/config"),
    ]
    page = write_report(runs, tmp_path / "results/report.html")
    cases = pl.concat([read_table(run, "cases") for run in runs])
    with Browser(tmp_path / "profile") as browser:
        browser.open(page.as_uri())
        links = "[...document.querySelectorAll('td a[href*=playground]')]"
        browser.until(f"{links}.length")
        found = json.loads(
            browser.run(f"JSON.stringify({links}.map(a => [a.textContent, a.href]))")
        )
        assert [case_id for case_id, _ in found] == cases["case_id"].to_list()
        assert len(found) == 16 + 3
        for number, (case_id, to) in enumerate(found):
            if number % 4 == 0:
                shows(browser, to, cases.filter(case_id=case_id).to_dicts()[0])
        assert browser.wrong == []


def shows(browser: Browser, to: str, case: dict[str, object]) -> None:
    """Opens a link, as a reader does: in a page of its own."""
    browser.open(to)
    settled(browser)
    address, counts = json.loads(browser.run(NUMBERS))
    assert address == to.partition("#")[2], "both write the same words in the same order"
    assert {name: counts[name] for name in SAME} == {name: case[name] for name in SAME}
