"""Calls that are seen when they end, put into the order in which they began."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from flashbed.recording.calls import Call

__all__ = ["InOrder"]


@dataclass
class InOrder:
    """Holds a call back as long as one that began before it is under way.

    Two that began at once keep the order in which they were begun here.
    """

    _under_way: dict[object, tuple[int, int]] = field(default_factory=dict)
    _ended: list[tuple[int, int, Call]] = field(default_factory=list)
    _begun: int = 0

    def begin(self, key: object, start_ns: int) -> None:
        """A call begins; `key` says which, until it ends."""
        self._begun += 1
        self._under_way[key] = (start_ns, self._begun)

    def end(self, key: object, call: Call) -> Iterator[Call]:
        """It has ended as `call`, which begins when it began: those that may go on now."""
        start_ns, number = self._under_way.pop(key)
        assert call.start_ns == start_ns
        heapq.heappush(self._ended, (start_ns, number, call))
        return self._ready()

    def forget(self, key: object) -> Iterator[Call]:
        """It never ends, or is none that is wanted."""
        self._under_way.pop(key, None)
        return self._ready()

    def rest(self) -> Iterator[Call]:
        """All that have ended, whatever is still under way."""
        self._under_way.clear()
        return self._ready()

    def _ready(self) -> Iterator[Call]:
        first = min(self._under_way.values(), default=None)
        while self._ended and (first is None or self._ended[0][:2] < first):
            yield heapq.heappop(self._ended)[2]
