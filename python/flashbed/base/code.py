"""Finds the code that makes a target's numbers: a case runs again when any of it changes.

In Python that is every module that the target's module imports, directly or not. Import statements
are read, within functions too; those under TYPE_CHECKING do not count. For the simulator it is the
compiled extension and its Rust sources, for real kernels the agent and what is built into a kernel.
Left out are other packages, compilers, and profiles and operations, which have hashes of their own
(runner.py).

Invariant: finding out imports and runs nothing.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from flashbed.base.paths import root, sha256_of

__all__ = ["PACKAGE", "common_sources", "digest_of", "modules_of", "sources_of"]

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the package `flashbed`."""
_CHOOSES = "flashbed.targets"
"""Modules whose late imports are skipped: they only choose a target."""
_BUILT = {
    "sim": (
        "sim/src", "common/src", "bind/src", "sim/Cargo.toml", "common/Cargo.toml",
        "bind/Cargo.toml", "Cargo.toml", "Cargo.lock",
    ),
    "kernel": ("agent", "kernel"),
}  # fmt: skip
"""Files and folders of the checkout that are compiled into what a target runs."""
_COMPILED = frozenset({".c", ".h", ".rs", ".toml", ".lock", ""})
_PROSE = frozenset({"LICENSE", ".gitignore"})
_PARTS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of a statement that hold other statements."""


def modules_of(module: str, package: Path | None = None) -> list[Path]:
    """The files of one of our modules and of everything it imports, sorted by path."""
    folder = package or PACKAGE
    found: dict[str, Path | None] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = file = _file(name, folder)
        if file is not None:
            waiting += _imported(name, file, sha256_of(file))
    return sorted(file for file in found.values() if file is not None)


def sources_of(module: str, package: Path | None = None) -> list[tuple[str, Path]]:
    """Every file that makes the numbers of a target's module: a unique name, and its path.

    Names contain folders, so that files of the same name differ.
    """
    folder = package or PACKAGE
    files = {f"python/flashbed/{file.relative_to(folder).as_posix()}": file
             for file in modules_of(module, folder)}  # fmt: skip
    simulated = module == "flashbed.targets.sim"
    if simulated:
        files |= {f"python/flashbed/{file.name}": file for file in folder.glob("_sim.*.so")}
    for place in _BUILT["sim" if simulated else "kernel"]:
        files |= {file.relative_to(root()).as_posix(): file for file in _below(root() / place)}
    return sorted(files.items())


def common_sources() -> list[Path]:
    """What is compiled of common/: its sources, or where there are none, the extension."""
    return sorted(_below(root() / "common")) or sorted(PACKAGE.glob("_sim.*.so"))


def digest_of(files: Sequence[tuple[str, Path]]) -> str:
    """SHA-256 over names and contents."""
    digest = hashlib.sha256()
    for name, file in files:
        digest.update(f"{name} {sha256_of(file)}\n".encode())
    return digest.hexdigest()


def _below(place: Path) -> Iterator[Path]:
    files = [place] if place.is_file() else place.rglob("*")
    for file in files:
        if file.is_file() and file.suffix in _COMPILED and file.name not in _PROSE:
            yield file


def _file(module: str, package: Path) -> Path | None:
    """The file of one of our modules; None for a name that is no module."""
    first, *rest = module.split(".")
    if first != "flashbed":
        return None
    place = package.joinpath(*rest)
    for file in (place / "__init__.py", place.with_suffix(".py")):
        if file.is_file():
            return file
    return None


@cache
def _imported(module: str, file: Path, _sha256: str) -> tuple[str, ...]:
    """The modules that a module's import statements name, and their packages."""
    statements = _statements(ast.parse(file.read_bytes()), into=module != _CHOOSES)
    names = [name for statement in statements for name in _named(statement)]
    return tuple(
        ".".join(parts[:length])
        for parts in (name.split(".") for name in names)
        if parts[0] == "flashbed"
        for length in range(1, len(parts) + 1)
    )


def _named(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules of a statement; what `from` imports may be a module or a name in one."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    assert statement.level == 0, "no import of flashbed's is relative"
    return [f"{statement.module}.{alias.name}" for alias in statement.names]


def _statements(tree: ast.AST, *, into: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements; `into` includes those within functions."""
    for node in chain.from_iterable(getattr(tree, part, ()) for part in _PARTS):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif _for_type_checkers(node) or (isinstance(node, ast.FunctionDef) and not into):
            continue
        else:
            yield from _statements(node, into=into)


def _for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
