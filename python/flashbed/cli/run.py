"""Commands that measure: run, reproduce."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.cli.answers import answer_json, say_answer
from flashbed.cli.boards import Erase, all_allowed, shown_target
from flashbed.cli.progress import bar, say
from flashbed.cli.show import INDEX, RESULTS
from flashbed.errors import InputError, RunError
from flashbed.formats.doubts import doubts
from flashbed.paths import shown
from flashbed.plan.case_units import WHOLE, Share
from flashbed.plan.experiment import (
    Experiment,
    Planned,
    load_experiment,
    study_experiments,
)
from flashbed.plan.narrowing import Settings, parse_settings, plan
from flashbed.plan.study import in_order, load_study
from flashbed.storage.locking import held
from flashbed.targets.ssh.address import ChosenTarget, is_board

if TYPE_CHECKING:
    from flashbed.runner import Outcome
    from flashbed.running.ways import Way
    from flashbed.targets.base import Failure

__all__ = ["CaseId", "Out", "Set", "failure_lines", "measure", "register", "target_names"]

Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where results are kept.")]
On = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        metavar="TARGET,...",
        help="sim, uml, emulator, ssh://USER@HOST, or several with commas.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="AXIS=VALUE,...",
        help="Only these values of an axis; a number, kernel or board it does not have is added.",
    ),
]
CaseId = Annotated[str | None, typer.Option("--case", metavar="ID", help="Only this case.")]
Trace = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="flash,wear",
        help="Record every flash operation, the erases of every block, or both.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", metavar="N", help="How many run at once; one for each processor if not said."
    ),
]
ShardOf = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help="Only this share of the cases; `merge` joins."),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="Run on a Dask cluster."),
]
TRACES = ("flash", "wear")
Format = Annotated[
    str | None, typer.Option("--format", metavar="json", help="Print claims and agreement.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    app.command(
        "run",
        epilog="Examples: `flashbed run readahead/figure3` · "
        "`flashbed run figure3 --on sim,uml --set fs=jffs2 --set requests=8,64` · "
        "`flashbed run figure3 --case "
        "jffs2-emulated-6.1-sequential-8x4096-of-5242880-ra128-s1 --trace flash --out /tmp/one`",
    )(run)
    app.command(
        "reproduce",
        epilog="Examples: `flashbed reproduce readahead` · "
        "`flashbed reproduce readahead --on sim --format json`",
    )(reproduce)


def run(
    experiment: Annotated[str, typer.Argument(help="STUDY/NAME, NAME, or a .toml file.")],
    on: On = None,
    settings: Set = None,
    out: Out = None,
    case: CaseId = None,
    trace: Trace = None,
    erase: Erase = None,
    jobs: Jobs = None,
    shard: ShardOf = None,
    scheduler: Scheduler = None,
    output: Annotated[
        str | None, typer.Option("--format", metavar="json", help="Print the answer for a program.")
    ] = None,
) -> None:
    """Runs an experiment, keeps its tables and prints what it compared, the cheapest first.

    Run again, it goes on where it was. On a board over ssh, what it lacks makes cases
    `not measured` (docs/boards.md).
    """
    from flashbed.api.result import answer_of
    from flashbed.running.ways import start_ahead

    if output not in (None, "json"):
        raise InputError(f"--format {output}: only json")
    chosen = load_experiment(experiment)
    way = _way(jobs, shard, scheduler)
    if not settings and case is None and scheduler is None and on in (None, ["sim"]):
        start_ahead(way, sum(grid.cases for grid in chosen.grid))
    planned = plan(chosen, parse_settings(settings or []))
    if case is not None:
        planned = [item for item in planned if item.case.case_id == case]
        if not planned:
            raise InputError(f"--case {case}: no such case in {chosen.id}")
    traces = _traces(trace)
    targets = all_allowed(target_names(on) or ["sim"], erase)
    for target in targets:
        if not any(is_board(target) or target in item.targets for item in planned):
            raise InputError(f"--on {target}: no case of {chosen.id} that was asked for runs on it")
    _say_doubts(planned)
    directory = out or RESULTS / f"{chosen.id}{way.share.suffix}"
    outcomes, unavailable = measure(chosen, planned, targets, directory, traces, way)
    found = answer_of(directory, [item.case for item in planned])
    if output == "json":
        print(json.dumps(answer_json(found, directory), indent=1))
    else:
        say_answer(found, directory)
    _conclude(outcomes)
    if unavailable:
        raise RunError(f"not run on {', '.join(map(shown_target, unavailable))}")


def _say_doubts(planned: Sequence[Planned]) -> None:
    """Says what of the boards is of no chip that is sold; the run goes on."""
    stacks = {(item.case.board, str(item.case.chip)): item.case for item in planned}
    lines = (line for case in stacks.values() for line in doubts(case.profile()))
    for line in dict.fromkeys(lines):
        say(f"flashbed: WARNING: {line}")


def reproduce(
    study: Annotated[str, typer.Argument(help="A folder of experiments, such as readahead.")],
    on: On = None,
    settings: Set = None,
    out: Out = None,
    output: Format = None,
    erase: Erase = None,
    jobs: Jobs = None,
) -> None:
    """Runs all experiments of a study and writes the report; what cannot run is said and left.

    What `validate` has kept in results/validation is shown in it too.
    """
    from flashbed.report import summary_json, write_all_results, write_report
    from flashbed.validation.results_table import has_results

    if output not in (None, "json"):
        raise InputError(f"--format {output}: only json")
    paper = load_study(study)
    experiments = in_order(paper, study_experiments(study))
    targets = all_allowed(target_names(on), erase)
    chosen = parse_settings(settings or [])
    base = out or RESULTS / study
    with held(base):
        directories, outcomes = _of_study(experiments, targets, chosen, base, _way(jobs))
        if not any(outcome.measured + outcome.kept for outcome in outcomes):
            _conclude(outcomes)
            raise RunError(f"nothing of {study} could be run")
        validated = RESULTS / "validation"
        kept = validated if has_results(validated) else None
        report = write_report(directories, base / "report.html", kept, paper)
        if out is None:
            write_all_results(RESULTS, RESULTS / INDEX)
    if output == "json":
        print(json.dumps(summary_json(directories), indent=1))
        say(shown(report))
    else:
        print(shown(report))
    if out is None:
        say(f"all results on one page: {RESULTS / INDEX}")
    _conclude(outcomes)


def _of_study(
    experiments: Sequence[Experiment],
    targets: Sequence[ChosenTarget],
    settings: Settings,
    base: Path,
    way: Way,
) -> tuple[list[Path], list[Outcome]]:
    """Runs each experiment into its folder below `base`: the folders, and what came of them.

    An experiment that has no case on these targets counts with what was measured of it before.
    """
    directories: list[Path] = []
    outcomes: list[Outcome] = []
    for experiment in experiments:
        directory = base / experiment.id.split("/")[1]
        wanted = [
            name
            for name in targets or experiment.targets
            if is_board(name) or name in experiment.targets
        ]
        if wanted:
            done, _ = measure(experiment, plan(experiment, settings), wanted, directory, (), way)
            outcomes += done
        if wanted or (directory / "cases.parquet").is_file():
            directories.append(directory)
    return directories, outcomes


def target_names(on: Sequence[str] | None) -> list[str]:
    """The targets that were asked for, each once. Raises `InputError`."""
    from flashbed.targets import check_target

    names = [name for text in on or [] for name in text.split(",")]
    for name in names:
        check_target(name)
    return list(dict.fromkeys(names))


def _way(jobs: int | None, shard: str | None = None, scheduler: str | None = None) -> Way:
    """Raises `InputError`, and `ModuleNotFoundError` if Dask is wanted and not installed."""
    from flashbed.running.ways import Way, parse_jobs

    if scheduler is not None:
        from flashbed.running.cluster import check_address

        if jobs is not None:
            raise InputError("--jobs and --scheduler: one of them")
        check_address(scheduler)
    share = WHOLE if shard is None else Share.parse(shard)
    return Way(parse_jobs(jobs), share, scheduler=scheduler)


def _traces(text: str | None) -> list[str]:
    words = [] if text is None else text.split(",")
    for word in words:
        if word not in TRACES:
            raise InputError(f"--trace {text}: {' and '.join(TRACES)} can be traced")
    return words


class _Said:
    """The command line is told everything on standard error."""

    say = staticmethod(say)
    running = staticmethod(bar)


def measure(
    experiment: Experiment,
    planned: Sequence[Planned],
    targets: Sequence[ChosenTarget],
    out: Path,
    traces: Sequence[str],
    way: Way,
) -> tuple[list[Outcome], list[ChosenTarget]]:
    """See `api.measuring.measure`; what it says goes to standard error."""
    from flashbed.api import measuring

    outcomes, unavailable = measuring.measure(
        experiment, planned, targets, out, traces, _Said(), way
    )
    return outcomes, list(unavailable)


def failure_lines(failures: Sequence[Failure]) -> list[str]:
    """See `api.measuring.failure_lines`."""
    from flashbed.api import measuring

    return measuring.failure_lines(failures)


def _conclude(outcomes: Sequence[Outcome]) -> None:
    from flashbed.api import measuring

    measuring.conclude(outcomes)
