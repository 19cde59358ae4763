"""Reads an ONFI parameter page: 256 bytes, the fields of include/linux/mtd/onfi.h.

The extended page is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashbed.stack.imported.parameter_page import (
    CELLS,
    cycles_at,
    first_good,
    linux_power_of_two,
    text_at,
    whole_at,
)

__all__ = ["SIGNATURE", "chip_of_page"]

SIGNATURE = b"ONFI"
PAGE_BYTES = 256
_ECC_STEP_BYTES = 512
_EXTENDED_ECC = 0xFF
_MODES = 6
_READ_CACHE = 1 << 1
_US = 1_000


def chip_of_page(pages: bytes, where: str) -> dict[str, Mapping[str, Any]]:
    """The tables of the chip. Raises `InputError` if no copy has a right checksum."""
    page = first_good(pages, PAGE_BYTES, where)
    source = f"ONFI parameter page, {where}"
    dies = max(1, page[100])
    maker = text_at(page, 32, 12).capitalize() or "unknown"
    model = text_at(page, 44, 20) or "unnamed"
    tables: dict[str, Mapping[str, Any]] = {
        "chip": {
            "name": model, "title": f"{maker} {model}, raw NAND", "maker": maker,
            "bus": "parallel", **CELLS.get(page[102], {}), "source": source,
        },
        "geometry": {
            "source": source,
            "page_bytes": whole_at(page, 80, 4),
            "oob_bytes": whole_at(page, 84, 2),
            "pages_per_block": linux_power_of_two(whole_at(page, 92, 4)),
            "blocks": linux_power_of_two(whole_at(page, 96, 4)) * dies,
            "planes": 1 << page[113],
            "dies": dies,
            "max_bad_blocks": whole_at(page, 103, 2) * dies,
        },
        "parallel": {
            "source": source,
            "width_bits": 16 if page[6] & 1 else 8,
            "cache_reads": bool(page[8] & _READ_CACHE),
        },
    }  # fmt: skip
    if page[112] not in (0, _EXTENDED_ECC):
        ecc = {"source": source, "strength_bits": page[112], "step_bytes": _ECC_STEP_BYTES}
        tables["ecc"] = ecc
    modes = [mode for mode in range(_MODES) if whole_at(page, 129, 2) >> mode & 1]
    times = {
        "read": whole_at(page, 137, 2),
        "program": whole_at(page, 133, 2),
        "erase": whole_at(page, 135, 2),
    }
    known = {f"{name}_array_ns": value * _US for name, value in times.items() if value}
    if known:
        tables |= {"times": {"source": source}, "times.maximum": known}
    if modes:
        tables["parallel"] = {**tables["parallel"], "timing_mode": modes[-1]}
    if whole_at(page, 139, 2):
        tables["parallel"] = {**tables["parallel"], "column_change_ns": whole_at(page, 139, 2)}
    cycles = cycles_at(page, 105)
    if cycles:
        tables["endurance"] = {"source": source, "cycles": cycles}
    return tables
