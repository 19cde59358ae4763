"""Bytes that an operation moved between the program and its files, by its result.

sim/src/run/results.rs counts the same for the simulator.
"""

from __future__ import annotations

__all__ = ["READING", "STORING", "WRITING", "moved"]

READING = ("read", "send", "copy")
"""Operations whose result is the bytes that they read."""
WRITING = ("write", "copy")
"""Operations whose result is the bytes that they wrote."""
STORING = "store"
"""Writes all of its length through a mapping; its result is 0."""


def moved(op: str, result: int, length_bytes: int | None) -> tuple[int, int]:
    """The bytes that an operation moved, and those of them that it wrote."""
    if op == STORING:
        stored = (length_bytes or 0) if result == 0 else 0
        return stored, stored
    done = max(result, 0)
    return (done if op in READING or op in WRITING else 0), (done if op in WRITING else 0)
