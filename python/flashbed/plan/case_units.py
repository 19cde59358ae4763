"""Cases in units, which are never parted: what processes, shards and a cluster are given.

A unit is cases that one preparation may serve: they are alike in every axis that says what is there
before a program begins. Units, and which shard has which, follow from the cases alone.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from flashbed.errors import InputError
from flashbed.plan.case import Case

__all__ = ["UNIT_CASES", "WHOLE", "Share", "Together", "portions", "units"]

Together = Literal["preparation", "board", "everything"]
"""What gives other results when it is parted: nothing but a preparation, all cases of a board
(the later ones depend on the earlier ones), or everything."""
UNIT_CASES = 64
"""The simulator prepares anew for as many (sim/src/run/parallel.rs)."""
SHARDS_MAX = 10_000
_SHARE = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})")


def units(cases: Iterable[Case], together: Together) -> list[list[Case]]:
    """The cases, each in one unit, in the order in which the units begin."""
    found: list[list[Case]] = []
    open_units: dict[Hashable, list[Case]] = {}
    for case in cases:
        key = _key(case, together)
        unit = open_units.get(key)
        if unit is None or (together == "preparation" and len(unit) == UNIT_CASES):
            unit = open_units[key] = []
            found.append(unit)
        unit.append(case)
    return found


def _key(case: Case, together: Together) -> Hashable:
    if together == "everything":
        return None
    board = (case.board, case.chip, case.partition)
    if together == "board":
        return board
    mounted = (case.kernel, case.fs, case.mount, case.compressor)
    return (*board, *mounted, case.state, case.faults, case.database, case.file_bytes)


def portions(units: Iterable[Sequence[Case]], cases: int) -> Iterator[list[Case]]:
    """Whole units one after another, as many as have so many cases together, at least one."""
    portion: list[Case] = []
    for unit in units:
        if portion and len(portion) + len(unit) > cases:
            yield portion
            portion = []
        portion += unit
    if portion:
        yield portion


@dataclass(frozen=True)
class Share:
    """The share `number` of `of`, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Share:
        """`i/n`. Raises `InputError`."""
        found = _SHARE.fullmatch(text)
        share = cls(int(found[1]), int(found[2])) if found else None
        if share is None or share.number > share.of or share.of > SHARDS_MAX:
            raise InputError(f"--shard {text}: not I/N with I from 1 to N, such as 2/4")
        return share

    @property
    def suffix(self) -> str:
        """Of a folder's name."""
        return "" if self.of == 1 else f"-shard-{self.number}-of-{self.of}"

    def units(self, every: Sequence[list[Case]]) -> list[list[Case]]:
        """Its units. Each goes to the share that has the fewest cases so far, the first of them."""
        filled = [(0, number) for number in range(1, self.of + 1)]
        own = []
        for unit in every:
            cases, number = filled[0]
            heapq.heapreplace(filled, (cases + len(unit), number))
            if number == self.number:
                own.append(unit)
        return own


WHOLE = Share(1, 1)
"""All of it."""
