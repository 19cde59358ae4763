"""The command `compare`: every choice in one table, best first, and what follows from it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.answers.lifetimes.given import rate_per_day
from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import shown
from flashbed.cli.boards import all_allowed, shown_target
from flashbed.cli.laid_out import markdown_of, print_table
from flashbed.cli.lifetime import Endurance, Rate, check_endurance
from flashbed.cli.options import Jobs, Out, Set, formats, known
from flashbed.cli.own_command import AfterDashes, What, chosen_program
from flashbed.cli.progress import say
from flashbed.cli.remarks import warn
from flashbed.cli.run import On, check_targets, conclude, measure, target_names
from flashbed.cli.show import RESULTS
from flashbed.cli.worn_cases import aged_cases, checked_boards, table_name
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan, several
from flashbed.plan.planned import as_plan
from flashbed.stack.names import escaped
from flashbed.targets.ssh.address import is_board

if TYPE_CHECKING:
    import polars as pl

    from flashbed.answers.lifetimes.subject import Subject
    from flashbed.api.comparing import ComparedRun
    from flashbed.plan.experiment import Experiment
    from flashbed.plan.planned import Plan
    from flashbed.targets.ssh.address import ChosenTarget

__all__ = ["register"]

_BY = (
    "time", "chip-time", "p50", "p99", "worst", "reads", "writes", "erases", "years", "energy",
    "bytes-left",
)  # fmt: skip
_ROWS_SHOWN = 20
_SENTENCES_SHOWN = 10
_SAME = "a difference below 2 % is called none; --on sim,uml says whether the kernel agrees"
_CALLS = "p50, p99, worst: of the latencies of all system calls that were measured, failed ones too"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "compare",
        cls=AfterDashes,
        context_settings={"allow_extra_args": True},  # to say how a program is compared
        epilog="Examples: `flashbed compare programs/logger --set fs=jffs2,yaffs2,ubifs` · "
        "`flashbed compare program.rec --set fs=ubifs --set compressor=lzo,zlib --rate 1/h` · "
        "`flashbed compare programs/logger --on sim,uml` · "
        "`flashbed compare program.rec --against results/before --format markdown` · "
        "`flashbed compare mine.sql --set database.journal=delete,wal` · "
        "`flashbed compare --set fs=jffs2,ubifs -- ./my-program`",
    )(compare)


def compare(
    context: typer.Context,
    what: What = None,
    *,
    settings: Set = None,
    on: On = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="|".join(_BY), callback=known("--by", _BY),
            help="What is best. Default: time; chip-time where a target does not know the time.",
        ),
    ] = None,
    rate: Rate = None,
    endurance: Endurance = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FOLDER", help="Also print changes from a kept run."),
    ] = None,
    out: Out = None,
    jobs: Jobs = None,
    output: Annotated[str, formats("csv", "markdown")] = "text",
) -> None:  # fmt: skip
    """Compares every combination of settings in one table, the best first, and says what follows.

    Results are kept as `run` keeps them. docs/guide/what-should-i-set.md is the guide.
    """
    from flashbed.api.comparing import compared_run, with_requests
    from flashbed.api.replays import time_notes
    from flashbed.running.ways import Way

    check_endurance(endurance)
    rounds = None if rate is None else rate_per_day(rate)
    selected = parse_settings(settings or [])
    what = chosen_program(context, "compare", what)
    experiment = with_requests(load_experiment(what))
    planned = plan(experiment, selected)
    doubts = planned.doubts()
    targets = all_allowed(target_names(on) or ["sim"], None)
    check_targets(targets, planned, experiment)
    directory = out or RESULTS / experiment.id
    _check(by, rate, against, directory)
    if rounds is not None:
        checked_boards(planned, endurance)
    warn(doubts)
    traces = () if rounds is None else ("wear",)
    outcomes, unavailable = measure(
        experiment, planned, targets=targets, out=directory, traces=traces, way=Way(jobs)
    )
    worn = []
    for target in targets if rounds is not None else ():
        if target not in unavailable:
            worn += _worn(experiment, planned, target, directory=directory, rounds=rounds)
    found = compared_run(
        directory, planned.names, apart=several(selected), by=by, worn=worn, endurance=endurance,
        targets=[table_name(str(target)) for target in targets], against=against,
        ours=any(outcome.measured for outcome in outcomes),
    )  # fmt: skip
    if found is not None:
        notes = [*found.notes, *time_notes(directory, experiment, planned, planned.names)]
        _print(found, notes, directory=directory, against=against, output=output)
    conclude(outcomes)
    if unavailable:
        raise RunError(f"not run on {', '.join(map(shown_target, unavailable))}")


def _check(by: str | None, rate: str | None, against: Path | None, directory: Path) -> None:
    """Raises `InputError` for options that have no answer, before anything runs."""
    if by == "years" and rate is None:
        raise InputError("--by years: how often does it run? --rate 1/h says once an hour")
    if against is None:
        return
    if against.resolve() == directory.resolve():
        raise InputError(f"--against {shown(against)}: is where this run keeps its results")
    if not (against / "run.json").is_file():
        raise InputError(f"--against {shown(against)}: not the result of a run (no run.json)")


def _worn(
    experiment: Experiment, planned: Plan, target: ChosenTarget, *, directory: Path,
    rounds: float | None,
) -> list[Subject]:  # fmt: skip
    """The cases of a target with their wear, as `lifetime` measures it."""
    there = as_plan([each for each in planned if is_board(target) or target in each.targets])
    names = [each.case.case_id for each in there]
    return aged_cases(
        experiment, there, target=target, directory=directory, rounds=rounds, names=names
    )


def _print(
    found: ComparedRun, notes: Sequence[str], *, directory: Path, against: Path | None, output: str
) -> None:
    """Prints it; a program that reads CSV gets the table only, and notes on standard error."""
    if output == "json":
        print(json.dumps(_json(found, notes, directory, against), indent=1))
        return
    if output == "csv":
        from flashbed.base.frames import as_csv

        sys.stdout.write(as_csv(_whole(found)).write_csv())
        for line in _words(found, notes):
            say(f"flashbed: {line}")
        return
    from flashbed.answers.analysis.compared_choices import HEADS

    rows = _readable(found)
    if output == "markdown":
        print(markdown_of(rows, HEADS))
    else:
        print(found.title)
        print_table(rows.head(_ROWS_SHOWN), HEADS)
        if rows.height > _ROWS_SHOWN:
            print(f"{rows.height - _ROWS_SHOWN:,} more rows: --format csv")
    if found.changes is not None and against is not None:
        changed = _percent(found)
        print(f"\nchanges from {escaped(shown(against))}, in percent")
        if output == "markdown":
            print(f"\n{markdown_of(changed, HEADS)}")
        else:
            print_table(changed.head(_ROWS_SHOWN), HEADS)
    print()
    for line in _words(found, notes):
        print(f"- {escaped(line)}" if output == "markdown" else escaped(line))
    if output == "text":
        print(escaped(shown(directory.absolute())))


def _words(found: ComparedRun, notes: Sequence[str]) -> Iterator[str]:
    """Sentences, then what must not be concluded."""
    yield from found.sentences[:_SENTENCES_SHOWN]
    if len(found.sentences) > _SENTENCES_SHOWN:
        yield f"{len(found.sentences) - _SENTENCES_SHOWN:,} more sentences: --format json"
    yield from found.orders
    yield _CALLS
    yield _SAME
    yield from notes


def _whole(found: ComparedRun) -> pl.DataFrame:
    """The table with all columns, and the changes from kept results beside it."""
    import polars as pl

    table = found.table.rows
    if found.changes is None:
        return table
    changed = found.changes.drop(*found.table.axes)
    return pl.concat([table, changed], how="horizontal")


def _readable(found: ComparedRun) -> pl.DataFrame:
    """The columns for a person: what is known somewhere, years as words."""
    import polars as pl

    from flashbed.answers.analysis.compared_choices import years_words

    rows, measured = found.table.rows, found.table.measured
    columns = [pl.col(axis) for axis in found.table.axes]
    ends = [name for name in measured if name.startswith("years_")]
    if ends:
        rows = rows.with_columns(years_words(rows))
    for name in measured:
        if name not in ends:
            columns.append(pl.col(name))
        elif name == ends[0]:
            columns.append(pl.col("years"))
    return rows.select(columns)


def _percent(found: ComparedRun) -> pl.DataFrame:
    """The changes of the shown measures, as text."""
    import polars as pl

    assert found.changes is not None
    rows = found.changes
    names = [name for name in found.table.measured if f"{name}_change_pct" in rows.columns]
    return rows.select(
        *found.table.axes,
        *(
            pl.Series(name, [_change(value) for value in rows[f"{name}_change_pct"]])
            for name in names
        ),
    )


def _change(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else f"{value:+.1f}"


def _json(
    found: ComparedRun, notes: Sequence[str], directory: Path, against: Path | None
) -> dict[str, Any]:
    return {
        "directory": str(directory),
        "against": None if against is None else str(against),
        "by": found.table.by,
        "axes": list(found.table.axes),
        "rows": _whole(found).to_dicts(),
        "sentences": list(found.sentences),
        "orders": list(found.orders),
        "notes": [_CALLS, _SAME, *notes],
    }
