"""The simulated stack as a target: programs go in as text, columns come out as tables.

What is simulated, and how, is sim/'s; nothing is computed here but the names behind codes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from flashbed.formats.operations import writes
from flashbed.formats.profiles import USUAL_COMPRESSOR, Board
from flashbed.plan.conditions import PPM
from flashbed.tables.run_directory import CHIP_ALONE, SCHEMAS
from flashbed.targets.base import (
    Batch,
    Failure,
    Program,
    Run,
    Survey,
    SurveyedFile,
    Unavailable,
)
from flashbed.targets.fullness import Room, reached
from flashbed.targets.long_rows import LongRows

__all__ = ["ChipOnlyTarget", "SimTarget", "row_of"]

CASES_PER_CALL = 2000
TEXT_PER_CALL = 4 << 20
"""Bytes of operations: of cases that are not long all results of a call are in memory together."""

NULL = -(2**63)
"""Stands for null in a column (bind/src/lib.rs)."""


class SimTarget:
    """The simulator, `flashbed._sim`."""

    name = "sim"
    software_time = True
    long_rows: LongRows | None = None
    """Where rows of long cases go; None leaves them in their batch."""

    def prepare(self, say: Callable[[str], None]) -> None:  # noqa: ARG002
        """Nothing to fetch; see `Target.prepare`."""
        _run_cases()

    def run(
        self,
        programs: Sequence[Program],
        *,
        trace_flash: bool,
        progress: Callable[[str, int], None],
    ) -> Iterator[Batch]:
        """Runs programs, those of one board and kernel in one call. See `Target.run`."""
        run_cases = _run_cases()
        threads = os.cpu_count() or 1
        done = 0
        for group in _groups(programs):
            first = group[0]
            progress(f"{first.board.name}, Linux {first.kernel.name}", done)
            raw = run_cases(
                first.simulated_board,
                first.simulated_kernel,
                [row_of(program) for program in group],
                _recorded(first, trace_flash),
                threads,
                self._sink(group),
            )
            done += len(group)
            batch = self._batch(raw, group)
            if self.long_rows is not None:
                for index, _ in raw["unpriced"]:
                    self.long_rows.without_times(group[index].case_id)
            yield batch
            if raw["interrupted"] is not None:
                raise raw["interrupted"]
            progress(f"{first.board.name}, Linux {first.kernel.name}", done)

    def _batch(self, raw: dict[str, Any], group: Sequence[Program]) -> Batch:
        if not all(program.record_changes for program in group):
            raw["requests"].pop("changes", None)
        return batch_of(raw, group)

    def _sink(self, group: Sequence[Program]) -> Callable[[dict[str, Any]], None] | None:
        """Takes the rows of a case that has not ended."""
        rows = self.long_rows
        if rows is None:
            return None

        def take(raw: dict[str, Any]) -> None:
            batch = self._batch(raw, group)
            frames = {"requests": batch.requests, "flash": batch.flash}
            tables = {name: frame for name, frame in frames.items() if frame.height}
            rows.add(str(next(iter(tables.values()))["case_id"][0]), tables)

        return take


class ChipOnlyTarget(SimTarget):
    """The simulator on boards whose software takes no time: what user-mode Linux is compared with.

    Which thread gets its turn when depends on time, so a simulator whose software takes some
    collects at other moments. Times are null, as on user-mode Linux.
    """

    name = CHIP_ALONE
    software_time = False

    def run(
        self,
        programs: Sequence[Program],
        *,
        trace_flash: bool,
        progress: Callable[[str, int], None],
    ) -> Iterator[Batch]:
        """See `Target.run`."""
        boards = {id(program.board): program.board for program in programs}
        alike = {key: board.without_software() for key, board in boards.items()}
        there = [replace(program, board=alike[id(program.board)]) for program in programs]
        yield from super().run(there, trace_flash=trace_flash, progress=progress)

    def _batch(self, raw: dict[str, Any], group: Sequence[Program]) -> Batch:
        batch = super()._batch(raw, group)
        return replace(
            batch,
            cases=_without(batch.cases, "time_ns"),
            requests=_without(batch.requests, "latency_ns"),
        )


def _without(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    known = column in frame.columns
    return frame.with_columns(pl.lit(None, pl.Int64).alias(column)) if known else frame


def _recorded(program: Program, trace_flash: bool) -> list[str]:
    """The tables that are wanted besides `cases`."""
    asked = {
        "requests": program.record_requests,
        "flash": trace_flash,
        "wear": program.record_wear,
        "flush": program.record_flush,
    }
    return [table for table, is_asked in asked.items() if is_asked]


def row_of(program: Program) -> tuple[Any, ...]:
    """As the simulator takes it."""
    cuts = [
        cut.change for cut in program.cuts
    ]  # what is left of a change does not depend on chance
    return (
        program.case_id, program.simulated_fs, program.modelled_kib,
        program.prepare, program.body, cuts, _chip(program), program.dice,
    )  # fmt: skip


def _run_cases() -> Callable[..., dict[str, Any]]:
    try:
        from flashbed._sim import run_cases
    except ImportError:
        raise Unavailable(
            "the simulator is not compiled; `make build` compiles it (needs Rust)"
        ) from None
    return run_cases


def _chip(program: Program) -> tuple[Any, ...]:
    """What the simulator is told of the chip (bind/src/lib.rs `ChipInput`)."""
    faults = program.faults
    bad = faults.bad(program.board.partition.blocks)
    if not faults.while_measuring:
        return program.erases, bad, None
    failing = [
        (0, given) if isinstance(given, tuple) else (round(given * PPM), ())
        for given in (faults.program_fail, faults.erase_fail)
    ]
    flips = faults.bit_flips
    rate = (round(flips.rate * PPM), flips.bits) if flips else (0, 0)
    return program.erases, bad, (faults.seed, faults.endurance_erases, *failing, rate)


def _groups(programs: Sequence[Program]) -> Iterator[list[Program]]:
    groups: dict[tuple[str, str, str, bool, bool, bool], list[Program]] = {}
    for program in programs:
        recorded = (program.record_wear, program.record_requests, program.record_flush)
        usual = program.compressor == USUAL_COMPRESSOR
        mounted = "" if usual else program.mounted
        key = (program.board.sha256, program.kernel.sha256, mounted, *recorded)
        groups.setdefault(key, []).append(program)
    for group in groups.values():
        call: list[Program] = []
        text = 0
        for program in group:
            text += len(program.body)
            if call and (len(call) == CASES_PER_CALL or text > TEXT_PER_CALL):
                yield call
                call, text = [], len(program.body)
            call.append(program)
        yield call


def _column(values: bytes | Sequence[int]) -> pl.Series:
    """A column of the simulator: little-endian i64, or a list of integers."""
    if not isinstance(values, bytes):
        return pl.Series(values, dtype=pl.Int64)
    rows = len(values) // 8
    if rows == 0:
        return pl.Series([], dtype=pl.Int64)
    whole = pl.Series([values], dtype=pl.Binary)
    array = whole.bin.reinterpret(dtype=pl.Array(pl.Int64, rows), endianness="little")
    return array.reshape((-1,))


def _frame(columns: Mapping[str, bytes | Sequence[int]]) -> pl.DataFrame:
    frame = pl.DataFrame({name: _column(values) for name, values in columns.items()})
    if not frame.width:
        return frame
    return frame.with_columns(pl.when(pl.all() != NULL).then(pl.all()).name.keep())


def _named(codes: pl.Series, names: Sequence[str]) -> pl.Series:
    """Names by index; null stays null."""
    return pl.Series(names, dtype=pl.String).gather(codes)


def batch_of(raw: Mapping[str, Any], programs: Sequence[Program]) -> Batch:
    """The simulator's columns as tables. `case_index` counts in `programs`."""
    case_ids = [program.case_id for program in programs]
    failures = tuple(Failure(case_id, message) for case_id, message in raw["failures"])
    unpriced = {case_ids[index]: name for index, name in raw["unpriced"]}
    cases = _unknown(_cases(raw, programs), unpriced, "time_ns", "elapsed_ns")
    requests = _unknown(_requests(raw, case_ids), unpriced, "latency_ns")
    if cases.width:
        words = {name: _no_price(name, programs[0].board) for name in unpriced.values()}
        why = [words.get(unpriced.get(case_id, "")) for case_id in cases["case_id"]]
        cases = cases.with_columns(pl.Series("time_unknown", why, pl.String))
    tables = (cases, requests, _flash(raw, case_ids))
    surveys = tuple(_survey(row, case_ids) for row in raw["surveys"])
    wear = _wear(raw, programs)
    dice = {case_ids[index]: tuple(throws) for index, throws in raw["dice"]}
    return Batch(*tables, failures=failures, surveys=surveys, wear=wear, dice=dice)


