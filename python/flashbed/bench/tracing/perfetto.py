"""Writes a trace in Perfetto's format, for ui.perfetto.dev and trace_processor.

There is a track for each layer: system calls, VFS, page cache, file system and flash. Below it,
each task has a track of its own, so that simultaneous events do not overlap. Replayed operations do
not say their task: those that overlap, such as pauses of several tasks, have further tracks.

An event without a duration is an instant. Two counters, pages in the page cache and free blocks,
begin at 0, because a trace does not know the initial numbers. Time 0 is the mark or the start of
the command; earlier events of the agent are moved with it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import polars as pl
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from flashbed.base.frames import pieces
from flashbed.bench.tracing.trace import TABLES, Trace

__all__ = ["CACHED", "FREE", "LAYERS", "cached_pages", "free_blocks", "write_perfetto"]

LAYERS = ("system calls", "VFS", "page cache", "file system", "flash")
CACHED = "cached pages"
FREE = "free blocks"
_SEQUENCE = 1
_PROCESS = 1
_CACHE_KINDS = {"cache-add": 1, "cache-delete": -1}


@dataclass(frozen=True, kw_only=True)
class _TrackEvent:
    """An event on a layer's track; without a duration it is an instant."""

    layer: str
    task: str
    name: str
    start_ns: int
    duration_ns: int | None
    facts: dict[str, int | str | None]


@dataclass
class _Track:
    """A track, and the ends of the slices that are open on it, the outermost first."""

    number: int
    ends: list[int] = field(default_factory=list)

    def takes(self, event: _TrackEvent) -> bool:
        """Whether the event fits: after what is there, or inside it unless it is a long call."""
        while self.ends and self.ends[-1] <= event.start_ns:
            self.ends.pop()
        end_ns = event.start_ns + (event.duration_ns or 0)
        calls = event.layer == LAYERS[0] and end_ns > event.start_ns
        if self.ends and (calls or end_ns > self.ends[-1]):
            return False
        self.ends.append(end_ns)
        return True


def write_perfetto(trace: Trace, path: Path) -> None:
    """Writes the file. Tables may exceed memory, so rows are read in pieces."""
    counters = {CACHED: cached_pages(trace), FREE: free_blocks(trace)}
    begin = pl.col("start_ns").min()
    first = pl.collect_all([trace.lazy(name).select(begin) for name in TABLES], engine="streaming")
    with path.open("wb") as file:
        writer = _Writer(file, min(0, *(start.item() or 0 for start in first)))
        writer.process(f"{trace.facts.name} on {trace.facts.target}")
        tracks = {layer: writer.track(layer) for layer in LAYERS}
        below: dict[tuple[str, str], list[_Track]] = {}
        for event in heapq.merge(*map(_in_order, _events(trace)), key=_sort_key):
            there = below.setdefault((event.layer, event.task), [])
            on = next((track for track in there if track.takes(event)), None)
            if on is None:
                name = f"{event.task} ({len(there) + 1})" if there else event.task
                on = _Track(writer.track(name, tracks[event.layer]))
                there.append(on)
                on.takes(event)
            writer.event(on.number, event)
        for name, points in counters.items():
            track = writer.counter(name)
            for time_ns, value in points:
                writer.count(track, time_ns, value)


def _sort_key(event: _TrackEvent) -> tuple[int, int]:
    """Sort key: of two events that begin together, the longer one encloses the other."""
    return event.start_ns, -(event.duration_ns or 0)


def _in_order(events: Iterator[_TrackEvent]) -> Iterator[_TrackEvent]:
    """Sorts events that begin at the same time, in a stream sorted by begin."""
    for _, together in groupby(events, key=lambda event: event.start_ns):
        yield from sorted(together, key=_sort_key)


def _events(trace: Trace) -> tuple[Iterator[_TrackEvent], ...]:
    """The events of each table."""
    return _requests(trace), _vfs(trace), _functions(trace), _flash(trace)


def _rows(trace: Trace, name: str) -> Iterator[dict[str, Any]]:
    """Rows of a table, in the order in which they begin."""
    rows = trace.lazy(name)
    back = (pl.col("start_ns").diff() < 0).any()
    if rows.select(back).collect(engine="streaming").item():
        rows = rows.sort("start_ns", maintain_order=True)
    for piece in pieces(rows):
        yield from piece.iter_rows(named=True)


def _requests(trace: Trace) -> Iterator[_TrackEvent]:
    tasks = trace.lazy("vfs").drop_nulls("task").group_by("task").agg(pl.len())
    most = tasks.sort(["len", "task"], descending=[True, False]).head(1)
    program = most.collect(engine="streaming")["task"].to_list() or ["program"]
    for row in _rows(trace, "requests"):
        took = row["latency_ns"] if row["latency_ns"] is not None else row["flash_time_ns"]
        facts = {key: row[key] for key in ("file", "offset_bytes", "length_bytes", "result")}
        yield _TrackEvent(
            layer=LAYERS[0],
            task=program[0],
            name=row["op"],
            start_ns=row["start_ns"],
            duration_ns=took,
            facts=facts,
        )


def _vfs(trace: Trace) -> Iterator[_TrackEvent]:
    keys = ("file", "inode", "offset_bytes", "length_bytes", "result")
    for row in _rows(trace, "vfs"):
        layer = LAYERS[2] if row["kind"] in _CACHE_KINDS else LAYERS[1]
        facts = {key: row[key] for key in keys}
        yield _TrackEvent(
            layer=layer,
            task=row["task"],
            name=row["kind"],
            start_ns=row["start_ns"],
            duration_ns=row["duration_ns"],
            facts=facts,
        )


