"""A page shows results before the claims that judge them, and all its links have a target."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from flashbed.base.errors import InputError
from flashbed.bench.validation.comparison import MEASURES, ComparedSuite
from flashbed.bench.validation.results_table import keep
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.study import load_study
from flashbed.report import write_all_results, write_report
from flashbed.report.collect import collect
from flashbed.report.index import FINDINGS_MAX
from flashbed.report.judged import judged_run
from flashbed.report.narrow import narrowed
from flashbed.report.page_summary import read_summary
from flashbed.report.stated_findings import stated_findings
from flashbed.results.run_directory import RunDirectory
from flashbed.running.runner import run_target
from tests.layers.plan.test_study import CLAIM, STUDY
from tests.support.fake import FakeTarget

NUMBER = (
    'metric = "flash_reads_saved_pct", fs = ["jffs2"], pattern = ["sequential"],'
    ' requests = [8], reduce = "only"'
)
FINDING = f"""
[[finding]]
id = "costs"
text = "Read-ahead makes {{jffs2}} % of the reads needless."
unit = "%"
see = "half"
on_index = true

[finding.numbers]
jffs2 = {{ label = "JFFS2", {NUMBER}, board = "emulated", kernel = "6.1" }}
"""
Write = Callable[..., Path]


@pytest.fixture
def write(small: Path) -> Write:
    """Writes the small experiment: its cases, a claim, and what else is given."""

    def written(*parts: str, figures: bool = True) -> Path:
        (small / "experiments" / "small.toml").write_text(STUDY)
        file = small / "experiments" / "small" / "one.toml"
        text = file.read_text()
        head = text[: text.index("[[claim]]" if figures else "[[figure]]")]
        file.write_text(head + CLAIM + "".join(parts))
        return file

    return written


def ran(folder: Path, *targets: str) -> Path:
    experiment = load_experiment("one")
    directory = RunDirectory.create(folder, experiment.id)
    for name in targets or ("sim",):
        run_target(
            experiment, plan(experiment), FakeTarget(name), directory,
            trace_flash=False, progress=lambda *_: None,
        )  # fmt: skip
    return directory.path


def said(directory: Path) -> list[str]:
    return [one.text for one in stated_findings({"small/one": judged_run(directory)})]


def test_a_findings_numbers_are_those_of_the_tables(write: Write, tmp_path: Path) -> None:
    write(FINDING)
    run = ran(tmp_path / "run", "sim", "emulator")
    (one,) = stated_findings({"small/one": judged_run(run)})
    saved = collect(run).tables["savings"].filter(
        target="sim", board="emulated", fs="jffs2", pattern="sequential", requests=8,
        disabled_by="kernel",
    )["flash_reads_saved_pct"].item()  # fmt: skip
    assert one.text == f"Read-ahead makes {saved:.0f} % of the reads needless."
    (bar,) = one.bars
    assert bar.value == pytest.approx(saved)
    assert bar.real.keys() == {"emulator"}, "a real kernel's value on the same board"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('kernel = "6.1"', 'kernel = "4.0"'),  # not measured
        ('label = "JFFS2"', 'label = "JFFS2", above = 100'),  # not what it says
        ('label = "JFFS2"', 'label = "JFFS2", below = 0'),
    ],
)
def test_a_finding_that_the_tables_do_not_bear_is_left_out(
    write: Write, tmp_path: Path, old: str, new: str
) -> None:
    write(FINDING)
    assert len(said(ran(tmp_path / "run"))) == 1
    write_again = tmp_path / "run" / "experiment.toml"
    write_again.write_text(write_again.read_text().replace(f"{old}", new))
    assert said(tmp_path / "run") == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{jffs2} %", "{ubifs} %", "numbers.ubifs: missing"),
        ('label = "JFFS2", ', "", ""),
        ('see = "half"', 'see = "whole"', "finding costs: see: no figure or claim 'whole'"),
    ],
)
def test_a_finding_that_cannot_be_said_is_refused(
    write: Write, old: str, new: str, says: str
) -> None:
    write(FINDING.replace(old, new))
    if not says:
        load_experiment("one")  # it stands in the text, so it needs no label
        return
    with pytest.raises(InputError) as refused:
        load_experiment("one")
    assert says in str(refused.value)


def test_a_study_opens_with_findings_then_figures_then_verdicts_then_claims(
    write: Write, tmp_path: Path
) -> None:
    write(FINDING)
    run = ran(tmp_path / "run", "sim", "emulator")
    text = write_report([run], tmp_path / "report.html", study=load_study("small")).read_text()
    places = [text.index(part) for part in (

        'id="findings"', "<figure>", 'id="verdicts"', 'id="small-one-claim-half"',
        'id="small-one-runs"',

    )]  # fmt: skip
    assert places == sorted(places)
    targets = set(re.findall(r' id="([^"]+)"', text))
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links <= targets
    assert "small-one-claim-half" in links
    assert "<canvas" not in text
    assert "vega" not in text


def test_every_id_and_look_of_a_page_is_its_own(write: Write, tmp_path: Path) -> None:
    """Several figures have clip paths and gradients, which Vega numbers from 0 in each."""
    write(FINDING)
    text = write_report([ran(tmp_path / "run", "sim", "emulator")], tmp_path / "r.html").read_text()
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    looks = set(re.findall(r'class="[^"]*\b(v[a-z]\d*)"', text))
    assert looks
    assert all(f".{look}{{" in text for look in looks)
    shapes = set(re.findall(r'<use href="#([^"]+)"', text))
    assert shapes <= set(ids)


def test_an_experiment_without_figures_has_the_default_ones_and_the_table(
    write: Write, tmp_path: Path
) -> None:
    write(figures=False)
    run = ran(tmp_path / "run")
    content = collect(run)
    assert content.answer is not None
    assert {figure.metric for figure in content.experiment.figure} >= {"time_ms", "flash_reads"}
    time = content.experiment.figure[0]
    assert time.x == "requests"
    assert {time.colour, time.columns, time.rows} >= {"fs", "read_ahead_kib"}
    text = write_report([run], tmp_path / "report.html").read_text()
    assert "adds up the same" in text or "cases, fastest" in text
    assert text.count("<figure>") == len(content.experiment.figure)


NOWHERE = """
[[figure]]
id = "8"
title = "What the kernel's own window costs"
metric = "time_ms"
x = "requests"
colour = "fs"
rows = "pattern"
columns = "board"
caption = "Drawn over cases that this run has not."
only = { window = ["default"] }
"""


def test_a_figure_that_selects_nothing_is_told_and_the_table_is_printed(
    write: Write, tmp_path: Path
) -> None:
    """It vanished without a word, and the page had neither figure nor table."""
    write(NOWHERE)
    text = write_report([ran(tmp_path / "run")], tmp_path / "report.html").read_text()
    told = "Not drawn: Figure 8. What the kernel"
    assert told in text
    assert "no case of this run has time_ms with window default" in text
    assert text.index("<figure>") < text.index(told) < text.index('<table class="numbers text">')


def test_a_narrow_figure_has_all_panels_one_below_another() -> None:
    facet = {
        "row": {"field": "fs", "sort": ["jffs2", "ubifs"], "header": {}},
        "column": {
            "field": "requests", "sort": [8, 64],
            "header": {"labelExpr": "'requests: ' + (datum.label)"},
        },
    }  # fmt: skip
    wide = {
        "facet": facet,
        "spec": {"width": 350, "encoding": {"color": {"legend": {"columns": 6}}}},
    }
    narrow = narrowed(wide)
    assert narrow["columns"] == 1
    assert narrow["spec"]["width"] < 350
    assert narrow["spec"]["encoding"]["color"]["legend"]["columns"] == 2
    panel, place = narrow["transform"]
    assert panel["calculate"] == "datum['fs'] + ' · ' + 'requests: ' + (datum['requests'])"
    assert "indexof" in place["calculate"]
    assert "transform" not in wide


def test_the_page_of_all_results_names_studies_own_runs_and_findings(
    write: Write, tmp_path: Path
) -> None:
    write(FINDING)
    results = tmp_path / "results"
    study = ran(results / "small" / "one", "sim")
    page = write_report([study], results / "small" / "report.html", study=load_study("small"))
    own = ran(results / "own", "sim")
    text = write_all_results(results, results / "index.html").read_text()
    assert 'href="small/report.html#small-one-claim-half"' in text
    summary = read_summary(page)
    assert summary is not None
    assert summary.study == "small"
    assert text.count(summary.findings[0].text) >= 1
    assert "own" not in re.findall(r'href="([^"]+)"', text)
    assert "1 without a page" not in text, "a run of the study's experiment is no run of its own"
    assert len(summary.findings) <= FINDINGS_MAX
    assert own.is_dir()


@pytest.mark.parametrize(
    ("simulated", "said"), [(100, "within its limits"), (150, "not within its limits")]
)
def test_the_page_says_whether_the_simulator_kept_its_limits(
    simulated: int, said: str, tmp_path: Path
) -> None:
    numbers = {f"{name}{end}": [100] for name in MEASURES for end in ("", "_real")}
    errors = {f"{name}_error_pct": [float(simulated - 100)] for name in MEASURES}
    table = pl.DataFrame({"case_id": ["validate-jffs2-a"], **numbers, **errors})
    run = {"board": "emulated", "kernel": "6.1", "target": "uml", "suite": "reads"}
    compared = ComparedSuite(
        table=table, kinds={"validate-jffs2-a": "x"}, limits={}, refused={}, failed={}
    )
    keep(tmp_path / "results" / "validation", run, compared, {})
    text = write_all_results(tmp_path / "results", tmp_path / "index.html").read_text()
    assert f">{said}<" in text


def test_a_page_that_is_older_than_its_tables_says_so(write: Write, tmp_path: Path) -> None:
    write()
    run = ran(tmp_path / "results" / "own", "sim")
    before = write_all_results(tmp_path / "results", tmp_path / "index.html").read_text()
    assert "1 without a page" in before
    page = write_report([run], run / "report.html")
    assert "older" not in write_all_results(tmp_path / "results", tmp_path / "i.html").read_text()
    table = run / "cases.parquet"
    table.write_bytes(table.read_bytes())
    assert page.stat().st_mtime_ns <= table.stat().st_mtime_ns
    text = write_all_results(tmp_path / "results", tmp_path / "i.html").read_text()
    assert "older than its tables" in text


def test_a_strangers_page_is_not_believed(tmp_path: Path) -> None:
    page = tmp_path / "results" / "x" / "report.html"
    page.parent.mkdir(parents=True)
    kept = {"format": "flashbed-summary 2", "title": "x", "findings": [{"text": "<script>"}]}
    page.write_text(f'<script type="application/json" id="summary">{json.dumps(kept)}</script>')
    assert read_summary(page) is None
    with pytest.raises(InputError, match="holds no results"):
        write_all_results(tmp_path / "results", tmp_path / "index.html")
