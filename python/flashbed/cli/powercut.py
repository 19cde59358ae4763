"""The command `powercut`: cuts the power and judges what survives."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from flashbed.base.errors import InputError, RunError
from flashbed.base.locking import held
from flashbed.base.paths import shown
from flashbed.cli.options import CaseId, Format, Out, Set
from flashbed.cli.progress import bar, say
from flashbed.cli.run import failure_lines
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.planned import Planned

__all__ = ["register"]

SAMPLES = 500

On = Annotated[str, typer.Option("--on", metavar="TARGET", help="uml, emulator or sim.")]
Step = Annotated[int | None, typer.Option("--step", metavar="N", min=1, help="Every Nth change.")]
Samples = Annotated[
    int | None,
    typer.Option(
        "--samples", metavar="N", min=1, help=f"N changes, drawn by --seed. Default: {SAMPLES}."
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, max=2**40, help="Seed of draws and tears.")
]
Chip = Annotated[
    list[str] | None,
    typer.Option(
        "--chip",
        metavar="COMMAND",
        help="Inject a fault when measuring starts: `drop 40` loses the 40th page write.",
    ),
]


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "powercut",
        epilog="Examples: `flashbed powercut powercut/fsync` · "
        "`flashbed powercut fsync --step 1 --set fs=ubifs --out /tmp/cuts` · "
        "`flashbed powercut fsync --samples 60 --chip 'drop 40' --format json`",
    )(powercut)


def powercut(
    experiment: Annotated[str, typer.Argument(help="STUDY/NAME, NAME, or a .toml file.")],
    on: On = "uml",
    *,
    step: Step = None,
    samples: Samples = None,
    settings: Set = None,
    case: CaseId = None,
    seed: Seed = 1,
    chip: Chip = None,
    out: Out = None,
    output: Format = "text",
) -> None:
    """Cuts the power during a case's changes to the chip, and prints what survived.

    Each case runs once to count its changes. For each chosen change, flashbed puts the chip into
    the state that a power cut leaves, tears the page or block as the seed says, mounts it, and
    reads every file. docs/models/power-cuts.md lists what has to be there. Exit status 1 if any cut
    did not recover.
    """
    from flashbed.bench.powercut.cutting import Choice, PowerCuts
    from flashbed.bench.powercut.outcomes import lines
    from flashbed.results.run_directory import RunDirectory
    from flashbed.running.runner import run_target
    from flashbed.targets import load_target
    from flashbed.targets.unavailable import Unavailable

    chosen = load_experiment(experiment)
    planned: Sequence[Planned] = plan(chosen, parse_settings(settings or []))
    if case is not None:
        planned = [item for item in planned if item.case.case_id == case]
    planned = [item for item in planned if on in item.targets]
    if on == "sim" and chip:
        raise InputError("--chip: the simulator's chip has no driver that takes commands")
    _check(
        chosen.id, on, step=step, samples=samples, case_count=len(planned),
        case=case,
    )  # fmt: skip
    if step is None and samples is None:
        samples = SAMPLES
    choice = Choice(step, samples, seed, tuple(chip or ()))
    folder = out or Path("results") / chosen.id
    target = PowerCuts(load_target(on), choice, on, rests=True)
    try:
        with held(folder), bar(f"{chosen.id} on {on}") as progress:
            directory = RunDirectory.create(folder, chosen.id)
            outcome = run_target(
                chosen, planned, target, directory,
                trace_flash=False, progress=progress, conditions=target.conditions,
            )  # fmt: skip
    except Unavailable as why:
        raise RunError(f"{on}: {why}") from None
    for line in failure_lines(outcome.failures):
        say(f"flashbed: {on}: {line}")
    rows: list[dict[str, Any]] = []
    failed: list[tuple[str, str]] = []
    if outcome.measured + outcome.kept:
        rows, failed = _told(directory.path, {item.case.case_id for item in planned}, on)
    if output == "json":
        told = {"directory": str(directory.path), "cases": rows, "failed": dict(failed)}
        print(json.dumps(told, indent=1))
    else:
        print("\n".join([*lines(rows), *_warnings(failed), shown(directory.path.absolute())]))
    bad = sum(row["cuts"] - row["recovered"] for row in rows)
    if bad:
        raise RunError(f"{bad} of {sum(row['cuts'] for row in rows)} cuts did not recover")
    if outcome.failures:
        raise RunError(f"{len(outcome.failures)} cases or cuts failed; the others are kept")


def _told(
    directory: Path, names: Collection[str], on: str
) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """The summary of these cases' cuts, and the calls that failed, by case."""
    import polars as pl

    from flashbed.bench.powercut.outcomes import cut_tables, summary
    from flashbed.results.failed_calls import failed_by_case
    from flashbed.results.run_directory import read_table

    mine = pl.col("case_id").is_in(names) & (pl.col("target") == on)
    cuts, files = cut_tables(directory)
    cases = read_table(directory, "cases").filter(mine)
    return summary(cuts.filter(mine), files.filter(mine)), failed_by_case(cases)


def _warnings(failed: Sequence[tuple[str, str]]) -> list[str]:
    """A line for each case in which calls failed."""
    less = "what was cut is less than the program's work"
    return [f"WARNING: {name}: {words}: {less}" for name, words in failed]


def _check(
    name: str,
    on: str,
    *,
    step: int | None,
    samples: int | None,
    case_count: int,
    case: str | None,
) -> None:
    """Raises `InputError` for impossible combinations of options."""
    from flashbed.targets import TARGETS

    if on not in TARGETS:
        raise InputError(f"--on {on}: no such target; there are {', '.join(TARGETS)}")
    if step is not None and samples is not None:
        raise InputError("--step and --samples: one of them")
    if case is not None and not case_count:
        raise InputError(f"--case {case}: no such case of {name} on {on}")
    if not case_count:
        raise InputError(f"--on {on}: none of the chosen cases of {name} runs on it")
