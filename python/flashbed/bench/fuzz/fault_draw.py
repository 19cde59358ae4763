"""Draws the faults of programs of class `faults`, one or two kinds, a few of each, and of `errors`.

Failing programs are far apart: JFFS2 of Linux 6.1 ends in a BUG if a second program fails while it
recovers its write-buffer from the first.
"""

from __future__ import annotations

from typing import Any, get_args

from flashbed.bench.fuzz.draw import Draw
from flashbed.stack.conditions import BitErrors, BitFlips, Faults, Level
from flashbed.stack.profiles import Board

__all__ = ["drawn_errors", "drawn_faults", "worn_erases"]

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


_AGES_DAYS = (0, 30, 365, 1_000)
_READS = (0, 0, 20_000, 200_000)
WEARS = 3
_OF_RATED = {1: (30, 60, 120)}
_OF_RATED_STRONG = (0.5, 1.0, 2.0)
"""Erases of each wear over the rated ones, by the bits that ECC corrects: some errors, and many."""


def drawn_errors(draw: Draw) -> tuple[Faults, int]:
    """The bit errors of one program, and how worn its chip is."""
    errors = BitErrors(
        level=draw.pick(get_args(Level)),
        age_days=draw.pick(_AGES_DAYS),
        reads=draw.pick(_READS),
    )
    return Faults(seed=draw.between(1, 1_000_000), bit_errors=errors), draw.between(1, WEARS)


def worn_erases(board: Board, wear: int) -> int:
    """Erases of each block of a chip that is so worn; 0 is a new one."""
    if not wear or board.endurance is None:
        return 0
    factors = _OF_RATED.get(board.ecc.strength_bits, _OF_RATED_STRONG)
    return round(board.endurance.cycles * factors[wear - 1])
