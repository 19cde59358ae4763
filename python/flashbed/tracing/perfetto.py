"""A trace for ui.perfetto.dev and trace_processor, in Perfetto's own format.

One track each for system calls, VFS, page cache, file system and flash; below a layer's a track
for each task, so that what tasks do at the same time does not cross. What has no duration is an
instant. Two counters: pages in the page cache and free blocks, both from 0 at the trace's
beginning, which does not know how many there were. Times begin at 0, the mark or the start of the
command; earlier events (what the agent did up to the mark) are moved with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import polars as pl
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from flashbed.tracing.trace import Trace

__all__ = ["CACHED", "FREE", "LAYERS", "cached_pages", "free_blocks", "write_perfetto"]

LAYERS = ("system calls", "VFS", "page cache", "file system", "flash")
CACHED = "cached pages"
FREE = "free blocks"
_SEQUENCE = 1
_PROCESS = 1
_CACHE_KINDS = {"cache-add": 1, "cache-delete": -1}


@dataclass(frozen=True)
class _Event:
    """Something on a layer's track; without a duration it is an instant."""

    layer: str
    task: str
    name: str
    start_ns: int
    duration_ns: int | None
    facts: dict[str, int | str | None]


def write_perfetto(trace: Trace, path: Path) -> None:
    """Writes the file."""
    # Of two that begin at once the longer one is around the other.
    events = sorted(_events(trace), key=lambda event: (event.start_ns, -(event.duration_ns or 0)))
    counters = {CACHED: cached_pages(trace), FREE: free_blocks(trace)}
    starts = [event.start_ns for event in events]
    zero_ns = min([0, *starts])
    with path.open("wb") as file:
        writer = _Writer(file, zero_ns)
        writer.process(f"{trace.facts.name} on {trace.facts.target}")
        tracks = {layer: writer.track(layer) for layer in LAYERS}
        below: dict[tuple[str, str], int] = {}
        for event in events:
            key = event.layer, event.task
            if key not in below:
                below[key] = writer.track(event.task, tracks[event.layer])
        for event in events:
            writer.event(below[event.layer, event.task], event)
        for name, points in counters.items():
            track = writer.counter(name)
            for time_ns, value in points:
                writer.count(track, time_ns, value)


def _events(trace: Trace) -> Iterator[_Event]:
    program = trace.vfs["task"].drop_nulls().mode().sort().to_list()[:1] or ["program"]
    for row in trace.requests.iter_rows(named=True):
        took = row["latency_ns"] if row["latency_ns"] is not None else row["flash_time_ns"]
        facts = {key: row[key] for key in ("file", "offset_bytes", "length_bytes", "result")}
        yield _Event(LAYERS[0], program[0], row["op"], row["start_ns"], took, facts)
    for row in trace.vfs.iter_rows(named=True):
        keys = ("file", "inode", "offset_bytes", "length_bytes", "result")
        layer = LAYERS[2] if row["kind"] in _CACHE_KINDS else LAYERS[1]
        facts = {key: row[key] for key in keys}
        yield _Event(layer, row["task"], row["kind"], row["start_ns"], row["duration_ns"], facts)
    for row in trace.functions.iter_rows(named=True):
        facts = {"result": row["result"]}
        name, start_ns, took = row["function"], row["start_ns"], row["duration_ns"]
        yield _Event(LAYERS[3], row["task"], name, start_ns, took, facts)
    for row in _one_after_another(trace.flash).iter_rows(named=True):
        facts = {key: row[key] for key in ("block", "page", "offset_bytes", "length_bytes")}
        facts["chip_ns"] = row["duration_ns"]
        yield _Event("flash", row["task"], row["kind"], row["start_ns"], row["shown_ns"], facts)


def _one_after_another(flash: pl.DataFrame) -> pl.DataFrame:
    """A chip does one thing at a time: a slice ends no later than a task's next one begins."""
    ordered = flash.sort("start_ns", maintain_order=True)
    until_next = pl.col("start_ns").shift(-1).over("task") - pl.col("start_ns")
    shown = pl.min_horizontal("duration_ns", until_next)
    known = pl.col("duration_ns").is_not_null()
    return ordered.with_columns(pl.when(known).then(shown).alias("shown_ns"))


def cached_pages(trace: Trace) -> list[tuple[int, int]]:
    """(time, pages more than at the beginning) whenever one comes or goes."""
    steps = trace.vfs.filter(pl.col("kind").is_in(list(_CACHE_KINDS))).select(
        "start_ns",
        pl.col("kind").replace_strict(_CACHE_KINDS, return_dtype=pl.Int64).cum_sum().alias("pages"),
    )
    return [(int(time_ns), int(pages)) for time_ns, pages in steps.iter_rows()]


def free_blocks(trace: Trace) -> list[tuple[int, int]]:
    """(time, blocks more than at the beginning) whenever a block is erased or begun.

    A block is begun by the program of its first page; spare areas alone, clean markers, do not
    count. One that is erased twice without a program between is free once.
    """
    each, page_bytes = trace.facts.pages_per_block, trace.facts.page_bytes
    if not each or not page_bytes:
        return []
    more, free, points = 0, set[int](), []
    columns = ("start_ns", "kind", "block", "page", "offset_bytes")
    for start_ns, kind, block, page, offset in trace.flash.select(columns).iter_rows():
        if kind == "erase" and block not in free:
            free.add(block)
            more += 1
        elif kind == "program" and page % each == 0 and offset == 0:
            free.discard(block)
            more -= 1
        else:
            continue
        points.append((start_ns, more))
    return points


class _Writer:
    """Packets of one sequence."""

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
        """A track's number."""
        self._tracks += 1
        packet = self._packet()
        packet.track_descriptor.uuid = self._tracks
        packet.track_descriptor.parent_uuid = parent
        packet.track_descriptor.name = name
        packet.track_descriptor.sibling_order_rank = self._tracks
        self._write(packet)
        return self._tracks

    def counter(self, name: str) -> int:
        """A counter's number."""
        self._tracks += 1
        packet = self._packet()
        packet.track_descriptor.uuid = self._tracks
        packet.track_descriptor.parent_uuid = _PROCESS
        packet.track_descriptor.name = name
        packet.track_descriptor.counter.SetInParent()
        self._write(packet)
        return self._tracks

    def event(self, track: int, event: _Event) -> None:
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
