"""Finds where two runs of one program first differ.

For every measured operation, the kernel's result is compared with the oracle's and with the
simulator's. The flash operations of simulator and kernel are compared in order: kind, page, offset,
length. Times and names of tasks are not compared, nor how much of the spare area moves with data,
which some kernels' probes do not see. An operation's flash operations are those that began after it
and before the next operation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import polars as pl

from flashbed.bench.fuzz.oracle import Expected
from flashbed.bench.fuzz.program import FoundCut, FuzzCase
from flashbed.targets.base import Batch

__all__ = [
    "BothCounts",
    "Difference",
    "FlashOp",
    "FuzzOutcome",
    "FuzzRow",
    "counts_of",
    "first_difference",
    "outcomes_of",
]

SHOWN_BEFORE = 3
SHOWN_AFTER = 6


@dataclass(frozen=True)
class FuzzRow:
    """The result of a measured operation."""

    op: str
    start_ns: int
    result: int
    content_crc32: int | None


@dataclass(frozen=True, kw_only=True)
class FlashOp:
    """One flash operation."""

    start_ns: int
    kind: str
    page: int
    offset_bytes: int
    length_bytes: int
    task: str

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What must be equal."""
        if self.kind == "erase":  # a block is erased whole, so its first page identifies it
            return self.kind, self.page, 0, 0
        return self.kind, self.page, self.offset_bytes, self.length_bytes

    def __str__(self) -> str:
        where = f"{self.kind} page {self.page}"
        return (
            where if self.kind == "erase" else f"{where} +{self.offset_bytes} {self.length_bytes}"
        )


@dataclass(frozen=True)
class FuzzOutcome:
    """A program's run on a target."""

    rows: tuple[FuzzRow, ...]
    flash: tuple[FlashOp, ...]

    def operation_of(self, index: int) -> int:
        """The measured operation that flash operation `index` belongs to; -1 is before the first.

        An index after the last flash operation belongs to the last operation.
        """
        if index >= len(self.flash):
            return len(self.rows) - 1
        starts = [row.start_ns for row in self.rows]
        return bisect_right(starts, self.flash[index].start_ns) - 1


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first difference of two runs.

    `kind` is `result`, `contents` or `flash`. `between` names the two sides; `left` and `right` are
    their values. `errno` is 0 if the operation should succeed. `around` has the flash operations of
    simulator and kernel near it.
    """

    kind: str
    between: tuple[str, str]
    seq: int
    operation: str
    left: str
    right: str
    errno: int = 0
    around: tuple[str, ...] = ()
    cut: FoundCut | None = None
    """The cut, in class `cuts`."""

    @property
    def signature(self) -> tuple[str, ...]:
        """What a shorter program must share to show the same difference."""
        return (self.kind, *self.between, self.operation.split(" ")[0], str(self.errno))


@dataclass(frozen=True)
class BothCounts:
    """The chip's operations on both sides, each as (simulator, kernel), in any order."""

    reads: tuple[int, int]
    programs: tuple[int, int]
    erases: tuple[int, int]

    @property
    def changes_equal(self) -> bool:
        """Whether the numbers of programs and of erases are equal."""
        return self.programs[0] == self.programs[1] and self.erases[0] == self.erases[1]

    def reads_within(self, part: float) -> bool:
        """Whether reads differ by at most this part of the kernel's."""
        sim, real = self.reads
        return abs(sim - real) <= part * real

    def changes_within(self, part: float) -> bool:
        """Whether page writes and erases differ by at most this part of the kernel's.

        One erase more or less is ignored where there are few.
        """
        (programs, real_programs), (erases, real_erases) = self.programs, self.erases
        return abs(programs - real_programs) <= part * real_programs and abs(
            erases - real_erases
        ) <= max(1, part * real_erases)


def counts_of(sim: FuzzOutcome, real: FuzzOutcome) -> BothCounts:
    """The numbers of page reads, page writes and erases of the chip."""
    sides = [Counter(op.kind for op in outcome.flash) for outcome in (sim, real)]
    reads, programs, erases = (
        (sides[0][kind], sides[1][kind]) for kind in ("read", "program", "erase")
    )
    return BothCounts(reads, programs, erases)