def _functions(trace: Trace) -> Iterator[_TrackEvent]:
    for row in _rows(trace, "functions"):
        facts = {"result": row["result"]}
        name, start_ns, took = row["function"], row["start_ns"], row["duration_ns"]
        yield _TrackEvent(
            layer=LAYERS[3],
            task=row["task"],
            name=name,
            start_ns=start_ns,
            duration_ns=took,
            facts=facts,
        )


def _flash(trace: Trace) -> Iterator[_TrackEvent]:
    for row in _one_after_another(_rows(trace, "flash")):
        facts = {key: row[key] for key in ("block", "page", "offset_bytes", "length_bytes")}
        facts["chip_ns"] = row["duration_ns"]
        yield _TrackEvent(
            layer=LAYERS[4],
            task=row["task"],
            name=row["kind"],
            start_ns=row["start_ns"],
            duration_ns=row["shown_ns"],
            facts=facts,
        )


def _one_after_another(rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Ends a task's slice where its next one begins: a chip does one thing at a time."""
    waiting: deque[dict[str, Any]] = deque()
    last: dict[str | None, dict[str, Any]] = {}
    for row in rows:
        now_ns = row["start_ns"]
        before = last.get(row["task"])
        if before is not None and before["shown_ns"] is not None:
            before["shown_ns"] = min(before["shown_ns"], now_ns - before["start_ns"])
        last[row["task"]] = row
        row["shown_ns"] = row["duration_ns"]
        waiting.append(row)
        while waiting[0]["start_ns"] + (waiting[0]["shown_ns"] or 0) <= now_ns and (
            waiting[0] is not row
        ):
            yield waiting.popleft()
    yield from waiting


def cached_pages(trace: Trace) -> Iterator[tuple[int, int]]:
    """(time, pages added since the beginning) at every change."""
    pages = 0
    for piece in pieces(trace.lazy("vfs").select("start_ns", "kind")):
        for start_ns, kind in piece.filter(pl.col("kind").is_in(list(_CACHE_KINDS))).iter_rows():
            pages += _CACHE_KINDS[kind]
            yield start_ns, pages


def free_blocks(trace: Trace) -> Iterator[tuple[int, int]]:
    """(time, free blocks gained since the beginning) at every erase or first program of a block.

    Programs of only the spare area, such as clean markers, do not count. A block erased twice
    without a program in between counts once.
    """
    each, page_bytes = trace.facts.pages_per_block, trace.facts.page_bytes
    if not each or not page_bytes:
        return
    more, free = 0, set[int]()
    columns = ("start_ns", "kind", "block", "page", "offset_bytes")
    for piece in pieces(trace.lazy("flash").select(columns)):
        for start_ns, kind, block, page, offset in piece.iter_rows():
            if kind == "erase" and block not in free:
                free.add(block)
                more += 1
            elif kind == "program" and page % each == 0 and offset == 0:
                free.discard(block)
                more -= 1
            else:
                continue
            yield start_ns, more


class _Writer:
    """Writes packets of one sequence."""

    def __init__(self, file: IO[bytes], zero_ns: int) -> None:
        self._builder = StreamingTraceProtoBuilder(file)
        self._zero_ns = zero_ns
        self._tracks = _PROCESS

    def _packet(self) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet

    def _write(self, packet: Any) -> None:
        self._builder.write_packet(packet)

    def process(self, name: str) -> None:
        packet = self._packet()
        packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        packet.track_descriptor.uuid = _PROCESS
        packet.track_descriptor.process.pid = 1
        packet.track_descriptor.process.process_name = name
        self._write(packet)

    def track(self, name: str, parent: int = _PROCESS) -> int:
        """Defines a track and returns its number."""
        self._tracks += 1
        packet = self._packet()
        packet.track_descriptor.uuid = self._tracks
        packet.track_descriptor.parent_uuid = parent
        packet.track_descriptor.name = name
        packet.track_descriptor.sibling_order_rank = self._tracks
        self._write(packet)
        return self._tracks

    def counter(self, name: str) -> int:
        """Defines a counter and returns its number."""
        self._tracks += 1
        packet = self._packet()
        packet.track_descriptor.uuid = self._tracks
        packet.track_descriptor.parent_uuid = _PROCESS
        packet.track_descriptor.name = name
        packet.track_descriptor.counter.SetInParent()
        self._write(packet)
        return self._tracks

    def event(self, track: int, event: _TrackEvent) -> None:
        packet = self._at(track, event.start_ns)
        packet.track_event.name = event.name
        for key, value in event.facts.items():
            if value is None:
                continue
            fact = packet.track_event.debug_annotations.add()
            fact.name = key
            if isinstance(value, int):
                fact.int_value = value
            else:
                fact.string_value = value
        if event.duration_ns is None:
            packet.track_event.type = TrackEvent.TYPE_INSTANT
            self._write(packet)
            return
        packet.track_event.type = TrackEvent.TYPE_SLICE_BEGIN
        self._write(packet)
        end = self._at(track, event.start_ns + event.duration_ns)
        end.track_event.type = TrackEvent.TYPE_SLICE_END
        self._write(end)

    def count(self, track: int, time_ns: int, value: int) -> None:
        packet = self._at(track, time_ns)
        packet.track_event.type = TrackEvent.TYPE_COUNTER
        packet.track_event.counter_value = value
        self._write(packet)

    def _at(self, track: int, time_ns: int) -> Any:
        packet = self._packet()
        packet.timestamp = time_ns - self._zero_ns
        packet.track_event.track_uuid = track
        return packet
