"""How flashbed writes, as far as a machine can tell: lines, cells, words, subjects, paths.

Exceptions are in wording.toml and exceptions.toml, each with its reason; both only shrink.
"""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.tidy.sources import PROJECT, files, text
from tests.tidy.test_tidy import EXCEPTIONS, held
from tests.tidy.wording import EXCEPTIONS as KEPT_WORDS
from tests.tidy.wording import banned_in, cells, prose_lines, two_meanings, wordings

DOCUMENT_COLUMNS = 120
CELL_CHARACTERS = 160
SUBJECT_CHARACTERS, SUBJECT_CHARACTERS_ONCE = 72, 100
"""What fits `git log --oneline` of a terminal, and the bound before that."""
FIRST_COMMIT = "e6663467d60ad235"
"""The last commit before subjects had a shape."""
LAST_LONG = "0abdf0dafd18b367"
"""The last commit before subjects had 72 characters."""
_SUBJECT = re.compile(r"[\w./, -]+: \S.*[^.\s]")
_PAGE = re.compile(r"(?<![\w/.-])docs/[\w/-]+\.(?:md|svg|png|ipynb)\b")
_DOCUMENTS = [path for path in files(".md") if not path.startswith("tests/corpus/")]
_NAMING = (".py", ".rs", ".c", ".h", ".toml", ".j2", ".md")


def test_lines_of_documents_have_at_most_120_columns() -> None:
    """But for code, whose output may be as wide, rows of tables, and links without a space."""
    found = {
        f"{path}: {number}"
        for path in _DOCUMENTS
        for number, line in prose_lines(text(path))
        if len(line) > DOCUMENT_COLUMNS and " " in line.strip()
    }
    held_by_file("document_lines", found)


def test_a_cell_of_a_table_has_at_most_160_characters() -> None:
    found = {
        f"{path}: {number}"
        for path in _DOCUMENTS
        for number, cell in cells(text(path))
        if len(cell) > CELL_CHARACTERS
    }
    held_by_file("cells", found)


def held_by_file(rule: str, found: set[str]) -> None:
    """As `held`, an exception being a whole file."""
    listed = EXCEPTIONS.get(rule, {})
    new = {place for place in found if place.split(": ")[0] not in listed}
    assert new == set(), f"{rule}: mend it, or argue for the file in tests/tidy/exceptions.toml"
    held(rule, {place.split(": ")[0] for place in found})


def test_no_word_has_to_be_decoded() -> None:
    found, kept = wordings(), set(KEPT_WORDS)
    assert not found - kept, "tests/tidy/wording.toml has what to say instead"
    assert not kept - found, "no exception any more: python -m tests.tidy.wording"


def test_no_sentence_uses_program_in_two_meanings() -> None:
    """A report said "This program programs 40 flash pages"."""
    pages = [path for path in _DOCUMENTS if not path.startswith("evidence/")]
    found = {path: wrong for path in pages if (wrong := two_meanings(text(path)))}
    assert found == {}, "the program writes pages"


def subjects_since(commit: str) -> set[str]:
    """Subjects of later commits, but for exceptions; skips in a clone that lacks the commit."""
    command = ["git", "log", "--no-merges", "--format=%s", f"{commit}..HEAD"]
    listed = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("the clone is shallow")
    return set(listed.stdout.splitlines()) - set(EXCEPTIONS.get("subjects", {}))


def test_a_subject_says_what_changed_and_where() -> None:
    subjects = subjects_since(FIRST_COMMIT)
    shaped = {line for line in subjects if _SUBJECT.fullmatch(line)}
    assert subjects - shaped == set(), "`area: what changed`"
    assert {line for line in shaped if len(line) > SUBJECT_CHARACTERS_ONCE} == set()


def test_a_subject_has_at_most_72_characters() -> None:
    long = {line for line in subjects_since(LAST_LONG) if len(line) > SUBJECT_CHARACTERS}
    assert long == set()


def test_a_page_that_is_named_anywhere_exists() -> None:
    """In comments, docstrings, help texts and messages as well."""
    named = {
        f"{path}: {page}"
        for path in files(*_NAMING)
        if not path.startswith("tests/")
        for page in _PAGE.findall(text(path))
        if not (PROJECT / page).exists()
    }
    held("pages", named)


def test_the_rules_notice_what_breaks_them() -> None:
    assert banned_in("// The kernel throws\n// dice.") == {"throws dice"}
    assert banned_in("a\n```\nwhoever\n```\n", document=True) == set()
    assert banned_in("Nobody's") == {"nobody's"}
    assert banned_in("dicey nobody-8") == set()
    assert two_meanings("This program programs 40 flash pages.")
    assert not two_meanings("This program writes 40 pages. A page is programmed once.")
    body = "a\n```text\nlong\n```\n| b | c\\|d |\n"
    assert list(prose_lines(body)) == [(1, "a")]
    assert list(cells(body)) == [(5, "b"), (5, "c\\|d")]
    for subject in ("ubifs: flush it", "docs, tests: read", "sim/src: a b"):
        assert _SUBJECT.fullmatch(subject)
    for subject in ("flush it", "docs: nine reads.", "docs:", "Merge x"):
        assert not _SUBJECT.fullmatch(subject)
