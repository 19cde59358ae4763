"""SPI-NOR on a board: its tables, the module's parameters, what refuses it."""

from __future__ import annotations

import json

import pytest

from flashbed.answers.lifetimes.given import blocks_filled
from flashbed.base.errors import InputError
from flashbed.plan.workloads.space import space_table
from flashbed.stack.chips import ChipError, chip_names, load_chip
from flashbed.stack.doubts import doubts
from flashbed.stack.profiles import Board, load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.guest.nand import parameters

NOR = [name for name in chip_names() if load_chip(name).nor is not None]
GIVEN = {"program_array_ns": 500_000, "erase_array_ns": 200_000_000}


def _board(chip: str, **changes: dict[str, object]) -> Board:
    return load_board("emulated").changed({"chip": {"part": chip}, **changes})


def _stack(chip: str, fs: str) -> Stack:
    return Stack(board=_board(chip), kernel=load_kernel("6.1"), fs=fs)


@pytest.mark.parametrize("name", NOR)
def test_a_part_has_pages_of_256_bytes_in_blocks_of_64_kib(name: str) -> None:
    part = load_chip(name)
    assert part.chip.id is not None
    assert len(part.chip.id) >= 3
    assert (part.geometry.page_bytes, part.geometry.oob_bytes, part.block_bytes) == (256, 0, 65_536)
    board = load_board("emulated").changed({"chip": {"part": name, **GIVEN}})
    assert board.nor is not None
    assert board.spi is None
    assert board.ecc.kind == "none"


def test_times_that_no_source_says_are_asked_for() -> None:
    with pytest.raises(ChipError, match=r"program_array_ns, erase_array_ns not published"):
        _board("MX25L12835F")


def test_the_module_gets_the_bus_and_no_key_of_the_catalogue() -> None:
    board = _board("W25Q128JV", controller={"clock_hz": 80_000_000, "lines": 2, "op_ns": 500})
    given = dict(word.split("=") for word in parameters(board, wait="busy").split())
    assert given["nor_id"] == "239,64,24"
    assert given["nor_quad"] == "sr2-bit1"
    assert (given["spi_hz"], given["spi_rx_lines"], given["spi_op_ns"]) == ("80000000", "2", "500")
    assert (given["program_array_ns"], given["erase_array_ns"]) == ("700000", "150000000")
    assert not {"kind", "spi_id", "cells"} & given.keys()


def test_the_largest_erase_takes_two_seconds() -> None:
    board = _board("W25Q64JV", corner={"corner": "maximum"})
    assert board.chip.erase_array_ns == 2_000_000_000


def test_a_clock_beyond_the_part_is_a_doubt() -> None:
    board = _board("W25Q128JV", controller={"clock_hz": 150_000_000})
    assert any("W25Q128JV takes 133_000_000 at most" in doubt for doubt in doubts(board))


def test_eight_lines_are_refused() -> None:
    with pytest.raises(ChipError, match=r"controller\.lines = 8"):
        _board("W25Q128JV", controller={"lines": 8})


def test_nand_takes_the_place_of_nor_again() -> None:
    board = _board("W25Q128JV").changed({"chip": {"part": "W25N01GV"}})
    assert board.nor is None
    assert board.spi is not None


def test_jffs2_is_simulated_and_on_both_real_kernels() -> None:
    stack = _stack("W25Q128JV", "jffs2")
    assert (stack.refused_on_nor, stack.not_simulated) == (None, None)
    assert stack.only_in_user_mode is None


def test_a_free_block_has_its_clean_marker() -> None:
    board = _board("W25Q128JV")
    parts = {row.name: row.bytes for row in space_table("jffs2", board).rows}
    assert parts["clean markers"] == 12 * board.partition.blocks
    assert parts["files"] == 0
    with pytest.raises(InputError, match="another file system than JFFS2 on SPI-NOR"):
        space_table("ubifs", board)


@pytest.mark.parametrize(
    ("chip", "lines", "read"),
    [
        ("W25Q128JV", 4, (4, 6, 3)),
        ("W25Q128JV", 2, (2, 4, 3)),
        ("W25Q128JV", 1, (1, 8, 3)),
        ("W25Q256JV", 4, (4, 6, 4)),
        ("MX25L12835F", 4, (1, 8, 3)),
    ],
)
def test_the_simulator_gets_the_read_that_linux_chooses(
    chip: str, lines: int, read: tuple[int, int, int]
) -> None:
    given = GIVEN if chip == "MX25L12835F" else {}
    board = load_board("emulated").changed(
        {"chip": {"part": chip, **given}, "controller": {"lines": lines}}
    )
    nor = json.loads(board.sim_json)["chip"]["nor"]
    assert (nor["read_lines"], nor["read_dummy_cycles"], nor["address_bytes"]) == read


@pytest.mark.parametrize("fs", ["ubifs", "yaffs2", "mtd", "ext4"])
def test_only_jffs2_is_made_on_it(fs: str) -> None:
    assert _stack("W25Q128JV", fs).refused_on_nor == (
        f"fs={fs}: SPI-NOR has jffs2 only (chip W25Q128JV)"
    )


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"kind": "nor"}, "pages of 256 bytes without a spare area"),
        ({"oob_bytes": 0}, "NAND has a spare area"),
    ],
)
def test_a_board_is_nand_or_nor_and_no_mixture(changes: dict[str, object], why: str) -> None:
    board = load_board("emulated")
    values = board.model_dump(exclude={"energy"})
    values["chip"] |= changes
    with pytest.raises(ValueError, match=why):
        Board.model_validate(values)


def test_a_page_of_nor_counts_by_the_bytes_that_were_programmed_into_it() -> None:
    """A camera lasted 125 years: JFFS2's 24,700 page writes a day counted as whole pages.

    They are 3.3 MB in 51 blocks a day, which is what is erased.
    """
    nor = _board("W25Q128JV")
    assert blocks_filled(nor, 512, 65_536.0) == 1
    assert blocks_filled(nor, 512, None) == 2
    assert blocks_filled(load_board("emulated"), 640, 1.0) == 640 / 64
