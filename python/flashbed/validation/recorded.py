"""A recording as a suite: the program itself on every file system, `--suite FILE`.

What is said of it is said of this program alone, so it is not kept among a board's results.
"""

from __future__ import annotations

from pathlib import Path

from flashbed.formats.profiles import Board, Kernel
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import plan
from flashbed.targets.base import Program
from flashbed.validation.suite_case import FILE_SYSTEMS
from flashbed.workloads.recorded_program import operations

__all__ = ["programs"]


def programs(recording: Path, board: Board, kernel: Kernel) -> list[Program]:
    """The recording as it was recorded, a case for each file system. Raises `RecordingError`."""
    experiment = load_experiment(str(recording))
    asked = {"fs": FILE_SYSTEMS, "kernel": (kernel.name,), "pattern": ("recorded",)}
    settle_ns, path = experiment.workload.settle_ns, str(recording.resolve())
    made = []
    for case in (planned.case for planned in plan(experiment, asked)):
        prepare, body = operations(case, settle_ns, path)
        made.append(
            Program(
                case_id=f"validate-{case.fs}-{recording.stem}",
                fs=case.fs,
                board=board,
                kernel=kernel,
                read_ahead_kib=case.forced_kib,
                prepare=prepare,
                body=body,
            )
        )
    return made
