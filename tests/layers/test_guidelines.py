"""Each guideline holds on every stack, and the page says what was found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docs.generate.guidelines import Guideline, broken, found, guidelines, page, stacks
from docs.generate.live_pictures import GUIDE

ALL = guidelines()
pytestmark = [pytest.mark.extension, pytest.mark.timeout(900)]


@pytest.mark.parametrize("guideline", ALL, ids=[each.id for each in ALL])
def test_a_guideline_holds_on_every_stack(guideline: Guideline) -> None:
    rows = found(guideline)
    assert {each.stack for each in rows} >= {
        each.name for each in stacks() if each.file_systems == ("jffs2", "ubifs", "yaffs2")
    }
    assert broken(guideline, rows) == []


def test_what_no_longer_holds_is_named() -> None:
    """As if a model had changed by so much that the worst stack misses the bound."""
    guideline = ALL[0]
    rows = found(guideline)
    worst = min(each.times[guideline.measure] for each in rows)
    lines = broken(replace(guideline, at_least=worst + 0.01), rows)
    assert lines
    assert lines[0].startswith(f"{guideline.id}: ")


def test_the_page_says_what_was_found() -> None:
    assert (GUIDE / "guidelines.md").read_text(encoding="utf-8") == page()
