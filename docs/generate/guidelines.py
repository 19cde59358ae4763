"""Guidelines as claims with a bound, measured on every stack: docs/guide/guidelines.md.

guidelines.toml has them. Each is measured on the simulator, which needs no tolerance: the bound is
what the text promises on every stack, and the page has the range that was found.
"""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from docs.generate.markdown import NOTE, prose
from flashbed.api.comparing import measured_cases, with_requests
from flashbed.api.measuring import Progress, measure
from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.planned import as_plan
from flashbed.running.ways import Way

__all__ = ["FILE", "Found", "Guideline", "broken", "found", "guidelines", "page", "stacks"]

FILE = Path(__file__).with_name("guidelines.toml")
_SAID = {
    "page_writes": "page writes", "page_reads": "page reads", "time_ns": "time",
    "p99_ns": "p99 latency",
}  # fmt: skip
_MORE = {"p99_ns": "higher"}
_LESS = {"page_writes": "fewer", "page_reads": "fewer", "time_ns": "less"}
_WORSE = 1.02
_HEAD = """\
What to set for a kind of program, whatever the chip and the kernel. Each sentence was measured on
the simulator on {stacks} stacks. Where nothing else is said, no other measure is worse by 2 %.

They are for programs like the ones named. For yours, ask `flashbed advise`
([what should I set?](what-should-i-set.md)): it tries more settings, runs real kernel code, and
cuts the power.

The stacks:
"""


@dataclass(frozen=True, kw_only=True)
class OnStack:
    """Where a guideline is measured."""

    name: str
    settings: tuple[str, ...]
    file_systems: tuple[str, ...] = ("jffs2", "ubifs", "yaffs2")


@dataclass(frozen=True, kw_only=True)
class Guideline:
    """What to take instead of what, on the file systems `over` or as both say themselves."""

    id: str
    title: str
    program: str
    of: str
    take: tuple[str, ...]
    instead_of: tuple[str, ...]
    measure: str
    at_least: float
    settings: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    costs: str | None = None

    def fits(self, stack: OnStack) -> list[str | None]:
        """The file systems that it is measured on there; None where both choices name theirs."""
        if self.over:
            return [fs for fs in self.over if fs in stack.file_systems]
        named = {word.removeprefix("fs=") for word in (*self.take, *self.instead_of)}
        return [None] if named <= set(stack.file_systems) else []


@dataclass(frozen=True, kw_only=True)
class Found:
    """How many times less of each measure what is taken needs, on a stack and a file system."""

    stack: str
    fs: str | None
    times: Mapping[str, float] = field(default_factory=dict)


class _Silent:
    def say(self, line: str) -> None:
        """Says nothing."""

    @contextmanager
    def running(self, title: str) -> Iterator[Progress]:  # noqa: ARG002
        """Shows nothing."""
        yield lambda _what, _done, _total: None


def _read() -> dict[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def _fixed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def stacks() -> list[OnStack]:
    """The stacks of the file."""
    return [OnStack(**_fixed(row)) for row in _read()["stack"]]


def guidelines() -> list[Guideline]:
    """The guidelines of the file."""
    return [Guideline(**_fixed(row)) for row in _read()["guideline"]]


@lru_cache(maxsize=64)
def found(guideline: Guideline) -> tuple[Found, ...]:
    """A guideline measured on each stack. Raises `KeyError` if a case could not run there."""
    experiment = with_requests(load_experiment(guideline.program))
    pairs = []
    for stack in stacks():
        for fs in guideline.fits(stack):
            common = (*stack.settings, *guideline.settings, *([f"fs={fs}"] if fs else []))
            both = [
                plan(experiment, parse_settings([*common, *own]))[0]
                for own in (guideline.take, guideline.instead_of)
            ]
            pairs.append((stack.name, fs, both))
    cases = as_plan([each for *_, both in pairs for each in both]).retargeted(("sim",))
    names = list(cases.names)
    with tempfile.TemporaryDirectory() as folder:
        measure(
            experiment, cases, targets=["sim"], out=Path(folder), traces=[], watch=_Silent(),
            way=Way(1),
        )  # fmt: skip
        measured = measured_cases(Path(folder), names, target="sim", ours=True)
    rows = {row["case_id"]: row for row in measured.to_dicts()}
    return tuple(
        Found(stack=stack, fs=fs, times=_times(*(rows[each.case.case_id] for each in both)))
        for stack, fs, both in pairs
    )


def broken(guideline: Guideline, rows: Sequence[Found]) -> list[str]:
    """A line for each stack on which the guideline does not hold."""
    return [
        f"{guideline.id}: {each.stack}, {each.fs or 'both'}: {each.times[guideline.measure]:.2f}"
        f" times, promised are {guideline.at_least}"
        for each in rows
        if each.times[guideline.measure] < guideline.at_least
    ]


def _times(taken: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, float]:
    """How many times less each measure is that both know; the chip's time where no other is.

    A measure that is 0 for one of them has no ratio.
    """
    pairs = {name: (taken[name], other[name]) for name in _SAID}
    if None in pairs["time_ns"]:
        pairs["time_ns"] = (taken["flash_time_ns"], other["flash_time_ns"])
    return {name: two / one for name, (one, two) in pairs.items() if one and two}


def page() -> str:
    """The guide."""
    head = prose(_HEAD.format(stacks=len(stacks())))
    lines = ["# Guidelines", "", NOTE, "", head, ""]
    lines += [f"- {stack.name}" for stack in stacks()]
    for guideline in guidelines():
        lines += ["", *_section(guideline)]
    return "\n".join(lines) + "\n"


def _section(guideline: Guideline) -> Iterator[str]:
    rows = found(guideline)
    measure = guideline.measure
    yield f"## {guideline.title}"
    yield ""
    yield f"Measured on {guideline.of} (`{guideline.program}`):"
    yield f"`{' '.join(guideline.take)}` instead of `{' '.join(guideline.instead_of)}`."
    yield ""
    for fs in dict.fromkeys(each.fs for each in rows):
        here = [each for each in rows if each.fs == fs]
        less = f"{_range([each.times[measure] for each in here])} times {_LESS[measure]}"
        yield "; ".join([f"- {fs or 'both'}: {less} {_SAID[measure]}", *_costs(here, measure)])
    if guideline.costs:
        yield ""
        yield prose(f"What it costs: {guideline.costs}.")


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _costs(rows: Sequence[Found], measure: str) -> list[str]:
    """What gets worse, at most, over the stacks."""
    said = []
    for name, what in _SAID.items():
        worst = max((1 / each.times[name] for each in rows if name in each.times), default=1.0)
        if name != measure and worst > _WORSE:
            said.append(f"up to {worst:.2f} times {_MORE.get(name, 'more')} {what}")
    return said
