"""A study is a paper's list of figures; every claim is of one, and the report opens with it."""

from __future__ import annotations

import functools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from flashbed.answers.analysis.sentences import tallies
from flashbed.answers.analysis.verdicts import judge
from flashbed.base.errors import InputError
from flashbed.cli.verdicts import verdicts
from flashbed.plan.experiment import load_experiment, study_experiments
from flashbed.plan.narrowing import plan
from flashbed.plan.quantities import Number
from flashbed.plan.study import in_order, load_study
from flashbed.report import write_report
from flashbed.report.collect import collect, figure_tables
from flashbed.report.judged import judged_run
from flashbed.report.numbers import outdated_numbers
from flashbed.report.printed import counted_line, errors_by_item, printed_numbers
from flashbed.results.run_directory import RunDirectory
from flashbed.running.runner import run_target
from tests.support.fake import FakeTarget
from tests.support.perturb import standing, survivors

STUDY = """experiments = ["one"]

[study]
title = "A paper"
source = "a paper"
text = "What it is about."

[[item]]
id = "Figure 3-a"
title = "Time saved"

[[item.sentence]]
text = "Everything is saved."
claims = ["one/half"]

[[item]]
id = "Figure 9"
title = "Something else"

[[item.sentence]]
text = "The authors' board is red."
cannot = "no board here has a colour"
"""
CLAIM = """
[[claim]]
id = "half"
item = "Figure 3-a"
text = "All of it is saved."
source = "nowhere"
reading = "more than 99 %"
unit = "%"
metric = "flash_reads_saved_pct"
fs = ["jffs2"]
pattern = ["sequential"]
requests = [8]
reduce = "only"
operator = ">"
bound = 99

[[claim.differs]]
on = ["sim"]
why = "eight requests use a part of the window"
evidence = "the fake's rule"
"""
FIGURE = """
[[figure]]
id = "axes"
title = "Flash reads saved (%)"
metric = "flash_reads_saved_pct"
text = "To be seen."
x = "kernel"
colour = "pattern"
rows = "fs"
columns = "requests"
only = { board = ["omap3evm"] }
caption = "By kernel."

[[figure.published]]
fs = ["jffs2"]
pattern = "sequential"
requests = 8
at = { kernel = "2.6.37" }
value = 70
low = 60
high = 80
text = "about 70"
"""


@pytest.fixture
def studied(small: Path) -> Path:
    """The small project with a study, one claim of it, and a figure over axes of its own."""
    (small / "experiments" / "small.toml").write_text(STUDY)
    file = small / "experiments" / "small" / "one.toml"
    text = file.read_text()
    file.write_text(text[: text.index("[[claim]]")] + CLAIM + FIGURE)
    return small


def report(folder: Path) -> Path:
    experiment = load_experiment("one")
    directory = RunDirectory.create(folder / "run", experiment.id)
    run_target(
        experiment, plan(experiment), FakeTarget("sim"), directory,
        trace_flash=False, progress=lambda *_: None,
    )  # fmt: skip
    return write_report([directory.path], folder / "report.html", study=load_study("small"))


def test_the_report_opens_with_the_papers_figures_and_says_why_one_differs(
    studied: Path, tmp_path: Path
) -> None:
    text = report(tmp_path).read_text()
    assert "<h1>A paper</h1>" in text
    assert "Cannot be measured: no board here has a colour" in text
    assert "0 of 1" in text
    assert "<b>Why it differs</b> (jffs2 on the simulated stack, Linux 2.6.37)" in text
    assert "eight requests use a part of the window" in text
    assert "the fake&#39;s rule" in text


def test_a_figure_over_axes_draws_the_points_it_names(studied: Path, tmp_path: Path) -> None:
    report(tmp_path)
    content = collect(tmp_path / "run")
    (figure,) = [one for one in content.experiment.figure if one.id == "axes"]
    points, published = figure_tables(content, figure)
    assert points["board"].unique().to_list() == ["omap3evm"]
    assert points["kernel"].unique(maintain_order=True).to_list() == ["2.6.37", "2.6.37-64bit"]
    assert points.height == 2 * 2 * 2 * 2  # kernels, file systems, patterns, requests
    assert published.select("kernel", "requests", "value", "low", "high").rows() == [
        ("2.6.37", 8, 70.0, 60.0, 80.0)
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('item = "Figure 3-a"', 'item = "Figure 9"', "claim half: item = 'Figure 9': no sentence"),
        ('item = "Figure 3-a"\n', "", "claim half: item = None: no sentence"),
        ('id = "half"', 'id = "whole"', "claim whole: item = 'Figure 3-a': no sentence of it in"),
    ],
)
def test_a_claim_of_nothing_in_the_paper_is_refused(
    studied: Path, old: str, new: str, says: str
) -> None:
    file = studied / "experiments" / "small" / "one.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(InputError) as refused:
        in_order(load_study("small"), study_experiments("small"))
    assert says in str(refused.value)


