"""JFFS2 on SPI-NOR, by Linux' own driver: files come back, two runs agree, times are arithmetic."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.test_exec import pytestmark
from tests.agreement.test_layouts import _flashbed

__all__ = ["pytestmark"]

CHIP = ("--set", "chip=W25Q128JV", "--set", "fs=jffs2")
PAGE_BYTES = 256
REWRITES = (
    "for i in 1 2 3 4 5 6 7 8; do head -c 3000000 /dev/urandom >a; head -c 900000 /dev/zero >b;"
    " sync; done; sha256sum a b >sums; sync"
)


def _exec(*words: str, here: Path) -> tuple[dict[str, Any], str]:
    ran = _flashbed("exec", "--format", "json", *words, here=here)
    assert ran.status == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)["exec"][0]
    return found, ran.err


def test_files_come_back_and_two_runs_count_alike(tmp_path: Path) -> None:
    """More is written than the chip holds: JFFS2 collects, and obsoletes nodes in place."""
    runs = []
    for name in ("one", "two"):
        kept = tmp_path / name
        words = (*CHIP, "--rate", "1/h", "--keep", str(kept), "--", "sh", "-c", REWRITES)
        found, _ = _exec(*words, here=tmp_path)
        sums = [line.split() for line in (kept / "sums").read_text().splitlines()]
        assert sums == [
            [hashlib.sha256((kept / path).read_bytes()).hexdigest(), path] for path in ("a", "b")
        ]
        runs.append(found)
    for key in ("run", "flush", "time_ns", "years"):
        assert runs[0][key] == runs[1][key], key
    assert runs[0]["run"]["erases"] > 0
    assert runs[0]["run"]["programs"] * PAGE_BYTES > 8 * 3_000_000
    assert runs[0]["years"] is not None


@pytest.mark.parametrize("lines", [1, 4])
def test_programs_take_what_the_data_sheet_and_the_bus_say(tmp_path: Path, lines: int) -> None:
    """Linux 6.1 programs on one line, whatever the bus has: opcode, address and data.

    A write enable is 8 cycles, and the status is polled in 16 cycles until 700 us are over.
    """
    cycle_ns, array_ns = 20, 700_000
    words = ("--set", "controller.clock_hz=50000000", "--set", f"controller.lines={lines}")
    script = "head -c 100000 /dev/urandom >a; sync"
    found, _ = _exec(*CHIP, *words, "--", "sh", "-c", script, here=tmp_path)
    ran = found["run"]
    assert (ran["reads"], ran["erases"]) == (0, 0)
    polls = -(-array_ns // (16 * cycle_ns)) * 16 * cycle_ns
    programs = ran["programs"]
    data_ns = ran["busy_ns"] - programs * ((8 + 32) * cycle_ns + polls)
    bytes_, rest = divmod(data_ns, 8 * cycle_ns)
    assert rest == 0
    assert 100_000 < bytes_ <= min(110_000, programs * PAGE_BYTES)


@pytest.mark.parametrize("chip", ["W25Q64JV", "W25Q256JV", "S25FL128S"])
def test_other_chips_hold_files_too(tmp_path: Path, chip: str) -> None:
    """One has addresses of four bytes, one no small erases."""
    script = "head -c 200000 /dev/urandom >a; sha256sum a >s; sync"
    kept = tmp_path / "kept"
    words = ("--set", f"chip={chip}", "--set", "fs=jffs2", "--keep", str(kept))
    _exec(*words, "--", "sh", "-c", script, here=tmp_path)
    digest = hashlib.sha256((kept / "a").read_bytes()).hexdigest()
    assert (kept / "s").read_text().split() == [digest, "a"]


def test_a_program_cut_by_power_boots_and_reads_its_file(tmp_path: Path) -> None:
    script = "for i in 1 2 3 4; do echo $i >x.new; sync; mv x.new x; done; sync"
    words = ("--on", "uml", *CHIP, "--cuts", "12", "--format", "json", "--", "sh", "-c", script)
    ran = _flashbed("boot", *words, here=tmp_path)
    assert ran.status == 0, ran.err
    assert '"booted": 12' in ran.out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--set", "fs=ubifs"), "fs=ubifs: SPI-NOR has jffs2 only (chip W25Q128JV)"),
        (("--set", "fs=yaffs2"), "fs=yaffs2: SPI-NOR has jffs2 only (chip W25Q128JV)"),
        (
            ("--set", "fs=jffs2", "--on", "ssh://root@localhost"),
            "SPI-NOR is on sim, uml and emulator",
        ),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    ran = _flashbed("exec", "--set", "chip=W25Q128JV", *words, "--", "true", here=tmp_path)
    assert ran.status == 2
    assert why in ran.err
