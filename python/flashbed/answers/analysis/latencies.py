"""The latencies of a case's calls, and what the calls waited for.

A call's time is divided into causes that add up to its latency (docs/models/latency.md). Quantiles
and what counts as a call are those of `compare`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from flashbed.answers.analysis.compared_choices import NO_CALLS, quantiles
from flashbed.base.human import time_text
from flashbed.results.columns import WAITS

__all__ = [
    "CAUSES", "QUANTILES", "SLOWEST", "Latencies", "latencies", "parts_of", "sentence", "split",
]  # fmt: skip

CAUSES: Mapping[str, str] = {
    "processor_ns": "processor",
    "own_flash_ns": "own chip",
    "write_back_ns": "write-back",
    "read_ahead_ns": "read-ahead",
    "commit_ns": "commit",
    "collection_ns": "collection",
    "wear_levelling_ns": "wear levelling",
    "erase_ns": "erase",
}
"""Columns of causes -> what they are called; they add up to the latency."""
QUANTILES = ("p50_ns", "p99_ns", "p999_ns", "worst_ns")
SLOWEST = 5
"""Calls that are named, unless more are requested."""
_SMALL = 0.01
"""A cause with a smaller share of a call is not named."""


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """The calls of a case, or of a part of it.

    `calls` has a row for each kind of call, the longest in sum first, and one of all: `call`,
    `calls`, quantiles. `causes` has a row for each cause that some call waited for: its time in all
    calls, in the slowest 1 % of them, and in the slowest. `slowest` are calls, the slowest first.
    """

    calls: pl.DataFrame
    causes: pl.DataFrame
    slowest: pl.DataFrame

    @property
    def time_ns(self) -> int:
        """The calls' latencies together."""
        return int(self.causes["all_ns"].sum())


def split(requests: pl.DataFrame) -> pl.DataFrame:
    """The calls among requests that were run with `--trace waits`, with all causes."""
    calls = requests.filter(~pl.col("op").is_in(NO_CALLS)).sort("seq")
    rest = pl.col("latency_ns") - pl.sum_horizontal(*WAITS)
    return calls.with_columns(rest.alias("processor_ns"))


def latencies(calls: pl.DataFrame, slowest: int = SLOWEST) -> Latencies:
    """The latencies of these calls, as `split` returns them."""
    columns = [
        pl.len().alias("calls"),
        pl.col("latency_ns").sum().alias("time_ns"),
        *quantiles(*QUANTILES),
    ]
    each = calls.group_by(pl.col("op").alias("call")).agg(columns)
    whole = calls.group_by(pl.lit("all").alias("call")).agg(columns)
    rows = pl.concat([each.sort("time_ns", "call", descending=[True, False]), whole])
    worst_first = calls.sort("latency_ns", "seq", descending=[True, False])
    tail = worst_first.head(-(-calls.height // 100))
    parts = {"all_ns": calls, "slowest_ns": tail, "worst_ns": worst_first.head(1)}
    causes = pl.DataFrame(
        {
            "cause": list(CAUSES.values()),
            **{name: [int(of[cause].sum()) for cause in CAUSES] for name, of in parts.items()},
        }
    )
    return Latencies(
        calls=rows,
        causes=causes.filter(pl.col("all_ns") > 0),
        slowest=worst_first.head(slowest),
    )


def sentence(call: Mapping[str, Any]) -> str:
    """A call in words: how long, which, when, and what it waited for, the most first."""
    latency = call["latency_ns"]
    known = [(call[name], said) for name, said in CAUSES.items()]
    shares = sorted((each for each in known if each[0] >= _SMALL * latency), reverse=True)
    parts = ", ".join(f"{time_text(time)} {said}" for time, said in shares)
    file = f" of {call['file']}" if call["file"] else ""
    return f"{time_text(latency)} {call['op']}{file} at {call['start_ns'] / 1e9:,.3f} s: {parts}"


def parts_of(calls: pl.DataFrame, count: int) -> Sequence[pl.DataFrame]:
    """The calls in so many parts of about equal size, in their order; fewer if there are fewer."""
    count = max(1, min(count, calls.height))
    edges = [calls.height * at // count for at in range(count + 1)]
    return [calls[begin:end] for begin, end in itertools.pairwise(edges)]
