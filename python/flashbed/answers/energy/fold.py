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

Left out of `component`: an operation on part of a page takes as much as one on a whole page.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from flashbed.stack.changes import AS_PROFILED_WORDS
from flashbed.stack.energy import ComponentConstants, Energy, RailPower, SupplyPower

__all__ = [
    "ACCESSES", "COMPONENTS", "CONVENTIONS", "ENERGY_COLUMNS", "RAILS", "activity", "energy_of",
    "power_row",
]  # fmt: skip

COMPONENTS = {
    "component_cpu_busy_nj": "CPU outside the driver",
    "component_cpu_driver_nj": "CPU in the driver",
    "component_memory_nj": "memory",
    "component_flash_read_nj": "flash reads",
    "component_flash_program_nj": "flash programs",
    "component_flash_erase_nj": "flash erases",
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

_READING = frozenset({"open", "close", "read", "fadvise", "pause", "drop_caches"})
_COMPUTING = frozenset({"compute", "sql"})
_KINDS = ("read", "program", "erase")
_WITHOUT_COPY = "mtd-driver"
"""Reads and writes below the file system; no byte of them reaches the program."""


def activity(requests: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """case_id -> `activity`: read, write, or null if the case also computes.

    A case that only reads is `read`; one that changes anything is `write`. Only an experiment can
    state `select` (`[experiment] activity`).
    """
    op = pl.col("op")
    cases = requests.lazy().group_by("case_id", maintain_order=True)
    return cases.agg(
        pl.when(op.is_in(_COMPUTING).any() | (op == "pause").all())
        .then(pl.lit(None, pl.String))
        .when(op.is_in(_READING).all())
        .then(pl.lit("read"))
        .otherwise(pl.lit("write"))
        .alias("activity"),
        ((op == "pause") & (pl.col("flash_time_ns").fill_null(0) > 0)).any().alias("_background"),
    ).collect(engine="streaming")


def power_row(
    energy: Energy | None, activity: str | None, *, fs: str, pattern: str, read_ahead_kib: int
) -> RailPower | SupplyPower | None:
    """The most specific matching row of the profile.

    A row of `random` holds for every random order, such as `random-byte`.
    """
    table = energy and (energy.paper or energy.supply)
    if not table or activity is None:
        return None
    order = "random" if pattern.startswith("random-") else pattern
    case = (activity, fs, order, "on" if read_ahead_kib else "off")
    holding: list[RailPower | SupplyPower] = [
        row
        for row in table.power
        if all(mine in (None, its) for mine, its in zip(row.condition, case, strict=True))
    ]
    # Two rows cannot be equally specific with the same keys, so the earlier key decides.
    return max(
        holding, key=lambda row: (sum(map(bool, row.condition)), [*map(bool, row.condition)]),
        default=None,
    )  # fmt: skip


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
    energies = [
        {"case_id": case["case_id"], **_paper(case, constants), **_component(case, constants)}
        for case in known.to_dicts()
        for constants in [_constants(case, boards)]
    ]
    kinds = dict.fromkeys(ENERGY_COLUMNS, pl.Int64()) | {"energy_convention": pl.String()}
    return pl.DataFrame(energies, schema={"case_id": pl.String(), **kinds})


def _constants(case: dict[str, Any], boards: dict[str, Energy | None]) -> Energy | None:
    """The constants of the case's board; None if its chip is changed."""
    as_profiled = all(case.get(axis) in (None, usual) for axis, usual in AS_PROFILED_WORDS.items())
    return boards.get(case["board"]) if as_profiled else None


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
        spans = begun.filter(changes.fill_null(value=True)).collect(engine="streaming")
        counts = _by_kind(flash.filter(own), spans.sort("start_ns", maintain_order=True))
        if counts:
            found.append((case_id, *(counts.get((kind, True), 0) for kind in _KINDS)))
    columns = {f"_paused_{kind}s": pl.Int64 for kind in _KINDS}
    return pl.DataFrame(found, schema={"case_id": pl.String, **columns}, orient="row")


def _by_kind(flash: pl.LazyFrame, spans: pl.DataFrame) -> dict[tuple[str, bool | None], int]:
    """Counts flash operations by kind, and by whether they began in a span that is `paused`."""
    key = ("kind", "paused")

    def counted(piece: pl.DataFrame) -> pl.DataFrame:
        begun = piece.sort("start_ns").join_asof(spans, on="start_ns", strategy="backward")
        return begun.group_by(key).agg(pl.len().cast(pl.Int64))

    columns = {"kind": pl.String(), "paused": pl.Boolean(), "len": pl.Int64()}
    pieces = flash.select("kind", pl.col("start_ns").cast(pl.Int64)).map_batches(
        counted, streamable=True, schema=columns
    )
    sums = pieces.group_by(key).agg(pl.col("len").sum()).collect(engine="streaming")
    return {(kind, paused): number for kind, paused, number in sums.iter_rows()}


def _paper(case: dict[str, Any], energy: Energy | None) -> dict[str, str | int]:
    """Time times power; empty if either is unknown."""
    time_ns = case["time_ns"]
    row = power_row(
        energy,
        case["activity"],
        fs=case["fs"],
        pattern=case["pattern"],
        read_ahead_kib=case["read_ahead_kib"],
    )
    if row is None or time_ns is None:
        return {}
    if isinstance(row, SupplyPower):
        return {"energy_convention": "supply", "energy_nj": _nj(time_ns, row.supply_uw)}
    cpu_nj, mem_nj = _nj(time_ns, row.cpu_uw), _nj(time_ns, row.mem_uw)
    return {
        "energy_convention": "paper",
        "energy_nj": cpu_nj + mem_nj,
        "energy_cpu_nj": cpu_nj,
        "energy_mem_nj": mem_nj,
    }


def _nj(time_ns: int, power_uw: int) -> int:
    """Nanojoules; 1 ns at 1 uW is a millionth of a nanojoule."""
    return (time_ns * power_uw + 500_000) // 1_000_000


def _component(case: dict[str, Any], energy: Energy | None) -> dict[str, int | None]:
    constants = energy and energy.component
    if not constants:
        return {}
    counts = {kind: case[f"flash_{kind}s"] for kind in _KINDS}
    each = {
        "driver": _each(constants, "driver", "nj", counts),
        "bus": _each(constants, "bus", "nj", {kind: counts[kind] for kind in _KINDS[:2]}),
        **{kind: _each(constants, "flash", "nj", {kind: counts[kind]}) for kind in _KINDS},
    }
    busy_ns = _busy_ns(case, constants, counts)
    return {
        "component_cpu_busy_nj": _busy_nj(constants.cpu_busy_uw, busy_ns),
        "component_cpu_driver_nj": each["driver"],
        "component_memory_nj": _memory_nj(case, constants, busy_ns),
        **{f"component_flash_{kind}_nj": each[kind] for kind in _KINDS},
        "component_bus_nj": each["bus"],
    }


def _times(constant: int | None, count: int | None) -> int | None:
    """A price times a count: 0 if the count is 0, else null unless both are known."""
    if count == 0:
        return 0
    return None if constant is None or count is None else constant * count


def _each(
    constants: ComponentConstants, part: str, unit: str, counts: dict[str, Any]
) -> int | None:
    """The sum over kinds of operations."""
    values = [
        _times(getattr(constants, f"{part}_{kind}_{unit}"), count) for kind, count in counts.items()
    ]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _memory_nj(
    case: dict[str, Any], constants: ComponentConstants, busy_ns: int | None
) -> int | None:
    """Energy of memory: the CPU's work outside the driver, and bytes of the program."""
    copied = 0 if case["fs"] == _WITHOUT_COPY else case["bytes"]
    moved_pj, worked_nj = (
        _times(constants.memory_byte_pj, copied),
        _busy_nj(constants.memory_busy_uw, busy_ns),
    )
    if moved_pj is None or worked_nj is None:
        return None
    return worked_nj + (moved_pj + 500) // 1000


def _busy_nj(power_uw: int | None, busy_ns: int | None) -> int | None:
    """What this power makes of the CPU's time outside the driver."""
    if busy_ns == 0:
        return 0
    return None if power_uw is None or busy_ns is None else _nj(busy_ns, power_uw)


def _busy_ns(
    case: dict[str, Any], constants: ComponentConstants, counts: dict[str, Any]
) -> int | None:
    """The CPU's time outside the driver; null where it is unknown."""
    time_ns = case["time_ns"]
    if case["_background"]:
        paused = {kind: case.get(f"_paused_{kind}s") for kind in counts}
        if None in (*paused.values(), *counts.values()):
            return None
        counts = {kind: count - paused[kind] for kind, count in counts.items()}
    driver_ns = _each(constants, "driver", "ns", counts)
    if driver_ns is None or time_ns is None or driver_ns > time_ns:
        return None
    return int(time_ns - driver_ns)
