"""Policies: what decides in the simulated kernel's place, by name.

A policy is a class of the user's that derives from `ReadAhead`, `Reclaim` or `Victim`, or one that
is built into the simulator. `mine.Greedy` is the class `Greedy` of policies/mine.py in the working
folder or in the project's. The simulator calls its methods once a decision (bind/src/policies.rs);
real kernels have no place for one. policies/README.md has what each is told and what it may
answer.

A policy belongs to a stack: two stacks are equal only if the texts of its file are (`Policy`).

Invariants:
1. A policy sees neither clock nor host: its generator `self.random` has a fixed seed.
2. Each preparation begins with a new object, and each case with a deep copy of it.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import ClassVar, NamedTuple, Self

from flashbed._sim import (
    READ_AHEADS,
    RECLAIMS,
    VICTIMS,
    CachedPages,
    Candidates,
    Policies,
    ReadRequest,
)
from flashbed.base import paths
from flashbed.base.errors import InputError

__all__ = [
    "BASES", "Policy", "ReadAhead", "Reclaim", "Reclaimed", "Victim", "Window", "built_in",
    "own_policies", "policies_of", "simulated",
]  # fmt: skip


class Window(NamedTuple):
    """Pages to read: `pages` from `start` on. The first use of page `marker` asks again."""

    start: int
    pages: int
    marker: int | None = None


for _field, _text in (
    ("start", "The first page."),
    ("pages", "How many."),
    ("marker", "One of them, or None."),
):
    getattr(Window, _field).__doc__ = _text


class Reclaimed(NamedTuple):
    """Cached pages by their position: those that are freed, and those that count as used now."""

    free: Sequence[int]
    keep: Sequence[int] = ()


for _field, _text in (
    ("free", "Pages to free. Dirty ones are written first."),
    ("keep", "Pages that count as used now."),
):
    getattr(Reclaimed, _field).__doc__ = _text


class _Own:
    """What all policies of the user's have."""

    decision: ClassVar[str]
    random: Random
    """The policy's random numbers, the same in every run."""

    def __new__(cls) -> Self:
        """A new object with its generator, before `__init__` runs."""
        made = super().__new__(cls)
        made.random = Random(0)
        return made


class ReadAhead(_Own):
    """Decides which pages are read besides the missing one (`ondemand_readahead`)."""

    decision = "read_ahead"

    def on_miss(self, request: ReadRequest) -> Window | None:
        """A page is not in the page cache. None reads it alone."""
        raise NotImplementedError

    def on_marker(self, request: ReadRequest) -> Window | None:  # noqa: ARG002
        """A page is in the page cache and is the marker of a window. None reads nothing."""
        return None


class Reclaim(_Own):
    """Decides which pages leave the page cache when memory is full (`shrink_lruvec`)."""

    decision = "reclaim"

    def choose(self, needed_pages: int, wanted_pages: int, pages: CachedPages) -> Reclaimed:
        """Names some of `pages`, of which the one whose last use is the oldest is the first.

        `needed_pages` are above the low watermark, `wanted_pages` above the high one.
        """
        raise NotImplementedError


class Victim(_Own):
    """Decides which block a garbage collector takes next."""

    decision = "victim"

    def choose(self, now_ns: int, why: str, blocks: Candidates) -> int | None:
        """The position of one of `blocks`; None collects nothing now.

        `why` is `space` (a call waits for space), `write` (a call writes ahead of need) or `idle`
        (a thread has time).
        """
        raise NotImplementedError


BASES: Mapping[str, type[_Own]] = {kind.decision: kind for kind in (ReadAhead, Reclaim, Victim)}
"""Decision -> the class that a policy of the user's derives from."""


