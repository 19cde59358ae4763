"""The contents that a file has had, and where in them something that was found belongs.

A file that only grows, such as a log, has contents of which each begins with the one before:
`Growth` keeps the last, and the sizes. A file that is truncated or overwritten begins another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from flashbed.program.content import Bytes

__all__ = ["ContentPlace", "Contents", "Growth"]

_KEPT_BYTES = 64 << 20
"""Of the contents of a file; older ones are forgotten. A kernel writes a file back after 35 s."""


@dataclass
class Growth:
    """Contents of which each begins with the one before."""

    content: Bytes
    """The last of them."""
    sizes: list[int] = field(default_factory=list)
    starts_ns: list[int | None] = field(default_factory=list)
    """When the operation began that made each."""
    finishes: list[int | None] = field(default_factory=list)
    """The operation at whose begin each is finished; None for one in the middle of a write."""

    def place(self, found: Bytes) -> int | None:
        """The number of the last content that something found begins with, and is part of."""
        if len(found) > len(self.content) or not np.array_equal(found, self.content[: len(found)]):
            return None
        at = bisect_right(self.sizes, len(found)) - 1
        return at if at >= 0 else None

    def agrees_to(self, found: Bytes) -> int:
        """The offset of the first byte that is another."""
        size = min(len(found), len(self.content))
        same = found[:size] == self.content[:size]
        return size if same.all() else int(np.argmin(same))

    def start_ns_of(self, offset: int) -> int | None:
        """When the operation began that wrote the byte at an offset; None behind the last."""
        at = bisect_right(self.sizes, offset)
        return self.starts_ns[at] if at < len(self.sizes) else None

    def last_finished(self, begun: int) -> int | None:
        """The last content that is finished when so many operations have begun."""
        for at in range(len(self.sizes) - 1, -1, -1):
            finish = self.finishes[at]
            if finish is not None and finish < begun:
                return at
        return None


@dataclass(frozen=True)
class ContentPlace:
    """A content of a file: its growth, its number there; `cut_short` if the next has begun."""

    growth: int
    content: int
    cut_short: bool = False


@dataclass
class Contents:
    """All contents of a file, oldest first."""

    growths: list[Growth] = field(default_factory=list)

    def note(self, now: Bytes, start_ns: int | None, finish: int | None) -> None:
        """Notes a content that an operation made."""
        last = self.growths[-1] if self.growths else None
        if last is None or not _begins_with(now, last.content):
            if last is not None and not any(each is not None for each in last.finishes):
                self.growths.pop()
            last = Growth(now)
            self.growths.append(last)
        last.content = now
        last.sizes.append(len(now))
        last.starts_ns.append(start_ns)
        last.finishes.append(finish)
        kept = 0
        for at in range(len(self.growths) - 1, -1, -1):
            kept += len(self.growths[at].content)
            if kept > _KEPT_BYTES and len(self.growths) - at > 2:
                del self.growths[: at + 1]
                break

    def last_finished(self, begun: int) -> ContentPlace | None:
        """The last content that is finished when so many operations have begun."""
        for at in range(len(self.growths) - 1, -1, -1):
            content = self.growths[at].last_finished(begun)
            if content is not None:
                return ContentPlace(at, content)
        return None

    def places(self, found: Bytes) -> Iterator[ContentPlace]:
        """Where something found may belong, newest first."""
        for at in range(len(self.growths) - 1, -1, -1):
            growth = self.growths[at]
            content = growth.place(found)
            if content is not None:
                yield ContentPlace(at, content, len(found) > growth.sizes[content])

    def next_start_ns(self, place: ContentPlace) -> int | None:
        """When the first operation began whose bytes a place does not have."""
        starts = self.growths[place.growth].starts_ns
        if place.content + 1 < len(starts):
            return starts[place.content + 1]
        if place.growth + 1 < len(self.growths):
            return self.growths[place.growth + 1].starts_ns[0]
        return None


def _begins_with(now: Bytes, before: Bytes) -> bool:
    return len(now) >= len(before) and np.array_equal(now[: len(before)], before)
