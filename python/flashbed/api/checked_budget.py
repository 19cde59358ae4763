"""A budget's rows from folders of results: `flashbed check` measures and judges them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from flashbed.answers.analysis.compared_choices import case_words, label
from flashbed.answers.budgets.budget import BudgetProgram, BudgetStack, ProductBudget
from flashbed.answers.budgets.limits_held import MEASURES, Row, measures_of
from flashbed.answers.lifetimes.estimate import erases_per_day
from flashbed.answers.lifetimes.given import endurance_of
from flashbed.answers.lifetimes.mix import Mix, mixes_of
from flashbed.answers.lifetimes.subject import Subject
from flashbed.api.comparing import compared_run
from flashbed.base.errors import InputError
from flashbed.base.paths import sha256_of, shown
from flashbed.plan.case_profiles import Profiles
from flashbed.plan.experiment import Experiment, ExperimentError, load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.planned import Plan
from flashbed.results.run_directory import scan_table
from flashbed.running.portion import code_sha256
from flashbed.targets.sim import SimTarget

__all__ = ["TOGETHER", "folder_name", "planned_program", "program_rows", "together_rows"]

TOGETHER = "all programs together"
"""What the output calls the programs of `[together]`."""
_HOW_OFTEN = ': how often does it run? repeat = "1/h" says once an hour'
_WHY = {
    "energy_mj": ": the board's profile has no powers",
    "amplification": ": it wrote nothing",
    "bytes_free": ": the model of this file system does not tell",
    "years": ": nothing wears out, or a call failed",
    "erases_per_day": ": nothing wears out, or a call failed",
}
_PATHS_MAX = 10_000
_NAME_DIGITS = 12


def planned_program(
    budget: ProductBudget, stack: BudgetStack, program: BudgetProgram, what: str
) -> tuple[Experiment, Plan]:
    """The cases of a program on a stack. Raises `InputError`, which names file and place."""
    where = f"{shown(budget.path)}: {stack.name}, {program.name}"
    try:
        experiment = load_experiment(what)
        planned = plan(experiment, parse_settings(budget.settings_of(stack, program)))
    except ExperimentError as why:
        raise InputError(f"{where}: {str(why).replace('--set ', 'set ')}") from None
    if "sim" not in planned.targets:
        raise InputError(f"{where}: none of its cases runs on the simulator")
    return experiment, planned


def folder_name(experiment: Experiment, planned: Plan) -> str:
    """A name for the folder of results that changes with whatever the results depend on.

    Runs that aged a flash count for a lifetime if they are in its folder, so that those of another
    program or profile must be elsewhere.
    """
    found = hashlib.sha256(f"{code_sha256(SimTarget.name)} {_digest(experiment)}".encode())
    cases = [each.case for each in planned]
    for case, stack in zip(cases, Profiles.of(cases).stacks(cases), strict=True):
        found.update(f" {case.case_id} {stack.sha256}".encode())
    return found.hexdigest()[:_NAME_DIGITS]


def program_rows(
    directory: Path, experiment: Experiment, planned: Plan, *, stack: BudgetStack,
    program: BudgetProgram, limits: Mapping[str, float], worn: Sequence[Subject],
    lacking: Mapping[str, str],
) -> list[Row]:  # fmt: skip
    """A row for each case of a program on a stack. `worn` are its subjects of `lifetime`.

    `lacking` says of a case why it could not be measured; nothing is known of it then.
    """
    cases = [each.case for each in planned if "sim" in each.targets]
    choices = case_words(cases)
    by_name = {subject.name: subject for subject in worn}
    file, settings = _digest(experiment), " ".join((*stack.set, *program.set))
    rows = []
    for case in cases:
        subject = by_name.get(case.case_id)
        known = [] if subject is None else [subject]
        why = lacking.get(case.case_id)
        found = None if why else compared_run(directory, [case.case_id], worn=known, ours=True)
        measured = {} if found is None else found.table.rows.to_dicts()[0]
        if subject is not None and subject.workload is not None and subject.workload.lasts:
            measured["erases_per_day"] = erases_per_day(subject.observed)
        rows.append(
            Row(
                stack=stack.name,
                program=program.name,
                choice=choices[case.case_id],
                measures=measures_of(measured),
                limits=limits,
                inputs={
                    "the program's file": file,
                    "settings": settings,
                    **({} if why else _profiles(directory, case.case_id)),
                },
                why=_why(subject, why),
            )
        )
    return rows


def together_rows(
    stack: BudgetStack, parts: Mapping[str, Sequence[Subject]], limits: Mapping[str, float]
) -> list[Row]:
    """A row for each flash that all programs of a stack share."""
    mixes = mixes_of(parts)
    axes = [axis for axis in mixes[0].axes if len({str(mix.axes[axis]) for mix in mixes}) > 1]
    return [
        Row(
            stack=stack.name,
            program=TOGETHER,
            choice=label(mix.axes, axes) if axes else "",
            measures=_of_mix(mix),
            limits=limits,
            inputs={},
            why=dict.fromkeys(("years", "erases_per_day"), ": a call of a program failed"),
        )
        for mix in mixes
    ]


def _of_mix(mix: Mix) -> dict[str, float | None]:
    cycles, _ = endurance_of(mix.parts[0], None)
    found = mix.lasting(cycles)
    daily = [row["erases_per_day"] for row in mix.rows()]
    return {
        "years": None if found is None else found.low,
        "erases_per_day": None if None in daily else sum(daily),
    }


def _profiles(directory: Path, name: str) -> dict[str, str]:
    """The hashes of the profiles that a case was measured with."""
    columns = {"board_sha256": "the board's profile", "kernel_sha256": "the kernel's profile"}
    table = scan_table(directory, "cases", ours=True)
    found = table.filter(pl.col("case_id") == name).select(*columns).collect()
    if found.is_empty():
        return {}
    return {called: str(found[column][0]) for column, called in columns.items()}


def _digest(experiment: Experiment) -> str:
    """A hash of what runs: a recording, operations, or an experiment."""
    work = experiment.workload
    if work.recording is not None:
        return _of_files(_files(Path(work.recording)))
    if work.operations is not None:
        return hashlib.sha256(work.operations.encode()).hexdigest()
    return experiment.sha256


def _files(path: Path) -> list[Path]:
    """A file, or the files of a folder."""
    return sorted(path.rglob("*"))[:_PATHS_MAX] if path.is_dir() else [path]


def _of_files(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        if file.is_file():
            found.update(sha256_of(file).encode())
    return found.hexdigest()


def _why(subject: Subject | None, lacking: str | None) -> dict[str, str]:
    """What is said of a measure that is not known."""
    if lacking is not None:
        return dict.fromkeys(MEASURES, f": {lacking}")
    why = dict(_WHY)
    work = None if subject is None else subject.workload
    if work is None or work.rounds_per_day is None:
        why |= {"years": _HOW_OFTEN, "erases_per_day": _HOW_OFTEN}
    return why
