"""The commands that measure: run, reproduce."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.extras import require
from flashbed.base.files import own_file
from flashbed.base.locking import held
from flashbed.base.own_folder import own_folder
from flashbed.base.paths import shown
from flashbed.cli.answers import answer_json, print_answer, say_answer
from flashbed.cli.boards import Erase, all_allowed, shown_target
from flashbed.cli.options import CaseId, Format, Jobs, Out, Set
from flashbed.cli.progress import bar, say, working
from flashbed.cli.remarks import say_unlike, warn
from flashbed.cli.show import INDEX, RESULTS
from flashbed.plan.case_units import WHOLE, Share
from flashbed.plan.experiment import Experiment, load_experiment, study_experiments
from flashbed.plan.narrowing import Settings, parse_settings, plan, several
from flashbed.plan.planned import Plan
from flashbed.plan.study import in_order, load_study
from flashbed.program.recording.recognised import is_recording
from flashbed.stack.names import escaped
from flashbed.targets.ssh.address import ChosenTarget, is_board

if TYPE_CHECKING:
    from flashbed.running.runner import TargetOutcome
    from flashbed.running.ways import Way
    from flashbed.targets.base import Failure

__all__ = [
    "answered",
    "check_targets",
    "conclude",
    "failure_lines",
    "measure",
    "one_program",
    "register",
    "target_names",
]

_TARGETS = "sim, uml, emulator, ssh://USER@HOST, or several with commas between. Default: "
On = Annotated[list[str] | None, typer.Option("--on", metavar="TARGET,...", help=f"{_TARGETS}sim.")]
OnThese = Annotated[
    list[str] | None,
    typer.Option("--on", metavar="TARGET,...", help=f"{_TARGETS}those of each experiment."),
]
Trace = Annotated[
    str | None,
    typer.Option(
        "--trace",
        metavar="flash,wear,waits",
        help="flash: every flash operation; wear: the erases of every block; waits: what each call"
        " waited for; or several.",
    ),
]
ShardOf = Annotated[
    str | None,
    typer.Option("--shard", metavar="I/N", help="Run share I of N of the cases; `merge` joins."),
]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="Run on a Dask cluster."),
]
TRACES = ("flash", "wear", "waits")


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    app.command(
        "run",
        context_settings={"allow_extra_args": True},  # to say how a program is run
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
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="STUDY/NAME, NAME, a .toml file, a recording, or operations.",
        ),
    ],
    *,
    on: On = None,
    settings: Set = None,
    out: Out = None,
    case: CaseId = None,
    trace: Trace = None,
    erase: Erase = None,
    jobs: Jobs = None,
    shard: ShardOf = None,
    scheduler: Scheduler = None,
    output: Format = "text",
) -> None:
    """Runs an experiment, keeps its tables, and compares configurations, fastest first.

    The same command continues an interrupted run. Where a board over ssh lacks something, its
    cases are `not measured` (docs/reference/boards-over-ssh.md).
    """
    from flashbed.running.ways import start_ahead

    one_program("run", [name, *context.args], "`flashbed exec -- {}` runs a program")
    way, traces = _way(jobs, shard, scheduler), _traces(trace)
    experiment = load_experiment(name)
    if not settings and case is None and scheduler is None and on in (None, ["sim"]):
        start_ahead(way, sum(grid.cases for grid in experiment.grid))
    selected = parse_settings(settings or [])
    planned, apart = plan(experiment, selected), several(selected)
    if case is not None:
        planned = planned.only(case)
        if not planned:
            raise InputError(f"--case {case}: no such case in {experiment.id}")
    doubts = planned.doubts()
    targets = all_allowed(target_names(on) or ["sim"], erase)
    check_targets(targets, planned, experiment)
    warn(doubts)
    directory = out or RESULTS / f"{experiment.id}{way.share.suffix}"
    answered(
        experiment, planned, targets=targets, out=directory, traces=traces, way=way,
        apart=apart, output=output,
    )  # fmt: skip


def check_targets(targets: Sequence[ChosenTarget], planned: Plan, experiment: Experiment) -> None:
    """Raises `InputError` for a target on which none of the cases runs."""
    for target in targets:
        if not is_board(target) and target not in planned.targets:
            raise InputError(
                f"--on {target}: none of the chosen cases of {experiment.id} runs on it"
            )


def one_program(command: str, words: Sequence[str], of_program: str) -> None:
    """Raises `InputError` unless the words name one program; says which commands take more.

    `of_program` says what to do with a program's command line, which replaces its `{}`.
    """
    if len(words) == 1:
        return
    line = shlex.join(words)
    if all(map(is_recording, map(Path, words))):
        other = f"`flashbed lifetime {line}` asks for all of them on one flash"
    else:
        other = of_program.replace("{}", line)
    raise InputError(
        f"{command} takes one experiment, recording or file of operations, not {line}; {other}"
    )


def answered(
    experiment: Experiment, planned: Plan, *, targets: Sequence[ChosenTarget], out: Path, way: Way,
    apart: Collection[str], output: str, traces: Sequence[str] = (), kept: bool = True,
) -> None:  # fmt: skip
    """Measures and prints the answer; where tables are not `kept`, not what to do with them.

    Raises `RunError` for a case that failed and for a target that could not run.
    """
    from flashbed.api.answering import answer_of
    from flashbed.api.replays import time_notes
    from flashbed.plan.workloads.recorded_program import begins_with

    outcomes, unavailable = measure(
        experiment, planned, targets=targets, out=out, traces=traces, way=way
    )
    if any(map(is_board, targets)):
        _say_unlike(out)
    ours = any(outcome.measured for outcome in outcomes)
    dump = begins_with(experiment.workload)
    packed_by = None if dump is None else dump.compressor
    found = answer_of(out, planned, apart, ours=ours, packed_by=packed_by)
    times = time_notes(out, experiment, planned, planned.names)
    if output == "json":
        print(json.dumps(answer_json(found, out, times), indent=1))
    elif kept:
        say_answer(found, out)
    else:
        print_answer(found)
    for note in times:
        say(f"flashbed: {note}")
    conclude(outcomes)
    if unavailable:
        raise RunError(f"not run on {', '.join(map(shown_target, unavailable))}")


def _say_unlike(directory: Path) -> None:
    """Warns of boards' kernels that have no profile."""
    import polars as pl

    from flashbed.targets import BOARD

    cases = directory / "cases.parquet"
    if cases.is_file():
        table = pl.read_parquet(cases, columns=["target", "kernel_release"])
        say_unlike(table.filter(pl.col("target") == BOARD)["kernel_release"].drop_nulls())


