"""Measures cases on targets into a directory; `run`, `reproduce` and `fb.run` share it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from flashbed import __version__
from flashbed.base.errors import CasesFailed, InputError
from flashbed.base.locking import held
from flashbed.base.paths import shown
from flashbed.plan.case_units import WHOLE, Share
from flashbed.plan.experiment import Experiment
from flashbed.plan.planned import Plan
from flashbed.results.run_directory import CHIP_ALONE, RunDirectory
from flashbed.results.shards import FILE, Shard
from flashbed.running.runner import TargetOutcome, commit, run_target
from flashbed.running.ways import Way
from flashbed.targets import BOARD, load_target
from flashbed.targets.base import Failure
from flashbed.targets.ssh.address import AllowedBoard, ChosenTarget, is_board
from flashbed.targets.unavailable import Unavailable

__all__ = [
    "Watch",
    "conclude",
    "failure_lines",
    "measure",
]

Progress = Callable[[str, int, int | None], None]


class Watch(Protocol):
    """Receives the messages and the progress of a run."""

    def say(self, line: str) -> None:
        """Takes one line about a target or failed cases."""
        ...

    def running(self, title: str) -> AbstractContextManager[Progress]:
        """Yields `progress(what, done, total)` while a target runs."""
        ...


def measure(
    experiment: Experiment,
    planned: Plan,
    *,
    targets: Sequence[ChosenTarget],
    out: Path,
    traces: Sequence[str],
    watch: Watch,
    way: Way,
) -> tuple[list[TargetOutcome], dict[ChosenTarget, str]]:
    """Runs the cases on each target; returns outcomes, and why targets cannot run here.

    What runs on user-mode Linux also runs on the simulator that it is compared with. Raises
    `InputError` if another process is writing into `out`.
    """
    outcomes: list[TargetOutcome] = []
    unavailable: dict[ChosenTarget, str] = {}
    with held(out):
        directory = RunDirectory.create(out, experiment.id)
        _begin_share(out, way.share)
        for name in _with_chip_alone(targets, planned):
            if name == CHIP_ALONE and "uml" in unavailable:
                continue
            conditions = name.conditions if isinstance(name, AllowedBoard) else ""
            try:
                target = load_target(name)
                with watch.running(f"{experiment.id} on {name}") as progress:
                    outcome = run_target(
                        experiment, _chosen_by(name, planned), target, directory,
                        trace_flash="flash" in traces, record_wear="wear" in traces,
                        trace_waits="waits" in traces,
                        progress=progress, conditions=conditions, way=way,
                    )  # fmt: skip
            except Unavailable as why:
                watch.say(f"flashbed: {name} not measured: {why}")
                unavailable[name] = str(why)
                continue
            _say_outcome(f"{experiment.id} on {name}", name, outcome, watch)
            outcomes.append(outcome)
        if way.share != WHOLE:
            _shard(experiment, planned, traces=traces, share=way.share, outcomes=outcomes).write(
                out
            )
    return outcomes, unavailable


def _begin_share(out: Path, share: Share) -> None:
    """Marks this share unfinished. Raises `InputError` if the folder has another share."""
    path = out / FILE
    if not path.is_file():
        return
    there = Shard.read(out)
    if share not in (WHOLE, Share(there.number, there.of)):
        raise InputError(
            f"{shown(out)}: holds shard {there.number}/{there.of}; choose another --out"
        )
    path.unlink()


def _shard(
    experiment: Experiment,
    planned: Plan,
    *,
    traces: Sequence[str],
    share: Share,
    outcomes: Sequence[TargetOutcome],
) -> Shard:
    digest = hashlib.sha256(",".join(sorted(traces)).encode())
    for item in planned:
        digest.update(f"{item.case.case_id} {','.join(item.targets)}\n".encode())
    return Shard(
        number=share.number,
        of=share.of,
        experiment=experiment.id,
        experiment_sha256=experiment.sha256,
        flashbed_version=__version__,
        commit=commit() or "none",
        plan=digest.hexdigest(),
        targets=",".join(outcome.target for outcome in outcomes),
    )


def _say_outcome(title: str, name: ChosenTarget, outcome: TargetOutcome, watch: Watch) -> None:
    kept = f", {outcome.kept} were there" if outcome.kept else ""
    watch.say(f"{title}: {outcome.measured} cases measured{kept}")
    for line in failure_lines(outcome.failures):
        watch.say(f"flashbed: {name}: {line}")
    for line in failure_lines(outcome.not_measured):
        watch.say(f"flashbed: {name}: not measured: {line}")


def _with_chip_alone(targets: Sequence[ChosenTarget], planned: Plan) -> list[ChosenTarget]:
    """The targets, and after user-mode Linux the simulator that it is compared with."""
    compared = "uml" in targets and _chosen_by(CHIP_ALONE, planned)
    return [*targets, CHIP_ALONE] if compared else list(targets)


def _chosen_by(name: ChosenTarget, planned: Plan) -> Plan:
    """The cases that a target chooses from.

    A board gets every case and reports itself which it cannot run.
    """
    if name == CHIP_ALONE:
        return planned.retargeted((CHIP_ALONE,), needed=("sim", "uml"))
    return planned.retargeted((BOARD,)) if is_board(name) else planned


def failure_lines(failures: Sequence[Failure]) -> list[str]:
    """One line for each reason, with the first case that failed for it."""
    cases: dict[str, list[str]] = {}
    for failure in failures:
        cases.setdefault(" ".join(failure.message.split()), []).append(failure.case_id)
    return [
        f"case {ids[0]}{f' and {len(ids) - 1} more' if len(ids) > 1 else ''}: {message}"
        for message, ids in cases.items()
    ]


def conclude(outcomes: Sequence[TargetOutcome]) -> None:
    """Raises `CasesFailed` if a case failed, or none could be measured."""
    failed = {
        failure.case_id: failure.message for outcome in outcomes for failure in outcome.failures
    }
    count = sum(len(outcome.failures) for outcome in outcomes)
    for outcome in outcomes:
        if not failed and outcome.not_measured and not outcome.measured + outcome.kept:
            lacking = {failure.case_id: failure.message for failure in outcome.not_measured}
            raise CasesFailed(f"{outcome.target}: no case could be measured there", lacking)
    if failed:
        raise CasesFailed(f"{count} cases failed; the others are kept", failed)
