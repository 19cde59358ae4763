"""Runs the cases of an experiment on a target and keeps what comes back.

The one place where an experiment, a target and a run directory meet. It decides what has to be run
(what is not there yet, made by the same profiles, operations and code), gives each batch its axes
and provenance, and writes it before asking for the next.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import polars as pl

from flashbed import __version__, paths
from flashbed.energy.fold import energy_of
from flashbed.formats.energy import Energy
from flashbed.formats.names import SHIPPED, escaped
from flashbed.formats.profiles import load_kernel
from flashbed.plan.case import AXIS_COLUMNS, Case
from flashbed.plan.conditions import NONE
from flashbed.plan.experiment import Experiment, Facts, Planned
from flashbed.tables.columns import conform
from flashbed.tables.run_directory import RunDirectory
from flashbed.targets import code_sha256
from flashbed.targets.base import Batch, Failure, Program, RunOptions, Target
from flashbed.targets.code import modules_of
from flashbed.targets.long_rows import LongRows
from flashbed.workloads import operations
from flashbed.workloads.state import in_state

__all__ = ["Outcome", "commit", "programs_of", "run_target"]

_HASHED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """What came of running an experiment on a target: numbers of cases, and what failed.

    `not_measured` are the cases that the target lacks something for, which is no failure.
    """

    target: str
    measured: int
    kept: int
    failures: tuple[Failure, ...]
    not_measured: tuple[Failure, ...] = ()


def programs_of(
    experiment: Experiment,
    cases: Sequence[Case],
    *,
    record_wear: bool = False,
    made: Callable[[int], None] = lambda _: None,
) -> list[Program]:
    """The cases as a target sees them. Raises `InputError` for a profile or case that cannot be.

    `made` is told how many there are so far: SQLite runs for each of its cases.
    """
    record_wear = record_wear or "wear" in experiment.experiment.trace
    boards = {_stack(case): case.profile() for case in cases}
    kernels = {name: load_kernel(name) for name in {case.kernel for case in cases}}
    programs = []
    for case in cases:
        board = boards[_stack(case)]
        blocks = board.partition.blocks
        table = experiment.workload
        prepare, body = operations(table.kind, case, table.settle_ns, table.given)
        bad = case.faults.bad(blocks)
        programs.append(
            Program(
                case_id=case.case_id,
                fs=case.fs,
                board=board,
                kernel=kernels[case.kernel],
                read_ahead_kib=case.forced_kib,
                prepare=in_state(case.state, case.fs, board, bad, prepare),
                body=body,
                record_wear=record_wear,
                record_flush=True,
                record_requests="requests" not in experiment.experiment.omit,
                erases=case.state.erases(blocks),
                faults=case.faults,
                filled=case.state.fills,
                mount_options=case.mount_options,
                compressor=case.compressor,
            )
        )
        made(len(programs))
    return programs


def _stack(case: Case) -> tuple[str, str, str]:
    return case.board, str(case.chip), str(case.partition)


@cache
def commit() -> str | None:
    """The checkout's commit, `-dirty` if its tracked files differ; null without git or checkout."""
    if not paths.in_checkout():
        return None
    describe = ["git", "-C", str(paths.root()), "describe", "--always", "--abbrev=40", "--dirty"]
    try:
        done = subprocess.run(
            [*describe, "--exclude=*"], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _keys(
    programs: Sequence[Program], target: str, trace_flash: bool, conditions: str
) -> dict[str, str]:
    """case_id -> what its result depends on, hashed."""
    code, energy_code = code_sha256(target), _energy_code()
    prepared: dict[str, str] = {}
    keys = {}
    for program in programs:
        if program.prepare not in prepared:
            prepared[program.prepare] = hashlib.sha256(program.prepare.encode()).hexdigest()
        parts = (
            code,
            program.board.sha256,
            program.kernel.sha256,
            prepared[program.prepare],
            program.mounted,
            SHIPPED if program.read_ahead_kib is None else str(program.read_ahead_kib),
            f"{trace_flash} {program.record_wear}",
            program.body,
            *([] if program.record_requests else ["without requests"]),
            *([f"erases {program.erases}"] if program.erases else []),
            *([program.faults.model_dump_json()] if program.faults != NONE else []),
            *(energy_code if program.board.energy else []),
            *([conditions] if conditions else []),
        )
        keys[program.case_id] = _sha256("\n", parts)
    return keys


def _sha256(between: str, parts: Sequence[str]) -> str:
    """Of the parts joined. A body may be so long that it should not be there twice."""
    found = hashlib.sha256()
    for number, part in enumerate(parts):
        found.update((between if number else "").encode())
        for at in range(0, len(part), _HASHED_AT_ONCE):
            found.update(part[at : at + _HASHED_AT_ONCE].encode())
    return found.hexdigest()


def _energy_code() -> list[str]:
    """What energies are worked out by."""
    return [paths.sha256_of(file) for file in modules_of(energy_of.__module__)]


def _described(
    batch: Batch,
    long_rows: LongRows,
    target: str,
    axes: pl.DataFrame,
    boards: dict[str, Energy | None],
    activity: str | None,
    omit: Sequence[str],
) -> dict[str, pl.DataFrame]:
    """A batch's tables with axes, target, energy and provenance, but for those to `omit`.

    Of long cases they have the last rows, and `long_rows` those before.
    """
    named = pl.lit(target).alias("target")
    cases = batch.cases.join(axes, on="case_id", how="left", maintain_order="left", suffix="_asked")
    if "read_ahead_kib_asked" in cases.columns:
        read_back = pl.coalesce("read_ahead_kib", "read_ahead_kib_asked")
        cases = cases.with_columns(read_back.alias("read_ahead_kib")).drop("read_ahead_kib_asked")
    requests = pl.DataFrame() if "requests" in omit else batch.requests
    every = {
        "requests": _with_long(requests, "requests", long_rows, cases["case_id"]),
        "flash": _with_long(batch.flash, "flash", long_rows, cases["case_id"]),
    }
    energies = energy_of(cases, every["requests"], boards, activity, every["flash"])
    cases = cases.join(energies, on="case_id", how="left", maintain_order="left")
    tables = {"cases": cases.with_columns(named)}
    stored = {
        "requests": requests,
        "flash": batch.flash,
        "power_cuts": batch.power_cuts,
        "wear": batch.wear,
    }
    for name, frame in stored.items():
        if frame.height:
            tables[name] = frame.with_columns(named)
    return tables


def _with_long(
    rows: pl.DataFrame, table: str, long_rows: LongRows, case_ids: Iterable[str]
) -> pl.DataFrame | pl.LazyFrame:
    """The rows of a batch with what came of its long cases before."""
    before = [long_rows.rows(table, case_id) for case_id in case_ids]
    long = [pieces for pieces in before if pieces is not None]
    return pl.concat([*long, conform(rows, table).lazy()]) if long else rows


def _axes(
    cases: Sequence[Case], programs: Sequence[Program], experiment: Experiment
) -> pl.DataFrame:
    """case_id, axes and provenance of cases."""
    columns: dict[str, list[str | int | bool | None]] = {
        "case_id": [case.case_id for case in cases],
        "experiment": [case.experiment for case in cases],
    }
    for axis in AXIS_COLUMNS:
        values = (getattr(case, axis) for case in cases)
        columns[axis] = [value if isinstance(value, int) else str(value) for value in values]
    columns["read_ahead_kib"] = [program.read_ahead_kib for program in programs]
    columns["board_sha256"] = [program.board.sha256 for program in programs]
    columns["kernel_sha256"] = [program.kernel.sha256 for program in programs]
    return pl.DataFrame(columns, strict=False).with_columns(
        pl.lit(experiment.sha256).alias("experiment_sha256"),
        pl.lit(__version__).alias("flashbed_version"),
        pl.lit(commit(), pl.String).alias("commit"),
    )


def run_target(
    experiment: Experiment,
    planned: Sequence[Planned],
    target: Target,
    directory: RunDirectory,
    *,
    trace_flash: bool,
    progress: Callable[[str, int, int], None],
    record_wear: bool = False,
    conditions: str = "",
) -> Outcome:
    """Runs what is planned for a target and not there yet; the directory is whole at any time.

    `progress(what, cases_done, cases)` is called as it goes. Raises `Unavailable` and `InputError`;
    a case that fails is in the outcome. What the experiment itself asks to be traced is traced in
    any case. `conditions` is what results depend on besides the programs. A case whose power cuts
    could not all be made is kept, and run again next time.
    """
    cases = [item.case for item in planned if target.name in item.targets]
    programs = programs_of(
        experiment,
        cases,
        record_wear=record_wear,
        made=lambda done: progress("making the programs", done, len(cases)),
    )
    trace_flash = trace_flash or "flash" in experiment.experiment.trace
    keys = _keys(programs, target.name, trace_flash, conditions)
    finished = directory.finished()
    missing = [
        program
        for program in programs
        if finished.get((program.case_id, target.name)) != keys[program.case_id]
    ]
    kept = len(programs) - len(missing)
    directory.keep_sources(experiment.path, _profiles(programs))
    adding = _Adding.of(experiment, cases, programs, target.name, directory, keys)

    def report(what: str, done: int) -> None:
        progress(what, kept + done, len(cases))

    try:
        if missing:
            options = RunOptions(trace_flash, report, adding.long_rows)
            for batch in target.run(missing, options):
                adding.add(batch)
    finally:
        adding.long_rows.close()
        # The operations of a long case need as much memory as merging does.
        programs.clear()
        missing.clear()
        directory.merge([item.case.case_id for item in experiment.planned])
        lacking = tuple(failure for failure in adding.failures if failure.not_measured)
        directory.keep_not_measured(target.name, _reasons(lacking))
    real = tuple(failure for failure in adding.failures if not failure.not_measured)
    return Outcome(target.name, adding.measured, kept, real, lacking)


@dataclass
class _Adding:
    """Batches of a target on their way into a directory, and what came of them so far."""

    directory: RunDirectory
    target: str
    axes: pl.DataFrame
    boards: dict[str, Energy | None]
    facts: Facts
    keys: dict[str, str]
    long_rows: LongRows
    failures: list[Failure] = field(default_factory=list)
    measured: int = 0

    @classmethod
    def of(
        cls, experiment: Experiment, cases: Sequence[Case], programs: Sequence[Program],
        target: str, directory: RunDirectory, keys: dict[str, str],
    ) -> _Adding:  # fmt: skip
        """Before the first batch."""
        axes = _axes(cases, programs, experiment)
        # A board with another chip has no energies, and the same name.
        known = [program.board for program in programs if program.board.energy]
        boards = {board.name: board.energy for board in known}
        long_rows = LongRows(directory.parts(), target)
        return cls(directory, target, axes, boards, experiment.experiment, keys, long_rows)

    def add(self, batch: Batch) -> None:
        """Writes what a batch has."""
        self.failures += batch.failures
        if not batch.cases.height:
            return
        self.measured += batch.cases.height
        half_done = {failure.case_id: "" for failure in self.failures}
        done = batch.cases.select(
            "case_id",
            pl.lit(self.target).alias("target"),
            pl.col("case_id").replace_strict(self.keys | half_done).alias("key"),
        )
        tables = _described(
            batch, self.long_rows, self.target, self.axes, self.boards,
            self.facts.activity, self.facts.omit,
        )  # fmt: skip
        taken = _taken(self.long_rows, done["case_id"], self.facts.omit)
        self.directory.add(tables, done, taken)


def _taken(
    long_rows: LongRows, case_ids: Iterable[str], omit: Sequence[str]
) -> dict[str, list[Path]]:
    """The files of the long cases among these, by table, but for tables to `omit`."""
    files: dict[str, list[Path]] = {"requests": [], "flash": []}
    for case_id in case_ids:
        for table, there in files.items():
            there += [] if table in omit else long_rows.take(table, case_id)
        long_rows.forget(case_id)
    return files


def _reasons(lacking: Sequence[Failure]) -> pl.DataFrame:
    rows = [(failure.case_id, escaped(failure.message)) for failure in lacking]
    columns = {"case_id": pl.String(), "reason": pl.String()}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _profiles(programs: Sequence[Program]) -> dict[str, Path]:
    """Name to keep it under -> file, of every profile used."""
    files = {}
    for program in programs:
        files[f"board-{program.board.name}"] = program.board.path
        files[f"kernel-{program.kernel.name}"] = program.kernel.path
    return files
