"""The columns of every table (docs/reference/tables.md), and frames with exactly these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import polars as pl

from flashbed.plan.case import AXIS_COLUMNS

__all__ = ["SCHEMAS", "TABLES", "WAITS", "conform", "conforming", "empty_table"]

_TEXT = pl.String()
_WHOLE = pl.Int64()
_REAL = pl.Float64()

WAITS = (
    "own_flash_ns", "write_back_ns", "read_ahead_ns", "commit_ns", "collection_ns",
    "wear_levelling_ns", "erase_ns",
)  # fmt: skip
"""Columns of `requests` that say what each waited for; only the simulator knows them."""
SCHEMAS: dict[str, dict[str, pl.DataType]] = {
    "cases": {
        "case_id": _TEXT,
        "experiment": _TEXT,
        "target": _TEXT,
        **{axis: _WHOLE if kind is int else _TEXT for axis, kind in AXIS_COLUMNS.items()},
        "state_valid": _REAL,
        "state_invalid": _REAL,
        "time_ns": _WHOLE,
        "time_unknown": _TEXT,
        "flash_time_ns": _WHOLE,
        "elapsed_ns": _WHOLE,
        "bytes": _WHOLE,
        "bytes_written": _WHOLE,
        "failed": _WHOLE,
        "failed_errno": _TEXT,
        "flash_reads": _WHOLE,
        "flash_programs": _WHOLE,
        "flash_erases": _WHOLE,
        "bytes_data": _WHOLE,
        "bytes_metadata": _WHOLE,
        "bytes_padding": _WHOLE,
        "bytes_collection": _WHOLE,
        "bytes_wear_levelling": _WHOLE,
        "flush_reads": _WHOLE,
        "flush_programs": _WHOLE,
        "flush_erases": _WHOLE,
        "flush_bytes_data": _WHOLE,
        "flush_bytes_metadata": _WHOLE,
        "flush_bytes_padding": _WHOLE,
        "flush_bytes_collection": _WHOLE,
        "flush_bytes_wear_levelling": _WHOLE,
        "left_bytes": _WHOLE,
        "cache_hits": _WHOLE,
        "cache_misses": _WHOLE,
        "cache_adds": _WHOLE,
        "energy_convention": _TEXT,
        "energy_nj": _WHOLE,
        "energy_cpu_nj": _WHOLE,
        "energy_mem_nj": _WHOLE,
        "component_cpu_busy_nj": _WHOLE,
        "component_cpu_driver_nj": _WHOLE,
        "component_memory_nj": _WHOLE,
        "component_flash_read_nj": _WHOLE,
        "component_flash_program_nj": _WHOLE,
        "component_flash_erase_nj": _WHOLE,
        "component_bus_nj": _WHOLE,
        "erase_count_max": _WHOLE,
        "erase_count_mean": _REAL,
        "bad_blocks": _WHOLE,
        "ecc_corrected": _WHOLE,
        "ecc_failed": _WHOLE,
        "flashbed_version": _TEXT,
        "commit": _TEXT,
        "board_sha256": _TEXT,
        "kernel_sha256": _TEXT,
        "experiment_sha256": _TEXT,
        "kernel_release": _TEXT,
    },
    "requests": {
        "case_id": _TEXT,
        "target": _TEXT,
        "seq": _WHOLE,
        "op": _TEXT,
        "file": _TEXT,
        "offset_bytes": _WHOLE,
        "length_bytes": _WHOLE,
        "start_ns": _WHOLE,
        "latency_ns": _WHOLE,
        "flash_time_ns": _WHOLE,
        "result": _WHOLE,
        "content_crc32": _WHOLE,
        "changes": _WHOLE,
        "statement_kind": _TEXT,
        "error": _TEXT,
        **dict.fromkeys(WAITS, _WHOLE),
    },
    "flash": {
        "case_id": _TEXT,
        "target": _TEXT,
        "seq": _WHOLE,
        "start_ns": _WHOLE,
        "kind": _TEXT,
        "block": _WHOLE,
        "page": _WHOLE,
        "offset_bytes": _WHOLE,
        "length_bytes": _WHOLE,
        "task": _TEXT,
        "duration_ns": _WHOLE,
    },
    "vfs": {
        "case_id": _TEXT,
        "target": _TEXT,
        "start_ns": _WHOLE,
        "duration_ns": _WHOLE,
        "kind": _TEXT,
        "file": _TEXT,
        "inode": _WHOLE,
        "offset_bytes": _WHOLE,
        "length_bytes": _WHOLE,
        "result": _WHOLE,
        "task": _TEXT,
    },
    "functions": {
        "case_id": _TEXT,
        "target": _TEXT,
        "function": _TEXT,
        "start_ns": _WHOLE,
        "duration_ns": _WHOLE,
        "result": _WHOLE,
        "task": _TEXT,
    },
    "wear": {
        "case_id": _TEXT,
        "target": _TEXT,
        "block": _WHOLE,
        "erases": _WHOLE,
        "erases_measured": _WHOLE,
        "state": _TEXT,
        "erases_flush": _WHOLE,
    },
    "not_measured": {
        "case_id": _TEXT,
        "target": _TEXT,
        "reason": _TEXT,
    },
    "power_cuts": {
        "case_id": _TEXT,
        "target": _TEXT,
        "change": _WHOLE,
        "acknowledged_files": _WHOLE,
        "kept_files": _WHOLE,
        "lost_files": _WHOLE,
        "mounted": pl.Boolean(),
        "mount_time_ns": _WHOLE,
        "verdict": _TEXT,
        "reason": _TEXT,
        "lost_transactions": _WHOLE,
        "program_files": _WHOLE,
        "damaged_files": _WHOLE,
    },
    "cut_files": {
        "case_id": _TEXT,
        "target": _TEXT,
        "change": _WHOLE,
        "file": _TEXT,
        "state": _TEXT,
        "lost_ns": _WHOLE,
        "kept_by": _TEXT,
    },
}
"""Columns of each table, in order."""

TABLES = tuple(SCHEMAS)
Rows = TypeVar("Rows", pl.DataFrame, pl.LazyFrame)


def conform(frame: Rows, table: str) -> Rows:
    """A frame with exactly the columns of a table; missing ones are null.

    Raises `ValueError` if the frame has a column that the table does not have.
    """
    return frame.select(conforming(frame.collect_schema().names(), table))


def conforming(columns: Sequence[str], table: str) -> list[pl.Expr]:
    """What makes exactly the columns of a table of these columns; see `conform`."""
    schema = SCHEMAS[table]
    unknown = [column for column in columns if column not in schema]
    if unknown:
        raise ValueError(f"table {table} has no column {unknown[0]}")
    return [
        (pl.col(column).cast(kind) if column in columns else pl.lit(None, kind)).alias(column)
        for column, kind in schema.items()
    ]


def empty_table(table: str) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=SCHEMAS[table])
