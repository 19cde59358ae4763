"""How much memory is left, so that nothing starts that would need more.

A guest takes its board's memory page by page. What running guests may still take therefore counts
as taken from the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.stack.profiles import Board
from flashbed.targets.base import Apart

__all__ = ["MemoryBudget", "available_bytes", "claim_bytes"]

RESERVE_BYTES = 256 << 20
WORKER_BYTES = 256 << 20
"""Memory of one process with its tables: 180 MiB for 500 cases of the simulator."""
GUEST_BYTES = 64 << 20
"""What a guest takes besides its board's memory."""
_AVAILABLE = re.compile(r"^MemAvailable: +(\d+) kB$", re.MULTILINE)
_MEMORY = Path("/proc/meminfo")
_LIMIT, _USED = (Path(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))


def available_bytes() -> int | None:
    """Bytes that the host or this container's limit leaves; None if neither tells."""
    found = []
    with suppress(OSError):
        line = _AVAILABLE.search(_MEMORY.read_text(encoding="ascii"))
        found += [int(line[1]) << 10] if line else []
    with suppress(OSError, ValueError):  # an unlimited container has the word `max`
        found.append(int(_LIMIT.read_text()) - int(_USED.read_text()))
    return min(found) if found else None


def claim_bytes(apart: Apart, boards: Iterable[Board]) -> int:
    """The most that a portion may take."""
    if not apart.boots:
        return WORKER_BYTES
    return WORKER_BYTES + GUEST_BYTES + max(board.board.ram_mib << 20 for board in boards)


@dataclass
class MemoryBudget:
    """The memory left at the start, and what running tasks have claimed."""

    first_bytes: int | None = field(default_factory=lambda: available_bytes())
    claimed_bytes: int = 0

    def has(self, claim_bytes: int) -> bool:
        """Whether one more task may start. The first always may, or nothing would run."""
        now_bytes = available_bytes()
        if not self.claimed_bytes or self.first_bytes is None or now_bytes is None:
            return True
        left_bytes = min(self.first_bytes - self.claimed_bytes, now_bytes)
        return left_bytes >= claim_bytes + RESERVE_BYTES
