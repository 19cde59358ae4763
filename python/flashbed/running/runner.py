"""Runs the cases of an experiment on a target and keeps the results.

Only here do an experiment, a target and a run directory meet. `running/` runs portions of the
cases; their results are moved into the directory, and at the end merged in the experiment's order.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from flashbed.base import paths
from flashbed.plan.case_profiles import Profiles
from flashbed.plan.case_units import WHOLE, units
from flashbed.plan.experiment import Experiment
from flashbed.plan.planned import Cases, Planned, as_plan
from flashbed.results.run_directory import RunDirectory
from flashbed.running.portion import Part, RunJob, code_sha256, energy_code
from flashbed.running.programs import RunFacts
from flashbed.running.ways import HERE, Way, parts_of
from flashbed.stack.names import escaped
from flashbed.targets.base import Failure, Target

__all__ = ["TargetOutcome", "commit", "run_target"]

_PARTS = 1_000_000
"""More parts than any portion has."""


@dataclass(frozen=True, kw_only=True)
class TargetOutcome:
    """The result of running an experiment on a target: numbers of cases, and failures.

    `not_measured` are the cases for which the target lacks something; they are no failures.
    """

    target: str
    measured: int
    kept: int
    failures: tuple[Failure, ...]
    not_measured: tuple[Failure, ...] = ()


@cache
def commit() -> str | None:
    """The checkout's commit, `-dirty` if tracked files differ; null without git or checkout."""
    if not paths.in_checkout():
        return None
    describe = ["git", "-C", str(paths.root()), "describe", "--always", "--abbrev=40", "--dirty"]
    try:
        done = subprocess.run(
            [*describe, "--exclude=*"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def run_target(
    experiment: Experiment,
    planned: Sequence[Planned],
    target: Target,
    directory: RunDirectory,
    *,
    trace_flash: bool,
    trace_waits: bool = False,
    progress: Callable[[str, int, int], None],
    record_wear: bool = False,
    conditions: str = "",
    way: Way = HERE,
) -> TargetOutcome:
    """Runs the planned cases of a target without a result; the directory is always whole.

    Calls `progress(what, cases_done, cases)`. Raises `Unavailable` and `InputError`; failed cases
    are in the outcome. What the experiment asks to be traced is always traced. `conditions` is what
    results depend on besides the programs. A case some of whose power cuts failed is kept, and runs
    again next time.
    """
    cases = as_plan(planned).on(target.name)

    def own() -> Iterator[Cases]:
        return way.share.units(units(cases, target.apart.together))

    if way.share == WHOLE:
        total, profiles = len(cases), Profiles.of(cases)
    else:
        total = sum(map(len, own()))
        profiles = Profiles.of(case for unit in own() for case in unit.of_each_stack())
    job = RunJob(
        run_facts=RunFacts.by(experiment),
        target=target.name,
        trace_flash=trace_flash or "flash" in experiment.experiment.trace,
        trace_waits=trace_waits,
        record_wear=record_wear,
        conditions=conditions,
        code=code_sha256(target.name),
        energy_code=energy_code(),
        commit=commit(),
        threads=1,
    )
    finished = directory.finished()
    keys = {case_id: key for (case_id, name), key in finished.items() if name == target.name}
    directory.keep_sources(experiment.path, profiles.files)
    first = directory.last_part() + 1
    came = _PortionResults()

    def report(what: str, done: int) -> None:
        progress(what, done, total)

    try:
        below = directory.parts()
        given = (profiles, keys)
        for number, part in parts_of(
            job, own(), cases=total, target=target, below=below, way=way, given=given,
            progress=report,
        ):  # fmt: skip
            came.add(directory, number, part, first)
    finally:
        directory.merge(experiment.planned.names)
        failed = came.in_order(experiment.planned.names)
        lacking = tuple(failure for failure in failed if failure.not_measured)
        directory.keep_not_measured(target.name, _reasons(lacking))
    real = tuple(failure for failure in failed if not failure.not_measured)
    return TargetOutcome(
        target=target.name, measured=came.measured, kept=came.kept, failures=real,
        not_measured=lacking,
    )  # fmt: skip


@dataclass
class _PortionResults:
    """Results of portions so far."""

    failures: list[Failure] = field(default_factory=list)
    measured: int = 0
    kept: int = 0
    parts: Counter[int] = field(default_factory=Counter)
    """Failures of each portion."""

    def add(self, directory: RunDirectory, portion: int, part: Part, first: int) -> None:
        """Adds a part; parts are numbered by portion, in whatever order they arrive."""
        self.failures += part.failures
        self.measured += part.measured
        self.kept += part.kept
        if part.folder is not None:
            number = first + portion * _PARTS + self.parts[portion]
            directory.take(part.folder, number)
            self.parts[portion] += 1

    def in_order(self, order: Iterable[str]) -> list[Failure]:
        """The failures in the order of their cases."""
        failed = {failure.case_id for failure in self.failures}
        if not failed:
            return []
        place = {case_id: at for at, case_id in enumerate(order) if case_id in failed}
        last = max(place.values(), default=0) + 1
        return sorted(self.failures, key=lambda failure: place.get(failure.case_id, last))


def _reasons(lacking: Sequence[Failure]) -> pl.DataFrame:
    rows = [(failure.case_id, escaped(failure.message)) for failure in lacking]
    columns = {"case_id": pl.String(), "reason": pl.String()}
    return pl.DataFrame(rows, schema=columns, orient="row")
