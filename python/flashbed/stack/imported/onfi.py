"""Reads an ONFI parameter page: 256 bytes, the fields of include/linux/mtd/onfi.h.

The extended page is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flashbed.stack.imported.parameter_page import (
    bus_of,
    cycles_at,
    first_good,
    identity_of,
    times_of,
    whole_at,
)

__all__ = ["SIGNATURE", "chip_of_page"]

SIGNATURE = b"ONFI"
PAGE_BYTES = 256
_ECC_STEP_BYTES = 512
_EXTENDED_ECC = 0xFF


def chip_of_page(pages: bytes, where: str) -> dict[str, Mapping[str, Any]]:
    """The tables of the chip. Raises `InputError` if no copy has a right checksum."""
    page = first_good(pages, PAGE_BYTES, where)
    source = f"ONFI parameter page, {where}"
    tables = identity_of(
        page, source, planes=1 << page[113], bad_blocks_a_die=whole_at(page, 103, 2)
    )
    tables["parallel"] = bus_of(page, source, modes_at=129, column_change_at=139)
    if page[112] not in (0, _EXTENDED_ECC):
        ecc = {"source": source, "strength_bits": page[112], "step_bytes": _ECC_STEP_BYTES}
        tables["ecc"] = ecc
    tables |= times_of(page, source, read=137, program=133, erase=135)
    cycles = cycles_at(page, 105)
    if cycles:
        tables["endurance"] = {"source": source, "cycles": cycles}
    return tables
