"""`fb.run`: runs an experiment or a program on targets."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from flashbed.api.measuring import conclude, measure
from flashbed.api.own_experiment import OwnExperiment, Settings
from flashbed.api.own_program import OwnProgram
from flashbed.api.result import OwnResult, Result, own_folder
from flashbed.api.shown_progress import Shown
from flashbed.base.errors import InputError, TargetUnavailable
from flashbed.base.forks import need_threads
from flashbed.plan.narrowing import several
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

TRACES = ("flash", "wear", "waits")


def run(
    what: OwnExperiment | OwnProgram | str | Path,
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
        what: An `fb.Experiment`, an `fb.Program`, the name of an experiment, or its file.
        on: `sim`, `uml`, `emulator`, `ssh://USER@HOST`, or a list of them.
        set: Axis -> a value or a list of values; only cases with these run.
        out: A folder that keeps the tables. Running into it again continues an interrupted run.
        trace: `flash` keeps every flash operation, `wear` the erases of every block,
            `waits` what each call waited for.
        erase: `mtdN:NAME`, the partition of an `ssh://` board to erase and use.
        jobs: How many cases run at once, by default one per processor. The results are the same
            for every number.

    Raises:
        errors.InputError: an argument is wrong.
        errors.TargetUnavailable: nothing could run on a target; `targets` says why.
        errors.CasesFailed: cases failed; `failures` has one for each.
    """
    need_threads("fb.run")
    experiment = _experiment(what)
    planned = experiment.planned(set)
    targets = [_allowed(name, erase) for name in ([on] if isinstance(on, str) else on)]
    for target in targets:
        if not any(is_board(target) or target in item.targets for item in planned):
            raise InputError(f"on {target}: none of the chosen cases of {experiment.id} runs on it")
    traces = [trace] if isinstance(trace, str) else list(trace)
    for name in traces:
        if name not in TRACES:
            raise InputError(f"trace {name}: must be {', '.join(TRACES)}, or several")
    way = Way(parse_jobs(jobs))
    directory = own_folder() if out is None else Path(out)
    try:
        outcomes, missing = measure(
            experiment.plan,
            planned,
            targets=targets,
            out=directory,
            traces=traces,
            watch=Shown(),
            way=way,
        )
        if missing:
            raise TargetUnavailable({str(name): why for name, why in missing.items()})
        conclude(outcomes)
        names = [item.case.case_id for item in planned]
        apart = several(set or {})
        if out is None:
            return OwnResult(directory, names, apart)
        return Result(directory, cases=names, apart=apart)
    except BaseException:
        if out is None:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def _experiment(what: OwnExperiment | OwnProgram | str | Path) -> OwnExperiment:
    if isinstance(what, OwnExperiment):
        return what
    return OwnExperiment.of_program(what) if isinstance(what, OwnProgram) else OwnExperiment(what)


def _allowed(name: str, erase: str | None) -> ChosenTarget:
    """A target by its name; for a board, with the partition that `erase` names and confirms."""
    check_target(name)
    if not is_address(name):
        return name
    address = parse_address(name)
    if address.directory is not None:
        return AllowedBoard(address)
    if erase is None:
        raise InputError(f"on {name}: needs erase='mtdN:NAME', the partition to erase and use")
    partition = parse_partition(erase, f"erase {erase}")
    if partition.name is None:
        raise InputError(f"erase {erase}: needs the partition's name on the board: mtdN:NAME")
    return AllowedBoard(address, ConfirmedPartition(partition.number, partition.name))