def outcomes_of(batch: Batch, page_bytes: int) -> dict[str, FuzzOutcome]:
    """The cases of a batch, by case_id; `page_bytes` without the spare area."""
    requests = _parts(batch.requests)
    flash = _parts(batch.flash)
    return {
        case_id: FuzzOutcome(
            tuple(
                FuzzRow(row["op"], row["start_ns"], row["result"], row.get("content_crc32"))
                for row in requests.get(case_id, ())
            ),
            tuple(
                FlashOp(
                    start_ns=row["start_ns"],
                    kind=row["kind"],
                    page=row["page"],
                    offset_bytes=row["offset_bytes"],
                    length_bytes=_data_bytes(row["offset_bytes"], row["length_bytes"], page_bytes),
                    task=row["task"],
                )
                for row in flash.get(case_id, ())
            ),
        )
        for case_id in (batch.cases["case_id"] if batch.cases.height else ())
    }


def _data_bytes(offset: int, length: int, page_bytes: int) -> int:
    """The data bytes of a transfer that begins with data."""
    return min(length, page_bytes - offset) if offset < page_bytes else length


def _parts(frame: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Rows by case, in order."""
    parts: dict[str, list[dict[str, Any]]] = {}
    if frame.height:
        for row in frame.sort("case_id", "seq", maintain_order=True).iter_rows(named=True):
            parts.setdefault(row["case_id"], []).append(row)
    return parts


def first_difference(
    case: FuzzCase, expected: Sequence[Expected], real: FuzzOutcome, sim: FuzzOutcome | None
) -> Difference | None:
    """The difference at the earliest operation; None if the runs are alike.

    Without `sim` the kernel is compared to the oracle only.
    """
    found = [*_answers(case, expected, real, sim)][:1]
    if sim is not None:
        flash = _flash(case, expected, sim, real)
        found += [flash] if flash else []
    return min(found, key=lambda difference: difference.seq, default=None)


def _answers(
    case: FuzzCase, expected: Sequence[Expected], real: FuzzOutcome, sim: FuzzOutcome | None
) -> list[Difference]:
    names = [str(operation) for operation in case.measured]
    simulated = sim.rows if sim else real.rows
    found = []
    for seq, (name, wanted, row, other) in enumerate(
        zip_longest(names, expected, real.rows, simulated)
    ):
        told = [
            ("result", ("oracle", "kernel"), wanted and wanted.result, row and row.result),
            ("result", ("sim", "kernel"), other and other.result, row and row.result),
        ]
        if wanted is not None and wanted.content_crc32 is not None and row is not None:
            sums = (wanted.content_crc32, row.content_crc32)
            told.append(("contents", ("oracle", "kernel"), *sums))
        found += [
            Difference(
                kind=kind,
                between=between,
                seq=seq,
                operation=name or "no such operation",
                left=str(left),
                right=str(right),
                errno=_errno(expected, seq),
            )
            for kind, between, left, right in told
            if left != right
        ]
    return found


def _errno(expected: Sequence[Expected], seq: int) -> int:
    return max(0, -expected[seq].result) if 0 <= seq < len(expected) else 0


def _flash(
    case: FuzzCase, expected: Sequence[Expected], sim: FuzzOutcome, real: FuzzOutcome
) -> Difference | None:
    pairs = zip_longest((op.key for op in sim.flash), (op.key for op in real.flash))
    index = next((i for i, (left, right) in enumerate(pairs) if left != right), None)
    if index is None:
        return None
    seq = min(outcome.operation_of(index) for outcome in (sim, real) if index < len(outcome.flash))
    operation = str(case.measured[seq]) if seq >= 0 else "before the first operation"
    sides = [
        str(outcome.flash[index]) if index < len(outcome.flash) else "nothing more"
        for outcome in (sim, real)
    ]
    around = tuple(_around(sim, real, index))
    return Difference(
        kind="flash",
        between=("sim", "kernel"),
        seq=seq,
        operation=operation,
        left=sides[0],
        right=sides[1],
        errno=_errno(expected, seq),
        around=around,
    )


def _around(sim: FuzzOutcome, real: FuzzOutcome, index: int) -> list[str]:
    """Both sides' flash operations near `index`, each with the operation it belongs to."""
    width = 46
    lines = [f"  {'#':>6}  {'sim':{width}} kernel"]
    last = max(len(sim.flash), len(real.flash))
    for at in range(max(0, index - SHOWN_BEFORE), min(last, index + SHOWN_AFTER)):
        left, right = (_shown(outcome, at) for outcome in (sim, real))
        lines.append(f"{'>' if at == index else ' '} {at:>6}  {left:{width}} {right}".rstrip())
    return lines


def _shown(outcome: FuzzOutcome, index: int) -> str:
    if index >= len(outcome.flash):
        return "-"
    op = outcome.flash[index]
    return f"{op} (op {outcome.operation_of(index)}, {op.task})"
