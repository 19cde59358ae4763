"""Where erases come from: cases that were run, a wear table on its own, counters of a board.

Each gives `Observed` for the arithmetic, and with it what a reader wants to know of it. A case's
measured part is taken for a round of the workload, which is repeated at a given rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from flashbed.errors import InputError
from flashbed.lifetime.counters import UBI_WL_THRESHOLD, Counters
from flashbed.lifetime.estimate import DAY_S, Observed, dispersion
from flashbed.places import shown
from flashbed.profiles import Board, ProfileError, load_board
from flashbed.tables import SCHEMAS, read_table
from flashbed.toml_models import read_model, read_toml

__all__ = [
    "CAUSES",
    "Subject",
    "Workload",
    "cases_of",
    "counters_of",
    "kept_board",
    "wear_table_of",
]


CAUSES = ("data", "metadata", "padding", "collection", "wear_levelling")
"""Why bytes are programmed: the columns `bytes_*` of `cases`."""


@dataclass(frozen=True)
class Workload:
    """A round of it: how long, how often, what the program wrote, what that did to the flash.

    `given_rate` is whether the rate was asked for; else rounds follow each other without a break.
    `bytes_by_cause` adds up to what was programmed; a real kernel does not say.
    """

    seconds: float | None
    rounds_per_day: float
    given_rate: bool
    bytes_written: int | None
    bytes_by_cause: Mapping[str, int] | None
    bytes_programmed: int | None
    bytes_erased: int | None

    def a_byte_written(self) -> dict[str, float | None]:
        """Bytes programmed, erased and of each cause for each byte written; None is unknown."""
        counts: dict[str, int | None] = {
            "programmed": self.bytes_programmed, "erased": self.bytes_erased,
            **{name: (self.bytes_by_cause or {}).get(name) for name in CAUSES},
        }  # fmt: skip
        written = self.bytes_written
        return {
            name: count / written if count is not None and written else None
            for name, count in counts.items()
        }


@dataclass(frozen=True)
class Subject:
    """One thing whose lifetime is asked for. `board` is None where nobody said."""

    name: str
    observed: Observed
    board: Board | None
    blocks_erased: int | None
    target: str | None = None
    fs: str | None = None
    workload: Workload | None = None


def cases_of(directory: Path, case_id: str | None, rounds_per_day: float | None) -> list[Subject]:
    """The cases of a run directory that have a wear table. Raises `InputError`."""
    wear = read_table(directory, "wear")
    cases = read_table(directory, "cases")
    if case_id is not None:
        cases = cases.filter(pl.col("case_id") == case_id)
        if not cases.height:
            raise InputError(f"--case {case_id}: no such case in {shown(directory)}")
    rounds = _rounds(read_table(directory, "requests"))
    of_case = wear.partition_by("case_id", "target", as_dict=True, maintain_order=True)
    subjects = []
    for case in cases.to_dicts():
        key = (case["case_id"], case["target"])
        if key not in of_case:
            if case_id is None:
                continue
            raise InputError(
                f"{shown(directory)}: no wear of {key[0]} on {key[1]}; `--trace wear` records it"
            )
        board = kept_board(directory, case["board"])
        block_bytes = board.chip.page_bytes * board.chip.pages_per_block
        seconds, written = rounds.get(key, (0.0, 0))
        causes = {name: case.get(f"bytes_{name}") for name in CAUSES}
        known = {name: count for name, count in causes.items() if count is not None}
        # A real kernel's programs are taken to be of whole pages.
        whole_pages = case["flash_programs"] * board.chip.page_bytes
        programmed = sum(known.values()) if known else whole_pages
        erases = int(of_case[key]["erases_measured"].sum())
        workload = Workload(
            seconds=seconds,
            rounds_per_day=_per_day(rounds_per_day, seconds, key[0]),
            given_rate=rounds_per_day is not None,
            bytes_written=written,
            bytes_by_cause=known or None,
            bytes_programmed=programmed,
            bytes_erased=erases * block_bytes,
        )
        subjects.append(
            _of_wear(
                of_case[key], key[0], workload, board,
                target=key[1], fs=case["fs"], programmed_blocks=programmed / block_bytes,
            )
        )  # fmt: skip
    return subjects


def _rounds(requests: pl.DataFrame) -> dict[tuple[str, str], tuple[float, int]]:
    """Case and target -> seconds from the mark to the end, pauses included; bytes written.

    Where code takes no time (user-mode Linux) an operation takes the chip's.
    """
    took = pl.coalesce("latency_ns", "flash_time_ns", pl.lit(0, pl.Int64))
    written = pl.col("result").filter(pl.col("op") == "write").clip(lower_bound=0).sum()
    rows = requests.group_by("case_id", "target").agg(
        (pl.col("start_ns") + took).max() / 1e9, written.alias("written")
    )
    return {
        (case_id, target): (seconds, bytes_written)
        for case_id, target, seconds, bytes_written in rows.iter_rows()
    }


def _per_day(given: float | None, seconds: float, name: str) -> float:
    if given is not None:
        return given
    if seconds <= 0:
        raise InputError(f"{name}: its measured part took no time; say --repeat, as in 1/min")
    return DAY_S / seconds


def wear_table_of(path: Path, rounds_per_day: float, board: Board | None) -> list[Subject]:
    """The cases of a `wear` table that stands alone. Raises `InputError`."""
    try:
        wear = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError):
        raise InputError(f"{shown(path)}: cannot be read as Parquet") from None
    columns = {"case_id", "target", "block", "erases_measured", "state"}
    if not columns <= set(wear.columns):
        missing = sorted(columns - set(wear.columns))
        raise InputError(f"{shown(path)}: no wear table: it has no column {missing[0]}")
    types = {name: SCHEMAS["wear"][name] for name in columns}
    try:
        wear = wear.with_columns(pl.col(name).cast(kind) for name, kind in types.items())
    except pl.exceptions.PolarsError:
        raise InputError(f"{shown(path)}: no wear table: a column has another type") from None
    if not wear.height:
        raise InputError(f"{shown(path)}: a wear table without rows")
    workload = Workload(None, rounds_per_day, True, None, None, None, None)
    parts = wear.partition_by("case_id", "target", as_dict=True, maintain_order=True)
    return [
        _of_wear(rows, str(case_id), workload, board, target=str(target), fs=None,
                 programmed_blocks=None)
        for (case_id, target), rows in parts.items()
    ]  # fmt: skip


def _of_wear(
    wear: pl.DataFrame, name: str, workload: Workload, board: Board | None,
    *, target: str, fs: str | None, programmed_blocks: float | None,
) -> Subject:  # fmt: skip
    """A new chip under rounds of a workload, one of which was measured. A bad block wears no more.

    A board that does not know the state of its blocks is taken to have good ones.
    """
    good = wear.filter(pl.col("state").fill_null("good") == "good")["erases_measured"]
    if not good.len() or (good < 0).any():
        raise InputError(f"{name}: no good block with a count of erases in its wear table")
    observed = Observed(
        seconds=DAY_S / workload.rounds_per_day,
        blocks=good.len(),
        erases=float(good.sum()),
        worst=int(good.to_numpy().max()),
        dispersion=dispersion(good.to_list()),
        programmed_blocks=programmed_blocks,
        wl_threshold=UBI_WL_THRESHOLD if fs == "ubifs" else None,
    )
    return Subject(name, observed, board, int((good > 0).sum()), target, fs, workload)


def kept_board(directory: Path, name: str) -> Board:
    """The profile that is kept with a run, or the project's."""
    kept = directory / "profiles" / f"board-{name}.toml"
    if not kept.is_file():
        return load_board(name)
    return read_model(Board, read_toml(kept, ProfileError), kept, ProfileError)


