"""Finds a chip's parameter page in a file, binary or as a hex dump, and checks its CRC.

A chip has several copies; the first one with a right checksum is read. Both standards work the
checksum out alike. onfi.py and jedec.py say what a page's fields are.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from flashbed.base.errors import InputError

__all__ = [
    "CELLS",
    "bus_of",
    "cycles_at",
    "first_good",
    "identity_of",
    "page_bytes_of",
    "times_of",
    "whole_at",
]

CELLS: Mapping[int, Mapping[str, str]] = {1: {}, 2: {"cells": "mlc"}, 3: {"cells": "tlc"}}
"""Bits a cell -> what a chip's file says of it."""
COPIES_MAX = 64
_MODES = 6
_READ_CACHE = 1 << 1
_US = 1_000
_SEARCHED_BYTES = 1 << 14
_CRC_BYTES, _CRC_POLYNOMIAL, _CRC_START = 2, 0x8005, 0x4F4E
_DUMP_LINE = re.compile(
    r"^\s*(?:[0-9a-fA-F]{4,16}[: ]\s*)?((?:[0-9a-fA-F]{2}){1,2}(?:\s+(?:[0-9a-fA-F]{2}){1,2})*)"
)
_TEXT_BYTES = 256
_BYTES_A_LINE = 16
_TENS_MAX = 7


def page_bytes_of(data: bytes, signature: bytes) -> bytes | None:
    """The bytes of a file from the first page with a signature on; None if it has none."""
    is_dump = all(chr(one) in string.printable for one in data[:_TEXT_BYTES])
    if signature in data[:_SEARCHED_BYTES] and not is_dump:
        return data[data.index(signature) :]
    dumped = _undumped(data) if is_dump else b""
    for swapped in (dumped, _swapped(dumped)):
        if signature in swapped:
            return swapped[swapped.index(signature) :]
    return None


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


def first_good(pages: bytes, page_bytes: int, where: str) -> bytes:
    """The first copy whose last two bytes are its checksum. Raises `InputError` if none is."""
    copies = [pages[at : at + page_bytes] for at in range(0, len(pages), page_bytes)]
    whole = [page for page in copies[:COPIES_MAX] if len(page) == page_bytes]
    sums = [_crc(page[:-_CRC_BYTES]) for page in whole]
    said = [whole_at(page, page_bytes - _CRC_BYTES, _CRC_BYTES) for page in whole]
    for page, found, stated in zip(whole, sums, said, strict=True):
        if found == stated:
            return page
    first = f"{said[0]:#06x} in the first, {sums[0]:#06x}" if whole else "none"
    raise InputError(
        f"{where}: none of {len(whole)} copies of the parameter page has a right checksum"
        f" ({first} worked out); read it again"
    )


def whole_at(page: bytes, at: int, length: int) -> int:
    """A number of a page, its lowest byte first."""
    return int.from_bytes(page[at : at + length], "little")


def identity_of(
    page: bytes, source: str, *, planes: int, bad_blocks_a_die: int
) -> dict[str, Mapping[str, Any]]:
    """The tables of the name and of the geometry, whose fields both standards have in one place."""
    dies = max(1, page[100])
    maker = _text_at(page, 32, 12).capitalize() or "unknown"
    model = _text_at(page, 44, 20) or "unnamed"
    return {
        "chip": {
            "name": model, "title": f"{maker} {model}, raw NAND", "maker": maker,
            "bus": "parallel", **CELLS.get(page[102], {}), "source": source,
        },
        "geometry": {
            "source": source,
            "page_bytes": whole_at(page, 80, 4),
            "oob_bytes": whole_at(page, 84, 2),
            "pages_per_block": _linux_power_of_two(whole_at(page, 92, 4)),
            "blocks": _linux_power_of_two(whole_at(page, 96, 4)) * dies,
            "planes": planes,
            "dies": dies,
            "max_bad_blocks": bad_blocks_a_die * dies,
        },
    }  # fmt: skip


def bus_of(page: bytes, source: str, *, modes_at: int, column_change_at: int) -> dict[str, Any]:
    """The table of the asynchronous bus: its width, its fastest timing mode, what it can."""
    bus: dict[str, Any] = {
        "source": source,
        "width_bits": 16 if page[6] & 1 else 8,
        "cache_reads": bool(page[8] & _READ_CACHE),
    }
    modes = [mode for mode in range(_MODES) if whole_at(page, modes_at, 2) >> mode & 1]
    if modes:
        bus["timing_mode"] = modes[-1]
    column_change_ns = whole_at(page, column_change_at, 2)
    if column_change_ns:
        bus["column_change_ns"] = column_change_ns
    return bus


def times_of(page: bytes, source: str, **places: int) -> dict[str, Mapping[str, Any]]:
    """The tables of the largest array times, in microseconds at these places; 0 is unknown."""
    times = {f"{name}_array_ns": whole_at(page, at, 2) * _US for name, at in places.items()}
    known = {key: value for key, value in times.items() if value}
    return {"times": {"source": source}, "times.maximum": known} if known else {}


def _text_at(page: bytes, at: int, length: int) -> str:
    """A name of a page, as far as a chip's name may have its characters."""
    raw = page[at : at + length].decode("ascii", "replace").strip()
    return "".join(one if one.isalnum() or one in "._-" else "-" for one in raw).strip("-")


def cycles_at(page: bytes, at: int) -> int:
    """Erases that a block lasts: a number and the power of ten that multiplies it; 0 if unknown."""
    return int(page[at] * 10 ** page[at + 1]) if page[at + 1] <= _TENS_MAX else 0


def _linux_power_of_two(count: int) -> int:
    """The largest power of two in a count, which is what Linux uses of pages and blocks."""
    return 1 << (count.bit_length() - 1) if count else 0
