"""Takes erases from cases that were run, from a wear table on its own, or from a board's counters.

Each gives an `Observed` for the arithmetic, and facts for the reader. A case's measured part, with
the `sync()` that writes what it left in memory, counts as a round of the workload; rounds repeat at
a given rate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from flashbed.answers.lifetimes.ageing import CaseCounts, aged, rounds_of
from flashbed.answers.lifetimes.counters import Counters, wl_threshold_of
from flashbed.answers.lifetimes.estimate import DAY_S, USED_MAX, Observed, dispersion
from flashbed.answers.lifetimes.given import blocks_filled, early_erases, rounds_per_day
from flashbed.answers.lifetimes.subject import CAUSES, RoundWork, Subject
from flashbed.base.errors import InputError
from flashbed.base.frames import UNREADABLE, DamagedError, read_parquet
from flashbed.base.paths import shown
from flashbed.plan.case import AXES
from flashbed.plan.workloads.space import space_table
from flashbed.results.plausible import implausible
from flashbed.results.run_directory import SCHEMAS, read_table, scan_table
from flashbed.stack.changes import UNCHANGED, LayoutChange, changes_of
from flashbed.stack.layouts import changed_layout
from flashbed.stack.names import is_name
from flashbed.stack.profiles import Board, load_board, read_board

__all__ = [
    "board_of_run",
    "cases_of",
    "counters_of",
    "wear_table_of",
]


def cases_of(
    directory: Path,
    rounds: float | None,
    *,
    case_ids: Collection[str] | None = None,
    target: str | None = None,
) -> list[Subject]:
    """The cases of a run directory that have a wear table, or the named ones among them.

    `rounds` is how often a day each of them runs; None if no rate was given. Raises `InputError`.
    """
    wear = read_table(directory, "wear")
    every = cases = read_table(directory, "cases")
    if case_ids is not None:
        cases = cases.filter(pl.col("case_id").is_in(list(case_ids)))
    if target is not None:
        cases = cases.filter(pl.col("target") == target)
    if not cases.height and (case_ids is not None or target is not None):
        raise InputError(f"{shown(directory)}: holds none of the chosen cases")
    moved = _moved(directory, cases)
    of_case = wear.partition_by("case_id", "target", as_dict=True, maintain_order=True)
    subjects = []
    for case in cases.to_dicts():
        if case_ids is None and rounds_of(case) > 1:
            continue
        key = (case["case_id"], case["target"])
        if key in of_case:
            if case["flash_programs"] is None:
                raise InputError(f"{shown(directory)}: {key[0]} has wear and no flash_programs")
            board = _board_of(directory, case)
            once = _case(
                case, of_case[key], board=board, moved=moved.get(key, _Moved()), rounds=rounds
            )
            subjects.append(_replayed(once, case, every, of_case))
        elif case_ids is not None:
            raise InputError(
                f"{shown(directory)}: no wear of {key[0]} on {key[1]}; `--trace wear` records it"
            )
    return subjects


def _replayed(
    once: Subject, case: Mapping[str, Any], every: pl.DataFrame,
    wear: Mapping[tuple[Any, ...], pl.DataFrame],
) -> Subject:  # fmt: skip
    """The subject by the last rounds of the case that ran most often, if there is one that aged it.

    A case that ran `n` times counts where another ran `2 n` times, without failed calls.
    """
    work = once.workload
    if rounds_of(case) > 1 or work is None or not work.lasts:
        return once
    same = [pl.col(axis).eq_missing(case[axis]) for axis in AXES if axis != "rounds"]
    rows = every.filter(pl.col("target") == case["target"], *same).to_dicts()
    by_rounds = {rounds_of(row): row for row in rows if (row["case_id"], row["target"]) in wear}
    befores = [n for n in by_rounds if 2 * n in by_rounds]
    if not befores:
        return once
    before = max(befores)
    first, whole = (by_rounds[n] for n in (before, 2 * before))
    failed = whole.get("failed")
    if failed:
        calls = whole["failed_errno"]
        return replace(once, unaged=f"when it ran again, {failed:,} calls failed ({calls})")
    counted = [_counts(row, wear[row["case_id"], row["target"]]) for row in (first, whole)]
    return aged(once, before, *counted)


def _counts(case: Mapping[str, Any], wear: pl.DataFrame) -> CaseCounts:
    good = wear.filter(pl.col("state").fill_null("good") == "good").sort("block")
    causes = {name: case[f"bytes_{name}"] for name in CAUSES}
    known = None if None in causes.values() else causes
    return CaseCounts(case["flash_programs"], known, good["erases_measured"].to_list())


def _case(
    case: Mapping[str, Any],
    wear: pl.DataFrame,
    *,
    board: Board,
    moved: _Moved,
    rounds: float | None,
) -> Subject:
    """A case with its wear; `moved` has seconds and bytes if `cases` has none."""
    block_bytes = board.chip.block_bytes
    if case["elapsed_ns"] is not None:
        seconds, written = case["elapsed_ns"] / 1e9, case["bytes_written"]
    else:
        seconds, written = moved.seconds, moved.bytes_written
    busy_ns = case["flash_time_ns"] if case["time_ns"] is None else case["time_ns"]
    causes = {
        name: case[f"bytes_{name}"] + (case[f"flush_bytes_{name}"] or 0)
        for name in CAUSES
        if case[f"bytes_{name}"] is not None
    }
    # A real kernel's programs count as whole pages.
    programs = case["flash_programs"] + (case["flush_programs"] or 0)
    programmed = sum(causes.values()) if causes else programs * board.chip.page_bytes
    busy_s = None if busy_ns is None else busy_ns / 1e9
    workload = RoundWork(
        seconds=seconds,
        rounds_per_day=rounds_per_day(rounds, seconds, busy_s, case["case_id"]),
        given_rate=rounds is not None,
        bytes_written=written,
        bytes_by_cause=causes or None,
        bytes_programmed=programmed,
        bytes_erased=int(_erases(wear).sum()) * block_bytes,
        programs=programs,
        bytes_flushed=_flushed(case, board.chip.page_bytes),
        unsynced=_unsynced(case),
        failed=case.get("failed"),
    )
    grown = min(programmed, programmed if moved.extent is None else moved.extent)
    share = grown / _space_bytes(case, board)
    subject = _of_wear(
        wear, case["case_id"], workload, board, target=case["target"], fs=case["fs"],
        programmed_blocks=blocks_filled(board, programs, programmed if causes else None),
        used=case["state_valid"] or 0.0, grown=share,
    )  # fmt: skip
    return replace(subject, axes={axis: case[axis] for axis in AXES})


def _space_bytes(case: Mapping[str, Any], board: Board) -> int:
    """The space that the file system shares out: its partition, or its volume of a layout."""
    layout = changed_layout(LayoutChange.parse(str(case.get("layout") or UNCHANGED)))
    if layout is None:
        block_bytes = board.chip.block_bytes
        return board.partition.blocks * block_bytes
    return space_table(case["fs"], board, (), layout).size_bytes


def _flushed(case: Mapping[str, Any], page_bytes: int) -> int | None:
    """Bytes that the flush programmed; None if unknown."""
    causes: list[int | None] = [case[f"flush_bytes_{name}"] for name in CAUSES]
    known = [count for count in causes if count is not None]
    if len(known) == len(causes):
        return sum(known)
    programs: int | None = case["flush_programs"]
    return None if programs is None else programs * page_bytes


def _unsynced(case: Mapping[str, Any]) -> float | None:
    """The share of the programmed data that only the flush wrote; of pages on a real kernel."""
    for ran, flushed in (("bytes_data", "flush_bytes_data"), ("flash_programs", "flush_programs")):
        if case[ran] is not None and case[flushed] is not None:
            whole = case[ran] + case[flushed]
            return case[flushed] / whole if whole else 0.0
    return None


def _erases(wear: pl.DataFrame) -> pl.Series:
    """Erases of each block, in the measured part and in the flush after it."""
    return wear["erases_measured"] + wear["erases_flush"].fill_null(0)


class _Moved(NamedTuple):
    """What the measured operations of a case say; None where they were not kept.

    `seconds` are from the mark to the end, pauses included. `extent` is the bytes up to the end of
    each written file: the most that they add to the data in use.
    """

    seconds: float | None = None
    bytes_written: int | None = None
    extent: int | None = None


def _moved(directory: Path, cases: pl.DataFrame) -> dict[tuple[str, str], _Moved]:
    """Each case's `_Moved`, computed from `requests`.

    Where code takes no time (user-mode Linux) an operation takes the chip's time.
    """
    path = directory / "requests.parquet"
    if not path.is_file():
        return {}
    took = pl.coalesce("latency_ns", "flash_time_ns", pl.lit(0, pl.Int64))
    written = pl.col("result").filter(pl.col("op") == "write").clip(lower_bound=0).sum()
    key = ("case_id", "target")
    requests = scan_table(directory, "requests").filter(
        pl.col("case_id").is_in(cases["case_id"].unique().to_list())
    )
    sums = requests.group_by(key).agg(
        (pl.col("start_ns") + took).max() / 1e9, written.alias("written")
    )
    ends = (
        requests.filter(pl.col("op") == "write", pl.col("result") > 0)
        .group_by(*key, "file")
        .agg((pl.col("offset_bytes") + pl.col("result")).max().alias("extent"))
        .group_by(key)
        .agg(pl.col("extent").sum())
    )
    rows = sums.join(ends, on=key, how="left").select(
        *key, "start_ns", "written", pl.col("extent").fill_null(0)
    )
    try:
        found = rows.collect(engine="streaming")
    except UNREADABLE:
        raise InputError(f"{shown(path)}: cannot be read; run the experiment again") from None
    return {(case_id, target): _Moved(*of_it) for case_id, target, *of_it in found.iter_rows()}


def wear_table_of(path: Path, rounds: float, board: Board | None) -> list[Subject]:
    """The cases of a `wear` table without a run. Raises `InputError`."""
    try:
        wear = read_parquet(path)
    except DamagedError:
        raise InputError(f"{shown(path)}: cannot be read as Parquet") from None
    columns = {"case_id", "target", "block", "erases_measured", "state"}
    if not columns <= set(wear.columns):
        missing = sorted(columns - set(wear.columns))
        raise InputError(f"{shown(path)}: no wear table: it has no column {missing[0]}")
    if "erases_flush" not in wear.columns:
        wear = wear.with_columns(pl.lit(None, pl.Int64).alias("erases_flush"))
    types = {name: SCHEMAS["wear"][name] for name in (*columns, "erases_flush")}
    try:
        wear = wear.with_columns(pl.col(name).cast(kind) for name, kind in types.items())
    except pl.exceptions.PolarsError:
        raise InputError(f"{shown(path)}: no wear table: a column has another type") from None
    if not wear.height:
        raise InputError(f"{shown(path)}: a wear table without rows")
    odd = implausible(wear.select(*types), "wear")
    if odd:
        raise InputError(f"{shown(path)}: no wear table: {odd}")
    parts = wear.partition_by("case_id", "target", as_dict=True, maintain_order=True)
    return [
        _of_wear(
            rows,
            str(case_id),
            RoundWork(
                seconds=None,
                rounds_per_day=rounds,
                given_rate=True,
                bytes_written=None,
                bytes_by_cause=None,
                bytes_programmed=None,
                bytes_erased=None,
            ),
            board,
            target=str(target),
            fs=None,
        )
        for (case_id, target), rows in parts.items()
    ]


def _of_wear(
    wear: pl.DataFrame, name: str, workload: RoundWork, board: Board | None,
    *, target: str, fs: str | None, programmed_blocks: float | None = None,
    used: float | None = None, grown: float = 0.0,
) -> Subject:  # fmt: skip
    """A new chip under rounds of a workload, one of which was measured. Bad blocks do not wear.

    A block of unknown state counts as good. `used` is the share of the partition that files used
    when measuring started, `grown` the share that they can have added.
    """
    there = wear.filter(pl.col("state").fill_null("good") == "good")
    good = _erases(there)
    if not good.len() or good.null_count() or (good < 0).any():
        raise InputError(f"{name}: its wear table has no count of erases of every good block")
    rounds = workload.rounds_per_day
    observed = Observed(
        seconds=DAY_S / rounds if rounds else None,
        blocks=good.len(),
        erases=float(good.sum()),
        worst=int(good.to_numpy().max()),
        dispersion=dispersion(good.to_list()),
        programmed_blocks=programmed_blocks,
        early_erases=early_erases(fs, int(there["erases_measured"].sum())),
        used=None if used is None else min(USED_MAX, used + grown),
        grown=grown,
        wl_threshold=wl_threshold_of(fs),
    )
    return Subject(
        name=name,
        observed=observed,
        board=board,
        blocks_erased=int((good > 0).sum()),
        target=target,
        fs=fs,
        workload=workload,
    )


def _board_of(directory: Path, case: Mapping[str, Any]) -> Board:
    """The board of a case, with the case's changes to its profile."""
    return board_of_run(directory, case["board"]).changed(changes_of(case))


