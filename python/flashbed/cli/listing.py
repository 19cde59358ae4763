"""The command `list`: lists experiments, and what they can be made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Annotated, TypeVar

import typer

from flashbed.base.errors import InputError
from flashbed.base.human import bytes_text, time_text
from flashbed.base.paths import layout_files
from flashbed.cli.progress import say
from flashbed.plan.axes import REQUIRED
from flashbed.plan.case import AXES
from flashbed.plan.experiment import experiment_names, load_experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.patterns import WORKLOADS
from flashbed.stack.layouts import load_layout
from flashbed.stack.profiles import Board, board_names, kernel_names, load_board, load_kernel

__all__ = ["register"]

Loaded = TypeVar("Loaded")


class What(Enum):
    """What `list` can list."""

    EXPERIMENTS = "experiments"
    BOARDS = "boards"
    CHIPS = "chips"
    KERNELS = "kernels"
    LAYOUTS = "layouts"
    WORKLOADS = "workloads"
    AXES = "axes"


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command(
        "list",
        epilog="Examples: `flashbed list` · `flashbed list boards` · `flashbed list axes`",
    )(list_)


def list_(
    what: Annotated[What, typer.Argument(help="What to list.")] = What.EXPERIMENTS,
) -> None:
    """Lists experiments, or the boards, chips, layouts and other parts that they name."""
    _LISTS[what]()


def _each(names: Iterable[str], load: Callable[[str], Loaded]) -> Iterator[tuple[str, Loaded]]:
    """The names with what their files hold; a file that is wrong is left out, and told."""
    for name in names:
        try:
            yield name, load(name)
        except InputError as wrong:
            more = f" (and {len(wrong.also)} more mistakes)" if wrong.also else ""
            say(f"flashbed: left out: {wrong}{more}")


def _experiments() -> None:
    for name, experiment in _each(experiment_names(), load_experiment):
        planned = plan(experiment)
        counts = ", ".join(
            f"{sum(target in item.targets for item in planned)} on {target}"
            for target in experiment.targets
        )
        print(f"{name}  {experiment.experiment.title}")
        print(f"    {experiment.experiment.question}")
        print(f"    cases: {counts}")
    others = ", ".join(what.value for what in What if what != What.EXPERIMENTS)
    print(f"`flashbed list` also lists {others}.")


def _boards() -> None:
    for name, board in _each(board_names(), load_board):
        print(f"{name}  {board.board.title}")
        partition = bytes_text(board.partition_bytes)
        print(f"    partition of {partition}, memory {board.board.ram_mib} MiB")


def _chips() -> None:
    for name, board in _each(board_names(), load_board):
        print(f"{name}  {_chip(board)}")


def _chip(board: Board) -> str:
    chip = board.chip
    size_bytes = chip.page_bytes * chip.pages_per_block * chip.blocks
    return (
        f"{bytes_text(size_bytes)}: pages of {chip.page_bytes} + {chip.oob_bytes} B,"
        f" {chip.pages_per_block} a block, {chip.blocks} blocks;"
        f" read {time_text(chip.read_array_ns)}, write {time_text(chip.program_array_ns)},"
        f" erase {time_text(chip.erase_array_ns)}"
    )


def _kernels() -> None:
    for name, kernel in _each(kernel_names(), load_kernel):
        print(f"{name}  on {', '.join(kernel.kernel.targets)}")


def _layouts() -> None:
    for name, layout in _each(sorted(layout_files()), load_layout):
        print(f"{name}  {layout.title}")


def _workloads() -> None:
    for kind, workload in WORKLOADS.items():
        print(f"{kind}  patterns: {', '.join(workload.patterns)}")


def _axes() -> None:
    for name, about in AXES.items():
        usual = "" if about.usual is REQUIRED or about.of_workload else f"; default {about.usual}"
        print(f"{name}  {about.means}{usual}")


_LISTS: dict[What, Callable[[], None]] = {
    What.EXPERIMENTS: _experiments,
    What.BOARDS: _boards,
    What.CHIPS: _chips,
    What.KERNELS: _kernels,
    What.LAYOUTS: _layouts,
    What.WORKLOADS: _workloads,
    What.AXES: _axes,
}
