"""Turns cases into the programs that a target sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from flashbed.plan.case import Case
from flashbed.plan.case_profiles import Profiles
from flashbed.plan.experiment import Experiment, ExperimentFacts, WorkloadTable
from flashbed.plan.workloads import operations_on
from flashbed.plan.workloads.recorded_program import begins_with
from flashbed.targets.base import Program

__all__ = ["RunFacts", "programs_of", "programs_with"]


@dataclass(frozen=True)
class RunFacts:
    """What an experiment records of its cases, which the cases themselves do not say."""

    id: str
    sha256: str
    facts: ExperimentFacts
    workload: WorkloadTable

    @classmethod
    def by(cls, experiment: Experiment) -> RunFacts:
        """The settings of an experiment."""
        own = experiment.experiment
        return cls(experiment.id, experiment.sha256, own, experiment.workload)


def programs_of(
    experiment: Experiment, cases: Sequence[Case], *, record_wear: bool = False
) -> list[Program]:
    """`programs_with` for cases of an experiment. Raises `InputError` for a bad profile too."""
    return programs_with(
        RunFacts.by(experiment), cases, Profiles.of(cases), record_wear=record_wear
    )


def programs_with(
    run_facts: RunFacts,
    cases: Sequence[Case],
    profiles: Profiles,
    *,
    record_wear: bool = False,
    made: Callable[[int], None] = lambda _: None,
) -> list[Program]:
    """The cases as a target sees them. Raises `InputError` for an impossible case.

    `made` is called with the number made so far: SQLite runs to make some cases.
    """
    record_wear = record_wear or "wear" in run_facts.facts.trace
    programs: list[Program] = []
    for case, stack in zip(cases, profiles.stacks(cases), strict=True):
        prepare, body = operations_on(case, stack, run_facts.workload)
        dump = begins_with(run_facts.workload)
        programs.append(
            Program(
                case_id=case.case_id,
                stack=stack,
                prepare=prepare,
                body=body,
                dump=dump,
                record_wear=record_wear,
                record_flush=True,
                record_requests=case.rounds == 1 and "requests" not in run_facts.facts.omit,
                filled=case.state.fills,
            )
        )
        made(len(programs))
    return programs
