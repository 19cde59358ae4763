"""How many of the host's processors this process may use."""

from __future__ import annotations

import os

__all__ = ["processors"]


def processors() -> int:
    """As many as `taskset` and the like leave it; of a limit on time alone nothing is known."""
    return len(os.sched_getaffinity(0))
