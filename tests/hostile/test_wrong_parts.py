"""Forty mistakes in profiles and chips, each said in a line with file, key and value.

A mistake that no file can have is refused when it is read; one that no chip on sale has is a
warning of `flashbed board check`, which every run prints as well.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.stack.checked_board import oddities
from flashbed.stack.chips import load_chip
from flashbed.stack.profiles import load_board
from tests.support import PROJECT

BOARD = """\
[board]
name = "mine"
title = "mine"
ram_mib = 128
cpu_mhz = 528
source = "its manual"

[chip]
part = "MYCHIP"

[controller]
clock_hz = 52_000_000
lines = 4

[partition]
source = "our table"
first_block = 64
blocks = 400

[memory]
source = "/proc/meminfo"
free_kib = 98_304

[software]
like = "emulated"
pointer_bytes = 4
"""
CHIP = """\
[chip]
name = "MYCHIP"
title = "a part"
maker = "Winbond"
bus = "spi"
id = [0xef, 0xaa, 0x21]
source = "its data sheet"

[geometry]
source = "its data sheet"
page_bytes = 2048
oob_bytes = 64
pages_per_block = 64
blocks = 1024
max_bad_blocks = 20

[times]
source = "its data sheet"

[times.typical]
read_array_ecc_ns = 50_000
program_array_ns = 250_000
erase_array_ns = 2_000_000

[times.maximum]
read_array_ecc_ns = 60_000
program_array_ns = 700_000

[ecc]
source = "its data sheet"
on_die_strength_bits = 1
on_die_step_bytes = 512

[spi]
source = "its data sheet"
clock_max_hz = 104_000_000
oob_free_bytes = 24
read = [{opcode = 0x6b, address_lines = 1, dummy_bytes = 1, data_lines = 4}]
program = [{opcode = 0x34, data_lines = 4}]

