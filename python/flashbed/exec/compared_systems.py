"""One table of a program that ran on several systems."""

from __future__ import annotations

from collections.abc import Sequence

from flashbed.exec.lasting import lasting_of
from flashbed.exec.outcome import Outcome
from flashbed.exec.request import Request
from flashbed.formats.human import UNKNOWN, aligned, bytes_text, count_text, ratio_text, time_text
from flashbed.formats.names import escaped
from flashbed.lifetimes.estimate_text import years_text

__all__ = ["compared"]

_HEADS = (
    "time", "chip time", "reads", "programs", "erases", "written", "amplification", "lifetime",
)  # fmt: skip


def compared(ran: Sequence[tuple[Request, Outcome]], rounds: float | None) -> list[str]:
    """A line for each system, with what differs between them; counts are those of run and sync."""
    names = [name for name, _ in ran[0][0].changes]
    varying = [
        name for name in names if len({dict(request.changes)[name] for request, _ in ran}) > 1
    ]
    heads = [*varying, *_HEADS]
    failed = any(outcome.exit_status for _, outcome in ran)
    if failed:
        heads.append("exit status")
    rows = []
    for request, outcome in ran:
        changes = dict(request.changes)
        row = [*(changes[name] for name in varying), *_cells(request, outcome, rounds)]
        rows.append([*row, str(outcome.exit_status)] if failed else row)
    table = aligned([heads, *rows], left=len(varying))
    return [
        "",
        f"{escaped(ran[0][0].words[0])} on {len(ran)} systems, each from a new file system",
        *table,
    ]


def _cells(request: Request, outcome: Outcome, rounds: float | None) -> list[str]:
    seen = outcome.unseen is None
    both = (outcome.ran, outcome.flushed)
    counts = [
        count_text(sum(getattr(part, name) for part in both) if seen else None)
        for name in ("reads", "programs", "erases")
    ]
    written = outcome.bytes_written if request.where == "uml" else None
    ratio = outcome.bytes_programmed / written if written else None
    busy_ns = sum(part.busy_ns for part in both)
    return [
        time_text(outcome.time_ns),
        time_text(busy_ns if seen and min(part.busy_ns for part in both) >= 0 else None),
        *counts,
        bytes_text(written),
        ratio_text(ratio),
        _lifetime(request, outcome, rounds),
    ]


def _lifetime(request: Request, outcome: Outcome, rounds: float | None) -> str:
    found = lasting_of(request, outcome, rounds).found
    return UNKNOWN if found is None else years_text(found.low, found.high)
