"""Postmark 1.51: a pool of small files that are created, read, appended to and deleted.

This implements the published algorithm (Katcher, TR-3022) from its description; a test compares it
with the program's own counts (tests/layers/workloads/test_postmark.py). A pool of `number` files of
random sizes is created. Each of `transactions` transactions then reads a file whole or appends to
it, and creates or deletes one. The remaining files are deleted. Postmark's generator makes all
choices: the Mersenne Twister with the seeding of 1999, so that a seed gives Postmark's files.

The pattern names the measured phase: `creation`, `transactions`, `deletion` or `all`. Earlier
phases run unmeasured, so that flash operations are counted for each phase, as FFSMark does. The
preparation of `transactions` and `deletion` includes the pool and a pause.

Left out: calls that move no byte (Postmark ends a file with one if its size is a multiple of the
block); its text, which is replaced by bytes that compress as well; standard output.

Invariants:
1. The random numbers are Postmark's, in its order, including those for its text source.
2. With buffering, requests are of 4,096 bytes, the C library's unit of reads and writes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from flashbed.base.errors import InputError
from flashbed.plan.case import NO_ADVICE, Case
from flashbed.plan.workloads.layout_files import prepared
from flashbed.program.operation_fields import PAGE_BYTES
from flashbed.program.operations import HEADER_2, text_of
from flashbed.program.postmark_script import Settings, read_script

__all__ = ["Pool", "PostmarkCounts", "operations", "settings_of"]

STDIO_BYTES = 4096
"""Size of the C library's buffer: st_blksize of files on these file systems."""
_STATE_WORDS = 624
_MASK = 2**32 - 1
_DRAWN_AT_ONCE = 1 << 20
"""Numbers that are skipped: those for 4 MiB of text."""
_TEXT_PER_128 = 115
"""Bytes of six bits in each 128, the rest of eight: zlib makes 3,425 bytes of a page of these, as
of Postmark's text, which is drawn from 95 printable characters (initialize_file_source). No other
compressor of JFFS2 makes either smaller."""


def settings_of(script: str, case: Case) -> Settings:
    """The script's settings, together with those that are axes of the case."""
    return replace(
        read_script(script),
        transactions=case.requests,
        size_high_bytes=case.file_bytes,
        read_bytes=case.request_bytes,
        seed=case.seed,
    )


