"""A trace: its tables and facts, and the folder that keeps it.

The folder has `trace.json` (the facts), `requests`, `flash`, `vfs` and `functions` as Parquet with
the columns of docs/reference/tables.md, and the exports that were requested. A table without rows
was not traced, or nothing happened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import polars as pl
from pydantic import TypeAdapter

from flashbed.base.errors import InputError, RunError
from flashbed.base.files import begun, read_json, whole
from flashbed.base.frames import open_parquet
from flashbed.base.locking import LOCK
from flashbed.base.paths import shown
from flashbed.results.merging import write_parquet
from flashbed.results.plausible import NUMBER_MAX, implausible
from flashbed.results.run_directory import SCHEMAS, conform, empty_table

__all__ = [
    "TABLES",
    "LongTrace",
    "Trace",
    "TraceFacts",
    "TracingCost",
    "empty",
    "facts_of",
    "is_trace",
    "is_written",
    "keep",
    "load",
]

FORMAT = "flashbed-trace-folder 1"
TABLES = ("requests", "flash", "vfs", "functions")
_FACTS = "trace.json"
_UNFINISHED = {LOCK, _FACTS, *(f"{name}.parquet" for name in TABLES)}
"""Files that a process killed while keeping a trace may leave."""


@dataclass(frozen=True)
class TracingCost:
    """The same operations with and without tracers: sums of their latencies."""

    traced_ns: int
    untraced_ns: int

    @property
    def pct(self) -> float:
        """Percent by which tracing slowed them down."""
        return 100 * (self.traced_ns - self.untraced_ns) / self.untraced_ns


@dataclass(frozen=True, kw_only=True)
class TraceFacts:
    """Facts about a trace besides its events."""

    name: str
    """The case, or the command."""
    target: str
    kernel: str | None = None
    fs: str | None = None
    page_bytes: int | None = None
    pages_per_block: int | None = None
    lost: int | None = 0
    """Lost events; None if the trace was cut off."""
    status: int | None = None
    """Exit status of the command."""
    ecc: tuple[int, int, int] | None = None
    info: dict[str, str] = field(default_factory=dict)
    cost: TracingCost | None = None


_CHECKED = TypeAdapter(TraceFacts)
_SIZE_MAX = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What every layer did: tables sorted by begin, with one zero of time."""

    facts: TraceFacts
    requests: pl.DataFrame
    flash: pl.DataFrame
    vfs: pl.DataFrame
    functions: pl.DataFrame

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables by name."""
        return {name: getattr(self, name) for name in TABLES}

    def has(self, name: str) -> bool:
        """Whether a table has rows."""
        return self.tables[name].height > 0

    def lazy(self, name: str) -> pl.LazyFrame:
        """A table as a lazy frame, however long it is."""
        return self.tables[name].lazy()


@dataclass(frozen=True, kw_only=True)
class LongTrace(Trace):
    """A trace with tables too long for memory; those are in files, not in its fields."""

    long: Mapping[str, pl.LazyFrame] = field(default_factory=dict)
    keeps: object = None
    """Objects that own the files."""

    def has(self, name: str) -> bool:
        """See `Trace.has`."""
        return name in self.long or super().has(name)

    def lazy(self, name: str) -> pl.LazyFrame:
        """See `Trace.lazy`."""
        return self.long[name] if name in self.long else super().lazy(name)


def is_trace(directory: Path) -> bool:
    """Whether the folder holds a trace."""
    return (directory / _FACTS).is_file()


def is_written(name: str) -> bool:
    """Whether `keep` writes or replaces what has this name in a trace's folder."""
    return (begun(name) or name) in _UNFINISHED


def keep(trace: Trace, directory: Path) -> None:
    """Writes the folder. Raises `InputError` if it holds something else."""
    try:
        found = [path.name for path in directory.iterdir()] if directory.is_dir() else []
        there = [begun(name) or name for name in found]
        if not is_trace(directory) and not _UNFINISHED.issuperset(there):
            raise InputError(f"{shown(directory)}: not empty, and not a trace")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _FACTS).unlink(missing_ok=True)  # no valid trace until all is written
        for name, frame in trace.tables.items():
            long = trace.long if isinstance(trace, LongTrace) else {}
            write_parquet(long.get(name, frame.pipe(conform, name)), directory / f"{name}.parquet")
        facts = {"format": FORMAT, **asdict(trace.facts)}
        with whole(directory / _FACTS) as new:
            new.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    except OSError as why:
        raise RunError(f"{shown(directory)}: {why.strerror}") from None


def load(directory: Path) -> Trace:
    """Reads the folder. Raises `InputError`."""
    facts = facts_of(directory)
    tables, long = {}, {}
    for name in TABLES:
        try:
            found = open_parquet(directory / f"{name}.parquet")
            if isinstance(found, pl.LazyFrame):
                tables[name], long[name] = empty_table(name), conform(found, name)
            else:
                tables[name] = conform(found, name)
            odd = implausible(long.get(name, tables[name].lazy()).drop("case_id", "target"), name)
        except (OSError, ValueError, pl.exceptions.PolarsError):
            raise _no_trace(directory) from None
        if odd:
            raise InputError(f"{shown(directory)}: {name}: {odd}")
    return LongTrace(facts=facts, **tables, long=long) if long else Trace(facts=facts, **tables)


def facts_of(directory: Path) -> TraceFacts:
    """The facts of the trace in a folder, without its tables. Raises `InputError`."""
    try:
        given = read_json(directory / _FACTS)
        if given.pop("format") != FORMAT or set(given) - {one.name for one in fields(TraceFacts)}:
            raise ValueError
        facts = _CHECKED.validate_json(json.dumps(given), strict=True)
    except (OSError, ValueError, KeyError, TypeError):
        raise _no_trace(directory) from None
    if not _possible(facts):
        raise _no_trace(directory)
    return facts


def _possible(facts: TraceFacts) -> bool:
    """Whether a trace can have these facts: the file may be a stranger's."""
    cost = facts.cost
    sizes = (facts.page_bytes, facts.pages_per_block)
    counts = (facts.lost, *(facts.ecc or ()), *((cost.traced_ns,) if cost else ()))
    return (
        all(size is None or 0 < size <= _SIZE_MAX for size in sizes)
        and all(count is None or 0 <= count <= NUMBER_MAX for count in counts)
        and (cost is None or 0 < cost.untraced_ns <= NUMBER_MAX)
        and (facts.status is None or abs(facts.status) <= NUMBER_MAX)
    )


def _no_trace(directory: Path) -> InputError:
    return InputError(f"{shown(directory)}: not a trace, or one of another version")


def empty(table: str) -> pl.DataFrame:
    """A table without rows."""
    return pl.DataFrame(schema=SCHEMAS[table])
