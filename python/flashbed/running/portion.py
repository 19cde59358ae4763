"""Runs a portion of an experiment's cases on a target and keeps it as parts of a run directory.

It decides which cases have to run: those without a result made from the same profiles, operations
and code. Each batch of the target becomes a part at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from flashbed import __version__
from flashbed.answers.energy.fold import energy_of
from flashbed.base.code import common_sources, digest_of, modules_of, sources_of
from flashbed.base.paths import sha256_of
from flashbed.plan.case import AXES, AXIS_COLUMNS, Case
from flashbed.plan.case_profiles import Profiles
from flashbed.results.columns import conform
from flashbed.results.run_directory import write_part
from flashbed.running.programs import RunFacts, programs_with
from flashbed.stack.energy import Energy
from flashbed.targets import BOARD, TARGETS
from flashbed.targets.base import Batch, Failure, Program, RunOptions, Target
from flashbed.targets.long_rows import LongRows

__all__ = [
    "Part",
    "Portion",
    "PortionTask",
    "RunJob",
    "code_sha256",
    "energy_code",
    "run_portion",
]

_HASHED_AT_ONCE = 1 << 20
Progress = Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class RunJob:
    """What all portions of a run on a target share. Results do not depend on where they run.

    `conditions` is what results depend on besides the programs; `code` makes the target's numbers,
    `energy_code` the energies. `threads` are the simulator's.
    """

    run_facts: RunFacts
    target: str
    trace_flash: bool
    trace_waits: bool
    record_wear: bool
    conditions: str
    code: str
    energy_code: tuple[str, ...]
    commit: str | None
    threads: int


@dataclass(frozen=True)
class Portion:
    """Cases, their profiles, and the keys of results that exist already."""

    number: int
    cases: Sequence[Case]
    profiles: Profiles
    finished: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PortionTask:
    """A portion for another process; parts are folders below `below`."""

    job: RunJob
    portion: Portion
    below: Path

    @property
    def number(self) -> int:
        """The portion's number."""
        return self.portion.number

    @property
    def cases(self) -> int:
        """The number of its cases."""
        return len(self.portion.cases)

    def run(
        self, target_of: Callable[[str], Target], processor: int, progress: Progress
    ) -> Iterator[Part]:
        """Calls `run_portion`; `target_of` finds a target by its name."""
        target = target_of(self.job.target)
        yield from run_portion(
            self.job,
            self.portion,
            target=target,
            below=self.below,
            progress=progress,
            processor=processor,
        )


@dataclass(frozen=True)
class Part:
    """Results of a portion so far, in a folder that the caller moves; None without any cases.

    `kept` counts the cases that existed already.
    """

    folder: Path | None = None
    measured: int = 0
    kept: int = 0
    failures: tuple[Failure, ...] = ()


def code_sha256(target: str) -> str:
    """SHA-256 over the code that makes a target's numbers; when it changes, cases run again."""
    module = "flashbed.targets.ssh.board" if target == BOARD else TARGETS[target][0]
    return digest_of(sources_of(module))


def energy_code() -> tuple[str, ...]:
    """The code that computes energies."""
    files = [*modules_of(energy_of.__module__), *common_sources()]
    return tuple(sha256_of(file) for file in files)


def run_portion(
    job: RunJob,
    portion: Portion,
    *,
    target: Target,
    below: Path,
    progress: Progress,
    processor: int | None = None,
) -> Iterator[Part]:
    """Runs the cases without a result. Parts are folders below `below`.

    `progress(what, cases_done)` counts the portion's cases. A guest is pinned to the host's
    processor with the given number. A case some of whose power cuts failed is kept without a key.
    Raises what the target raises.
    """
    cases = list(portion.cases)
    total = len(cases)
    programs = programs_with(
        job.run_facts,
        cases,
        portion.profiles,
        record_wear=job.record_wear,
        made=lambda done: progress(f"making the programs, {done} of {total}", 0),
    )
    keys = _keys(programs, job)
    axes = _axes(cases, programs, job)
    missing = [
        program
        for program in programs
        if portion.finished.get(program.case_id) != keys[program.case_id]
    ]
    kept = len(programs) - len(missing)
    programs.clear()
    cases.clear()
    yield Part(kept=kept)
    if not missing:
        return
    long_rows = LongRows(below, job.target)
    adding = _Adding(
        job=job,
        axes=axes,
        energies=portion.profiles.energies,
        keys=keys,
        long_rows=long_rows,
        below=below,
    )
    options = RunOptions(
        trace_flash=job.trace_flash,
        trace_waits=job.trace_waits,
        progress=lambda what, done: progress(what, kept + done),
        long_rows=long_rows,
        threads=job.threads,
        processor=processor,
    )
    try:
        for batch in target.run(missing, options):
            yield adding.part(batch)
    finally:
        long_rows.close()
        # The operations of a long case take as much memory as merging does.
        missing.clear()


def _keys(programs: Sequence[Program], job: RunJob) -> dict[str, str]:
    """case_id -> hash of everything its result depends on."""
    prepared: dict[str, str] = {}
    keys = {}
    for program in programs:
        if program.prepare not in prepared:
            prepared[program.prepare] = hashlib.sha256(program.prepare.encode()).hexdigest()
        recorded = (job.trace_flash, program.record_wear, program.record_requests)
        parts = (
            job.code,
            program.stack.sha256,
            prepared[program.prepare],
            program.body,
            *([] if program.dump is None else [program.dump.sha256, program.dump.volume or ""]),
            f"{recorded} {'waits ' if job.trace_waits else ''}{job.conditions}",
            *(job.energy_code if program.stack.board.energy else []),
        )
        keys[program.case_id] = _sha256("\n", parts)
    return keys


