"""The command `check`: holds a product's programs to their flash budget."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed import __version__
from flashbed.answers.budgets.baseline import Baseline, read_baseline, write_baseline
from flashbed.answers.budgets.budget import ProductBudget, read_budget
from flashbed.answers.budgets.limits_held import MEASURES, JudgedLine, Row, judged, text_of
from flashbed.base.errors import CasesFailed, InputError, RunError
from flashbed.base.files import output as written
from flashbed.base.paths import shown
from flashbed.cli.junit import junit_of
from flashbed.cli.laid_out import markdown_table
from flashbed.cli.options import Jobs, Out, formats
from flashbed.cli.progress import say
from flashbed.cli.remarks import warn
from flashbed.cli.run import conclude, measure
from flashbed.cli.show import RESULTS
from flashbed.cli.worn_cases import aged_cases, checked_boards
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed.answers.lifetimes.subject import Subject
    from flashbed.api.product_runs import ProductRun
    from flashbed.running.runner import TargetOutcome
    from flashbed.running.ways import Way

__all__ = ["register"]

_OF_WEAR = {"years", "erases_per_day"}
_HEADS = ("stack", "program", "measure", "value", "limit", "baseline", "verdict")


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "check",
        epilog="Examples: `flashbed check budget.toml` · `flashbed check budget.toml --update` · "
        "`flashbed check budget.toml --junit flash.xml --format markdown`",
    )(check)


@dataclass(frozen=True, kw_only=True)
class _BudgetRun:
    """A program on a stack, and its limits."""

    of: ProductRun
    limits: Mapping[str, float]
    has_wear: bool


def check(
    budget: Annotated[
        Path,
        typer.Argument(metavar="PRODUCT.toml", help="docs/reference/product-file.md: its keys."),
    ],
    *,
    update: Annotated[
        bool, typer.Option("--update", help="Write what was measured to the baseline beside it.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Also write JUnit XML.")
    ] = None,
    out: Out = None,
    jobs: Jobs = None,
    output: Annotated[str, formats("markdown")] = "text",
) -> None:
    """Runs a product's programs on its stacks; fails if one costs more than the budget says.

    Exit status 1 names each measure that breaks a limit, or, without one, is worse than the
    baseline. docs/guide/flash-budget.md is the guide.
    """
    from flashbed.running.ways import Way

    found = read_budget(budget)
    kept = read_baseline(found.baseline)
    if kept is None and not update and not _has_limits(found):
        raise InputError(
            f"{shown(budget)}: no limits and no baseline; --update writes {shown(found.baseline)}"
        )
    runs = list(_runs(found, out))
    warn(line for run in runs for line in run.of.planned.doubts())
    rows = _measured(found, runs, Way(jobs))
    before = None if kept is None or update else kept.measures
    lines = list(judged(rows, before, found.watched))
    if junit is not None:
        with written(junit) as new:
            new.write_text(junit_of(found.title, lines), encoding="utf-8")
    notes = [] if update else _notes(kept, rows, lines)
    _print(found, lines, notes, output)
    if update:
        write_baseline(found.baseline, rows, __version__)
        say(f"flashbed: {shown(found.baseline)}: written; commit it beside {budget.name}")
    broken = sum(line.breaks for line in lines)
    if broken:
        raise RunError(f"{broken} of {len(lines)} measures break the budget {shown(budget)}")


def _has_limits(budget: ProductBudget) -> bool:
    each = (budget.limits, budget.together, *(program.limits for program in budget.program))
    return any(limits.given for limits in each)


def _runs(budget: ProductBudget, out: Path | None) -> Iterator[_BudgetRun]:
    """All programs on all stacks, checked before any of them runs."""
    from flashbed.api.product_runs import product_runs

    for run in product_runs(budget, target="sim", out=out, usual=RESULTS / "budget"):
        limits = budget.limits_of(run.program)
        has_wear = run.program.runs_per_day is not None or bool(_OF_WEAR & limits.keys())
        if has_wear:
            checked_boards(run.planned, None)
        yield _BudgetRun(of=run, limits=limits, has_wear=has_wear)


def _measured(budget: ProductBudget, runs: Sequence[_BudgetRun], way: Way) -> list[Row]:
    """Runs everything; the rows in the order of the budget, those of all programs together last."""
    from flashbed.api.checked_budget import program_rows, together_rows

    rows: list[Row] = []
    worn: dict[str, dict[str, Sequence[Subject]]] = {}
    for run in runs:
        traces = ("wear",) if run.has_wear else ()
        of = run.of
        outcomes, _ = measure(
            of.experiment, of.planned, targets=["sim"], out=of.directory, traces=traces, way=way
        )
        lacking = _lacking(outcomes)
        subjects = [] if lacking else _worn(run)
        worn.setdefault(of.stack.name, {})[of.program.name] = subjects
        rows += program_rows(
            of.directory, of.experiment, of.planned, stack=of.stack, program=of.program,
            limits=run.limits, worn=subjects, lacking=lacking,
        )  # fmt: skip
    if budget.together.given:
        # Where a program could not run, its line has said so.
        for stack in (each for each in budget.stack if all(worn[each.name].values())):
            rows += together_rows(budget, stack, worn[stack.name])
    return rows


def _lacking(outcomes: Sequence[TargetOutcome]) -> Mapping[str, str]:
    """Cases that failed or cannot run, and why: lines of the budget say it, in JUnit XML too."""
    try:
        conclude(outcomes)
    except CasesFailed as why:
        return why.failures
    return {}


def _worn(run: _BudgetRun) -> list[Subject]:
    from flashbed.plan.planned import as_plan

    if not run.has_wear:
        return []
    there = as_plan([each for each in run.of.planned if "sim" in each.targets])
    names = [each.case.case_id for each in there]
    return aged_cases(
        run.of.experiment, there, target="sim", directory=run.of.directory,
        rounds=run.of.program.runs_per_day, names=names,
    )  # fmt: skip


def _notes(kept: Baseline | None, rows: Sequence[Row], lines: Sequence[JudgedLine]) -> list[str]:
    """What changed since the baseline of rows that differ from it, and what it lacks."""
    if kept is None:
        return []
    differ = {line.row.key for line in lines if line.verdict in ("worse", "better")}
    said = [
        f"{row.label}: since the baseline changed: {', '.join(changed)}"
        for row in rows
        if row.key in differ and (changed := kept.changed(row, __version__))
    ]
    said += [f"{name}: in the baseline, no longer in the budget" for name in kept.missing(rows)]
    if any(line.verdict in ("better", "new") for line in lines):
        said.append("--update keeps what is better or new")
    return said


def _print(
    budget: ProductBudget, lines: Sequence[JudgedLine], notes: Sequence[str], output: str
) -> None:
    broken = [line for line in lines if line.breaks]
    if output == "json":
        print(json.dumps(_json(budget, lines, notes), indent=1))
        return
    title = f"{escaped(budget.title)}: {_counted(lines)}"
    cells = [[escaped(cell) for cell in _cells(line)] for line in lines if _is_shown(line)]
    if output == "markdown":
        print(f"### {title}\n")
        print(markdown_table([list(_HEADS), *cells], {3, 4, 5}))
    else:
        print(title)
        _print_aligned([list(_HEADS), *cells])
    if broken or notes:
        print()
    for said in (*(line.text for line in broken), *notes):
        print(f"- {escaped(said)}" if output == "markdown" else escaped(said))


def _is_shown(line: JudgedLine) -> bool:
    """Whether it has a limit of the file, or is not as in the baseline."""
    if line.measure == "failed_calls" and line.verdict == "holds" and not line.limit:
        return False
    return line.verdict != "same"


def _counted(lines: Sequence[JudgedLine]) -> str:
    broken = sum(line.breaks for line in lines)
    same = sum(line.verdict == "same" for line in lines)
    measures = "1 measure" if len(lines) == 1 else f"{len(lines):,} measures"
    said = f"{measures}, {broken or 'none'} broken"
    return said + (f", {same:,} as in the baseline" if same else "")


def _cells(line: JudgedLine) -> list[str]:
    row = line.row
    program = f"{row.program}, {row.choice}" if row.choice else row.program
    values = (line.value, line.limit, line.kept)
    numbers = [text_of(line.measure, value) for value in values]
    return [row.stack, program, MEASURES[line.measure].called, *numbers, line.verdict]


def _print_aligned(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if at in (3, 4, 5) else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _json(
    budget: ProductBudget, lines: Sequence[JudgedLine], notes: Sequence[str]
) -> dict[str, Any]:
    return {
        "budget": str(budget.path),
        "name": budget.title,
        "flashbed": __version__,
        "broken": sum(line.breaks for line in lines),
        "lines": [
            {
                "stack": line.row.stack, "program": line.row.program, "choice": line.row.choice,
                "measure": line.measure, "value": line.value, "limit": line.limit,
                "baseline": line.kept, "verdict": line.verdict, "text": line.text,
            }
            for line in lines
        ],
        "notes": list(notes),
    }  # fmt: skip