def reproduce(
    study: Annotated[str, typer.Argument(help="A folder of experiments, such as readahead.")],
    on: OnThese = None,
    *,
    settings: Set = None,
    out: Out = None,
    output: Format = "text",
    erase: Erase = None,
    jobs: Jobs = None,
) -> None:
    """Runs all experiments of a study and writes its report; says what cannot run here.

    The report includes what `validate` has kept in results/validation.
    """
    from flashbed.bench.validation.results_table import has_results
    from flashbed.report import summary_json, write_all_results, write_report

    paper = load_study(study)
    experiments = in_order(paper, study_experiments(study))
    targets = all_allowed(target_names(on), erase)
    chosen = parse_settings(settings or [])
    require("report")
    base = out or RESULTS / study
    with held(base):
        directories, outcomes = _of_study(
            experiments, targets, settings=chosen, base=base, way=_way(jobs)
        )
        if not any(outcome.measured + outcome.kept for outcome in outcomes):
            conclude(outcomes)
            raise RunError(f"nothing of {study} could be run")
        validated = RESULTS / "validation"
        kept = validated if has_results(validated) else None
        with working("writing the report"):
            report = write_report(directories, own_file(base / "report.html"), kept, paper)
            if out is None:
                write_all_results(RESULTS, own_file(RESULTS / INDEX))
    if output == "json":
        print(json.dumps(summary_json(directories), indent=1))
        say(shown(report))
    else:
        print(escaped(shown(report)))
    if out is None:
        say(f"all results on one page: {RESULTS / INDEX}")
    conclude(outcomes)


def _of_study(
    experiments: Sequence[Experiment],
    targets: Sequence[ChosenTarget],
    *,
    settings: Settings,
    base: Path,
    way: Way,
) -> tuple[list[Path], list[TargetOutcome]]:
    """Runs each experiment into its folder below `base`; returns the folders and outcomes.

    An experiment without a case on these targets counts with its earlier results.
    """
    directories: list[Path] = []
    outcomes: list[TargetOutcome] = []
    for experiment in experiments:
        directory = own_folder(base / experiment.id.split("/")[1])
        wanted = [
            name
            for name in targets or experiment.targets
            if is_board(name) or name in experiment.targets
        ]
        if wanted:
            done, _ = measure(
                experiment, plan(experiment, settings), targets=wanted, out=directory, traces=(),
                way=way,
            )  # fmt: skip
            outcomes += done
        if wanted or (directory / "cases.parquet").is_file():
            directories.append(directory)
    return directories, outcomes


def target_names(on: Sequence[str] | None) -> list[str]:
    """The names given to --on, each once. Raises `InputError`."""
    from flashbed.targets import check_target

    names = [name for text in on or [] for name in text.split(",")]
    for name in names:
        check_target(name)
    return list(dict.fromkeys(names))


def _way(jobs: int | None, shard: str | None = None, scheduler: str | None = None) -> Way:
    """How cases are run. Raises `InputError`, or `ModuleNotFoundError` if Dask is missing."""
    from flashbed.running.ways import Way

    if scheduler is not None:
        from flashbed.running.cluster import check_address

        if jobs is not None:
            raise InputError("--jobs and --scheduler: one of them")
        check_address(scheduler)
    share = WHOLE if shard is None else Share.parse(shard)
    return Way(jobs, share, scheduler=scheduler)


def _traces(text: str | None) -> list[str]:
    words = [] if text is None else text.split(",")
    for word in words:
        if word not in TRACES:
            raise InputError(f"--trace {text}: must be {', '.join(TRACES)}, or several")
    return words


class _StderrWatch:
    """Reports everything that a run says on standard error."""

    say = staticmethod(say)
    running = staticmethod(bar)


def measure(
    experiment: Experiment,
    planned: Plan,
    *,
    targets: Sequence[ChosenTarget],
    out: Path,
    traces: Sequence[str],
    way: Way,
) -> tuple[list[TargetOutcome], list[ChosenTarget]]:
    """Calls `api.measuring.measure`, with messages to standard error."""
    from flashbed.api import measuring

    outcomes, unavailable = measuring.measure(
        experiment, planned, targets=targets, out=out, traces=traces, watch=_StderrWatch(), way=way
    )
    return outcomes, list(unavailable)


def failure_lines(failures: Sequence[Failure]) -> list[str]:
    """Calls `api.measuring.failure_lines`."""
    from flashbed.api import measuring

    return measuring.failure_lines(failures)


def conclude(outcomes: Sequence[TargetOutcome]) -> None:
    """Calls `api.measuring.conclude`."""
    from flashbed.api import measuring

    measuring.conclude(outcomes)
