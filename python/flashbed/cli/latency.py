"""The command `latency`: how long calls take, and what the slow ones waited for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.base.errors import InputError
from flashbed.base.human import time_text
from flashbed.base.paths import shown
from flashbed.cli.laid_out import markdown_of, print_table
from flashbed.cli.options import Jobs, Out, Set, formats
from flashbed.cli.own_command import AfterDashes, What, chosen_program
from flashbed.cli.remarks import warn
from flashbed.cli.run import check_targets, conclude, measure
from flashbed.cli.show import RESULTS
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    import polars as pl

    from flashbed.answers.analysis.latencies import Latencies

__all__ = ["register"]

_CASES_SHOWN = 8
_HEADS = {
    "call": "call", "calls": "calls", "time_ns": "time in calls", "p50_ns": "p50", "p99_ns": "p99",
    "p999_ns": "p99.9", "worst_ns": "worst",
}  # fmt: skip
_CAUSE_HEADS = ("waits for", "all calls", "slowest 1 %", "slowest call")
_PARTS_MAX = 100
_SLOWEST_MAX = 10_000


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "latency",
        cls=AfterDashes,
        context_settings={"allow_extra_args": True},  # to say how a program is measured
        epilog="Examples: `flashbed latency programs/sqlite-wal --set fs=ubifs,jffs2` · "
        "`flashbed latency program.rec --set state=new,90%full --slowest 20` · "
        "`flashbed latency program.rec --parts 4 --format json` · "
        "`flashbed latency --set fs=ubifs -- ./my-program`",
    )(latency)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """The latencies of a case, and of its parts where those are requested."""

    case_id: str
    choice: str
    failed: str | None
    whole: Latencies
    parts: Sequence[Latencies]


def latency(
    context: typer.Context,
    what: What = None,
    *,
    settings: Set = None,
    slowest: Annotated[
        int,
        typer.Option(
            "--slowest", metavar="N", min=1, max=_SLOWEST_MAX,
            help="How many calls to name.",
        ),
    ] = 5,
    parts: Annotated[
        int,
        typer.Option(
            "--parts", metavar="N", min=1, max=_PARTS_MAX, show_default=False,
            help="Also in so many parts of the run: how latencies grow while it ages.",
        ),
    ] = 1,
    out: Out = None,
    jobs: Jobs = None,
    output: Annotated[str, formats("markdown")] = "text",
) -> None:  # fmt: skip
    """Says how long calls take, and what they wait for: write-back, commit, collection, erases, ….

    It runs in the simulator: kernels do not tell causes. docs/models/latency.md says what each is.
    """
    from flashbed.api.comparing import with_requests
    from flashbed.running.ways import Way

    selected = parse_settings(settings or [])
    experiment = with_requests(load_experiment(chosen_program(context, "latency", what)))
    planned = plan(experiment, selected)
    check_targets(["sim"], planned, experiment)
    warn(planned.doubts())
    directory = out or RESULTS / "latency" / experiment.id
    outcomes, _ = measure(
        experiment, planned, targets=["sim"], out=directory, traces=("waits",), way=Way(jobs)
    )
    cases = [each.case for each in planned if "sim" in each.targets]
    found = list(_found(directory, cases, slowest=slowest, parts=parts))
    if output == "json":
        print(json.dumps([_json(one) for one in found], indent=1))
    else:
        _print(found, output == "markdown")
        if output == "text":
            print(escaped(shown(directory.absolute())))
    conclude(outcomes)
    if not found:
        raise InputError(f"{experiment.id}: none of its cases makes a call that is measured")


def _found(directory: Path, cases: Sequence[Any], *, slowest: int, parts: int) -> Iterator[_Found]:
    """The latencies of the cases of a folder that were measured."""
    import polars as pl

    from flashbed.answers.analysis.compared_choices import case_words
    from flashbed.answers.analysis.latencies import latencies, parts_of, split
    from flashbed.results.failed_calls import failed_by_case
    from flashbed.results.run_directory import read_table, scan_table

    if not (directory / "requests.parquet").is_file():
        return
    words, failed = case_words(cases), dict(failed_by_case(read_table(directory, "cases")))
    requests = scan_table(directory, "requests", ours=True).filter(pl.col("target") == "sim")
    for case in cases:
        own = requests.filter(pl.col("case_id") == case.case_id).collect()
        if own["latency_ns"].null_count():
            why = "a compressor has no price on this board, so times are not known"
            raise InputError(f"{case.case_id}: {why}")
        calls = split(own)
        if calls.is_empty():
            continue
        yield _Found(
            case_id=case.case_id,
            choice=words[case.case_id],
            failed=failed.get(case.case_id),
            whole=latencies(calls, slowest),
            parts=[latencies(part) for part in parts_of(calls, parts)] if parts > 1 else [],
        )


def _print(found: Sequence[_Found], is_markdown: bool) -> None:
    for number, one in enumerate(found[:_CASES_SHOWN]):
        if number:
            print()
        calls = int(one.whole.calls["calls"][-1])
        choice = f"{one.choice}: " if one.choice else ""
        title = f"{choice}{calls:,} calls, {time_text(one.whole.time_ns)}"
        print(f"### {escaped(title)}\n" if is_markdown else escaped(title))
        for table in (one.whole.calls, _causes(one.whole), *_of_parts(one)):
            if is_markdown:
                print(f"{markdown_of(table, _HEADS)}\n")
            else:
                print_table(table, _HEADS)
        for line in _sentences(one):
            print(f"- {escaped(line)}" if is_markdown else escaped(line))
    if len(found) > _CASES_SHOWN:
        print(f"{len(found) - _CASES_SHOWN:,} more cases: --format json")


def _causes(of: Latencies) -> pl.DataFrame:
    """The causes as text: time and share."""
    import polars as pl

    columns = ("all_ns", "slowest_ns", "worst_ns")
    sums = {name: int(of.causes[name].sum()) for name in columns}
    shown = {"cause": of.causes["cause"]} | {
        name: [_share(time, sums[name]) for time in of.causes[name]] for name in columns
    }
    return pl.DataFrame(shown).rename(dict(zip(("cause", *columns), _CAUSE_HEADS, strict=True)))


def _share(time: int, whole: int) -> str:
    return f"{time_text(time)} ({time / whole:.0%})" if time else "-"


def _of_parts(one: _Found) -> Iterator[pl.DataFrame]:
    """A row for each part of the run: its quantiles, and the cause of most time in its tail."""
    import polars as pl

    if not one.parts:
        return
    rows = []
    for number, part in enumerate(one.parts, start=1):
        whole = part.calls.row(-1, named=True)
        most = part.causes.sort("slowest_ns", descending=True).row(0, named=True)
        values = {name: whole[name] for name in _HEADS if name != "call"}
        rows.append(
            {"part": f"{number} of {len(one.parts)}"}
            | values
            | {"slowest 1 % wait for": most["cause"]}
        )
    yield pl.DataFrame(rows)


def _sentences(one: _Found) -> Iterator[str]:
    from flashbed.answers.analysis.latencies import sentence

    if one.failed is not None:
        yield f"WARNING: {one.failed}: this is not what the program does"
    for call in one.whole.slowest.iter_rows(named=True):
        yield sentence(call)


def _json(one: _Found) -> dict[str, Any]:
    named = {"case": one.case_id, "choice": one.choice, "failed": one.failed}
    return {**named, **_latencies_json(one.whole)} | (
        {"parts": [_latencies_json(part) for part in one.parts]} if one.parts else {}
    )


def _latencies_json(of: Latencies) -> dict[str, Any]:
    from flashbed.answers.analysis.latencies import CAUSES

    named = ("seq", "op", "file", "start_ns", "latency_ns", *CAUSES)
    return {
        "calls": of.calls.to_dicts(),
        "causes": of.causes.to_dicts(),
        "slowest": of.slowest.select(named).to_dicts(),
    }
