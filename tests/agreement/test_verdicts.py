"""What is said of the three sources follows from what the simulator measures.

The studies run once on the simulator, and every test of this file reads those results. Of the
experiments of LONG, CI runs the cases that a number in a text is computed from, but of TOO_LONG;
`make agreement` runs them all. How claims turn is asked of kept points there
(tests/support/kept.py). `aged` has no source but this project, so it is no row of the table.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from pathlib import Path
from statistics import linear_regression
from typing import NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from flashbed.answers.analysis.sentences import VerdictTally, tallies
from flashbed.answers.analysis.verdicts import LESSER, NOT_MEASURED, UNEXPLAINED, JudgedClaim
from flashbed.base.errors import InputError
from flashbed.base.paths import experiment_file
from flashbed.plan.experiment import Experiment, load_experiment, study_experiments
from flashbed.plan.narrowing import plan
from flashbed.plan.planned import Plan
from flashbed.plan.study import in_order, load_study
from flashbed.report.judged import JudgedRun, judged_run
from flashbed.report.numbers import numbers_of, outdated_numbers
from flashbed.report.printed import (
    PrintedNumber,
    counted_line,
    errors_by_item,
    printed_numbers,
)
from flashbed.results.run_directory import RunDirectory
from flashbed.running.runner import run_target
from flashbed.stack.profiles import load_board
from flashbed.targets import load_target
from tests.support.kept import KEPT, kept_run, kept_tables
from tests.support.numbered import needed_cases, numbers_by_experiment
from tests.support.perturb import standing, survivors
from tests.support.restated import keys_of

pytestmark = [pytest.mark.extension, pytest.mark.sampled, pytest.mark.timeout(900)]

SOURCES = ("readahead", "sqlite", "methodology")
STUDIES = (*SOURCES, "aged")
LONG = (*KEPT, "aged/sql")
"""Each takes 20 s of processor time and more, those of SQLite more than a minute."""
TOO_LONG = ("sqlite/requests", "aged/sql")
"""Even the cases behind their numbers take minutes: transactions of thousands of requests."""


def measured(experiment: Experiment, folder: Path, cases: Plan | None = None) -> JudgedRun:
    directory = RunDirectory.create(folder / experiment.id, experiment.id)
    outcome = run_target(
        experiment, cases or plan(experiment), load_target("sim"), directory,
        trace_flash=False, progress=lambda *_: None,
    )  # fmt: skip
    assert outcome.failures == ()
    return judged_run(directory.path)


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, JudgedRun]:
    """Every experiment of the studies that the simulator can run, without --long but for LONG."""
    folder = tmp_path_factory.mktemp("studies")
    left_out = () if request.config.getoption("--long") else LONG
    found = {}
    for study in STUDIES:
        for experiment in in_order(load_study(study), study_experiments(study)):
            if "sim" in experiment.targets and experiment.id not in left_out:
                found[experiment.id] = measured(experiment, folder)
    return found


@pytest.fixture(scope="module")
def numbered(
    runs: dict[str, JudgedRun], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, JudgedRun]:
    """`runs`, and of the others what the numbers in texts need."""
    folder = tmp_path_factory.mktemp("numbered")
    every = [one for study in STUDIES for one in study_experiments(study)]
    numbers = numbers_by_experiment({one.id: one for one in every})
    left_out = set(LONG) - set(TOO_LONG) - runs.keys()
    left = [one for one in every if one.id in left_out and one.id in numbers]
    some = {one.id: measured(one, folder, needed_cases(one, numbers[one.id])) for one in left}
    return runs | some


def lesser(run: JudgedRun) -> list[tuple[str, JudgedClaim]]:
    """The simulator's verdicts of a run that are less than `agrees`."""
    every = [(verdict.id, verdict.judged["sim"]) for verdict in run.verdicts]
    return [(name, one) for name, one in every if one.verdict in LESSER]


def test_no_claim_agrees_whatever_is_measured(runs: dict[str, JudgedRun]) -> None:
    survived = {name: survivors(run) for name, run in runs.items()}
    assert {name: claims for name, claims in survived.items() if claims} == {}


def test_every_verdict_that_is_less_than_agrees_is_explained(runs: dict[str, JudgedRun]) -> None:
    unexplained = [
        f"{name}: {claim}"
        for name, run in runs.items()
        for claim, judged in lesser(run)
        if judged.why is None
    ]
    assert unexplained == []


def test_what_no_run_explains_says_what_was_tried(runs: dict[str, JudgedRun]) -> None:
    silent = [
        f"{name}: {verdict.id}"
        for name, run in runs.items()
        for verdict in run.verdicts
        if verdict.judged["sim"].counted == UNEXPLAINED
        and not (verdict.judged["sim"].why and verdict.judged["sim"].why.tried)
    ]
    assert silent == []


