"""Chooses what runs portions: this process, several of this machine, or a cluster."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from flashbed.base.errors import InputError
from flashbed.base.processors import JOBS_MAX, processors
from flashbed.plan.case_profiles import Profiles
from flashbed.plan.case_units import WHOLE, Share, portions
from flashbed.plan.planned import Cases
from flashbed.running import processes
from flashbed.running.memory import claim_bytes
from flashbed.running.portion import Part, Portion, PortionTask, RunJob, run_portion
from flashbed.targets import TARGETS
from flashbed.targets.base import Target

__all__ = ["HERE", "Way", "parse_jobs", "parts_of", "start_ahead"]

HERE_CASES = 2000
"""Cases of a portion in this process, which memory holds at once."""
PROCESS_CASES = {False: 4000, True: 16}
"""Fewer cases than these, of the simulator or of guests, finish before processes have started."""
_PORTION_CASES = {False: (64, 2000), True: (1, 64)}
"""Cases of a portion for another process, at least and at most: of the simulator, of guests."""
_PORTIONS_EACH = 8
"""Portions per process, so that the processes end at about the same time."""

_PORTIONS_OF_A_CLUSTER = 64
_DEAR = ("sqlite",)
"""Workloads that take longer to make a program than the simulator takes to run it."""

Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class Way:
    """How cases run: `jobs` at once (None: one per processor), and which share of them.

    Results do not depend on the jobs. Without `processes` only the simulator's threads are used.
    """

    jobs: int | None = None
    share: Share = WHOLE
    processes: bool = True
    scheduler: str | None = None
    """The address of a Dask scheduler whose workers run all cases."""

    @property
    def at_once(self) -> int:
        """The number of jobs."""
        return self.jobs or processors()


HERE = Way(processes=False)
"""In this process."""


def parse_jobs(jobs: int | None) -> int | None:
    """Checks `--jobs`. Raises `InputError`."""
    if jobs is not None and not 1 <= jobs <= JOBS_MAX:
        raise InputError(f"--jobs {jobs}: must be from 1 to {JOBS_MAX}")
    return jobs


def start_ahead(way: Way, cases: int) -> None:
    """Starts the processes that this many cases of the simulator need, before they are planned."""
    if way.processes and way.at_once > 1 and cases >= PROCESS_CASES[False]:
        processes.start_ahead(way.at_once)


def parts_of(
    job: RunJob,
    units: Iterator[Cases],
    *,
    cases: int,
    target: Target,
    below: Path,
    way: Way,
    given: tuple[Profiles, Mapping[str, str]],
    progress: Progress,
) -> Iterator[tuple[int, Part]]:
    """Yields the parts of all units in any order, each with the number of its portion.

    `cases` is the number of cases of all units. `given` has the cases' profiles and the keys of
    existing results. Parts are folders below `below`, which the caller moves. Raises what the
    target raises.
    """
    profiles, finished = given
    jobs = way.at_once

    def portion_of(numbered: tuple[int, Cases]) -> Portion:
        number, own = numbered
        there = {}
        if finished:
            there = {name: finished[name] for case in own if (name := case.case_id) in finished}
        return Portion(number, own, profiles.only(own), there)

    def portions_of(wanted: int) -> Iterator[Portion]:
        own = _portions(units, job, target=target, cases=cases, wanted=wanted)
        return map(portion_of, enumerate(own))

    if way.scheduler is not None:
        from flashbed.running.cluster import parts_of_cluster

        if target.name not in TARGETS:
            raise InputError(f"--scheduler {way.scheduler}: cannot reach a board; run without it")
        made = portions_of(_PORTIONS_OF_A_CLUSTER)
        yield from parts_of_cluster(
            way.scheduler, job, portions=made, below=below, progress=progress
        )
        return
    some = list(itertools.islice(units, 2))
    units = itertools.chain(some, units)
    if way.processes and len(some) > 1 and _worth_processes(target, cases, jobs):
        made = portions_of(jobs * _PORTIONS_EACH)
        job = replace(job, threads=1)
        tasks = (
            (
                PortionTask(job, portion, below),
                claim_bytes(target.apart, portion.profiles.boards.values()),
            )
            for portion in made
        )
        for task, part in processes.run_in_processes(tasks, jobs, progress):
            yield task.number, part
        return
    job = replace(job, threads=jobs)
    done = 0
    for portion in map(portion_of, enumerate(portions(units, HERE_CASES))):

        def counted(what: str, cases_done: int, before: int = done) -> None:
            progress(what, before + cases_done)

        for part in run_portion(job, portion, target=target, below=below, progress=counted):
            yield portion.number, part
        done += len(portion.cases)


def _portions(
    units: Iterator[Cases], job: RunJob, *, target: Target, cases: int, wanted: int
) -> Iterator[Cases]:
    """About the wanted number of portions of all cases."""
    least, most = _PORTION_CASES[target.apart.boots]
    size = min(most, max(least, cases // wanted))
    # Only where programs are dear: results that come in the cases' order are merged faster.
    dear = job.run_facts.workload.kind in _DEAR
    return portions(units, size, min(most, 2 * size), by_program=dear)


def _worth_processes(target: Target, cases: int, jobs: int) -> bool:
    if jobs == 1 or target.name not in TARGETS:
        return False
    return cases >= PROCESS_CASES[target.apart.boots]
