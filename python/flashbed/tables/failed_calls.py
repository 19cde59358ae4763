"""What a case's failed calls mean for its figures: they are of other work than the program's."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

__all__ = ["failed_words", "failures_of", "words_of"]


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
    failures = failures_of(cases)
    return words_of(failures.items()) if failures else None


def words_of(failures: Iterable[tuple[str, int]]) -> str:
    """The same of kinds and how often they occurred."""
    kinds = list(failures)
    total = sum(count for _, count in kinds)
    if len(kinds) == 1:
        named = _kind(kinds[0][0])
    else:
        named = ", ".join(f"{_kind(kind)} {count:,}" for kind, count in kinds)
    return f"{total:,} call{'s' if total != 1 else ''} failed ({named})"


def _kind(kind: str) -> str:
    return "short writes" if kind == "short" else kind
