"""`flashbed lifetime PRODUCT.toml`: the programs and updates of a product, on each of its stacks.

Also prints several flashes beside each other. docs/reference/product-file.md has the file's keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flashbed.answers.budgets.budget import ProductBudget, read_budget
from flashbed.base.errors import InputError
from flashbed.base.human import aligned
from flashbed.base.paths import shown
from flashbed.cli.remarks import say_doubts
from flashbed.cli.run import target_names
from flashbed.cli.show import RESULTS
from flashbed.cli.worn_cases import checked_boards, on_target, worn_cases

if TYPE_CHECKING:
    from flashbed.answers.lifetimes.mix import Mix
    from flashbed.answers.lifetimes.subject import Subject

__all__ = ["print_compared", "product_mixes"]


def product_mixes(
    path: Path, settings: Sequence[str], *, chosen: str | None, on: str | None, out: Path | None,
    endurance: int | None,
) -> list[Mix]:  # fmt: skip
    """The programs of a product on each flash that they share. Raises `InputError`.

    `chosen` is the only stack; None for all.
    """
    from flashbed.api.product_runs import mixes_with_updates

    budget = _with_stacks(read_budget(path), chosen)
    worn = _worn(budget, settings, on=on, out=out, endurance=endurance)
    return [
        mix for stack in budget.stack for mix in mixes_with_updates(budget, stack, worn[stack.name])
    ]


def _with_stacks(budget: ProductBudget, chosen: str | None) -> ProductBudget:
    """The product with one of its stacks."""
    if chosen is None:
        return budget
    stacks = [stack for stack in budget.stack if stack.name == chosen]
    if not stacks:
        there_are = ", ".join(stack.name for stack in budget.stack)
        where = shown(budget.path)
        raise InputError(f"--stack {chosen}: no such stack in {where}; there are {there_are}")
    return budget.model_copy(update={"stack": tuple(stacks)})


def _worn(
    budget: ProductBudget, settings: Sequence[str], *, on: str | None, out: Path | None,
    endurance: int | None,
) -> Mapping[str, Mapping[str, list[Subject]]]:  # fmt: skip
    """Stack -> program -> its cases; all are checked before one of them runs."""
    from flashbed.api.product_runs import product_runs

    worn: dict[str, dict[str, list[Subject]]] = {}
    (target, *_), usual = target_names([on or "sim"]), RESULTS / "lifetime"
    runs = [
        replace(run, planned=on_target(run.experiment, run.planned, on))
        for run in product_runs(budget, settings=settings, target=target, out=out, usual=usual)
    ]
    for run in runs:
        say_doubts(checked_boards(run.planned, endurance))
    for run in runs:
        worn.setdefault(run.stack.name, {})[run.program.name] = worn_cases(
            run.experiment,
            run.planned,
            on=on,
            directory=run.directory,
            rounds=run.program.runs_per_day,
        )
    return worn


def print_compared(judged: Sequence[tuple[Mix, int]]) -> None:
    """Prints a line for each flash, with what tells it from the others, and its endurance."""
    from flashbed.answers.lifetimes.estimate_text import digits_small
    from flashbed.answers.lifetimes.given import UPDATE
    from flashbed.api.product_runs import choice_words

    mixes = [mix for mix, _ in judged]
    lines = [["flash", "erases a day", "hottest block", "updates", "most wear", "lifetime"]]
    for (mix, cycles), choice in zip(judged, choice_words(mixes), strict=True):
        found, part = mix.lasting(cycles), mix.largest(cycles)
        rows = mix.rows()
        each = [row["erases_per_day"] for row in rows]
        shares = [row["share"] for row in rows if row["program"].startswith(UPDATE)]
        block = None if found is None else mix.hottest(found, cycles).in_ten_years
        lines.append(
            [
                choice,
                "-" if None in each else digits_small(sum(each)),
                "-" if block is None else f"{block:,.0f}",
                "-" if None in shares or not shares else f"{sum(shares):.1%}",
                "-" if part is None else f"{part.name} {part.share:.1%}",
                mix.answer(found),
            ]
        )
    print("\n".join(aligned(lines)))
    print("hottest block: its erases in ten years, at most; one flash alone shows its parts")
