"""A W25N01GV on four lines at 52 MHz, in the place of the emulated board's chip."""

from __future__ import annotations

from flashbed.stack.profiles import Board, load_board

__all__ = ["w25n01gv"]


def w25n01gv(**others: object) -> Board:
    """The board; `others` are keys of its bus with other values."""
    board = load_board("emulated").changed({"chip": {"part": "W25N01GV"}})
    assert board.spi is not None
    other = board.model_copy(update={"spi": board.spi.model_copy(update=others)})
    other._path = board.path
    return other