def counters_of(
    now: Counters, before: Counters | None, seconds: float, name: str, board: Board | None
) -> Subject:
    """What a board's counters say: those of its whole life, or since an earlier reading.

    A few blocks fewer than before have gone bad. Raises `InputError` for readings that cannot
    follow each other.
    """
    if before is None:
        before = Counters(0, now.blocks, None if now.mean is None else 0.0)
    _check_order(now, before, name)
    if now.each and before.each:
        grown = {block: now.each[block] - before.each[block] for block in now.each}
        # The one with most to go on: ties are for the block that has been erased most.
        block = max(grown, key=lambda number: (grown[number], now.each[number]))
        worst, spent_worst, erases, slack = grown[block], now.each[block], sum(grown.values()), 0.0
        erased = sum(count > 0 for count in grown.values())
        observed = _observed(now, seconds, worst, spent_worst, float(erases), slack)
        observed = replace(observed, dispersion=dispersion(list(grown.values())))
        return Subject(name, observed, board, erased)
    known = now.blocks is not None and now.mean is not None and before.mean is not None
    erases_, slack = None, 0.0
    if known and now.blocks and now.mean is not None and before.mean is not None:
        # A mean that was rounded down is half an erase more, give or take half of one, a block.
        halves = (now.mean_is_floor, before.mean_is_floor)
        erases_ = (now.mean - before.mean + (halves[0] - halves[1]) / 2) * now.blocks
        slack = sum(halves) / 2 * now.blocks
    worst = now.worst - before.worst
    observed = _observed(now, seconds, worst, now.worst, erases_, slack)
    if now.each and not before.each and not before.worst:
        observed = replace(observed, dispersion=dispersion(list(now.each.values())))
    return Subject(name, observed, board, None)


def _observed(
    now: Counters, seconds: float, worst: int, spent_worst: int,
    erases: float | None, slack: float,
) -> Observed:  # fmt: skip
    spent = None if now.mean is None else now.mean + (0.5 if now.mean_is_floor else 0.0)
    return Observed(
        seconds=seconds,
        blocks=now.blocks,
        erases=erases,
        worst=worst,
        spent_mean=spent,
        spent_worst=spent_worst,
        erases_slack=slack,
        wl_threshold=now.wl_threshold,
    )


def _check_order(now: Counters, before: Counters, name: str) -> None:
    if now.blocks and before.blocks and not 0.9 * before.blocks <= now.blocks <= before.blocks:
        raise InputError(
            f"{name}: {now.blocks} blocks now and {before.blocks} before: not the same device"
        )
    if before.each and now.each:
        if not now.each.keys() <= before.each.keys():
            raise InputError(f"{name}: other blocks than before: not the same device")
        fewer = [block for block, erases in now.each.items() if erases < before.each[block]]
        if fewer:
            raise InputError(
                f"{name}: block {fewer[0]} has {now.each[fewer[0]]} erases now and"
                f" {before.each[fewer[0]]} before: the readings are swapped, or it was formatted"
            )
    if now.worst < before.worst or (now.mean or 0) < (before.mean or 0):
        raise InputError(
            f"{name}: fewer erases now than before: the readings are swapped, or it was formatted"
        )
