"""Results of single cases and requests: response times, throughput, flash operations.

A point is target, board, kernel, fs, pattern, number and size of requests, pause, read-ahead window
and what chose it, advice, and conditions (plan/case.py); seeds are averaged. What a target does not
know is null: on user-mode Linux only the chip's times are known. Comparing cases that differ in
read-ahead is left to measures.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np
import polars as pl

from flashbed.answers.analysis.measures import COMPONENT_NJ, PAUSE_MS, POINT, RAIL_NJ
from flashbed.answers.energy.fold import ACCESSES
from flashbed.answers.lifetimes.subject import CAUSES
from flashbed.plan.case import CONDITIONS
from flashbed.plan.quantities import RequestExtreme

__all__ = [
    "MACHINE",
    "RATE_POINT",
    "extremes",
    "per_request",
    "rate_points",
    "rates",
    "requests_of_cases",
]

RATE_POINT = [
    *POINT, "request_bytes", "file_bytes", "pause_ns", "read_ahead_kib", "window", "advice",
    *CONDITIONS,
]  # fmt: skip
_MS = 1e6
_MJ = 1e6
_MW = 1e3  # 1 nJ in 1 ns is 1 W
_COUNTS = ("flash_reads", "flash_programs", "flash_erases")
_ENERGIES = ("energy", "energy_cpu", "energy_mem")
_CAUSES = tuple(f"bytes_{cause}" for cause in CAUSES)
_OF_DATA = ("read", "write", "erase")
_TAIL = 0.99
"""Operations that `requests` counts."""
MACHINE = pl.format("Linux {}, {}", "kernel", "board").alias("machine")
"""What ran a case, as figures title their columns."""


def rates(
    cases: pl.DataFrame,
    requests: pl.DataFrame | pl.LazyFrame,
    folded: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """A row for each point: the metrics of `RateMetric`, and `seeds`.

    `folded` is `requests_of_cases` of at least these cases, if it has been computed already.

    `response_ms` is the mean latency of reads, writes and erases, `flash_response_ms` the chip's
    part of it. `data_kib_s` and values per KiB count the bytes of the requests, whatever moved for
    them. `write_amplification` is programmed bytes per such byte. `collected_kib` and
    `levelled_kib` are what garbage collection and UBI's wear levelling moved, which only the
    simulator knows. `flash_share_pct` is the chip's part of the case's time.
    `background_flash_pct` is the chip's time in pauses as a part of all, null without a pause.
    `component_RAIL_mw` is the mean power while operations run, null if the chip worked in a pause.
    `component_access_pct` is the part of all energy that flash accesses take. `read_end_kb` is the
    file position after the last byte read, in 1,000 bytes.
    """
    folded = requests_of_cases(requests) if folded is None else folded
    measured = cases.join(folded, on=["case_id", "target"], how="left")
    return (
        _rated(measured)
        .group_by(RATE_POINT, maintain_order=True)
        .agg(
            pl.col(
                "time_ms", "flash_time_ms", "response_ms", "flash_response_ms", "throughput_mb_s",
                "flash_share_pct", "flash_reads", "flash_programs", "flash_erases",
                "flash_reads_per_request", "flash_programs_per_request", "background_flash_pct",
                "data_kib_s", "flash_reads_per_kib", "flash_programs_per_kib",
                "flash_erases_per_kib",
                "energy_mj", "energy_cpu_mj", "energy_mem_mj", "component_energy_mj",
                "write_amplification", "collected_kib", "levelled_kib",
                "ecc_corrected", "ecc_failed",
                *(f"component_{rail}_mj" for rail in RAIL_NJ),
                *(f"component_{rail}_mw" for rail in RAIL_NJ),
                "component_access_pct", "read_end_kb",
            ).mean(),
            pl.len().cast(pl.Int64).alias("seeds"),
        )
        .with_columns(PAUSE_MS)
    )  # fmt: skip


def _rated(measured: pl.DataFrame) -> pl.DataFrame:
    """Cases with their metrics, except those computed from `requests`."""
    count = pl.col("requests")
    timed = pl.when(pl.col("time_ns") > 0).then(pl.col("time_ns"))  # a share of no time is null
    paused = pl.col("background_flash_pct").fill_null(0) > 0
    accesses = pl.sum_horizontal(*ACCESSES, ignore_nulls=False)
    data_kib = count * pl.col("request_bytes") / 1024
    return measured.with_columns(
        (pl.col("time_ns") / _MS).alias("time_ms"),
        (pl.col("flash_time_ns") / _MS).alias("flash_time_ms"),
        (pl.col("bytes") / pl.col("time_ns") * 1e3).alias("throughput_mb_s"),
        (pl.col("flash_time_ns") / timed * 100).alias("flash_share_pct"),
        (pl.col("flash_reads") / count).alias("flash_reads_per_request"),
        (pl.col("flash_programs") / count).alias("flash_programs_per_request"),
        (data_kib / pl.col("time_ns") * 1e9).alias("data_kib_s"),
        *((pl.col(name) / data_kib).alias(f"{name}_per_kib") for name in _COUNTS),
        *((pl.col(f"{name}_nj") / _MJ).alias(f"{name}_mj") for name in _ENERGIES),
        (COMPONENT_NJ / _MJ).alias("component_energy_mj"),
        (pl.sum_horizontal(*_CAUSES, ignore_nulls=False) / 1024 / data_kib).alias(
            "write_amplification"
        ),
        (pl.col("bytes_collection") / 1024).alias("collected_kib"),
        (pl.col("bytes_wear_levelling") / 1024).alias("levelled_kib"),
        *((nj / _MJ).alias(f"component_{rail}_mj") for rail, nj in RAIL_NJ.items()),
        *(
            (nj / pl.when(~paused).then(timed) * _MW).alias(f"component_{rail}_mw")
            for rail, nj in RAIL_NJ.items()
        ),
        pl.when(COMPONENT_NJ > 0).then(accesses / COMPONENT_NJ * 100).alias("component_access_pct"),
    )


def requests_of_cases(requests: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """A row for each case: response_ms, flash_response_ms, background_flash_pct, read_end_kb."""
    moved = pl.col("op").is_in(_OF_DATA)
    waited = pl.col("op") == "pause"
    chip = pl.col("flash_time_ns")
    of_cases = (
        requests.lazy()
        .group_by("case_id", "target", maintain_order=True)
        .agg(
            (pl.col("latency_ns").filter(moved).mean() / _MS).alias("response_ms"),
            (chip.filter(moved).mean() / _MS).alias("flash_response_ms"),
            pl.when(waited.any(), chip.sum() > 0)
            .then(chip.filter(waited).sum() / chip.sum() * 100)
            .alias("background_flash_pct"),
            (
                (pl.col("offset_bytes") + pl.col("result")).filter(pl.col("op") == "read").max()
                / 1e3
            ).alias("read_end_kb"),
        )
    )
    return of_cases.collect(engine="streaming")


def rate_points(rated: pl.DataFrame, metric: str) -> pl.DataFrame:
    """A metric as a figure draws it: the point, `machine` and `value`; known ones only."""
    return rated.filter(pl.col(metric).is_not_null()).select(
        "target", "fs", "pattern", "requests", "request_bytes", "seeds",
        MACHINE,
        pl.col(metric).alias("value"),
    )  # fmt: skip


def per_request(
    cases: pl.DataFrame,
    requests: pl.DataFrame | pl.LazyFrame,
    flash: pl.DataFrame | pl.LazyFrame | None,
    kinds: Sequence[str],
) -> pl.DataFrame:
    """Each read, write or erase of the cases: the point, machine, request and its metrics.

    `request` counts from 1. `arrival_ms` is when it began, after the first of its case.
    `flash_pages` is the number of flash operations of these kinds that began in it; null if the
    case was not traced.
    """
    some = requests.lazy().filter(pl.col("op").is_in(_OF_DATA))
    columns = ("target", "case_id", "seq", "start_ns", "latency_ns")
    of_data = some.select(columns).collect(engine="streaming").sort("target", "case_id", "seq")
    numbered = of_data.with_columns(
        (pl.col("seq").cum_count().over("target", "case_id")).alias("request"),
        pl.col("start_ns").cast(pl.Int64),
        (
            (pl.col("start_ns") - pl.col("start_ns").min().over("target", "case_id")).cast(pl.Int64)
            / _MS
        ).alias("arrival_ms"),
    )
    counted = _pages(numbered, flash, kinds)
    axes = cases.select("case_id", *RATE_POINT, MACHINE)
    return counted.join(axes, on=["case_id", "target"], how="inner", maintain_order="left").select(
        "case_id",
        *RATE_POINT,
        "machine",
        "request",
        "arrival_ms",
        (pl.col("latency_ns") / _MS).alias("latency_ms"),
        "flash_pages",
    )


def extremes(
    cases: pl.DataFrame,
    requests: pl.DataFrame | pl.LazyFrame,
    flash: pl.DataFrame | pl.LazyFrame | None,
) -> pl.DataFrame:
    """A row for each point: the metrics of `RequestExtreme`, and `seeds`.

    For each case the longest and the shortest request, the chip's part that 99 % of the calls that
    used it do not exceed, and the most and fewest pages that a request programmed; null if the case
    was not traced.
    """
    keys = ["case_id", "target"]
    latency_ms = pl.col("latency_ns") / _MS
    of_data = requests.lazy().filter(pl.col("op").is_in(_OF_DATA))
    longest = of_data.group_by(keys).agg(
        latency_ms.max().alias("longest_ms"), latency_ms.min().alias("shortest_ms")
    )
    chip_ms = pl.col("flash_time_ns") / _MS
    tail = (
        requests.lazy()
        .filter(pl.col("flash_time_ns") > 0)
        .group_by(keys)
        .agg(chip_ms.quantile(_TAIL, "higher").alias("tail_flash_ms"))
    )
    found = (
        cases.join(longest.collect(engine="streaming"), on=keys)
        .join(tail.collect(engine="streaming"), on=keys, how="left")
        .sort("target", "case_id")
    )
    pages = [
        _most_and_fewest(case_id, target, of_data, flash)
        for case_id, target in found.select(keys).iter_rows()
    ]
    columns = dict.fromkeys(("most_flash_pages", "fewest_flash_pages"), pl.Int64)
    return (
        found.select(*RATE_POINT, "case_id", "longest_ms", "shortest_ms", "tail_flash_ms")
        .hstack(pl.DataFrame(pages, schema=columns, orient="row"))
        .group_by(RATE_POINT, maintain_order=True)
        .agg(
            pl.col(get_args(RequestExtreme)).mean(),
            pl.len().cast(pl.Int64).alias("seeds"),
        )
        .with_columns(PAUSE_MS)
    )


def _most_and_fewest(
    case_id: str,
    target: str,
    of_data: pl.LazyFrame,
    flash: pl.DataFrame | pl.LazyFrame | None,
) -> tuple[int | None, int | None]:
    """The most and fewest pages that a request of a case programmed; None without a trace.

    Holds the begins of requests and programs of one case at a time in memory.
    """
    own = (pl.col("case_id") == case_id) & (pl.col("target") == target)
    traced = flash is not None and flash.lazy().collect_schema().len()
    rows = flash.lazy().filter(own) if flash is not None and traced else None
    if rows is None or not rows.select(pl.len()).collect(engine="streaming").item():
        return None, None
    start_ns = pl.col("start_ns").cast(pl.Int64)
    begun = of_data.filter(own).select(start_ns).collect(engine="streaming")["start_ns"].sort()
    programs = rows.filter(pl.col("kind") == "program").select(start_ns)
    at = programs.collect(engine="streaming")["start_ns"]
    # Of requests that begin at the same time, the last one gets the programs.
    of_request = np.searchsorted(begun.to_numpy(), at.to_numpy(), side="right") - 1
    counts = np.bincount(of_request[of_request >= 0], minlength=begun.len())
    return int(counts.max()), int(counts.min())


def _pages(
    numbered: pl.DataFrame, flash: pl.DataFrame | pl.LazyFrame | None, kinds: Sequence[str]
) -> pl.DataFrame:
    """The requests with `flash_pages`: operations between a request's begin and the next one's."""
    rows = None if flash is None else flash.lazy()
    if rows is None or not rows.collect_schema().len():
        return numbered.with_columns(pl.lit(None, pl.Int64).alias("flash_pages"))
    flash = rows.select("target", "case_id", "kind", "start_ns").collect(engine="streaming")
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
