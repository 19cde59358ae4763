"""The log format of Flashmon, a kernel module: `seconds;R|W|E;index;task`, a line per operation.

The index is the page of a read or program (W), or the block of an erase, from the chip's start.
Columns, lengths, and everything about a task but its name are missing.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from flashbed.base.errors import InputError
from flashbed.base.files import read_text
from flashbed.base.paths import shown
from flashbed.results.run_directory import SCHEMAS

__all__ = ["read_log", "written_log"]

LOG_BYTES_MAX = 1 << 30

_KINDS = {"R": "read", "W": "program", "E": "erase"}
_LETTERS = {kind: letter for letter, kind in _KINDS.items()}
_SECOND_NS = 1_000_000_000


def written_log(flash: pl.DataFrame) -> str:
    """The operations of a `flash` table."""
    lines = (
        f"{start_ns // _SECOND_NS}.{start_ns % _SECOND_NS:09};{_LETTERS[kind]};"
        f"{block if kind == 'erase' else page};{task}\n"
        for start_ns, kind, block, page, task in flash.select(
            "start_ns", "kind", "block", "page", "task"
        ).iter_rows()
    )
    return "".join(lines)


def read_log(path: Path, pages_per_block: int | None = None) -> pl.DataFrame:
    """Reads a log as a `flash` table. Without `pages_per_block`, page or block is null.

    Empty lines and lines that begin with # are skipped. Raises `InputError`.
    """
    rows: list[tuple[int, int, str, int, str]] = []
    for number, line in enumerate(read_text(path, LOG_BYTES_MAX).splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            seconds, letter, index, task = line.strip().split(";")
            rows.append((len(rows), _ns(seconds), _KINDS[letter], int(index), task))
        except (ValueError, KeyError):
            raise InputError(
                f"{shown(path)}:{number}: not `seconds;R|W|E;index;task` of Flashmon"
            ) from None
    names = ("seq", "start_ns", "kind", "index", "task")
    types = (pl.Int64, pl.Int64, pl.String, pl.Int64, pl.String)
    read = pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")
    each, of_page = pl.lit(pages_per_block, pl.Int64), pl.col("index")
    is_erase = pl.col("kind") == "erase"
    read = read.with_columns(
        pl.when(is_erase).then(of_page).otherwise(of_page // each).alias("block"),
        pl.when(is_erase).then(of_page * each).otherwise(of_page).alias("page"),
    )
    return read.select(
        (pl.col(name) if name in read.columns else pl.lit(None, kind)).alias(name)
        for name, kind in SCHEMAS["flash"].items()
    )


def _ns(seconds: str) -> int:
    """Parses decimal seconds without rounding."""
    whole, _, part = seconds.partition(".")
    return int(whole) * _SECOND_NS + int(part[:9].ljust(9, "0") or "0")
