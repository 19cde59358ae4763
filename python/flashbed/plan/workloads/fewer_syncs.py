"""A program that syncs at most every N seconds: what its commit interval does (`sync_every_s`).

Of its calls that sync, one is made when N seconds of its time have passed since the last one. Where
others were left out before it, `sync` takes its place, so that it is for all of their data. Each
task goes by its own time: its pauses and its own work.

`msync`, `sync_file_range` and files opened with `O_SYNC` stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["SYNCS", "synced_every"]

SYNCS = ("fsync", "fdatasync", "sync", "syncfs")
"""The calls that wait until data is on the flash."""
_S_NS = 1_000_000_000


def synced_every(body: str, seconds: int, step_ps: int | None) -> str:
    """The operations with at most one sync in so many seconds; 0 leaves them as they are.

    `step_ps` is the price of a step of the program's own work, which counts as none if unknown.
    """
    if seconds == 0:
        return body
    return "\n".join(_kept(body.splitlines(), seconds * _S_NS, step_ps or 0)) + "\n"


def _kept(lines: list[str], period_ns: int, step_ps: int) -> Iterator[str]:
    spent_ps: dict[str, int] = {}
    last_ns: dict[str, int] = {}
    left_out = False
    task = "0"
    for line in lines:
        name, _, fields = line.partition(" ")
        if name == "task":
            task = fields
        elif name == "pause":
            spent_ps[task] = spent_ps.get(task, 0) + int(fields) * 1000
        elif name == "compute":
            spent_ps[task] = spent_ps.get(task, 0) + int(fields) * step_ps
        elif name in SYNCS:
            now_ns = spent_ps.get(task, 0) // 1000
            if now_ns - last_ns.get(task, 0) < period_ns:
                left_out = True
                continue
            last_ns[task] = now_ns
            yield "sync" if left_out else line
            left_out = False
            continue
        yield line
