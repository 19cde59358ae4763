"""What of the documents is generated is what the program generates today.

Where a test here fails, the program has changed: `make docs-generated` writes the pages again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from docs.generate import notebooks, profile_pages
from docs.generate.live_pictures import GUIDE, PICTURES
from docs.generate.markdown import CELL_CHARACTERS, entry, prose, table
from docs.generate.pages import PAGES, REFERENCE
from flashbed.results.column_meanings import COLUMN_MEANINGS, ROWS
from flashbed.results.columns import SCHEMAS
from tests.support import PROJECT

NOTEBOOKS = sorted((PROJECT / "docs" / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_program_says(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == PAGES[name]()


@pytest.mark.extension
@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_of_a_live_figure_is_what_the_simulator_measures(name: str) -> None:
    assert (GUIDE / name).read_text(encoding="utf-8") == PICTURES[name]()


def test_every_column_says_what_it_holds() -> None:
    assert ROWS.keys() == SCHEMAS.keys()
    for name, schema in SCHEMAS.items():
        assert set(COLUMN_MEANINGS[name]) == set(schema), name


def test_every_key_of_a_profile_says_what_it_is() -> None:
    models = profile_pages.models()
    assert len(models) > 15
    for model in models:
        said = profile_pages.described(model)
        for name, field in model.model_fields.items():
            # A price says it in its description, and some tables hold prices.
            of_prices = name in ("compressors", "squashfs")
            assert said.get(name) or field.json_schema_extra or of_prices, (model, name)


def test_three_notebooks_are_there() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.extension
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_prints_what_it_is_saved_with(path: Path) -> None:
    """But for pictures, which have the same marks and not the same text everywhere."""
    saved, today = json.loads(path.read_text()), json.loads(notebooks.executed(path))
    pairs = zip(saved["cells"], today["cells"], strict=True)
    for number, (before, after) in enumerate(pairs):
        for outputs in (before.get("outputs", []), after.get("outputs", [])):
            for output in outputs:
                output.get("data", {}).pop("image/svg+xml", None)
        assert before == after, f"{path.name}, cell {number}"


def test_a_cell_prints_and_shows_as_in_jupyter(tmp_path: Path) -> None:
    sources = ["a = 2\nprint('b')", "a", "a;", "print(a)\na + 1"]
    cells = [{"cell_type": "code", "source": [source]} for source in sources]
    path = tmp_path / "some.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    found = [cell["outputs"] for cell in json.loads(notebooks.executed(path))["cells"]]
    said = [[one.get("text") or one["data"]["text/plain"] for one in cell] for cell in found]
    assert said == [[["b\n"]], [["2"]], [], [["2\n"], ["3"]]]


def test_generated_text_is_markdown_that_says_the_same() -> None:
    assert prose("a\nb *c* <d> `e*f`\n\ng docs/models/ubi.md") == (
        "a b \\*c\\* \\<d> `e*f`\n\ng [models/ubi.md](../models/ubi.md)"
    )
    lines = entry("`--on`", "word " * 40).splitlines()
    assert lines[0].startswith("- `--on`: word")
    assert all(line.startswith("  word") and len(line) <= 120 for line in lines[1:])
    assert table(("a",), [("b|c",)]).splitlines()[2] == "| b\\|c |"
    with pytest.raises(ValueError, match="a cell of 161 characters"):
        table(("a",), [("b" * (CELL_CHARACTERS + 1),)])
