"""A trace: its tables and facts, and the folder it is kept in.

The folder has `trace.json` (the facts), `requests`, `flash`, `vfs` and `functions` as Parquet, with
the columns of docs/formats.md, and what was asked to be written beside them. A table without rows
was not traced, or there was nothing.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import polars as pl

from flashbed.errors import InputError, RunError
from flashbed.locking import LOCK
from flashbed.places import shown
from flashbed.tables import SCHEMAS, conform

__all__ = ["TABLES", "Cost", "Facts", "Trace", "empty", "is_trace", "keep", "load"]

FORMAT = "flashbed-trace-folder 1"
TABLES = ("requests", "flash", "vfs", "functions")
_FACTS = "trace.json"
_UNFINISHED = {LOCK, f".{_FACTS}", *(f"{name}.parquet" for name in TABLES)}
"""What a process that was killed while it kept a trace may leave."""


@dataclass(frozen=True)
class Cost:
    """The same operations with and without tracers: the sums of their latencies."""

    traced_ns: int
    untraced_ns: int

    @property
    def pct(self) -> float:
        """How much longer they took when traced."""
        return 100 * (self.traced_ns - self.untraced_ns) / self.untraced_ns


@dataclass(frozen=True)
class Facts:
    """What is known of a trace beside its events."""

    name: str
    """The case, or the command."""
    target: str
    kernel: str | None = None
    fs: str | None = None
    page_bytes: int | None = None
    pages_per_block: int | None = None
    lost: int | None = 0
    """Events; None if the trace was cut off."""
    status: int | None = None
    """The command's."""
    ecc: tuple[int, int, int] | None = None
    info: dict[str, str] = field(default_factory=dict)
    cost: Cost | None = None


@dataclass(frozen=True)
class Trace:
    """What every layer did, each table in the order in which things began, times from one zero."""

    facts: Facts
    requests: pl.DataFrame
    flash: pl.DataFrame
    vfs: pl.DataFrame
    functions: pl.DataFrame

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """By name."""
        return {name: getattr(self, name) for name in TABLES}


def is_trace(directory: Path) -> bool:
    """Whether a trace is kept there."""
    return (directory / _FACTS).is_file()


def keep(trace: Trace, directory: Path) -> None:
    """Writes the folder. Raises `InputError` if it holds something else."""
    try:
        there = [found.name for found in directory.iterdir()] if directory.is_dir() else []
        if not is_trace(directory) and not _UNFINISHED.issuperset(there):
            raise InputError(f"{shown(directory)}: not empty, and not a trace")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _FACTS).unlink(missing_ok=True)  # no trace until all of it is there
        for name, frame in trace.tables.items():
            conform(frame, name).write_parquet(
                directory / f"{name}.parquet", compression="zstd", compression_level=1
            )
        facts = {"format": FORMAT, **asdict(trace.facts)}
        part = directory / f".{_FACTS}"
        part.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        part.replace(directory / _FACTS)
    except OSError as why:
        raise RunError(f"{shown(directory)}: {why.strerror}") from None


def load(directory: Path) -> Trace:
    """Reads the folder. Raises `InputError`."""
    try:
        facts = json.loads((directory / _FACTS).read_text(encoding="utf-8"))
        if facts.pop("format") != FORMAT:
            raise ValueError
        cost = facts.pop("cost")
        ecc = facts.pop("ecc")
        known = Facts(**facts, ecc=tuple(ecc) if ecc else None, cost=Cost(**cost) if cost else None)
        tables = {
            name: conform(pl.read_parquet(directory / f"{name}.parquet"), name) for name in TABLES
        }
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        raise InputError(f"{shown(directory)}: not a trace, or one of another version") from None
    return Trace(known, **tables)


def empty(table: str) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=SCHEMAS[table])
