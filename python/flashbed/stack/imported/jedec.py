"""Reads a JEDEC parameter page (JESD230): 512 bytes, the fields of include/linux/mtd/jedec.h.

Linux refuses pages of other revisions (nand_jedec.c), and so does this. What concerns buses other
than the asynchronous one is left out, and of four levels of ECC the first is read, as Linux does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashbed.base.errors import InputError
from flashbed.stack.imported.parameter_page import (
    CELLS,
    cycles_at,
    first_good,
    linux_power_of_two,
    text_at,
    whole_at,
)

__all__ = ["SIGNATURE", "chip_of_page"]

SIGNATURE = b"JESD"
PAGE_BYTES = 512
_REVISIONS = 0b110
"""Bit 1 is a revision of the maker's own, bit 2 revision 1.0."""
_MODES = 6
_READ_CACHE = 1 << 1
_STEP_EXPONENTS = range(9, 17)
"""Linux takes 2^9 bytes or more for a step of ECC; there are no larger pages than 2^16."""
_US = 1_000


def chip_of_page(pages: bytes, where: str) -> dict[str, Mapping[str, Any]]:
    """The tables of the chip. Raises `InputError` for a page that Linux refuses too."""
    page = first_good(pages, PAGE_BYTES, where)
    revision = whole_at(page, 4, 2)
    if not revision & _REVISIONS:
        raise InputError(f"{where}: unsupported JEDEC version: {revision} (bytes 4 and 5)")
    if page[102] not in CELLS:
        raise InputError(f"{where}: {page[102]} bits a cell (byte 102); 1 to 3 are known")
    return _tables(page, f"JEDEC parameter page, {where}")


def _tables(page: bytes, source: str) -> dict[str, Mapping[str, Any]]:
    dies = max(1, page[100])
    maker = text_at(page, 32, 12).capitalize() or "unknown"
    model = text_at(page, 44, 20) or "unnamed"
    tables: dict[str, Mapping[str, Any]] = {
        "chip": {
            "name": model, "title": f"{maker} {model}, raw NAND", "maker": maker,
            "bus": "parallel", **CELLS[page[102]], "source": source,
        },
        "geometry": {
            "source": source,
            "page_bytes": whole_at(page, 80, 4),
            "oob_bytes": whole_at(page, 84, 2),
            "pages_per_block": linux_power_of_two(whole_at(page, 92, 4)),
            "blocks": linux_power_of_two(whole_at(page, 96, 4)) * dies,
            "planes": 1 << page[104],
            "dies": dies,
            "max_bad_blocks": whole_at(page, 213, 2) * dies,
        },
        "parallel": {"source": source, **_bus(page)},
    }  # fmt: skip
    if page[212] in _STEP_EXPONENTS and page[211]:
        ecc = {"source": source, "strength_bits": page[211], "step_bytes": 1 << page[212]}
        tables["ecc"] = ecc
    places = {"read_array_ns": 157, "program_array_ns": 153, "erase_array_ns": 155}
    times = {key: whole_at(page, at, 2) * _US for key, at in places.items()}
    known = {key: value for key, value in times.items() if value}
    if known:
        tables |= {"times": {"source": source}, "times.maximum": known}
    cycles = cycles_at(page, 215)
    if cycles:
        tables["endurance"] = {"source": source, "cycles": cycles}
    return tables


def _bus(page: bytes) -> dict[str, Any]:
    bus: dict[str, Any] = {
        "width_bits": 16 if page[6] & 1 else 8,
        "cache_reads": bool(page[8] & _READ_CACHE),
    }
    modes = [mode for mode in range(_MODES) if whole_at(page, 144, 2) >> mode & 1]
    if modes:
        bus["timing_mode"] = modes[-1]
    column_change_ns = whole_at(page, 161, 2)
    if column_change_ns:
        bus["column_change_ns"] = column_change_ns
    return bus
