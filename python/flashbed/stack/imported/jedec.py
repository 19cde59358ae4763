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
    bus_of,
    cycles_at,
    first_good,
    identity_of,
    times_of,
    whole_at,
)

__all__ = ["SIGNATURE", "chip_of_page"]

SIGNATURE = b"JESD"
PAGE_BYTES = 512
_REVISIONS = 0b110
"""Bit 1 is a revision of the maker's own, bit 2 revision 1.0."""
_STEP_EXPONENTS = range(9, 17)
"""Linux takes 2^9 bytes or more for a step of ECC; there are no larger pages than 2^16."""


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
    tables = identity_of(
        page, source, planes=1 << page[104], bad_blocks_a_die=whole_at(page, 213, 2)
    )
    tables["parallel"] = bus_of(page, source, modes_at=144, column_change_at=161)
    if page[212] in _STEP_EXPONENTS and page[211]:
        ecc = {"source": source, "strength_bits": page[211], "step_bytes": 1 << page[212]}
        tables["ecc"] = ecc
    tables |= times_of(page, source, read=157, program=153, erase=155)
    cycles = cycles_at(page, 215)
    if cycles:
        tables["endurance"] = {"source": source, "cycles": cycles}
    return tables
