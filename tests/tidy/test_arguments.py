"""Nothing takes more than four arguments by position: a reader cannot tell a fifth from a sixth."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.sources import files, text

MOST = 4
ROOT = "python/flashbed/"
_MODULES = {path: ast.parse(text(path)) for path in files(".py") if path.startswith(ROOT)}


def _functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    for path, tree in _MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.args.vararg is None:
                yield path, node


def _defined() -> set[str]:
    """Functions and classes of the package, but for those that take any number of arguments."""
    nodes = [node for tree in _MODULES.values() for node in ast.walk(tree)]
    named = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    free = {node.name for node in nodes if isinstance(node, ast.FunctionDef) and node.args.vararg}
    return named - free


def _called(call: ast.Call) -> str | None:
    """The name of a function or class, or of a method of one's own."""
    match call.func:
        case ast.Name(name) | ast.Attribute(ast.Name("self" | "cls"), name):
            return name
    return None


def test_functions_take_few_arguments_by_position() -> None:
    many = [
        f"{path}:{function.lineno} {function.name}"
        for path, function in _functions()
        if len([one for one in function.args.args if one.arg not in ("self", "cls")]) > MOST
    ]
    assert many == []


def test_calls_name_their_arguments() -> None:
    """Calls of classes as well, whose fields stand in for arguments."""
    defined = _defined()
    many = [
        f"{path}:{node.lineno} {_called(node)}"
        for path, tree in _MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and len(node.args) > MOST and _called(node) in defined
    ]
    assert many == []
