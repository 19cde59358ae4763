"""Validation suites: cases that compare the simulator with a real kernel, layer by layer.

A suite is a fixed list of small programs. A test ensures that no calibration and no experiment uses
them. They run on the simulator and on a real kernel; counts of flash operations and times are
compared case by case (comparison.py). Chip timing and software costs come from the board's profile;
nothing is fitted on the way.

The suites are reads.py, writes.py and compressors.py. Left out so far: a second chip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from flashbed.formats.operations import HEADER
from flashbed.formats.profiles import Board, Kernel
from flashbed.targets.base import Program
from flashbed.validation import compressors, reads, writes
from flashbed.validation.comparison import LIMITS, MEASURES, Compared, compare, summary
from flashbed.validation.suite_case import FILE_SYSTEMS, SuiteCase

__all__ = [
    "FILE_SYSTEMS",
    "LIMITS",
    "MEASURES",
    "SUITES",
    "Compared",
    "compare",
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
            yield f"validate-{fs}-{case.name}", fs, case


def programs(suite: str, board: Board, kernel: Kernel) -> list[Program]:
    """The cases of a suite on a board, grouped by file system."""
    return [
        Program(
            case_id=case_id,
            fs=fs,
            board=board,
            kernel=kernel,
            read_ahead_kib=case.read_ahead_kib,
            mount_options="bulk_read" if case.bulk_read else "",
            compressor=case.compressor,
            prepare=case.prepare,
            body="\n".join([HEADER, *case.lines, ""]),
        )
        for case_id, fs, case in _cases(suite, board)
    ]


def kinds(suite: str, board: Board) -> dict[str, str]:
    """case_id -> kind of case, in the suite's order."""
    return {case_id: case.kind for case_id, _, case in _cases(suite, board)}
