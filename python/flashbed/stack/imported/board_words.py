"""Reads what a board says of its NAND: a kernel's boot log, `mtdinfo -a`, `ubinfo -a`.

The lines are those of nand_scan_ident(), spinand_init(), of UBI, and of mtd-utils. They have
geometry, and of raw NAND the model. A boot log does not name the model of SPI-NAND, so the parts of
the catalogue that fit are named instead (`fitting`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from flashbed.stack.chips import CatalogueChip

__all__ = ["chip_of_words", "fitting"]

_KIB, _MIB = 1 << 10, 1 << 20
_RAW_ID = re.compile(r"Manufacturer ID: (0x[0-9a-f]+), Chip ID: (0x[0-9a-f]+)", re.IGNORECASE)
_RAW_MODEL = re.compile(r"nand: ([A-Z][A-Za-z]+) (\S+)\s*$", re.MULTILINE)
_SIZES = re.compile(
    r"(\d+) MiB,(?: (SLC|MLC|TLC),)? (?:erase|block) size: (\d+) KiB, page size: (\d+),"
    r" OOB size: (\d+)"
)
_SPI = re.compile(r"spi-nand\s+\S+:\s+(\w+) SPI NAND was found")
_UTIL = {
    "block": re.compile(r"Eraseblock size:\s+(\d+) bytes"),
    "blocks": re.compile(r"Amount of eraseblocks:\s+(\d+) "),
    "page": re.compile(r"Minimum input/output unit size:\s+(\d+) bytes"),
    "oob": re.compile(r"OOB size:\s+(\d+) bytes"),
}
_UBI = {
    "block": re.compile(r"PEB size: (\d+) bytes"),
    "page": re.compile(r"min\./max\. I/O unit sizes: (\d+)/"),
    "blocks": re.compile(r"good PEBs: (\d+), bad PEBs: (\d+)"),
}


def chip_of_words(text: str, where: str) -> dict[str, Mapping[str, Any]] | None:
    """The tables of the chip, without those that a board does not say; None if there is none.

    `geometry` may lack `oob_bytes`, which UBI does not print, and has `least_blocks` instead of
    `blocks` where only a partition is described.
    """
    source = f"what the board says of itself, {where}"
    geometry = _of_log(text) or _of_utils(text) or _of_ubi(text)
    if geometry is None:
        return None
    chip: dict[str, Any] = {"source": source}
    spi, model, identity = _SPI.search(text), _RAW_MODEL.search(text), _RAW_ID.search(text)
    if spi:
        chip |= {"bus": "spi", "maker": spi[1]}
    elif model or identity:
        chip |= {"bus": "parallel", "maker": model[1] if model else "unknown"}
        if model and not model[2].startswith("NAND"):
            chip["name"] = model[2]
        if identity:
            chip["id"] = [int(identity[1], 16), int(identity[2], 16)]
    return {"chip": chip, "geometry": {"source": source, **geometry}}


def _of_log(text: str) -> dict[str, int] | None:
    found = _SIZES.search(text)
    if found is None:
        return None
    size, block, page, oob = (int(found[at]) for at in (1, 3, 4, 5))
    return {
        "page_bytes": page, "oob_bytes": oob, "pages_per_block": block * _KIB // page,
        "blocks": size * _MIB // (block * _KIB),
    }  # fmt: skip


def _of_utils(text: str) -> dict[str, int] | None:
    found = {name: pattern.search(text) for name, pattern in _UTIL.items()}
    numbers = {name: int(one[1]) for name, one in found.items() if one}
    if not {"block", "page"} <= numbers.keys():
        return None
    return _geometry(numbers)


def _of_ubi(text: str) -> dict[str, int] | None:
    found = {name: pattern.search(text) for name, pattern in _UBI.items()}
    block, page, blocks = found["block"], found["page"], found["blocks"]
    if not (block and page):
        return None
    numbers = {"block": int(block[1]), "page": int(page[1])}
    if blocks:
        numbers["blocks"] = int(blocks[1]) + int(blocks[2])
    return _geometry(numbers)


def _geometry(numbers: Mapping[str, int]) -> dict[str, int]:
    page = numbers["page"]
    geometry = {"page_bytes": page, "pages_per_block": numbers["block"] // page}
    return geometry | {
        key: numbers[name]
        for name, key in (("blocks", "least_blocks"), ("oob", "oob_bytes"))
        if name in numbers
    }


def fitting(
    found: Mapping[str, Mapping[str, Any]], chips: Iterable[CatalogueChip]
) -> list[CatalogueChip]:
    """The chips of the catalogue that may be this one: bus, maker, geometry, and its name."""
    chip, geometry = found["chip"], found["geometry"]
    numbers = {key: value for key, value in geometry.items() if key != "source"}
    least = numbers.pop("least_blocks", 0)
    named = str(chip.get("name", "")).upper()
    fit = []
    for one in chips:
        own = one.geometry.model_dump()
        same = all(own[key] == value for key, value in numbers.items()) and own["blocks"] >= least
        bus = chip.get("bus") in (None, one.chip.bus)
        maker = str(chip.get("maker", "unknown")).lower()
        made = maker in ("unknown", one.chip.maker.lower())
        if named:
            made = named.startswith(one.name.upper())
        if same and bus and made:
            fit.append(one)
    return fit
