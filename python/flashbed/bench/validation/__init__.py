"""Validation suites: cases that compare the simulator with a real kernel, layer by layer.

A suite is a fixed list of small programs. A test ensures that no calibration and no experiment uses
them. They run on the simulator and on a real kernel; counts of flash operations and times are
compared case by case (comparison.py). Chip timing and software costs come from the board's profile;
nothing is fitted on the way.

The suites are reads.py, writes.py and compressors.py; a recording is one of its own. Left out so
far: a second chip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from flashbed.bench.validation import compressors, reads, recorded, writes
from flashbed.bench.validation.comparison import LIMITS, MEASURES, ComparedSuite, compare, summary
from flashbed.bench.validation.suite_case import SuiteCase, case_id
from flashbed.program.operations import HEADER
from flashbed.program.recording.recognised import is_recording
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.profiles import Board, Kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program

__all__ = [
    "LIMITS",
    "MEASURES",
    "SUITES",
    "ComparedSuite",
    "compare",
    "is_suite",
    "kinds",
    "programs",
    "summary",
]

SUITES: Mapping[str, Callable[[str, Board], Iterator[SuiteCase]]] = {
    "reads": reads.cases,
    "writes": writes.cases,
    "compressors": compressors.cases,
}


def _cases(suite: str, board: Board) -> Iterator[tuple[str, str, SuiteCase]]:
    """case_id, file system and case."""
    for fs in FILE_SYSTEMS:
        for case in SUITES[suite](fs, board):
            yield case_id(fs, case.name), fs, case


def is_suite(suite: str) -> bool:
    """Whether there is a suite of this name, or a recording in this file."""
    return suite in SUITES or is_recording(Path(suite))


def programs(suite: str, board: Board, kernel: Kernel) -> list[Program]:
    """The cases of a suite on a board, grouped by file system."""
    if suite not in SUITES:
        return recorded.programs(Path(suite), board, kernel)
    return [
        Program(
            case_id=name,
            stack=Stack(
                fs=fs,
                board=board,
                kernel=kernel,
                read_ahead_kib=case.read_ahead_kib,
                mount_options="bulk_read" if case.bulk_read else "",
                compressor=case.compressor,
            ),
            prepare=case.prepare,
            body="\n".join([HEADER, *case.lines, ""]),
        )
        for name, fs, case in _cases(suite, board)
    ]


def kinds(suite: str, board: Board) -> dict[str, str]:
    """case_id -> kind of case, in the suite's order."""
    if suite not in SUITES:
        return {case_id(fs, Path(suite).stem): "recorded" for fs in FILE_SYSTEMS}
    return {name: case.kind for name, _, case in _cases(suite, board)}
