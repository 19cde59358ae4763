"""Our NAND driver kernel/flashbed_nand for a guest's kernel: its sources and parameters."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from flashbed.stack.board_tables import Chip, Nor, Spi
from flashbed.stack.conditions import PPM
from flashbed.stack.profiles import Board
from flashbed.targets.guest.module import ModuleSource, sources_of

if TYPE_CHECKING:
    from flashbed.targets.base import Program

__all__ = ["MODULE", "begin_commands", "memory_mib", "parameters", "setup_commands", "source"]

MODULE = "flashbed_nand"
_BITS = {"slc": 1, "mlc": 2, "tlc": 3}
_OF_CELLS_MIB = 8
"""What the driver keeps besides bytes: pages, blocks, a log."""


def source() -> ModuleSource:
    """The driver's sources."""
    return ModuleSource(MODULE, sources_of(MODULE))


def memory_mib(board: Board) -> int:
    """A guest's memory: the board's, and room for what its partition holds where that is large.

    The driver keeps the cells in the guest's memory. A board of 64 MiB with a chip of 128 would end
    in a panic as the partition fills.
    """
    chip = board.chip
    with_oob = board.partition_bytes * (chip.page_bytes + chip.oob_bytes) // chip.page_bytes
    cells_mib = (with_oob >> 20) + _OF_CELLS_MIB
    ram_mib = board.board.ram_mib
    return ram_mib if cells_mib <= ram_mib // 2 else ram_mib + cells_mib


def parameters(board: Board, *, wait: str, parts: Mapping[str, int] | None = None) -> str:
    """The module parameters that make its chip the board's (kernel/flashbed_nand/README.md).

    `parts` are the partitions of a layout and the blocks of each.
    """
    chip, ecc, partition = board.chip, board.ecc, board.partition
    values: dict[str, int | str] = {
        **_chip_parameters(chip),
        "first_block": partition.first_block,
        "partition_blocks": partition.blocks,
        "ecc": ecc.kind,
        "ecc_step_bytes": ecc.step_bytes,
        "ecc_strength_bits": ecc.strength_bits,
        "wait": wait,
        **({"parts": ",".join(f"{name}:{parts[name]}" for name in parts)} if parts else {}),
        **(_spi_parameters(board.spi) if board.spi else {}),
        **(_nor_parameters(board.nor) if board.nor else {}),
    }
    return " ".join(f"{key}={value}" for key, value in values.items())


def _chip_parameters(chip: Chip) -> dict[str, int | str]:
    of_cells = {"source", "kind", "cells", "pairing", "slc_mode"}
    values: dict[str, int | str] = chip.model_dump(exclude=of_cells, exclude_none=True)
    if chip.cells != "slc":
        values["bits_per_cell"] = _BITS[chip.cells]
    if chip.pairing:
        values["pairing"] = chip.pairing
    if chip.slc_mode:
        values |= {"slc_mode": 1, "pages_per_block": 2 * chip.pages_per_block}
    return values


def _spi_parameters(spi: Spi) -> dict[str, int | str]:
    return {
        "spi_id": ",".join(map(str, spi.id)),
        "spi_hz": spi.clock_hz,
        "spi_rx_lines": spi.rx_lines,
        "spi_tx_lines": spi.tx_lines,
        "spi_op_ns": spi.op_ns,
        "spi_continuous_reads": int(spi.continuous_reads),
        "spi_read_opcode": spi.read_opcode,
        "spi_program_opcode": spi.program_opcode,
        "spi_ecc_status": spi.ecc_status,
        **({"spi_dtr": 1} if spi.dtr else {}),
    }


def _nor_parameters(nor: Nor) -> dict[str, int | str]:
    return {
        "nor_id": ",".join(map(str, nor.id)),
        "nor_quad": nor.quad_enable,
        "nor_small_erases": int(nor.small_erases),
        "nor_first_byte_ns": nor.program_first_byte_ns or 0,
        "nor_next_byte_ns": nor.program_next_byte_ns or 0,
        "spi_hz": nor.clock_hz,
        "spi_rx_lines": nor.lines,
        "spi_tx_lines": nor.lines,
        "spi_op_ns": nor.op_ns,
    }


def setup_commands(program: Program) -> list[str]:
    """Commands for the chip that a program begins with: new, but for wear and bad blocks."""
    first, faults = program.stack.board.partition.first_block, program.stack.faults
    commands = ["renew"]
    commands += (
        f"bad {first + block}" for block in faults.bad(program.stack.board.partition.blocks)
    )
    at = first
    for erases, run in itertools.groupby(program.stack.erases):
        count = len(list(run))
        commands.append(f"wear {at} {count} {erases}")
        at += count
    return commands


def begin_commands(program: Program) -> list[str]:
    """Commands for the chip when measuring starts."""
    faults = program.stack.faults
    rates, chosen = [], []
    for kind, given in (("program", faults.program_fail), ("erase", faults.erase_fail)):
        if isinstance(given, tuple):
            chosen += [f"fail-{kind} {number}" for number in given]
        rates.append(0 if isinstance(given, tuple) else round(given * PPM))
    flips = faults.bit_flips
    rates += [round(flips.rate * PPM), flips.bits] if flips else [0, 1]
    commands = [f"faults {faults.seed} {' '.join(map(str, rates))}"] if any(rates[:3]) else []
    if faults.endurance_erases:
        commands.append(f"endurance {faults.endurance_erases} {faults.seed}")
    return [*program.chip_commands, *commands, *chosen, *_error_commands(program)]


def _error_commands(program: Program) -> list[str]:
    """Commands that make bits wrong by the curve."""
    rates = program.stack.bit_errors
    if rates is None:
        return []
    terms = (rates.fresh, rates.wear, rates.retention, rates.disturb)
    commands = [
        f"error-term {number} {' '.join(map(str, term))}" for number, term in enumerate(terms)
    ]
    return [*commands, f"errors {program.stack.faults.seed} {rates.age_hours} {rates.reads}"]
