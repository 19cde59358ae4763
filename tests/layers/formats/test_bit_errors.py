"""Curves of bit errors: read, refused, and made into the whole numbers that targets count with."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.stack.bit_errors import ErrorRates, error_rates, load_curve
from flashbed.stack.conditions import BitErrors, Faults, Level
from flashbed.stack.profiles import Board, load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.guest.nand import begin_commands
from tests.support import PROJECT

SLC = (PROJECT / "boards/errors/slc.toml").read_text()
PART = {"part": "MX30LF4G28AB", "program_array_ns": 300_000, "erase_array_ns": 2_000_000}
COMMAND_BYTES = 64
"""The longest command of kernel/flashbed_nand and of the agent, with its end."""


def part(strength_bits: int = 8) -> Board:
    controller = {"ecc_strength_bits": strength_bits, "ecc_step_bytes": 512}
    return load_board("emulated").changed({"chip": PART, "controller": controller})


def expected(rates: ErrorRates, *, erases: int, hours: int = 0, reads: int = 0) -> float:
    """Errors of an ECC step, in floating point."""
    total = 0.0
    for term, other, counts in (
        (rates.fresh, 1, True),
        (rates.wear, 1, True),
        (rates.retention, hours, hours > 0),
        (rates.disturb, reads, reads > 0),
    ):
        log2, erases_power, power = term
        if counts:
            exponent = log2 / 2**24 + erases_power / 2**16 * math.log2(erases)
            total += 2 ** (exponent + power / 2**16 * math.log2(other))
    return total


def lost(mean: float, strength_bits: int) -> float:
    """The probability of more errors than are corrected."""
    return 1 - sum(
        math.exp(-mean) * mean**count / math.factorial(count) for count in range(strength_bits + 1)
    )


def test_ecc_as_asked_for_loses_what_is_promised_at_the_end_of_life() -> None:
    rates = error_rates(BitErrors(), part())
    mean = expected(rates, erases=100_000, hours=365 * 24)
    assert lost(mean, 8) / (512 * 8) == pytest.approx(1e-15, rel=0.1)


def test_the_rate_is_the_chips_and_not_the_controllers() -> None:
    means = {bits: expected(error_rates(BitErrors(), part(bits)), erases=50_000) for bits in (1, 8)}
    assert means[1] == means[8]


@pytest.mark.parametrize("erases", [1, 1_000, 100_000])
def test_levels_are_in_order(erases: int) -> None:
    levels: tuple[Level, ...] = ("low", "typical", "high")
    for hours, reads in ((0, 0), (8_760, 0), (0, 90_000)):
        means = [
            expected(error_rates(BitErrors(level=level), part()), erases=erases, hours=hours,
                     reads=reads)
            for level in levels
        ]  # fmt: skip
        assert means[0] <= means[1] * 1.001
        assert means[1] <= means[2] * 1.001


def test_a_measured_curve_has_its_own_rate_and_erases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "boards" / "errors"
    folder.mkdir(parents=True)
    measured = SLC.replace(
        "uber = { low = 1e-16, typical = 1e-15, high = 1e-15 }", "rate = 1e-6\nerases = 3_000"
    )
    (folder / "mine.toml").write_text(measured)
    monkeypatch.chdir(tmp_path)
    rates = error_rates(BitErrors(curve="mine"), load_board("emulated"))
    step_bits = 256 * 8
    assert expected(rates, erases=3_000, hours=8_760) == pytest.approx(1e-6 * step_bits, rel=1e-3)


@pytest.mark.parametrize(
    ("was", "instead", "says"),
    [
        ("share = 0.8", "share = 0.7", "in all, not 1"),
        ("days = 365", "days = 365\nrate = 1e-6\nerases = 1", "uber or rate: one of them"),
        ("days = 365", "", "promised.days: missing"),
        ("reads_power =", "read_power =", "read_power"),
    ],
)
def test_a_wrong_curve_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was: str, instead: str, says: str
) -> None:
    folder = tmp_path / "boards" / "errors"
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text(SLC.replace(was, instead))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=says) as raised:
        load_curve("mine")
    assert "errors/mine.toml" in str(raised.value)


def test_what_a_curve_needs_is_asked_for() -> None:
    with pytest.raises(InputError, match="no curve of boards/errors/; there are mlc, slc, tlc"):
        load_curve("qlc")
    board = load_board("emulated").model_copy(update={"endurance": None})
    with pytest.raises(InputError, match=r"has no \[endurance\]"):
        error_rates(BitErrors(), board)


@pytest.mark.parametrize(
    "word", ["errors=slc", "errors=slc+high", "errors=slc+low+aged365+read1000", "errors=mine"]
)
def test_words_are_read_back(word: str) -> None:
    faults = Faults.parse(word)
    assert faults.bit_errors is not None
    assert str(faults) == word
    assert faults.while_measuring


@pytest.mark.parametrize("word", ["errors", "errors3", "errors=slc+worst", "errors=slc+read"])
def test_other_words_are_refused(word: str) -> None:
    with pytest.raises(InputError, match="no faults such as"):
        Faults.parse(word)


def test_errors_go_with_no_flips() -> None:
    with pytest.raises(InputError, match="bit_flips and bit_errors: one of them"):
        Faults.parse("flips0.1x1-errors=slc")


def test_stacks_with_other_curves_are_others_and_commands_fit() -> None:
    faults = Faults(bit_errors=BitErrors(level="high", age_days=36_500, reads=2**31 - 1))
    stacks = [
        Stack(board=part(), kernel=load_kernel("6.1"), fs="ubifs", faults=given)
        for given in (faults, Faults(bit_errors=BitErrors()), Faults())
    ]
    assert len({stack.sha256 for stack in stacks}) == 3
    commands = begin_commands(Program(case_id="a", stack=stacks[0], prepare="", body=""))
    assert [command.split()[0] for command in commands] == [*["error-term"] * 4, "errors"]
    assert max(map(len, commands)) < COMMAND_BYTES
    assert begin_commands(Program(case_id="a", stack=stacks[2], prepare="", body="")) == []
