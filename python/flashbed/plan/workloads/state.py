"""Operations that bring a file system into a state (docs/models/aged-partitions.md).

A log is filled as its own writers fill it, in segments of two erase blocks. Each segment is a new
file and some rewritten pages of the one before. Obsolete data is then spread evenly over all
blocks, and no block is worth collecting. The workload's own files follow; a share of their bytes is
written out of order in small pieces. Everything follows from state, file system and geometry;
nothing depends on the file system's answers.

Left out: deleted files (overwriting leaves the same obsolete nodes), and fragments of the filler.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter

from flashbed.base.errors import InputError
from flashbed.plan.workloads.space import PAGE_BYTES, usable_bytes
from flashbed.program.operation_fields import pieces
from flashbed.program.operations import Operation, parse, text_of
from flashbed.stack.conditions import State
from flashbed.stack.file_systems import COMPRESSING, FILE_SYSTEMS, ON_FTL
from flashbed.stack.layouts import Layout
from flashbed.stack.profiles import Board

__all__ = ["in_state"]

FOLDER = "filler"
SEGMENT_BLOCKS = 2
REQUEST_BYTES = 65_536
PIECE_BYTES = 1024
"""Bytes of a piece on a file system without write-back: it writes at the write() call."""
STRETCH_PAGES = 16
"""Pages that are shuffled among each other."""
PAGES_A_SYNC = 4
"""Bytes of a stretch whose pages stay in the page cache until they are synced, sorted."""
SECTOR_BYTES = 512
_SETTLE_NS = 10_000_000_000
_SEED = 1_000_000
"""Seed of the filler's first file, far from those of workloads."""


def in_state(
    state: State,
    fs: str,
    *,
    board: Board,
    bad_blocks: tuple[int, ...],
    prepare: str,
    layout: Layout | None = None,
) -> str:
    """The preparation of a workload on a file system in this state. Raises `InputError`."""
    if not (state.valid or state.obsolete or state.fragmented):
        return prepare
    if fs in ON_FTL:
        raise InputError(f"state {state}: is made on raw flash, and fs {fs} is on a disk")
    block_bytes = board.chip.block_bytes
    try:
        space_bytes = usable_bytes(fs, board, bad_blocks, layout)
        return _in_state(
            state, fs, space_bytes=space_bytes, block_bytes=block_bytes, prepare=prepare
        )
    except InputError as why:
        raise InputError(f"state {state}: {why}") from None


@lru_cache(maxsize=64)
def _in_state(state: State, fs: str, *, space_bytes: int, block_bytes: int, prepare: str) -> str:
    operations = parse(prepare)
    lines: list[str] = []
    if state.valid or state.obsolete:
        lines += _filled(
            state,
            fs,
            space_bytes=space_bytes,
            block_bytes=block_bytes,
            own_bytes=_bytes_of_files(operations, fs),
        )
    lines += _fragmented(state, fs, operations) if state.fragmented else map(str, operations)
    return text_of(lines, prepare.split("\n", 1)[0])


