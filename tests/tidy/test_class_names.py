"""A class has a name of its own in the whole package, so that a reader can look for it."""

from __future__ import annotations

import ast

from tests.tidy.sources import files, text

ROOT = "python/flashbed/"


def test_no_two_classes_have_one_name() -> None:
    places: dict[str, list[str]] = {}
    for path in (path for path in files(".py") if path.startswith(ROOT)):
        for node in ast.walk(ast.parse(text(path))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
