"""Counts what a program's calls take: calls, cached pages, pages that its file system writes.

`counts` walks over the operations of a program once, without simulating time. What it counts are
the amounts that a device model prices (python/flashbed/answers/costs/README.md).

Left out, and refused by name: programs that pause, whose pages the kernel writes back meanwhile;
calls that SQLite does not make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flashbed.answers.costs.logs import SECTOR_BYTES, Below, FileSeen, Space, Tally, log_of
from flashbed.base.errors import InputError
from flashbed.program.operation_fields import PAGE_BYTES

__all__ = ["TERMS", "Counts", "counts"]

TERMS = (
    "one", "open", "miss", "close", "create", "remove", "truncate", "read", "write", "sync",
    "drop_caches", "step", "read_kib", "write_kib", "write_page", "page_found", "page_in",
    "page_in_kib", "page_in_flash", "page_added", "page_dirtied", "page_dropped", "inode_in",
    "inode_page", "pages", "blocks", "header", "node", "node_kib", "data_node", "data_kib",
    "solid_node", "solid_kib", "flush", "moved_node", "moved_kib", "moved_solid_kib",
    "moved_pages", "gone_node", "chunk_read", "commit",
)  # fmt: skip
"""The amounts, in the order of a model's coefficients."""
_QUADRUPLED, _DOUBLED = 16, 2
"""read-ahead's next window: four times below a sixteenth of the largest, twice up to half of it
(get_next_ra_size)."""


@dataclass
class _OpenedFile:
    """An open file, and its read-ahead state (struct file_ra_state)."""

    file: FileSeen
    last: int = -1
    start: int = 0
    size: int = 0
    ahead: int = 0


