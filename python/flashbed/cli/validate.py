"""The command `validate`: measures how far the simulator is from a real kernel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed import __version__
from flashbed.base.errors import InputError, RunError
from flashbed.base.paths import cache_folder
from flashbed.cli.boards import Erase, all_allowed, shown_target
from flashbed.cli.options import (
    MACHINE,
    OUT,
    ChipSet,
    Format,
    Jobs,
    KernelName,
    chosen,
)
from flashbed.cli.programs import TargetResults, measured_on
from flashbed.cli.remarks import say_remarks
from flashbed.plan.stacks import one_stack

if TYPE_CHECKING:
    import polars as pl

    from flashbed.bench.validation import ComparedSuite
    from flashbed.stack.profiles import Board, Kernel
    from flashbed.targets.base import Program
    from flashbed.targets.ssh.address import ChosenTarget

__all__ = ["register"]

Name = Annotated[str, typer.Argument(metavar="BOARD", help="The name of a profile in boards/.")]
On = Annotated[str, typer.Option("--on", metavar="TARGET", help="Where the real kernel is.")]
Suite = Annotated[
    str,
    typer.Option(
        "--suite", metavar="reads|writes|compressors|FILE", help="Which cases, or a recording."
    ),
]
Out = Annotated[Path, typer.Option(*OUT, metavar="DIR", help="Where to keep it for reports.")]
OwnGcChoices = Annotated[
    bool,
    typer.Option(
        "--own-gc-choices", help="Let the simulator make JFFS2's GC choices, not the kernel."
    ),
]

WORST_SHOWN = 5


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "validate",
        epilog="Examples: `flashbed validate emulated` · "
        "`flashbed validate emulated --on uml --suite writes --format json` · "
        "`flashbed validate emulated --on uml --suite logger.rec` · "
        "`flashbed validate emulated --on uml --set chip=W25N01GV` · "
        "`flashbed validate mine --on ssh://root@board --erase mtd5:data`",
    )(validate)


def validate(
    board: Name,
    suite: Suite = "reads",
    *,
    on: On = "emulator",
    kernel: KernelName = None,
    settings: ChipSet = None,
    output: Format = "text",
    out: Out = Path("results/validation"),
    erase: Erase = None,
    own_gc_choices: OwnGcChoices = False,
    jobs: Jobs = None,
) -> None:
    """Compares the simulator with a real kernel, on cases that nothing was fitted to.

    Prints how many flash operations are exact and how far times are off: over all cases, by file
    system and kind of case, and for the worst. Lists the cases that the simulator does not model.
    On the emulated board the simulator replays JFFS2's garbage collection choices. Exit status 1
    if a case failed. evidence/validation.md describes the cases.
    """
    from flashbed.bench.validation import SUITES, is_suite
    from flashbed.bench.validation.results_table import keep
    from flashbed.running.runner import commit
    from flashbed.stack.profiles import load_board
    from flashbed.targets import BOARD
    from flashbed.targets.ssh.address import is_board

    if not is_suite(suite):
        raise InputError(
            f"--suite {suite}: no such suite, nor a recording; there are {', '.join(SUITES)}"
        )
    if on == "sim":
        raise InputError("--on sim: the simulator is what is validated")
    wanted = chosen(settings, board=board, kernel=kernel)
    stack = one_stack(wanted, axes=MACHINE)
    say_remarks([stack.board])
    (target_on,) = all_allowed([on], erase)
    compared = _compared(
        suite, target_on, stack.board, stack.kernel, replay=not own_gc_choices,
        jobs=jobs,
    )  # fmt: skip
    target = BOARD if is_board(target_on) else on
    run = {"board": board, "kernel": stack.kernel.name, "target": target, "suite": suite}
    # A recording says nothing of programs in general, nor another chip of the board.
    if suite in SUITES and stack.board.sha256 == load_board(stack.board.name).sha256:
        keep(out, run, compared, {"flashbed_version": __version__, "commit": commit()})
    if output == "json":
        print(json.dumps(compared.as_json(), indent=1))
    else:
        _show(compared)
        _show_unlike(stack.kernel)
    if compared.failed:
        raise RunError(f"{len(compared.failed)} cases failed")


def _compared(
    suite: str, on: ChosenTarget, board: Board, kernel: Kernel, *, replay: bool, jobs: int | None
) -> ComparedSuite:
    """Runs both sides; cases that the simulator refuses do not run on the kernel.

    On user-mode Linux code takes no time, so the simulator's software costs are set to 0 too:
    timers and threads then run at the same points on both sides.
    """
    from flashbed.bench.validation import LIMITS, ComparedSuite, compare, kinds, programs
    from flashbed.targets import load_target

    cases = programs(suite, board, kernel)
    alike = board if load_target(on).software_time else board.without_software()
    simulated = measured_on("sim", "validate", programs(suite, alike, kernel))
    known = set(simulated.cases["case_id"])
    # A probe is kept although it is not compared: work it leaves may fall into a short case.
    measurable = [
        replace(case, record_gc_choices=replay and case.case_id in simulated.gc_choices)
        for case in cases
        if case.case_id in known
    ]
    real = measured_on(on, "validate", measurable, jobs)
    broken = [("sim", failure) for failure in simulated.failures if failure.not_modelled is None]
    refused = {
        failure.case_id: failure.not_modelled
        for failure in simulated.failures
        if failure.not_modelled is not None
    }
    refused |= {
        failure.case_id: f"not measured: {failure.message}"
        for failure in real.failures
        if failure.not_measured
    }
    where = shown_target(on)
    broken += [(where, failure) for failure in real.failures if not failure.not_measured]
    return ComparedSuite(
        table=compare(
            _replayed(simulated, real.gc_choices, measurable, alike), real.cases, real.gc_choices
        ),
        kinds=kinds(suite, board),
        limits=LIMITS.get(suite, {}).get(where, {}),
        refused=refused,
        failed={failure.case_id: f"{where}: {failure.message}" for where, failure in broken},
    )


def _replayed(
    simulated: TargetResults,
    gc_choices: dict[str, tuple[int, ...]],
    measurable: Sequence[Program],
    board: Board,
) -> pl.DataFrame:
    """The simulator's cases; where the kernel's JFFS2 chose blocks, run with those choices."""
    replayed = [
        replace(
            program,
            gc_choices=gc_choices[program.case_id],
            stack=replace(program.stack, board=board),
        )
        for program in measurable
        if gc_choices.get(program.case_id)
    ]
    if not replayed:
        return simulated.cases
    again = measured_on("sim", "validate", replayed).cases
    return simulated.cases.update(again, on="case_id", include_nulls=True)


def _show(compared: ComparedSuite) -> None:
    summary = compared.as_json()
    _show_summary("all", summary, summary["limits"])
    for fs, part in summary["file_systems"].items():
        _show_summary(fs, part, {})
    if summary["replayed"]["cases"]:
        choices, cases = summary["replayed"]["gc_choices"], summary["replayed"]["cases"]
        print(f"JFFS2's GC choices are the kernel's: {choices} in {cases} cases")
    if len(summary["kinds"]) > 1:
        _show_kinds(summary["kinds"])
    _show_worst(compared)
    for title, cases in (
        (
            "refused: the simulator does not model it, or the target does not measure it",
            compared.refused,
        ),
        ("failed", compared.failed),
    ):
        if cases:
            print(f"{title}: {len(cases)} cases")
        for case_id, what in cases.items():
            print(f"  {case_id:44} {what}")


def _show_unlike(kernel: Kernel) -> None:
    """Prints which functions of an added kernel are not those that the simulator mirrors."""
    from flashbed.stack.imported.kernel_tree import mirrored_of
    from flashbed.targets.uml.own_kernels import own_kernel

    own = own_kernel(cache_folder(), kernel.name)
    if own is None:
        return
    for file, names in mirrored_of(own.differing).items():
        print(f"not as in Linux {own.like}, which the simulator mirrors: {file} {', '.join(names)}")


def _show_summary(title: str, summary: dict[str, Any], limits: dict[str, Any]) -> None:
    from flashbed.bench.validation import MEASURES

    print(f"{title}: {summary['cases']} cases")
    for name in MEASURES:
        errors = summary[name]
        if errors is None:
            print(f"  {name:15} not known on this target")
            continue
        limit = limits.get(name)
        said = ""
        if limit:
            bounds = f"{limit['mean_limit_pct']:g} and {limit['worst_limit_pct']:g} % at most"
            said = f" ({bounds}: {'kept' if limit['kept'] else 'NOT kept'})"
        print(
            f"  {name:15} exact in {100 * errors['exact_share']:5.1f} %, "
            f"off by {errors['mean_error_pct']:.2f} % in the mean, "
            f"{errors['worst_error_pct']:.2f} % at worst{said}"
        )


def _show_kinds(kinds: dict[str, Any]) -> None:
    """Prints mean and worst error of each kind of case, in percent."""
    from flashbed.bench.validation import MEASURES

    print(f"{'error, %: mean / worst':22}{'cases':>6}{'refused':>8}", end="")
    print("".join(f"{name.removeprefix('flash_'):>16}" for name in MEASURES))
    for kind, part in kinds.items():
        print(f"  {kind:20}{part['cases']:6}{part['refused']:8}", end="")
        for name in MEASURES:
            errors = part[name]
            known = errors and f"{errors['mean_error_pct']:.2f} / {errors['worst_error_pct']:.2f}"
            print(f"{known or '-':>16}", end="")
        print()


def _show_worst(compared: ComparedSuite) -> None:
    import polars as pl

    from flashbed.bench.validation import MEASURES

    for name in MEASURES:
        error = pl.col(f"{name}_error_pct")
        known = compared.table.filter(error.is_not_null() & (error != 0))
        if not known.height:
            continue
        print(f"worst in {name}:")
        worst = known.sort(error.abs(), descending=True, maintain_order=True).head(WORST_SHOWN)
        for row in worst.iter_rows(named=True):
            print(
                f"  {row['case_id']:44} {row[name]:>12,} simulated, "
                f"{row[f'{name}_real']:>12,} real, {row[f'{name}_error_pct']:+.2f} %"
            )
