"""`flashbed check` as a user meets it, on a target that makes its numbers up."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.smoke.conftest import Run
from tests.support.fake import FakeTarget

Fakes = dict[str, FakeTarget]
ONE = (
    'set = ["board=emulated", "kernel=6.1", "pattern=sequential", "requests=8", "seed=1",'
    ' "fs=jffs2", "read_ahead_kib=128"]'
)
BUDGET = f"""\
name = "product"

[[stack]]
name = "rev-a"
{ONE}

[[program]]
name = "reader"
run = "one"
"""


def written(limits: str = "", *, name: str = "budget.toml") -> str:
    Path(name).write_text(BUDGET + limits, encoding="utf-8")
    return name


def test_a_limit_that_holds_ends_well(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, err = run("check", written("limits = { time_ms = 1000 }\n"))
    assert status == 0, err
    assert "holds" in out
    assert out.startswith("product: 1 measure, none broken")


def test_a_broken_limit_is_said_with_by_how_much(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, err = run("check", written("limits = { time_ms = 0.1 }\n"))
    assert status == 1
    (line,) = [line for line in out.splitlines() if line.startswith("rev-a, reader: time ")]
    assert "at most 100.0 us: " in line
    assert "more" in line
    assert "1 of 1 measures break the budget budget.toml" in err.splitlines()[-1]


def test_a_limit_on_what_is_not_known_breaks(small: Path, fakes: Fakes, run: Run) -> None:
    status, out, _ = run("check", written("limits = { bytes_free = 1 }\n"))
    assert status == 1
    assert "bytes left: not known: the model of this file system does not tell" in out


def test_without_limits_a_baseline_is_needed_and_kept(small: Path, fakes: Fakes, run: Run) -> None:
    budget = written()
    status, _, err = run("check", budget)
    assert status == 2
    assert "no limits and no baseline; --update writes budget.baseline.json" in err
    status, _, err = run("check", budget, "--update")
    assert status == 0, err
    first = Path("budget.baseline.json").read_bytes()
    assert run("check", budget, "--update")[0] == 0
    assert Path("budget.baseline.json").read_bytes() == first
    status, out, _ = run("check", budget)
    assert status == 0
    assert "as in the baseline" in out


def test_what_is_worse_than_the_baseline_breaks(small: Path, fakes: Fakes, run: Run) -> None:
    budget = written()
    assert run("check", budget, "--update")[0] == 0
    kept = Path("budget.baseline.json")
    values = json.loads(kept.read_text())
    values["rows"][0]["measures"]["time_ms"] /= 2
    values["rows"][0]["measures"]["p50_latency_ms"] *= 2
    values["rows"][0]["inputs"]["settings"] = "others"
    values["rows"].append({"key": ["gone", "reader", ""], "measures": {}, "inputs": {}})
    kept.write_text(json.dumps(values))
    status, out, _ = run("check", budget)
    assert status == 1
    lines = out.splitlines()
    assert any("worse" in line for line in lines)
    assert any("better" in line for line in lines)
    assert "rev-a, reader: since the baseline changed: settings" in lines
    assert "gone, reader: in the baseline, no longer in the budget" in lines
    # A limit decides alone: with one, the same time does not break.
    assert run("check", written("limits = { time_ms = 1000 }\n"))[0] == 0


def test_junit_has_a_suite_a_stack_and_a_failure_a_broken_line(
    small: Path, fakes: Fakes, run: Run
) -> None:
    budget = written("limits = { time_ms = 0.1, page_reads = 100000 }\n")
    assert run("check", budget, "--junit", "flash.xml")[0] == 1
    (suite,) = ET.parse("flash.xml").getroot().findall("testsuite")
    assert suite.get("name") == "rev-a"
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert set(cases) == {"time_ms", "page_reads"}
    failure = cases["time_ms"].find("failure")
    assert failure is not None
    assert "at most 100.0 us" in (failure.get("message") or "")
    assert cases["page_reads"].find("failure") is None


def test_markdown_and_json_have_the_same_lines(small: Path, fakes: Fakes, run: Run) -> None:
    budget = written("limits = { time_ms = 0.1, page_reads = 99999 }\n")
    _, out, _ = run("check", budget, "--format", "markdown")
    assert out.startswith("### product: ")
    assert any(line.startswith("| rev-a | reader | time |") for line in out.splitlines())
    _, out, _ = run("check", budget, "--format", "json")
    found = json.loads(out)
    assert found["broken"] == 1
    assert {line["verdict"] for line in found["lines"]} == {"holds", "broken"}


def test_several_values_are_a_row_each(small: Path, fakes: Fakes, run: Run) -> None:
    Path("budget.toml").write_text(
        BUDGET.replace("fs=jffs2", "fs=jffs2,ubifs") + "limits = { time_ms = 1000 }\n"
    )
    _, out, _ = run("check", "budget.toml", "--format", "json")
    assert {line["choice"] for line in json.loads(out)["lines"]} == {"jffs2", "ubifs"}


def test_all_programs_share_a_flash(small: Path, fakes: Fakes, run: Run) -> None:
    other = BUDGET.replace(
        'run = "one"\n',
        'run = "one"\nrate = "1/h"\n\n[[program]]\nname = "other"\nrun = "one"\n'
        'repeat = "2/h"\n\n[together]\nyears = 900\nerases_per_day = 1e9\n',
    )
    Path("budget.toml").write_text(other)
    _, out, err = run("check", "budget.toml", "--format", "json")
    assert out, err
    together = [
        line for line in json.loads(out)["lines"] if line["program"] == "all programs together"
    ]
    assert {line["measure"] for line in together} == {"years", "erases_per_day"}


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("fs=jffs2", "fs=ext4", "budget.toml: rev-a, reader: set fs=ext4: "),
        ("fs=jffs2", "colour=red", "budget.toml: rev-a, reader: set colour=red: not AXIS"),
        ('run = "one"', 'run = "nothing"', "budget.toml: rev-a, reader: no experiment 'nothing'"),
        ('run = "one"', 'runs = "one"', "program.1.runs: unknown key, run is meant?"),
        ("[[stack]]", "[[stack]", "budget.toml: not TOML"),
    ],
)  # fmt: skip
def test_wrong_input_ends_in_one_line(
    small: Path, fakes: Fakes, run: Run, right: str, wrong: str, said: str
) -> None:
    Path("budget.toml").write_text(BUDGET.replace(right, wrong) + "limits = { time_ms = 9 }\n")
    status, out, err = run("check", "budget.toml")
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("flashbed: ") == 1


def test_a_missing_file_is_named(small: Path, fakes: Fakes, run: Run) -> None:
    status, _, err = run("check", "nowhere.toml")
    assert status == 2
    assert "nowhere.toml: no such file" in err


def test_a_program_that_cannot_run_is_a_broken_line_in_every_form(
    small: Path, fakes: Fakes, run: Run
) -> None:
    """A build server reads the XML: it was not written where a case failed."""
    budget = written("limits = { time_ms = 1000 }\n")
    assert run("check", budget)[0] == 0
    fakes["sim"].fails = set(fakes["sim"].ran)
    status, out, err = run("check", budget, "--out", "again", "--junit", "flash.xml")
    assert status == 1
    assert "rev-a, reader: time: not known: no space left on device" in out, (out, err)
    cases = ET.parse("flash.xml").getroot().iter("testcase")
    assert [case.find("failure") is not None for case in cases] == [True]
