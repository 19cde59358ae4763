"""Read throughput from a file's first byte to a share of its size.

The read-ahead paper times Postmark's reads when 25, 50 and 100 % of a file is read (section 2.2).
A reading is all reads of a file between its `open` and the next `open`. It reaches a share with the
first read that ends at or after it. A point's throughput is all bytes up to there divided by the
time of all read() calls up to there, over the readings of a case, averaged over seeds. Left out:
opening, and files that are read and written under one `open`.
"""

from __future__ import annotations

import polars as pl

from flashbed.answers.analysis.rates import RATE_POINT
from flashbed.stack.names import FORCED

__all__ = ["FILE_READ_POINT", "READ_PCT", "file_reads", "throughput_of_cases"]

READ_PCT = (25, 50, 100)
FILE_READ_POINT = [*RATE_POINT, "read_pct"]
_CASE = ["case_id", "target"]


def file_reads(
    cases: pl.DataFrame,
    requests: pl.DataFrame | pl.LazyFrame,
    throughput: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """A row for each point: the metrics of `FileReadMetric`, and `seeds`.

    `throughput` has what `throughput_of_cases` found in the requests, if that is known already.
    `read_throughput_mb_s` uses 10^6 bytes, `read_throughput_mib_s` 2^20. The ratio is throughput
    with read-ahead divided by that without, in the row with read-ahead; null if there is no such
    pair or no time.
    """
    per_case = cases.join(
        throughput_of_cases(requests) if throughput is None else throughput,
        on=_CASE, maintain_order="left",
    )  # fmt: skip
    points = per_case.group_by(FILE_READ_POINT, maintain_order=True).agg(
        pl.col("read_throughput_mb_s").mean(), pl.len().cast(pl.Int64).alias("seeds")
    )
    how = ("read_ahead_kib", "window", "advice")
    keys = [axis for axis in FILE_READ_POINT if axis not in how]
    plain = pl.col("advice") == "none"
    off = points.filter(plain, pl.col("window") == FORCED, pl.col("read_ahead_kib") == 0)
    with_off = points.join(
        off.select(*keys, pl.col("read_throughput_mb_s").alias("off")),
        on=keys, how="left", maintain_order="left",
    )  # fmt: skip
    ratio = pl.col("read_throughput_mb_s") / pl.col("off")
    return with_off.with_columns(
        pl.when(plain & (pl.col("read_ahead_kib") > 0)).then(ratio).alias("read_throughput_ratio"),
        (pl.col("read_throughput_mb_s") * 1e6 / 2**20).alias("read_throughput_mib_s"),
        (pl.col("pause_ns") / 1e6).alias("pause_ms"),
    ).drop("off")


def throughput_of_cases(requests: pl.DataFrame | pl.LazyFrame) -> pl.DataFrame:
    """A row for each share of each case that reads files: read_throughput_mb_s."""
    reading = (pl.col("op") == "open").cum_sum().over(_CASE)
    some = requests.lazy().select(*_CASE, "seq", "op", "result", "latency_ns")
    wanted = some.filter(pl.col("op").is_in(("open", "read"))).collect(engine="streaming")
    reads = (
        wanted.sort(*_CASE, "seq")
        .with_columns(reading.alias("reading"))
        .filter(pl.col("op") == "read", pl.col("result") > 0)
        .select(*_CASE, "reading", "result", "latency_ns")
        .with_columns(
            pl.col("result").cum_sum().over(*_CASE, "reading").alias("bytes"),
            pl.col("latency_ns").cum_sum().over(*_CASE, "reading").alias("time_ns"),
            pl.col("result").sum().over(*_CASE, "reading").alias("whole"),
        )
    )
    shares = []
    for share in READ_PCT:
        reached = reads.filter(pl.col("bytes") * 100 >= pl.col("whole") * share)
        first = reached.group_by(*_CASE, "reading", maintain_order=True).first()
        shares.append(
            first.group_by(_CASE, maintain_order=True).agg(
                pl.lit(share, pl.Int64).alias("read_pct"),
                pl.when(pl.col("time_ns").is_not_null().all())
                .then(pl.col("bytes").sum() / pl.col("time_ns").sum() * 1e3)
                .alias("read_throughput_mb_s"),
            )
        )
    return pl.concat(shares)
