"""Cases' power over time as a figure draws it, next to a measured recording.

A case is sampled as an instrument would sample it (answers/energy/timeline.py), so that the two
can be compared: milliseconds from the first operation, milliwatts above idle.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from flashbed.answers.analysis.rates import MACHINE
from flashbed.answers.energy.fold import activity
from flashbed.answers.energy.timeline import RAILS, power_over_time, sampled
from flashbed.answers.power.recording import Floats
from flashbed.stack.energy import Energy
from flashbed.stack.names import DEFAULT_WINDOW

__all__ = ["POWER_COLUMNS", "measured_points", "power_points"]

SAMPLES = 600
"""Samples of a case: as many as a panel can show."""
_AROUND = 0.04
"""Idle time drawn before and after, as a share of the load."""
POWER_COLUMNS = {
    "target": pl.String, "machine": pl.String, "fs": pl.String, "rail": pl.String,
    "line": pl.String, "time_ms": pl.Float64, "value": pl.Float64,
}  # fmt: skip


def power_points(
    cases: pl.DataFrame,
    requests: pl.DataFrame | pl.LazyFrame,
    *,
    flash: pl.DataFrame | pl.LazyFrame | None,
    boards: Mapping[str, Energy | None],
    convention: str,
    given_activity: str | None = None,
) -> pl.DataFrame:
    """POWER_COLUMNS of every case with known power; `line` says what differs between cases."""
    key = ["case_id", "target"]
    axes = [axis for axis in ("kernel", "pattern", "requests", "request_bytes", "seed")
            if cases[axis].n_unique() > 1]  # fmt: skip
    drawn = [pl.DataFrame(schema=POWER_COLUMNS)]
    does = activity(requests).rows_by_key("case_id", unique=True)
    for case in cases.with_columns(MACHINE).to_dicts():
        own = {name: case[name] for name in key}
        steps = power_over_time(
            case,
            given_activity or does.get(case["case_id"], (None,))[0],
            requests=requests.lazy().filter(**own).collect(engine="streaming"),
            flash=pl.DataFrame() if flash is None else flash.lazy().filter(**own).collect(),
            energy=boards.get(case["board"]),
            convention=convention,
        )
        if steps.height:
            drawn.append(_points(steps, case, _line(case, axes)))
    return pl.concat(drawn)


def _line(case: Mapping[str, object], axes: list[str]) -> str:
    """Read-ahead, and what else differs."""
    names = {"requests": "{} requests", "seed": "seed {}", "kernel": "Linux {}",
             "request_bytes": "of {} bytes"}  # fmt: skip
    words = [names.get(axis, "{}").format(case[axis]) for axis in axes]
    ahead = "read-ahead on" if case["read_ahead_kib"] else "read-ahead off"
    return ", ".join(
        [f"{ahead}, the default" if case["window"] == DEFAULT_WINDOW else ahead, *words]
    )


def _points(steps: pl.DataFrame, case: Mapping[str, object], line: str) -> pl.DataFrame:
    """A case's rails with idle around them; each sample is a step from its begin to its end."""
    begin_ns, end_ns = steps["start_ns"].to_numpy().min(), steps["end_ns"].to_numpy().max()
    begin_ns, end_ns = int(begin_ns), int(end_ns)
    step_ns = max(1, (end_ns - begin_ns) // SAMPLES)
    around_ns = max(step_ns, round((end_ns - begin_ns) * _AROUND))
    samples = sampled(steps, step_ns)
    rails = samples["rail"].unique(maintain_order=True)
    idle = pl.DataFrame(
        [(rail, at_ns, 0.0) for rail in rails
         for at_ns in (begin_ns - around_ns, begin_ns - 1, end_ns + 1, end_ns + around_ns)],
        schema=samples.schema, orient="row",
    )  # fmt: skip
    whole = pl.concat([samples, idle]).sort("rail", "time_ns", maintain_order=True)
    return whole.select(
        pl.lit(case["target"]).alias("target"),
        pl.lit(case["machine"]).alias("machine"),
        pl.lit(case["fs"]).alias("fs"),
        pl.col("rail").replace(RAILS),
        pl.lit(line).alias("line"),
        ((pl.col("time_ns") - begin_ns) / 1e6).alias("time_ms"),
        (pl.col("power_uw") / 1e3).alias("value"),
    )


def measured_points(
    like: pl.DataFrame,
    rail: str,
    *,
    name: str,
    time_s: Floats,
    above_idle_w: Floats,
    begin_s: float,
) -> pl.DataFrame:
    """A recording's rail as POWER_COLUMNS, for the panels of `like` with that rail.

    `begin_s` is when its load began. Samples far outside the simulated time are left out, the rest
    is averaged to as many samples.
    """
    drawn_ms = like["time_ms"].to_numpy()
    width_ms = float(np.ptp(drawn_ms))
    time_ms = (time_s - begin_s) * 1e3
    low_ms, high_ms = drawn_ms.min() - width_ms / 10, drawn_ms.max() + width_ms / 10
    inside = (time_ms >= low_ms) & (time_ms <= high_ms)
    near = pl.DataFrame({"time_ms": time_ms[inside], "value": above_idle_w[inside] * 1e3})
    group = max(1, near.height // SAMPLES)
    shown = near.group_by(pl.int_range(pl.len()) // group, maintain_order=True).agg(
        pl.col("time_ms", "value").mean()
    )
    panels = like.filter(pl.col("rail") == RAILS.get(rail, rail)).select("machine", "fs", "rail")
    return panels.unique(maintain_order=True).join(
        shown.select("time_ms", "value"), how="cross"
    ).select(
        pl.lit("measured").alias("target"), "machine", "fs", "rail",
        pl.lit(f"measured: {name}").alias("line"), "time_ms", "value",
    )  # fmt: skip
