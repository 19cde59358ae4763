"""Doubts about a profile's numbers: possible, but no NAND on sale has them; often a missing `_000`.

`bounds.py` refuses impossible numbers. A doubt is printed before a run and stops nothing. The
ranges come from data sheets from SLC of 2004 to TLC, widened by a factor on either side. A remark
is no doubt: it says what an answer rests on that the user did not write.
"""

from __future__ import annotations

from flashbed.base.paths import shown
from flashbed.stack.board_tables import Chip
from flashbed.stack.fitted_chip import weaker_ecc
from flashbed.stack.profiles import Board

__all__ = ["PLAUSIBLE_NS", "doubts", "remarks"]

PLAUSIBLE_NS = {
    "read_array_ns": (3_000, 500_000),
    "program_array_ns": (50_000, 10_000_000),
    "erase_array_ns": (300_000, 100_000_000),
}

_UNPRICED = (
    "[software] is not calibrated: code takes no time, and times are those of the chip;"
    " `flashbed calibrate` measures them",
)


def doubts(board: Board) -> list[str]:
    """A line for each number that a chip cannot have or needs, and one for software without prices.

    ECC weaker than the chip asks for is one.
    """
    of_chip = [] if board.nor is not None else _of_chip(board.chip)
    found = [*of_chip, *(_UNPRICED if board.software.is_free else ())]
    if board.fit is not None:
        weak = weaker_ecc(board.fit, board.ecc.strength_bits, board.ecc.step_bytes)
        found += [*([weak] if weak else []), *board.fit.doubts]
    return [f"{shown(board.path)}: {doubt}" for doubt in found]


def remarks(*boards: Board) -> list[str]:
    """What an answer about these boards must say: how chips were put on, whose prices they have.

    Chips of which the same is said share a line.
    """
    chips: dict[tuple[str, str], dict[str, None]] = {}
    prices: dict[str, None] = {}
    for board in boards:
        for note in board.fit.notes if board.fit is not None else ():
            assert board.fit is not None
            chips.setdefault((board.name, note), {})[board.fit.part.name] = None
        if board.like is not None:
            there, here = board.like.board.cpu_mhz, board.board.cpu_mhz
            prices[
                f"CPU time of {board.name} is an estimate: prices of {board.like.name}, by the"
                f" clock from {there} to {here} MHz"
            ] = None
    said = [f"{name} with {', '.join(parts)}: {note}" for (name, note), parts in chips.items()]
    return [*said, *prices]


def _of_chip(chip: Chip) -> list[str]:
    found = []
    for name, (least, most) in PLAUSIBLE_NS.items():
        value = getattr(chip, name)
        if least <= value <= most:
            continue
        doubt = f"chip.{name} = {value:_}: NAND takes {least:_} to {most:_} ns"
        if least <= value * 1000 <= most:
            doubt += f"; is {value * 1000:_} meant?"
        found.append(doubt)
    return found
