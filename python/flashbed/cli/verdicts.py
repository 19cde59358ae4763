"""The command `verdicts`: counts which sentences of a study's source were confirmed.

It also lists every number that the sources print, with its error (`--numbers`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import shown
from flashbed.cli.laid_out import markdown_table
from flashbed.cli.options import formats
from flashbed.plan.study import Study, load_study

if TYPE_CHECKING:
    from flashbed.answers.analysis.sentences import VerdictTally
    from flashbed.report.judged import JudgedRun
    from flashbed.report.printed import Errors, PrintedNumber

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "verdicts",
        epilog="Examples: `flashbed verdicts readahead sqlite methodology` · "
        "`flashbed verdicts readahead --sentences` · `flashbed verdicts readahead --check` · "
        "`flashbed verdicts readahead sqlite methodology --numbers`",
    )(verdicts)


def verdicts(
    studies: Annotated[
        list[str], typer.Argument(metavar="STUDY...", help="Studies that have a source.")
    ],
    results: Annotated[
        Path, typer.Option("--results", metavar="DIR", help="Where `reproduce` keeps its results.")
    ] = Path("results"),
    *,
    on: Annotated[str, typer.Option("--on", metavar="TARGET", help="The target to judge.")] = "sim",
    sentences: Annotated[
        bool, typer.Option("--sentences", help="List every sentence with its verdict.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Recompute the numbers in the texts, and compare.")
    ] = False,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="List every printed number with its error.")
    ] = False,
    output: Annotated[str, formats("markdown")] = "text",
) -> None:
    """Counts the sentences of a study's source, the claims that judge them, and their verdicts.

    Judges the results that `flashbed reproduce STUDY` kept, by today's claims. A sentence gets the
    worst verdict of its claims.
    """
    from flashbed.answers.analysis.sentences import tallies
    from flashbed.report.printed import printed_numbers

    counted: list[VerdictTally] = []
    listed: list[dict[str, Any]] = []
    every: dict[str, JudgedRun] = {}
    printed: list[PrintedNumber] = []
    for name in studies:
        study = load_study(name)
        if study is None:
            raise InputError(f"{name}: no study with a source (no experiments/{name}.toml)")
        runs = _runs(name, study, results, on)
        every |= {f"{name}/{experiment}": run for experiment, run in runs.items()}
        judged = {experiment: run.verdicts for experiment, run in runs.items()}
        counted += tallies(name, study, judged, on)
        listed += _sentences(name, study, judged, on)
        printed += printed_numbers(name, study, runs, on) if numbers else []
    if check:
        _check(every, on)
    elif numbers:
        print(_numbers(printed, output))
    elif output == "json":
        print(json.dumps({"counts": [_row(one) for one in counted], "sentences": listed}, indent=1))
    elif sentences:
        print("\n".join(f"{row['verdict']:<20} {row['item']}: {row['text']}" for row in listed))
    else:
        print(_markdown(counted) if output == "markdown" else _text(counted))


def _runs(name: str, study: Study, results: Path, target: str) -> dict[str, JudgedRun]:
    """The judged runs of a study, by experiment. Raises `InputError` if one is missing.

    A run without cases on the target may be missing: its claims count as not measured there.
    """
    from flashbed.plan.experiment import load_experiment
    from flashbed.report.judged import judged_run

    runs = {}
    for experiment in study.experiments:
        directory = results / name / experiment
        experiment_now = load_experiment(f"{name}/{experiment}")
        if target not in experiment_now.targets and not directory.exists():
            continue
        if not (directory / "cases.parquet").is_file():
            raise InputError(
                f"{shown(directory)}: no results; first run `flashbed reproduce {name} --on sim`"
            )
        runs[experiment] = judged_run(directory, experiment_now)
    return runs


def _sentences(
    name: str, study: Study, runs: Mapping[str, Sequence[Any]], target: str
) -> list[dict[str, Any]]:
    from flashbed.answers.analysis.sentences import claim_verdicts, sentence_verdict

    found = claim_verdicts(runs, target)
    return [
        {
            "study": name,
            "item": item.id,
            "ours": item.ours,
            "text": one.text,
            "verdict": sentence_verdict(one, found),
            "claims": {claim: found.get(claim) for claim in one.claims},
            "cannot": one.cannot,
        }
        for item in study.item
        for one in item.sentence
    ]


def _check(runs: Mapping[str, JudgedRun], target: str) -> None:
    """Prints the numbers in texts that differ from the results. Raises `RunError` if any do."""
    from flashbed.report.numbers import outdated_numbers

    found = outdated_numbers(runs, target)
    for one in found:
        now = "not measured" if one.now is None else one.now
        print(f"{one.where}: the text says {one.said}, {target} gives {now}")
    if found:
        raise RunError(f"{len(found)} numbers in texts are not what was measured")


def _row(tally: VerdictTally) -> dict[str, Any]:
    return {"study": tally.study, "of": tally.of, "all": tally.all, **tally.counts}


def _cells(tallies: Sequence[VerdictTally]) -> list[list[str]]:
    from flashbed.answers.analysis.sentences import COUNTED

    head = ["source", "of", "all", *COUNTED]
    return [head, *([str(value) for value in _row(tally).values()] for tally in tallies)]


def _numbers(printed: Sequence[PrintedNumber], output: str) -> str:
    """Every printed number with its error, the errors by item and over all."""
    from flashbed.report.printed import counted_line, errors_by_item, errors_of

    groups = errors_by_item(printed)
    free = errors_of(number for number in printed if number.fitted is None)
    if output == "json":
        found = {
            "all": vars(free),
            "by_item": [
                {"study": study, "item": item, **vars(errors)}
                for (study, item), errors in groups.items()
            ],
            "numbers": [number.as_json() for number in printed],
        }
        return json.dumps(found, indent=1)
    head = ["source", "number", "file system", "printed", "simulated", "unit", "error %"]
    rows = [
        [
            f"{number.study}, {number.item}",
            f"{number.name}{' (fitted)' if number.fitted else ''}",
            number.fs,
            f"{number.printed:g}",
            "" if number.simulated is None else f"{number.simulated:.4g}",
            number.unit,
            "" if number.error_pct is None else f"{number.error_pct:+.1f}",
            number.verdict,
        ]
        for number in printed
    ]
    items = [
        [study, item, str(errors.measured), str(errors.near), _median(errors)]
        for (study, item), errors in groups.items()
    ]
    by_item = [["source", "item", "numbers", "within 10 %", "median error %"], *items]
    lay = markdown_table if output == "markdown" else _text_table
    return "\n\n".join(
        [
            counted_line(printed),
            lay(by_item, {2, 3, 4}),
            lay([[*head, "verdict"], *rows], {3, 4, 6}),
        ]
    )


def _median(errors: Errors) -> str:
    return "" if errors.median_pct is None else f"{errors.median_pct:.1f}"


def _text(tallies: Sequence[VerdictTally]) -> str:
    cells = _cells(tallies)
    return _text_table(cells, set(range(2, len(cells[0]))))


def _markdown(tallies: Sequence[VerdictTally]) -> str:
    cells = _cells(tallies)
    return markdown_table(cells, set(range(2, len(cells[0]))))


def _text_table(cells: Sequence[Sequence[str]], right: Collection[int]) -> str:
    """Columns side by side; those of `right` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)