def _sha256(between: str, parts: Sequence[str]) -> str:
    """Hash of the joined parts, without a second copy of a long body."""
    if sum(map(len, parts)) < _HASHED_AT_ONCE:
        return hashlib.sha256(between.join(parts).encode()).hexdigest()
    found = hashlib.sha256()
    for number, part in enumerate(parts):
        found.update((between if number else "").encode())
        for at in range(0, len(part), _HASHED_AT_ONCE):
            found.update(part[at : at + _HASHED_AT_ONCE].encode())
    return found.hexdigest()


def _axes(cases: Sequence[Case], programs: Sequence[Program], job: RunJob) -> pl.DataFrame:
    """case_id, axes and provenance of cases."""
    columns: dict[str, list[str | int | bool | None]] = {
        "case_id": [case.case_id for case in cases],
        "experiment": [case.experiment for case in cases],
    }
    for axis in AXIS_COLUMNS:
        values = [getattr(case, axis) for case in cases]
        words: dict[int, str] = {}
        if axis in AXES and AXES[axis].is_table:
            # Cases of a grid share these objects, so each is formatted once.
            words = {id(value): str(value) for value in {id(one): one for one in values}.values()}
        columns[axis] = [
            value if isinstance(value, int) else words.get(id(value)) or str(value)
            for value in values
        ]
    columns["read_ahead_kib"] = [program.stack.read_ahead_kib for program in programs]
    columns["board_sha256"] = [program.stack.board.sha256 for program in programs]
    columns["kernel_sha256"] = [program.stack.kernel.sha256 for program in programs]
    return pl.DataFrame(columns, strict=False).with_columns(
        pl.lit(job.run_facts.sha256).alias("experiment_sha256"),
        pl.lit(__version__).alias("flashbed_version"),
        pl.lit(job.commit, pl.String).alias("commit"),
    )


@dataclass(kw_only=True)
class _Adding:
    """Turns a target's batches into parts."""

    job: RunJob
    axes: pl.DataFrame
    energies: dict[str, Energy | None]
    keys: dict[str, str]
    long_rows: LongRows
    below: Path
    half_done: dict[str, str] = field(default_factory=dict)
    """Cases with a failed power cut; they get no key."""

    def part(self, batch: Batch) -> Part:
        """Writes a batch."""
        self.half_done |= {failure.case_id: "" for failure in batch.failures}
        if not batch.cases.height:
            return Part(failures=batch.failures)
        done = batch.cases.select(
            "case_id",
            pl.lit(self.job.target).alias("target"),
            pl.col("case_id").replace_strict(self.keys | self.half_done).alias("key"),
        )
        omit = self.job.run_facts.facts.omit
        tables = self._described(batch, omit)
        taken = _taken(self.long_rows, done["case_id"], omit)
        folder = write_part(self.below, tables, done, taken)
        return Part(folder, batch.cases.height, failures=batch.failures)

    def _described(self, batch: Batch, omit: Sequence[str]) -> dict[str, pl.DataFrame]:
        """A batch's tables with axes, target, energy and provenance, except those to `omit`.

        For long cases they hold the last rows; `long_rows` has the others.
        """
        named = pl.lit(self.job.target).alias("target")
        cases = batch.cases.join(
            self.axes, on="case_id", how="left", maintain_order="left", suffix="_asked"
        )
        if "read_ahead_kib_asked" in cases.columns:
            read_back = pl.coalesce("read_ahead_kib", "read_ahead_kib_asked")
            cases = cases.with_columns(read_back.alias("read_ahead_kib"))
            cases = cases.drop("read_ahead_kib_asked")
        requests = pl.DataFrame() if "requests" in omit else batch.requests
        every = {
            "requests": _with_long(requests, "requests", self.long_rows, cases["case_id"]),
            "flash": _with_long(batch.flash, "flash", self.long_rows, cases["case_id"]),
        }
        activity = self.job.run_facts.facts.activity
        energies = energy_of(
            cases,
            every["requests"],
            boards=self.energies,
            given_activity=activity,
            flash=every["flash"],
        )
        cases = cases.join(energies, on="case_id", how="left", maintain_order="left")
        tables = {"cases": cases.with_columns(named)}
        stored = {
            "requests": requests,
            "flash": batch.flash,
            "power_cuts": batch.power_cuts,
            "cut_files": batch.cut_files,
            "wear": batch.wear,
        }
        for name, frame in stored.items():
            if frame.height:
                tables[name] = frame.with_columns(named)
        return tables


def _with_long(
    rows: pl.DataFrame, table: str, long_rows: LongRows, case_ids: Iterable[str]
) -> pl.DataFrame | pl.LazyFrame:
    """A batch's rows together with the earlier rows of its long cases."""
    before = [long_rows.rows(table, case_id) for case_id in case_ids]
    long = [pieces for pieces in before if pieces is not None]
    return pl.concat([*long, conform(rows, table).lazy()]) if long else rows


def _taken(
    long_rows: LongRows, case_ids: Iterable[str], omit: Sequence[str]
) -> dict[str, list[Path]]:
    """Files of the long cases among these, by table, except tables to `omit`."""
    files: dict[str, list[Path]] = {"requests": [], "flash": []}
    for case_id in case_ids:
        for table, there in files.items():
            there += [] if table in omit else long_rows.take(table, case_id)
        long_rows.forget(case_id)
    return files
