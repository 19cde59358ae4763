"""Reads an ONFI parameter page, binary or as a hex dump, and checks its CRC.

A chip has several copies of 256 bytes; the first one with a right checksum is read. The fields are
those of include/linux/mtd/onfi.h. JEDEC's page and the extended page are left out.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from flashbed.base.errors import InputError

__all__ = ["chip_of_page", "is_page", "page_bytes_of"]

PAGE_BYTES = 256
COPIES_MAX = 64
_SIGNATURE = b"ONFI"
_CRC_AT, _CRC_POLYNOMIAL, _CRC_START = 254, 0x8005, 0x4F4E
_DUMP_LINE = re.compile(
    r"^\s*(?:[0-9a-fA-F]{4,16}[: ]\s*)?((?:[0-9a-fA-F]{2}){1,2}(?:\s+(?:[0-9a-fA-F]{2}){1,2})*)"
)
_ECC_STEP_BYTES = 512
_EXTENDED_ECC = 0xFF
_MODES = 6
_READ_CACHE = 1 << 1
_CELLS: Mapping[int, Mapping[str, str]] = {2: {"cells": "mlc"}, 3: {"cells": "tlc"}}
_US = 1_000
_BYTES_A_LINE = 16


def page_bytes_of(data: bytes) -> bytes | None:
    """The bytes of a file with parameter pages; None if it has none."""
    if _SIGNATURE in data[: PAGE_BYTES * COPIES_MAX] and not _is_dump(data):
        return data[data.index(_SIGNATURE) :]
    dumped = _undumped(data) if _is_dump(data) else b""
    for swapped in (dumped, _swapped(dumped)):
        if _SIGNATURE in swapped:
            return swapped[swapped.index(_SIGNATURE) :]
    return None


def is_page(data: bytes) -> bool:
    """Whether a file has ONFI's signature."""
    return page_bytes_of(data) is not None


def _is_dump(data: bytes) -> bool:
    return all(chr(one) in string.printable for one in data[:PAGE_BYTES])


def _undumped(data: bytes) -> bytes:
    found = bytearray()
    for line in data.decode("ascii", "replace").splitlines():
        row = _DUMP_LINE.match(line.partition("|")[0])
        if row:
            digits = "".join(row[1].split())
            found += bytes.fromhex(digits)[:_BYTES_A_LINE]
    return bytes(found)


def _swapped(data: bytes) -> bytes:
    """Words of 16 bits with their bytes the other way round, as `hexdump` prints them."""
    even = data[: len(data) // 2 * 2]
    return bytes(one for at in range(0, len(even), 2) for one in (even[at + 1], even[at]))


def _crc(data: bytes) -> int:
    crc = _CRC_START
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ _CRC_POLYNOMIAL if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def chip_of_page(pages: bytes, where: str) -> dict[str, Mapping[str, Any]]:
    """The tables of the chip. Raises `InputError` if no copy has a right checksum."""
    copies = [pages[at : at + PAGE_BYTES] for at in range(0, len(pages), PAGE_BYTES)]
    whole = [page for page in copies[:COPIES_MAX] if len(page) == PAGE_BYTES]
    good = [page for page in whole if _crc(page[:_CRC_AT]) == _whole(page, _CRC_AT, 2)]
    if not good:
        first = (
            f"{_whole(whole[0], _CRC_AT, 2):#06x} in the first, {_crc(whole[0][:_CRC_AT]):#06x}"
            if whole
            else "none"
        )
        raise InputError(
            f"{where}: none of {len(whole)} copies of the parameter page has a right checksum"
            f" ({first} worked out); read it again"
        )
    return _tables(good[0], where)


def _whole(page: bytes, at: int, length: int) -> int:
    return int.from_bytes(page[at : at + length], "little")


def _text(page: bytes, at: int, length: int) -> str:
    raw = page[at : at + length].decode("ascii", "replace").strip()
    return "".join(one if one.isalnum() or one in "._-" else "-" for one in raw).strip("-")


def _tables(page: bytes, where: str) -> dict[str, Mapping[str, Any]]:
    source = f"ONFI parameter page, {where}"
    dies = max(1, page[100])
    maker = _text(page, 32, 12).capitalize() or "unknown"
    model = _text(page, 44, 20) or "unnamed"
    tables: dict[str, Mapping[str, Any]] = {
        "chip": {
            "name": model, "title": f"{maker} {model}, raw NAND", "maker": maker,
            "bus": "parallel", **_CELLS.get(page[102], {}), "source": source,
        },
        "geometry": {
            "source": source,
            "page_bytes": _whole(page, 80, 4),
            "oob_bytes": _whole(page, 84, 2),
            "pages_per_block": _whole(page, 92, 4),
            "blocks": _whole(page, 96, 4) * dies,
            "planes": 1 << page[113],
            "dies": dies,
            "max_bad_blocks": _whole(page, 103, 2) * dies,
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
    modes = [mode for mode in range(_MODES) if _whole(page, 129, 2) >> mode & 1]
    times = {
        "read": _whole(page, 137, 2),
        "program": _whole(page, 133, 2),
        "erase": _whole(page, 135, 2),
    }
    known = {f"{name}_array_ns": value * _US for name, value in times.items() if value}
    if known:
        tables |= {"times": {"source": source}, "times.maximum": known}
    if modes:
        tables["parallel"] = {**tables["parallel"], "timing_mode": modes[-1]}
    if _whole(page, 139, 2):
        tables["parallel"] = {**tables["parallel"], "column_change_ns": _whole(page, 139, 2)}
    cycles = page[105] * 10 ** page[106] if page[106] < 8 else 0
    if cycles:
        tables["endurance"] = {"source": source, "cycles": cycles}
    return tables
