"""A W25N01GV on four lines at 52 MHz, in the place of the emulated board's chip."""

from __future__ import annotations

from flashbed.stack.board_tables import Spi
from flashbed.stack.profiles import Board, load_board

__all__ = ["w25n01gv"]


def w25n01gv(**others: object) -> Board:
    """The board; `others` are keys of its bus with other values."""
    board = load_board("emulated")
    bus = {
        "source": "drivers/mtd/nand/spi/winbond.c",
        "id": (0xEF, 0xAA, 0x21),
        "clock_hz": 52_000_000,
        "read_opcode": 0xEB,
        "read_address_lines": 4,
        "read_dummy_bytes": 2,
        "read_data_lines": 4,
        "program_opcode": 0x34,
        "program_data_lines": 4,
        "oob_free_bytes": 24,
        "op_ns": 0,
    }
    chip = {
        "blocks": 1024,
        "read_array_ns": 60_000,
        "program_array_ns": 250_000,
        "transfer": "bytes",
        "bus_read_ns": 0,
        "bus_program_ns": 0,
        "column_change_ns": 0,
    }
    emulator = board.emulator
    assert emulator is not None
    ecc = {"kind": "on-die", "step_bytes": 512, "strength_bits": 1}
    other = board.model_copy(
        update={
            "chip": board.chip.model_copy(update=chip),
            "ecc": board.ecc.model_copy(update=ecc),
            "spi": Spi.model_validate(bus | others),
            "emulator": emulator.model_copy(update={"nandsim": None}),
        }
    )
    other._path = board.path
    return other
