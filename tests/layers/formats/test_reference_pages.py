"""The reference pages list every operation, error, call and column that the program knows."""

from __future__ import annotations

import re

import pytest

from flashbed.program.operation_fields import FIELDS, FIELDS_2
from flashbed.program.operations import HEADER, HEADER_2, parse
from flashbed.program.recording.about import About
from flashbed.program.recording.calls import CALLS
from flashbed.program.recording.file import SCHEMA
from tests.support import PROJECT

REFERENCE = PROJECT / "docs" / "reference"
_CODE = re.compile(r"`([^`]+)`")


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """From a heading to the next one of its level or above."""
    start = text.index(f"\n{heading}\n") + 1
    level = len(heading.split()[0])
    end = re.compile(rf"^#{{1,{level}}} ", re.MULTILINE).search(text, start + len(heading))
    return text[start : end.start() if end else None]


def rows(text: str) -> list[list[str]]:
    """The cells of a section's tables."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def listed(text: str) -> dict[str, int]:
    """The operations of a table, and how many fields each has."""
    found = {}
    for first, *more in rows(text):
        name = _CODE.fullmatch(first)
        if name and len(more) == 2:
            found[name[1]] = len(more[0].split())
    return found


def test_every_operation_of_version_1_is_listed_with_its_fields() -> None:
    table = section(page("operations.md"), "## Operations of version 1").split("\n### ")[0]
    assert listed(table) == {name: len(readers) for name, readers in FIELDS.items()}
    assert list(listed(table)) == sorted(FIELDS)


def test_every_operation_of_version_2_is_listed_with_its_fields() -> None:
    table = section(page("operations.md"), "### Calls of version 2")
    new = {name: len(FIELDS_2[name]) for name in FIELDS_2 if name not in FIELDS}
    assert listed(table) | {"data": new["data"]} == new
    assert list(listed(table)) == sorted(listed(table))


def test_every_error_has_a_row() -> None:
    said = page("operations.md")
    known = set()
    for path in (PROJECT / "python/flashbed/program").glob("operation*.py"):
        known |= set(re.findall(r'"((?:bad|map|slot)-[a-z]+)"', path.read_text()))
    assert {"bad-fill", "slot-open"} < known
    for code in known:
        assert re.search(rf"^\| (?:`[a-z-]+`, )?`{code}`", said, re.MULTILINE), code


@pytest.mark.parametrize("header", [HEADER, HEADER_2])
def test_the_examples_are_files_of_operations(header: str) -> None:
    examples = re.findall(r"```text\n(flashbed-ops.*?)```", page("operations.md"), re.DOTALL)
    (example, *more) = [text for text in examples if text.startswith(f"{header}\n")]
    for text in more:
        parse(text)
    assert "mark" in [operation.name for operation in parse(example)]


def test_every_call_of_a_recording_has_a_row() -> None:
    table = section(page("recording.md"), "### Calls and their arguments")
    said = {name for first, *_ in rows(table) for name in _CODE.findall(first)}
    assert set(CALLS) == said


def test_every_key_and_column_of_a_recording_has_a_row() -> None:
    said = page("recording.md")
    names = _CODE.findall(" ".join(first for first, *_ in rows(section(said, "## Columns"))))
    columns = list(SCHEMA)
    first, last = columns.index("descriptor"), columns.index("address")
    assert names[: first + 2] == [*columns[:first], "descriptor", "address"]
    assert names[first + 2 :][: len(columns) - last - 1] == columns[last + 1 :]
    metadata = rows(section(said, "## Metadata").split("| `think` | each")[0])
    assert [name for first, *_ in metadata for name in _CODE.findall(first)] == [
        *About.model_fields
    ]


def test_the_example_of_a_job_is_one() -> None:
    protocol = (PROJECT / "agent" / "PROTOCOL.md").read_text(encoding="utf-8")
    job, stream = re.findall(r"```text\n(flashbed-.*?)```", protocol, re.DOTALL)
    lines = job.splitlines()
    at = [number for number, line in enumerate(lines) if line.startswith("ops ")]
    assert len(at) == 2
    for number in at:
        size = int(lines[number].split()[1])
        assert lines[number + 1] == HEADER_2
        assert lines[number + 1 + size].split()[0] in ("case", "done")
    measured = [line for line in stream.splitlines() if line.startswith("r ")]
    assert len(measured) == 3
