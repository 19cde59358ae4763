"""The catalogue of chips: what its files say, and what a board becomes with one of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from flashbed.answers.lifetimes.given import cycles_of
from flashbed.base.errors import InputError
from flashbed.stack.changes import ChipChange
from flashbed.stack.chips import CORNERS, ChipError, chip_names, load_chip
from flashbed.stack.doubts import doubts, remarks
from flashbed.stack.fitted_chip import chosen_variants
from flashbed.stack.profiles import Board, load_board, load_kernel
from flashbed.stack.stack import Stack
from tests.support import PROJECT

CHIPS = sorted((PROJECT / "boards" / "chips").glob("*.toml"))


def on_emulated(chip: str, **changes: dict[str, object]) -> Board:
    return load_board("emulated").changed({"chip": {"part": chip}, **changes})


def test_the_catalogue_has_twenty_spi_and_fifteen_parallel_parts_of_many_makers() -> None:
    parts = [load_chip(name) for name in chip_names()]
    assert sum(part.chip.bus == "spi" for part in parts) >= 20
    assert sum(part.chip.bus == "parallel" for part in parts) >= 15
    spi = {part.chip.maker for part in parts if part.chip.bus == "spi"}
    assert spi >= {"Winbond", "Macronix", "Micron", "GigaDevice", "Toshiba", "XTX", "ESMT"}


@pytest.mark.parametrize("path", CHIPS, ids=lambda path: path.stem)
def test_every_table_of_a_chip_names_its_source(path: Path) -> None:
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    assert all(table.get("source") for table in tables.values()), path
    assert not re.search(r"https?://", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", chip_names())
def test_a_spi_part_has_the_bytes_and_commands_that_linux_finds_it_by(name: str) -> None:
    part = load_chip(name)
    if part.spi is not None:
        assert part.chip.id is not None
        assert len(part.chip.id) >= 2
        assert part.spi.read[-1].data_lines == 1
        assert part.spi.program[-1].data_lines == 1


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("name", chip_names())
def test_every_chip_fits_or_says_in_a_line_what_no_source_says(name: str, corner: str) -> None:
    part = load_chip(name)
    lacking, board = "", None
    try:
        board = on_emulated(name, corner={"corner": corner})
    except InputError as why:
        lacking = str(why)
    if board is None:
        of_chip = f"boards/chips/{name}.toml: times.{corner}: " in lacking
        assert (of_chip and "--set chip." in lacking) or "chip.oob_bytes" in lacking
    else:
        assert board.chip.blocks == part.geometry.blocks
        assert (board.spi is None) == (part.spi is None)


def test_a_time_that_no_source_says_can_be_given() -> None:
    times = {"read_array_ns": 60_000, "program_array_ns": 250_000, "erase_array_ns": 2_000_000}
    with pytest.raises(ChipError, match=r"read_array_ecc_ns, program_array_ecc_ns, erase_array_ns"):
        on_emulated("W25N02KV")
    board = load_board("emulated").changed({"chip": {"part": "W25N02KV", **times}})
    assert {key: getattr(board.chip, key) for key in times} == times
    assert (board.ecc.kind, board.ecc.strength_bits, board.ecc.step_bytes) == ("on-die", 8, 512)


def test_what_lacks_times_says_what_other_parts_have() -> None:
    with pytest.raises(
        ChipError, match=r"other parts with this bus: read [\d.]+ us to [\d.]+ us, "
    ):
        on_emulated("W25N02KV")


def test_the_largest_time_stands_for_a_typical_one_and_the_answer_says_so() -> None:
    board = on_emulated("W25N01GV")
    assert board.chip.read_array_ns == 60_000
    assert any("read takes 60.00 us, the largest" in one for one in remarks(board))
    with pytest.raises(ChipError, match=r"times\.maximum: erase_array_ns not published"):
        on_emulated("S34ML04G1", corner={"corner": "maximum"})


def test_a_controller_that_a_board_does_not_name_is_assumed_and_said() -> None:
    board = on_emulated("W25N01GV")
    assert board.spi is not None
    assert (board.spi.clock_hz, board.spi.read_opcode) == (52_000_000, 0xEB)
    assert any("its controller is assumed: 52 MHz" in one for one in remarks(board))
    one = on_emulated("W25N01GV", controller={"clock_hz": 20_000_000, "lines": 1})
    assert one.spi is not None
    assert (one.spi.clock_hz, one.spi.read_opcode) == (20_000_000, 0x0B)
    assert one.spi.program_opcode == 0x84
    assert not any("assumed" in said for said in remarks(one))


W35N_TIMES = {"read_array_ns": 50_000, "program_array_ns": 250_000, "erase_array_ns": 2_000_000}


def octal(lines: int, **controller: int) -> Board:
    return load_board("emulated").changed(
        {"chip": {"part": "W35N01JW", **W35N_TIMES}, "controller": {"lines": lines, **controller}}
    )


@pytest.mark.parametrize(
    ("clock_hz", "dummy_bytes"), [(52, 8), (86, 8), (120, 12), (133, 16), (166, 20)]
)
def test_the_fastest_octal_command_at_a_clock_is_chosen(clock_hz: int, dummy_bytes: int) -> None:
    spi = octal(8, clock_hz=clock_hz * 1_000_000).spi
    assert spi is not None
    assert (spi.read_opcode, spi.read_dummy_bytes, spi.dtr) == (0xCB, dummy_bytes, False)
    assert (spi.program_opcode, spi.program_address_lines, spi.program_data_lines) == (0xC4, 8, 8)


def test_octal_dtr_is_chosen_where_chip_and_controller_have_it() -> None:
    spi = octal(8, dtr=1, clock_hz=80_000_000).spi
    assert spi is not None
    assert (spi.dtr, spi.read_opcode, spi.read_dummy_bytes, spi.program_opcode) == (
        True, 0x9D, 16, 0xC4,
    )  # fmt: skip
    other = load_board("emulated").changed(
        {"chip": {"part": "W25N01GV"}, "controller": {"lines": 8, "dtr": 1}}
    )
    assert other.spi is not None
    assert not other.spi.dtr
    assert any("Linux falls back to single data rate" in said for said in remarks(other))


def test_fewer_lines_than_a_command_needs_fall_back_and_the_answer_says_so() -> None:
    narrow = octal(4)
    assert narrow.spi is not None
    assert (narrow.spi.read_opcode, narrow.spi.read_data_lines) == (0x0B, 1)
    assert any("it reads on 1 of 4 data lines" in said for said in remarks(narrow))


@pytest.mark.parametrize(
    ("kernel", "controller", "said"),
    [
        ("6.1", {}, "Linux' SPI-NAND driver does not know the chip ef dc 21"),
        ("7.3", {}, None),
        ("7.3", {"dtr": 1}, None),
    ],
)
def test_a_kernel_before_the_part_refuses_it_in_its_drivers_words(
    kernel: str, controller: dict[str, int], said: str | None
) -> None:
    board = octal(8, **controller)
    stack = Stack(board=board, kernel=load_kernel(kernel), fs="ubifs", read_ahead_kib=0)
    assert stack.refused_by_kernel == said


def test_a_kernel_without_octal_dtr_says_what_it_falls_back_to() -> None:
    kernel = load_kernel("7.3")
    older = kernel.model_copy(
        update={"kernel": kernel.kernel.model_copy(update={"octal_dtr": False})}
    )
    stack = Stack(board=octal(8, dtr=1), kernel=older, fs="ubifs", read_ahead_kib=0)
    assert "falls back to single data rate" in (stack.refused_by_kernel or "")


@pytest.mark.parametrize("lines", [1, 2, 4, 8])
@pytest.mark.parametrize("name", [name for name in chip_names() if load_chip(name).spi])
def test_the_fastest_command_of_older_tables_is_the_first(name: str, lines: int) -> None:
    """Older kernels take the first command that the lines can do."""
    part = load_chip(name)
    assert part.spi is not None
    if part.spi.linux_since is None:
        read, program = chosen_variants(part, lines, 52_000_000)
        assert read == next(
            one for one in part.spi.read if max(one.address_lines, one.data_lines) <= lines
        )
        assert program == next(one for one in part.spi.program if one.data_lines <= lines)


def test_a_clock_beyond_the_chips_is_a_warning() -> None:
    fast = on_emulated("W25N01GV", controller={"clock_hz": 166_000_000})
    assert any("takes 104_000_000 at most" in one for one in doubts(fast))


def test_a_partition_keeps_its_bytes_or_becomes_the_whole_chip() -> None:
    assert on_emulated("W25N01GV").partition.blocks == 400
    halved = on_emulated("MT29F4G01ABAFD")
    assert halved.partition.blocks * halved.chip.pages_per_block * 4096 == 400 * 64 * 2048
    times = {"read_array_ns": 1, "program_array_ns": 1, "erase_array_ns": 1}
    whole = load_board("omap3evm").changed({"chip": {"part": "W25N512GW", **times}})
    assert (whole.partition.first_block, whole.partition.blocks) == (0, 512)
    assert any("the whole part" in one for one in remarks(whole))


def test_ecc_weaker_than_the_chip_asks_for_is_a_warning() -> None:
    given = {"part": "MX30LF2G18AC", "erase_array_ns": 1_000_000}
    board = load_board("emulated").changed({"chip": given})
    (weak,) = [one for one in doubts(board) if "asks for" in one]
    assert "ecc.strength_bits = 1 in 256 bytes: MX30LF2G18AC asks for 4 in 512" in weak


def test_endurance_is_the_chips_or_unknown_and_energy_is_unknown() -> None:
    board = load_board("omap3evm").changed({"chip": {"part": "MX30LF2GE8AB"}})
    assert (board.endurance, board.energy) == (None, None)
    known = on_emulated("S34ML04G1").endurance
    assert known is not None
    assert known.cycles == 100_000


def test_a_corner_without_a_chip_of_the_catalogue_is_refused_in_a_line() -> None:
    with pytest.raises(InputError, match=r"boards/emulated.toml: chip.part: corner is of a chip"):
        load_board("emulated").changed({"corner": {"corner": "maximum"}})


def test_an_unknown_chip_is_refused_with_the_one_that_is_meant() -> None:
    with pytest.raises(ChipError, match=r"W25N02KX\.toml: no such chip, W25N02KV is meant"):
        on_emulated("W25N02KX")


@pytest.mark.parametrize("word", ["W25N01GV", "W25N01GV+read_array_ns=5", "blocks=7", "default"])
def test_a_chips_word_reads_back(word: str) -> None:
    assert str(ChipChange.parse(word)) == word


def test_a_boards_hash_changes_with_its_chips_file() -> None:
    first, second = on_emulated("W25N01GV"), on_emulated("W25N01GV")
    assert first.sha256 == second.sha256 != load_board("emulated").sha256
    assert first.values_json == second.values_json


def test_a_chip_without_endurance_is_named_and_not_the_board() -> None:
    times = {f"{one}_array_ns": 60_000 for one in ("read", "program", "erase")}
    board = load_board("emulated").changed({"chip": {"part": "W25N02KV", **times}})
    with pytest.raises(InputError, match=r"chips/W25N02KV\.toml: has no \[endurance\]"):
        cycles_of(board)
