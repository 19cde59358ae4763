"""Summarises a trace in a few tables: operations by layer, tasks, hot blocks, bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from flashbed.bench.tracing.trace import Trace
from flashbed.program.transfers import READING, WRITING

__all__ = ["Amplification", "amplification", "by_layer", "by_task", "hot_blocks", "lines"]

HOT_BLOCKS = 5
_REQUESTED = (("read", READING, "read"), ("write", WRITING, "program"))
"""A direction, the operations that move bytes so, and what the flash does for them."""


@dataclass(frozen=True)
class Amplification:
    """Bytes a program read or wrote, and what the flash read or wrote for it."""

    what: str
    asked_bytes: int
    flash_bytes: int

    @property
    def ratio(self) -> float | None:
        """Flash bytes per byte of the program; None if that is 0."""
        return self.flash_bytes / self.asked_bytes if self.asked_bytes else None


def by_layer(trace: Trace) -> pl.DataFrame:
    """layer, operation, count, time_ns (null if unknown), in the order of the layers."""
    parts = (
        ("system calls", trace.lazy("requests"), "op", pl.coalesce("latency_ns", "flash_time_ns")),
        ("VFS", trace.lazy("vfs"), "kind", pl.col("duration_ns")),
        ("file system", trace.lazy("functions"), "function", pl.col("duration_ns")),
        ("flash", trace.lazy("flash"), "kind", pl.col("duration_ns")),
    )
    frames = [
        frame.group_by(pl.col(column).alias("operation"), maintain_order=True)
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.when(took.is_not_null().any()).then(took.sum()).alias("time_ns"),
        )
        .select(pl.lit(layer).alias("layer"), "operation", "count", "time_ns")
        for layer, frame, column, took in parts
    ]
    return pl.concat(pl.collect_all(frames, engine="streaming"))


def by_task(trace: Trace) -> pl.DataFrame:
    """task, reads, programs, erases; most operations first."""
    kinds = ("read", "program", "erase")
    counts = ((pl.col("kind") == kind).sum().cast(pl.Int64).alias(f"{kind}s") for kind in kinds)
    return (
        trace.lazy("flash")
        .group_by("task")
        .agg(*counts, pl.len().alias("_all"))
        .sort(["_all", "task"], descending=[True, False])
        .drop("_all")
        .collect(engine="streaming")
    )


def hot_blocks(trace: Trace, count: int = HOT_BLOCKS) -> pl.DataFrame:
    """block, reads, programs, erases of the blocks with most operations."""
    kinds = ("read", "program", "erase")
    counts = ((pl.col("kind") == kind).sum().cast(pl.Int64).alias(f"{kind}s") for kind in kinds)
    return (
        trace.lazy("flash")
        .drop_nulls("block")
        .group_by("block")
        .agg(*counts, pl.len().alias("_all"))
        .sort(["_all", "block"], descending=[True, False])
        .head(count)
        .drop("_all")
        .collect(engine="streaming")
    )


def amplification(trace: Trace) -> list[Amplification]:
    """Of reads and writes: by the program's calls if they are known, else by the VFS's."""
    by_program = trace.has("requests")
    calls, column = (trace.lazy("requests"), "op") if by_program else (trace.lazy("vfs"), "kind")
    found = []
    for requested, operations, kind in _REQUESTED:
        came = calls.filter(pl.col(column).is_in(operations)).select(pl.col("result").clip(0))
        flash = trace.lazy("flash").filter(pl.col("kind") == kind).select("length_bytes")
        sums = pl.collect_all([came.sum(), flash.sum()], engine="streaming")
        found.append(Amplification(requested, *(int(total.item() or 0) for total in sums)))
    return found


def lines(trace: Trace) -> Iterator[str]:
    """The summary as it is printed."""
    facts = trace.facts
    yield f"{facts.name} on {facts.target}" + (f", Linux {facts.kernel}" if facts.kernel else "")
    layer = ""
    for its, operation, count, time_ns in by_layer(trace).iter_rows():
        took = "" if time_ns is None else f"{time_ns / 1e6:12,.3f} ms"
        yield f"  {its if its != layer else '':<14}{operation:<28}{count:>8,}{took}"
        layer = its
    if trace.has("flash"):
        yield "  tasks, by page reads, page writes and erases"
        for task, *numbers in by_task(trace).iter_rows():
            yield f"    {task:<26}" + "".join(f"{number:>10,}" for number in numbers)
        hot = hot_blocks(trace)
        if hot.height:
            yield "  blocks with most of them"
        for block, *numbers in hot.iter_rows():
            yield f"    {block:<26}" + "".join(f"{number:>10,}" for number in numbers)
        for part in amplification(trace):
            if part.ratio is not None:
                done = {"read": "read", "write": "written"}[part.what]
                yield f"  flash bytes {done} per byte {done} by the program: {part.ratio:.2f}"
    if facts.ecc and any(facts.ecc):
        corrected, failed, bad = facts.ecc
        yield f"  ECC: {corrected} bits corrected, {failed} steps not; {bad} blocks went bad"
    if facts.cost:
        took = f"{facts.cost.traced_ns / 1e6:,.3f} ms, {facts.cost.untraced_ns / 1e6:,.3f} without"
        yield f"  cost of tracing: {facts.cost.pct:.2f} % ({took})"
