"""A JEDEC page that Linux' own header lays out is read field by field as it was filled."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.stack.chip_text import chip_text
from flashbed.stack.chips import CatalogueChip
from flashbed.stack.imported import jedec
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.support.parameter_pages import with_crc

pytestmark = pytest.mark.uml

FILL = r"""
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef uint8_t u8;
typedef uint16_t __le16;
typedef uint32_t __le32;
#define BIT(n) (1u << (n))
#define __packed __attribute__((packed))
#include "linux/mtd/jedec.h"
int main(void)
{
        struct nand_jedec_params page = { .sig = "JESD" };

        page.revision = 1 << 2;
        page.features = JEDEC_FEATURE_16_BIT_BUS;
        page.opt_cmd[0] = BIT(1);
        memcpy(page.manufacturer, "SAMSUNG     ", 12);
        memcpy(page.model, "K9XYZ               ", 20);
        page.byte_per_page = 8192;
        page.spare_bytes_per_page = 640;
        page.pages_per_block = 128;
        page.blocks_per_lun = 4096;
        page.lun_count = 4;
        page.bits_per_cell = 1;
        page.multi_plane_addr = 2;
        page.async_sdr_speed_grade = 0x7;
        page.t_prog = 700;
        page.t_bers = 9000;
        page.t_r = 55;
        page.t_ccs = 250;
        page.ecc_info[0].ecc_bits = 24;
        page.ecc_info[0].codeword_size = 10;
        page.ecc_info[0].bb_per_lun = 80;
        page.ecc_info[0].block_endurance = 6 | 4 << 8;
        return fwrite(&page, sizeof(page), 1, stdout) != 1;
}
"""


def test_each_field_stands_where_linux_has_it(tmp_path: Path) -> None:
    kernel = cached_kernel(cache_folder(), "6.1")
    assert kernel, "conftest.py skips tests without one"
    (tmp_path / "fill.c").write_text(FILL)
    include = kernel.tree / "include"
    build = ["gcc", f"-I{include}", "-o", str(tmp_path / "fill"), str(tmp_path / "fill.c")]
    subprocess.run(build, check=True)
    page = subprocess.run([str(tmp_path / "fill")], check=True, capture_output=True).stdout
    tables = jedec.chip_of_page(with_crc(page), "page.bin")
    part = CatalogueChip.model_validate(tomllib.loads(chip_text("x", tables)))
    geometry = part.geometry.model_dump(exclude={"source", "pairing"})
    assert geometry == {
        "page_bytes": 8192, "oob_bytes": 640, "pages_per_block": 128, "blocks": 4 * 4096,
        "planes": 4, "dies": 4, "max_bad_blocks": 320,
    }  # fmt: skip
    assert (part.name, part.chip.maker, part.chip.cells) == ("K9XYZ", "Samsung", "slc")
    assert [part.array_ns(one, "maximum") for one in ("read", "program", "erase")] == [
        55_000, 700_000, 9_000_000,
    ]  # fmt: skip
    assert part.parallel is not None
    bus = part.parallel.model_dump(exclude_none=True, exclude={"source"})
    assert bus == {
        "width_bits": 16, "timing_mode": 2, "cache_reads": True, "column_change_ns": 250,
    }  # fmt: skip
    assert part.ecc is not None
    assert (part.ecc.strength_bits, part.ecc.step_bytes) == (24, 1024)
    assert part.endurance is not None
    assert part.endurance.cycles == 60_000
