"""The command that says how far the simulator is from a real kernel: validate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flashbed.cli.measured import cases_on
from flashbed.errors import InputError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["register"]

Name = Annotated[str, typer.Argument(metavar="BOARD", help="A profile of boards/.")]
On = Annotated[str, typer.Option("--on", metavar="TARGET", help="Where the real kernel is.")]
KernelName = Annotated[str, typer.Option("--kernel", metavar="KERNEL", help="Its kernel.")]
Suite = Annotated[str, typer.Option("--suite", metavar="reads", help="Which cases.")]
Format = Annotated[str, typer.Option("--format", metavar="text|json")]

WORST_SHOWN = 5


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "validate",
        epilog="Examples: `flashbed validate emulated` · "
        "`flashbed validate emulated --on uml --suite reads --format json`",
    )(validate)


def validate(
    board: Name,
    suite: Suite = "reads",
    on: On = "emulator",
    kernel: KernelName = "6.1",
    output: Format = "text",
) -> None:
    """Holds the simulator against a real kernel, on cases nothing was fitted to.

    docs/validation.md has the cases. Prints how many flash operations are exact and how far times
    are off, over all cases, by file system, and for the worst.
    """
    from flashbed.profiles import load_board, load_kernel
    from flashbed.validation import SUITES, compare, programs, summary

    if suite not in SUITES:
        raise InputError(f"--suite {suite}: no such suite; there are {', '.join(SUITES)}")
    if on == "sim":
        raise InputError("--on sim: the simulator is what is validated")
    if output not in ("text", "json"):
        raise InputError(f"--format {output}: text or json")
    cases = programs(suite, load_board(board), load_kernel(kernel))
    compared = compare(*(cases_on(target, "validate", cases) for target in ("sim", on)))
    if output == "json":
        print(json.dumps(summary(compared), indent=1))
    else:
        _show(compared)


def _show(compared: pl.DataFrame) -> None:
    import polars as pl

    from flashbed.validation import FILE_SYSTEMS, MEASURES, summary

    parts = {"all": compared}
    for fs in FILE_SYSTEMS:
        parts[fs] = compared.filter(pl.col("case_id").str.starts_with(f"validate-{fs}-"))
    for title, part in parts.items():
        told: dict[str, Any] = summary(part)
        print(f"{title}: {told['cases']} cases")
        for name in MEASURES:
            errors = told[name]
            if errors is None:
                print(f"  {name:15} not known on this target")
                continue
            print(
                f"  {name:15} exact in {100 * errors['exact_share']:5.1f} %, "
                f"off by {errors['mean_error_pct']:.2f} % in the mean, "
                f"{errors['worst_error_pct']:.2f} % at worst"
            )
    for name in ("flash_reads", "flash_time", "time"):
        error = pl.col(f"{name}_error_pct")
        known = compared.filter(error.is_not_null())
        if not known.height:
            continue
        print(f"worst in {name}:")
        worst = known.sort(error.abs(), descending=True).head(WORST_SHOWN)
        for row in worst.iter_rows(named=True):
            print(
                f"  {row['case_id']:44} {row[name]:>12,} simulated, "
                f"{row[f'{name}_real']:>12,} real, {row[f'{name}_error_pct']:+.2f} %"
            )
