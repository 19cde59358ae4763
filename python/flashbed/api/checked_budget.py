"""A budget's rows from folders of results: `flashbed check` measures and judges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from flashbed.answers.analysis.compared_choices import case_words
from flashbed.answers.budgets.budget import BudgetProgram, BudgetStack, ProductBudget
from flashbed.answers.budgets.limits_held import MEASURES, Row, measures_of
from flashbed.answers.lifetimes.estimate import erases_per_day
from flashbed.answers.lifetimes.given import endurance_of
from flashbed.answers.lifetimes.mix import Mix
from flashbed.answers.lifetimes.subject import Subject
from flashbed.api.comparing import compared_run
from flashbed.api.product_runs import choice_words, digest_of, mixes_with_updates
from flashbed.plan.experiment import Experiment
from flashbed.plan.planned import Plan
from flashbed.results.run_directory import scan_table

__all__ = ["TOGETHER", "program_rows", "together_rows"]

TOGETHER = "all programs together"
"""What the output calls the programs of `[together]`."""
_HOW_OFTEN = ': how often does it run? rate = "1/h" says once an hour'
_WHY = {
    "energy_mj": ": the board's profile has no powers",
    "amplification": ": it wrote nothing",
    "bytes_free": ": the model of this file system does not tell",
    "years": ": nothing wears out, or a call failed",
    "erases_per_day": ": nothing wears out, or a call failed",
}


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
    file, settings = digest_of(experiment), " ".join((*stack.set, *program.set))
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
    budget: ProductBudget, stack: BudgetStack, parts: Mapping[str, Sequence[Subject]]
) -> list[Row]:
    """A row for each flash that all programs and updates of a stack share."""
    mixes = mixes_with_updates(budget, stack, parts)
    return [
        Row(
            stack=stack.name,
            program=TOGETHER,
            choice=choice,
            measures=_of_mix(mix),
            limits=budget.together.given,
            inputs={},
            why=dict.fromkeys(("years", "erases_per_day"), ": a call of a program failed"),
        )
        for mix, choice in zip(mixes, choice_words(mixes), strict=True)
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


def _why(subject: Subject | None, lacking: str | None) -> dict[str, str]:
    """What is said of a measure that is not known."""
    if lacking is not None:
        return dict.fromkeys(MEASURES, f": {lacking}")
    why = dict(_WHY)
    work = None if subject is None else subject.workload
    if work is None or work.rounds_per_day is None:
        why |= {"years": _HOW_OFTEN, "erases_per_day": _HOW_OFTEN}
    return why