def test_a_study_names_all_its_experiments(studied: Path) -> None:
    shutil.copy(
        studied / "experiments" / "small" / "one.toml",
        studied / "experiments" / "small" / "two.toml",
    )
    file = studied / "experiments" / "small" / "two.toml"
    file.write_text(file.read_text().replace('id = "small/one"', 'id = "small/two"'))
    with pytest.raises(InputError, match=r"small\.toml: experiments: two"):
        in_order(load_study("small"), study_experiments("small"))


def test_a_sentence_names_only_claims_that_exist(studied: Path) -> None:
    file = studied / "experiments" / "small.toml"
    text = file.read_text()
    file.write_text(text.replace('claims = ["one/half"]', 'claims = ["one/half", "one/gone"]'))
    with pytest.raises(InputError, match=r"small\.toml: item\.sentence: no claim one/gone"):
        in_order(load_study("small"), study_experiments("small"))


def told_of(results: Path, output: str, *, numbers: bool = False) -> None:
    verdicts(
        ["small"], results=results, on="sim", sentences=False, check=False, numbers=numbers,
        output=output,
    )  # fmt: skip


SOURCES = ("readahead", "sqlite", "methodology", "aged")


@pytest.mark.parametrize("name", SOURCES)
def test_a_shipped_study_judges_every_sentence_of_its_source_or_says_why_not(name: str) -> None:
    study = load_study(name)
    assert study is not None
    experiments = in_order(study, study_experiments(name))
    assert [one.id.split("/")[1] for one in experiments] == list(study.experiments)


def test_sentences_are_counted_by_the_worst_of_their_claims(studied: Path, tmp_path: Path) -> None:
    report(tmp_path)
    study = load_study("small")
    assert study is not None
    runs = {"one": judged_run(tmp_path / "run").verdicts}
    sentences, claims = tallies("small", study, runs, "sim")
    assert (sentences.all, claims.all) == (2, 1)
    assert {word: count for word, count in sentences.counts.items() if count} == {
        "differs": 1,
        "cannot be measured": 1,
    }
    (no_sentences, _) = tallies("small", study, {}, "sim")
    assert no_sentences.counts["not measured"] == 1


