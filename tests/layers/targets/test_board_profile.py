"""A first profile says what is not known, and can take its prices from a board that is like it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from flashbed.base.errors import InputError
from flashbed.stack.prices import Software, known_price, prices
from flashbed.stack.profiles import Board, load_board
from flashbed.targets.ssh.board_profile import Like, blank_profile_text, profile_text
from flashbed.targets.ssh.facts import read_facts
from tests.layers.targets.test_ssh_facts import ROWS

FACTS = read_facts(ROWS)


def begun(like: Like | None = None) -> dict[str, Any]:
    return tomllib.loads(profile_text("mine", FACTS, FACTS.partitions[0], like))


def blanks_of(table: dict[str, Any]) -> set[str]:
    return {key for key, value in table.items() if value == "?"}


@pytest.mark.parametrize(
    "text", [blank_profile_text("mine"), profile_text("mine", FACTS, FACTS.partitions[0])]
)
def test_no_zero_stands_for_what_is_not_known(text: str) -> None:
    """77 prices were 0, the first block was 0, and `lifetime` had no endurance to go by."""
    found = tomllib.loads(text)
    assert set(found["software"]) == {"source", "sched_clock_ns", "pointer_bytes"}
    assert blanks_of(found["endurance"]) == {"source", "cycles"}
    hints = re.findall(r'(?m)^cycles = "\?"  # (.*)$', text)
    assert hints == ["PROGRAM/ERASE cycles with the ECC that it asks for: 100_000 (SLC)"]
    assert 0 not in {value for name in ("board", "chip", "ecc") for value in found[name].values()}


def test_a_boards_first_block_is_known_or_asked_for() -> None:
    assert begun()["partition"]["first_block"] == 0
    assert tomllib.loads(blank_profile_text("mine"))["partition"]["first_block"] == "?"


def test_software_without_any_price_is_not_calibrated_and_one_price_is_not_enough() -> None:
    software = Software.model_validate({"source": "s", "pointer_bytes": 8})
    assert software.is_free
    assert (software.syscall_ns, software.pointer_bytes) == (0, 8)
    with pytest.raises(ValueError, match="Field required"):
        Software.model_validate({"source": "s", "syscall_ns": 5})


@pytest.mark.parametrize("name", ["emulated", "omap3evm"])
def test_prices_are_those_of_another_board_by_the_clock(name: str) -> None:
    known = load_board(name)
    clock = known.board.cpu_mhz
    assert clock is not None
    table = begun(Like.of(name, 2 * clock))
    assert table["board"]["cpu_mhz"] == 2 * clock
    assert f"estimate: prices of {name} by the clock, {clock} to" in table["software"]["source"]
    scaled = Software.model_validate(table["software"])
    for price in prices():
        before, after = known_price(known.software, price.key), known_price(scaled, price.key)
        assert (before is None) == (after is None), price.key
        assert abs((before or 0) - 2 * (after or 0)) <= 1, price.key
    assert scaled.compressors.included == known.software.compressors.included
    assert scaled.pointer_bytes == 4


def test_a_profile_with_its_numbers_filled_in_is_a_board(tmp_path: Path) -> None:
    known = load_board("emulated").model_dump()
    table = begun(Like.of("emulated", 528))
    filled = {
        name: {key: known[name][key] if value == "?" else value for key, value in part.items()}
        for name, part in table.items()
    }
    filled["ecc"] |= {"step_bytes": 256}
    board = Board.model_validate(filled)
    assert board.software.syscall_ns == round(2_480 * 250 / 528)
    assert board.endurance is not None
    assert board.endurance.cycles == 100_000


@pytest.mark.parametrize(
    ("name", "why"), [("nosuch", "no such board"), ("Emulated!", "not a board's name")]
)
def test_a_board_that_is_not_known_has_no_prices(name: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Like.of(name, 528)