def operations(case: Case, settle_ns: int, script: str = "") -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files. Raises `InputError`."""
    settings = settings_of(script, case)
    _check_sizes(settings, case)
    phases = _phases(settings, case.advice)
    dropped = ["sync", "drop_caches"]
    before = {
        "creation": dropped if settings.drop_creation else [],
        "transactions": dropped if settings.drop_transactions else [],
        "deletion": [],
    }
    names = list(before)
    first = 0 if case.pattern == "all" else names.index(case.pattern)
    last = len(names) if case.pattern == "all" else first + 1
    shared = phases["subdirectories"] + (phases["creation"] if first else [])
    body: list[Iterable[str]] = []
    for at, name in enumerate(names[:last]):
        if at or not first:
            mark = ["mark"] if at == first else []
            body += [before[name], mark, phases[name]]
    made = text_of(itertools.chain.from_iterable(body), HEADER_2)
    return prepared([shared], settle_ns, HEADER_2), made


def _check_sizes(settings: Settings, case: Case) -> None:
    """Raises `InputError` for impossible files before any is made."""
    partition_bytes = case.profile().partition_bytes
    low, high, number = settings.size_low_bytes, settings.size_high_bytes, settings.number
    why = None
    if low > high:
        why = "the smallest file is larger than file_bytes"
    elif high > partition_bytes:
        why = f"file_bytes {high:,} is larger than the partition of {partition_bytes:,} bytes"
    elif low * number > partition_bytes:
        why = (
            f"{number:,} files of {low:,} bytes and more do not fit on the partition of"
            f" {partition_bytes:,} bytes"
        )
    if why is not None:
        raise InputError(f"{case.case_id}: {why}")


@dataclass(kw_only=True)
class PostmarkCounts:
    """The counts that Postmark reports at its end."""

    created: int = 0
    deleted: int = 0
    read: int = 0
    appended: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass
class _PostmarkFile:
    name: str
    bytes: int
    content: int


@dataclass
class Pool:
    """The existing files, in a table with twice as many places as the pool begins with."""

    settings: Settings
    advice: str = NO_ADVICE
    counts: PostmarkCounts = field(default_factory=PostmarkCounts)
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._generator = _generator(self.settings.seed)
        drawn = 2 * self.settings.size_high_bytes  # for each byte of the text that files come from
        while drawn:
            at_once = min(drawn, _DRAWN_AT_ONCE)
            self._generator.getrandbits(32 * at_once)
            drawn -= at_once
        self._places: list[_PostmarkFile | None] = [None] * (2 * self.settings.number)
        self._at = 0
        flags = [name for name in ("sync", "direct") if getattr(self.settings, name)]
        self._flags = "".join(f",{flag}" for flag in flags)

    def _below(self, limit: int) -> int:
        return self._generator.getrandbits(32) % limit if limit > 0 else 0

    def create(self) -> None:
        """Creates a file of random size in the next free place."""
        settings = self.settings
        place = self._free_place()
        if place is None:
            return
        folder = f"s{self._below(settings.subdirectories)}/" if settings.subdirectories > 1 else ""
        self.counts.created += 1
        number = self.counts.created
        spread = settings.size_high_bytes - settings.size_low_bytes
        size = settings.size_low_bytes + self._below(spread)
        self._places[place] = _PostmarkFile(f"{folder}{number}", size, number)
        self.lines.append(f"open 0 {folder}{number} rw,create{self._flags}")
        self._write(0, size, number)

    def transact(self) -> bool:
        """Makes one transaction; returns whether there was a file for it."""
        settings, counts = self.settings, self.counts
        if counts.created == counts.deleted:
            return False
        if settings.bias_read != -1:
            if self._below(10) < settings.bias_read:
                self._read(self._used())
            else:
                self._append(self._used())
        if settings.bias_create != -1:
            if self._below(10) < settings.bias_create:
                self.create()
            else:
                self._delete(self._used_place())
        return True

    def delete_all(self) -> None:
        """Deletes the remaining files, in the table's order."""
        for place, file in enumerate(self._places):
            if file is not None:
                self._delete(place)

    def _free_place(self) -> int | None:
        """The next free place after the last one taken, else the first free one."""
        if self._at < len(self._places) and self._places[self._at] is None:
            self._at += 1
            return self._at - 1
        for place, file in enumerate(self._places):
            if file is None:
                self._at = place + 1
                return place
        return None

    def _used_place(self) -> int:
        if all(file is None for file in self._places):
            raise InputError("postmark: a transaction deletes the last file and wants another")
        while True:
            place = self._below(len(self._places))
            if self._places[place] is not None:
                return place

    def _used(self) -> _PostmarkFile:
        file = self._places[self._used_place()]
        assert file is not None
        return file

    def _read(self, file: _PostmarkFile) -> None:
        block = STDIO_BYTES if self.settings.buffering else self.settings.read_bytes
        self.lines.append(f"open 0 {file.name} ro{self._flags}")
        if self.advice != NO_ADVICE:
            self.lines.append(f"fadvise 0 0 0 {self.advice}")
        self.lines += [
            f"read 0 {at} {min(block, file.bytes - at)}" for at in range(0, file.bytes, block)
        ]
        self.lines.append("close 0")
        self.counts.read += 1
        self.counts.bytes_read += file.bytes

    def _append(self, file: _PostmarkFile) -> None:
        left_bytes = self.settings.size_high_bytes - file.bytes
        if left_bytes <= 0:
            return
        length = self._below(left_bytes) + 1
        self.lines.append(f"open 0 {file.name} rw,append{self._flags}")
        self._write(file.bytes, length, file.content)
        file.bytes += length
        self.counts.appended += 1

    def _write(self, start: int, length: int, content: int) -> None:
        block = STDIO_BYTES if self.settings.buffering else self.settings.write_bytes
        end = start + length
        for at in range(start, end, block):
            size = min(block, end - at)
            self.lines.append(f"write 0 {at} {size} {content} {_text(at, size)}")
        self.lines.append("close 0")
        self.counts.bytes_written += length

    def _delete(self, place: int) -> None:
        file = self._places[place]
        assert file is not None
        self.lines.append(f"unlink {file.name}")
        self._places[place] = None
        self.counts.deleted += 1


def _text(start: int, length: int) -> str:
    """FILL of a write of Postmark's text: a piece for each page of the file."""
    begins = [
        start,
        *range(start // PAGE_BYTES * PAGE_BYTES + PAGE_BYTES, start + length, PAGE_BYTES),
    ]
    sizes = [end - begin for begin, end in itertools.pairwise([*begins, start + length])]
    return ",".join(f"0+{size}t{max(1, size * _TEXT_PER_128 // 128)}" for size in sizes)


@lru_cache(maxsize=32)
def _phases(settings: Settings, advice: str) -> dict[str, list[str]]:
    """The operations of each phase."""
    pool = Pool(settings, advice)
    folders = settings.subdirectories if settings.subdirectories > 1 else 0
    phases = {"subdirectories": [f"mkdir s{number}" for number in range(folders)]}
    for _ in range(settings.number):
        pool.create()
    phases["creation"], pool.lines = pool.lines, []
    for _ in range(settings.transactions):
        if not pool.transact():
            raise InputError("postmark: out of files: more files, or fewer transactions")
    phases["transactions"], pool.lines = pool.lines, []
    pool.delete_all()
    phases["deletion"] = pool.lines + [f"rmdir s{number}" for number in range(folders)]
    return phases


def _generator(seed: int) -> random.Random:
    """MT19937 with its authors' seeding of October 1999, for 32 bits at a time.

    Each word of the state is the upper halves of two steps of x -> 69069 x + 1. Python's generator
    differs only in its seeding.
    """
    step = seed & _MASK
    words = []
    for _ in range(_STATE_WORDS):
        upper, step = step, 69069 * step + 1 & _MASK
        words.append(upper & 0xFFFF0000 | step >> 16)
        step = 69069 * step + 1 & _MASK
    generator = random.Random()
    generator.setstate((3, (*words, _STATE_WORDS), None))
    return generator
