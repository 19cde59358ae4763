"""Draws the way of a command to its target: which rooms of the package a reader comes through.

`python -m tests.support.walk run figure3 --case ID --out DIR` and `… walk exec -- true` print it.
The calls on the stack when the target is entered are the way; they hand the case on. A room that
one of them asks something on the way is a stay as well, indented. The command ends at the target.

Left out: properties and operators of values, the room `base`, which knows no case, what a room asks
of others for its answer, and reports of progress to a room above.
"""

from __future__ import annotations

import functools
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import flashbed

PACKAGE = f"{Path(flashbed.__file__).parent}/"
TARGETS = ("targets/sim:SimTarget.run", "targets/uml/uml_program:execute")
_NO_PLACES = ("base", "__init__", "__main__")


class _ReachedError(BaseException):
    """Ends the command at its target."""


@dataclass(frozen=True)
class Step:
    """A call into a module; `handed` if the case continues through it."""

    module: str
    name: str
    handed: bool

    @property
    def room(self) -> str:
        """The module's room."""
        return self.module.split("/", maxsplit=1)[0]


@dataclass(frozen=True)
class Walk:
    """A command's way: a step for each stay in a room.

    A room stays the same while it asks others, so continuing in it is no other stay.
    """

    stays: tuple[Step, ...]
    names: dict[str, set[str]]
    """Type of what is handed on -> the names that the way's calls have for it."""

    @property
    def returns(self) -> int:
        """How often it comes back to a room before it arrives."""
        before = self.stays[:-1]
        return len(before) - len({stay.room for stay in before})

    @property
    def handed(self) -> tuple[str, ...]:
        """The rooms through which the case is handed on."""
        rooms = [stay.room for stay in self.stays if stay.handed]
        return tuple(room for at, room in enumerate(rooms) if at == 0 or rooms[at - 1] != room)


def _module(frame: FrameType) -> str | None:
    file = frame.f_code.co_filename
    return file[len(PACKAGE) : -len(".py")] if file.startswith(PACKAGE) else None


def _called(words: list[str]) -> list[list[FrameType]]:
    """Our frames of every call of a command, outermost first; the last is the target's."""
    from flashbed.cli import app

    calls: list[list[FrameType]] = []

    def entered(frame: FrameType, event: str, _: Any) -> None:
        module = _module(frame)
        if event != "call" or module is None or frame.f_code.co_name == "<module>":
            return
        stack, above = [frame], frame.f_back
        while above is not None:
            if _module(above) is not None:
                stack.append(above)
            above = above.f_back
        calls.append(stack[::-1])
        if f"{module}:{frame.f_code.co_qualname}" in TARGETS:
            raise _ReachedError

    sys.setprofile(entered)
    try:
        app(words, standalone_mode=False)
    except _ReachedError:
        return calls
    finally:
        sys.setprofile(None)
    raise SystemExit("the command came to no target")


def _is_told(frame: FrameType) -> bool:
    """Whether a call only reads a value: a property, or an operator."""
    *owner, name = frame.f_code.co_qualname.split(".")
    if name.startswith(("__", "<")):
        return True
    dotted = str(_module(frame)).replace("/", ".").removesuffix(".__init__")
    module = sys.modules[f"flashbed.{dotted}"]
    found = getattr(getattr(module, owner[0], None), name, None) if len(owner) == 1 else None
    own = vars(getattr(module, owner[0])).get(name) if found is not None else None
    return isinstance(own, property | functools.cached_property)


def _room(frame: FrameType) -> str:
    return str(_module(frame)).split("/", maxsplit=1)[0]


def walk(words: list[str], order: list[str]) -> Walk:
    """The way of a command; `order` has the rooms, the highest first."""
    calls = _called(words)
    way = calls[-1]
    stays: list[Step] = []
    here = ""
    for stack in calls:
        called = stack[-1]
        handed = called is way[min(len(stack), len(way)) - 1] and len(stack) <= len(way)
        if not handed and not _is_asked(stack, way, order):
            continue
        step = Step(str(_module(called)), called.f_code.co_qualname, handed)
        if step.room in _NO_PLACES or (handed and step.room == here):
            continue
        here = step.room if handed else here
        if not stays or stays[-1].room != step.room:
            stays.append(step)
        elif handed:
            stays[-1] = step
    names: dict[str, set[str]] = defaultdict(set)
    for frame in way:
        for name, value in frame.f_locals.items():
            kind = type(value)
            if kind.__module__.startswith("flashbed.") and not name.startswith("_"):
                names[kind.__name__].add(name)
    return Walk(tuple(stays), dict(names))


def _is_asked(stack: list[FrameType], way: list[FrameType], order: list[str]) -> bool:
    """Whether a room on the way asks another one below it, itself or through helpers of its own."""
    on_way = 0
    while on_way < min(len(stack), len(way)) and stack[on_way] is way[on_way]:
        on_way += 1
    if not on_way:
        return False
    *helpers, called = stack[on_way:]
    here = _room(way[on_way - 1])
    return (
        all(_room(frame) == here for frame in helpers)
        and _room(called) != here
        and order.index(_room(called)) > order.index(here)
        and not _is_told(called)
    )


def main() -> None:
    """Prints a walk."""
    from tests.tidy.test_layers_of_python import rooms

    found = walk(sys.argv[1:], rooms())
    for stay in found.stays:
        print(f"{'' if stay.handed else '    '}{stay.room:10} {stay.module}:{stay.name}")
    print(f"{len(found.stays)} stays in {len({stay.room for stay in found.stays})} rooms,"
          f" {found.returns} returns; handed on through {', '.join(found.handed)}")  # fmt: skip
    for kind, names in sorted(found.names.items()):
        print(f"{kind:16} {', '.join(sorted(names))}")
    print(f"{len(set().union(*found.names.values()))} names for {len(found.names)} things")


if __name__ == "__main__":
    main()
