"""Counts what requests take, by arithmetic alone: the quantities that a cost model prices.

The pages of a table follow from SQLite's file format (sqlite.org/fileformat2.html, section 1.6): a
leaf's cell is two lengths, a header and the text; what does not fit is on overflow pages. How much
of a file is read in follows from the kernel's windows (mm/readahead.c, ondemand_readahead, Linux
6.1), for a file read in order.

Left out: indices, texts of different sizes, records out of the order of their ids, pages that are
read again after SQLite's cache dropped them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PATTERNS", "TERMS", "SqlLoad", "pages_of", "read_in_kib", "terms"]

TERMS = {
    "transaction": "opening the database, BEGIN, END",
    "request": "a statement; of a join a record it gives",
    "record_kib": "a KiB of records",
    "page": "an SQLite page that is touched",
    "page_kib": "a KiB of these pages",
    "read_kib": "a KiB of the database that the kernel reads in, ahead included",
    "spilled_page": "a page that SQLite's cache cannot keep to the END",
    "spilling": "whether there is such a page: the journal is synced once more",
    "table_kib": "a KiB of the tables that were there, which JFFS2 reads in when it is opened",
}
"""Name -> what one unit is. Of terms that cannot be separated the first is kept."""
PATTERNS = ("insert", "select", "select-random", "update", "join")

CACHE_PAGE_KIB = 4
SPILL_SHARE = 0.9
"""Share of its cache from which on SQLite writes dirty pages out (docs/models/sqlite.md)."""
_LEAF_HEADER = 8
_INTERIOR_HEADER = 12
_POINTER = 2
_ROOTS = 2
"""Page 1, which is the schema, and the root of the other table."""


@dataclass(frozen=True, kw_only=True)
class SqlLoad:
    """Requests of a pattern in one transaction, on a database with these settings."""

    pattern: str
    requests: int
    request_bytes: int
    page_bytes: int
    cache_pages: int
    records: int
    read_ahead_kib: int


def terms(load: SqlLoad) -> dict[str, float]:
    """The amount of each of `TERMS`."""
    count, kib_a_page = load.requests, load.page_bytes / 1024
    tables = {"insert": 0, "join": 2}.get(load.pattern, 1)
    whole = pages_of(load.records, load.request_bytes, load.page_bytes)
    touched = float(pages_of(count, load.request_bytes, load.page_bytes))
    if load.pattern == "select-random":
        touched = _drawn(count, whole)
    read_kib = 0.0
    if load.pattern == "select-random":
        there = whole * kib_a_page
        read_kib = (
            there
            * _drawn(count, there / max(CACHE_PAGE_KIB, kib_a_page))
            / (there / max(CACHE_PAGE_KIB, kib_a_page))
        )
    elif tables:
        read_kib = tables * read_in_kib(
            (touched + _ROOTS) * kib_a_page, (whole + _ROOTS) * kib_a_page, load.read_ahead_kib
        )
    touched *= max(tables, 1)
    writes = load.pattern in ("insert", "update")
    spilled = max(0.0, touched - SPILL_SHARE * load.cache_pages) if writes else 0.0
    return {
        "transaction": 1.0,
        "request": float(count),
        "record_kib": count * load.request_bytes / 1024,
        "page": touched,
        "page_kib": touched * kib_a_page,
        "read_kib": read_kib,
        "spilled_page": spilled,
        "spilling": float(spilled > 0),
        "table_kib": tables * whole * kib_a_page,
    }


def pages_of(records: int, record_bytes: int, page_bytes: int) -> int:
    """Pages of a table of id and text, filled in the order of ids: all levels, and overflow."""
    header = 2 + _varint_bytes(2 * record_bytes + 13)
    payload = header + record_bytes
    local, overflow = _local(payload, page_bytes)
    cell = _POINTER + _varint_bytes(payload) + local + (4 if overflow else 0)
    level, first = 0, 1
    while first <= records:  # a leaf holds as many as the lengths of their ids allow
        id_bytes = _varint_bytes(first)
        last = min(records, (1 << 7 * id_bytes) - 1)
        level += -(-(last + 1 - first) // max(1, (page_bytes - _LEAF_HEADER) // (cell + id_bytes)))
        first = last + 1
    pages = level + records * overflow
    fan_out = (page_bytes - _INTERIOR_HEADER) // (_POINTER + 4 + _varint_bytes(records))
    while level > 1:
        level = -(-level // fan_out)
        pages += level
    return pages


def _local(payload: int, page_bytes: int) -> tuple[int, int]:
    """Bytes of a record that stay on the leaf, and its overflow pages."""
    if payload <= page_bytes - 35:
        return payload, 0
    least = (page_bytes - 12) * 32 // 255 - 23
    rest = least + (payload - least) % (page_bytes - 4)
    local = rest if rest <= page_bytes - 35 else least
    return local, -(-(payload - local) // (page_bytes - 4))


def _varint_bytes(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def _drawn(draws: int, of: float) -> float:
    """The expected number of distinct items in this many draws."""
    return of * (1 - (1 - 1 / of) ** draws) if of > 1 else of


def read_in_kib(until_kib: float, file_kib: float, window_kib: int) -> float:
    """KiB in the page cache after a file was read in order up to `until_kib`.

    The first window is a few pages; each next one is larger, up to `window_kib`. Reading within a
    window makes the kernel read the next one.
    """
    until = -(-until_kib // CACHE_PAGE_KIB)
    largest = window_kib // CACHE_PAGE_KIB
    read = until
    if largest:
        begin, size = 0, _first_window(largest)
        while begin + size <= until - 1:
            begin, size = begin + size, _next_window(size, largest)
        read = begin + size + _next_window(size, largest)
    return min(read * CACHE_PAGE_KIB, file_kib)


def _first_window(largest: int) -> int:
    if largest >= 32:
        return 4
    return 2 if largest >= 4 else largest


def _next_window(size: int, largest: int) -> int:
    if size < largest // 16:
        return 4 * size
    return 2 * size if size <= largest // 2 else largest
