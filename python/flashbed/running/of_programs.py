"""Runs programs that belong to no experiment on several guests at once, for `validate`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from flashbed.plan.case_units import UNIT_CASES
from flashbed.running.memory import claim_bytes
from flashbed.running.processes import run_in_processes
from flashbed.running.ways import Way
from flashbed.targets import TARGETS
from flashbed.targets.base import Batch, Program, RunOptions, Target

__all__ = ["batches_of"]

Progress = Callable[[str, int], None]


@dataclass(frozen=True)
class _SharedPreparation:
    """Programs that share a preparation."""

    number: int
    target: str
    programs: tuple[Program, ...]

    @property
    def cases(self) -> int:
        return len(self.programs)

    def run(
        self, target_of: Callable[[str], Target], processor: int, progress: Progress
    ) -> Iterator[Batch]:
        options = RunOptions(progress=progress, threads=1, processor=processor)
        yield from target_of(self.target).run(self.programs, options)


def batches_of(
    target: Target, programs: Sequence[Program], way: Way, progress: Progress
) -> Iterator[Batch]:
    """Yields the results of programs in the order of their tasks. Raises as `Target.run`."""
    apart = target.apart
    many = way.at_once > 1 and target.name in TARGETS
    if not (many and apart.boots and apart.together == "preparation"):
        yield from target.run(programs, RunOptions(progress=progress, threads=way.at_once))
        return
    tasks = [
        (
            _SharedPreparation(number, target.name, tuple(some)),
            claim_bytes(apart, [program.stack.board for program in some]),
        )
        for number, some in enumerate(_units(programs))
    ]
    came: dict[int, list[Batch]] = {task.number: [] for task, _ in tasks}
    for task, batch in run_in_processes(iter(tasks), way.at_once, progress):
        came[task.number].append(batch)
    for batches in came.values():
        yield from batches


def _units(programs: Sequence[Program]) -> Iterator[list[Program]]:
    """Programs that share a preparation, in the order in which they first occur."""
    units: dict[Hashable, list[Program]] = {}
    for program in programs:
        units.setdefault((program.stack, program.prepare), []).append(program)
    for unit in units.values():
        for at in range(0, len(unit), UNIT_CASES):
            yield unit[at : at + UNIT_CASES]
