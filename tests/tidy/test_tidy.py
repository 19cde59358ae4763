"""Style as a test: what a reader may expect of every file, whoever wrote it and when.

Exceptions are in exceptions.toml, each with its reason. An exception that is no longer needed
fails as well, so the list only shrinks.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import PurePosixPath

import pytest

from tests.tidy.sources import PROJECT, files, functions, module, text

LINE_COLUMNS = 100
FILE_LINES = 800
FUNCTION_LINES = 70
CODE = (".rs", ".py", ".c", ".h")
COMMANDS = "python/flashbed/cli/"
"""A module there is called as its command, whatever the command uses is called."""
EXCEPTIONS = tomllib.loads((PROJECT / "tests/tidy/exceptions.toml").read_text(encoding="utf-8"))
# A path in a document: at least one folder, an ending, no spaces; `NAME` and `*` stand for others.
_NAMED = re.compile(r"`((?:[a-z0-9_.-]+/)+[A-Za-z0-9_.-]+\.(?:rs|py|c|h|md|toml|html\.j2|txt))`")
_LINKED = re.compile(r"\]\(((?!https?:|#|mailto:)[^)#]+)(?:#[^)]*)?\)")
_DOCUMENTS = tuple(path for path in files(".md") if not path.startswith("tests/corpus/"))


def held(rule: str, found: set[str]) -> None:
    """What breaks a rule is what the list of exceptions has for it, neither more nor less."""
    listed = set(EXCEPTIONS.get(rule, {}))
    assert not found - listed, f"{rule}: mend it, or argue for it in tests/tidy/exceptions.toml"
    assert not listed - found, f"{rule}: no exception any more, take it off the list"


def test_lines_of_code_have_at_most_100_columns() -> None:
    found = set()
    for path in files(*CODE):
        for number, line in enumerate(text(path).splitlines(), 1):
            if len(line) > LINE_COLUMNS:
                found.add(f"{path}:{number}")
    held("lines", found)


def test_files_have_at_most_800_lines() -> None:
    held("files", {path for path in files(*CODE) if len(text(path).splitlines()) > FILE_LINES})


def test_functions_fit_a_screen() -> None:
    found = set()
    for path in files(*CODE):
        for function in functions(path):
            if function.lines > FUNCTION_LINES:
                found.add(f"{path}: {function.name}")
    held("functions", found)


def test_modules_are_imported_at_the_top() -> None:
    """But where a command would start later for what others need (evidence/performance.md)."""
    importing = [path for path in files(".py") if path.startswith("python/")]
    found = {
        f"{path}: {name}"
        for path in importing
        if not path.startswith(COMMANDS) and path != "python/flashbed/__main__.py"
        for name in module(path).late
    }
    held("imports", found)


@pytest.mark.parametrize("path", _DOCUMENTS)
def test_a_path_that_a_document_names_exists(path: str) -> None:
    """Links seen from the document, other paths from the project's root."""
    body = re.sub(r"```.*?```", "", text(path), flags=re.DOTALL)
    here = PROJECT / PurePosixPath(path).parent
    missing = [to for to in _LINKED.findall(body) if not (here / to).exists()]
    sources = ("agent", "python/flashbed", "sim/src")
    roots = (PROJECT, *(PROJECT / folder for folder in sources), here)
    for name in _NAMED.findall(body):
        if name in EXCEPTIONS.get("paths", {}):
            continue
        if not any((root / name).exists() for root in roots):
            missing.append(name)
    if path in EXCEPTIONS.get("links", {}):
        assert missing, "links: no exception any more, take it off the list"
    else:
        assert missing == []


def test_files_of_one_language_have_names_of_their_own() -> None:
    """The same name twice is two things a reader has to tell apart, unless the folder says it."""
    allowed = EXCEPTIONS.get("names", {})
    for suffix, roots in ((".py", "python/"), (".rs", "sim/src/"), (".c", "agent/")):
        places = defaultdict(list)
        for path in files(suffix):
            if path.startswith(roots) and not path.startswith(COMMANDS):
                places[PurePosixPath(path).name].append(path)
        twice = {name: where for name, where in places.items() if len(where) > 1}
        unknown = {name: where for name, where in twice.items() if name not in allowed}
        assert unknown == {}
