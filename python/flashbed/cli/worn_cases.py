"""Cases run with their wear, once and until free space was used up: what years are made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flashbed.answers.lifetimes.given import cycles_of
from flashbed.base.errors import InputError, RunError
from flashbed.cli.progress import say
from flashbed.cli.run import measure, target_names

if TYPE_CHECKING:
    from flashbed.answers.lifetimes.subject import Subject
    from flashbed.plan.experiment import Experiment
    from flashbed.plan.planned import Plan
    from flashbed.running.runner import TargetOutcome
    from flashbed.stack.profiles import Board
    from flashbed.targets.ssh.address import ChosenTarget

__all__ = ["aged_cases", "checked_boards", "on_target", "table_name", "worn_cases"]


def table_name(target: str) -> str:
    """A target's name in tables."""
    from flashbed.targets import BOARD
    from flashbed.targets.ssh.address import is_address

    (name,) = target_names([target])[:1]
    return BOARD if is_address(name) else name


def on_target(experiment: Experiment, planned: Plan, on: str | None) -> Plan:
    """The cases that run on a target. Raises `InputError` if there is none."""
    from flashbed.plan.planned import as_plan

    (target,) = target_names([on or "sim"])[:1]
    left = as_plan([item for item in planned if target in item.targets])
    if not left:
        raise InputError(f"--on {target}: none of the chosen cases of {experiment.id} runs on it")
    return left


def worn_cases(
    experiment: Experiment, planned: Plan, *, on: str | None, directory: Path,
    rounds: float | None,
) -> list[Subject]:  # fmt: skip
    """Cases, run once and until free space was used, with wear.

    The directory of results may hold other cases too.
    """
    from flashbed.api.replays import time_notes

    (target,) = target_names([on or "sim"])[:1]
    outcomes, unavailable = _measured(experiment, planned, target, directory)
    if unavailable or not any(outcome.measured + outcome.kept for outcome in outcomes):
        raise RunError(f"nothing of {experiment.id} could be run on {target}")
    names = [item.case.case_id for item in planned]
    if rounds is None:  # else its own time decides nothing
        for note in time_notes(directory, experiment, planned, names):
            say(f"flashbed: {note}")
    return aged_cases(
        experiment, planned, target=target, directory=directory, rounds=rounds, names=names
    )


def checked_boards(planned: Plan, endurance: int | None) -> list[Board]:
    """The boards of these cases. Raises `InputError` if one's endurance is needed and unknown."""
    from flashbed.stack.changes import OF_BOARD

    axes = ("board", *OF_BOARD)
    kinds = {tuple(str(getattr(item.case, name)) for name in axes): item.case for item in planned}
    boards = [each.profile() for each in kinds.values()]
    for board in boards if endurance is None else ():
        cycles_of(board)
    return boards


def _measured(
    experiment: Experiment, cases: Plan, target: ChosenTarget, directory: Path
) -> tuple[list[TargetOutcome], list[ChosenTarget]]:
    from flashbed.running.ways import Way

    return measure(experiment, cases, targets=[target], out=directory, traces=["wear"], way=Way())


def aged_cases(
    experiment: Experiment, planned: Plan, *, target: ChosenTarget, directory: Path,
    rounds: float | None, names: Sequence[str],
) -> list[Subject]:  # fmt: skip
    """The named cases of a folder with wear, after they ran until free space was used up."""
    from flashbed.answers.lifetimes.observed import cases_of
    from flashbed.api.replayed_often import aged_by

    table = table_name(str(target))

    def read() -> list[Subject]:
        return cases_of(directory, rounds, case_ids=names, target=table)

    return aged_by(
        experiment,
        planned,
        target=table,
        run=lambda cases: _measured(experiment, cases, target, directory),
        read=read,
        say=lambda line: say(f"flashbed: {line}"),
    )
