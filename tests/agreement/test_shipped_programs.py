"""Recorded programs: what the simulator does to the flash is what the real kernel does.

The programs that ship, replayed on user-mode Linux and on the simulator without software.
"""

from __future__ import annotations

import pytest

from flashbed.plan.experiment import load_experiment
from flashbed.running.programs import programs_of
from flashbed.targets import load_target
from flashbed.targets.base import Program, RunOptions
from tests.support import PROJECT

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(900)]

NAMES = sorted(path.stem for path in (PROJECT / "experiments" / "programs").glob("*.toml"))
COUNTS = ("flash_reads", "flash_programs", "flash_erases", "flush_programs")
KNOWN: dict[tuple[str, str], str] = {}
"""Program and file system -> why the simulator counts otherwise."""


def counts(target: str, programs: list[Program]) -> dict[str, tuple[object, ...]]:
    """Case -> its flash operations. Every case has to run."""
    found = {}
    for batch in load_target(target).run(programs, RunOptions()):
        assert [failure.message for failure in batch.failures] == []
        for row in batch.cases.select("case_id", *COUNTS).iter_rows():
            found[row[0]] = row[1:]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_program_does_the_same_to_the_flash(name: str) -> None:
    experiment = load_experiment(f"programs/{name}")
    planned = [item.case for item in experiment.planned if item.case.fs != "yaffs2"]
    programs = [
        item for item in programs_of(experiment, planned) if (name, item.stack.fs) not in KNOWN
    ]
    kernel = counts("uml", programs)
    assert counts("sim-chip", programs) == kernel
