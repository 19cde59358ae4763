"""Splits cases into units, which stay whole when processes, shards or a cluster share them.

The cases of a unit may share one preparation: they agree in every axis that decides the initial
state. Units, and which shard gets which, follow from the cases alone.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from flashbed.base.errors import InputError
from flashbed.plan.planned import Cases, Product
from flashbed.stack.changes import OF_BOARD

__all__ = ["OF_PROGRAMS", "UNIT_CASES", "WHOLE", "Share", "Together", "portions", "units"]

Together = Literal["preparation", "board", "everything"]
"""What must stay together to get the same results: a preparation's cases, all cases of a board
(whose later ones depend on the earlier ones), or everything."""
UNIT_CASES = 64
"""The simulator repeats the preparation after this many cases (sim/src/run/parallel.rs)."""
HELD_CASES = 1 << 16
"""Cases that wait at once, so that a sweep of a million is never in memory as a whole."""
_BOARD = ("board", *OF_BOARD)
_TOGETHER: Mapping[Together, tuple[str, ...]] = {
    "everything": (),
    "board": _BOARD,
    "preparation": (
        *_BOARD, "kernel", "vm", "policy", "fs", "mount", "compressor", "state", "faults",
        "database", "file_bytes",
    ),
}  # fmt: skip
"""The axes in which the cases of a unit agree."""
OF_PROGRAMS = (
    "pattern", "requests", "request_bytes", "file_bytes", "seed", "pause_ns", "advice", "database",
    "sync_every_s", "rounds",
)  # fmt: skip
"""The axes that decide a case's program; the others decide the stack that it runs on."""
SHARDS_MAX = 10_000
_SHARE = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})")


def units(cases: Cases, together: Together) -> Iterator[Cases]:
    """The cases in units, in the order in which the units begin.

    A unit of a preparation ends early where HELD_CASES later cases would have to wait for it.
    """
    waiting: deque[_Unit] = deque()
    filling: dict[Hashable, _Unit] = {}
    held = 0
    apart = together == "preparation"
    for product, indices in cases.pieces:
        for key, first, end in _runs(product, indices, together):
            at = first
            while at < end:
                unit = filling.get(key)
                if unit is None or (apart and unit.cases == UNIT_CASES):
                    unit = filling[key] = _Unit(key)
                    waiting.append(unit)
                until = min(end, at + UNIT_CASES - unit.cases) if apart else end
                unit.add(product, indices, at, until)
                held += until - at
                at = until
                while apart and waiting and (waiting[0].cases == UNIT_CASES or held > HELD_CASES):
                    done = waiting.popleft()
                    held -= done.cases
                    if filling[done.key] is done:
                        del filling[done.key]
                    yield done.whole
    for unit in waiting:
        yield unit.whole


class _Unit:
    """A unit that may grow."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.cases = 0
        self._pieces: list[tuple[Product, Sequence[int]]] = []

    def add(self, product: Product, indices: Sequence[int], first: int, end: int) -> None:
        """Adds the cases of a product from the `first`th of its indices on."""
        more = indices[first:end]
        self.cases += len(more)
        if self._pieces and self._pieces[-1][0] is product:
            more = [*self._pieces.pop()[1], *more]
        self._pieces.append((product, more))

    @property
    def whole(self) -> Cases:
        """All of it."""
        return Cases(tuple(self._pieces))


def _runs(
    product: Product, indices: Sequence[int], together: Together
) -> Iterator[tuple[Hashable, int, int]]:
    """Adjacent cases of one unit: what tells it from others, and the first and last of them."""
    axes = _TOGETHER[together]
    if not indices:
        return
    if not any(axis in product.varying for axis in axes):
        yield product.at(axes, 0), 0, len(indices)
        return
    key, first = product.at(axes, indices[0]), 0
    for at, index in enumerate(indices):
        other = product.at(axes, index)
        if other != key:
            yield key, first, at
            key, first = other, at
    yield key, first, len(indices)


def portions(
    units: Iterable[Cases], cases: int, most: int | None = None, *, by_program: bool = False
) -> Iterator[Cases]:
    """Portions of whole units with about this many cases, at least one unit each.

    A process makes each program once. With `by_program` units that have the same programs on
    different stacks come one after another and in one portion, if it then has at most `most` cases.
    """
    portion: list[Cases] = []
    filled = 0
    for alike in _of_each_program(units) if by_program else ([unit] for unit in units):
        limit = cases
        for unit in alike:
            if portion and filled + len(unit) > limit:
                yield _joined(portion)
                portion, filled = [], 0
            portion.append(unit)
            filled += len(unit)
            limit = most or cases
    if portion:
        yield _joined(portion)


def _of_each_program(units: Iterable[Cases]) -> Iterator[list[Cases]]:
    """Lists of units that begin with the same program, among HELD_CASES cases at once."""
    alike: dict[Hashable, list[Cases]] = {}
    held = 0
    for unit in units:
        product, indices = unit.pieces[0]
        alike.setdefault(product.at(OF_PROGRAMS, indices[0]), []).append(unit)
        held += len(unit)
        if held >= HELD_CASES:
            yield from alike.values()
            alike, held = {}, 0
    yield from alike.values()


def _joined(units: Iterable[Cases]) -> Cases:
    return Cases(tuple(piece for unit in units for piece in unit.pieces))


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

    def units(self, every: Iterable[Cases]) -> Iterator[Cases]:
        """The share's units. Each unit goes to the first share with the fewest cases so far."""
        filled = [(0, number) for number in range(1, self.of + 1)]
        for unit in every:
            cases, number = filled[0]
            heapq.heapreplace(filled, (cases + len(unit), number))
            if number == self.number:
                yield unit


WHOLE = Share(1, 1)
"""The share that has all units."""
