"""A W25Q128JV on four lines at 52 MHz, in the place of the emulated board's chip."""

from __future__ import annotations

from flashbed.stack.profiles import Board, load_board

__all__ = ["w25q128jv"]


def w25q128jv(blocks: int | None = None, **controller: object) -> Board:
    """The board, with a partition of so many blocks; `controller` are its keys."""
    changes: dict[str, dict[str, object]] = {"chip": {"part": "W25Q128JV"}}
    if controller:
        changes["controller"] = controller
    board = load_board("emulated").changed(changes)
    if blocks is None:
        return board
    partition = board.partition.model_copy(update={"first_block": 0, "blocks": blocks})
    other = board.model_copy(update={"partition": partition})
    other._path = board.path
    return other
