"""Sorts calls that are seen when they end into the order in which they began."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

from flashbed.recording.calls import Call

__all__ = ["InOrder"]


@dataclass
class InOrder:
    """Holds back a call while one that began before it has not ended.

    Two calls that began at the same time keep the order of their `begin`.
    """

    _under_way: dict[object, tuple[int, int]] = field(default_factory=dict)
    _ended: list[tuple[int, int, Call]] = field(default_factory=list)
    _begun: int = 0

    def begin(self, key: object, start_ns: int) -> None:
        """A call begins; `key` identifies it until it ends."""
        self._begun += 1
        self._under_way[key] = (start_ns, self._begun)

    def end(self, key: object, call: Call) -> Iterator[Call]:
        """The call has ended as `call`; yields the calls that are no longer held back."""
        start_ns, number = self._under_way.pop(key)
        assert call.start_ns == start_ns
        heapq.heappush(self._ended, (start_ns, number, call))
        return self._ready()

    def forget(self, key: object) -> Iterator[Call]:
        """The call never ends, or is not wanted."""
        self._under_way.pop(key, None)
        return self._ready()

    def rest(self) -> Iterator[Call]:
        """All calls that have ended, whatever has not."""
        self._under_way.clear()
        return self._ready()

    def _ready(self) -> Iterator[Call]:
        first = min(self._under_way.values(), default=None)
        while self._ended and (first is None or self._ended[0][:2] < first):
            yield heapq.heappop(self._ended)[2]
