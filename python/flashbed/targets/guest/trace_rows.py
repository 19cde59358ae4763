"""Parses rows of `flashbed-trace 1` (agent/tracing/README.md), from a stream or from a case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from flashbed.base.errors import RunError
from flashbed.results.run_directory import SCHEMAS

__all__ = ["HEADER", "Rows", "read_rows", "read_stream"]

HEADER = "flashbed-trace 1"
_FLASH_ROW = ("start_ns", "kind", "block", "page", "offset_bytes", "length_bytes", "_pid", "task")
_VFS_ROW = (
    *("start_ns", "duration_ns", "kind", "inode", "offset_bytes", "length_bytes", "result"),
    *("_pid", "task", "file"),
)
_FUNCTION_ROW = ("start_ns", "duration_ns", "function", "result", "_pid", "task")


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The tracers' rows: columns of docs/reference/tables.md except `case_id` and `target`.

    `lost` is None for a stream that was cut off. `status` is None for such a stream, for a case,
    and for a command that still runs.
    """

    flash: pl.DataFrame
    vfs: pl.DataFrame
    functions: pl.DataFrame
    values: tuple[tuple[int, str, int], ...] = ()
    """Time, name and number of each hit of a probed place in the kernel."""
    info: dict[str, str] = field(default_factory=dict)
    ecc: tuple[int, int, int] | None = None
    """Corrected bits, uncorrectable ECC steps, blocks that went bad."""
    lost: int | None = None
    status: int | None = None


def read_stream(text: str) -> Rows:
    """Reads a stream, whole or cut off. Raises `RunError`."""
    header, _, rest = text.partition("\n")
    if header != HEADER:
        raise RunError(f"not a trace: the first line is {header[:60]!r}, not {HEADER!r}")
    lines = rest.split("\n")
    # The last piece is empty, or an incomplete row.
    return read_rows(lines[:-1])


def read_rows(lines: Iterable[str]) -> Rows:
    """Reads rows without the stream's first line. Raises `RunError` for anything else."""
    found: dict[str, list[list[str]]] = {"flash": [], "vfs": [], "func": []}
    values: list[tuple[int, str, int]] = []
    info: dict[str, str] = {}
    ecc: tuple[int, int, int] | None = None
    numbers: dict[str, int] = {}
    for line in lines:
        word, *fields = line.split(" ")
        try:
            if word in found:
                found[word].append(fields)
            elif word == "value":
                values.append((int(fields[0]), fields[1], int(fields[2])))
            elif word == "info":
                info[fields[0]] = " ".join(fields[1:])
            elif word == "ecc":
                corrected, failed, bad = map(int, fields)
                ecc = corrected, failed, bad
            elif word in ("lost", "end"):
                (number,) = fields
                if number != "-":
                    numbers[word] = int(number)
            else:
                raise ValueError(word)
        except (ValueError, IndexError):
            raise RunError(f"no row of {HEADER}: {line[:80]!r}") from None
    return Rows(
        flash=_frame(found["flash"], _FLASH_ROW, "flash"),
        vfs=_named(_frame(found["vfs"], _VFS_ROW, "vfs")),
        functions=_frame(found["func"], _FUNCTION_ROW, "functions"),
        values=tuple(values),
        info=info,
        ecc=ecc,
        lost=numbers.get("lost"),
        status=numbers.get("end"),
    )


def _frame(rows: list[list[str]], names: tuple[str, ...], table: str) -> pl.DataFrame:
    """A table of rows, sorted by begin; `-` is null."""
    schema = {
        name: kind for name, kind in SCHEMAS[table].items() if name not in ("case_id", "target")
    }
    if any(len(row) != len(names) for row in rows):
        raise RunError(f"no row of {HEADER}: a {table} row with too few or too many fields")
    try:
        read = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row").select(
            pl.col(name).replace("-", None).cast(kind)
            for name, kind in schema.items()
            if name in names
        )
    except pl.exceptions.PolarsError:
        raise RunError(f"no row of {HEADER}: a {table} row that is no such row") from None
    return read.select(
        (pl.col(name) if name in names else pl.lit(None, kind)).alias(name)
        for name, kind in schema.items()
    ).sort("start_ns", maintain_order=True)


def _named(vfs: pl.DataFrame) -> pl.DataFrame:
    """Names rows that have an inode only: by the name used last before them, or else next."""
    known = pl.coalesce("file", pl.col("file").forward_fill(), pl.col("file").backward_fill())
    named = pl.when(pl.col("inode").is_null()).then("file").otherwise(known.over("inode"))
    return vfs.with_columns(named.alias("file"))
