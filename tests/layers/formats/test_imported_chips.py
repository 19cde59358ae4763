"""Chips from a kernel's tables and a board's own words."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from flashbed.stack.chip_text import blank_chip_text, chip_text
from flashbed.stack.chips import CatalogueChip, chip_names, load_chip
from flashbed.stack.imported.board_words import chip_of_words, fitting
from flashbed.stack.imported.kernel_source import chips_in_source, is_kernel_source

SPI_NAND = """
#define SPINAND_MFR_MAKER 0xEF /* SPINAND_INFO("NO") */
static SPINAND_OP_VARIANTS(reads,
        SPINAND_PAGE_READ_FROM_CACHE_%(quad)s,
        SPINAND_PAGE_READ_FROM_CACHE_%(one)s);
static SPINAND_OP_VARIANTS(writes, SPINAND_PROG_LOAD_X4(true, 0, NULL, 0));
static SPINAND_OP_VARIANTS(updates,
        SPINAND_PROG_LOAD_X4(false, 0, NULL, 0),
        SPINAND_PROG_LOAD(false, 0, NULL, 0));
static int own_free(struct mtd_info *mtd, int section, struct mtd_oob_region *region)
{
        if (section > 3)
                return -ERANGE;
        if (section) {
                region->length = 8;
        } else {
                region->length = 7;
        }
        return 0;
}
static const struct mtd_ooblayout_ops own_layout = { .ecc = own_ecc, .free = own_free, };
static const struct spinand_info table[] = {
        SPINAND_INFO("PART1",
                     SPINAND_ID(SPINAND_READID_METHOD_OPCODE_DUMMY, 0xaa, 0x22),
                     NAND_MEMORG(1, 2048, 128, 64, 1024, 20, 2, 1, 2),
                     NAND_ECCREQ(8, 512),
                     SPINAND_INFO_OP_VARIANTS(&reads, &writes, &updates),
                     0, SPINAND_ECCINFO(&own_layout, NULL)),
};
const struct spinand_manufacturer m = { .id = SPINAND_MFR_MAKER, .name = "Maker", };
"""
OLD = {"quad": "QUADIO_OP(0, 2, NULL, 0)", "one": "OP(true, 0, 1, NULL, 0)"}
NEW = {
    "quad": "1S_4S_4S_OP(0, 2, NULL, 0, 104 * HZ_PER_MHZ)",
    "one": "FAST_1S_1S_1S_OP(0, 1, NULL, 0, 0)",
}
RAW_NAND = """
struct nand_flash_dev nand_flash_ids[] = {
        {"TC58NVG2S0F 4G 3.3V 8-bit",
                { .id = {0x98, 0xdc, 0x90, 0x26, 0x76, 0x15, 0x01, 0x08} },
                  SZ_4K, SZ_512, SZ_256K, 0, 8, 224, NAND_ECC_INFO(4, SZ_512) },
        EXTENDED_ID_NAND("NAND 128MiB 3,3V 8-bit", 0xF1, 128, LP_OPTIONS),
};
"""
SPI_LOG = """
[    1.1] spi-nand spi0.0: Winbond SPI NAND was found.
[    1.2] spi-nand spi0.0: 128 MiB, block size: 128 KiB, page size: 2048, OOB size: 64
"""
RAW_LOG = """
nand: device found, Manufacturer ID: 0x2c, Chip ID: 0xda
nand: Micron MT29F2G08ABAEAWP
nand: 256 MiB, SLC, erase size: 128 KiB, page size: 2048, OOB size: 64
"""
MTDINFO = """
mtd2
Name:                           data
Type:                           nand
Eraseblock size:                131072 bytes, 128.0 KiB
Amount of eraseblocks:          400 (52428800 bytes, 50.0 MiB)
Minimum input/output unit size: 2048 bytes
OOB size:                       128 bytes
"""


@pytest.mark.parametrize("words", [OLD, NEW], ids=["6.1", "6.16"])
def test_a_kernels_table_of_spi_nand_is_read_in_both_generations_of_macros(
    words: dict[str, str],
) -> None:
    source = SPI_NAND % words
    assert is_kernel_source(source)
    (tables,) = chips_in_source(source, "Linux")
    assert tables["chip"]["id"] == [0xEF, 0xAA, 0x22]
    geometry = tables["geometry"]
    assert (geometry["blocks"], geometry["dies"], geometry["planes"]) == (2048, 2, 2)
    assert geometry["max_bad_blocks"] == 40
    spi = tables["spi"]
    assert [row["opcode"] for row in spi["read"]] == [0xEB, 0x0B]
    assert spi["read"][0]["dummy_bytes"] == 2
    assert [row["opcode"] for row in spi["program"]] == [0x34, 0x84]
    assert spi["oob_free_bytes"] == 7 + 3 * 8
    part = CatalogueChip.model_validate(tomllib.loads(chip_text("x", tables)))
    assert part.name == "PART1"


def test_a_row_of_nand_ids_is_read_and_one_without_geometry_is_left_out() -> None:
    (tables,) = chips_in_source(RAW_NAND, "Linux")
    assert tables["chip"]["name"] == "TC58NVG2S0F"
    assert tables["geometry"]["blocks"] == 2048
    assert (tables["ecc"]["strength_bits"], tables["ecc"]["step_bytes"]) == (4, 512)


def test_what_a_part_can_load_ahead_and_how_many_bits_a_cell_holds_is_read() -> None:
    continuous = (SPI_NAND % NEW).replace("NULL)),", "NULL), SPINAND_CONT_READ(set_cont_read)),")
    (able,) = chips_in_source(continuous, "Linux")
    (plain,) = chips_in_source(SPI_NAND % NEW, "Linux")
    assert able["spi"]["continuous_reads"]
    assert "continuous_reads" not in plain["spi"]
    (mlc,) = chips_in_source(RAW_NAND.replace("0xdc, 0x90", "0xdc, 0x94"), "Linux")
    assert mlc["chip"]["cells"] == "mlc"


def test_a_boot_log_of_spi_nand_names_the_parts_of_the_catalogue_that_fit() -> None:
    found = chip_of_words(SPI_LOG, "boot.log")
    assert found is not None
    names = {part.name for part in fitting(found, map(load_chip, chip_names()))}
    assert "W25N01GV" in names
    assert "W25N02KV" not in names


def test_a_boot_log_of_raw_nand_names_the_model() -> None:
    found = chip_of_words(RAW_LOG, "boot.log")
    assert found is not None
    assert found["chip"]["name"] == "MT29F2G08ABAEAWP"
    (part,) = fitting(found, map(load_chip, chip_names()))
    assert part.name == "MT29F2G08ABAEA"


def test_mtdinfo_has_a_partition_of_which_the_chip_may_be_larger() -> None:
    found = chip_of_words(MTDINFO, "mtdinfo")
    assert found is not None
    assert found["geometry"]["least_blocks"] == 400
    names = {part.name for part in fitting(found, map(load_chip, chip_names()))}
    assert {"W25N02KV", "MT29F1G01ABAFD"} <= names


def test_ubinfo_and_other_text_describe_no_chip() -> None:
    assert chip_of_words("Count of UBI devices: 1", "x") is None
    assert not is_kernel_source("int main(void) { return 0; }")


@pytest.mark.parametrize("bus", ["spi", "parallel"])
def test_a_begun_chip_names_each_number_that_is_open(bus: str, tmp_path: Path) -> None:
    tables = tomllib.loads(blank_chip_text("MINE", bus))
    with pytest.raises(ValueError, match="page_bytes"):
        CatalogueChip.model_validate(tables)
