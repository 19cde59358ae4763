"""Bytes that an operation moved between the program and its files, by its result.

sim/src/run/results.rs counts the same for the simulator.
"""

from __future__ import annotations

__all__ = ["READING", "WRITING", "moved"]

READING = ("read", "send", "copy")
"""Operations whose result is the bytes that they read."""
WRITING = ("write", "copy", "store")
"""Operations whose result is the bytes that they wrote; of a store, of pages that became dirty."""


def moved(op: str, result: int) -> tuple[int, int]:
    """The bytes that an operation moved, and those of them that it wrote."""
    done = max(result, 0)
    return (done if op in READING or op in WRITING else 0), (done if op in WRITING else 0)
