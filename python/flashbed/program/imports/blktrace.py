"""Imports requests of a block device as a recording of one file.

They come from blktrace's own files (blktrace_binary.py) or from the text of blkparse, in which a
line is DEVICE CPU SEQUENCE TIME PID ACTION RWBS SECTOR + SECTORS [PROCESS]. A request counts when
it is queued (`Q`); in a trace without, when it was remapped, issued or completed. Left out:
everything above the block layer, which is most of what a program does: names, files, cached reads,
who waited for what.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flashbed.base.paths import shown
from flashbed.program.imports.blktrace_binary import Event, binary_files, events_of
from flashbed.program.imports.lines import ImportedError, lines_of
from flashbed.program.imports.looks import refuse_foreign
from flashbed.program.imports.writing import recorded
from flashbed.program.recording.about import About
from flashbed.program.recording.calls import EXISTED, Call

__all__ = ["import_blktrace"]

_LINE = re.compile(
    rb"\s*(\d{1,9},\d{1,9})\s+\d{1,9}\s+\d{1,12}\s+(\d{1,9})\.(\d{1,9})\s+\d{1,12}\s+([A-Z]{1,2})"
    rb"\s+([A-Z]{1,8})(?:\s+(.*))?\Z"
)
_SECTORS = re.compile(rb"(\d{1,18}) \+ (\d{1,9})(?:\s.*)?\Z")
_REMAPPED = re.compile(rb"<- \((\d{1,9},\d{1,9})\) \d")
_SECTOR_BYTES = 512
_CHUNK_SECTORS = 2048
"""Parts of a device that no request touches are left out in pieces of 1 MiB."""
_SECTORS_MAX = 1 << 21
_SECTOR_MAX = 1 << 55
_SUMMARY = (b"CPU", b"Total (", b" Reads ", b" Read ", b" Write", b" PC ", b" IO unplugs",
            b"Throughput (", b"Events (", b"Skips: ")  # fmt: skip
_THERE_BYTES_MAX = 1 << 33
_NAME = b"device"
_WHEN = {b"Q": "", b"A": "remapped (A)", b"D": "issued (D)", b"C": "completed (C)"}
"""Actions, the best first, and what a time of each is."""
LACKS = (
    "files and their names: all requests are at offsets of one file, which has the parts of 1 MiB"
    " that requests touch, in the device's order",
    "what the page cache answered, and when programs made their calls: the requests are a file"
    " system's",
    "what was written: it counts as incompressible",
)


@dataclass
class _Requests:
    """The requests of an action on a device, a column each."""

    times_ns: array[int] = field(default_factory=lambda: array("q"))
    sectors: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))
    kinds: array[int] = field(default_factory=lambda: array("b"))

    def add(self, event: Event, kind: int) -> None:
        """Adds a request."""
        self.times_ns.append(event.time_ns)
        self.sectors.append(event.sector if event.sectors else 0)
        self.counts.append(event.sectors)
        self.kinds.append(kind)


@dataclass(kw_only=True)
class _Trace:
    path: Path
    requests: dict[tuple[bytes, bytes], _Requests] = field(default_factory=dict)
    """By device and action."""
    below: set[bytes] = field(default_factory=set)
    """Devices to which others were remapped."""
    devices: set[bytes] = field(default_factory=set)
    kinds: dict[bytes, int] = field(default_factory=dict)
    skipped: int = 0
    lines: int = 0

    def see(self, event: Event) -> None:
        """Takes an event."""
        self.devices.add(event.device)
        if event.remapped_from is not None and event.remapped_from != event.device:
            self.below.add(event.device)
        if event.action not in _WHEN or not (event.sectors or b"F" in event.kind):
            return
        if event.sectors > _SECTORS_MAX or not 0 <= event.sector <= _SECTOR_MAX:
            self.skipped += 1
            return
        kind = self.kinds.setdefault(event.kind, len(self.kinds))
        if kind < 127:
            self.requests.setdefault((event.device, event.action), _Requests()).add(event, kind)

    def chosen(self) -> tuple[bytes, bytes]:
        """The device and the action that count. Raises `ImportedError` if there is none."""
        above = self.devices - self.below or self.devices
        for action in _WHEN:
            found = [(-len(requests.counts), device) for (device, one), requests
                     in self.requests.items() if one == action and device in above]  # fmt: skip
            if found:
                return min(found)[1], action
        if not self.devices:
            refuse_foreign(self.path, "blktrace")
        raise ImportedError(f"{shown(self.path)}: no request that was queued, issued or completed")


def _text_events(trace: _Trace) -> Iterator[Event]:
    """The events of blkparse's text; other lines are counted."""
    for _, text in lines_of(trace.path):
        found = _LINE.match(text)
        if found is None:
            trace.skipped += bool(text.strip()) and not text.startswith(_SUMMARY)
            continue
        device, seconds, fraction, action, kind, rest = found.groups()
        sectors = _SECTORS.match(rest or b"")
        remapped = _REMAPPED.search(rest or b"") if action == b"A" else None
        at, count = (int(sectors[1]), int(sectors[2])) if sectors else (0, 0)
        time_ns = int(seconds) * 10**9 + int(fraction.ljust(9, b"0"))
        yield Event(
            device=device,
            time_ns=time_ns,
            action=action,
            kind=kind,
            sector=at,
            sectors=count,
            remapped_from=remapped[1] if remapped else None,
        )


