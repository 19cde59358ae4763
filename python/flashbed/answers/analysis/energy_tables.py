"""Mean energies of a run's cases by target and board, and reasons for unknown ones.

The two conventions stay in separate columns and are never added up (answers/energy/fold.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from flashbed.answers.analysis.measures import COMPONENT_NJ
from flashbed.answers.energy.fold import COMPONENTS
from flashbed.stack.energy import Energy

__all__ = ["energy_gaps", "energy_summary"]

_STACK = ["target", "board", "kernel", "fs"]
_MJ = 1e6


def energy_summary(cases: pl.DataFrame) -> list[dict[str, Any]]:
    """A row for each target, board, kernel and file system with any energy known, in order.

    For convention `paper` or `supply` (`convention`): `known` cases, and their means `energy_mj`,
    `energy_cpu_mj`, `energy_mem_mj`. For `component`: `component_known`, `component_mj` and
    `parts`, the means of COMPONENTS.
    """
    rails = ("energy", "energy_cpu", "energy_mem")
    whole = cases.with_columns(COMPONENT_NJ.alias("component_nj"))
    all_parts = pl.col("component_nj").is_not_null()
    rows = (
        whole.group_by(_STACK, maintain_order=True)
        .agg(
            pl.len().alias("cases"),
            pl.col("energy_convention").drop_nulls().first().alias("convention"),
            pl.col("energy_nj").count().alias("known"),
            *((pl.col(f"{name}_nj").mean() / _MJ).alias(f"{name}_mj") for name in rails),
            pl.col("component_nj").count().alias("component_known"),
            (pl.col("component_nj").mean() / _MJ).alias("component_mj"),
            *((pl.col(name).filter(all_parts).mean() / _MJ).alias(name) for name in COMPONENTS),
        )
        .to_dicts()
    )
    for row in rows:
        row["parts"] = {name: row.pop(name) for name in COMPONENTS}
    return [row for row in rows if row["known"] or row["component_known"]]


def energy_gaps(cases: pl.DataFrame, boards: Mapping[str, Energy | None]) -> list[str]:
    """Which cases have no energy and why: a sentence for each board or file system."""
    gaps: dict[str, None] = {}
    for (board, fs), rows in cases.group_by("board", "fs", maintain_order=True):
        energy = boards.get(str(board))
        timed = rows.filter(pl.col("time_ns").is_not_null())
        if energy is None:
            gaps[f"The profile of board {board} has no [energy]."] = None
            continue
        kinds = {"mean powers": ("energy_nj", energy.paper or energy.supply),
                 "[energy.component]": ("component_cpu_busy_nj", energy.component)}  # fmt: skip
        for name, (column, there) in kinds.items():
            missing = timed[column].null_count()
            if there is None:
                gaps[f"The profile of board {board} has no {name}."] = None
            elif missing:
                of = f"{missing} of {timed.height} cases" if missing < timed.height else "any case"
                gaps[f"The {name} of board {board} do not cover {of} on {fs}."] = None
    untimed = cases.filter(pl.col("time_ns").is_null())["target"].unique().sort().to_list()
    for target in untimed:
        gaps[f"Code takes no time on {target}, so there is no energy."] = None
    return list(gaps)
