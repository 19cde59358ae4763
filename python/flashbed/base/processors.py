"""How many of the host's processors this process may use."""

from __future__ import annotations

import os

__all__ = ["JOBS_MAX", "processors"]

JOBS_MAX = 1024
"""Cases that may run at once."""


def processors() -> int:
    """The processors in this process's affinity mask; limits on CPU time are not considered."""
    return len(os.sched_getaffinity(0))
