"""Folders of python/flashbed import from those below them; ARCHITECTURE.md has the order."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tests.tidy.sources import circle, imports, text

ROOT = "python/flashbed"
_ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


def _order() -> list[str]:
    section = text("ARCHITECTURE.md").split("## Folders of `python/flashbed`")[1].split("\n## ")[0]
    return _ROW.findall(section)


def _folder(path: str) -> str:
    first = PurePosixPath(path).relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def test_every_folder_has_its_place() -> None:
    found = {_folder(path) for path in imports(ROOT, ".py")} - {"__init__"}
    assert found == set(_order())


def test_a_folder_imports_from_those_below() -> None:
    place = {name: at for at, name in enumerate(_order())}
    upwards = [
        f"{path} imports {used}"
        for path, uses in imports(ROOT, ".py").items()
        for used in uses
        if _folder(path) != _folder(used)
        and "__init__" not in (_folder(path), _folder(used))
        and place[_folder(path)] >= place[_folder(used)]
    ]
    assert upwards == []


def test_modules_import_in_no_circle() -> None:
    """A package's `__init__` gathers what its modules offer, so it is not counted."""
    graph = {
        path: {used for used in uses if not used.endswith("__init__.py")}
        for path, uses in imports(ROOT, ".py").items()
        if not path.endswith("__init__.py")
    }
    assert circle(graph) == []