def import_blktrace(path: Path, out: Path) -> About:
    """Makes a recording of a text, or of binary files. Raises `ImportedError`."""
    trace = _Trace(path=path)
    files = binary_files(path)
    events = events_of(files) if files else _text_events(trace)
    for event in events:
        trace.see(event)
    device, action = trace.chosen()
    requests = trace.requests[device, action]
    about = About(source="blktrace", think="gaps", lacks=(*LACKS, *_lacks(trace, device, action)))
    return recorded(path, out, first=about, calls=_calls(trace, requests), last=lambda: about)


def _lacks(trace: _Trace, device: bytes, action: bytes) -> Iterator[str]:
    if _WHEN[action]:
        yield f"when requests were queued: their times are those at which they were {_WHEN[action]}"
    others = Counter[str]()
    for (other, kind), requests in trace.requests.items():
        if other != device and kind == action:
            others[other.decode()] += len(requests.counts)
    if others:
        texts = [f"{name} ({times:,})" for name, times in sorted(others.items())[:10]]
        yield f"requests of other devices than {device.decode()}: {', '.join(texts)}"
    if trace.skipped:
        yield f"lines that are no request of blkparse: {trace.skipped:,}"


def _calls(trace: _Trace, requests: _Requests) -> Iterator[Call]:
    times = np.array(requests.times_ns, dtype=np.int64)
    sectors = np.array(requests.sectors, dtype=np.int64)
    counts = np.array(requests.counts, dtype=np.int64)
    chunks = _chunks(sectors, counts)
    size = len(chunks) * _CHUNK_SECTORS
    if counts.any():
        ends = (sectors + counts)[counts > 0]
        last = int(ends.max())
        size -= _CHUNK_SECTORS - 1 - (last - 1 - _first(sectors, counts)) % _CHUNK_SECTORS
    if size * _SECTOR_BYTES > _THERE_BYTES_MAX:
        raise ImportedError(
            f"{shown(trace.path)}: requests touch {size * _SECTOR_BYTES >> 30:,} GiB of the device;"
            f" {_THERE_BYTES_MAX >> 30} GiB at most"
        )
    there: dict[str, int | bytes] = {
        "path": _NAME, "length": size * _SECTOR_BYTES, "mode": 0o100644,
    }  # fmt: skip
    yield Call(task=0, start_ns=0, duration_ns=0, cpu_ns=None, name=EXISTED, arguments=there)
    yield Call(
        task=0,
        start_ns=0,
        duration_ns=0,
        cpu_ns=None,
        name="openat",
        arguments={"path": _NAME, "flags": 2},
        result=3,
    )
    kinds = {number: kind for kind, number in trace.kinds.items()}
    first, begin_ns = _first(sectors, counts), int(times.min())
    for number in np.argsort(times, kind="stable"):
        sector, count = int(sectors[number]) - first, int(counts[number])
        place = 0
        if count:
            chunk = int(np.searchsorted(chunks, sector // _CHUNK_SECTORS))
            place = chunk * _CHUNK_SECTORS + sector % _CHUNK_SECTORS
        at_ns = int(times[number]) - begin_ns
        kind = kinds[int(requests.kinds[number])]
        yield from _of_request(kind, place * _SECTOR_BYTES, count * _SECTOR_BYTES, at_ns)


def _first(sectors: np.ndarray, counts: np.ndarray) -> int:
    """The lowest sector of a request."""
    return int(sectors[counts > 0].min()) if counts.any() else 0


def _chunks(sectors: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers of the chunks that requests touch, in order."""
    some = counts > 0
    begins = (sectors[some] - _first(sectors, counts)) // _CHUNK_SECTORS
    ends = (sectors[some] + counts[some] - 1 - _first(sectors, counts)) // _CHUNK_SECTORS
    longest = int((ends - begins).max()) + 1 if len(begins) else 0
    touched = [np.minimum(begins + step, ends) for step in range(longest)]
    return np.unique(np.concatenate(touched)) if touched else np.array([], dtype=np.int64)


def _of_request(kind: bytes, at: int, length: int, now_ns: int) -> Iterator[Call]:
    moved: dict[str, int | bytes] = {"descriptor": 3, "offset": at, "length": length}
    flush = Call(
        task=0,
        start_ns=now_ns,
        duration_ns=0,
        cpu_ns=None,
        name="fdatasync",
        arguments={"descriptor": 3},
    )
    if kind.startswith(b"F"):
        yield flush
    if not length:
        return
    if b"D" in kind:
        yield Call(
            task=0,
            start_ns=now_ns,
            duration_ns=0,
            cpu_ns=None,
            name="fallocate",
            arguments={**moved, "mode": 3},
        )
    elif b"W" in kind:
        yield Call(
            task=0,
            start_ns=now_ns,
            duration_ns=0,
            cpu_ns=None,
            name="pwrite64",
            arguments=moved,
            result=length,
        )
        if kind[1:].find(b"F") >= 0:  # FUA
            yield flush
    elif b"R" in kind:
        yield Call(
            task=0,
            start_ns=now_ns,
            duration_ns=0,
            cpu_ns=None,
            name="pread64",
            arguments=moved,
            result=length,
        )
