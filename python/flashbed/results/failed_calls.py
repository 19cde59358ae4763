"""What a case's failed calls mean for its figures: they are of other work than the program's."""

from __future__ import annotations

import polars as pl

__all__ = ["failed_by_case", "failed_words", "failures_of"]


def failures_of(cases: pl.DataFrame) -> dict[str, int]:
    """Failed calls of all these cases by kind: `ENOSPC` -> 11257, the most frequent first."""
    found: dict[str, int] = {}
    for text in cases["failed_errno"].drop_nulls():
        for item in text.split(", "):
            kind, _, count = item.rpartition(" ")
            found[kind] = found.get(kind, 0) + int(count)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def failed_words(cases: pl.DataFrame) -> str | None:
    """`11,257 calls failed (ENOSPC)` of all these cases; None if none failed."""
    kinds = list(failures_of(cases).items())
    if not kinds:
        return None
    total = sum(count for _, count in kinds)
    if len(kinds) == 1:
        named = _kind(kinds[0][0])
    else:
        named = ", ".join(f"{_kind(kind)} {count:,}" for kind, count in kinds)
    return f"{total:,} call{'s' if total != 1 else ''} failed ({named})"


def failed_by_case(cases: pl.DataFrame) -> list[tuple[str, str]]:
    """The cases in which calls failed, each with `failed_words`, in their order."""
    found = []
    for row in cases.filter(pl.col("failed") > 0).iter_slices(1):
        words = failed_words(row)
        if words is not None:
            found.append((str(row["case_id"][0]), words))
    return found


def _kind(kind: str) -> str:
    return "short writes" if kind == "short" else kind
