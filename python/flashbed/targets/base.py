"""The first of the two seams: what every target takes and gives.

A target sees operations only (docs/formats.md) and does not know which workload they came from. It
gives tables. `sim`, `emulator` and whatever comes later implement `Target`; nothing outside
`targets/` knows which one it is talking to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from flashbed.profiles import Board, Kernel

__all__ = ["Batch", "Failure", "Program", "Target", "Unavailable"]


@dataclass(frozen=True)
class Program:
    """One case as a target sees it.

    `prepare` is a flashbed-ops file up to and with its `prepared` line, `body` the rest of the case
    as a file of its own. Programs of the same board, kernel, file system and `prepare` start from
    the same state, which a target may build once. With `check_contents` a target that has contents
    fills `content_crc32` of `requests`.
    """

    case_id: str
    fs: str
    board: Board
    kernel: Kernel
    read_ahead_kib: int
    prepare: str
    body: str
    check_contents: bool = False


@dataclass(frozen=True)
class Failure:
    """A case that could not be measured, and why, in one line."""

    case_id: str
    message: str


@dataclass(frozen=True)
class Batch:
    """Whole cases, as tables with the measured columns of docs/formats.md.

    The caller adds axes, target and provenance.
    """

    cases: pl.DataFrame
    requests: pl.DataFrame
    flash: pl.DataFrame
    failures: tuple[Failure, ...] = ()


class Unavailable(Exception):
    """The target cannot run here: one line on what is missing and how to get it.

    The line does not name the target; whoever shows it does.
    """


class Target(Protocol):
    """Runs programs and yields whole cases as they are finished."""

    name: str

    def prepare(self, say: Callable[[str], None]) -> None:
        """Fetches and builds what a run would; `say(what)` when it begins something long.

        Raises `Unavailable`.
        """
        ...

    def run(
        self,
        programs: Sequence[Program],
        *,
        trace_flash: bool,
        progress: Callable[[str, int], None],
    ) -> Iterator[Batch]:
        """Runs every program, in the order given.

        `progress(what, cases_done)` is called whenever there is something to say. Raises
        `Unavailable` before any case has run; a case that fails is a `Failure` in a batch and the
        others go on.
        """
        ...
