"""The documents do not grow: what is said once, and at its place, is found sooner.

The lab book, evidence/, has no bound: it grows by what is measured.

A number here is only ever lowered: to what a folder has, rounded up to the next 500.
"""

from __future__ import annotations

import pytest

from tests.tidy.sources import files, text

MOST_WORDS = {
    "docs/guide": 32_000,
    "docs/models": 25_000,
    "docs/reference": 21_500,
    "docs": 80_000,
}
"""Folder -> words of its pages, as `wc -w` counts them."""
STEP = 500


def words(folder: str) -> int:
    """Words of the pages of a folder."""
    pages = [path for path in files(".md") if path.startswith(f"{folder}/")]
    assert pages
    return sum(len(text(path).split()) for path in pages)


@pytest.mark.parametrize("folder", MOST_WORDS)
def test_the_pages_of_a_folder_have_no_more_words(folder: str) -> None:
    assert words(folder) <= MOST_WORDS[folder], "say it once, or say it elsewhere"


@pytest.mark.parametrize("folder", MOST_WORDS)
def test_a_number_is_what_a_folder_has(folder: str) -> None:
    """So that words that were taken out do not come back unseen."""
    assert words(folder) > MOST_WORDS[folder] - 2 * STEP, "lower the number in MOST_WORDS"
