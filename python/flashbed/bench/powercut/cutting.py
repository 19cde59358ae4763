"""Runs cases with power cuts on any target that can make them.

`PowerCuts` is a target around another. That target first runs each case to count its changes to the
chip. `PowerCuts` then chooses cuts, lets the case run again with them, and judges what was found. A
cut follows from the case, its number and the seed alone.
"""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import polars as pl

from flashbed.base.errors import InputError
from flashbed.base.paths import sha256_of
from flashbed.bench.powercut.dumped_tree import begun_with
from flashbed.bench.powercut.judge import DoneOperation, judge
from flashbed.bench.powercut.program_files import DAMAGED, STATES, ProgramFiles
from flashbed.plan.workloads.rounds import rest_ns
from flashbed.program.operations import HEADER_2, Operation, parse
from flashbed.results.run_directory import SCHEMAS
from flashbed.stack.file_systems import RAW
from flashbed.targets.base import PLAIN, Apart, Batch, Cut, Failure, Program, RunOptions, Target

__all__ = ["NO_CHANGE", "Choice", "PowerCuts", "with_data"]

NO_CHANGE = "makes no change to the chip"

_S_NS = 1_000_000_000
_SEEDS = 1_000_003
"""Distance of seeds, so that no two cuts and no two runs tear alike."""


@dataclass(frozen=True)
class Choice:
    """Which changes to cut: every `every`th, or `samples` of them drawn by `seed`."""

    every: int | None
    samples: int | None
    seed: int
    chip_commands: tuple[str, ...] = ()

    def cuts(self, changes: int) -> tuple[Cut, ...]:
        """The cuts of a case with this number of changes."""
        chosen = list(range(1, changes + 1))
        if self.every is not None:
            chosen = chosen[:: self.every]
        elif self.samples is not None and self.samples < changes:
            draw = random.Random(self.seed).random  # the same in every version of Python
            chosen = sorted(sorted(chosen, key=lambda _: draw())[: self.samples])
        return tuple(Cut(change, self.seed * _SEEDS + change) for change in chosen)

    def cuts_of(self, case_id: str, changes: int) -> tuple[Cut, ...]:  # noqa: ARG002
        """The cuts of one case; here they depend on the number of changes only."""
        return self.cuts(changes)


@dataclass
class PowerCuts:
    """A target whose cases end in power cuts."""

    target: Target
    choice: Choice
    name: str
    """The inner target's."""
    files: bool = True
    """Whether the program's own files are judged too."""
    rests: bool = False
    """Whether the power also fails after the program, until the kernel has written all back."""

    @property
    def apart(self) -> Apart:
        """The inner target's."""
        return self.target.apart

    @property
    def software_time(self) -> bool:
        """The inner target's."""
        return self.target.software_time

    @property
    def conditions(self) -> str:
        """What results depend on besides program and target: the choice of cuts, and the judge."""
        digest = hashlib.sha256(f"{self.choice!r}{' rests' if self.rests else ''}".encode())
        here = Path(__file__).parent
        for file in (here.parents[1] / "program/content.py", *sorted(here.glob("*.py"))):
            digest.update(sha256_of(file).encode())
        return digest.hexdigest()

    def prepare(self, say: Callable[[str], None]) -> None:
        """Prepares the inner target."""
        self.target.prepare(say)

    def run(self, programs: Sequence[Program], options: RunOptions = PLAIN) -> Iterator[Batch]:
        """See `Target.run`. A case with a row has its cuts in `power_cuts`."""

        def say(what: str, _done: int) -> None:
            options.progress(f"counting changes: {what}", 0)

        commands = self.choice.chip_commands
        requested = [
            replace(program, record_changes=True, chip_commands=commands)
            for program in (map(_rested, programs) if self.rests else programs)
        ]
        changes: dict[str, int] = {}
        for batch in self.target.run(requested, RunOptions(progress=say)):
            found, failures = _changes(batch)
            changes |= found
            if failures or batch.failures:
                none = pl.DataFrame()
                both = (*batch.failures, *failures)
                yield Batch(cases=none, requests=none, flash=none, failures=both)
        cut = [
            replace(program, cuts=self.choice.cuts_of(program.case_id, changes[program.case_id]))
            for program in requested
            if program.case_id in changes
        ]
        by_id = {program.case_id: program for program in cut}
        if cut:
            for batch in self.target.run(cut, replace(options, long_rows=None)):
                yield _judged(batch, by_id, files=self.files)


