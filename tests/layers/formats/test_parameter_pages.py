"""Parameter pages of ONFI and JEDEC: what is read of them, and what is refused."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from flashbed.base.errors import InputError
from flashbed.cli import app
from flashbed.stack.chip_text import chip_text
from flashbed.stack.chips import CatalogueChip
from flashbed.stack.imported import jedec, onfi
from flashbed.stack.imported.parameter_page import page_bytes_of
from tests.support.parameter_pages import JEDEC_FIELDS, jedec_page, onfi_page, with_crc

STANDARDS = [pytest.param(onfi, onfi_page, id="ONFI"), pytest.param(jedec, jedec_page, id="JEDEC")]


def dumped(page: bytes) -> bytes:
    rows = []
    for at in range(0, len(page), 16):
        row = page[at : at + 16]
        text = "".join(chr(one) if 32 <= one < 127 else "." for one in row)
        rows.append(f"{at:08x}  {row.hex(' ')}  |{text}|")
    return "\n".join(rows).encode()


def words(page: bytes) -> bytes:
    """As `hexdump` without options prints it."""
    rows = []
    for at in range(0, len(page), 16):
        row = page[at : at + 16]
        pairs = (f"{row[one + 1]:02x}{row[one]:02x}" for one in range(0, 16, 2))
        rows.append(f"{at:07x} {' '.join(pairs)}")
    return "\n".join(rows).encode()


def chip_of(standard: ModuleType, data: bytes) -> CatalogueChip:
    found = page_bytes_of(data, standard.SIGNATURE)
    assert found is not None
    tables = standard.chip_of_page(found, "page.bin")
    return CatalogueChip.model_validate(tomllib.loads(chip_text("x", tables)))


@pytest.mark.parametrize("form", [bytes, dumped, words], ids=["binary", "hexdump -C", "hexdump"])
def test_an_onfi_page_is_read_binary_and_as_a_dump(form: Any) -> None:
    part = chip_of(onfi, form(onfi_page() * 3))
    assert (part.name, part.geometry.blocks, part.geometry.planes) == ("MT29F2G08ABAEAWP", 2048, 2)
    assert part.array_ns("read", "maximum") == 25_000
    assert part.parallel is not None
    assert (part.parallel.timing_mode, part.parallel.read_ns) == (5, 20)
    assert part.endurance is not None
    assert part.endurance.cycles == 100_000


@pytest.mark.parametrize("form", [bytes, dumped, words], ids=["binary", "hexdump -C", "hexdump"])
def test_a_jedec_page_is_read_binary_and_as_a_dump(form: Any) -> None:
    part = chip_of(jedec, form(jedec_page() * 3))
    assert (part.name, part.chip.maker, part.chip.cells) == ("TH58TEG7DDKTA20", "Toshiba", "mlc")
    geometry = part.geometry
    assert (geometry.page_bytes, geometry.oob_bytes) == (16_384, 1_280)
    assert (geometry.pages_per_block, geometry.blocks, geometry.dies) == (256, 4096, 2)
    assert (geometry.planes, geometry.max_bad_blocks) == (2, 152)
    assert [part.array_ns(one, "maximum") for one in ("read", "program", "erase")] == [
        100_000, 5_000_000, 10_000_000,
    ]  # fmt: skip
    assert part.array_ns("read", "typical") is None
    assert part.ecc is not None
    assert (part.ecc.strength_bits, part.ecc.step_bytes) == (40, 1024)
    assert part.parallel is not None
    assert (part.parallel.timing_mode, part.parallel.width_bits) == (4, 8)
    assert (part.parallel.cache_reads, part.parallel.column_change_ns) == (True, 300)
    assert part.endurance is not None
    assert part.endurance.cycles == 3_000


def test_what_a_page_does_not_say_is_absent() -> None:
    bare = jedec_page(t_r=0, t_prog=0, t_bers=0, ecc_bits=0, endurance=0, async_sdr=0, t_ccs=0)
    part = chip_of(jedec, bare)
    assert (part.times, part.ecc, part.endurance) == (None, None, None)
    assert part.parallel is not None
    assert (part.parallel.timing_mode, part.parallel.column_change_ns) == (None, None)


def test_an_onfi_page_says_what_the_part_can_load_ahead_and_its_cells() -> None:
    cached = chip_of(onfi, onfi_page((8, 2, 0x3F), (102, 1, 2)))
    assert cached.parallel is not None
    assert (cached.parallel.cache_reads, cached.chip.cells) == (True, "mlc")
    plain = chip_of(onfi, onfi_page()).parallel
    assert plain is not None
    assert not plain.cache_reads


def test_counts_are_those_that_linux_uses() -> None:
    onfis = chip_of(onfi, onfi_page((92, 4, 86), (96, 4, 2084)))
    jedecs = chip_of(jedec, jedec_page(pages_per_block=258, blocks=2096))
    assert (onfis.geometry.pages_per_block, onfis.geometry.blocks) == (64, 2048)
    assert (jedecs.geometry.pages_per_block, jedecs.geometry.blocks) == (256, 4096)


@pytest.mark.parametrize(("standard", "page_of"), STANDARDS)
def test_the_first_copy_with_a_right_checksum_is_read_and_none_is_refused(
    standard: ModuleType, page_of: Any
) -> None:
    page = page_of()
    broken = page[:85] + b"\xff" + page[86:]
    assert chip_of(standard, broken + page) == chip_of(standard, page)
    with pytest.raises(InputError, match=r"x: none of 2 copies .* has a right checksum"):
        standard.chip_of_page(broken * 2, "x")
    with pytest.raises(InputError, match=r"x: none of 0 copies .* \(none worked out\)"):
        standard.chip_of_page(page[:99], "x")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"revision": 1}, r"page.bin: unsupported JEDEC version: 1 \(bytes 4 and 5\)"),
        ({"bits_per_cell": 4}, r"page.bin: 4 bits a cell \(byte 102\); 1 to 3 are known"),
        ({"page_bytes": 3000}, r"page.bin: geometry: .*page_bytes = 3000 is not a power of two"),
    ],
)
def test_a_page_that_linux_refuses_is_refused_in_a_line(
    fields: dict[str, int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.bin").write_bytes(jedec_page(**fields))
    with pytest.raises(InputError, match=said):
        CliRunner().invoke(app, ["chip", "import", "page.bin"], catch_exceptions=False)
    assert not Path("boards").exists()


def test_a_jedec_page_is_a_chip_in_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.txt").write_bytes(dumped(jedec_page() * 3))
    done = CliRunner().invoke(app, ["chip", "import", "page.txt", "--name", "MINE"])
    assert (done.exit_code, done.stdout) == (0, "boards/chips/MINE.toml\n")
    shown = CliRunner().invoke(app, ["chip", "show", "MINE"])
    assert "[geometry]  JEDEC parameter page, page.txt" in shown.stdout


NUMBERS = st.sampled_from(sorted(JEDEC_FIELDS))


@given(st.dictionaries(NUMBERS, st.integers(0, (1 << 32) - 1), max_size=6), st.binary(max_size=40))
def test_any_page_is_a_chip_or_refused_in_a_line(fields: dict[str, int], tail: bytes) -> None:
    """Right checksums over numbers that no part has."""
    small = {name: value % (1 << 8 * JEDEC_FIELDS[name][1]) for name, value in fields.items()}
    page = jedec_page(**small)
    _holds(jedec, page + tail)


@given(st.binary(min_size=508, max_size=508), st.booleans())
def test_any_bytes_behind_a_signature_are_a_chip_or_refused_in_a_line(
    rest: bytes, right: bool
) -> None:
    for standard, size in ((onfi, 256), (jedec, 512)):
        page = standard.SIGNATURE + rest[: size - 4]
        _holds(standard, with_crc(page) if right else page)


def _holds(standard: ModuleType, data: bytes) -> None:
    found = page_bytes_of(data, standard.SIGNATURE)
    assert found is not None
    said = ""
    try:
        tables = standard.chip_of_page(found, "page.bin")
    except InputError as why:
        said = str(why)
    else:
        assert tomllib.loads(chip_text("x", tables))["chip"]["bus"] == "parallel"
    assert "\n" not in said