def with_kept(runs: dict[str, JudgedRun]) -> dict[str, JudgedRun]:
    """Every experiment that has a source, those of LONG with kept points where they did not run.

    `aged` has no source to be precise.
    """
    kept = {name: kept_run(name) for name in KEPT if name not in runs}
    return {name: run for name, run in (runs | kept).items() if name.split("/")[0] in SOURCES}


def test_a_verdict_turns_when_one_side_moves_by_the_sources_precision(
    runs: dict[str, JudgedRun],
) -> None:
    """But for claims that argue in `stays` why they may not."""
    sourced = with_kept(runs)
    assert sourced.keys() == {
        one.id for study in SOURCES for one in study_experiments(study) if "sim" in one.targets
    }
    left = {
        name: [one for one in standing(run) if one not in argued(run)]
        for name, run in sourced.items()
    }
    assert {name: found for name, found in left.items() if found} == {}


def argued(run: JudgedRun) -> set[str]:
    """The claims of a run that argue why they may stay, as they are judged."""
    return {verdict.id for verdict in run.verdicts if verdict.claim.stays}


def test_a_claim_argues_why_it_stays_only_if_it_does(runs: dict[str, JudgedRun]) -> None:
    for name, run in with_kept(runs).items():
        left = {one.split("/")[0] for one in standing(run)}
        said = {claim.id for claim in run.experiment.claim if claim.stays}
        assert said <= left, name


def test_kept_points_are_what_is_measured(runs: dict[str, JudgedRun]) -> None:
    measured_ones = [name for name in KEPT if name in runs]
    if not measured_ones:
        pytest.skip("measures what takes too long: --long")
    for name in measured_ones:
        now, kept = kept_tables(runs[name]), kept_run(name).tables
        assert now.keys() == kept.keys()
        for table, points in now.items():
            assert_frame_equal(points, kept[table], rel_tol=1e-9)


def test_every_claim_is_judged(runs: dict[str, JudgedRun]) -> None:
    """But for those of what the simulator does not measure, which say so."""
    unknown = [
        f"{name}: {verdict.id}"
        for name, run in runs.items()
        for verdict in run.verdicts
        if verdict.judged["sim"].value is None and verdict.judged["sim"].verdict != NOT_MEASURED
    ]
    assert unknown == []


def test_an_explanation_is_evidence_that_was_run(runs: dict[str, JudgedRun]) -> None:
    """Evidence is numbers that are computed again, or a test that there is."""
    without = []
    for name, run in runs.items():
        for claim in run.experiment.claim:
            for differs in claim.differs:
                if differs.test is not None:
                    file, _, test = differs.test.partition("::")
                    assert f"def {test}(" in Path(file).read_text(encoding="utf-8"), differs.test
                elif not differs.numbers:
                    without.append(f"{name}: {claim.id}")
    assert sorted(set(without)) == []


def test_the_numbers_in_texts_are_what_is_measured(numbered: dict[str, JudgedRun]) -> None:
    found = outdated_numbers(numbered, without=set(TOO_LONG) - numbered.keys())
    assert [f"{one.where}: {one.said}, now {one.now}" for one in found] == []


def test_every_number_in_a_text_is_one_that_restated_can_write() -> None:
    """tests/support/restated.py finds a number by its line or by its table."""
    for study in STUDIES:
        for one in study_experiments(study):
            lines = experiment_file(one.id).read_text(encoding="utf-8").split("\n")
            there = {key for key, number in numbers_of(one) if number.value is not None}
            assert there <= set(keys_of(lines)), one.id


def test_a_number_is_of_an_experiment_that_has_it(runs: dict[str, JudgedRun]) -> None:
    for name, run in runs.items():
        for key, number in numbers_of(run.experiment):
            source = load_experiment(number.experiment or name)
            assert number.target in source.targets, f"{name}: {key}"


def test_the_table_of_verdicts_is_the_commands(runs: dict[str, JudgedRun], project: Path) -> None:
    """evidence/verdicts.md has what `flashbed verdicts … --format markdown` prints.

    A source is counted where all its experiments were run.
    """
    page = (project / "evidence" / "verdicts.md").read_text(encoding="utf-8")
    left_out = {name.split("/")[0] for name in set(LONG) - runs.keys()}
    whole = [source for source in SOURCES if source not in left_out]
    assert whole
    tally = re.compile(rf"\| ({'|'.join(whole)}) \| (sentences|claims) ")
    rows = [line for line in page.splitlines() if tally.match(line)]
    assert rows == [row(tally) for source in whole for tally in counted(source, runs)]


