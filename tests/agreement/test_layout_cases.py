"""Cases on layouts: the simulator, user-mode Linux and the emulated board hold each other.

Every program that ships, on every layout. The times are of programs that the prices of overlayfs
were not found with (tests/support/overlay_prices.py).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from flashbed.base.paths import layout_files
from flashbed.plan.stacks import one_stack
from flashbed.targets import load_target
from flashbed.targets.base import Program, RunOptions
from tests.agreement.test_shipped_programs import NAMES, counts
from tests.support.layout_settings import NOR_CHIP, ON_MTD, ON_UBI
from tests.support.overlay_prices import on_layout

LAYOUTS = sorted(layout_files())
TIMED = ("config", "postmark", "sqlite-wal")
TIME_PCT = 7
"""What the calls of a program take in the simulator, against the emulated board."""
KNOWN = {
    (
        "dbench",
        "two-slots",
    ): "UBIFS' thread is preempted in its commit, which the program makes here"
}
"""Program and layout -> why the simulator counts otherwise."""
KNOWN_ON_BOARD = {
    (
        "postmark",
        "nor-squashfs-overlay-jffs2",
    ): "68 of 122 page reads fewer, 2 of 3,173 page writes later: the collector has another turn"
}
"""The same against the emulated board, where the processor's time counts."""


def programs_on(
    name: str, layout: str, fastmap: int = 0, chip: str | None = NOR_CHIP
) -> list[Program]:
    """A program that ships, on a layout; cases of two programs have different names."""
    found = on_layout(name, layout, fastmap=fastmap, chip=chip)
    return [replace(program, case_id=f"{name}-{program.case_id}") for program in found]


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.timeout(900)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_program_that_ships_does_the_same_to_the_flash(layout: str) -> None:
    _same_as_the_kernel(layout)


def _same_as_the_kernel(layout: str, fastmap: int = 0) -> None:
    names = [name for name in NAMES if (name, layout) not in KNOWN]
    programs = [program for name in names for program in programs_on(name, layout, fastmap)]
    assert counts("sim-chip", programs) == counts("uml", programs)


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.timeout(900, func_only=True)
@pytest.mark.usefixtures("cases_with_fastmap")
def test_a_program_on_a_device_with_fastmaps_does_the_same_to_the_flash() -> None:
    _same_as_the_kernel("squashfs-overlay-ubifs", fastmap=1)


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.long
@pytest.mark.timeout(1_800, func_only=True)
@pytest.mark.usefixtures("cases_with_fastmap")
@pytest.mark.parametrize("layout", ON_UBI)
def test_programs_on_all_layouts_with_fastmaps_do_the_same_to_the_flash(layout: str) -> None:
    _same_as_the_kernel(layout, fastmap=1)


@pytest.mark.emulator
@pytest.mark.extension
@pytest.mark.timeout(900)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_emulated_board_takes_nearly_the_same_time(layout: str) -> None:
    names = [name for name in TIMED if (name, layout) not in KNOWN_ON_BOARD]
    programs = [program for name in names for program in programs_on(name, layout)]
    assert counts("sim", programs) == counts("emulator", programs)
    measured = times("emulator", programs)
    for case_id, time_ns in times("sim", programs).items():
        assert time_ns == pytest.approx(measured[case_id], rel=TIME_PCT / 100), case_id


def times(target: str, programs: list[Program]) -> dict[str, float]:
    """Case -> the time in its calls."""
    batches = load_target(target).run(programs, RunOptions())
    rows = (row for batch in batches for row in batch.cases.iter_rows(named=True))
    return {row["case_id"]: row["time_ns"] for row in rows}


@pytest.mark.uml
@pytest.mark.extension
@pytest.mark.timeout(900)
@pytest.mark.parametrize("layout", ON_MTD)
def test_a_program_does_the_same_on_raw_nand(layout: str) -> None:
    """Where JFFS2 has a write buffer, and mtdblock reads through the driver's page buffer."""
    programs = [program for name in NAMES for program in programs_on(name, layout, chip=None)]
    assert counts("sim-chip", programs) == counts("uml", programs)


def test_a_fastmap_is_for_kernels_that_have_it() -> None:
    stack = one_stack(["layout=two-slots", "layout.fastmap=1"])
    assert "--on uml has it" in str(stack.only_in_user_mode)
