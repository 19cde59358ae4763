"""Imports blkparse's text of a block device's requests as a recording of one file.

A line is DEVICE CPU SEQUENCE TIME PID ACTION RWBS SECTOR + SECTORS [PROCESS]. A request counts when
it is queued (`Q`). Left out: everything above the block layer, which is most of what a program
does: names, files, cached reads, who waited for what.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flashbed.imports.lines import ImportedError, lines_of, refuse
from flashbed.paths import shown
from flashbed.recording.about import About
from flashbed.recording.calls import EXISTED, Call
from flashbed.recording.file import RecordingWriter

__all__ = ["import_blktrace"]

_LINE = re.compile(
    rb"\s*(\d+,\d+)\s+\d+\s+\d+\s+(\d{1,9})\.(\d{9})\s+\d+\s+([A-Z]+)\s+([A-Z]+)(?:\s+(.*))?\Z"
)
_SECTORS = re.compile(rb"(\d{1,18}) \+ (\d{1,9})(?:\s.*)?\Z")
_SECTOR_BYTES = 512
_NAME = b"device"
LACKS = (
    "files and their names: all requests are at offsets of one file, from the lowest sector on",
    "what the page cache answered, and when programs made their calls: the requests are a file"
    " system's",
    "what was written: it counts as incompressible",
)


@dataclass(frozen=True)
class _Request:
    line: int
    time_ns: int
    kind: bytes
    sector: int
    sectors: int


def _requests(path: Path) -> Iterator[_Request]:
    """The queued requests of the first device. An empty line and the summary end them."""
    device = None
    for line, text in lines_of(path):
        if text.startswith((b"CPU", b"Total (")):
            return
        if not text.strip():
            continue
        found = _LINE.match(text)
        if found is None:
            raise refuse(path, line, "not a line of blkparse")
        if found[4] != b"Q":
            continue
        device = device or found[1]
        if found[1] != device:
            raise refuse(
                path, line, f"a second device, {found[1].decode()}; give blkparse one only"
            )
        time_ns = int(found[2]) * 10**9 + int(found[3])
        sectors = _SECTORS.match(found[6] or b"")
        if sectors is None and b"F" not in found[5]:
            raise refuse(path, line, "a request without SECTOR + SECTORS")
        at, count = (int(sectors[1]), int(sectors[2])) if sectors else (0, 0)
        if count * _SECTOR_BYTES > 1 << 30:
            raise refuse(path, line, "a request of more than 1 GiB")
        yield _Request(line, time_ns, found[5], at, count)


def import_blktrace(path: Path, out: Path) -> About:
    """Makes a recording. Raises `ImportedError` with FILE:LINE."""
    ends = [(request.sector, request.sector + request.sectors)
            for request in _requests(path) if request.sectors]  # fmt: skip
    if not ends:
        raise ImportedError(f"{shown(path)}: no queued request (Q)")
    first, last = min(start for start, _ in ends), max(end for _, end in ends)
    about = About(source="blktrace", think="gaps", lacks=LACKS)
    with RecordingWriter(out, about) as writer:
        size = (last - first) * _SECTOR_BYTES
        there: dict[str, int | bytes] = {"path": _NAME, "length": size, "mode": 0o100644}
        writer.add(Call(0, 0, 0, None, EXISTED, there))
        writer.add(Call(0, 0, 0, None, "openat", {"path": _NAME, "flags": 2}, 3))
        now_ns = 0
        for request in _requests(path):
            now_ns = max(now_ns, request.time_ns)
            for call in _calls(request, first, now_ns):
                writer.add(call)
    return about


def _calls(request: _Request, first: int, now_ns: int) -> Iterator[Call]:
    at, length = (request.sector - first) * _SECTOR_BYTES, request.sectors * _SECTOR_BYTES
    moved: dict[str, int | bytes] = {"descriptor": 3, "offset": at, "length": length}
    flush = Call(0, now_ns, 0, None, "fdatasync", {"descriptor": 3})
    if request.kind.startswith(b"F"):
        yield flush
    if not length:
        return
    if b"D" in request.kind:
        yield Call(0, now_ns, 0, None, "fallocate", {**moved, "mode": 3})
    elif b"W" in request.kind:
        yield Call(0, now_ns, 0, None, "pwrite64", moved, length)
        if request.kind[1:].find(b"F") >= 0:  # FUA
            yield flush
    elif b"R" in request.kind:
        yield Call(0, now_ns, 0, None, "pread64", moved, length)