def _no_price(compressor: str, board: Board) -> str:
    return f"{compressor} has no price on {board.name} (boards/{board.name}.toml, [software])"


def _unknown(frame: pl.DataFrame, case_ids: Collection[str], *columns: str) -> pl.DataFrame:
    """Without the times of cases in which a compressor ran whose time is not known."""
    if not case_ids or not frame.width:
        return frame
    known = pl.col("case_id").is_in(list(case_ids)).not_()
    return frame.with_columns(pl.when(known).then(pl.col(name)).alias(name) for name in columns)


def _survey(row: tuple[Any, ...], case_ids: Sequence[str]) -> Survey:
    case_index, change, mount_result, mount_time_ns, files, probe_result = row
    found = tuple(
        SurveyedFile(path, size_bytes, tuple(_run(run) for run in runs))
        for path, size_bytes, runs in files
    )
    return Survey(
        case_ids[case_index], change, mount_result, mount_time_ns, found, probe_result
    )  # fmt: skip


def _run(run: tuple[int, int, int | None, tuple[int, int] | None]) -> Run:
    offset_bytes, length_bytes, errno, source = run
    return Run(offset_bytes, length_bytes, errno or source or "zero")


def _cases(raw: Mapping[str, Any], programs: Sequence[Program]) -> pl.DataFrame:
    case_ids = [program.case_id for program in programs]
    cases = _frame(raw["cases"])
    if not cases.width:
        return cases  # every case failed
    return cases.with_columns(_nothing_left(cases, programs)).select(
        _named(cases["case_index"], case_ids).alias("case_id"),
        *(column for column in cases.columns if column in SCHEMAS["cases"]),
        (pl.col("erase_count_mean_milli") / 1000).alias("erase_count_mean"),
        *_states(cases, programs),
        pl.Series(
            "read_ahead_kib", [programs[index].modelled_kib for index in cases["case_index"]]
        ),
    )


