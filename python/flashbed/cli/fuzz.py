"""The command that looks for programs on which simulator and kernel differ: fuzz."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.cli.progress import bar
from flashbed.errors import InputError, Interrupted, RunError

if TYPE_CHECKING:
    from flashbed.fuzz.bench import Bench
    from flashbed.fuzz.campaign import Plan, Report
    from flashbed.fuzz.cuts import CutsBench

__all__ = ["register"]

FILE_SYSTEMS = ("jffs2", "ubifs", "yaffs2")
CASES = 200

Class = Annotated[
    str,
    typer.Option("--class", metavar="reads|any|calls|full|cuts|faults", help="Kind of programs."),
]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="RECORDING", help="Mutate this recording instead of a class."),
]
Systems = Annotated[
    str | None,
    typer.Option(
        "--fs",
        metavar="FS,...",
        help="File systems.  [default: jffs2,ubifs, and yaffs2 where its core is there]",
    ),
]
Cases = Annotated[
    int | None,
    typer.Option(
        "--cases",
        min=0,
        help=f"Programs of each file system, 0 for no end.  [default: {CASES}, or no end with"
        " --minutes]",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The first; they count up from it.")]
On = Annotated[str, typer.Option("--on", metavar="TARGET", help="Where the real kernel is.")]
Minutes = Annotated[
    float | None, typer.Option("--minutes", metavar="M", min=0, help="Stop after this time.")
]
BoardName = Annotated[str, typer.Option("--board", metavar="BOARD", help="A profile of boards/.")]
KernelName = Annotated[str, typer.Option("--kernel", metavar="KERNEL", help="Its kernel.")]
Without = Annotated[
    str, typer.Option("--without", metavar="NAME,...", help="Operations and features to leave out.")
]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Do not stop at the first difference.")
]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Programs in one call, so in one boot.")]
Shrink = Annotated[
    bool, typer.Option("--shrink/--no-shrink", help="Make programs that differ shorter.")
]
Format = Annotated[str, typer.Option("--format", metavar="text|json")]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "fuzz",
        epilog="Examples: `flashbed fuzz` · `flashbed fuzz --class any --fs ubifs --minutes 60`"
        " · `flashbed fuzz --fs jffs2 --seed 4711 --cases 1`"
        " · `flashbed fuzz --from logger.rec --cases 50`",
    )(fuzz)


def fuzz(
    kind: Class = "reads",
    recording: From = None,
    fs: Systems = None,
    cases: Cases = None,
    seed: Seed = 0,
    on: On = "uml",
    minutes: Minutes = None,
    board: BoardName = "emulated",
    kernel: KernelName = "6.1",
    without: Without = "",
    keep_going: KeepGoing = False,
    batch: Batch = 200,
    shrink: Shrink = True,
    output: Format = "text",
) -> int:
    """Runs random programs on the simulator and a real kernel until they differ.

    Results, bytes read and flash operations are compared in order; a difference is made as
    short as it goes. --from changes a recording at random instead. Class cuts cuts the power and
    judges what is left, also with --on sim. docs/fuzzing.md tells how to read it. Exit status 1 if
    there was a difference.
    """
    from flashbed.fuzz.campaign import Plan, Report
    from flashbed.fuzz.mutations import Recorded

    _checked(kind, on, output)
    if cases is None:
        cases = 0 if minutes is not None else CASES
    plan = Plan(
        kind=kind,
        file_systems=_default_systems(kind) if fs is None else _systems(fs),
        seed=seed,
        cases=cases or None,
        without=tuple(name for name in without.split(",") if name),
        batch=batch,
        keep_going=keep_going,
        shrink=shrink,
        recorded=Recorded(recording, kernel) if recording else None,
    )
    bench, report = _bench(kind, on, board, kernel), Report(plan)
    try:
        _run(plan, bench, report, minutes)
    except KeyboardInterrupt:
        _tell(report, on, output)
        raise Interrupted(f"interrupted; --seed {report.next_seed} goes on from here") from None
    _tell(report, on, output)
    return 0 if report.clean else 1


def _checked(kind: str, on: str, output: str) -> None:
    if on == "sim" and kind != "cuts":
        raise InputError("--on sim: the simulator is what is held against a real kernel")
    if output not in ("text", "json"):
        raise InputError(f"--format {output}: text or json")


def _default_systems(kind: str) -> tuple[str, ...]:
    """YAFFS2 too where a kernel can run it without fetching its core first.

    Not where what is known of it would be found again and again (a truncation is not atomic), nor
    where nobody has said what a full partition of it holds.
    """
    from flashbed.targets.guest import yaffs2

    if kind in ("cuts", "full") or not yaffs2.core_found().found:
        return ("jffs2", "ubifs")
    return FILE_SYSTEMS


def _systems(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in FILE_SYSTEMS:
            raise InputError(
                f"--fs {name}: no such file system; there are {', '.join(FILE_SYSTEMS)}"
            )
    return names


def _bench(kind: str, on: str, board: str, kernel: str) -> Bench | CutsBench:
    from flashbed.formats.profiles import load_board, load_kernel
    from flashbed.fuzz.bench import Bench
    from flashbed.fuzz.cuts import CutsBench
    from flashbed.targets import load_target

    if kind == "cuts":
        targets = [load_target(name) for name in dict.fromkeys(("sim", on))]
        return CutsBench(targets, load_board(board), load_kernel(kernel))
    return Bench(load_target("sim"), load_target(on), load_board(board), load_kernel(kernel))


def _run(plan: Plan, bench: Bench | CutsBench, report: Report, minutes: float | None) -> None:
    from flashbed.fuzz.campaign import fuzz as campaign
    from flashbed.targets.base import Unavailable

    end_s = None if minutes is None else time.monotonic() + 60 * minutes

    def stopped() -> bool:
        return end_s is not None and time.monotonic() >= end_s

    with bar("fuzz", unit="programs") as progress:
        try:
            campaign(plan, bench, report, progress, stopped)
        except Unavailable as why:
            raise RunError(f"{bench.real.name}: {why}") from None


def _tell(report: Report, on: str, output: str) -> None:
    from flashbed.fuzz.report import block, summary

    if output == "json":
        print(json.dumps(report.to_json(), indent=1))
        return
    for found in report.found:
        print(block(found, report, on))
        print()
    print(summary(report))
