"""How often a program has to run until its free space was used once, and what its runs then say.

A case that ran `n` times and one that ran `2 n` times begin alike. So the difference of their
counts is what the last `n` runs did, with garbage collection and with blocks that are erased early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from flashbed.answers.lifetimes.estimate import DAY_S, dispersion
from flashbed.answers.lifetimes.given import blocks_filled, early_erases
from flashbed.answers.lifetimes.subject import Subject

__all__ = ["PASSES", "STEPS_MAX", "CaseCounts", "aged", "rounds_of", "rounds_to_use_up", "steps_of"]

PASSES = 4
"""So often the rounds are doubled at most."""
STEPS_MAX = {"sim": 10_000_000, "uml": 1_000_000}
"""Target -> the most steps of a replay: about a minute. On other targets nothing is replayed."""
_PAGE_STEPS = 5
"""A page write takes as long as so many lines of operations."""


@dataclass(frozen=True)
class CaseCounts:
    """What a case did from the mark to its end, without the flush: sums, and erases by block."""

    programs: int
    bytes_by_cause: Mapping[str, int] | None
    erases: Sequence[int]


def rounds_to_use_up(subject: Subject) -> int | None:
    """Runs until the pages written are as many as were free; None if they need not be known.

    Where erases did not keep up yet, twice as many as before: UBIFS leaves garbage while it has
    empty blocks, and blocks that are erased early come back before they were full.
    """
    work, seen, board = subject.workload, subject.observed, subject.board
    if work is None or board is None or not work.lasts or not work.programs or not seen.blocks:
        return None
    if seen.steady:
        return None
    if subject.rounds_before:
        return 2 * subject.rounds_before
    free = seen.blocks * (1 - ((seen.used or 0.0) - seen.grown))
    known = work.bytes_programmed if work.bytes_by_cause else None
    filled = blocks_filled(board, work.programs, known)
    return max(1, ceil(free / filled)) if filled else None


def steps_of(rounds: int, lines: int, programs: float) -> float:
    """The cost of both replays, in lines of operations."""
    return 3 * rounds * (lines + _PAGE_STEPS * programs)


def rounds_of(case: Mapping[str, Any]) -> int:
    """How often the program of a row of `cases` ran."""
    return int(case.get("rounds") or 1)


def aged(subject: Subject, before: int, first: CaseCounts, whole: CaseCounts) -> Subject:
    """The subject by its last `before` runs of `2 * before`; `first` is of the runs before them."""
    work, seen, board = subject.workload, subject.observed, subject.board
    assert work is not None
    assert board is not None
    assert work.rounds_per_day is not None
    erases = [max(0, late - early) for early, late in zip(first.erases, whole.erases, strict=True)]
    programs = whole.programs - first.programs
    page_bytes, pages = board.chip.page_bytes, board.chip.pages_per_block
    causes = None
    if first.bytes_by_cause is not None and whole.bytes_by_cause is not None:
        early = first.bytes_by_cause
        causes = {
            name: (count - early[name]) / before for name, count in whole.bytes_by_cause.items()
        }
    programmed = programs * page_bytes / before if causes is None else sum(causes.values())
    observed = replace(
        seen,
        seconds=DAY_S / work.rounds_per_day * before,
        erases=float(sum(erases)),
        worst=max(erases, default=0),
        dispersion=dispersion(erases),
        programmed_blocks=blocks_filled(
            board, programs, None if causes is None else programmed * before
        ),
        early_erases=early_erases(subject.fs, sum(erases)),
    )
    mean = replace(
        work,
        bytes_by_cause=causes,
        bytes_programmed=programmed,
        bytes_erased=sum(erases) * page_bytes * pages / before,
        programs=programs / before,
        bytes_flushed=0,
    )
    return replace(
        subject,
        observed=observed,
        workload=mean,
        blocks_erased=sum(count > 0 for count in erases),
        rounds=before,
        rounds_before=before,
    )
