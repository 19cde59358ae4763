"""Sorts calls that are seen when they end into the order in which they began."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from flashbed.program.recording.calls import Call

__all__ = ["InOrder"]


@dataclass(kw_only=True)
class InOrder:
    """Holds back a call while one that began before it has not ended.

    Two calls that began at the same time keep the order of their `begin`.
    """

    _under_way: dict[object, tuple[int, int]] = field(default_factory=dict)
    _beginnings: list[tuple[int, int]] = field(default_factory=list)
    """A heap of those under way, and of some that have ended."""
    _numbers: set[int] = field(default_factory=set)
    _ended: list[tuple[int, int, Call]] = field(default_factory=list)
    _begun: int = 0

    def begin(self, key: object, start_ns: int) -> None:
        """A call begins; `key` identifies it until it ends."""
        self._begun += 1
        if key in self._under_way:
            self._numbers.discard(self._under_way[key][1])
        self._under_way[key] = (start_ns, self._begun)
        self._numbers.add(self._begun)
        heapq.heappush(self._beginnings, (start_ns, self._begun))

    def end(self, key: object, call: Call) -> Iterator[Call]:
        """The call has ended as `call`; yields the calls that are no longer held back."""
        start_ns, number = self._under_way.pop(key)
        self._numbers.discard(number)
        assert call.start_ns == start_ns
        heapq.heappush(self._ended, (start_ns, number, call))
        return self._ready()

    def forget(self, key: object) -> Iterator[Call]:
        """The call never ends, or is not wanted."""
        forgotten = self._under_way.pop(key, None)
        if forgotten is not None:
            self._numbers.discard(forgotten[1])
        return self._ready()

    def rest(self) -> Iterator[Call]:
        """All calls that have ended, whatever has not."""
        self._under_way.clear()
        self._numbers.clear()
        return self._ready()

    def _ready(self) -> Iterator[Call]:
        while self._beginnings and self._beginnings[0][1] not in self._numbers:
            heapq.heappop(self._beginnings)
        first = self._beginnings[0] if self._beginnings else None
        while self._ended and (first is None or self._ended[0][:2] < first):
            yield heapq.heappop(self._ended)[2]
