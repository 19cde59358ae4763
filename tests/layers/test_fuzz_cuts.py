"""Class `cuts` of the fuzz: what a cut left is judged, and the simulator stands it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from flashbed.fuzz.campaign import Plan, Report, fuzz
from flashbed.fuzz.cuts import CutsBench
from flashbed.fuzz.generator import generate
from flashbed.fuzz.report import block, summary
from flashbed.profiles import load_board, load_kernel
from flashbed.targets.base import Batch, Program, Target
from flashbed.targets.sim import SimTarget


class Forgetful(SimTarget):
    """A simulator whose surveys miss the file `a`."""

    def run(
        self,
        programs: Sequence[Program],
        *,
        trace_flash: bool,
        progress: Callable[[str, int], None],
    ) -> Iterator[Batch]:
        for batch in super().run(programs, trace_flash=trace_flash, progress=progress):
            kept = [
                replace(survey, files=tuple(file for file in survey.files if file.path != "a"))
                for survey in batch.surveys
            ]
            yield replace(batch, surveys=tuple(kept))


def ran(plan: Plan, target: Target) -> Report:
    report = Report(plan)
    bench = CutsBench([target], load_board("emulated"), load_kernel("6.1"))
    fuzz(plan, bench, report, lambda *_: None, lambda: False)
    return report


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("fs", "without"), [("jffs2", ()), ("yaffs2", ("truncate", "trunc")), ("ubifs", ())]
)
def test_two_hundred_programs_recover(fs: str, without: tuple[str, ...]) -> None:
    """A truncation of YAFFS2 is not atomic (docs/powercut.md)."""
    report = ran(Plan("cuts", (fs,), cases=200, without=without), SimTarget())
    assert [block(found, report, "sim") for found in report.found] == []
    assert (report.exact, report.errors, dict(report.refused)) == (200, [], {}), summary(report)


def test_a_file_that_is_gone_is_found() -> None:
    report = ran(Plan("cuts", ("jffs2",), cases=40, shrink=False), Forgetful())
    assert report.found
    difference = report.found[0].difference
    assert (difference.kind, difference.left) == ("cut", "recovered")
    assert difference.right.startswith("lost: a: ")


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
