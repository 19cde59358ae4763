"""The profiles of cases, each read once, and the stacks that cases make of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from flashbed.plan.case import Case
from flashbed.plan.planned import Cases
from flashbed.stack.changes import OF_BOARD
from flashbed.stack.energy import Energy
from flashbed.stack.profiles import Board, Kernel, load_kernel
from flashbed.stack.stack import Stack

__all__ = ["Profiles"]


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

    def stacks(self, cases: Iterable[Case]) -> Iterator[Stack]:
        """The stack of each case, in order. Cases of the same parts share one."""
        made: dict[Hashable, Stack] = {}
        for case in cases:
            parts = _parts_of_stack(case)
            if parts not in made:
                made[parts] = case.stack(self.boards[_board(case)], self.kernels[case.kernel])
            yield made[parts]

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
    how = (
        case.fs,
        case.mount,
        case.compressor,
        case.read_ahead_kib,
        case.vm,
        case.policy,
        case.layout,
    )
    return (*_board(case), case.kernel, *how, case.state, case.faults)
