"""Splits cases into units, which stay whole when processes, shards or a cluster share them.

The cases of a unit may share one preparation: they agree in every axis that decides the initial
state. Units, and which shard gets which, follow from the cases alone.
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
"""What must stay together to get the same results: a preparation's cases, all cases of a board
(whose later ones depend on the earlier ones), or everything."""
UNIT_CASES = 64
"""The simulator repeats the preparation after this many cases (sim/src/run/parallel.rs)."""
SHARDS_MAX = 10_000
_SHARE = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})")


def units(cases: Iterable[Case], together: Together) -> list[list[Case]]:
    """The cases in units, in the order in which the units begin."""
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
    """Portions of whole consecutive units with about this many cases, at least one unit each."""
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
    """Share `number` of `of`, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Share:
        """Parses `i/n`. Raises `InputError`."""
        found = _SHARE.fullmatch(text)
        share = cls(int(found[1]), int(found[2])) if found else None
        if share is None or share.number > share.of or share.of > SHARDS_MAX:
            raise InputError(f"--shard {text}: not I/N with I from 1 to N, such as 2/4")
        return share

    @property
    def suffix(self) -> str:
        """The end of its folder's name."""
        return "" if self.of == 1 else f"-shard-{self.number}-of-{self.of}"

    def units(self, every: Sequence[list[Case]]) -> list[list[Case]]:
        """The share's units. Each unit goes to the first share with the fewest cases so far."""
        filled = [(0, number) for number in range(1, self.of + 1)]
        own = []
        for unit in every:
            cases, number = filled[0]
            heapq.heapreplace(filled, (cases + len(unit), number))
            if number == self.number:
                own.append(unit)
        return own


WHOLE = Share(1, 1)
"""The share that has all units."""
