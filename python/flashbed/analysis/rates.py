"""What single cases and requests came to: response times, throughput, flash operations.

A point is target, board, kernel, fs, pattern, number and size of requests, pause, window of
read-ahead, advice; seeds are averaged. What
a target does not know is null: times on user-mode Linux, where only the chip takes time. Left out:
comparing cases that differ in read-ahead (measures.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from flashbed.analysis.measures import COMPONENT_NJ, PAUSE_MS, POINT, RAIL_NJ

__all__ = ["MACHINE", "RATE_POINT", "per_request", "rate_points", "rates"]

RATE_POINT = [*POINT, "request_bytes", "file_bytes", "pause_ns", "read_ahead_kib", "advice"]
_MS = 1e6
_MJ = 1e6
_COUNTS = ("flash_reads", "flash_programs", "flash_erases")
_ENERGIES = ("energy", "energy_cpu", "energy_mem")
_OF_DATA = ("read", "write", "erase")
"""Operations whose number is `requests`."""
MACHINE = pl.format("Linux {}, {}", "kernel", "board").alias("machine")
"""What ran a case, as the columns of figures are headed."""


def rates(cases: pl.DataFrame, requests: pl.DataFrame) -> pl.DataFrame:
    """A row for each point: the metrics of `RateMetric`, and `seeds`.

    `response_ms` is the mean latency of the reads, writes and erases, `flash_response_ms` the
    chip's part of it; `data_kib_s` and what is per KiB count the bytes of the requests, whatever
    moved for them; `flash_share_pct` is the chip's part of the case's time;
    `background_flash_pct` the chip's time in pauses as a part of all, null without a pause;
    `component_cpu_mw` and `component_mem_mw` are mean powers above idle of a rail, by component;
    `read_end_kb` is where the last byte that was read lies in its file, in 1,000 bytes.
    """
    measured = cases.join(_of_requests(requests), on=["case_id", "target"], how="left")
    count = pl.col("requests")
    data_kib = count * pl.col("request_bytes") / 1024
    return (
        measured.with_columns(
            (pl.col("time_ns") / _MS).alias("time_ms"),
            (pl.col("flash_time_ns") / _MS).alias("flash_time_ms"),
            (pl.col("bytes") / pl.col("time_ns") * 1e3).alias("throughput_mb_s"),
            (pl.col("flash_time_ns") / pl.col("time_ns") * 100).alias("flash_share_pct"),
            (pl.col("flash_reads") / count).alias("flash_reads_per_request"),
            (pl.col("flash_programs") / count).alias("flash_programs_per_request"),
            (data_kib / pl.col("time_ns") * 1e9).alias("data_kib_s"),
            *((pl.col(name) / data_kib).alias(f"{name}_per_kib") for name in _COUNTS),
            *((pl.col(f"{name}_nj") / _MJ).alias(f"{name}_mj") for name in _ENERGIES),
            (COMPONENT_NJ / _MJ).alias("component_energy_mj"),
            *((energy / pl.col("time_ns") * 1e3).alias(f"component_{rail}_mw")
              for rail, energy in RAIL_NJ.items()),
        )
        .group_by(RATE_POINT, maintain_order=True)
        .agg(
            pl.col(
                "time_ms", "flash_time_ms", "response_ms", "flash_response_ms", "throughput_mb_s",
                "flash_share_pct", "flash_reads", "flash_programs", "flash_erases",
                "flash_reads_per_request", "flash_programs_per_request", "background_flash_pct",
                "data_kib_s", "flash_reads_per_kib", "flash_programs_per_kib",
                "flash_erases_per_kib",
                "energy_mj", "energy_cpu_mj", "energy_mem_mj", "component_energy_mj",
                "component_cpu_mw", "component_mem_mw", "read_end_kb",
            ).mean(),
            pl.len().cast(pl.Int64).alias("seeds"),
        )
        .with_columns(PAUSE_MS)
    )  # fmt: skip


def _of_requests(requests: pl.DataFrame) -> pl.DataFrame:
    """A row for each case: response_ms, flash_response_ms, background_flash_pct, read_end_kb."""
    moved = pl.col("op").is_in(_OF_DATA)
    waited = pl.col("op") == "pause"
    chip = pl.col("flash_time_ns")
    return requests.group_by("case_id", "target", maintain_order=True).agg(
        (pl.col("latency_ns").filter(moved).mean() / _MS).alias("response_ms"),
        (chip.filter(moved).mean() / _MS).alias("flash_response_ms"),
        pl.when(waited.any())
        .then(chip.filter(waited).sum() / chip.sum() * 100)
        .alias("background_flash_pct"),
        (
            (pl.col("offset_bytes") + pl.col("result")).filter(pl.col("op") == "read").max() / 1e3
        ).alias("read_end_kb"),
    )


def rate_points(rated: pl.DataFrame, metric: str) -> pl.DataFrame:
    """A metric as a figure draws it: the point, `machine` and `value`; without what is unknown."""
    return rated.filter(pl.col(metric).is_not_null()).select(
        "target", "fs", "pattern", "requests", "request_bytes", "seeds",
        MACHINE,
        pl.col(metric).alias("value"),
    )  # fmt: skip


def per_request(
    cases: pl.DataFrame, requests: pl.DataFrame, flash: pl.DataFrame, kinds: Sequence[str]
) -> pl.DataFrame:
    """Each read, write or erase of the cases: the point, machine, request, latency_ms, flash_pages.

    `request` counts from 1. `flash_pages` are the flash operations of these kinds that began in it;
    null where the case was not traced.
    """
    of_data = requests.filter(pl.col("op").is_in(_OF_DATA)).sort("target", "case_id", "seq")
    numbered = of_data.with_columns(
        (pl.col("seq").cum_count().over("target", "case_id")).alias("request"),
        pl.col("start_ns").cast(pl.Int64),
    )
    counted = _pages(numbered, flash, kinds)
    axes = cases.select("case_id", *RATE_POINT, MACHINE)
    return counted.join(axes, on=["case_id", "target"], how="inner", maintain_order="left").select(
        *RATE_POINT,
        "machine",
        "request",
        (pl.col("latency_ns") / _MS).alias("latency_ms"),
        "flash_pages",
    )


def _pages(numbered: pl.DataFrame, flash: pl.DataFrame, kinds: Sequence[str]) -> pl.DataFrame:
    """The requests with `flash_pages`: operations from the begin of one to that of the next."""
    if not flash.height:
        return numbered.with_columns(pl.lit(None, pl.Int64).alias("flash_pages"))
    keys = ["target", "case_id"]
    begun = numbered.select(*keys, "request", "start_ns").sort("start_ns")
    wanted = flash.filter(pl.col("kind").is_in(kinds)).select(*keys, "start_ns").sort("start_ns")
    owner = wanted.join_asof(
        begun, on="start_ns", by=keys, strategy="backward", check_sortedness=False
    )
    counts = owner.group_by(*keys, "request").agg(pl.len().cast(pl.Int64).alias("flash_pages"))
    traced = pl.col("case_id").is_in(flash["case_id"].unique().implode())
    joined = numbered.join(counts, on=[*keys, "request"], how="left", maintain_order="left")
    return joined.with_columns(
        pl.when(traced).then(pl.col("flash_pages").fill_null(0)).alias("flash_pages")
    )
