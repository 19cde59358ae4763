"""Prices and numbers of cases that documents print are those of the tree.

Seven prices of docs/models/costs.md, and how many cases a calibration has, had stayed behind when
the emulated board was calibrated again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from flashbed.bench.calibration.cases import programs
from flashbed.bench.validation import reads
from flashbed.stack.profiles import load_board, load_kernel
from tests.support import PROJECT

MODELS = sorted((PROJECT / "docs" / "models").glob("*.md"))
_KEY = r"`([a-z0-9_]+_(?:ns|ps))`"
_QUANTITY = r"([\d,.]+) (ns|us|ms|s)\b"
_INLINE = re.compile(rf"{_KEY}(?:,| is|:)? \(?{_QUANTITY}(?: a byte)?(?:\s+on\s+`([\w-]+)`)?")
_PRINTED = re.compile(r"^([a-z0-9_]+_(?:ns|ps)) +([\d,.]+) (ns) +\+-", re.MULTILINE)
_PICOSECONDS = {"ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}


@cache
def prices(board: str) -> dict[str, int]:
    """The prices of a board's software in picoseconds."""
    profile = tomllib.loads((PROJECT / "boards" / f"{board}.toml").read_text())
    units = {"ns": 1000, "ps": 1}
    return {
        key: value * units[key[-2:]]
        for key, value in profile["software"].items()
        if isinstance(value, int)
    }


def printed(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Key, number, unit and board of each price that a text prints."""
    for key, number, unit, board in _INLINE.findall(text.replace("\n  ", " ")):
        yield key, number, unit, board or "emulated"
    for key, number, unit in _PRINTED.findall(text):
        yield key, number, unit, "emulated"
    for row in re.findall(r"^\| *(`[^|]*) *\|.*\| *([^|]*) \|$", text, re.MULTILINE):
        keys, quantities = re.findall(_KEY, row[0]), re.findall(_QUANTITY, row[1])
        if len(keys) == len(quantities):
            yield from (
                (key, *found, "emulated") for key, found in zip(keys, quantities, strict=True)
            )


@pytest.mark.parametrize("page", MODELS, ids=lambda page: page.name)
def test_a_printed_price_is_the_profile_s(page: Path) -> None:
    for key, number, unit, board in printed(page.read_text()):
        known = prices(board)
        if key in known:
            decimals = len(number.partition(".")[2])
            price = known[key] / _PICOSECONDS[unit]
            shown = float(number.replace(",", ""))
            assert abs(price - shown) <= 0.5 * 10.0**-decimals, (key, board, price, shown)


def test_the_page_of_costs_prints_prices() -> None:
    found = list(printed((PROJECT / "docs" / "models" / "costs.md").read_text()))
    assert len({key for key, *_ in found}) > 20


def test_my_board_says_how_many_cases_a_board_runs() -> None:
    board = load_board("emulated")
    calibrated = len(programs(board, load_kernel("6.1")))
    validated = sum(len(list(reads.cases(fs, board))) for fs in ("jffs2", "ubifs", "yaffs2"))
    page = (PROJECT / "docs" / "guide" / "my-board.md").read_text()
    assert re.findall(r"^\| `calibrate` \| (\d+) ", page, re.MULTILINE) == [str(calibrated)]
    assert re.findall(r"^\| `validate` \| (\d+) ", page, re.MULTILINE) == [str(validated)]