def test_the_page_of_verdicts_opens_with_the_count_of_printed_numbers(
    runs: dict[str, JudgedRun], project: Path
) -> None:
    numbers: list[PrintedNumber] = []
    sourced = with_kept(runs)
    for source in SOURCES:
        study = load_study(source)
        assert study is not None
        own = {
            name.split("/")[1]: run for name, run in sourced.items() if name.split("/")[0] == source
        }
        numbers += printed_numbers(source, study, own)
    page = (project / "evidence" / "verdicts.md").read_text(encoding="utf-8")
    assert page.splitlines()[2:4] == textwrap.wrap(counted_line(numbers), 119)
    rows = {
        f"| {source} | {item} | {found.measured} | {found.near} | {found.median_pct:.1f} |"
        for (source, item), found in errors_by_item(numbers).items()
        if found.median_pct is not None
    }
    assert rows <= set(page.splitlines())


def test_the_price_of_memory_is_fitted_to_table_3_and_predicts_table_2(
    runs: dict[str, JudgedRun],
) -> None:
    """evidence/energy.md: what the CPU's work outside the driver adds to either rail."""
    reads = rails(runs["readahead/table2"], "read")
    selects = rails(runs["readahead/table3"], "select")
    left_mw = [rail.memory_mw - rail.ours_mw for rail in selects]
    busy = [rail.busy for rail in selects]
    assert abs(linear_regression(busy, left_mw, proportional=True).slope) < 0.1
    assert max(rail.error(rail.ours_mw) for rail in selects) < 0.12
    assert max(rail.error(rail.ours_mw) for rail in reads) < 0.2

    printed_mw = [rail.cpu_mw for rail in reads]
    more_mw, driver_mw = linear_regression([rail.busy for rail in reads], printed_mw)
    assert (round(driver_mw), round(driver_mw + more_mw)) == (200, 316)
    assert max(abs(driver_mw + more_mw * rail.busy - rail.cpu_mw) for rail in reads) < 3.5
    assert min((driver_mw + more_mw * rail.busy) / rail.cpu_mw for rail in selects) > 1.19


class Rails(NamedTuple):
    """What the paper prints of both rails, memory's by component, and the CPU's share of time."""

    cpu_mw: float
    memory_mw: float
    ours_mw: float
    busy: float

    def error(self, memory_mw: float) -> float:
        return abs(memory_mw / self.memory_mw - 1)


def rails(run: JudgedRun, activity: str) -> list[Rails]:
    """A row for each power that the paper prints, over the cases that it stands for."""
    energy = load_board("omap3evm").energy
    assert energy is not None
    paper, component = energy.paper, energy.component
    assert paper is not None
    assert component is not None
    assert component.cpu_busy_uw is not None
    memory = pl.sum_horizontal(
        f"component_{name}_nj"
        for name in ("memory", "flash_read", "flash_program", "flash_erase", "bus")
    )
    busy_ns = pl.col("component_cpu_busy_nj") * 1e6 / component.cpu_busy_uw
    found = []
    for row in paper.power:
        if row.activity == activity and row.fs is not None:
            cases = run.cases.filter(
                pl.col("board") == "omap3evm",
                pl.col("fs") == row.fs,
                pl.col("pattern").str.starts_with(row.pattern or ""),
                (pl.col("read_ahead_kib") > 0) == (row.read_ahead == "on"),
            )
            time_ns = pl.col("time_ns")
            means = cases.select((memory / time_ns).mean(), busy=(busy_ns / time_ns).mean())
            watt, busy = means.row(0)
            found.append(Rails(row.cpu_uw / 1e3, row.mem_uw / 1e3, 1e3 * watt, busy))
    return found


def test_the_page_of_the_sources_rows_names_claims_and_counts_rows(project: Path) -> None:
    """experiments/SOURCES.md: a row of the audit each, and what shows it now."""
    page = (project / "experiments" / "SOURCES.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([RSMX]\d+) \| .* \| (\w+) \| .* \|$", page, re.MULTILINE)
    assert len({row for row, _ in rows}) == len(rows) == 145
    now = Counter(state for _, state in rows)
    counted = (
        f"Of these {now['works']} work, {now['partly']} work in part, {now['missing']} are missing"
    )
    assert f"{counted} and {now['impossible']} are impossible." in page
    named = set(re.findall(rf"`((?:{'|'.join(STUDIES)})/[\w-]+/[\w-]+)`", page))
    every = [one for study in STUDIES for one in study_experiments(study)]
    assert named - {f"{one.id}/{claim.id}" for one in every for claim in one.claim} == set()


def counted(source: str, runs: dict[str, JudgedRun]) -> tuple[VerdictTally, VerdictTally]:
    study = load_study(source)
    if study is None:
        raise InputError(source)
    names = {one: f"{source}/{one}" for one in study.experiments}
    judged = {one: runs[name].verdicts for one, name in names.items() if name in runs}
    return tallies(source, study, judged, "sim")


def row(tally: VerdictTally) -> str:
    cells = [tally.study, tally.of, str(tally.all), *map(str, tally.counts.values())]
    return f"| {' | '.join(cells)} |"