def built_in(decision: str) -> Mapping[str, str]:
    """The policies of a decision that the simulator has: name -> what it does."""
    return {"read_ahead": READ_AHEADS, "reclaim": RECLAIMS, "victim": VICTIMS}[decision]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """One decision of a stack, and who makes it."""

    decision: str
    name: str
    path: Path | None = None
    """The file of a policy of the user's."""
    sha256: str = ""
    """Of that file."""

    @property
    def key(self) -> str:
        """All that the decision depends on."""
        return f"{self.decision}={self.name} {self.sha256}".rstrip()

    def made(self) -> str | _Own:
        """A new object of the user's class, or a built-in policy's name. Raises `InputError`."""
        if self.path is None:
            return self.name
        kind = _class(self)
        try:
            made: _Own = kind()
        except Exception as why:
            raise InputError(
                f"{paths.shown(self.path)}: {kind.__name__}(): {type(why).__name__}: {why}"
            ) from None
        return made


def policies_of(chosen: Mapping[str, str]) -> tuple[Policy, ...]:
    """The policies of a stack, from decision and name. Raises `InputError`."""
    return tuple(_policy(decision, name) for decision, name in chosen.items())


def _policy(decision: str, name: str) -> Policy:
    if "." not in name:
        if name not in built_in(decision):
            raise InputError(
                f"policy.{decision}={name}: no such policy; there are kernel, "
                f"{', '.join(built_in(decision))}, and classes of yours as MODULE.CLASS"
            )
        return Policy(decision=decision, name=name)
    module = name.partition(".")[0]
    path = paths.policy_file(module)
    if not path.is_file():
        raise InputError(
            f"policy.{decision}={name}: {paths.shown(path)}: no such file; "
            f"`flashbed policy new {module}` begins one"
        )
    policy = Policy(decision=decision, name=name, path=path, sha256=paths.sha256_of(path))
    _class(policy)
    return policy


def _class(policy: Policy) -> type[_Own]:
    """The class of a policy of the user's. Raises `InputError`."""
    assert policy.path is not None
    found = _classes(policy.path, policy.sha256)
    name = policy.name.partition(".")[2]
    kind = found.get(name)
    if kind is None:
        there_are = f"; there are {', '.join(found)}" if found else ""
        raise InputError(f"{paths.shown(policy.path)}: no class {name} of a policy{there_are}")
    if kind.decision != policy.decision:
        raise InputError(
            f"policy.{policy.decision}={policy.name}: {name} is a {kind.__bases__[0].__name__}, "
            f"for policy.{kind.decision}"
        )
    return kind


@cache
def _classes(path: Path, sha256: str) -> Mapping[str, type[_Own]]:
    """The policies of a file by name, in the file's order. Raises `InputError`."""
    name = f"flashbed_policies_{path.stem}_{sha256[:12]}"
    shown = paths.shown(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as why:
        del sys.modules[name]
        raise InputError(f"{shown}{_line(why, path)}: {_said(why)}") from None
    found: dict[str, type[_Own]] = {}
    for each in vars(module).values():
        if inspect.isclass(each) and issubclass(each, _Own) and each.__module__ == name:
            found[each.__name__] = each
    return found


def _line(why: Exception, path: Path) -> str:
    """The line of the user's file where an exception began, as `:12`."""
    if isinstance(why, SyntaxError):
        return f":{why.lineno}"
    lines, frame = [], why.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(path):
            lines.append(frame.tb_lineno)
        frame = frame.tb_next
    return f":{lines[-1]}" if lines else ""


def _said(why: Exception) -> str:
    said = why.msg if isinstance(why, SyntaxError) else str(why)
    return " ".join(f"{type(why).__name__}: {said}".split())


def own_policies() -> dict[str, type[_Own]]:
    """Every policy in the folders policies/, as MODULE.CLASS. Raises `InputError`."""
    return {
        f"{module}.{name}": kind
        for module, path in paths.policy_files().items()
        for name, kind in _classes(path, paths.sha256_of(path)).items()
    }


def simulated(policies: Sequence[Policy]) -> Policies | None:
    """Policies as the simulator takes them; None where the kernel decides everything."""
    return Policies(**{each.decision: each.made() for each in policies}) if policies else None
