"""The twenty questions of a user: each has one page, which says what flashbed cannot say of it."""

from __future__ import annotations

import re

import pytest

from tests.support import PROJECT

DOCS = PROJECT / "docs"
WORDS = {
    "bad block": "models/ubi",
    "bit flips": "guide/bit-flips",
    "bus-width": "guide/is-my-bus-quad",
    "df": "guide/does-it-fit",
    "ECC": "guide/bit-flips",
    "eMMC": "guide/emmc-or-nand",
    "fastmap": "guide/boot-time",
    "fsync": "guide/which-calls",
    "journal": "guide/my-database",
    "latency": "guide/slow-calls",
    "mkfs.ubifs": "guide/my-image",
    "musl": "guide/another-architecture",
    "aarch64": "guide/another-architecture",
    "OTA": "guide/updates",
    "overlay": "guide/my-stack",
    "quad": "guide/is-my-bus-quad",
    "read-ahead": "guide/guidelines",
    "rename": "guide/which-calls",
    "SPI-NAND": "guide/which-chip",
    "squashfs": "guide/boot-time",
    "ubiblock": "guide/my-stack",
    "ubinfo": "guide/in-the-field",
    "WAL": "guide/which-calls",
    "wear levelling": "models/ubi",
    "write-back": "guide/how-often-to-sync",
}
"""Words of the field -> the page that a reader wants; test_site.py searches the site for them."""


def questions() -> list[tuple[str, str]]:
    """Each question of the first page, and the page that answers it."""
    table = (DOCS / "index.md").read_text(encoding="utf-8").split("## Twenty questions")[1]
    return re.findall(
        r"^\| (.+?) \| \[[^]]+\]\((guide/[\w-]+)\.md\) \|$", table.split("\n## ")[0], re.M
    )


def test_there_are_twenty_questions() -> None:
    asked = questions()
    assert len(asked) == 20
    assert len({page for _, page in asked}) == 20, "a page answers one question"


@pytest.mark.parametrize("page", [page for _, page in questions()])
def test_a_page_says_first_what_it_cannot_say(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert "What flashbed cannot say" in text.split("\n## ")[0]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_field_stands_on_its_page(word: str) -> None:
    text = (DOCS / f"{WORDS[word]}.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE), word


def test_how_far_off_has_the_count_of_printed_numbers() -> None:
    """The page of verdicts is held to the command; this one repeats its sum."""
    verdicts = (PROJECT / "evidence" / "verdicts.md").read_text(encoding="utf-8")
    row = re.search(r"^\| all three (\| \d+ \| \d+ \| [\d.]+) \|$", verdicts, re.MULTILINE)
    assert row
    assert f" {row[1]} %" in (DOCS / "how-far-off.md").read_text(encoding="utf-8")
