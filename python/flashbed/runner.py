"""Runs the cases of an experiment on a target and keeps what comes back.

The one place where an experiment, a target and a run directory meet. Portions of the cases run
wherever `running/` has them run; what comes of them is moved into the directory, and merged in the
experiment's order at the end.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import polars as pl

from flashbed import paths
from flashbed.formats.names import escaped
from flashbed.plan.case_units import units
from flashbed.plan.experiment import Experiment, Planned
from flashbed.running.portion import Job, Part, energy_code
from flashbed.running.programs import Asked, Profiles
from flashbed.running.ways import HERE, Way, parts_of
from flashbed.tables.run_directory import RunDirectory
from flashbed.targets import code_sha256
from flashbed.targets.base import Failure, Target

__all__ = ["Outcome", "commit", "run_target"]

_PARTS = 1_000_000
"""More than come of a portion."""


@dataclass(frozen=True)
class Outcome:
    """What came of running an experiment on a target: numbers of cases, and what failed.

    `not_measured` are the cases that the target lacks something for, which is no failure.
    """

    target: str
    measured: int
    kept: int
    failures: tuple[Failure, ...]
    not_measured: tuple[Failure, ...] = ()


@cache
def commit() -> str | None:
    """The checkout's commit, `-dirty` if its tracked files differ; null without git or checkout."""
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
    progress: Callable[[str, int, int], None],
    record_wear: bool = False,
    conditions: str = "",
    way: Way = HERE,
) -> Outcome:
    """Runs what is planned for a target and not there yet; the directory is whole at any time.

    `progress(what, cases_done, cases)` is called as it goes. Raises `Unavailable` and `InputError`;
    a case that fails is in the outcome. What the experiment itself asks to be traced is traced in
    any case. `conditions` is what results depend on besides the programs. A case whose power cuts
    could not all be made is kept, and run again next time.
    """
    cases = [item.case for item in planned if target.name in item.targets]
    own = way.share.units(units(cases, target.apart.together))
    total = sum(map(len, own))
    profiles = Profiles.of(case for unit in own for case in unit)
    job = Job(
        asked=Asked.by(experiment),
        target=target.name,
        trace_flash=trace_flash or "flash" in experiment.experiment.trace,
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
    came = _Came()

    def report(what: str, done: int) -> None:
        progress(what, done, total)

    try:
        below = directory.parts()
        for number, part in parts_of(job, own, target, below, way, (profiles, keys), report):
            came.add(directory, number, part, first)
    finally:
        order = [item.case.case_id for item in experiment.planned]
        directory.merge(order)
        failed = came.in_order(order)
        lacking = tuple(failure for failure in failed if failure.not_measured)
        directory.keep_not_measured(target.name, _reasons(lacking))
    real = tuple(failure for failure in failed if not failure.not_measured)
    return Outcome(target.name, came.measured, came.kept, real, lacking)


@dataclass
class _Came:
    """What came of portions so far."""

    failures: list[Failure] = field(default_factory=list)
    measured: int = 0
    kept: int = 0
    parts: Counter[int] = field(default_factory=Counter)
    """Of each portion."""

    def add(self, directory: RunDirectory, portion: int, part: Part, first: int) -> None:
        """Adds a part to the directory. In whatever order they come, they are in the portions'."""
        self.failures += part.failures
        self.measured += part.measured
        self.kept += part.kept
        if part.folder is not None:
            number = first + portion * _PARTS + self.parts[portion]
            directory.take(part.folder, number)
            self.parts[portion] += 1

    def in_order(self, order: Sequence[str]) -> list[Failure]:
        """The failures in the order of their cases."""
        if not self.failures:
            return []
        place = {case_id: at for at, case_id in enumerate(order)}
        return sorted(self.failures, key=lambda failure: place.get(failure.case_id, len(place)))


def _reasons(lacking: Sequence[Failure]) -> pl.DataFrame:
    rows = [(failure.case_id, escaped(failure.message)) for failure in lacking]
    columns = {"case_id": pl.String(), "reason": pl.String()}
    return pl.DataFrame(rows, schema=columns, orient="row")
