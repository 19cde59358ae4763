"""A recording as a suite: the program itself on every file system, `--suite FILE`.

What is said of it is said of this program alone, so it is not kept among a board's results.
"""

from __future__ import annotations

from pathlib import Path

from flashbed.bench.validation.suite_case import case_id
from flashbed.plan.workloads.recorded_program import as_recorded
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.profiles import Board, Kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program

__all__ = ["programs"]


def programs(recording: Path, board: Board, kernel: Kernel) -> list[Program]:
    """The recording as it was recorded, a case for each file system. Raises `RecordingError`."""
    return [
        Program(
            case_id=case_id(case.fs, recording.stem),
            stack=Stack(fs=case.fs, board=board, kernel=kernel, read_ahead_kib=case.forced_kib),
            prepare=prepare,
            body=body,
        )
        for case, prepare, body in as_recorded(recording, kernel.name, tuple(FILE_SYSTEMS))
    ]
