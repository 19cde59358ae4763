"""Cost-benefit collection (Rosenblum and Ousterhout 1992), as an example of a policy with memory.

The benefit of a block is what it frees times how long that has been so; its cost is to read it and
to write what lives. A block whose data was overwritten a moment ago will free more if it waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flashbed import Victim

if TYPE_CHECKING:
    from flashbed._sim import Candidates


class CostBenefit(Victim):
    """Takes the most to free for its cost, and old data first."""

    def __init__(self) -> None:
        self.seen: dict[int, tuple[int, int]] = {}
        """Block -> its dirty bytes when it was last seen to change, and when that was."""

    def choose(self, now_ns: int, why: str, blocks: Candidates) -> int | None:  # noqa: ARG002
        """See `Victim.choose`."""
        best, best_score = None, 0.0
        dirty, live = blocks.dirty_bytes, blocks.live_bytes
        for place, block in enumerate(blocks.block):
            before, since_ns = self.seen.get(block, (-1, now_ns))
            if dirty[place] != before:
                since_ns = now_ns
                self.seen[block] = dirty[place], since_ns
            size = dirty[place] + live[place]
            score = dirty[place] * (now_ns - since_ns + 1) / (size + live[place])
            if score > best_score:
                best, best_score = place, score
        return best
