"""A product's programs on one flash have one lifetime, by hand and by every way of asking.

A gateway: a log, a configuration that is renamed, a database with a commit a second, an update that
rewrites its image once a month.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import flashbed as fb
from flashbed.base.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.agreement.test_exec import FLASHBED

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(300)]

LOGGER = "for i in $(seq 12); do echo 'a line of a log' >> log; sync log; sleep 10; done; cat log"
CONFIG = "for i in $(seq 4); do echo $i > new; sync new; mv new config; sleep 60; done; cat config"
DATABASE = """
import sqlite3, time
database = sqlite3.connect("db", isolation_level=None)
database.execute("pragma journal_mode = wal")
database.execute("pragma synchronous = normal")
database.execute("create table readings(at integer, celsius real)")
for second in range(120):
    database.execute("insert into readings values(?, 20.5)", (second,))
    time.sleep(1)
"""
UPDATE = "head -c 2000000 /dev/urandom > new; sync new; mv new image"
PROGRAMS = {
    "logger": ("sh", "-c", LOGGER),
    "config": ("sh", "-c", CONFIG),
    "database": ("python3", "-c", DATABASE),
    "update": ("sh", "-c", UPDATE),
}
RATES = {"logger": "30/h", "config": "15/h", "database": "30/h", "update": "1/mo"}
A_DAY = {"logger": 720.0, "config": 360.0, "database": 720.0, "update": 1 / 30.4375}
BLOCKS, PAGES, CYCLES = 400, 64, 100_000
WITHIN = 0.05


def ran(here: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [FLASHBED, *words, "--format", "json"] if words[0] != "exec"
        else [FLASHBED, "exec", "--format", "json", *words[1:]],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=here, check=False,
        timeout=250,
    )  # fmt: skip
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, Any]]]:
    """A folder with a recording of each program, and what exec said of it."""
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")
    here = tmp_path_factory.mktemp("product")
    answers = {
        name: ran(here, "exec", "--rate", RATES[name], "--record", f"{name}.rec", "--", *words)[
            "exec"
        ][0]
        for name, words in PROGRAMS.items()
    }
    return here, answers


def test_a_gateways_flash_lasts_as_long_by_every_way_of_asking(
    recorded: tuple[Path, dict[str, dict[str, Any]]],
) -> None:
    here, answers = recorded
    assert [answer["exit_status"] for answer in answers.values()] == [0] * 4

    # By hand: page writes a day, in blocks that wear alike; nothing collected.
    pages = {
        name: answer["run"]["programs"] + answer["flush"]["programs"]
        for name, answer in answers.items()
    }
    blocks_a_day = sum(pages[name] * A_DAY[name] for name in pages) / PAGES
    by_hand = BLOCKS * CYCLES / blocks_a_day / 365.25

    # exec judges one program at a time: rates add up, so their inverses do.
    highs = [answer["years"]["high"] for answer in answers.values()]
    assert 1 / sum(1 / high for high in highs) == pytest.approx(by_hand, rel=1e-6)

    # A device does not sync after each run: these are short, so that counts. The runs continue.
    of_runs = sum(answers[name]["run"]["programs"] * A_DAY[name] for name in pages) / PAGES
    going_on = BLOCKS * CYCLES / of_runs / 365.25
    (mix,) = ran(here, "lifetime", *(f"{name}.rec@{rate}" for name, rate in RATES.items()))[
        "lifetime"
    ]
    assert mix["steady"]
    assert mix["years"]["high"] == pytest.approx(going_on, rel=WITHIN), (by_hand, going_on)
    # UBI's levelling, and what collecting costs on a partition that is not full.
    assert going_on * 0.8 < mix["years"]["low"] < mix["years"]["high"]
    assert sum(part["share"] for part in mix["programs"]) == pytest.approx(1)

    kept = [here / "results/lifetime/program" / name for name in RATES]
    found = fb.lifetime(kept, list(RATES.values())).row(0, named=True)
    assert (found["years_low"], found["years_high"]) == pytest.approx(
        (mix["years"]["low"], mix["years"]["high"])
    )
    assert (found["fs"], found["board"]) == ("ubifs", "emulated")
    runs = [fb.run(here / f"{name}.rec", trace="wear").cases for name in RATES]
    counted = pl.concat(runs)["flash_programs"].to_list()
    assert counted == pytest.approx([part["programs_per_run"] for part in mix["programs"]], rel=0.1)


def test_programs_that_sleep_need_no_rate(
    recorded: tuple[Path, dict[str, dict[str, Any]]],
) -> None:
    here, _ = recorded
    (mix,) = ran(here, "lifetime", "database.rec", "logger.rec@30/h")["lifetime"]
    assert mix["programs"][0]["runs_per_day"] == pytest.approx(720, rel=0.01)
    (alone,) = ran(here, "lifetime", "update.rec")["lifetime"]
    assert alone["years"] is None
    assert alone["rounds_per_day"] is None