def _rested(program: Program) -> Program:
    """The program, and after it the seconds until old data is on the flash.

    In version 2 a task sleeps before its next call only, so each second has one.
    """
    seconds = -(-rest_ns(program.stack.vm) // _S_NS)
    second = f"pause {_S_NS}\n" + ("stat .\n" if program.body.startswith(HEADER_2) else "")
    return replace(program, body=f"{program.body.rstrip()}\n{second * seconds}")


def _changes(batch: Batch) -> tuple[dict[str, int], list[Failure]]:
    """Case -> its number of changes to the chip; a failure for a case without any."""
    found: dict[str, int] = {}
    failures = []
    for case_id in batch.cases["case_id"] if batch.cases.width else []:
        rows = batch.requests.filter(pl.col("case_id") == case_id)
        last = rows["changes"].last() if "changes" in rows.columns else None
        if isinstance(last, int) and last > 0:
            found[case_id] = last
        else:
            why = NO_CHANGE if last == 0 else "changes were not counted"
            failures.append(Failure(case_id=case_id, message=f"power cuts: {why}"))
    return found, failures


def _judged(batch: Batch, programs: dict[str, Program], *, files: bool) -> Batch:
    rows: list[tuple[object, ...]] = []
    states: list[tuple[object, ...]] = []
    failures = list(batch.failures)
    judged = []
    for case_id in batch.cases["case_id"] if batch.cases.width else []:
        surveys = [survey for survey in batch.surveys if survey.case_id == case_id]
        done = _done(programs[case_id], batch.requests.filter(pl.col("case_id") == case_id))
        first = next((n for n, step in enumerate(done) if step.operation.name == "mark"), 0)
        program = ProgramFiles(done, first) if files else None
        try:
            disk = programs[case_id].stack.fs in RAW
            there = begun_with(programs[case_id])
            found = judge(done, surveys, program, disk=disk, there=there)
            cuts = [(cut.change, (case_id, *astuple(cut))) for cut in found]
            rows += [(*row, *_counts(program, change)) for change, row in cuts]
            states += [(case_id, *astuple(state)) for state in program.rows()] if program else []
            judged.append(case_id)
        except InputError as why:
            failures.append(Failure(case_id=case_id, message=f"cannot be judged: {why}"))
    keep = pl.col("case_id").is_in(judged)
    return Batch(
        cases=batch.cases.filter(keep) if batch.cases.width else batch.cases,
        requests=batch.requests.filter(keep) if batch.requests.width else batch.requests,
        flash=batch.flash.filter(keep) if batch.flash.width else batch.flash,
        failures=tuple(failures),
        surveys=batch.surveys,
        power_cuts=_table("power_cuts", rows),
        cut_files=_table("cut_files", states),
    )


def _table(name: str, rows: Sequence[tuple[object, ...]]) -> pl.DataFrame:
    schema = {column: kind for column, kind in SCHEMAS[name].items() if column != "target"}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _counts(program: ProgramFiles | None, change: int) -> tuple[int | None, int | None]:
    """How many files of the program were judged after a cut, and how many of them were damaged."""
    if program is None:
        return None, None
    counts = {state: program.counts[change, state] for state in STATES}
    return sum(counts.values()), sum(counts[state] for state in DAMAGED)


def _done(program: Program, requests: pl.DataFrame) -> list[DoneOperation]:
    """All operations with results: those before the mark succeeded, the others have rows."""
    operations = parse(program.body)
    body, tasks = list(with_data(operations)), list(_tasks(operations))
    rows = list(requests.sort("seq").select("result", "changes", "start_ns").iter_rows())
    first = len(body) - len(rows)
    unmeasured = [*with_data(parse(program.prepare)), *body[:first]]
    done = [
        DoneOperation(operation=step, result=_succeeded(step), changes=0, data=data, start_ns=0)
        for step, data in unmeasured
    ]
    done += [
        DoneOperation(
            operation=step, result=result, changes=changes, data=data, task=task, start_ns=start_ns
        )
        for (step, data), task, (result, changes, start_ns) in zip(
            body[first:], tasks[first:], rows, strict=True
        )
    ]
    return done


def _tasks(steps: Iterable[Operation]) -> Iterator[int]:
    """The task of each operation that `with_data` yields."""
    task = 0
    for step in steps:
        if step.name == "task":
            task = int(step.fields[0])
        elif step.name != "data":
            yield task


def with_data(steps: Iterable[Operation]) -> Iterator[tuple[Operation, bytes]]:
    """The operations that have rows, each with the bytes of the `data` lines above it."""
    data = b""
    for step in steps:
        if step.name == "data":
            data += base64.b64decode(str(step.fields[0]))
        elif step.name != "task":
            yield step, data
            data = b""


_LENGTH_FIELD = {"write": 2, "copy": 4}
"""The field of the LENGTH that an operation returns; the tree clips a copy to its source."""


def _succeeded(operation: Operation) -> int:
    at = _LENGTH_FIELD.get(operation.name)
    return 0 if at is None else int(operation.fields[at])
