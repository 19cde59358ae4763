"""`flashbed compare` as a user meets it, on targets that make their numbers up."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.smoke.conftest import Run
from tests.support.fake import FakeTarget

Fakes = dict[str, FakeTarget]
ONE_CASE = ("--set", "pattern=sequential", "--set", "requests=8", "--set", "seed=1")


def json_of(run: Run, *arguments: str) -> dict[str, Any]:
    status, out, _ = run("compare", "one", *ONE_CASE, *arguments, "--format", "json")
    assert status == 0
    found: dict[str, Any] = json.loads(out)
    return found


def test_it_prints_a_table_sentences_and_where_results_are(
    small: Path, fakes: Fakes, run: Run
) -> None:
    status, out, err = run("compare", "one", *ONE_CASE)
    assert status == 0
    assert "cases measured" in err
    title, heads, *_, last = out.splitlines()
    assert "fastest first" in title
    assert {"time", "p50", "p99", "worst", "writes", "erases"} <= set(heads.split())
    assert "p50, p99, worst: of the latencies of all system calls" in out
    assert "a difference below 2 % is called none" in out
    assert last == "results/small/one"


def test_what_run_kept_is_not_run_again(small: Path, fakes: Fakes, run: Run) -> None:
    assert run("run", "one", *ONE_CASE)[0] == 0
    ran = len(fakes["sim"].ran)
    assert json_of(run)["rows"]
    assert len(fakes["sim"].ran) == ran


def test_json_has_every_row_and_measure(small: Path, fakes: Fakes, run: Run) -> None:
    found = json_of(run)
    assert found["by"] == "time_ns"
    times = [row["time_ns"] for row in found["rows"]]
    assert times == sorted(times)
    assert len(times) > 1
    for row in found["rows"]:
        assert row["p50_ns"] <= row["p99_ns"] <= row["worst_ns"]
        assert row["years_low"] is None
    assert len(found["sentences"]) >= 1


def test_csv_has_the_table_and_standard_error_the_words(
    small: Path, fakes: Fakes, run: Run
) -> None:
    status, out, err = run("compare", "one", *ONE_CASE, "--format", "csv")
    assert status == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == len(json_of(run)["rows"])
    assert {"time_ns", "p99_ns", "page_writes"} <= set(rows[0])
    assert "flashbed: a difference below 2 % is called none" in err


def test_markdown_is_a_table_and_a_list(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, _ = run("compare", "one", *ONE_CASE, "--format", "markdown")
    head, rule, *rows = out.splitlines()
    assert (status, rule.count("|")) == (0, head.count("|"))
    assert all(line == "" or line[:2] in ("| ", "- ") for line in rows)


def test_years_come_with_a_rate(small: Path, fakes: Fakes, run: Run) -> None:
    found = json_of(run, "--rate", "1/day", "--by", "years")
    assert found["by"] == "years_low"
    years = [row["years_low"] for row in found["rows"]]
    assert all(years)
    assert years == sorted(years, reverse=True)


def test_changes_are_those_from_a_kept_run(small: Path, fakes: Fakes, run: Run) -> None:
    json_of(run, "--out", "before")
    found = json_of(run, "--against", "before")
    assert found["against"] == "before"
    assert {row["time_ns_change_pct"] for row in found["rows"]} == {0.0}
    _, out, _ = run("compare", "one", *ONE_CASE, "--against", "before")
    assert "changes from before, in percent" in out


def test_targets_are_held_beside_each_other(small: Path, fakes: Fakes, run: Run) -> None:
    found = json_of(run, "--on", "sim,emulator")
    assert "target" in found["axes"]
    assert {row["target"] for row in found["rows"]} == {"sim", "emulator"}
    # Results of other targets in the folder are not compared.
    assert "target" not in json_of(run)["axes"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("one", "--by", "beauty"), "--by beauty: time, chip-time"),
        (("one", "--by", "years"), "--by years: how often does it run?"),
        (("one", "--rate", "often"), "--rate often: N/UNIT"),
        (("one", "--against", "nowhere"), "--against nowhere: not the result of a run"),
        (("one", "--against", "results/small/one"), "is where this run keeps its results"),
        (("one", "--set", "fs=ext4"), "ext4"),
        (("one", "--on", "moon"), "moon"),
        (("one", "--format", "xml"), "--format xml: text, json, csv or markdown"),
        (("one", "--endurance", "0"), "--endurance 0: not a number of erases"),
        (("nothing",), "nothing"),
        (("ls", "files"), "compare takes one experiment, recording or file of operations"),
    ],
)  # fmt: skip
def test_wrong_input_ends_in_one_line(
    small: Path, fakes: Fakes, run: Run, arguments: tuple[str, ...], said: str
) -> None:
    status, out, err = run("compare", *arguments)
    assert (status, out) == (2, "")
    assert said in err
    last = err.strip().splitlines()[-1]
    assert last.startswith("flashbed: ")
    assert sum(line.startswith("flashbed: ") and said in line for line in err.splitlines()) == 1


def test_a_case_that_fails_is_said_and_the_others_are_compared(
    small: Path, fakes: Fakes, run: Run
) -> None:
    rows = json_of(run, "--out", "all")["rows"]
    fakes["sim"].fails = {fakes["sim"].ran[0]}
    status, out, err = run("compare", "one", *ONE_CASE, "--format", "json")
    assert status == 1
    assert len(json.loads(out)["rows"]) == len(rows) - 1
    assert "1 cases failed" in err
