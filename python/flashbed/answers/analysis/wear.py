"""Wear of every block as a map, and as a row of figures.

A map has a cell for each block, in rows of equal length from the partition's first block on. If
there are more blocks than a screen can show, a cell stands for several and shows the worst of them.
Where erases since the file system was made are unknown (nandsim), those since the mark are shown.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

__all__ = ["CELLS_MAX", "wear_map", "wear_summary"]

CELLS_MAX = 2048
_ROWS = ((512, 32), (CELLS_MAX, 64))
"""Cells of a map at most, and in a row."""
_CASE = ["case_id", "target"]


def wear_map(wear: pl.DataFrame) -> pl.DataFrame:
    """A row for each cell: case_id, target, column, row, blocks (as text), erases, measured, state.

    `row` is the first block of its row. A cell is `bad` if any of its blocks is not good.
    """
    maps = [_cells(rows) for rows in wear.partition_by(_CASE, maintain_order=True)]
    return pl.concat(maps) if maps else pl.DataFrame()


def _cells(rows: pl.DataFrame) -> pl.DataFrame:
    blocks_a_cell = -(-rows.height // CELLS_MAX)
    cells = -(-rows.height // blocks_a_cell)
    width = next(length for most, length in _ROWS if cells <= most)
    place = (pl.col("block") - pl.col("block").min()) // blocks_a_cell
    first, last = pl.col("block").min(), pl.col("block").max()
    worn = pl.coalesce("erases", "erases_measured")
    return (
        rows.with_columns(place.alias("cell"))
        .group_by(*_CASE, "cell", maintain_order=True)
        .agg(
            pl.when(first == last)
            .then(pl.format("{}", first))
            .otherwise(pl.format("{} to {}", first, last))
            .alias("blocks"),
            worn.max().alias("erases"),
            pl.col("erases_measured").max().alias("measured"),
            pl.when((pl.col("state").fill_null("good") != "good").any())
            .then(pl.lit("bad"))
            .otherwise(pl.lit("good"))
            .alias("state"),
        )
        .with_columns(
            (pl.col("cell") % width).alias("column"),
            (pl.col("cell") // width * width * blocks_a_cell + rows["block"].min()).alias("row"),
        )
        .drop("cell")
    )


def wear_summary(
    wear: pl.DataFrame, cases: pl.DataFrame, endurance: Mapping[str, int | None]
) -> pl.DataFrame:
    """A row for each case, in the order of `cases`, over its good blocks.

    Columns: case_id, target, axes, blocks, erased (blocks since the mark), erases_measured (sum),
    worst and mean (as in the map), endurance (by board), and worst_pct of it.
    """
    worn = pl.coalesce("erases", "erases_measured")
    good = wear.filter(pl.col("state").fill_null("good") == "good")
    sums = good.group_by(_CASE, maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("blocks"),
        (pl.col("erases_measured") > 0).sum().cast(pl.Int64).alias("erased"),
        pl.col("erases_measured").sum(),
        worn.max().alias("worst"),
        worn.mean().alias("mean"),
    )
    named = pl.DataFrame(
        {"board": list(endurance), "endurance": list(endurance.values())},
        schema={"board": pl.String, "endurance": pl.Int64},
    )
    axes = ["board", "kernel", "fs", "read_ahead_kib", "window", "pattern", "requests", "seed"]
    of_case = cases.select(*_CASE, *axes).join(sums, on=_CASE, maintain_order="left")
    return of_case.join(named, on="board", how="left", maintain_order="left").with_columns(
        (pl.col("worst") / pl.col("endurance") * 100).alias("worst_pct")
    )
