"""The phases of a case are one table, which the agent and the simulator keep."""

from __future__ import annotations

import re

import pytest

from tests.support import PROJECT

_ROW = re.compile(r"^\| `([A-Z_]+_NS)` \| ([0-9,]+) \|$", re.MULTILINE)
_CONSTANT = re.compile(
    r"^(?:static |pub\(super\) )?const (?:u?int64_t )?([A-Z_]+_NS)(?:: u64)? = ([0-9_]+);", re.M
)
OF_BOARDS_ONLY = {"SHARED_PHASE_NS"}


def phases(table: str) -> dict[str, int]:
    """What a source's constants are."""
    return {name: int(value) for name, value in _CONSTANT.findall(table)}


@pytest.fixture(scope="module")
def told() -> dict[str, int]:
    page = (PROJECT / "agent/PROTOCOL.md").read_text()
    section = page.split("## Phases of a case")[1].split("\n## ")[0]
    rows = _ROW.findall(section)
    return {name: int(value.replace(",", "")) for name, value in rows}


def test_the_agent_keeps_them(told: dict[str, int]) -> None:
    assert phases((PROJECT / "agent/job/phases.c").read_text()) == told


def test_the_simulator_keeps_them(told: dict[str, int]) -> None:
    expected = {name: value for name, value in told.items() if name not in OF_BOARDS_ONLY}
    assert phases((PROJECT / "sim/src/run/machine.rs").read_text()) == expected