def test_an_experiment_the_target_cannot_run_is_not_missed(
    studied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`sqlite/on-board` has no cases on the simulator, and `verdicts sqlite` asked to run it."""
    told = functools.partial(told_of, tmp_path)
    file = studied / "experiments" / "small" / "one.toml"
    simulated = file.read_text()
    head, _, emulated = simulated.split("[[grid]]")
    file.write_text("[[grid]]".join((head, emulated.replace('"sim", ', ""))))
    told("json")
    sentences, _ = json.loads(capsys.readouterr().out)["counts"]
    assert sentences["not measured"] == 1
    file.write_text(simulated)
    with pytest.raises(InputError, match="first run"):
        told("json")


def test_a_report_needs_no_simulated_board_that_stands_for_the_papers(
    studied: Path, tmp_path: Path
) -> None:
    """The page read `compared.sim`, which an experiment for real boards only does not have."""
    file = studied / "experiments" / "small" / "one.toml"
    before, rest = file.read_text().split("[compared.sim]")
    file.write_text(before + rest[rest.index("[compared.emulator]") :])
    text = report(tmp_path).read_text()
    assert "Simulated:" not in text
    assert "Real, " in text


def test_a_number_in_a_text_is_computed_again(studied: Path, tmp_path: Path) -> None:
    report(tmp_path)
    run = judged_run(tmp_path / "run")
    (claim,) = run.experiment.claim
    measured = {key: getattr(claim, key) for key in ("metric", "fs", "pattern", "requests")}
    (saved,) = [verdict.judged["sim"].value for verdict in run.verdicts]
    assert saved is not None
    for said, expected in ((saved, []), (saved + 1, [f"{saved:.1f}"])):
        number = Number(**measured, reduce="only", value=said, digits=1)
        told = claim.differs[0].model_copy(
            update={"evidence": "it saves {saved} %", "numbers": {"saved": number}}
        )
        assert told.explanation[1] == f"it saves {said:.1f} %"
        changed = claim.model_copy(update={"differs": (told,)})
        experiment = run.experiment.model_copy(update={"claim": (changed,)})
        found = outdated_numbers({"small/one": replace(run, experiment=experiment)})
        assert [one.now for one in found] == expected


def test_a_claim_that_agrees_whatever_is_measured_is_found(studied: Path, tmp_path: Path) -> None:
    """Claims had compared a window of 0 with itself, and agreed on every kernel."""
    report(tmp_path)
    run = judged_run(tmp_path / "run")
    (claim,) = run.experiment.claim
    cannot_fail = claim.model_copy(update={"id": "any", "operator": ">=", "bound": -1e12})
    can_fail = claim.model_copy(update={"id": "one", "operator": ">=", "bound": 0})
    experiment = run.experiment.model_copy(update={"claim": (cannot_fail, can_fail)})
    judged = replace(run, experiment=experiment, verdicts=judge(experiment, run.tables))
    assert [one.judged["sim"].verdict for one in judged.verdicts] == ["agrees", "agrees"]
    assert survivors(judged) == ["any/jffs2"]


def test_a_claim_that_stays_when_one_side_moves_is_found(studied: Path, tmp_path: Path) -> None:
    """Claims of 2 and more agreed at 10 whatever was moved by the source's digits."""
    report(tmp_path)
    run = judged_run(tmp_path / "run")
    (claim,) = run.experiment.claim
    (value,) = [verdict.judged["sim"].value for verdict in run.verdicts]
    assert value is not None
    wide = claim.model_copy(update={"id": "wide", "bound": value / 2})
    digits = {"operator": "within", "bound": None, "low": value - 1, "high": value + 1}
    narrow = claim.model_copy(update={"id": "narrow", **digits})
    experiment = run.experiment.model_copy(update={"claim": (wide, narrow)})
    judged = replace(run, experiment=experiment, verdicts=judge(experiment, run.tables))
    assert standing(judged) == ["wide/jffs2"]


PRINTED = {"operator": "within", "bound": None, "low": 50, "high": 99, "published": 80}


def test_every_printed_number_has_its_error(studied: Path, tmp_path: Path) -> None:
    """The claim's number counts once; the figure's point of another place counts besides."""
    report(tmp_path)
    study = load_study("small")
    assert study is not None
    whole = judged_run(tmp_path / "run")
    figures = tuple(one for one in whole.experiment.figure if one.id == "axes")
    run = replace(whole, experiment=whole.experiment.model_copy(update={"figure": figures}))
    assert [one.name for one in printed_numbers("small", study, {"one": run})] == ["one/axes"]
    (claim,) = run.experiment.claim
    free = claim.model_copy(update=PRINTED)
    fitted = claim.model_copy(update={**PRINTED, "id": "fitted", "fitted": "the window"})
    derived = claim.model_copy(update={**PRINTED, "id": "derived", "derived": "a constant"})
    experiment = run.experiment.model_copy(update={"claim": (free, fitted, derived)})
    judged = replace(run, experiment=experiment, verdicts=judge(experiment, run.tables))
    numbers = printed_numbers("small", study, {"one": judged})
    assert [one.name for one in numbers] == ["one/half", "one/fitted"]
    value = judged.verdicts[0].judged["sim"].value
    assert value is not None
    assert numbers[0].error_pct == pytest.approx((value - 80) / 80 * 100)
    assert list(errors_by_item(numbers)) == [("small", "Figure 3-a")]
    assert errors_by_item(numbers)["small", "Figure 3-a"].numbers == 1
    assert counted_line(numbers).startswith("Of 1 printed numbers ")
    assert "1 more are not counted" in counted_line(numbers)


def test_the_command_lists_the_printed_numbers(
    studied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report(tmp_path)
    (tmp_path / "small").mkdir()
    (tmp_path / "run").rename(tmp_path / "small" / "one")
    told_of(tmp_path, "json", numbers=True)
    numbers = json.loads(capsys.readouterr().out)["numbers"]
    assert ("one/axes", 70.0) in [(number["name"], number["printed"]) for number in numbers]
    told_of(tmp_path, "markdown", numbers=True)
    assert "| small, Figure axes | one/axes | jffs2 | 70 |" in capsys.readouterr().out
    told_of(tmp_path, "text", numbers=True)
    assert re.match(r"Of [0-9]+ printed numbers [0-9]+ come out within", capsys.readouterr().out)
