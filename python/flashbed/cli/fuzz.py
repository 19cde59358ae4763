"""The command `fuzz`: looks for programs on which simulator and kernel differ."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flashbed.base.errors import InputError, Interrupted, RunError
from flashbed.cli.options import Format
from flashbed.cli.progress import bar
from flashbed.plan.stacks import ChosenStack, stacks
from flashbed.stack.file_systems import FILE_SYSTEMS

if TYPE_CHECKING:
    from flashbed.bench.fuzz.bench import Bench
    from flashbed.bench.fuzz.campaign import CampaignPlan, Report
    from flashbed.bench.fuzz.cuts import CutsBench
    from flashbed.stack.stack import Stack

__all__ = ["register"]

CASES = 200

Class = Annotated[
    str,
    typer.Option(
        "--class",
        metavar="reads|maps|any|calls|full|cuts|cutcalls|faults|errors",
        help="Kind of program.",
    ),
]
From = Annotated[
    Path | None,
    typer.Option("--from", metavar="RECORDING", help="Mutate this recording instead of a class."),
]
Stacks = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="AXIS=VALUE,...",
        help="fs (default: jffs2,ubifs, and yaffs2 where its core is there), board, kernel,"
        " chip.KEY, partition.KEY.",
    ),
]
_HOLDING = ("fs", "board", "kernel", "chip", "partition")
"""The axes that choose where programs run; programs draw what the other axes would say."""
Cases = Annotated[
    int | None,
    typer.Option(
        "--cases",
        min=0,
        help=f"Programs per file system, 0 for no limit.  [default: {CASES}; no limit with"
        " --minutes]",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="First seed; each program adds one.")]
On = Annotated[str, typer.Option("--on", metavar="TARGET", help="Where the real kernel is.")]
Minutes = Annotated[
    float | None, typer.Option("--minutes", metavar="M", min=0, help="Stop after M minutes.")
]
Without = Annotated[
    str, typer.Option("--without", metavar="NAME,...", help="Operations or features to leave out.")
]
KeepGoing = Annotated[
    bool, typer.Option("--keep-going", help="Continue after the first difference.")
]
Batch = Annotated[int, typer.Option("--batch", min=1, help="Programs per boot.")]
Shrink = Annotated[bool, typer.Option("--shrink/--no-shrink", help="Shorten programs that differ.")]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "fuzz",
        epilog="Examples: `flashbed fuzz` · `flashbed fuzz --class any --set fs=ubifs --minutes 60`"
        " · `flashbed fuzz --set fs=jffs2 --seed 4711 --cases 1`"
        " · `flashbed fuzz --from logger.rec --cases 50`",
    )(fuzz)


def fuzz(
    kind: Class = "reads",
    recording: From = None,
    *,
    settings: Stacks = None,
    cases: Cases = None,
    seed: Seed = 0,
    on: On = "uml",
    minutes: Minutes = None,
    without: Without = "",
    keep_going: KeepGoing = False,
    batch: Batch = 200,
    shrink: Shrink = True,
    output: Format = "text",
) -> int:
    """Runs random programs on the simulator and on a real kernel, and stops where they differ.

    Results, bytes read and flash operations are compared in order. A program that differs is
    shortened while it still differs. --from changes a recording at random instead. Classes cuts
    and cutcalls cut the power instead and judge what is left; they also run with --on sim.
    python/flashbed/bench/fuzz/README.md explains the output. Exit status 1 if any differs.
    """
    from flashbed.bench.fuzz.campaign import CampaignPlan, Report
    from flashbed.bench.fuzz.mutations import RecordedSource

    _checked(kind, on)
    found = stacks(settings or [], axes=_HOLDING)
    first = _machine(found)
    named = "fs" in dict(found[0].changes)
    if cases is None:
        cases = 0 if minutes is not None else CASES
    plan = CampaignPlan(
        kind=kind,
        file_systems=tuple(each.stack.fs for each in found) if named else _default_systems(kind),
        seed=seed,
        cases=cases or None,
        without=tuple(name for name in without.split(",") if name),
        batch=batch,
        keep_going=keep_going,
        shrink=shrink,
        recorded=RecordedSource(recording, first.kernel.name) if recording else None,
    )
    bench, report = _bench(kind, on, first), Report(plan=plan)
    where = _where(on, found[0])
    try:
        _run(plan, bench, report, minutes)
    except KeyboardInterrupt:
        _tell(report, where, output)
        raise Interrupted(f"interrupted; --seed {report.next_seed} continues from here") from None
    _tell(report, where, output)
    return 0 if report.clean else 1


def _checked(kind: str, on: str) -> None:
    from flashbed.bench.fuzz.generator import CUT

    if on == "sim" and kind not in CUT:
        raise InputError("--on sim: the simulator is what the real kernel is compared with")


def _default_systems(kind: str) -> tuple[str, ...]:
    """JFFS2 and UBIFS; YAFFS2 too where a kernel has it without fetching its core first.

    Classes cuts and cutcalls omit YAFFS2: its truncation is known not to be atomic, and every run
    would report that again. Class full omits it too: how much a full partition holds is not
    specified.
    """
    from flashbed.bench.fuzz.generator import CUT
    from flashbed.targets.guest import yaffs2

    if kind in (*CUT, "full") or not yaffs2.core_found().found:
        return tuple(fs for fs in FILE_SYSTEMS if fs != yaffs2.FS)
    return tuple(FILE_SYSTEMS)


def _machine(found: Sequence[ChosenStack]) -> Stack:
    """Board and kernel, which all file systems share. Raises `InputError` for several."""
    for name, _ in found[0].changes:
        values = dict.fromkeys(dict(each.changes)[name] for each in found)
        if name != "fs" and len(values) > 1:
            raise InputError(f"--set {name}={','.join(values)}: only fs may have several values")
    return found[0].stack


def _bench(kind: str, on: str, machine: Stack) -> Bench | CutsBench:
    from flashbed.bench.fuzz.bench import Bench
    from flashbed.bench.fuzz.cuts import CutsBench
    from flashbed.bench.fuzz.generator import CUT
    from flashbed.targets import load_target

    if kind in CUT:
        targets = [load_target(name) for name in dict.fromkeys(("sim", on))]
        return CutsBench(targets, machine.board, machine.kernel)
    return Bench(load_target("sim"), load_target(on), machine.board, machine.kernel)


def _run(
    plan: CampaignPlan, bench: Bench | CutsBench, report: Report, minutes: float | None
) -> None:
    from flashbed.bench.fuzz.campaign import fuzz as campaign
    from flashbed.targets.unavailable import Unavailable

    end_s = None if minutes is None else time.monotonic() + 60 * minutes

    def stopped() -> bool:
        return end_s is not None and time.monotonic() >= end_s

    with bar("fuzz", unit="programs") as progress:
        try:
            campaign(plan, bench, report=report, progress=progress, stopped=stopped)
        except Unavailable as why:
            raise RunError(f"{bench.real.name}: {why}") from None


def _where(on: str, chosen: ChosenStack) -> str:
    """The options that repeat a program on the same machine."""
    machine = (f"--set {name}={value}" for name, value in chosen.changes if name != "fs")
    return " ".join([f"--on {on}", *machine])


def _tell(report: Report, where: str, output: str) -> None:
    from flashbed.bench.fuzz.report import block, summary

    if output == "json":
        print(json.dumps(report.to_json(), indent=1))
        return
    for found in report.found:
        print(block(found, report, where))
        print()
    print(summary(report))
