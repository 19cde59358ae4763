"""The command `calibrate`: measures what a board's software costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError
from flashbed.base.files import output, read_text
from flashbed.base.paths import shown
from flashbed.cli.boards import Erase, all_allowed, shown_target
from flashbed.cli.options import MACHINE, ChipSet, KernelName, chosen
from flashbed.cli.programs import cases_and_requests_on
from flashbed.cli.progress import say, working
from flashbed.cli.run import failure_lines
from flashbed.plan.stacks import one_stack

if TYPE_CHECKING:
    from flashbed.bench.calibration import Fit
    from flashbed.stack.profiles import Board

__all__ = ["register"]

Name = Annotated[str, typer.Argument(metavar="BOARD", help="The name of a profile in boards/.")]
On = Annotated[
    str,
    typer.Option("--on", metavar="TARGET", help="Where to measure: emulator, ssh://USER@HOST."),
]
Only = Annotated[
    str,
    typer.Option(
        "--only",
        metavar="PRICES",
        help="Fit these prices alone, separated by commas, from the cases in which they occur; the "
        "others stay as they are.",
    ),
]
Write = Annotated[bool, typer.Option("--write", help="Write the costs into the board's profile.")]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "calibrate",
        epilog="Examples: `flashbed calibrate emulated` · `flashbed calibrate emulated --write` · "
        "`flashbed calibrate emulated --only path_ns,stat_ns` · "
        "`flashbed calibrate mine --on ssh://root@board --erase mtd5:data --write`",
    )(calibrate)


def calibrate(
    board: Name,
    on: On = "emulator",
    *,
    kernel: KernelName = None,
    settings: ChipSet = None,
    only: Only = "",
    write: Write = False,
    erase: Erase = None,
) -> None:
    """Measures what the software of a board costs, layer by layer (evidence/calibration.md).

    Chip timing comes from the profile and is not fitted. Prints each cost with its standard error,
    and how well the costs explain each calibration case.
    """
    from flashbed.bench.calibration import (
        cases_with,
        fit,
        programs,
        seen_costs,
        with_prices,
        with_software_table,
    )

    if on == "sim":
        raise InputError("--on sim: the simulator has no software costs of its own to measure")
    (target,) = all_allowed([on], erase)
    stack = one_stack(chosen(settings, board=board, kernel=kernel), axes=MACHINE)
    profile = stack.board
    cases = programs(profile, stack.kernel)
    alone = tuple(only.split(",")) if only else ()
    if alone:
        cases = cases_with(cases, alone)
    measured, requests, lacking = cases_and_requests_on(target, "calibrate", cases)
    for line in failure_lines(lacking):
        say(f"flashbed: {shown_target(target)}: not measured: {line}")
    there = set(measured["case_id"])
    taken = [case for case in cases if case.case_id in there]
    with working("fitting the prices"):
        fitted = fit(taken, measured["time_ns"].to_list(), alone)
    _show(fitted)
    if write and alone:
        _replace(profile, with_prices(read_text(profile.path), fitted, profile))
        say(f"calibrate: wrote {only} of {shown(profile.path)}")
    elif write:
        source = _source(shown_target(target), measured["kernel_release"][0], fitted)
        before = read_text(profile.path)
        syscall_ns = fitted.costs.get("syscall_ns", profile.software.syscall_ns)
        seen = seen_costs(requests, syscall_ns)
        text = with_software_table(before, fitted, seen=seen, board=profile, source=source)
        _replace(profile, text)
        say(f"calibrate: wrote [software] of {shown(profile.path)}")


def _source(on: str, release: str, fitted: Fit) -> str:
    errors = [abs(error) for error in fitted.cases["error_pct"].to_list()]
    return (
        f"flashbed calibrate --on {on}: {len(errors)} cases of evidence/calibration.md,"
        f" {release}; "
        f"fit error {sum(errors) / len(errors):.2f} % in the mean and {max(errors):.2f} % "
        "at worst"
    )


def _show(fitted: Fit) -> None:
    for name in fitted.kept:
        print(f"{name:22} in no case that was measured: unchanged")
    for name, value in fitted.costs.items():
        unit = name.rsplit("_", 1)[1]
        print(f"{name:22} {value:>10,} {unit}  +- {fitted.standard_errors[name]:,.0f}")
    print()
    for row in fitted.cases.iter_rows(named=True):
        cpu_share = 100 * (1 - row["chip_ns"] / row["measured_ns"])
        print(
            f"{row['case_id']:36} {row['measured_ns'] / 1e6:9.3f} ms, "
            f"{cpu_share:3.0f} % CPU, explained {row['error_pct']:+.2f} %"
        )


def _replace(board: Board, text: str) -> None:
    """Writes the profile whole or not at all."""
    with output(board.path) as new:
        new.write_text(text, encoding="utf-8")
