"""What is fitted, what it is held against, and what is then said of a board have no case in common.

The programs of all experiments are many, so they are made once, for all that is asked of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from flashbed.bench import calibration, validation
from flashbed.plan.case import Case
from flashbed.plan.experiment import Experiment, experiment_names, load_experiment
from flashbed.plan.narrowing import plan
from flashbed.running.programs import programs_of
from flashbed.stack.profiles import load_board, load_kernel


def representative(experiment: Experiment, cases: Sequence[Case]) -> list[Case]:
    """Cases with the first seed, and of SQLite the fewest requests: the others prepare the same.

    A seed changes what is drawn, and statements that are measured are not prepared.
    """
    seed, requests = (min(getattr(case, name) for case in cases) for name in ("seed", "requests"))
    few = experiment.workload.kind == "sqlite"
    chosen = [case for case in cases if case.seed == seed]
    return [case for case in chosen if not few or case.requests == requests]


@pytest.mark.long
def test_calibration_validation_and_experiments_have_nothing_in_common() -> None:
    board, kernel = load_board("emulated"), load_kernel("6.1")
    prepared = {
        "calibration": {program.prepare for program in calibration.programs(board, kernel)},
        "reads": {program.prepare for program in validation.programs("reads", board, kernel)},
        "writes": {program.prepare for program in validation.programs("writes", board, kernel)},
    }
    for name in experiment_names():
        experiment = load_experiment(name)
        cases = [item.case for item in plan(experiment)]
        planned = programs_of(experiment, representative(experiment, cases))
        own = {program.prepare for program in planned}
        for suite, others in prepared.items():
            assert own.isdisjoint(others), (name, suite)
    names = list(prepared)
    for at, suite in enumerate(names):
        for other in names[at + 1 :]:
            assert prepared[suite].isdisjoint(prepared[other]), (suite, other)
