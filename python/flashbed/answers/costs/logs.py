"""What a file system writes for a call: bytes of nodes, or chunks, become pages of its log.

A log counts and keeps no data. It knows the sizes of nodes (docs/models/jffs2.md, ubifs.md,
yaffs2.md), when a buffer is written out, and which block each piece of a file ended in: a block
whose pieces are all gone can be erased. `Tally` is what it counts.

Left out: nearly full partitions, where collecting moves data that no call touched; directories of
many names; extended attributes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from flashbed.program.operation_fields import PAGE_BYTES

__all__ = [
    "PIECES_BYTES", "SECTOR_BYTES", "STORED_STEPS", "Below", "FileSeen", "Log", "Space", "Tally",
    "erased_blocks", "log_of",
]  # fmt: skip

SECTOR_BYTES = 512
STORED_STEPS = 20
"""Steps of the curve of stored bytes, 5 % each."""
_JFFS2_HEADER, _JFFS2_ENTRY = 68, 40
_UBIFS_DATA, _UBIFS_INODE, _UBIFS_ENTRY, _UBIFS_SAVED_MIN = 48, 160, 57, 64
_UBIFS_COMMIT_AT = 13 / 16
_UBIFS_JOURNAL_SHARE, _UBIFS_LOG, _UBIFS_BUDS_MIN = 0.05, 3, 3
_YAFFS2_CACHE = 10
_YAFFS2_TAGS_BYTES = 16
_YAFFS2_QUARTER, _YAFFS2_HALF, _YAFFS2_TURN_S = 4, 2, 0.104
_LOOSE = 0.03
"""How far a node's size may be off: compressed bytes are known to so much."""
PIECES_BYTES = (1024, 2048, 4096)
"""Pieces of which a curve says how often a second compressor is tried."""
_LONGER_THAN = (1536, 3072)
_TRIED_MIN = 12
"""Bytes up to which JFFS2 tries no deflate."""
Tally = defaultdict[str, float]


@dataclass(frozen=True, kw_only=True)
class Below:
    """What is below a program, as far as counting needs it.

    `blocks` are those that the file system can have, UBI's own left out. `window_pages` is
    read-ahead's window in pages of 4 KiB. `stored` says which share of a page stays if 0, 5, …
    100 % of it can be saved; `retried`, for each of `PIECES_BYTES`, how often another compressor is
    tried then, because the first one has failed.
    """

    fs: str
    page_bytes: int
    pages_per_block: int
    blocks: int
    window_pages: int
    in_band: bool = False
    stored: Sequence[float] = (1.0,) * (STORED_STEPS + 1)
    retried: Sequence[Sequence[float]] = ()

    @property
    def block_bytes(self) -> int:
        """Bytes of an erase block."""
        return self.page_bytes * self.pages_per_block

    def kept(self, saved_percent: float) -> float:
        """The share of a page's bytes that is stored."""
        at = saved_percent / 100 * STORED_STEPS
        low = min(int(at), STORED_STEPS - 1)
        return self.stored[low] + (at - low) * (self.stored[low + 1] - self.stored[low])

    def retries(self, length: int, share: float) -> float:
        """How often a second compressor is tried on a piece of which this share is stored."""
        if not self.retried:
            return 0.0
        curve = self.retried[sum(length > least for least in _LONGER_THAN)]
        return float(np.interp(share, self.stored[::-1], curve[::-1]))