def board_of_run(directory: Path, name: str) -> Board:
    """The profile kept with a run, else the project's."""
    kept = directory / "profiles" / f"board-{name}.toml"
    if not is_name(name) or not kept.is_file():
        return load_board(name)
    return read_board(kept)


def counters_of(
    now: Counters, before: Counters | None, *, seconds: float, name: str, board: Board | None
) -> Subject:
    """A board's counters: over its whole life, or since an earlier reading.

    A few missing blocks have gone bad since. Raises `InputError` if one reading cannot follow the
    other.
    """
    if before is None:
        before = Counters(worst=0, blocks=now.blocks, mean=None if now.mean is None else 0.0)
    _check_order(now, before, name)
    if now.each and before.each:
        grown = {block: now.each[block] - before.each[block] for block in now.each}
        # The block with most new erases; ties go to the block with most erases in all.
        block = max(grown, key=lambda number: (grown[number], now.each[number]))
        worst, spent_worst, erases, slack = grown[block], now.each[block], sum(grown.values()), 0.0
        erased = sum(count > 0 for count in grown.values())
        observed = _observed(
            now, seconds, worst=worst, spent_worst=spent_worst, erases=float(erases), slack=slack
        )
        observed = replace(observed, dispersion=dispersion(list(grown.values())))
        return Subject(name=name, observed=observed, board=board, blocks_erased=erased)
    known = now.blocks is not None and now.mean is not None and before.mean is not None
    erases_, slack = None, 0.0
    if known and now.blocks and now.mean is not None and before.mean is not None:
        # A mean that was rounded down is on average half an erase too low, give or take half.
        halves = (now.mean_is_floor, before.mean_is_floor)
        erases_ = (now.mean - before.mean + (halves[0] - halves[1]) / 2) * now.blocks
        slack = sum(halves) / 2 * now.blocks
    worst = now.worst - before.worst
    observed = _observed(
        now, seconds, worst=worst, spent_worst=now.worst, erases=erases_, slack=slack
    )
    if now.each and not before.each and not before.worst:
        observed = replace(observed, dispersion=dispersion(list(now.each.values())))
    return Subject(name=name, observed=observed, board=board, blocks_erased=None)


def _observed(
    now: Counters, seconds: float, *, worst: int, spent_worst: int,
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
