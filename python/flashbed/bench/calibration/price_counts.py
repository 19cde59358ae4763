"""How often each price of `[software]` occurs in programs: the simulator counts.

Its time is linear in the prices. With one price set to a unit and all others to zero, a program's
time less the chip's is how often that price occurs in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flashbed._sim import Recorded, run_cases
from flashbed.base.errors import InputError
from flashbed.base.processors import processors
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.prices import prices
from flashbed.stack.profiles import Board
from flashbed.targets.base import Program
from flashbed.targets.sim import cases_of

__all__ = ["FITTED", "code_times_ns", "price_counts", "times_ns", "unit_of"]

Floats = npt.NDArray[np.float64]

FITTED = tuple(
    price.key
    for price in prices()
    if price.how == "fitted" and not price.key.startswith("compressors.lzo_2_02.")
)
"""Prices by their keys in `[software]`; no kernel that can be measured has lzo-2.02."""
UNIT = 10_000
"""The unit that a price is set to for counting. It is large enough that rounding to ns does not
show, and small enough that no case takes a second, in which timers would expire."""
LOOP_UNIT = 100
"""The unit for what a compressor's loops do thousands of times a page, in whole nanoseconds."""


def unit_of(name: str) -> int:
    """What a price is set to for counting."""
    return LOOP_UNIT if name.startswith("compressors.") and name.endswith("_ns") else UNIT


def _priced(board: Board, costs: dict[str, int]) -> str:
    """The board's profile for the simulator with these costs and no others."""
    profile = json.loads(board.sim_json)
    kept = {name: profile["software"].pop(name) for name in ("sched_clock_ns", "pointer_bytes")}
    nothing: dict[str, Any] = {"compressors": {}, "squashfs": None}
    software: dict[str, Any] = dict.fromkeys(profile["software"], 0) | kept | nothing
    for name in FITTED:
        *tables, key = name.split(".")
        table = software
        for each in tables:
            table = table.setdefault(each, {})
        table[key] = costs.get(name, 0)
    profile["software"] = software | {n: v for n, v in costs.items() if "." not in n}
    return json.dumps(profile)


def times_ns(cases: Sequence[Program], costs: dict[str, int]) -> Floats:
    """Simulated time of every case with these costs and no others."""
    return _columns(cases, costs)[0]


def code_times_ns(cases: Sequence[Program], costs: dict[str, int]) -> Floats:
    """The same without the time in which the chip was busy.

    A collector that runs at another moment moves other nodes: that would count as code.
    """
    times, busy = _columns(cases, costs)
    return times - busy


def _columns(cases: Sequence[Program], costs: dict[str, int]) -> tuple[Floats, Floats]:
    """Time and the chip's time of every case."""
    board = _priced(cases[0].stack.board, costs)
    alike: dict[str, list[int]] = {}
    for at, program in enumerate(cases):
        alike.setdefault(program.stack.simulated_kernel, []).append(at)
    found = np.zeros((2, len(cases)))
    for kernel, places in alike.items():
        some = [cases[at] for at in places]
        results = run_cases(
            board, kernel, cases_of(some), recorded=Recorded(), threads=processors()
        )
        if results.interrupted is not None:
            raise results.interrupted
        if results.failures:
            failure = results.failures[0]
            raise InputError(f"{some[failure.case_index].case_id}: {failure.message}")
        columns = results.cases["time_ns"], results.cases["flash_time_ns"]
        for row, column in enumerate(columns):
            found[row, places] = np.frombuffer(column, dtype="<i8").astype(float)
    return found[0], found[1]


def _group(name: str) -> str:
    """The group of a price: a file system, a compressor, or the price itself."""
    if name.startswith("compressors."):
        return name.rsplit(".", 1)[0].removesuffix(".unpack")
    prefix = name.split("_", 1)[0]
    return prefix if prefix in ("ubi", *FILE_SYSTEMS) else name


def price_counts(
    cases: Sequence[Program],
    free: Sequence[str],
    held: dict[str, int],
    times: Callable[[Sequence[Program], dict[str, int]], Floats] = times_ns,
) -> Floats:
    """How often each free price (columns) occurs in each case (rows); `held` are other prices.

    Cases in which no price of a group occurs are simulated once for the whole group.
    """
    base_ns = times(cases, held)
    counts = np.zeros((len(cases), len(free)))
    groups: dict[str, list[str]] = {}
    for name in free:
        groups.setdefault(_group(name), []).append(name)
    for names in groups.values():
        together = {name: unit_of(name) for name in names}
        (rows,) = np.nonzero(times(cases, held | together) - base_ns)
        if not rows.size:
            continue
        some = [cases[int(row)] for row in rows]
        for name in names:
            more_ns = times(some, held | {name: unit_of(name)}) - base_ns[rows]
            counts[rows, free.index(name)] = more_ns / unit_of(name)
    return counts
