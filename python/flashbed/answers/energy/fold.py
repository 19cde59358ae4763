"""The energy of cases above idle, computed from their recorded tables.

Convention `paper` (or `supply`): E = t x P. t is the time of the case without pauses, P the mean
power of its row in the board's profile (read-ahead paper 2014, section 4.2). Convention
`component`: each component's work times its price (methodology slides 2015). The two rest on
different measurements and differ; nothing adds them up.

Invariants: 1. A column is null if anything it needs is unknown: the time (user-mode Linux), a row,
a constant. 2. What did not happen takes 0, whether its constant is known or not. 3. Integers in,
integers out: nanojoules, each column rounded once.

The time of a case excludes its pauses. If the chip worked in a pause, only a flash trace shows
which operations belong to the case's CPU time; without one, that CPU time's energy is null.

common/src/energy.rs has the arithmetic of a case, which the playground has too. Left out of
`component`: an operation on part of a page takes as much as one on a whole page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from flashbed import _sim
from flashbed.stack.changes import AS_PROFILED_WORDS
from flashbed.stack.energy import Energy, RailPower, SupplyPower

__all__ = [
    "ACCESSES", "COMPONENTS", "CONVENTIONS", "ENERGY_COLUMNS", "RAILS", "activity", "energy_of",
    "power_row",
]  # fmt: skip

COMPONENTS = {
    "component_cpu_busy_nj": "CPU outside the driver",
    "component_cpu_driver_nj": "CPU in the driver",
    "component_memory_nj": "memory",
    "component_flash_read_nj": "page reads",
    "component_flash_program_nj": "page writes",
    "component_flash_erase_nj": "erases",
    "component_bus_nj": "bus",
}
"""Columns of convention `component` -> component. Their sum is the case's energy."""
RAILS = {
    "cpu": ("component_cpu_busy_nj", "component_cpu_driver_nj"),
    "mem": tuple(name for name in COMPONENTS if "cpu" not in name),
    "flash": tuple(name for name in COMPONENTS if name.startswith("component_flash_")),
}
"""Rail -> columns: the CPU's, that of RAM and flash, and the chip's array alone."""
ACCESSES = tuple(name for name in COMPONENTS if "busy" not in name and "memory" not in name)
"""Columns of an access to the flash: the driver's CPU, the chip and the bus."""
CONVENTIONS = ("paper", "supply")
"""Values of `energy_convention`, that of `energy_nj`, `energy_cpu_nj` and `energy_mem_nj`."""
ENERGY_COLUMNS = ("energy_convention", "energy_nj", "energy_cpu_nj", "energy_mem_nj", *COMPONENTS)

_KINDS = ("read", "program", "erase")