class _Program:
    """Follows a program's calls."""

    def __init__(self, below: Below) -> None:
        self._below = below
        self.tally = Tally(float)
        self.log = log_of(below, self.tally)
        self.files: dict[str, FileSeen] = {"": FileSeen("")}
        self._open: dict[str, _OpenedFile] = {}
        self._calls: dict[str, Callable[[list[str]], None]] = {
            "open": self._opened, "close": self._closed, "read": self._read, "write": self._write,
            "fsync": self._sync, "fdatasync": self._sync, "truncate": self._truncate,
            "unlink": self._unlink, "mkdir": self._mkdir, "compute": self._compute,
            "drop_caches": self._drop_caches,
        }  # fmt: skip

    @property
    def held_blocks(self) -> float:
        """Blocks that cannot be erased."""
        stored = sum(file.kept for file in self.files.values())
        return self.log.held_bytes(stored) / self._below.block_bytes

    def run(self, line: str) -> None:
        """Follows a call. Raises `InputError` for one that is not counted."""
        words = line.split(" ")
        call = self._calls.get(words[0])
        if call is None:
            raise InputError(f"the cost model counts no `{words[0]}`")
        call(words)

    def settle(self) -> None:
        """Everything is written back."""
        self.log.ended(list(self.files.values()))
        for file in self.files.values():
            file.dirty.clear()

    def _folder(self, path: str) -> FileSeen:
        return self.files[path.rpartition("/")[0]]

    def _mkdir(self, words: list[str]) -> None:
        self.files[words[1]] = FileSeen(words[1].rpartition("/")[2])

    def _compute(self, words: list[str]) -> None:
        self.tally["step"] += int(words[1])

    def _drop_caches(self, _: list[str]) -> None:
        self.tally["drop_caches"] += 1
        for file in self.files.values():
            file.cached.clear()
            file.in_memory = False

    def _opened(self, words: list[str]) -> None:
        _, slot, path, flags = words
        self.tally["open"] += 1
        file = self.files.get(path)
        if file is None:
            if "create" not in flags.split(","):
                self.tally["miss"] += 1
                return
            file = self.files[path] = FileSeen(path.rpartition("/")[2])
            self.tally["create"] += 1
            self.log.created(file, self._folder(path))
        elif not file.in_memory:
            file.in_memory = True
            self.tally["inode_in"] += 1
            self.tally["inode_page"] += file.pages
        if "trunc" in flags.split(",") and file.size:
            self._shorten(file, 0)
        self._open[slot] = _OpenedFile(file)

    def _closed(self, words: list[str]) -> None:
        self.tally["close"] += 1
        # A file that was not there has no slot.
        opened = self._open.pop(words[1], None)
        if opened is not None:
            self.log.closed(opened.file)

    def _unlink(self, words: list[str]) -> None:
        file = self.files.pop(words[1])
        self.tally["remove"] += 1
        self.tally["page_dropped"] += len(file.cached)
        self.log.removed(file, self._folder(words[1]))

    def _truncate(self, words: list[str]) -> None:
        file, size = self._open[words[1]].file, int(words[2])
        self.tally["truncate"] += 1
        self._shorten(file, size)

    def _shorten(self, file: FileSeen, size: int) -> None:
        if size < file.size:
            self.log.truncated(file, size)
            first = -(-size // PAGE_BYTES)
            gone = {page for page in file.cached if page >= first}
            self.tally["page_dropped"] += len(gone)
            file.cached -= gone
            file.dirty -= gone
            file.shorten(size)
        file.size_changed |= size != file.size
        file.size = size

    def _read(self, words: list[str]) -> None:
        opened, offset = self._open[words[1]], int(words[2])
        length = max(0, min(int(words[3]), opened.file.size - offset))
        self.tally["read"] += 1
        self.tally["read_kib"] += length / 1024
        if length:
            first, last = offset // PAGE_BYTES, (offset + length - 1) // PAGE_BYTES
            self._find(opened, first, last)
            opened.last = last

    def _find(self, opened: _OpenedFile, first: int, last: int) -> None:
        """Finds pages in the cache; those that are not there are read, and more ahead."""
        file, most = opened.file, self._below.window_pages
        self.tally["page_found"] += last - first + 1
        for page in range(first, last + 1):
            need = last - page + 1
            if page not in file.cached:
                if most and (page == 0 or opened.last in (page - 1, page)):
                    opened.start, opened.size = page, max(need, _first_window(need, most))
                    opened.ahead = opened.size - need or opened.size
                    self._bring(file, page, opened.size)
                else:
                    self._bring(file, page, 1)
            elif opened.size and page == opened.start + opened.size - opened.ahead:
                opened.start += opened.size
                opened.size = opened.ahead = _next_window(opened.size, most)
                self._bring(file, opened.start, opened.size)

    def _bring(self, file: FileSeen, first: int, count: int) -> None:
        for page in range(first, min(first + count, file.pages)):
            if page in file.cached:
                continue
            file.cached.add(page)
            stored = file.stored_bytes(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)
            self.tally["page_in"] += 1
            self.tally["page_in_kib"] += stored / 1024
            self.tally["page_in_flash"] += -(-stored // self._below.page_bytes)

    def _write(self, words: list[str]) -> None:
        opened, offset, length = self._open[words[1]], int(words[2]), int(words[3])
        file, end = opened.file, offset + length
        self.tally["write"] += 1
        self.tally["write_kib"] += length / 1024
        self._store(file, offset, end, self._below.kept(float(words[5])))
        for page in range(offset // PAGE_BYTES, (end - 1) // PAGE_BYTES + 1):
            begin, until = max(offset, page * PAGE_BYTES), min(end, (page + 1) * PAGE_BYTES)
            self.tally["write_page"] += 1
            if page not in file.cached:
                there = min(file.size, (page + 1) * PAGE_BYTES)
                if page * PAGE_BYTES < file.size and (begin > page * PAGE_BYTES or until < there):
                    self._find(opened, page, page)
                else:
                    self.tally["page_added"] += 1
                file.cached.add(page)
            if page not in file.dirty:
                file.dirty.add(page)
                self.tally["page_dirtied"] += 1
            self.log.wrote(file, begin, until)
        if end > file.size:
            file.size, file.size_changed = end, True

    @staticmethod
    def _store(file: FileSeen, offset: int, end: int, share: float) -> None:
        for sector in range(offset // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1):
            first, last = sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES
            new = min(end, last) - max(offset, first)
            old = file.stored.get(sector, 0.0) * (1 - new / SECTOR_BYTES)
            file.store(sector, min(float(SECTOR_BYTES), old + new * share))

    def _sync(self, words: list[str]) -> None:
        self.tally["sync"] += 1
        file = self._open[words[1]].file
        self.log.synced(file, data_only=words[0] == "fdatasync")
        file.dirty.clear()


def _first_window(need: int, most: int) -> int:
    """get_init_ra_size."""
    size = 1 << (need - 1).bit_length()
    if size <= most // 32:
        return 4 * size
    return 2 * size if size <= most // 4 else most


def _next_window(size: int, most: int) -> int:
    if size < most // _QUADRUPLED:
        return 4 * size
    return 2 * size if size <= most // _DOUBLED else most


_ASIDE = ("prepared", "sync", "pause")
"""Operations of a preparation after which everything is on flash."""


@dataclass(frozen=True)
class Counts:
    """How much of each of `TERMS` a program takes, and the space that it leaves."""

    below: Below
    amounts: Mapping[str, float]
    space: Space


def counts(below: Below, prepare: str, body: str) -> Counts:
    """What a program takes, from the mark to the `sync()` after the program.

    Raises `InputError` for an operation that is not counted.
    """
    program = _Program(below)
    for line in prepare.splitlines()[1:]:
        if line.partition(" ")[0] in _ASIDE:
            program.settle()
        else:
            program.run(line)
    program.settle()
    before, _, measured = body.rpartition("\nmark\n")
    for line in before.splitlines()[1:]:
        program.run(line)
    held, dead = program.held_blocks, program.log.dead_blocks
    program.tally.clear()
    for line in (measured or body.partition("\n")[2]).splitlines():
        program.run(line)
    program.settle()
    found = {name: float(program.tally[name]) for name in TERMS}
    found["one"] = 1.0
    found["blocks"] = found["pages"] / below.pages_per_block
    found["moved_pages"] = found["moved_kib"] * 1024 / below.page_bytes
    live = program.held_blocks
    space = Space(
        blocks=below.blocks, live=live, grown=live - held,
        dead=program.log.dead_blocks - dead,
    )  # fmt: skip
    return Counts(below, found, space)
