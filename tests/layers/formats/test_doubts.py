"""Times that no NAND has are doubted, in words that name what may have been meant."""

from __future__ import annotations

import pytest

from flashbed.stack.doubts import doubts
from flashbed.stack.profiles import load_board
from tests.support import PROJECT


def test_no_board_of_ours_is_doubted() -> None:
    boards = sorted((PROJECT / "boards").glob("*.toml"))
    assert len(boards) >= 5
    assert [doubts(load_board(path.stem)) for path in boards] == [[]] * len(boards)


@pytest.mark.parametrize(
    ("name", "value", "end"),
    [
        ("program_array_ns", 250, "50_000 to 10_000_000 ns; is 250_000 meant?"),
        ("read_array_ns", 25, "3_000 to 500_000 ns; is 25_000 meant?"),
        ("erase_array_ns", 2, "300_000 to 100_000_000 ns"),
        ("read_array_ns", 900_000_000, "3_000 to 500_000 ns"),
    ],
)
def test_a_forgotten_factor_is_named(name: str, value: int, end: str) -> None:
    board = load_board("emulated")
    chip = board.chip.model_copy(update={name: value})
    (doubt,) = doubts(board.model_copy(update={"chip": chip}))
    assert doubt.endswith(f"emulated.toml: chip.{name} = {value:_}: NAND takes {end}")


def test_software_without_prices_is_doubted() -> None:
    board = load_board("emulated")
    (doubt,) = doubts(board.without_software())
    assert "emulated.toml: [software] is not calibrated: code takes no time" in doubt
