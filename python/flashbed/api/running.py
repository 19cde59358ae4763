"""`fb.run`: an experiment or a program on targets, and what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from flashbed.api.measuring import conclude, measure
from flashbed.api.own_experiment import Experiment, Settings
from flashbed.api.own_program import Program
from flashbed.api.result import OwnResult, Result, own_folder
from flashbed.api.shown_progress import Shown
from flashbed.errors import InputError, TargetUnavailable
from flashbed.running.ways import Way, parse_jobs
from flashbed.targets import check_target
from flashbed.targets.ssh.address import (
    AllowedBoard,
    ChosenTarget,
    ConfirmedPartition,
    is_address,
    is_board,
    parse_address,
    parse_partition,
)

__all__ = ["run"]

TRACES = ("flash", "wear")


def run(
    what: Experiment | Program | str | Path,
    on: str | Sequence[str] = "sim",
    set: Settings | None = None,  # noqa: A002
    *,
    out: str | Path | None = None,
    trace: str | Sequence[str] = (),
    erase: str | None = None,
    jobs: int | None = None,
) -> Result:
    """Runs an experiment or a program on one target or several.

    Args:
        what: An `Experiment`, a `Program`, the name of an experiment, or a file of one.
        on: `sim`, `uml`, `emulator`, `ssh://USER@HOST`, or a list of them.
        set: Axis -> a value or a list of values: only these are run.
        out: A folder that keeps the tables. A run into it again goes on where it was.
        trace: `flash` keeps every flash operation, `wear` the erases of every block.
        erase: `mtdN:NAME`, the partition of an `ssh://` board that is erased and used.
        jobs: How many cases run at once; one for each processor if it is not said. Results are the
            same.

    Raises:
        errors.InputError: what was asked cannot be meant.
        errors.TargetUnavailable: nothing could be run on a target; `targets` says why.
        errors.CasesFailed: cases failed; `failures` has one for each.
    """
    experiment = _experiment(what)
    planned = experiment.planned(set)
    targets = [_allowed(name, erase) for name in ([on] if isinstance(on, str) else on)]
    for target in targets:
        if not any(is_board(target) or target in item.targets for item in planned):
            raise InputError(f"on {target}: no case of {experiment.id} that was asked runs on it")
    traces = [trace] if isinstance(trace, str) else list(trace)
    for name in traces:
        if name not in TRACES:
            raise InputError(f"trace {name}: {' and '.join(TRACES)} can be traced")
    way = Way(parse_jobs(jobs))
    directory = own_folder() if out is None else Path(out)
    try:
        outcomes, missing = measure(
            experiment.plan, planned, targets, directory, traces, Shown(), way
        )
        if missing:
            raise TargetUnavailable({str(name): why for name, why in missing.items()})
        conclude(outcomes)
        names = [item.case.case_id for item in planned]
        return Result(directory, cases=names) if out else OwnResult(directory, names)
    except BaseException:
        if out is None:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def _experiment(what: Experiment | Program | str | Path) -> Experiment:
    if isinstance(what, Experiment):
        return what
    return Experiment.of_program(what) if isinstance(what, Program) else Experiment(what)


def _allowed(name: str, erase: str | None) -> ChosenTarget:
    """A target; a board with the partition that may be erased, whose name stands beside it."""
    check_target(name)
    if not is_address(name):
        return name
    address = parse_address(name)
    if address.directory is not None:
        return AllowedBoard(address)
    if erase is None:
        raise InputError(f"on {name}: erase='mtdN:NAME' says which partition is erased and used")
    partition = parse_partition(erase, f"erase {erase}")
    if partition.name is None:
        raise InputError(f"erase {erase}: with the name it has on the board: mtdN:NAME")
    return AllowedBoard(address, ConfirmedPartition(partition.number, partition.name))
