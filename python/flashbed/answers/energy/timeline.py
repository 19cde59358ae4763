"""A case's power over time above idle, from its tables: what an instrument would have recorded.

Convention `paper`: the mean power of the case's row while an operation runs, 0 between operations
(read-ahead paper 2014, Figure 5). Convention `component`: the CPU's power while an operation runs,
the driver's during its flash operations, plus chip, bus and memory; that needs the flash trace.
Pauses are idle except for the chip's work in them.

Invariant: the area under a rail is the case's energy in that convention, up to the rounding of the
columns (tests/layers/energy/test_timeline.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from flashbed.answers.energy.fold import power_row
from flashbed.stack.energy import ComponentConstants, Energy, SupplyPower

__all__ = ["RAILS", "power_over_time", "sampled"]

RAILS = {"cpu": "CPU", "mem": "RAM and flash", "supply": "whole supply"}
_KINDS = ("read", "program", "erase")

Box = tuple[str, int, int, float]
"""Rail, begin and end in ns, microwatts."""


def power_over_time(
    case: dict[str, Any],
    activity: str | None,
    *,
    requests: pl.DataFrame,
    flash: pl.DataFrame,
    energy: Energy | None,
    convention: str,
) -> pl.DataFrame:
    """Steps of a case: rail, start_ns, end_ns, power_uw; no rows if something is unknown.

    `case` is its row of `cases`, `requests` and `flash` are its rows; `convention` is `paper` (or
    `supply`) or `component`.
    """
    ran = requests.filter(pl.col("op") != "pause", pl.col("latency_ns").is_not_null())
    boxes: list[Box] = []
    if convention == "component":
        if energy and energy.component:
            boxes = _components(ran, flash, energy.component)
    else:
        row = power_row(
            energy,
            activity,
            fs=case["fs"],
            pattern=case["pattern"],
            read_ahead_kib=case["read_ahead_kib"],
        )
        if row is not None:
            powers = (
                {"supply": row.supply_uw}
                if isinstance(row, SupplyPower)
                else {"cpu": row.cpu_uw, "mem": row.mem_uw}
            )
            for start_ns, latency_ns in ran.select("start_ns", "latency_ns").iter_rows():
                boxes += [(rail, start_ns, start_ns + latency_ns, power_uw)
                          for rail, power_uw in powers.items()]  # fmt: skip
    rails = dict.fromkeys(box[0] for box in boxes)
    steps = [_steps(rail, [box for box in boxes if box[0] == rail]) for rail in rails]
    schema = {"rail": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64, "power_uw": pl.Float64}
    return pl.concat([pl.DataFrame(schema=schema), *steps])


def _components(ran: pl.DataFrame, flash: pl.DataFrame, known: ComponentConstants) -> list[Box]:
    """Boxes of the components' work; none if a needed constant is missing."""
    cpu_busy_uw, memory_busy_uw = known.cpu_busy_uw, known.memory_busy_uw
    if cpu_busy_uw is None or memory_busy_uw is None or known.memory_byte_pj is None:
        return []
    if not flash.height:
        return []
    busy = {"cpu": cpu_busy_uw, "mem": memory_busy_uw}
    boxes: list[Box] = []
    columns = ran.select("start_ns", "latency_ns", "op", "result").iter_rows()
    for start_ns, latency_ns, op, result in columns:
        end_ns = start_ns + latency_ns
        boxes.append(("cpu", start_ns, end_ns, busy["cpu"]))
        boxes.append(("mem", start_ns, end_ns, busy["mem"]))
        moved_bytes = max(0, result or 0) if op in ("read", "write") else 0
        if moved_bytes and latency_ns:
            # 1 pJ in 1 ns is 1 mW.
            moved_uw = moved_bytes * known.memory_byte_pj / latency_ns * 1e3
            boxes.append(("mem", start_ns, end_ns, moved_uw))
    each = {kind: _operation(known, kind) for kind in _KINDS}
    begins = ran["start_ns"].sort().to_numpy()
    ends = (ran["start_ns"] + ran["latency_ns"]).sort().to_numpy()
    for start_ns, kind in flash.select("start_ns", "kind").iter_rows():
        constants = each[kind]
        if constants is None:
            return []
        driver_ns, cpu_uw, mem_uw = constants
        end_ns = start_ns + driver_ns
        running = np.searchsorted(begins, start_ns, "right") > np.searchsorted(
            ends, start_ns, "right"
        )
        for rail, power_uw in (("cpu", cpu_uw), ("mem", mem_uw)):
            # In a pause the CPU runs the driver only.
            boxes.append((rail, start_ns, end_ns, power_uw - (busy[rail] if running else 0)))
    return boxes


def _operation(known: ComponentConstants, kind: str) -> tuple[int, float, float] | None:
    """Time of a driver's operation; its CPU power, and the power of chip and bus, in microwatts."""
    driver_ns = getattr(known, f"driver_{kind}_ns")
    parts = [getattr(known, f"driver_{kind}_nj"), getattr(known, f"flash_{kind}_nj")]
    parts += [0 if kind == "erase" else getattr(known, f"bus_{kind}_nj")]
    if driver_ns is None or None in parts:
        return None
    # 1 nJ in 1 ns is 1 W.
    return driver_ns, parts[0] / driver_ns * 1e6, (parts[1] + parts[2]) / driver_ns * 1e6


def _steps(rail: str, boxes: list[Box]) -> pl.DataFrame:
    """The sum of boxes as steps, from the first edge to the last."""
    changes = pl.DataFrame(
        [(at_ns, change) for _, start_ns, end_ns, uw in boxes
         for at_ns, change in ((start_ns, uw), (end_ns, -uw))],
        schema={"at": pl.Int64, "change": pl.Float64}, orient="row",
    )  # fmt: skip
    edges = changes.group_by("at").agg(pl.col("change").sum()).sort("at")
    return edges.select(
        pl.lit(rail).alias("rail"),
        pl.col("at").alias("start_ns"),
        pl.col("at").shift(-1).alias("end_ns"),
        pl.col("change").cum_sum().alias("power_uw"),
    ).head(-1)


def sampled(steps: pl.DataFrame, step_ns: int) -> pl.DataFrame:
    """The samples of an instrument that averages every `step_ns`: rail, time_ns, power_uw.

    `time_ns` is the middle of a sample. The area equals that of the steps.
    """
    samples = []
    for (rail,), rows in steps.group_by("rail", maintain_order=True):
        begin_ns, last_ns = rows["start_ns"][0], rows["end_ns"][-1]
        count = -(-(last_ns - begin_ns) // step_ns)
        edges_ns = begin_ns + step_ns * np.arange(count + 1)
        times = np.append(rows["start_ns"].to_numpy(), last_ns).astype(np.float64)
        widths = np.diff(times)
        area = np.concatenate([[0.0], np.cumsum(rows["power_uw"].to_numpy() * widths)])
        up_to = np.interp(edges_ns, times, area)
        samples.append(
            pl.DataFrame(
                {
                    "rail": [str(rail)] * count,
                    "time_ns": edges_ns[:-1] + step_ns // 2,
                    "power_uw": np.diff(up_to) / step_ns,
                }
            )
        )
    schema = {"rail": pl.String, "time_ns": pl.Int64, "power_uw": pl.Float64}
    return pl.concat([pl.DataFrame(schema=schema), *samples])
