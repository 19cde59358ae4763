"""Class `cuts` of the fuzz: what a cut left is judged, and the simulator stands it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from flashbed.bench.fuzz.campaign import CampaignPlan, Report, fuzz
from flashbed.bench.fuzz.cuts import CutsBench
from flashbed.bench.fuzz.generator import generate
from flashbed.bench.fuzz.program import FoundCut
from flashbed.bench.fuzz.report import block, summary
from flashbed.bench.fuzz.shrink import Budget
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.base import PLAIN, Batch, Cut, Program, RunOptions, Target
from flashbed.targets.sim import SimTarget


class Forgetful(SimTarget):
    """A simulator whose surveys miss the file `a`."""

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        for batch in super().run(programs, options):
            kept = [
                replace(survey, files=tuple(file for file in survey.files if file.path != "a"))
                for survey in batch.surveys
            ]
            yield replace(batch, surveys=tuple(kept))


def ran(plan: CampaignPlan, target: Target) -> Report:
    report = Report(plan=plan)
    bench = CutsBench([target], load_board("emulated"), load_kernel("6.1"))
    fuzz(plan, bench, report=report, progress=lambda *_: None, stopped=lambda: False)
    return report


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("fs", "without"), [("jffs2", ()), ("yaffs2", ("truncate", "trunc")), ("ubifs", ())]
)
def test_two_hundred_programs_recover(fs: str, without: tuple[str, ...]) -> None:
    """A truncation of YAFFS2 is not atomic (evidence/power-cuts.md)."""
    report = ran(
        CampaignPlan(kind="cuts", file_systems=(fs,), cases=200, without=without), SimTarget()
    )
    assert [block(found, report, "--on sim") for found in report.found] == []
    assert (report.exact, report.errors, dict(report.refused)) == (200, [], {}), summary(report)


@pytest.mark.parametrize(
    ("fs", "without"), [("jffs2", ()), ("yaffs2", ("truncate", "trunc")), ("ubifs", ())]
)
def test_programs_of_version_2_recover(fs: str, without: tuple[str, ...]) -> None:
    report = ran(
        CampaignPlan(kind="cutcalls", file_systems=(fs,), cases=60, without=without), SimTarget()
    )
    assert [block(found, report, "--on sim") for found in report.found] == []
    assert (report.exact, report.errors, dict(report.refused)) == (60, [], {}), summary(report)


def test_programs_of_version_2_have_what_only_cuts_judge() -> None:
    names = {step.name for seed in range(60) for step in generate("cutcalls", "ubifs", seed).body}
    wanted = {"data", "link", "symlink", "mmap", "store", "msync", "copy", "task", "syncfs"}
    assert names >= wanted


@pytest.mark.parametrize("kind", ["cuts", "cutcalls"])
def test_a_file_that_is_gone_is_found(kind: str) -> None:
    report = ran(
        CampaignPlan(kind=kind, file_systems=("jffs2",), cases=40, shrink=False), Forgetful()
    )
    assert report.found
    difference = report.found[0].difference
    assert (difference.kind, difference.left) == ("cut", "recovered")
    assert difference.right.startswith("lost: a: ")


def test_a_cut_that_was_found_is_made_again_in_shorter_programs() -> None:
    """A cut drawn from the candidate's name did not even show in the whole program."""
    plan = CampaignPlan(
        kind="cuts", file_systems=("jffs2",), seed=9307, cases=1, budget=Budget(calls=4)
    )
    (found,) = ran(plan, SimTarget()).found
    assert found.shrunk is not None
    assert len(found.shrunk.case.body) < len(found.case.body)
    assert found.shrunk.difference.cut is not None
    assert found.difference.cut is not None
    assert found.shrunk.difference.cut.cut.seed == found.difference.cut.cut.seed


@pytest.mark.parametrize(
    ("changes", "places"), [(30, [12]), (25, [7, 12]), (18, [12]), (10, []), (31, [12, 13])]
)
def test_what_was_taken_out_was_before_the_cut_or_behind_it(
    changes: int, places: list[int]
) -> None:
    found = FoundCut(Cut(12, 99), changes=30)
    assert found.cuts(changes) == tuple(Cut(place, 99) for place in places)


def test_every_truncation_stands_between_syncs() -> None:
    truncations = 0
    for seed in range(200):
        measured = generate("cuts", "ubifs", seed).measured
        for before, operation in pairwise(measured):
            assert operation.name not in ("remount", "drop_caches")
            if operation.name == "truncate":
                truncations += 1
                assert before.name == "sync"
    assert truncations > 20
