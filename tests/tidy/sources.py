"""The project's own source files, and what the rules of style need to know of them.

Reads text only: Python by its syntax tree, Rust and C by the layout that rustfmt and clang-format
keep (a function ends where a closing brace stands as far left as its first line).
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path, PurePosixPath

__all__ = [
    "PROJECT",
    "Function",
    "circle",
    "code_of_c",
    "files",
    "functions",
    "imports",
    "module",
    "symbols_of_c",
    "text",
]

PROJECT = Path(__file__).resolve().parents[2]
_TAB = 8
_PARTS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of a Python statement that hold other statements."""
_RUST_FN = re.compile(r"( *)(?:pub(?:\([a-z: ]+\))? )?(?:const )?fn (\w+)")
_RUST_USE = re.compile(r"^[ ]*(?:pub(?:\([a-z: ]+\))? )?use ([^;]+);", re.MULTILINE)
_RUST_PATH = re.compile(r"\b((?:crate|super)::(?:\w+::)*\w+)")
_C_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
_C_PROSE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_C_MEMBER = re.compile(r"(?:\b(?:struct|enum|union) |->|\.)\w+")
# What other files may use: a function's body or a variable's value follows its name at the margin.
_C_DEFINED = re.compile(
    r"^(?!static\b|extern\b|typedef\b|return\b)[a-z][\w *]*?\b(\w+)"
    r"(?:\((?:[^;{}()]|\([^()]*\))*\)\s*\{|(?:\[\w*\])?(?: = |;))",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Function:
    """A function and how many lines it has."""

    name: str
    lines: int


@cache
def files(*suffixes: str) -> tuple[str, ...]:
    """Paths below the project of files that git keeps or would add, with one of the suffixes."""
    return tuple(sorted(path for suffix in suffixes for path in _by_suffix().get(suffix, ())))


@cache
def _known(suffix: str) -> frozenset[str]:
    return frozenset(files(suffix))


@cache
def _by_suffix() -> dict[str, list[str]]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    found: dict[str, list[str]] = {}
    for path in map(Path, listed.stdout.splitlines()):
        if (PROJECT / path).is_file():
            found.setdefault(path.suffix, []).append(str(path))
    return found


@cache
def text(path: str) -> str:
    """The text of one file, tabs as wide as an editor shows them."""
    return (PROJECT / path).read_text(encoding="utf-8").expandtabs(_TAB)


@dataclass(frozen=True)
class Module:
    """What is kept of a Python file's tree: `named` has modules, and names imported from them."""

    functions: tuple[Function, ...]
    named: frozenset[str]
    late: frozenset[str]
    """Modules that are imported within functions."""


@cache
def module(path: str) -> Module:
    """A Python file, parsed once: parsing takes longer than all the rules together."""
    found: list[Function] = []
    named: set[str] = set()
    late: set[str] = set()
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse((PROJECT / path).read_bytes()), False)]
    # Functions and imports are never part of an expression.
    while waiting:
        node, within = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            found.append(Function(node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
            within = True
        elif isinstance(node, ast.ImportFrom):
            own = str(node.module)
            if not node.level:
                named |= {own, *(f"{own}.{alias.name}" for alias in node.names)}
            late |= {own} if within else set()
        elif isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
            named |= modules
            late |= modules if within else set()
        for part in _PARTS:
            waiting += [(child, within) for child in getattr(node, part, ())]
    return Module(tuple(found), frozenset(named), frozenset(late))


def functions(path: str) -> Iterator[Function]:
    """Functions of a Python, Rust or C file; those inside others as well."""
    if path.endswith(".py"):
        yield from module(path).functions
        return
    lines = text(path).splitlines()
    for at, line in enumerate(lines):
        rust = _RUST_FN.match(line) if path.endswith(".rs") else None
        if rust:
            yield Function(rust[2], _until(lines, at, {rust[1] + "}", rust[1] + "{}"}))
        elif path.endswith((".c", ".h")) and line == "{":
            yield Function(lines[at - 1].strip(), _until(lines, at, {"}"}))


def _until(lines: list[str], first: int, ends: set[str]) -> int:
    """How many lines from the first to the end; a signature without a body is one."""
    if lines[first].rstrip().endswith((";", "}")):
        return 1
    for at in range(first, len(lines)):
        if lines[at] in ends:
            return at - first + 1
        if lines[at].rstrip().endswith(");"):
            indent = len(lines[at]) - len(lines[at].lstrip())
            if indent <= len(lines[first]) - len(lines[first].lstrip()):
                return at - first + 1
    return 1


@cache
def imports(root: str, suffix: str) -> dict[str, set[str]]:
    """What each file below a folder of one language uses of the others there: paths."""
    own = [path for path in files(suffix) if path.startswith(f"{root}/")]
    find = {".py": _python_uses, ".rs": _rust_uses, ".c": _c_uses}[suffix]
    return {path: find(root, path) - {path} for path in own}


def _python_uses(root: str, path: str) -> set[str]:
    """Modules that are imported anywhere in a file, also within functions."""
    found: set[str] = set()
    package = PurePosixPath(root).name
    for name in module(path).named:
        if name.split(".")[0] == package:
            found |= _python_file(f"{PurePosixPath(root).parent}/{name.replace('.', '/')}")
    return found


def _python_file(stem: str) -> set[str]:
    return {f"{stem}.py", f"{stem}/__init__.py"} & _known(".py")


def _rust_uses(root: str, path: str) -> set[str]:
    """Modules that `use` statements and `crate::…` and `super::…` paths name, but for tests."""
    here = PurePosixPath(path).relative_to(root).with_suffix("").parts
    here = here[:-1] if here[-1] in ("mod", "lib") else here
    body = re.sub(r"//.*", "", text(path).split("#[cfg(test)]")[0])
    named = [words for tree in _RUST_USE.findall(body) for words in _branches(tree)]
    named += [inline.split("::") for inline in _RUST_PATH.findall(body)]
    found = (_rust_file(root, _absolute(here, words)) for words in named)
    return {path for path in found if path}


def _branches(tree: str, before: str = "") -> list[list[str]]:
    """The paths of a `use` statement: of `a::{b, c::{d, e}}` it is `a::b`, `a::c::d`, `a::c::e`."""
    head, brace, rest = tree.partition("{")
    if not brace:
        return [(before + re.sub(r"\s+as\s.*|\s", "", tree)).split("::")]
    found: list[list[str]] = []
    depth, part = 0, ""
    for sign in rest[: rest.rindex("}")] + ",":
        if sign == "," and depth == 0:
            found += _branches(part, before + head.strip()) if part.strip() else []
            part = ""
            continue
        depth += (sign == "{") - (sign == "}")
        part += sign
    return found


def _absolute(here: tuple[str, ...], words: list[str]) -> list[str]:
    """A path from the crate's root on; one that begins with a name is taken as a child's."""
    if words[0] == "crate":
        return words[1:]
    place = list(here)
    while words and words[0] in ("self", "super"):
        place = place[:-1] if words[0] == "super" else place
        words = words[1:]
    return place + words


def _rust_file(root: str, words: list[str]) -> str | None:
    """The file of the innermost module that a path names."""
    while words:
        stem = f"{root}/{'/'.join(words)}"
        for name in (f"{stem}.rs", f"{stem}/mod.rs"):
            if name in _known(".rs"):
                return name
        words = words[:-1]
    return None


def _c_uses(root: str, path: str) -> set[str]:
    """Headers that are included with quotes, seen from the file or from the root."""
    found: set[str] = set()
    for name in _C_INCLUDE.findall(text(path)):
        here = str(PurePosixPath(path).parent / name)
        found |= {here, f"{root}/{name}"} & _known(".h")
    return found


def code_of_c(body: str) -> str:
    """A C file without its comments and what stands between quotes."""
    return _C_PROSE.sub(" ", body)


@cache
def symbols_of_c(root: str, without: tuple[str, ...] = ()) -> dict[str, set[str]]:
    """For each C file below a folder, the others whose functions and variables it uses."""
    code = {path: code_of_c(text(path)) for path in files(".c") if path.startswith(f"{root}/")}
    for path in without:
        del code[path]
    home = {match[1]: path for path, body in code.items() for match in _C_DEFINED.finditer(body)}
    words = {
        path: set(re.findall(r"\b[a-z_]\w*", _C_MEMBER.sub(" ", body)))
        for path, body in code.items()
    }
    return {
        path: {home[word] for word in found if word in home} - {path}
        for path, found in words.items()
    }


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """A cycle of a graph, empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []
