"""JFFS2 on SPI-NOR: the simulator against Linux' own driver on user-mode Linux."""

from __future__ import annotations

from typing import Any

import pytest

from flashbed.base.paths import cache_folder
from flashbed.bench.fuzz.bench import Bench, FuzzVerdict
from flashbed.bench.fuzz.generator import generate
from flashbed.bench.validation import compare, programs, summary
from flashbed.stack.profiles import load_kernel
from flashbed.targets import load_target
from flashbed.targets.base import Program
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.agreement.test_spi_nand import measured
from tests.support.nor import w25q128jv

pytestmark = [pytest.mark.extension, pytest.mark.timeout(600)]

MARKS = "6.1-no-summary"
"""A kernel whose JFFS2 clears a bit of a node that becomes obsolete."""


def on_both(suite: list[Program]) -> dict[str, Any]:
    alike = [program.in_user_mode for program in suite]
    return summary(compare(measured("sim", alike), measured("uml", suite)))


@pytest.mark.uml
@pytest.mark.parametrize("lines", [1, 2, 4])
def test_reads_are_exact_to_the_nanosecond_of_the_chip(lines: int) -> None:
    board = w25q128jv(lines=lines)
    every = programs("reads", board, load_kernel("6.1"))
    told = on_both([program for program in every if program.stack.fs == "jffs2"])
    for name in ("flash_reads", "flash_programs", "flash_erases", "flash_time"):
        assert told[name]["exact_share"] == 1, name


@pytest.mark.emulator
def test_the_emulated_board_reads_the_same_in_nearly_the_same_time() -> None:
    """JFFS2's prices are those of NAND, where each byte is copied once more."""
    suite = [
        program
        for program in programs("reads", w25q128jv(), load_kernel("6.1"))
        if program.stack.fs == "jffs2"
    ]
    told = summary(compare(measured("sim", suite), measured("emulator", suite)))
    for name in ("flash_reads", "flash_programs", "flash_erases", "flash_time"):
        assert told[name]["exact_share"] == 1, name
    assert told["time"]["mean_error_pct"] < 5


def judged(kind: str, kernel: str, cases: int) -> list[FuzzVerdict]:
    board = w25q128jv()
    bench = Bench(load_target("sim"), load_target("uml"), board, load_kernel(kernel))
    chosen = [generate(kind, "jffs2", seed) for seed in range(cases)]
    return list(bench.verdicts(chosen, lambda _what, _done: None))


@pytest.mark.uml
@pytest.mark.parametrize("kernel", ["6.1", MARKS])
@pytest.mark.parametrize("kind", ["any", "calls"])
def test_what_random_programs_do_to_the_chip_is_exact(kind: str, kernel: str) -> None:
    """Programs and erases in number; their order with the collector thread's is the scheduler's."""
    if kernel == MARKS and not built(kernel):
        pytest.skip(f"flashbed prepare --on uml-{kernel}")
    found = judged(kind, kernel, 40)
    assert not [one for one in found if one.kind in ("error", "refused")]
    counts = [one.counts for one in found if one.counts is not None]
    assert len(counts) == len(found)
    assert sum(one.changes_equal for one in counts) >= 0.98 * len(found)
    assert sum(one.kind == "exact" for one in found) >= 0.9 * len(found)


def built(kernel: str) -> bool:
    return cached_kernel(cache_folder(), kernel) is not None