def activity(requests: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """case_id -> `activity`: read, write, or null if the case also computes.

    A case that only reads is `read`; one that changes anything is `write`. Only an experiment can
    state `select` (`[experiment] activity`).
    """
    op = pl.col("op")
    works = (op == "pause") & (pl.col("flash_time_ns").fill_null(0) > 0)
    cases = requests.lazy().group_by("case_id", maintain_order=True)
    found = cases.agg(op.unique().alias("ops"), works.any().alias("_background"))
    known = found.collect(engine="streaming")
    does = pl.Series("activity", [_sim.activity(ops) for ops in known["ops"]], pl.String())
    return known.select("case_id", does, "_background")


def power_row(
    energy: Energy | None, activity: str | None, *, fs: str, pattern: str, read_ahead_kib: int
) -> RailPower | SupplyPower | None:
    """The most specific matching row of the profile.

    A row of `random` holds for every random order, such as `random-byte`.
    """
    if energy is None:
        return None
    row = _read(energy).power_row(
        activity=activity, fs=fs, pattern=pattern, read_ahead_kib=read_ahead_kib or 0
    )
    return None if row is None else energy.power[row]


def _read(energy: Energy) -> _sim.EnergyConstants:
    return _sim.EnergyConstants(json.dumps(energy.numbers))


def energy_of(
    cases: pl.DataFrame,
    requests: pl.DataFrame | pl.LazyFrame,
    *,
    boards: dict[str, Energy | None],
    given_activity: str | None = None,
    flash: pl.DataFrame | pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """A row for each case, in order: case_id and ENERGY_COLUMNS.

    `cases` has case_id, board, fs, pattern, read_ahead_kib and the measured columns; `requests` has
    op and flash_time_ns; `given_activity` is what an experiment states; `flash` is the trace of the
    traced cases.
    """
    wanted = ("time_ns", "bytes", *(f"flash_{kind}s" for kind in _KINDS))
    absent = [pl.lit(None, pl.Int64).alias(name) for name in wanted if name not in cases.columns]
    rows = requests.lazy()
    if not rows.collect_schema().len():  # no case had an operation
        rows = pl.LazyFrame(schema={"case_id": pl.String, "op": pl.String})
    if "flash_time_ns" not in rows.collect_schema():
        rows = rows.with_columns(pl.lit(None, pl.Int64).alias("flash_time_ns"))
    known = cases.with_columns(absent).join(
        activity(rows), on="case_id", how="left", maintain_order="left"
    )
    if given_activity:
        known = known.with_columns(pl.lit(given_activity).alias("activity"))
    working = known.filter("_background")["case_id"].to_list()
    if flash is not None and working:
        counted = _in_pauses(rows, flash.lazy(), working)
        known = known.join(counted, on="case_id", how="left", maintain_order="left")
    read = {name: _read(energy) for name, energy in boards.items() if energy}
    energies = [{"case_id": case["case_id"], **_energies(case, read)} for case in known.to_dicts()]
    kinds = dict.fromkeys(ENERGY_COLUMNS, pl.Int64()) | {"energy_convention": pl.String()}
    return pl.DataFrame(energies, schema={"case_id": pl.String(), **kinds})


def _energies(
    case: dict[str, Any], boards: Mapping[str, _sim.EnergyConstants]
) -> dict[str, str | int | None]:
    """The energies by the constants of the case's board; none if its chip is changed."""
    as_profiled = all(case.get(axis) in (None, usual) for axis, usual in AS_PROFILED_WORDS.items())
    constants = boards.get(case["board"]) if as_profiled else None
    if constants is None:
        return {}
    reads, programs, erases = (
        case.get(f"_paused_{kind}s") if case["_background"] else 0 for kind in _KINDS
    )
    return constants.energies(
        activity=case["activity"],
        fs=case["fs"],
        pattern=case["pattern"],
        read_ahead_kib=case["read_ahead_kib"] or 0,
        time_ns=case["time_ns"],
        moved_bytes=case["bytes"],
        done=(case["flash_reads"], case["flash_programs"], case["flash_erases"]),
        in_pauses=(reads, programs, erases),
    )


def _in_pauses(rows: pl.LazyFrame, flash: pl.LazyFrame, case_ids: list[str]) -> pl.DataFrame:
    """case_id -> `_paused_reads`, ...: operations that began in a pause, of traced cases.

    Only the pauses, and the begin of the operation after each, are held in memory.
    """
    if not flash.collect_schema().len():
        return pl.DataFrame(schema={"case_id": pl.String})
    found = []
    for case_id in case_ids:
        own = pl.col("case_id") == case_id
        is_pause = (pl.col("op") == "pause").alias("paused")
        begun = rows.filter(own).select(pl.col("start_ns").cast(pl.Int64), is_pause)
        changes = pl.col("paused") != pl.col("paused").shift(1)
        calls = begun.filter(changes.fill_null(value=True)).collect(engine="streaming")
        pauses = _sim.Stretches(calls.sort("start_ns", maintain_order=True).rows())
        counts = _by_kind(flash.filter(own), pauses)
        if counts is not None:
            found.append((case_id, *counts))
    columns = {f"_paused_{kind}s": pl.Int64 for kind in _KINDS}
    return pl.DataFrame(found, schema={"case_id": pl.String, **columns}, orient="row")


def _by_kind(flash: pl.LazyFrame, pauses: _sim.Stretches) -> tuple[int, ...] | None:
    """Operations of each kind that began in a pause, piece by piece; None if there is no trace."""
    columns = dict.fromkeys((*_KINDS, "all"), pl.Int64())
    codes = {kind: code for code, kind in enumerate(_KINDS)}

    def counted(piece: pl.DataFrame) -> pl.DataFrame:
        kinds = piece["kind"].replace_strict(codes, return_dtype=pl.UInt8)
        begun = (piece["start_ns"].to_numpy().tobytes(), kinds.to_numpy().tobytes())
        row = (*pauses.in_pauses(*begun), piece.height)
        return pl.DataFrame([row], schema=columns, orient="row")

    pieces = flash.select("kind", pl.col("start_ns").cast(pl.Int64)).map_batches(
        counted, streamable=True, schema=columns
    )
    *found, traced = pieces.sum().collect(engine="streaming").row(0)
    return tuple(found) if traced else None
