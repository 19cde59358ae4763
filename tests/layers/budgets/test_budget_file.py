"""A budget's file: what it holds, and what is refused with file, key and what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.answers.budgets.budget import read_budget
from flashbed.base.errors import InputError

WHOLE = """\
name = "thermostat"

[limits]
p99_latency_ms = 20
page_writes = 500

[[stack]]
name = "rev-a"
set = ["fs=ubifs", "compressor=zstd"]

[[program]]
name = "logger"
run = "logger.ops"
rate = "6/h"
set = ["read_ahead_kib=0"]
limits = { page_writes = 90, failed_calls = 3 }

[[program]]
name = "settings"
command = ["sh", "-c", "echo on > mode"]
repeat = "1/5min"

[together]
years = 10
"""


def written(folder: Path, text: str = WHOLE) -> Path:
    path = folder / "budget.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_programs_limits_replace_those_of_all(tmp_path: Path) -> None:
    budget = read_budget(written(tmp_path))
    logger, settings = budget.program
    assert budget.limits_of(logger) == {
        "p99_latency_ms": 20.0, "page_writes": 90, "failed_calls": 3,
    }  # fmt: skip
    assert budget.limits_of(settings)["page_writes"] == 500
    assert budget.settings_of(budget.stack[0], logger) == [
        "fs=ubifs", "compressor=zstd", "read_ahead_kib=0",
    ]  # fmt: skip
    assert (logger.runs_per_day, settings.runs_per_day) == (144.0, 288.0)
    assert budget.baseline == tmp_path / "budget.baseline.json"


def test_paths_are_relative_to_the_budget_and_names_stay_names(tmp_path: Path) -> None:
    (tmp_path / "logger.ops").write_text("flashbed-ops 1\n")
    budget = read_budget(written(tmp_path))
    assert budget.what(budget.program[0]) == str(tmp_path / "logger.ops")
    (tmp_path / "logger.ops").unlink()
    assert budget.what(budget.program[0]) == "logger.ops"


def test_a_budget_without_a_name_is_called_as_its_file(tmp_path: Path) -> None:
    budget = read_budget(written(tmp_path, WHOLE.replace('name = "thermostat"\n', "")))
    assert budget.title == "budget"


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("page_writes = 90", "page_wites = 90", "limits.page_wites: unknown key, page_writes"),
        ("page_writes = 90", "programs = 90", "programs: unknown key: page_writes counts them"),
        ("page_writes = 90", "boot_ms = 90", "boot_ms: unknown key: no run measures how long"),
        ("page_writes = 90", "page_writes = -1", "page_writes: -1 is not at least 0"),
        ("page_writes = 90", "page_writes = 1.5", "page_writes: 1.5 is not a whole number"),
        ("p99_latency_ms = 20", "p99_latency_ms = 0", "p99_latency_ms: 0 is not more than 0"),
        ("years = 10", "years = 5000", "together.years: 5000 is not at most 1000"),
        ('name = "thermostat"', 'watched = ["ears"]', "watched: ears: no measure; there are"),
        ("years = 10", "page_writes = 5", "together.page_writes: unknown key"),
        ('"6/h"', '"often"', "program.1.rate: often: N/UNIT"),
        ('rate = "6/h"', "", "together: how often does logger run?"),
        ('run = "logger.ops"', "", "program.1: either run or command"),
        ('run = "logger.ops"', 'run = "a"\ncommand = ["b"]', "program.1: either run or command"),
        ("[limits]", "[limit]", "limit: unknown key, limits is meant?"),
        ('name = "settings"', 'name = "logger"', "program: two of them are called logger"),
        ('set = ["fs=ubifs", "compressor=zstd"]', 'set = "fs=ubifs"', "stack.1.set"),
        ('[[stack]]\nname = "rev-a"\nset = ["fs=ubifs", "compressor=zstd"]', "", "stack: missing"),
    ],
)  # fmt: skip
def test_a_wrong_key_is_named_with_its_file(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert right in WHOLE
    with pytest.raises(InputError) as raised:
        read_budget(written(tmp_path, WHOLE.replace(right, wrong)))
    assert str(raised.value).startswith(f"{tmp_path}/budget.toml: ") or "budget.toml: " in str(
        raised.value
    )
    assert said in str(raised.value)
