"""A program that syncs at most every N seconds: what its commit interval does (`sync_every_s`).

Of its calls that sync, one is made when N seconds of its time have passed since the last one. Those
that were left out before it are made up for then: the sync of each file, once, or `sync` if one of
the files is closed by now. On UBIFS `sync` costs much more: it runs a commit. Each task goes by its
own time: its pauses and its own work.

`msync`, `sync_file_range` and files opened with `O_SYNC` stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["SYNCS", "synced_every"]

SYNCS = ("fsync", "fdatasync", "sync", "syncfs")
"""The calls that wait until data is on the flash."""
_ALL = "sync"
_OF_ALL = (_ALL, "syncfs")
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
    left_out: dict[str, str] = {}
    task = "0"
    for line in lines:
        name, _, fields = line.partition(" ")
        if name == "task":
            task = fields
        elif name == "pause":
            spent_ps[task] = spent_ps.get(task, 0) + int(fields) * 1000
        elif name == "compute":
            spent_ps[task] = spent_ps.get(task, 0) + int(fields) * step_ps
        elif name == "close" and fields in left_out:
            left_out[fields] = _ALL
        elif name in SYNCS:
            now_ns = spent_ps.get(task, 0) // 1000
            due = now_ns - last_ns.get(task, 0) >= period_ns
            alone = not left_out
            if left_out.get(fields) != _ALL:
                left_out[fields] = _ALL if name in _OF_ALL else line
            if due:
                last_ns[task] = now_ns
                every = [_ALL] if _ALL in left_out.values() else [*left_out.values()]
                yield from [line] if alone else every
                left_out = {}
            continue
        yield line
