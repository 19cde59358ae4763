"""Whether a policy of the user's does what policies must: `flashbed policy check`.

A policy runs on each file system, on a small partition, with programs that ask it often: one that
overwrites until blocks are collected, with a remount, or one that reads in many orders. It runs
twice, with new objects, and must answer alike. Its program is then cut at changes of the chip, and
what was synced must be there. The counts stand beside those of the kernel's own rule.

Left out: how good a policy is; an experiment with `policy` as an axis says that.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from flashbed.base.errors import RunError
from flashbed.bench.powercut.cutting import Choice, PowerCuts
from flashbed.bench.powercut.judge import RECOVERED
from flashbed.plan.stacks import one_stack
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.policies import Policy
from flashbed.targets.base import Batch, Program
from flashbed.targets.sim import SimTarget

__all__ = ["WINDOW_KIB", "Checked", "check_program", "checked", "settings_of"]

BLOCKS = 144
"""Of the partition: 18 MiB of the usual board's chip."""
WINDOW_KIB = 128
FREE_KIB = 1_024
"""Of memory, where a policy of reclaim is checked: 256 pages for a file of 512."""
_PAGE = 4096
_METHODS: Mapping[str, tuple[str, ...]] = {
    "read_ahead": ("on_miss", "on_marker"), "reclaim": ("choose",), "victim": ("choose",),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A policy on a file system. `wrong` is empty where everything holds."""

    fs: str
    decisions: int
    """How often it was asked; not counted of a built-in policy."""
    none: int
    """How often it answered None."""
    counts: Mapping[str, int]
    """Flash operations: `flash_reads`, `flash_programs`, `flash_erases`."""
    kernels: Mapping[str, int]
    """The same under the kernel's own rule."""
    cuts: int
    recovered: int
    wrong: tuple[str, ...]


def checked(policy: Policy, *, cuts: int, seed: int) -> Iterator[Checked]:
    """The policy on each file system. Raises `InputError`; `RunError` if the policy fails."""
    for fs in FILE_SYSTEMS:
        program = _program(policy, fs, seed)
        with _asked(policy) as asked:
            first = _ran(program)
        again = _ran(program)
        kernels = _ran(replace(program, stack=replace(program.stack, policies=())))
        verdicts = _cut(program, cuts, seed) if cuts else []
        recovered = verdicts.count(RECOVERED)
        wrong = []
        if not _equal(first, again):
            wrong.append("two runs differ: it uses more than what it is told and self.random")
        if recovered < len(verdicts):
            wrong.append(
                f"{len(verdicts) - recovered} of {len(verdicts)} power cuts are not recovered"
            )
        yield Checked(
            fs=fs, decisions=len(asked), none=asked.count(True), counts=_counts(first),
            kernels=_counts(kernels), cuts=len(verdicts), recovered=recovered, wrong=tuple(wrong),
        )  # fmt: skip


def _program(policy: Policy, fs: str, seed: int) -> Program:
    chosen = f"policy.{policy.decision}={policy.name}"
    stack = one_stack([f"fs={fs}", *settings_of(policy.decision), chosen])
    prepare, body = check_program(policy.decision, seed)
    return Program(case_id=fs, stack=stack, prepare=prepare, body=body)


def settings_of(decision: str) -> list[str]:
    """What a stack is set to on which policies of a decision are checked, for `one_stack`."""
    settings = [f"partition.blocks={BLOCKS}", f"read_ahead_kib={WINDOW_KIB}"]
    return [*settings, f"memory.free_kib={FREE_KIB}"] if decision == "reclaim" else settings


def check_program(decision: str, seed: int) -> tuple[str, str]:
    """Operations that ask a policy of a decision often: the preparation, and what is measured."""
    made = {"read_ahead": _reads, "reclaim": _reads_and_writes, "victim": _overwrites}
    return made[decision](seed)


def _text(*lines: str) -> str:
    return "\n".join(["flashbed-ops 1", *lines, ""])


def _prepared(files: int, file_pages: int) -> str:
    lines = []
    for file in range(files):
        lines.append(f"open 0 f{file} rw,create")
        lines += [f"write 0 {page * _PAGE} {_PAGE} {file + 1} 0" for page in range(file_pages)]
        lines += ["fsync 0", "close 0"]
    return _text(*lines, "sync", "drop_caches", "prepared")


def _overwrites(seed: int) -> tuple[str, str]:
    """Overwrites of pages, most of them in one hot file, synced, with pauses and a remount."""
    draw = random.Random(seed).random  # the same in every version of Python
    files, pages = 4, 256
    body = ["mark"]
    for half in range(2):
        body += [f"open {file} f{file} rw" for file in range(files)]
        for number in range(1200):
            file = 0 if draw() < 0.6 else int(draw() * files)
            where = int(draw() * pages) * _PAGE
            body.append(f"write {file} {where} {_PAGE} {1000 * half + number + 10} 0")
            if number % 8 == 7:
                body.append(f"fsync {file}")
            if number % 400 == 399:
                body.append("pause 8000000000")
        body += [f"close {file}" for file in range(files)]
        body.append("remount")
    return _prepared(files, pages), _text(*body)


def _reads(seed: int) -> tuple[str, str]:
    """A file read in order, backward, with strides, at random, in parts of pages and at once."""
    draw = random.Random(seed).random
    pages = 512
    size = pages * _PAGE
    orders: list[list[tuple[int, int]]] = [
        [(page * _PAGE, _PAGE) for page in range(pages)],
        [(page * _PAGE, _PAGE) for page in reversed(range(pages))],
        [(page * _PAGE, _PAGE) for page in range(0, pages, 3)],
        [(int(draw() * pages) * _PAGE, _PAGE) for _ in range(300)],
        [(at, min(1000, size - at)) for at in range(0, size, 1000)],
        [(int(draw() * (size - 70_000)), 70_000) for _ in range(40)],
        [(0, size)],
    ]
    body = ["mark"]
    for order in orders:
        body += ["open 0 f0 rw", *(f"read 0 {at} {length}" for at, length in order)]
        body += [f"write 0 {int(draw() * pages) * _PAGE} {_PAGE} 7 0", "fsync 0", "close 0"]
        body.append("drop_caches")
    return _prepared(1, pages), _text(*body)


def _reads_and_writes(seed: int) -> tuple[str, str]:
    """Reads and writes of pages of a file larger than memory, half of them of its first pages."""
    draw = random.Random(seed).random
    pages = 512
    body = ["mark", "open 0 f0 rw"]
    for number in range(3000):
        where = int(draw() * (pages if draw() < 0.5 else pages // 8)) * _PAGE
        write = f"write 0 {where} {_PAGE} {number + 10} 0"
        body.append(write if draw() < 0.3 else f"read 0 {where} {_PAGE}")
        if number % 100 == 99:
            body.append("fsync 0")
    body += ["close 0", "remount"]
    return _prepared(1, pages), _text(*body)


@contextmanager
def _asked(policy: Policy) -> Iterator[list[bool]]:
    """Whether each answer is None, in order, of every object of the policy's class meanwhile."""
    made = policy.made()
    found: list[bool] = []
    if isinstance(made, str):
        yield found
        return
    kind = type(made)
    own = {name: vars(kind)[name] for name in _METHODS[policy.decision] if name in vars(kind)}

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*told: Any) -> Any:
            given = method(*told)
            found.append(given is None)
            return given

        return answer

    for name, method in own.items():
        setattr(kind, name, counted(method))
    try:
        yield found
    finally:
        for name, method in own.items():
            setattr(kind, name, method)


def _ran(program: Program) -> Batch:
    """The program's tables. Raises `RunError` if it fails."""
    for batch in SimTarget().run([program]):
        for failure in batch.failures:
            raise RunError(f"{program.case_id}: {failure.message}")
        return batch
    raise AssertionError("a program has a batch")


def _equal(first: Batch, second: Batch) -> bool:
    return first.cases.equals(second.cases) and first.requests.equals(second.requests)


def _counts(batch: Batch) -> dict[str, int]:
    names = ("flash_reads", "flash_programs", "flash_erases")
    row = batch.cases.select(names).row(0)
    return dict(zip(names, row, strict=True))


def _cut(program: Program, cuts: int, seed: int) -> list[str]:
    """The verdicts of power cuts at so many changes; none where the model refuses one.

    Raises `RunError`.
    """
    target = PowerCuts(SimTarget(), Choice(None, cuts, seed), "sim")
    verdicts: list[str] = []
    for batch in target.run([program]):
        for failure in batch.failures:
            if failure.not_modelled is not None:
                return []
            raise RunError(f"{program.case_id}: power cuts: {failure.message}")
        verdicts += batch.power_cuts.get_column("verdict").cast(pl.String).to_list()
    return verdicts
