"""Runs programs on both targets and compares: programs go in, verdicts come out.

The simulator is fast and runs first; the kernel's cases are judged as they finish. A program that
the simulator refuses as not modelled is no difference; the kernel is still compared to the oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from flashbed.bench.fuzz.differences import (
    BothCounts,
    Difference,
    FuzzOutcome,
    counts_of,
    first_difference,
    outcomes_of,
)
from flashbed.bench.fuzz.oracle import Expected, expected_of
from flashbed.bench.fuzz.program import FuzzCase
from flashbed.stack.conditions import NONE
from flashbed.stack.profiles import Board, Kernel
from flashbed.targets.base import Batch, Failure, Program, RunOptions, Target

__all__ = ["Bench", "FuzzVerdict"]

_Progress = Callable[[str, int], None]


@dataclass(frozen=True, kw_only=True)
class FuzzVerdict:
    """The result of a program.

    `message` says what was refused, or what went wrong.
    """

    case: FuzzCase
    kind: Literal["exact", "differs", "refused", "error"]
    difference: Difference | None = None
    message: str = ""
    counts: BothCounts | None = None


class Bench:
    """A simulator and a real kernel of one board and kernel version."""

    def __init__(self, sim: Target, real: Target, board: Board, kernel: Kernel) -> None:
        self.sim = sim
        self.real = real
        self.board = board
        self.kernel = kernel

    def verdicts(
        self, cases: Sequence[FuzzCase], progress: _Progress
    ) -> Generator[FuzzVerdict, None, None]:
        """Yields a verdict for each program, as the kernel finishes them.

        Calls `progress(what, cases_done)`. Raises `Unavailable` if a target cannot run here.
        """
        programs = [case.program(self.board, self.kernel) for case in cases]
        board, kernel = self.board, self.kernel
        if not self.real.software_time:
            board, kernel = self.board.without_software(), self.kernel.in_user_mode
        by_id = {case.case_id: case for case in cases}
        simulated: dict[str, FuzzOutcome | Failure] = {}
        simulator = [
            replace(program, stack=replace(program.stack, board=board, kernel=kernel))
            for program in programs
        ]
        for outcomes in _runs(self.sim, simulator, lambda what, _done: progress(what, 0)):
            simulated |= outcomes
        # Closed when the caller stops early, so that no guest keeps running.
        with closing(_runs(self.real, programs, progress)) as runs:
            for outcomes in runs:
                for case_id, outcome in outcomes.items():
                    case = by_id.pop(case_id)
                    yield self._verdict(case, simulated.get(case_id), outcome)
        for case in by_id.values():
            yield FuzzVerdict(
                case=case, kind="error", message=f"{self.real.name}: reported nothing about it"
            )

    def differences(
        self, cases: Sequence[FuzzCase], progress: _Progress
    ) -> list[Difference | None]:
        """The difference of each program, in order; None for those that did not run."""
        named = [replace(case, case_id=f"candidate-{n}") for n, case in enumerate(cases)]
        found = {v.case.case_id: v.difference for v in self.verdicts(named, progress)}
        return [found[case.case_id] for case in named]

    def _verdict(
        self, case: FuzzCase, sim: FuzzOutcome | Failure | None, real: FuzzOutcome | Failure
    ) -> FuzzVerdict:
        if isinstance(real, Failure):
            return FuzzVerdict(case=case, kind="error", message=f"{self.real.name}: {real.message}")
        # What a failing chip lets an operation answer, and what the oracle does not have, the
        # kernel says.
        told = [Expected(row.result, row.content_crc32) for row in real.rows]
        if not case.recorded:
            known = expected_of(case, [row.result for row in real.rows])
            if known is None:
                return FuzzVerdict(
                    case=case, kind="error", message="an operation before the mark fails"
                )
            told = known if case.faults == NONE else told
        what = sim.not_modelled if isinstance(sim, Failure) else None
        if not isinstance(sim, FuzzOutcome) and what is None:
            message = sim.message if sim else "reported nothing about it"
            return FuzzVerdict(case=case, kind="error", message=f"{self.sim.name}: {message}")
        outcome = sim if isinstance(sim, FuzzOutcome) else None
        difference = first_difference(case, told, real, outcome)
        counts = counts_of(outcome, real) if outcome else None
        if difference:
            return FuzzVerdict(case=case, kind="differs", difference=difference, counts=counts)
        if what is not None:
            return FuzzVerdict(case=case, kind="refused", message=what)
        return FuzzVerdict(case=case, kind="exact", counts=counts)


def _runs(
    target: Target, programs: Sequence[Program], progress: _Progress
) -> Generator[dict[str, FuzzOutcome | Failure], None, None]:
    """Yields what finished programs did, or why they failed, batch by batch."""
    batches = target.run(programs, RunOptions(trace_flash=True, progress=progress))
    with _closed(batches):
        page_bytes = programs[0].stack.board.chip.page_bytes if programs else 0
        for batch in batches:
            failures = {failure.case_id: failure for failure in batch.failures}
            yield {**outcomes_of(batch, page_bytes), **failures}


@contextmanager
def _closed(batches: Iterator[Batch]) -> Generator[None, None, None]:
    """Closes a target's generator if it has `close`, which ends its guest."""
    try:
        yield
    finally:
        if isinstance(batches, Generator):
            batches.close()
