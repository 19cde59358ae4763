"""A run of the fuzzer: consecutive seeds in batches, until a difference, the last seed or the time.

The report is complete at every moment, so that an interrupted run has printed all it found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import Any

from flashbed.bench.fuzz.bench import Bench, FuzzVerdict
from flashbed.bench.fuzz.cuts import CutsBench
from flashbed.bench.fuzz.differences import Difference
from flashbed.bench.fuzz.generator import generate
from flashbed.bench.fuzz.mutations import RecordedSource
from flashbed.bench.fuzz.program import FuzzCase
from flashbed.bench.fuzz.shrink import Budget, Shrunk, shrink

__all__ = ["CampaignPlan", "FoundDifference", "Report", "fuzz"]

NEAR = 0.02
READS_NEAR = 0.01
Progress = Callable[[str, int, int | None], None]
"""Takes what is done now, programs done, and programs in all if that is known."""


@dataclass(frozen=True, kw_only=True)
class CampaignPlan:
    """Which programs to run. `cases` is the number of seeds per file system; None is no limit."""

    kind: str
    file_systems: tuple[str, ...]
    seed: int = 0
    cases: int | None = 200
    without: tuple[str, ...] = ()
    batch: int = 200
    keep_going: bool = False
    shrink: bool = True
    budget: Budget = field(default_factory=Budget)
    recorded: RecordedSource | None = None
    """What the programs are mutations of, instead of a class's."""

    @property
    def option(self) -> str:
        """The option of `flashbed fuzz` that says which programs."""
        return f"--from {self.recorded.path}" if self.recorded else f"--class {self.kind}"

    @property
    def what(self) -> str:
        """What the programs are, as the summary says it behind their number."""
        if self.recorded:
            return f"mutations of {self.recorded.path}"
        return f"programs of class {self.kind}"

    @property
    def programs(self) -> int | None:
        """The number of programs in all."""
        return None if self.cases is None else self.cases * len(self.file_systems)

    def all(self) -> Iterator[FuzzCase]:
        """Every program; within some hundred seeds, those of a file system together."""
        seeds = count(self.seed) if self.cases is None else range(self.seed, self.seed + self.cases)
        each = max(1, self.batch // len(self.file_systems))
        numbers = iter(seeds)
        while part := list(islice(numbers, each)):
            for fs in self.file_systems:
                yield from (self._program(fs, seed) for seed in part)

    def _program(self, fs: str, seed: int) -> FuzzCase:
        if self.recorded:
            return self.recorded.program(fs, seed)
        return generate(self.kind, fs, seed, self.without)


@dataclass(frozen=True)
class FoundDifference:
    """A difference, and the shortest program that shows it if there is one."""

    case: FuzzCase
    difference: Difference
    shrunk: Shrunk | None = None
    note: str = ""


@dataclass(kw_only=True)
class Report:
    """What a run has found so far."""

    plan: CampaignPlan
    programs: int = 0
    exact: int = 0
    compared: int = 0
    """Programs that both sides ran. Of them: those with as many page writes and erases, those
    within `NEAR` of that, and those with reads within `READS_NEAR`."""
    changes_equal: int = 0
    changes_near: int = 0
    reads_near: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    errors: list[tuple[str, str]] = field(default_factory=list)
    found: list[FoundDifference] = field(default_factory=list)
    next_seed: int = 0
    """Every program of a lower seed has been judged."""

    def take(self, verdict: FuzzVerdict) -> None:
        """Counts a program."""
        self.programs += 1
        if verdict.counts:
            self.compared += 1
            self.changes_equal += verdict.counts.changes_equal
            self.changes_near += verdict.counts.changes_within(NEAR)
            self.reads_near += verdict.counts.reads_within(READS_NEAR)
        if verdict.kind == "exact":
            self.exact += 1
        elif verdict.kind == "refused":
            self.refused[verdict.message] += 1
        elif verdict.kind == "error":
            self.errors.append((verdict.case.case_id, verdict.message))
        elif verdict.difference:
            self.found.append(FoundDifference(verdict.case, verdict.difference))

    @property
    def clean(self) -> bool:
        """Whether every program ran and none differed."""
        return not self.found and not self.errors

    def to_json(self) -> dict[str, Any]:
        """What `flashbed fuzz --format json` prints."""
        return {
            "class": None if self.plan.recorded else self.plan.kind,
            "from": str(self.plan.recorded.path) if self.plan.recorded else None,
            "fs": list(self.plan.file_systems),
            "seed": self.plan.seed,
            "next_seed": self.next_seed,
            "without": list(self.plan.without),
            "programs": self.programs,
            "exact": self.exact,
            "differing": len(self.found),
            "compared": self.compared,
            "changes_equal": self.changes_equal,
            "changes_near": self.changes_near,
            "reads_near": self.reads_near,
            "refused": dict(sorted(self.refused.items())),
            "errors": [{"case_id": name, "message": text} for name, text in self.errors],
            "differences": [_found_json(found) for found in self.found],
        }


def _found_json(found: FoundDifference) -> dict[str, Any]:
    told: dict[str, Any] = {
        "case_id": found.case.case_id,
        "read_ahead_kib": found.case.read_ahead_kib,
        "faults": str(found.case.faults),
        "wear": found.case.wear,
        "bulk_read": found.case.bulk_read,
        **_difference_json(found.difference),
        "note": found.note,
        "program": found.case.text,
        "shortest": None,
    }
    if found.shrunk:
        told["shortest"] = {
            "read_ahead_kib": found.shrunk.case.read_ahead_kib,
            **_difference_json(found.shrunk.difference),
            "program": found.shrunk.case.text,
        }
    return told


def _difference_json(difference: Difference) -> dict[str, Any]:
    left, right = difference.between
    return {
        "kind": difference.kind,
        "operation_number": difference.seq,
        "operation": difference.operation,
        left: difference.left,
        right: difference.right,
        "flash_around": list(difference.around),
    }


def fuzz(
    plan: CampaignPlan,
    bench: Bench | CutsBench,
    *,
    report: Report,
    progress: Progress,
    stopped: Callable[[], bool],
) -> None:
    """Runs the plan and fills the report; ends early at a difference or when `stopped()`.

    Raises `Unavailable` if a target cannot run here.
    """
    cases = plan.all()
    report.next_seed = plan.seed
    seen: set[tuple[str, ...]] = set()
    each = max(1, plan.batch // len(plan.file_systems))
    while not stopped() and (batch := list(islice(cases, each * len(plan.file_systems)))):
        before = len(report.found)
        whole = _judged(batch, bench, report=report, progress=progress, plan=plan, stopped=stopped)
        if whole:
            report.next_seed += len(batch) // len(plan.file_systems)
        for index in range(before, len(report.found)):
            signature = (report.found[index].case.fs, *report.found[index].difference.signature)
            if plan.shrink and signature not in seen:
                seen.add(signature)
                budget = replace(plan.budget, stopped=stopped)
                found = _shortest(
                    report.found[index], bench, budget=budget, report=report, progress=progress
                )
                report.found[index] = found
        if report.found and not plan.keep_going:
            return


def _judged(
    batch: Sequence[FuzzCase],
    bench: Bench | CutsBench,
    *,
    report: Report,
    progress: Progress,
    plan: CampaignPlan,
    stopped: Callable[[], bool],
) -> bool:
    """Counts the verdicts of a batch; False if it was left early."""
    start = report.programs

    def show(what: str, done: int) -> None:
        differing = f", {len(report.found)} differing" if report.found else ""
        progress(f"{what}{differing}", start + done, plan.programs)

    with closing(bench.verdicts(batch, show)) as verdicts:
        for verdict in verdicts:
            report.take(verdict)
            if (report.found and not plan.keep_going) or stopped():
                return False
    return True


def _shortest(
    found: FoundDifference,
    bench: Bench | CutsBench,
    *,
    budget: Budget,
    report: Report,
    progress: Progress,
) -> FoundDifference:
    """The difference with the shortest program that shows it."""
    name = found.case.case_id
    total = report.plan.programs
    progress(f"{name} differs: shortening it", report.programs, total)

    def show(what: str, _done: int) -> None:
        progress(f"{name}, shorter: {what}", report.programs, total)

    def probe(cases: Sequence[FuzzCase]) -> list[Difference | None]:
        return bench.differences(cases, show)

    shrunk = shrink(found.case, found.difference, probe, budget)
    note = "" if shrunk else "run alone it does not differ in this way"
    return FoundDifference(found.case, found.difference, shrunk, note)