def _saved_percent(operation: Operation) -> int:
    """What a compressor saves of a write: of recorded pieces the zeroes they end with."""
    fill = str(operation.fields[4])
    if fill.isdigit():
        return int(fill)
    if fill == "data":
        return 0
    kept = sum((one.common_bytes + one.own_bytes) * one.times for one in pieces(fill))
    return max(0, 100 - 100 * kept // int(operation.fields[2]))


def _bytes_of_files(operations: Sequence[Operation], fs: str) -> int:
    """Compressed bytes of the files that a preparation leaves behind.

    The compressibility of every sector of a file is tracked: that is what a compressor saves.
    """
    slots: dict[object, str] = {}
    files: dict[str, dict[int, int]] = {}  # path -> sector -> compressibility
    for operation in operations:
        fields = operation.fields
        match operation.name:
            case "open":
                path = slots[fields[0]] = str(fields[1])
                if path not in files or "trunc" in str(fields[2]).split(","):
                    files[path] = {}
            case "write":
                first, end = int(fields[1]), int(fields[1]) + int(fields[2])
                sectors = range(first // SECTOR_BYTES, -(-end // SECTOR_BYTES))
                saved = 0 if fs not in COMPRESSING else _saved_percent(operation)
                files[slots[fields[0]]] |= dict.fromkeys(sectors, saved)
            case "truncate":
                path, end = slots[fields[0]], -(-int(fields[1]) // SECTOR_BYTES)
                files[path] = {at: saved for at, saved in files[path].items() if at < end}
            case "unlink":
                files.pop(str(fields[0]), None)
            case "rename":
                files[str(fields[1])] = files.pop(str(fields[0]), {})
            case _:
                pass
    kept = sum(100 - saved for sectors in files.values() for saved in sectors.values())
    return SECTOR_BYTES * kept // 100


@dataclass(frozen=True)
class _Fill:
    """How the filler is written, in pages: `live` stay, `obsolete` more are overwritten."""

    live: int
    obsolete: int
    segments: tuple[int, ...]
    """Pages written in each segment."""

    def again(self, segment: int) -> int:
        """Pages of a segment that the next one rewrites."""
        last = len(self.segments) - 1
        if segment == last:
            return 0
        return self.obsolete * (segment + 1) // last - self.obsolete * segment // last


def _fill(state: State, fs: str, *, space_bytes: int, block_bytes: int, own_bytes: int) -> _Fill:
    row = FILE_SYSTEMS[fs]
    node = row.df_page_bytes
    own = -(-own_bytes // PAGE_BYTES) * node
    if state.valid + state.obsolete > 1 + 1e-9:
        raise InputError("valid and obsolete are more than all the space there is")
    if own > state.valid * space_bytes:
        raise InputError(
            f"valid: the workload's own files are {own / space_bytes:.3f} of the usable"
            " space already"
        )
    if (
        state.obsolete
        and fs == "jffs2"
        and (1 - state.valid - state.obsolete) * space_bytes < 2 * block_bytes
    ):
        raise InputError("obsolete: JFFS2 collects if fewer than two blocks of its space are free")
    live = round((state.valid * space_bytes - own) / node)
    obsolete = round(state.obsolete * space_bytes / node)
    pages = live + obsolete
    segment = max(1, min(SEGMENT_BLOCKS * block_bytes // node, pages // 8))
    segments = [segment] * (pages // segment) if pages else []
    if pages % segment:
        segments.append(pages % segment)
    fill = _Fill(live, obsolete, tuple(segments))
    most = max((fill.again(number) for number in range(len(segments))), default=0)
    limit = row.rewritten_pct_max / 100
    if obsolete and (len(segments) < 2 or most > limit * segment):
        possible = limit / (1 - limit)
        why = ", where JFFS2 does not collect" if fs == "jffs2" else ""
        raise InputError(
            f"obsolete: at most {possible:.2f} of the filler's live data{why}"
            f" ({live * node / space_bytes:.3f} here)"
        )
    return fill


def _filled(
    state: State, fs: str, *, space_bytes: int, block_bytes: int, own_bytes: int
) -> Iterator[str]:
    """Writes segment by segment: a new file, with rewritten pages of the last one between."""
    fill = _fill(state, fs, space_bytes=space_bytes, block_bytes=block_bytes, own_bytes=own_bytes)
    yield f"mkdir {FOLDER}"
    before: list[int] = []
    for number, pages in enumerate(fill.segments):
        new = pages - len(before)
        yield f"open 0 {_file(number)} wo,create"
        if before:
            yield f"open 1 {_file(number - 1)} wo"
        yield from _interleaved(new, before, number)
        for slot in (1, 0) if before else (0,):
            if _keeps_pages(fs):
                yield f"fsync {slot}"
            yield f"close {slot}"
        again = fill.again(number)
        before = [at * new // again for at in range(again)]
    yield "sync"


def _interleaved(new: int, again: Sequence[int], number: int) -> Iterator[str]:
    """`new` pages of file `number` in order, with pages of the file before spread among them."""
    bounds = [at * new // len(again) for at in range(len(again))] if again else []
    for (start, end), page in zip(pairwise([*bounds, new]), again, strict=True):
        yield _write(1, page * PAGE_BYTES, PAGE_BYTES, _SEED + number - 1)
        yield from _written(start, end, number)
    if not again:
        yield from _written(0, new, number)


def _written(start: int, end: int, number: int) -> Iterator[str]:
    step = REQUEST_BYTES // PAGE_BYTES
    for page in range(start, end, step):
        length = (min(end, page + step) - page) * PAGE_BYTES
        yield _write(0, page * PAGE_BYTES, length, _SEED + number)


def _write(slot: int, offset: int, length: int, seed: int) -> str:
    return f"write {slot} {offset} {length} {seed} 0"


def _file(number: int) -> str:
    return f"{FOLDER}/f{number}"


def _keeps_pages(fs: str) -> bool:
    """Whether written pages stay in the page cache, and are sorted there, until write-back."""
    return FILE_SYSTEMS[fs].writes_back


@dataclass(frozen=True)
class _Written:
    """Consecutive writes to one stretch of bytes: `parts` are offset and content of each."""

    slot: int
    parts: tuple[tuple[int, tuple[int, int]], ...]
    end: int

    @property
    def offset(self) -> int:
        return self.parts[0][0]

    def cut(self, start: int, end: int) -> Iterator[str]:
        """The bytes from `start` to `end`, a write for each content."""
        first = bisect_right(self.parts, start, key=itemgetter(0)) - 1
        for part in range(first, len(self.parts)):
            at, content = self.parts[part]
            if at >= end:
                break
            after = self.parts[part + 1][0] if part + 1 < len(self.parts) else self.end
            start, stop = max(at, start), min(after, end)
            yield " ".join(map(str, ("write", self.slot, start, stop - start, *content)))

    def in_order(self, start: int, end: int) -> Iterator[str]:
        for at in range(start, end, PAGE_BYTES):
            yield from self.cut(at, min(at + PAGE_BYTES, end))


def _fragmented(state: State, fs: str, operations: Sequence[Operation]) -> list[str]:
    """The same files, with a share of their stretches in pieces out of order."""
    lines: list[str] = []
    draw = random.Random(state.seed).random
    stretches = 0
    for item in _joined(operations):
        if isinstance(item, Operation):
            lines.append(str(item))
            continue
        stretch = STRETCH_PAGES * PAGE_BYTES
        for start in range(item.offset, item.end, stretch):
            end = min(start + stretch, item.end)
            stretches += 1
            share = state.fragmented
            if int(stretches * share + 1e-9) == int((stretches - 1) * share + 1e-9):
                lines += item.in_order(start, end)
            elif _keeps_pages(fs):
                lines += _shuffled_pages(item, start, end, draw)
            else:
                lines += [*item.in_order(start, end), *_again_in_pieces(item, start, end, draw)]
    if not stretches:
        raise InputError("fragmented: the workload prepares no file")
    return lines


def _shuffle(places: list[int], draw: Callable[[], float]) -> list[int]:
    for at in range(len(places) - 1, 0, -1):
        other = int(draw() * (at + 1))
        places[at], places[other] = places[other], places[at]
    return places


def _shuffled_pages(
    item: _Written, start: int, end: int, draw: Callable[[], float]
) -> Iterator[str]:
    """Shuffles whole pages, synced in groups: the page cache writes back in order."""
    places = _shuffle(list(range(start, end, PAGE_BYTES)), draw)
    for number, place in enumerate(places, start=1):
        yield from item.cut(place, min(place + PAGE_BYTES, end))
        if number % PAGES_A_SYNC == 0:
            yield f"fsync {item.slot}"


def _again_in_pieces(
    item: _Written, start: int, end: int, draw: Callable[[], float]
) -> Iterator[str]:
    """Rewrites every piece but the last of its page: that would make JFFS2 write the whole page."""
    pieces = range(start, end - PIECE_BYTES, PIECE_BYTES)
    places = [place for place in pieces if (place + PIECE_BYTES) % PAGE_BYTES]
    for place in _shuffle(places, draw):
        yield from item.cut(place, place + PIECE_BYTES)


def _joined(operations: Sequence[Operation]) -> Iterator[Operation | _Written]:
    """The operations, with consecutive writes of one stretch joined."""
    slot, end = -1, 0
    parts: list[tuple[int, tuple[int, int]]] = []
    for operation in operations:
        if operation.name == "write" and not str(operation.fields[4]).isdigit():
            raise InputError("fragmented: files of a recorded program are written in order only")
        numbers = tuple(map(int, operation.fields)) if operation.name == "write" else ()
        if parts and numbers[:2] != (slot, end):
            yield _Written(slot, tuple(parts), end)
            parts = []
        if not numbers:
            yield operation
            continue
        slot, end, content = numbers[0], numbers[1] + numbers[2], (numbers[3], numbers[4])
        if not parts or parts[-1][1] != content:
            parts.append((numbers[1], content))
    if parts:
        yield _Written(slot, tuple(parts), end)
