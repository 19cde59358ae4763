"""The commands that show results: table, report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.base.files import own_file
from flashbed.base.paths import shown
from flashbed.cli.options import OUT, formats
from flashbed.cli.progress import tell_written, working
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    import polars as pl

    from flashbed.plan.study import Study

__all__ = ["INDEX", "RESULTS", "register"]

LINES_SHOWN = 200
RESULTS = Path("results")
INDEX = "index.html"


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    app.command(
        "table",
        epilog="Examples: `flashbed table results/readahead/figure3 cases` · "
        "`flashbed table results/readahead/figure3 cases --where fs=jffs2 --where 'requests>=64'"
        " --columns requests,read_ahead_kib,time_ns --sort -time_ns` · "
        "`flashbed table results/readahead/figure3 requests --format parquet > requests.parquet`",
    )(table)
    app.command(
        "report",
        epilog="Examples: `flashbed report results/readahead/figure3` · `flashbed report`",
    )(report)


def table(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The results of a run.")],
    name: Annotated[
        str, typer.Argument(help="cases, requests, flash, vfs, functions, power_cuts or wear.")
    ],
    *,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="COLUMN,...", help="Print only these.")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="[-]COLUMN,...", help="Sort by these; `-`: largest first."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="CONDITION", help="Only rows such as fs=jffs2."),
    ] = None,
    output: Annotated[
        str | None, formats("csv", "parquet", default="text on a terminal, csv into a pipe")
    ] = None,
) -> None:
    """Prints a table of a run; docs/reference/tables.md explains the columns.

    A terminal gets rounded numbers in aligned columns; a pipe gets CSV.
    """
    from flashbed.bench.tracing.trace import is_trace
    from flashbed.results.run_directory import scan_table
    from flashbed.results.selecting import select

    output = output or ("text" if sys.stdout.isatty() else "csv")
    rows = _trace_table(directory, name) if is_trace(directory) else scan_table(directory, name)
    rows = select(rows, _split(columns), _split(sort), where or [])
    if output == "text":
        _print_text(rows, name, columns is not None)
        return
    if output == "parquet" and sys.stdout.isatty():
        raise InputError("--format parquet: is binary, not for a terminal; add `> FILE`")
    if output == "parquet":
        rows.sink_parquet(sys.stdout.buffer)
        return
    for text in _csv(rows) if output == "csv" else _json(rows):
        sys.stdout.write(_printed(text))


def _split(text: str | None) -> list[str]:
    return text.split(",") if text else []


def _print_text(rows: pl.LazyFrame, name: str, chosen: bool) -> None:
    """Prints the first rows. Of `cases`, only columns that differ and measures, unless chosen."""
    from flashbed.answers.analysis.answer import HEADS
    from flashbed.cli.laid_out import print_table
    from flashbed.plan.case import AXIS_COLUMNS

    some = rows.head(LINES_SHOWN + 1).collect()
    left = some.height > LINES_SHOWN
    some = some.head(LINES_SHOWN)
    if name == "cases" and not chosen:
        axes = [axis for axis in ("target", *AXIS_COLUMNS) if some[axis].n_unique() > 1]
        unsaid = ("failed",) if not some["failed"].sum() else ()
        measures = (name for name in HEADS if name in some.columns and name not in unsaid)
        some = some.select(*axes, *measures)
    print_table(some)
    if left:
        print(f"the first {LINES_SHOWN} rows; --format csv prints all")


def _csv(rows: pl.LazyFrame) -> Iterator[str]:
    from flashbed.base.frames import as_csv, pieces

    for number, piece in enumerate(pieces(rows)):
        yield as_csv(piece).write_csv(include_header=number == 0)


def _json(rows: pl.LazyFrame) -> Iterator[str]:
    """All rows as one JSON list."""
    from flashbed.base.frames import pieces

    between = "["
    for piece in pieces(rows):
        text = piece.write_json()[1:-1]
        yield between + text
        between = ","
    yield "]\n"


def _printed(text: str) -> str:
    """Text of a table, which another person may have made: a terminal gets it escaped."""
    if not sys.stdout.isatty():
        return text
    return "\n".join(escaped(line) for line in text.split("\n"))


def _trace_table(directory: Path, name: str) -> pl.LazyFrame:
    from flashbed.bench.tracing.trace import TABLES, load

    if name not in TABLES:
        raise InputError(f"a trace has no table {name!r}; it has {', '.join(TABLES)}")
    return load(directory).lazy(name)


def report(
    directories: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR...]",
            help="Results of run, reproduce or validate. Default: all results in results/.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            *OUT, metavar="FILE", help="Default: DIR/report.html; of all: results/index.html."
        ),
    ] = None,
) -> None:
    """Writes the report of one or more runs, or of a trace: one HTML file that needs no network.

    Without a directory it writes the page of all results: findings, studies, your runs, validation.
    """
    from flashbed.bench.tracing.trace import is_trace
    from flashbed.report import write_all_results, write_report
    from flashbed.results.run_directory import runs_in

    if not directories:
        with working("writing the page of all results"):
            page = write_all_results(RESULTS, out or own_file(RESULTS / INDEX))
        tell_written(page, shown(page))
        return
    if any(map(is_trace, directories)):
        from flashbed.report.traced_run import write_trace_report

        if len(directories) > 1:
            raise InputError("a trace has a report of its own: give one directory at a time")
        page = out or own_file(directories[0] / "report.html")
        with working("writing the report"):
            page = write_trace_report(directories[0], page)
        tell_written(page, shown(page))
        return
    from flashbed.bench.validation.results_table import has_results

    validated = [directory for directory in directories if has_results(directory)]
    if len(validated) > 1:
        raise InputError("give one directory of `validate` results, not several")
    others = [directory for directory in directories if directory not in validated]
    runs = [run for directory in others for run in runs_in(directory)]
    kept = validated[0] if validated else None
    study = None
    if len(directories) == 1:
        study, runs = _of_study(directories[0], runs)
        if study and kept is None and has_results(RESULTS / "validation"):
            kept = RESULTS / "validation"
    page = out or own_file(directories[0] / "report.html")
    with working("writing the report"):
        report = write_report(runs, page, kept, study)
    tell_written(report, shown(report))


def _of_study(directory: Path, runs: list[Path]) -> tuple[Study | None, list[Path]]:
    """The study whose experiments `reproduce` ran into a folder, and its runs in its order."""
    from flashbed.plan.study import load_study
    from flashbed.results.run_directory import RunDirectory

    names = {RunDirectory.open(run).experiment_id: run for run in runs if run != directory}
    studies = {name.split("/")[0] for name in names}
    study = load_study(studies.pop()) if len(studies) == 1 else None
    if study is None or len(names) != len(runs):
        return None, runs
    order = {name: place for place, name in enumerate(study.experiments)}
    ranked = sorted(names, key=lambda name: order.get(name.split("/")[1], len(order)))
    return study, [names[name] for name in ranked]
