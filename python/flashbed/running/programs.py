"""Turns cases into the programs that a target sees, with their boards' and kernels' profiles."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.plan.case import Case
from flashbed.plan.experiment import Experiment, ExperimentFacts, WorkloadTable
from flashbed.plan.planned import Cases
from flashbed.plan.workloads import operations
from flashbed.plan.workloads.rounds import in_rounds
from flashbed.plan.workloads.state import in_state
from flashbed.stack.changes import OF_BOARD
from flashbed.stack.energy import Energy
from flashbed.stack.profiles import Board, Kernel, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program

__all__ = ["Profiles", "RunFacts", "programs_of", "programs_with"]


@dataclass(frozen=True)
class RunFacts:
    """What an experiment records of its cases, which the cases themselves do not say."""

    id: str
    sha256: str
    facts: ExperimentFacts
    workload: WorkloadTable

    @classmethod
    def by(cls, experiment: Experiment) -> RunFacts:
        """The settings of an experiment."""
        own = experiment.experiment
        return cls(experiment.id, experiment.sha256, own, experiment.workload)


@dataclass(frozen=True)
class Profiles:
    """The boards and kernels of some cases; a board with a changed chip is another board."""

    boards: dict[Hashable, Board] = field(default_factory=dict)
    kernels: dict[str, Kernel] = field(default_factory=dict)

    @classmethod
    def of(cls, cases: Iterable[Case]) -> Profiles:
        """The profiles of cases. Raises `InputError` for an impossible one."""
        found = cls()
        for case in _of_each_stack(cases):
            board = _board(case)
            if board not in found.boards:
                found.boards[board] = case.profile()
                # Computed here, where the file exists; a worker may be another machine.
                assert found.boards[board].sha256
            if case.kernel not in found.kernels:
                found.kernels[case.kernel] = load_kernel(case.kernel)
                assert found.kernels[case.kernel].sha256
        return found

    def only(self, cases: Iterable[Case]) -> Profiles:
        """The profiles that these cases need."""
        found = Profiles()
        for case in _of_each_stack(cases):
            found.boards[_board(case)] = self.boards[_board(case)]
            found.kernels[case.kernel] = self.kernels[case.kernel]
        return found

    def board(self, case: Case) -> Board:
        """The board of a case."""
        return self.boards[_board(case)]

    @property
    def energies(self) -> dict[str, Energy | None]:
        """Energy constants by board's name. A board with a changed chip shares its name."""
        return {board.name: board.energy for board in self.boards.values() if board.energy}

    @property
    def files(self) -> dict[str, Path]:
        """Name in the run directory -> file, of every profile."""
        files = {f"board-{board.name}": board.path for board in self.boards.values()}
        for board in self.boards.values():
            files |= board.files
        return files | {f"kernel-{name}": kernel.path for name, kernel in self.kernels.items()}


def _of_each_stack(cases: Iterable[Case]) -> Iterable[Case]:
    """A case of each board, chip, partition and kernel."""
    some = cases.of_each_stack() if isinstance(cases, Cases) else cases
    return {(*_board(case), case.kernel): case for case in some}.values()


def _board(case: Case) -> tuple[Hashable, ...]:
    return case.board, *(getattr(case, name) for name in OF_BOARD)


def _parts_of_stack(case: Case) -> Hashable:
    """What `Case.stack` makes a stack of."""
    how = (case.fs, case.mount, case.compressor, case.read_ahead_kib, case.vm)
    return (*_board(case), case.kernel, *how, case.state, case.faults)


def programs_of(
    experiment: Experiment, cases: Sequence[Case], *, record_wear: bool = False
) -> list[Program]:
    """`programs_with` for cases of an experiment. Raises `InputError` for a bad profile too."""
    return programs_with(
        RunFacts.by(experiment), cases, Profiles.of(cases), record_wear=record_wear
    )


def programs_with(
    run_facts: RunFacts,
    cases: Sequence[Case],
    profiles: Profiles,
    *,
    record_wear: bool = False,
    made: Callable[[int], None] = lambda _: None,
) -> list[Program]:
    """The cases as a target sees them. Raises `InputError` for an impossible case.

    `made` is called with the number made so far: SQLite runs to make some cases.
    """
    record_wear = record_wear or "wear" in run_facts.facts.trace
    stacks: dict[Hashable, Stack] = {}
    programs = []
    for case in cases:
        below = _parts_of_stack(case)
        stack = stacks.get(below)
        if stack is None:
            stack = case.stack(profiles.board(case), profiles.kernels[case.kernel])
            stacks[below] = stack
        table = run_facts.workload
        prepare, once = operations(table.kind, case, table.settle_ns, table.given)
        body = in_rounds(once, case.rounds, case.vm)
        bad = case.faults.bad(stack.board.partition.blocks)
        programs.append(
            Program(
                case_id=case.case_id,
                stack=stack,
                prepare=in_state(
                    case.state, case.fs, board=stack.board, bad_blocks=bad, prepare=prepare
                ),
                body=body,
                record_wear=record_wear,
                record_flush=True,
                record_requests=case.rounds == 1 and "requests" not in run_facts.facts.omit,
                filled=case.state.fills,
            )
        )
        made(len(programs))
    return programs