@dataclass(eq=False)
class FileSeen:
    """A file or folder as its calls show it."""

    name: str
    size: int = 0
    stored: dict[int, float] = field(default_factory=dict)
    """Sector -> bytes that are stored of it."""
    kept: float = 0.0
    """The sum of these."""
    cached: set[int] = field(default_factory=set)
    dirty: set[int] = field(default_factory=set)
    size_changed: bool = False
    flash_size: int = 0
    in_memory: bool = True
    """Whether its inode is."""
    touched: bool = False
    """Whether YAFFS2's header of it is old."""

    def store(self, sector: int, size: float) -> None:
        """Stores a sector, or stores it again."""
        self.kept += size - self.stored.get(sector, 0.0)
        self.stored[sector] = size

    def shorten(self, size: int) -> None:
        """Forgets the sectors behind a new end."""
        for sector in [sector for sector in self.stored if sector * SECTOR_BYTES >= size]:
            self.kept -= self.stored.pop(sector)

    def stored_bytes(self, begin: int, end: int) -> float:
        """Bytes that are stored of a range."""
        first, last = begin // SECTOR_BYTES, (end - 1) // SECTOR_BYTES
        whole = sum(self.stored.get(sector, 0.0) for sector in range(first, last + 1))
        return whole * min(1.0, (end - begin) / SECTOR_BYTES)

    @property
    def pages(self) -> int:
        """Pages of 4 KiB."""
        return -(-self.size // PAGE_BYTES)


class _Stream:
    """A log's write-buffer of one page: nodes go in, whole pages come out.

    A buffer that is flushed counts as a page by the probability that something is left in it.
    """

    def __init__(self, page_bytes: int, tally: Tally) -> None:
        self.page_bytes, self._tally = page_bytes, tally
        self.at = 0.0
        self.since = 0.0
        """Bytes since the last flush."""
        self.waiting: set[FileSeen] = set()
        """Files of which a node is in the buffer."""

    def put(self, files: Sequence[FileSeen], size: float) -> float:
        """Appends a node of these files; returns the pages that it filled."""
        self._tally["node"] += 1
        self._tally["node_kib"] += size / 1024
        pages, self.at = divmod(self.at + size, self.page_bytes)
        self.since += size
        self._tally["pages"] += pages
        if pages:
            self.waiting = set()
        if self.at:
            self.waiting.update(files)
        return pages

    def flush(self) -> float:
        """Writes the buffer out; returns the pages that this takes."""
        loose = _LOOSE * self.since
        left, short = self.at, self.page_bytes - self.at
        pages = 1.0
        if left < loose:
            pages = 0.5 + left / loose / 2
        elif short < loose:
            pages = 1.5 - short / loose / 2
        self._tally["pages"] += pages
        self._tally["flush"] += 1
        self.at = self.since = 0.0
        self.waiting = set()
        return pages


class _Blocks:
    """Which block of a log each live piece is in."""

    def __init__(self, pages_per_block: int) -> None:
        self._pages_per_block = pages_per_block
        self.pages = 0.0
        self._where: dict[tuple[FileSeen, int], int] = {}
        self._live: Counter[int] = Counter()
        self._erased: set[int] = set()

    def put(self, file: FileSeen, piece: int, pages: float) -> None:
        """A piece is written, behind all others."""
        self.pages += pages
        self.drop(file, piece)
        block = int(self.pages // self._pages_per_block)
        self._where[file, piece] = block
        self._live[block] += 1

    def drop(self, file: FileSeen, piece: int) -> None:
        """A piece is gone."""
        block = self._where.pop((file, piece), None)
        if block is not None:
            self._live[block] -= 1

    def forget(self, file: FileSeen, first: int) -> None:
        """A file's pieces from this one on are gone."""
        for owner, piece in [key for key in self._where if key[0] is file and key[1] >= first]:
            self.drop(owner, piece)

    def erase(self) -> int:
        """Erases the full blocks without a live piece; returns how many are new."""
        full = int(self.pages // self._pages_per_block)
        dead = {block for block in range(full) if not self._live[block]} - self._erased
        self._erased |= dead
        return len(dead)


class Log:
    """A file system's part: what each change writes. By itself it writes nothing."""

    def __init__(self, below: Below, tally: Tally) -> None:
        self._below, self._tally = below, tally

    def created(self, file: FileSeen, folder: FileSeen) -> None:
        """A file has got its name."""

    def removed(self, file: FileSeen, folder: FileSeen) -> None:
        """A file has lost it."""

    def truncated(self, file: FileSeen, size: int) -> None:
        """A file becomes shorter; it still has its old size."""

    def wrote(self, file: FileSeen, begin: int, end: int) -> None:
        """Bytes within a page of 4 KiB were written."""

    def synced(self, file: FileSeen, *, data_only: bool) -> None:
        """`fsync` or `fdatasync`."""

    def closed(self, file: FileSeen) -> None:
        """A descriptor was closed."""

    def ended(self, files: Sequence[FileSeen]) -> None:
        """The `sync()` after the program."""
        for file in files:
            self.synced(file, data_only=False)

    def held_bytes(self, stored_bytes: float) -> float:
        """Bytes in blocks that are not erased yet, of what files have on flash."""
        return stored_bytes

    @property
    def dead_blocks(self) -> int:
        """Blocks that were erased because nothing in them was live."""
        return 0


class _Jffs2(Log):
    """Every write is a node at once. `fsync` fills its page with nodes of an old block."""

    fs = "jffs2"

    def __init__(self, below: Below, tally: Tally) -> None:
        super().__init__(below, tally)
        self._stream = _Stream(below.page_bytes, tally)
        self._files: set[FileSeen] = set()
        self._flushed_bytes = 0.0

    def _put(self, file: FileSeen, size: float) -> None:
        self._files.add(file)
        self._stream.put([file], size + -size % 4)

    def created(self, file: FileSeen, folder: FileSeen) -> None:
        self._put(file, _JFFS2_HEADER)
        self._put(folder, _JFFS2_ENTRY + len(file.name))

    def removed(self, file: FileSeen, folder: FileSeen) -> None:
        self._put(folder, _JFFS2_ENTRY + len(file.name))
        self._files.discard(file)
        self._tally["gone_node"] += file.pages

    def truncated(self, file: FileSeen, size: int) -> None:
        self._put(file, _JFFS2_HEADER)
        self._tally["gone_node"] += -(-(file.size - size) // PAGE_BYTES)

    def wrote(self, file: FileSeen, begin: int, end: int) -> None:
        # The end of a page writes the page whole (jffs2_write_end).
        start = begin // PAGE_BYTES * PAGE_BYTES if end % PAGE_BYTES == 0 else begin & ~3
        size = file.stored_bytes(start, end)
        self._tally["data_node"] += 1
        self._tally["data_kib"] += (end - start) / 1024
        if end - start > _TRIED_MIN:
            tried = self._below.retries(end - start, size / (end - start))
            self._tally["solid_node"] += tried
            self._tally["solid_kib"] += tried * (end - start) / 1024
        self._put(file, _JFFS2_HEADER + size)

    def synced(self, file: FileSeen, *, data_only: bool) -> None:  # noqa: ARG002
        if file not in self._stream.waiting:
            return
        short = self._stream.page_bytes - self._stream.at
        live = sum(one.size for one in self._files)
        self._flushed_bytes = sum(one.kept for one in self._files)
        largest = max(self._files, key=lambda one: one.size)
        node = _JFFS2_HEADER + largest.kept / max(1, largest.pages)
        # Only a block that was filled before has nodes to move.
        share = min(1.0, live / self._below.block_bytes)
        moved = share * -(-short // node) * node
        self._tally["moved_node"] += moved / node
        self._tally["moved_kib"] += moved / 1024
        share = largest.kept / max(1, len(largest.stored)) / SECTOR_BYTES
        self._tally["moved_solid_kib"] += moved / 1024 * self._below.retries(PAGE_BYTES, share)
        self._stream.flush()
        pages, self._stream.at = divmod(max(0.0, moved - share * short), self._stream.page_bytes)
        self._tally["pages"] += pages

    def ended(self, files: Sequence[FileSeen]) -> None:  # noqa: ARG002
        if self._stream.at:
            self._stream.flush()

    def held_bytes(self, stored_bytes: float) -> float:  # noqa: ARG002
        # A block whose last node is gone waits until the buffer was flushed.
        return self._flushed_bytes


class _Ubifs(Log):
    """`fsync` writes the dirty pages and the inode, and fills up both heads' buffers."""

    fs = "ubifs"

    def __init__(self, below: Below, tally: Tally) -> None:
        super().__init__(below, tally)
        self._data = _Stream(below.page_bytes, tally)
        self._base = _Stream(below.page_bytes, tally)
        self._data_blocks = _Blocks(below.pages_per_block)
        self._base_blocks = _Blocks(below.pages_per_block)
        buds = max(_UBIFS_BUDS_MIN, _UBIFS_JOURNAL_SHARE * below.blocks - _UBIFS_LOG)
        self._journal = _UBIFS_COMMIT_AT * buds
        self._committed = 0.0
        self._erased = 0

    def _put_base(self, files: Sequence[FileSeen], size: int) -> None:
        pages = self._base.put(files, size)
        for file in files:
            self._base_blocks.put(file, 0, pages / len(files))

    def created(self, file: FileSeen, folder: FileSeen) -> None:
        entry = _UBIFS_ENTRY + len(file.name)
        self._put_base([file, folder], entry + -entry % 8 + 2 * _UBIFS_INODE)
        file.size_changed = False

    def removed(self, file: FileSeen, folder: FileSeen) -> None:
        entry = _UBIFS_ENTRY + len(file.name)
        self._put_base([folder], entry + -entry % 8 + 2 * _UBIFS_INODE)
        self._data_blocks.forget(file, 0)
        self._base_blocks.forget(file, 0)
        self._tally["gone_node"] += file.pages

    def truncated(self, file: FileSeen, size: int) -> None:
        self._put_base([file], _UBIFS_INODE + 56)
        gone = -(-size // PAGE_BYTES)
        self._data_blocks.forget(file, gone)
        self._tally["gone_node"] += file.pages - gone

    def synced(self, file: FileSeen, *, data_only: bool) -> None:
        for page in sorted(file.dirty):
            if (page + 1) * PAGE_BYTES > file.flash_size < file.size:
                self._put_base([file], _UBIFS_INODE)
                file.size_changed, file.flash_size = False, file.size
            size = file.stored_bytes(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
            length = min(PAGE_BYTES, file.size - page * PAGE_BYTES)
            size = size if size <= length - _UBIFS_SAVED_MIN else length
            self._tally["data_node"] += 1
            self._tally["data_kib"] += PAGE_BYTES / 1024
            pages = self._data.put([file], _UBIFS_DATA + size + -size % 8)
            self._data_blocks.put(file, page, pages)
        file.dirty.clear()
        if file.size_changed and not data_only:
            self._put_base([file], _UBIFS_INODE)
            file.size_changed = False
        for stream, blocks in ((self._data, self._data_blocks), (self._base, self._base_blocks)):
            if file in stream.waiting:
                blocks.pages += stream.flush()
        self._commit_if_full()

    def _commit_if_full(self) -> None:
        blocks = self._data_blocks.pages + self._base_blocks.pages
        blocks /= self._below.pages_per_block
        if blocks - self._committed >= self._journal:
            self._committed = blocks
            self._erased += self._data_blocks.erase() + self._base_blocks.erase()
            self._tally["commit"] += 1

    def ended(self, files: Sequence[FileSeen]) -> None:
        super().ended(files)
        self._erased += self._data_blocks.erase() + self._base_blocks.erase()

    @property
    def dead_blocks(self) -> int:
        return self._erased


class _Yaffs2(Log):
    """Chunks go through a cache of ten; `fsync` and `close` write a file's, then its header."""

    fs = "yaffs2"

    def __init__(self, below: Below, tally: Tally) -> None:
        super().__init__(below, tally)
        self._chunk = below.page_bytes - (_YAFFS2_TAGS_BYTES if below.in_band else 0)
        self._cache: OrderedDict[tuple[FileSeen, int], bool] = OrderedDict()

    def _headers(self, count: int) -> None:
        self._tally["pages"] += count
        self._tally["header"] += count

    def created(self, file: FileSeen, folder: FileSeen) -> None:  # noqa: ARG002
        self._headers(2)

    def removed(self, file: FileSeen, folder: FileSeen) -> None:  # noqa: ARG002
        self._headers(2)
        self._tally["gone_node"] += -(-file.size // self._chunk)
        self._leave(file, 0)

    def truncated(self, file: FileSeen, size: int) -> None:
        self._headers(2)
        self._tally["gone_node"] += -(-(file.size - size) // self._chunk)
        self._leave(file, size)

    def _leave(self, file: FileSeen, size: int) -> None:
        for key in [key for key in self._cache if key[0] is file and key[1] * self._chunk >= size]:
            del self._cache[key]

    def wrote(self, file: FileSeen, begin: int, end: int) -> None:
        file.touched = True
        for chunk in range(begin // self._chunk, (end - 1) // self._chunk + 1):
            key = (file, chunk)
            if key in self._cache:
                self._cache.move_to_end(key)
            else:
                if len(self._cache) >= _YAFFS2_CACHE:
                    oldest = next(iter(self._cache))
                    if self._cache[oldest]:
                        self._write(oldest[0])
                    del self._cache[oldest]
                whole = begin <= chunk * self._chunk and end >= (chunk + 1) * self._chunk
                if not whole and chunk * self._chunk < file.flash_size:
                    self._tally["chunk_read"] += 1
            self._cache[key] = True
            self._tally["data_node"] += 1

    def _write(self, file: FileSeen) -> None:
        for key, dirty in self._cache.items():
            if key[0] is file and dirty:
                self._cache[key] = False
                self._tally["pages"] += 1
                self._tally["node"] += 1
                file.flash_size = max(file.flash_size, (key[1] + 1) * self._chunk)

    def synced(self, file: FileSeen, *, data_only: bool) -> None:
        self._write(file)
        if file.touched and not data_only:
            self._headers(1)
            file.touched = False

    def closed(self, file: FileSeen) -> None:
        self.synced(file, data_only=False)

    @property
    def dead_blocks(self) -> int:
        return 0


_LOGS = {log.fs: log for log in (_Jffs2, _Yaffs2, _Ubifs)}


@dataclass(frozen=True, kw_only=True)
class Space:
    """Blocks of a partition: what files take at the end, how many more than when measuring starts.

    `dead` are those that were erased because nothing in them was live.
    """

    blocks: float
    live: float
    grown: float
    dead: float


def erased_blocks(fs: str, space: Space, written: float, seconds: float) -> float:
    """Blocks that a program erases, by the blocks that it writes and the time that it takes."""
    if fs == "jffs2":
        # What fsync moves empties old blocks as fast as new ones fill.
        return max(0.0, written - space.grown)
    if fs == "ubifs":
        # A commit gives blocks back that are dead; others are collected when no block is free.
        return max(space.dead, written - space.grown - (space.blocks - space.live))
    # Before each write it collects while erased blocks are less than a quarter of the free ones
    # (yaffs_check_gc), and its thread every 104 ms while they are less than half.
    free, used = space.blocks - space.live, written + space.live - space.grown
    at_writes = used - (space.blocks - free / _YAFFS2_QUARTER)
    scattered = used - (space.blocks - free / _YAFFS2_HALF)
    by_thread = scattered / max(scattered, written, 1.0) * seconds / _YAFFS2_TURN_S
    return max(0.0, at_writes, min(by_thread, scattered))


def log_of(below: Below, tally: Tally) -> Log:
    """The log of a file system. Raises `KeyError` for one that is not counted."""
    return _LOGS[below.fs](below, tally)
