"""Modules of sim/src use those below them; the tour in lib.rs has the order."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tests.tidy.sources import circle, files, imports, text

ROOT = "sim/src"
_HEADING = re.compile(r"^//! # `(\w+)`", re.MULTILINE)


def _order() -> list[str]:
    return _HEADING.findall(text(f"{ROOT}/lib.rs"))


def _layer(path: str) -> str:
    return PurePosixPath(path).relative_to(ROOT).parts[0].removesuffix(".rs")


def _stands_above(path: str, other: str) -> bool:
    """Whether a path is the `mod.rs` or `lib.rs` of a folder that the other file is in."""
    folder = PurePosixPath(path).parent
    return PurePosixPath(path).name in ("mod.rs", "lib.rs") and folder in (
        PurePosixPath(other).parents
    )


def test_the_tour_has_every_module_of_the_root() -> None:
    found = {_layer(path) for path in files(".rs") if path.startswith(f"{ROOT}/")}
    assert sorted(_order()) == sorted(found - {"lib"})


def test_a_module_uses_those_further_down_the_tour() -> None:
    place = {name: at for at, name in enumerate(_order())}
    upwards = [
        f"{path} uses {used}"
        for path, uses in imports(ROOT, ".rs").items()
        for used in uses
        if "lib" not in (_layer(path), _layer(used))
        and _layer(path) != _layer(used)
        and place[_layer(path)] > place[_layer(used)]
    ]
    assert upwards == []


def test_modules_use_each_other_in_no_circle() -> None:
    """A folder's `mod.rs` has the type that its files implement: these may use each other."""
    graph = {
        path: {
            used for used in uses if not _stands_above(path, used) and not _stands_above(used, path)
        }
        for path, uses in imports(ROOT, ".rs").items()
    }
    assert circle(graph) == []


def test_the_file_of_a_folder_is_its_mod_rs() -> None:
    paths = {path for path in files(".rs") if path.startswith(f"{ROOT}/")}
    folders = {str(PurePosixPath(path).parent) for path in paths}
    assert {f"{folder}.rs" for folder in folders} & paths == set()
    assert {f"{folder}/mod.rs" for folder in folders if folder != ROOT} <= paths