def _leaving(table: pl.DataFrame, programs: Sequence[Program]) -> pl.Series:
    """Whether the case of each row may leave something in memory; see `operations.writes`."""
    leaving = [not program.record_flush or writes(program.body) for program in programs]
    return pl.Series(leaving, dtype=pl.Boolean).gather(table["case_index"])


def _nothing_left(table: pl.DataFrame, programs: Sequence[Program]) -> list[pl.Expr]:
    """The columns of the flush; those of a case that only reads are 0, as a real kernel's are."""
    columns = [name for name in table.columns if "flush" in name]
    left = pl.lit(_leaving(table, programs))
    return [pl.when(left).then(name).otherwise(0).alias(name) for name in columns]


def _states(cases: pl.DataFrame, programs: Sequence[Program]) -> Sequence[pl.Series]:
    """The columns `state_valid` and `state_invalid`."""
    rooms = cases.select("case_index", "fresh_bytes", "free_bytes", "fresh_pages", "pages")
    states = [
        reached(Room(*room), programs[index].fs, programs[index].board.chip.page_bytes)
        for index, *room in rooms.iter_rows()
    ]
    names = ("state_valid", "state_invalid")
    return [
        pl.Series(name, [state[at] for state in states], pl.Float64)
        for at, name in enumerate(names)
    ]


def _requests(raw: Mapping[str, Any], case_ids: Sequence[str]) -> pl.DataFrame:
    requests = _frame(raw["requests"])
    if not requests.width:
        return requests
    return requests.select(
        _named(requests["case_index"], case_ids).alias("case_id"),
        _named(requests["op_code"], raw["op_names"]).alias("op"),
        _named(requests["file_index"], raw["file_names"]).alias("file"),
        pl.exclude("case_index", "op_code", "file_index"),
    )


def _flash(raw: Mapping[str, Any], case_ids: Sequence[str]) -> pl.DataFrame:
    flash = _frame(raw["flash"])
    if not flash.width:
        return flash  # nothing was traced
    return flash.select(
        _named(flash["case_index"], case_ids).alias("case_id"),
        _named(flash["kind"], raw["kind_names"]).alias("kind"),
        _named(flash["task"], raw["task_names"]).alias("task"),
        pl.exclude("case_index", "kind", "task"),
    )


def _wear(raw: Mapping[str, Any], programs: Sequence[Program]) -> pl.DataFrame:
    """Every block of the simulator is good: nothing wears out in it."""
    case_ids = [program.case_id for program in programs]
    wear = _frame(raw["wear"])
    if not wear.width:
        return wear  # it was not asked for
    return wear.with_columns(_nothing_left(wear, programs)).select(
        _named(wear["case_index"], case_ids).alias("case_id"),
        pl.exclude("case_index"),
        pl.lit("good").alias("state"),
    )
