"""Draws the faults of programs of class `faults`: one or two kinds, a few of each.

Failing programs are far apart: JFFS2 of Linux 6.1 ends in a BUG if a second program fails while it
recovers its write-buffer from the first.
"""

from __future__ import annotations

from typing import Any

from flashbed.bench.fuzz.draw import Draw
from flashbed.stack.conditions import BitFlips, Faults

__all__ = ["drawn_faults"]

PROGRAMS_APART = 40
_KINDS = {"bad_blocks": 2, "program_fail": 5, "erase_fail": 3, "corrected": 4, "uncorrectable": 2}
_RATES = (0.002, 0.01, 0.05)
BLOCKS = 20
"""Blocks of the smallest board."""


def drawn_faults(draw: Draw) -> Faults:
    """The faults of one program."""
    kinds = {draw.weighted(_KINDS), draw.weighted(_KINDS)}
    given: dict[str, Any] = {"seed": draw.between(1, 1_000_000)}
    if "bad_blocks" in kinds:
        blocks = {draw.between(0, BLOCKS - 1) for _ in range(draw.between(1, 2))}
        given["bad_blocks"] = tuple(sorted(blocks))
    if "program_fail" in kinds:
        first = draw.between(1, 60)
        several = range(first, first + draw.between(1, 3) * PROGRAMS_APART, PROGRAMS_APART)
        given["program_fail"] = tuple(several)
    if "erase_fail" in kinds:
        given["erase_fail"] = draw.pick((0.2, 0.5, (1,), (1, 2), (2, 3, 4, 5), (1, 2, 3, 4)))
    if "corrected" in kinds:
        given["bit_flips"] = BitFlips(rate=draw.pick(_RATES))
    elif "uncorrectable" in kinds:
        given["bit_flips"] = BitFlips(rate=draw.pick(_RATES), bits=2)
    return Faults(**given)