[endurance]
source = "its data sheet"
cycles = 100_000
"""
OF_CHIP = [
    ("page_bytes = 2048", "page_bytes = 2000", "geometry: page_bytes = 2000 is not a power of two"),
    ("page_bytes = 2048", "page_bytes = 2", "geometry.page_bytes: 2 is not at least 256"),
    ("page_bytes = 2048", 'page_bytes = "2k"', 'geometry.page_bytes: "2k" is not a whole number'),
    ("oob_bytes = 64", "oob_bytes = 2112", "oob_bytes = 2112: a spare area is 16 to 1024"),
    ("pages_per_block = 64", "pages_per_block = 100", "pages_per_block = 100 is not a power of"),
    ("blocks = 1024", "blocks = 0", "geometry.blocks: 0 is not more than 0"),
    ("max_bad_blocks = 20", "max_bad_blocks = 1004", "max_bad_blocks = 1004: more than a tenth"),
    ("program_array_ns = 250_000", "program_array_ns = 900_000",
     "typical.program_array_ns = 900_000 is more than maximum.program_array_ns = 700_000"),
    ("erase_array_ns = 2_000_000", "erase_array_ns = 2.0", "erase_array_ns: 2.0 is not a whole"),
    ("read_array_ecc_ns = 50_000", "read_aray_ecc_ns = 50_000",
     "times.typical.read_aray_ecc_ns: unknown key, read_array_ecc_ns is meant?"),
    ("erase_array_ns = 2_000_000", "erase_array_ns = 0", "erase_array_ns: 0 is not more than 0"),
    ('bus = "spi"', 'bus = "qspi"', "chip.bus: \"qspi\" is not 'spi', 'parallel' or 'nor'"),
    ('bus = "spi"', 'bus = "parallel"', 'chip.bus = "parallel": [parallel] is missing'),
    ("id = [0xef, 0xaa, 0x21]", "id = [0xef, 0xaa21]", "chip.id.2: 43553 is not at most 255"),
    ("on_die_step_bytes = 512", "", "on_die_strength_bits and on_die_step_bytes need each other"),
    ("clock_max_hz = 104_000_000", "clock_max_hz = 104", "clock_max_hz: 104 is not at least 100"),
    ("opcode = 0x6b", "opcode = 0x6bb", "spi.read.1.opcode: 1723 is not at most 255"),
    ("data_lines = 4}]\nprogram", "data_lines = 3}]\nprogram", "spi.read.1.data_lines: 3 is not"),
    ("dummy_bytes = 1", "dummy_bytes = 80", "spi.read.1.dummy_bytes: 80 is not at most 32"),
    ("cycles = 100_000", 'cycles = "100k"', 'endurance.cycles: "100k" is not a whole number'),
    ('name = "MYCHIP"', 'name = "OTHER"', "name = 'OTHER' is not the file's name"),
    ("[spi]", "[spy]", "spy: unknown"),
    ("oob_free_bytes = 24", "", "spi.oob_free_bytes is not known"),
    ("erase_array_ns = 2_000_000", "", "times.typical: erase_array_ns not published"),
]  # fmt: skip
OF_BOARD = [
    ("clock_hz = 52_000_000", "clock_hz = 52", "controller.clock_hz: 52 is not at least 100,000"),
    ("clock_hz = 52_000_000", "clock_hz = 166_000_000",
     "controller.clock_hz = 166_000_000: MYCHIP takes 104_000_000 at most"),
    ("lines = 4", "lines = 3", "controller.lines: 3 is not 1, 2, 4 or 8"),
    ("lines = 4", "lines = 1", "spi: no command for 1 data lines"),
    ("lines = 4", "line = 4", "controller.line: unknown key, lines is meant?"),
    ('part = "MYCHIP"', 'part = "MYCHIPS"', "no such chip, MYCHIP is meant?"),
    ('part = "MYCHIP"', 'part = "MYCHIP"\nread_array_ns = 60',
     "chip.read_array_ns = 60: NAND takes 3_000 to 500_000 ns; is 60_000 meant?"),
    ('part = "MYCHIP"', 'part = "MYCHIP"\nread_array_ns = 300_000',
     "chip.read_array_ns = 300_000: longer than a page write of 250_000; are they swapped?"),
    ('part = "MYCHIP"', 'part = "MYCHIP"\nerase_array_ns = 200',
     "chip.erase_array_ns = 200: NAND takes 300_000"),
    ("blocks = 400", "blocks = 4000", "the partition ends at block 4064, the chip at 1024"),
    ("free_kib = 98_304", "free_kib = 983_040", "memory.free_kib = 983_040: more than the"),
    ("cpu_mhz = 528", "cpu_mhz = 5", "board.cpu_mhz = 5: boards with NAND have 20 to 4_000 MHz"),
    ("cpu_mhz = 528\n", "", "board.cpu_mhz is missing; software.like scales prices by the clock"),
    ('like = "emulated"', 'like = "emulate"', "emulate.toml: no such board"),
    ('like = "emulated"', 'like = "emulated"\nsyscall_ns = 5', "software.syscall_ns: unknown key"),
    ("pointer_bytes = 4", "", "software.pointer_bytes: missing"),
    ("ram_mib = 128", 'ram_mib = "128M"', 'board.ram_mib: "128M" is not a whole number'),
    ("[controller]", "[controler]", "controler: unknown"),
]  # fmt: skip


def said(tmp_path: Path, board: str, chip: str) -> list[str]:
    (tmp_path / "boards" / "chips").mkdir(parents=True)
    (tmp_path / "boards" / "mine.toml").write_text(board)
    (tmp_path / "boards" / "chips" / "MYCHIP.toml").write_text(chip)
    for name in ("emulated",):
        text = (PROJECT / "boards" / f"{name}.toml").read_text()
        (tmp_path / "boards" / f"{name}.toml").write_text(text)
    try:
        load_chip("MYCHIP")
        return oddities(load_board("mine"))
    except InputError as why:
        return [str(why), *why.also]


def test_there_are_forty_and_without_a_mistake_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(OF_CHIP) + len(OF_BOARD) >= 40
    assert said(tmp_path, BOARD, CHIP) == []


@pytest.mark.parametrize(("right", "wrong", "line"), OF_CHIP, ids=lambda words: words[:30])
def test_a_wrong_chip_is_said_in_a_line(
    right: str, wrong: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert right in CHIP
    found = said(tmp_path, BOARD, CHIP.replace(right, wrong, 1))
    assert any("MYCHIP" in one and line in one for one in found), found
    assert all("\n" not in one for one in found)


@pytest.mark.parametrize(("right", "wrong", "line"), OF_BOARD, ids=lambda words: words[:30])
def test_a_wrong_board_is_said_in_a_line(
    right: str, wrong: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert right in BOARD
    found = said(tmp_path, BOARD.replace(right, wrong, 1), CHIP)
    assert any("boards/" in one and line in one for one in found), found
    assert all("\n" not in one for one in found)
