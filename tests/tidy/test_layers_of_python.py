"""Rooms of python/flashbed import from those below them; ARCHITECTURE.md has the order.

In a room, a folder imports from those on its right in the table, and from the room's own files.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tests.tidy.sources import circle, imports, text

ROOT = "python/flashbed"
ROOMS_MAX = 12
ARROWS_MAX = 70
_ROW = re.compile(r"^\| `(\w+)` \|([^|]*)\|", re.MULTILINE)
Place = tuple[str, str]
"""A room, and a folder in it; empty for the room's own files."""


def _order() -> dict[Place, tuple[int, int]]:
    """Where each room and each of its folders stands, from the top and from the left."""
    section = text("ARCHITECTURE.md").split("## Rooms of `python/flashbed`")[1].split("\n## ")[0]
    order: dict[Place, tuple[int, int]] = {}
    for down, (room, cell) in enumerate(_ROW.findall(section)):
        for right, folder in enumerate([*re.findall(r"`(\w+)`", cell), ""]):
            order[room, folder] = (down, right)
    return order


def rooms() -> list[str]:
    """The rooms, from the top."""
    return list(dict.fromkeys(room for room, _ in _order()))


def _place(path: str) -> Place:
    room, *rest = PurePosixPath(path).relative_to(ROOT).parts
    return room.removesuffix(".py"), rest[0] if len(rest) > 1 else ""


def _uses() -> list[tuple[str, str]]:
    """Each module and one that it imports; what gathers a package's names is left out."""
    return [
        (path, used)
        for path, uses in imports(ROOT, ".py").items()
        for used in uses
        if not path.endswith("__init__.py") and not used.endswith("__init__.py")
    ]


def test_every_room_and_folder_has_its_place() -> None:
    found = {_place(path) for path in imports(ROOT, ".py")} - {("__init__", "")}
    assert found == set(_order())


def test_a_room_imports_from_those_below() -> None:
    order = _order()
    upwards = [
        f"{path} imports {used}"
        for path, used in _uses()
        if _place(path) != _place(used) and order[_place(path)] >= order[_place(used)]
    ]
    assert upwards == []


def test_rooms_are_few_and_so_are_the_ways_between_them() -> None:
    known = {*rooms()} - {"__main__"}
    arrows = {(_place(path)[0], _place(used)[0]) for path, used in _uses()}
    assert len(known) <= ROOMS_MAX
    assert sum(one != other for one, other in arrows) < ARROWS_MAX


def test_modules_import_in_no_circle() -> None:
    """A package's `__init__` gathers what its modules offer, so it is not counted."""
    graph: dict[str, set[str]] = {}
    for path, used in _uses():
        graph.setdefault(path, set()).add(used)
    assert circle(graph) == []
