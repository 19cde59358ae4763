"""The cases of an experiment, described by the values of their axes instead of held as objects.

A sweep has up to a million cases. A `Product` is the lists that multiply to cases; a case is made
when it is needed. `Plan` is all cases of an experiment with their targets, in order and each once.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from operator import itemgetter
from typing import Any, overload

from flashbed.plan.case import AXES, NAME_WORDS, Case, fitting_mount
from flashbed.stack.changes import OF_BOARD
from flashbed.stack.doubts import doubts

__all__ = ["Block", "Cases", "Plan", "Planned", "Product", "as_plan", "plan_of"]

STACK = ("board", "kernel", *OF_BOARD)
"""The axes that decide a case's profiles."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A case and the targets that should run it."""

    case: Case
    targets: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Product:
    """Cases whose axes have every combination of these values, the last axis fastest.

    `values` has a list for each of AXES; no list has a value twice.
    """

    experiment: str
    values: tuple[tuple[Any, ...], ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.experiment, self.values)

    def __len__(self) -> int:
        return prod(map(len, self.values))

    @cached_property
    def varying(self) -> dict[str, tuple[int, tuple[Any, ...]]]:
        """Axes with several values -> the number of cases between two values, and the values."""
        found: dict[str, tuple[int, tuple[Any, ...]]] = {}
        stride = len(self)
        for axis, own in zip(AXES, self.values, strict=True):
            stride //= len(own)
            if len(own) > 1:
                found[axis] = (stride, own)
        return found

    @cached_property
    def _first(self) -> dict[str, Any]:
        first = (own[0] for own in self.values)
        return {"experiment": self.experiment, **dict(zip(AXES, first, strict=True))}

    @cached_property
    def _sets(self) -> tuple[frozenset[Any], ...]:
        return tuple(map(frozenset, self.values))

    def case(self, index: int) -> Case:
        """The case with this number, counted from 0."""
        values = self._first.copy()
        for axis, (stride, own) in self.varying.items():
            values[axis] = own[index // stride % len(own)]
        return Case.of(values)

    def at(self, axes: Iterable[str], index: int) -> tuple[Any, ...]:
        """The values of some axes of a case."""
        found = []
        for axis in axes:
            stride, own = self.varying.get(axis, (1, (self._first[axis],)))
            found.append(own[index // stride % len(own)])
        return tuple(found)

    def names(self) -> Iterator[str]:
        """The names of its cases, without making the cases."""
        words = [
            [NAME_WORDS[axis](value) for value in own]
            for axis, own in zip(AXES, self.values, strict=True)
        ]
        in_order = itemgetter(*map(list(AXES).index, NAME_WORDS))
        return ("".join(in_order(some)) for some in itertools.product(*words))

    def overlaps(self, other: Product) -> bool:
        """Whether some case is in both."""
        pairs = zip(self._sets, other._sets, strict=True)
        return not any(own.isdisjoint(theirs) for own, theirs in pairs)

    def has(self, values: Iterable[Any]) -> bool:
        """Whether it has the case with these values of AXES."""
        return all(value in own for value, own in zip(values, self._sets, strict=True))


def _received(experiment: str, values: tuple[tuple[Any, ...], ...]) -> Product:
    """A product from another process, with the defaults' own objects: they need no formatting."""
    usual = (about.usual for about in AXES.values())
    pairs = zip(values, usual, strict=True)
    own = ((mine,) if given == (mine,) else given for given, mine in pairs)
    return Product(experiment, tuple(own))


@dataclass(frozen=True)
class Cases(Sequence[Case]):
    """Cases as products and numbers in them; each case is made when it is needed."""

    pieces: tuple[tuple[Product, Sequence[int]], ...]

    def __len__(self) -> int:
        return sum(len(indices) for _, indices in self.pieces)

    def __iter__(self) -> Iterator[Case]:
        for product, indices in self.pieces:
            yield from map(product.case, indices)

    @overload
    def __getitem__(self, at: int) -> Case: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Case]: ...
    def __getitem__(self, at: int | slice) -> Case | Sequence[Case]:
        """Cases by number; linear in the number of pieces for one, of all cases for a slice."""
        if isinstance(at, slice):
            return list(self)[at]
        left = at if at >= 0 else at + len(self)
        for product, indices in self.pieces:
            if 0 <= left < len(indices):
                return product.case(indices[left])
            left -= len(indices)
        raise IndexError(at)

    def of_each_stack(self) -> Iterator[Case]:
        """At least one case of every board, kernel, chip and partition."""
        for product, indices in self.pieces:
            alike = not any(axis in product.varying for axis in STACK)
            yield from map(product.case, indices[:1] if alike else indices)


@dataclass(frozen=True, eq=False)
class Block:
    """A product with its targets. A case that an earlier block has too belongs to that one.

    `earlier` and `later` are the other blocks that share cases with it.
    """

    product: Product
    targets: tuple[str, ...]
    earlier: list[Product] = field(default_factory=list)
    later: list[tuple[Product, tuple[str, ...]]] = field(default_factory=list)

    def indices(self, needed: frozenset[str] = frozenset()) -> Sequence[int]:
        """The numbers of its own cases that have all needed targets."""
        if not self.earlier and (needed <= set(self.targets) or not self.later):
            return range(len(self.product) if needed <= set(self.targets) else 0)
        return array(
            "Q",
            (
                index
                for index in range(len(self.product))
                if self._is_own(index) and needed <= set(self.targets_of(index))
            ),
        )

    def _is_own(self, index: int) -> bool:
        values = self.product.at(AXES, index) if self.earlier else ()
        return not any(product.has(values) for product in self.earlier)

    def targets_of(self, index: int) -> tuple[str, ...]:
        """The targets of a case, those of later blocks after its own."""
        if not self.later:
            return self.targets
        values = self.product.at(AXES, index)
        also = (targets for product, targets in self.later if product.has(values))
        return tuple(dict.fromkeys((*self.targets, *itertools.chain.from_iterable(also))))


@dataclass(frozen=True, eq=False)
class Plan(Sequence[Planned]):
    """Cases with their targets, each case once, those of one board and kernel adjacent.

    Only cases with all `needed` targets count; `given` stands for the targets of all.
    """

    blocks: tuple[Block, ...]
    needed: frozenset[str] = frozenset()
    given: tuple[str, ...] | None = None

    @cached_property
    def cases(self) -> Cases:
        """Its cases."""
        return self._with(self.needed)

    def on(self, target: str) -> Cases:
        """The cases of a target."""
        if self.given is not None:
            return self.cases if target in self.given else Cases(())
        return self._with(self.needed | {target})

    def doubts(self) -> list[str]:
        """A line for each number of the cases' boards that no chip on sale has."""
        some = self.cases.of_each_stack()
        boards = {tuple(str(getattr(case, name)) for name in STACK): case for case in some}
        lines = (line for case in boards.values() for line in doubts(case.profile()))
        return list(dict.fromkeys(lines))

    def _with(self, needed: frozenset[str]) -> Cases:
        pieces = ((block.product, block.indices(needed)) for block in self.blocks)
        return Cases(tuple((product, indices) for product, indices in pieces if len(indices)))

    def retargeted(self, targets: tuple[str, ...], needed: Iterable[str] = ()) -> Plan:
        """The cases with all needed targets, for other targets."""
        return Plan(self.blocks, self.needed | frozenset(needed), targets)

    @property
    def targets(self) -> frozenset[str]:
        """Every target that some case has."""
        if self.given is not None:
            return frozenset(self.given)
        return frozenset(target for block in self.blocks for target in block.targets)

    @property
    def names(self) -> Iterable[str]:
        """The names of the cases, made each time they are iterated."""
        return _PlanNames(self)

    def _names(self) -> Iterator[str]:
        for block in self.blocks:
            indices = block.indices(self.needed)
            names = block.product.names()
            if len(indices) == len(block.product):
                yield from names
                continue
            wanted = iter(indices)
            next_one = next(wanted, None)
            for index, name in enumerate(names):
                if index == next_one:
                    next_one = next(wanted, None)
                    yield name

    def only(self, case_id: str) -> Plan:
        """The case with this name, or nothing."""
        for at, name in enumerate(self.names):
            if name == case_id:
                return as_plan([self[at]])
        return Plan(())

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[Planned]:
        for block in self.blocks:
            for index in block.indices(self.needed):
                yield Planned(block.product.case(index), self.given or block.targets_of(index))

    @overload
    def __getitem__(self, at: int) -> Planned: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Planned]: ...
    def __getitem__(self, at: int | slice) -> Planned | Sequence[Planned]:
        """Cases by number, found by counting."""
        if isinstance(at, slice):
            return list(self)[at]
        for planned in itertools.islice(self, at if at >= 0 else at + len(self), None):
            return planned
        raise IndexError(at)


@dataclass(frozen=True, eq=False)
class _PlanNames:
    """The names of a plan's cases."""

    plan: Plan

    def __iter__(self) -> Iterator[str]:
        return self.plan._names()


def plan_of(products: Iterable[tuple[Product, tuple[str, ...]]]) -> Plan:
    """The plan of the products of grids, in the order in which boards and kernels first occur."""
    stacks: dict[tuple[str, str], list[Block]] = {}
    for whole, targets in products:
        for product in _of_each_mount(whole):
            stack = (product.values[_BOARD][0], product.values[_KERNEL][0])
            blocks = stacks.setdefault(stack, [])
            block = Block(product, targets)
            for other in blocks:
                if other.product.overlaps(product):
                    other.later.append((product, targets))
                    block.earlier.append(other.product)
            blocks.append(block)
    return Plan(tuple(itertools.chain.from_iterable(stacks.values())))


_BOARD, _KERNEL, _FS, _MOUNT = map(list(AXES).index, ("board", "kernel", "fs", "mount"))


def _of_each_mount(whole: Product) -> Iterator[Product]:
    """A product for each board, kernel and file system, without mounts of other file systems."""
    lists = [tuple(dict.fromkeys(own)) for own in whole.values]
    for board, kernel, fs in itertools.product(lists[_BOARD], lists[_KERNEL], lists[_FS]):
        own = list(lists)
        own[_BOARD], own[_KERNEL], own[_FS] = (board,), (kernel,), (fs,)
        own[_MOUNT] = tuple(dict.fromkeys(fitting_mount(fs, mount) for mount in lists[_MOUNT]))
        yield Product(whole.experiment, tuple(own))


def as_plan(planned: Sequence[Planned]) -> Plan:
    """A plan of these cases, in this order."""
    if isinstance(planned, Plan):
        return planned
    return Plan(
        tuple(
            Block(
                Product(item.case.experiment, tuple((getattr(item.case, axis),) for axis in AXES)),
                item.targets,
            )
            for item in planned
        )
    )
