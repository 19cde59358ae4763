"""Mutations of a recording: valid programs, the same for a seed, and a wrong target is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.bench.fuzz.bench import Bench
from flashbed.bench.fuzz.campaign import CampaignPlan
from flashbed.bench.fuzz.mutations import RecordedSource
from flashbed.bench.fuzz.shrink import Budget
from flashbed.program.imports.strace_trace import import_strace
from flashbed.program.operations import parse
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.base import PLAIN, Batch, Program, RunOptions
from flashbed.targets.sim import SimTarget
from tests.layers.fuzz.test_fuzz import ran
from tests.support import PROJECT

SHELL = PROJECT / "tests" / "corpus" / "imports" / "shell.strace"
SEEDS = range(60)


class WithoutRemount(SimTarget):
    """A kernel whose file system stays mounted: a change that only mutations have."""

    name = "uml"
    software_time = True

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        staying = [replace(one, body=one.body.replace("remount", "pause 1")) for one in programs]
        return super().run(staying, options)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A shell that writes a log, copies it and removes a folder; one child of it."""
    import_strace(SHELL, tmp_path / "shell.rec", None)
    return tmp_path / "shell.rec"


@pytest.mark.extension
@pytest.mark.parametrize("fs", ["jffs2", "ubifs", "yaffs2"])
def test_a_seed_makes_one_valid_program(recording: Path, fs: str) -> None:
    made = RecordedSource(recording, "6.1")
    cases = [made.program(fs, seed) for seed in SEEDS]
    assert cases == [RecordedSource(recording, "6.1").program(fs, seed) for seed in SEEDS]
    texts = {case.text for case in cases}
    assert len(texts) > 50
    for case in cases:
        assert [str(one) for one in parse(case.text)][-1] == str(case.body[-1])
    names = {one.name for case in cases for one in case.measured}
    assert {"symlink", "rename", "remount", "pause", "sync", "drop_caches"} <= names


@pytest.mark.extension
def test_seed_0_is_the_recording(recording: Path) -> None:
    made = RecordedSource(recording, "6.1")
    zero = made.program("ubifs", 0)
    others = [made.program("ubifs", seed) for seed in range(1, 20)]
    assert {one.prepare for one in others} == {zero.prepare}
    # A change of something that is not there is none.
    assert sum(one.body != zero.body for one in others) > 15


@pytest.mark.extension
def test_a_target_that_is_wrong_is_found_and_the_program_made_shorter(
    recording: Path,
) -> None:
    board, kernel = load_board("emulated"), load_kernel("6.1")
    made = RecordedSource(recording, "6.1")
    plan = CampaignPlan(
        kind="reads",
        file_systems=("jffs2",),
        cases=40,
        recorded=made,
        budget=Budget(calls=12, runs=400),
    )
    alike = ran(plan, Bench(SimTarget(), SimTarget(), board, kernel))
    assert (alike.exact, alike.errors) == (40, [])
    found = ran(plan, Bench(SimTarget(), WithoutRemount(), board, kernel)).found[0]
    assert found.difference.kind == "flash"
    assert found.shrunk
    assert len(found.shrunk.case.body) < len(found.case.body)
    assert found.shrunk.case.recorded
    parse(found.shrunk.case.text)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ops").write_text("flashbed-ops 1\n")
    with pytest.raises(InputError, match="no recording"):
        RecordedSource(tmp_path / "a.ops", "6.1")
