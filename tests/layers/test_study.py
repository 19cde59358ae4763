"""A study is a paper's list of figures; every claim is of one, and the report opens with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flashbed.analysis.claims import DIFFERS
from flashbed.errors import InputError
from flashbed.experiment import load_experiment, plan, study_experiments
from flashbed.report import write_report
from flashbed.report.content import collect, figure_tables
from flashbed.runner import run_target
from flashbed.study import in_order, load_study
from flashbed.tables import RunDirectory
from flashbed.targets import load_target
from tests.fake import FakeTarget

STUDY = """experiments = ["one"]

[study]
title = "A paper"
source = "somebody"
text = "What it is about."

[[item]]
id = "Figure 3-a"
title = "Time saved"

[[item]]
id = "Figure 9"
title = "Something else"
elsewhere = "another study"
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
    assert "another study" in text
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
        ('item = "Figure 3-a"', 'item = "Figure 9"', "claim half: item = 'Figure 9' is not in"),
        ('item = "Figure 3-a"\n', "", "claim half: item = None is not in"),
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


def test_the_shipped_study_names_every_experiment_and_item() -> None:
    study = load_study("readahead")
    assert study is not None
    experiments = in_order(study, study_experiments("readahead"))
    assert [one.id.split("/")[1] for one in experiments] == list(study.experiments)
    claimed = {claim.item for one in experiments for claim in one.claim}
    assert claimed == {item.id for item in study.item if item.elsewhere is None}


@pytest.mark.extension
@pytest.mark.parametrize("name", ["figure2", "fadvise", "kernels", "postmark"])
def test_every_simulated_verdict_that_differs_is_explained(name: str, tmp_path: Path) -> None:
    experiment = load_experiment(f"readahead/{name}")
    directory = RunDirectory.create(tmp_path, experiment.id)
    outcome = run_target(
        experiment, plan(experiment), load_target("sim"), directory,
        trace_flash=False, progress=lambda *_: None,
    )  # fmt: skip
    assert outcome.failures == ()
    verdicts = collect(tmp_path).verdicts
    assert all(verdict.judged["sim"].value is not None for verdict in verdicts)
    unexplained = [
        verdict.id
        for verdict in verdicts
        if verdict.judged["sim"].verdict == DIFFERS and verdict.judged["sim"].why is None
    ]
    assert unexplained == []
