"""What the emulated boards took under each compressor, and the simulator beside them.

The kernel's times are those of `flashbed validate BOARD --suite compressors`, in
evidence/validation.md. The emulated board counts instructions, so they do not change.
"""

from __future__ import annotations

import pytest

from flashbed.bench import validation
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.sim import SimTarget

WITHIN_PCT = 10.0

KERNEL_US: dict[str, dict[str, dict[str, int]]] = {
    "emulated": {
        "jffs2-random-ordered": {
            "default": 195_344,
            "none": 46_639,
            "lzo": 49_414,
            "zlib": 172_948,
        },
        "jffs2-text-ordered": {"default": 36_453, "none": 46_642, "lzo": 33_849, "zlib": 135_507},
        "jffs2-text-read": {"default": 54_691, "none": 65_005, "lzo": 54_613, "zlib": 72_277},
        "ubifs-random-ordered": {
            "default": 69_160,
            "none": 49_499,
            "lzo": 52_084,
            "zlib": 277_483,
            "zstd": 69_133,
        },
        "ubifs-text-ordered": {
            "default": 87_733,
            "none": 49_501,
            "lzo": 34_424,
            "zlib": 292_014,
            "zstd": 87_733,
        },
        "ubifs-text-read": {
            "default": 36_751,
            "none": 44_990,
            "lzo": 36_848,
            "zlib": 54_610,
            "zstd": 36_751,
        },
    },
    "emulated-4k": {
        "jffs2-random-ordered": {
            "default": 337_755,
            "none": 40_743,
            "lzo": 46_041,
            "zlib": 292_847,
        },
        "jffs2-text-ordered": {"default": 38_320, "none": 40_518, "lzo": 38_291, "zlib": 239_635},
        "jffs2-text-read": {"default": 17_483, "none": 25_587, "lzo": 17_480, "zlib": 54_497},
        "ubifs-random-ordered": {
            "default": 84_112,
            "none": 44_684,
            "lzo": 49_619,
            "zlib": 502_511,
            "zstd": 84_120,
        },
        "ubifs-text-ordered": {
            "default": 148_220,
            "none": 44_643,
            "lzo": 40_548,
            "zlib": 558_445,
            "zstd": 148_224,
        },
        "ubifs-text-read": {
            "default": 16_790,
            "none": 19_550,
            "lzo": 15_839,
            "zlib": 52_097,
            "zstd": 16_786,
        },
    },
}
"""Board -> file system, bytes and what is done with them -> compressor -> microseconds."""


@pytest.mark.parametrize("board", KERNEL_US)
def test_compressors_cost_what_they_cost_the_kernel_and_stand_in_its_order(board: str) -> None:
    """With another compressor than the calibrated one zlib was the fastest and zstd the slowest."""
    programs = validation.programs("compressors", load_board(board), load_kernel("6.1"))
    wanted = {
        f"validate-{fs}-{compressor}-{rest}": (row, compressor)
        for row, times in KERNEL_US[board].items()
        for fs, _, rest in [row.partition("-")]
        for compressor in times
    }
    chosen = [program for program in programs if program.case_id in wanted]
    simulated: dict[str, dict[str, float]] = {}
    for batch in SimTarget().run(chosen):
        assert not batch.failures
        for case_id, time_ns in batch.cases.select("case_id", "time_ns").iter_rows():
            row, compressor = wanted[case_id]
            simulated.setdefault(row, {})[compressor] = time_ns / 1000
    for row, times in KERNEL_US[board].items():
        for compressor, real in times.items():
            told = simulated[row][compressor]
            assert abs(told / real - 1) * 100 < WITHIN_PCT, (board, row, compressor, told, real)
        apart = [
            (one, other)
            for one in times
            for other in times
            if times[one] * (1 + WITHIN_PCT / 100) < times[other]
        ]
        for one, other in apart:
            assert simulated[row][one] < simulated[row][other], (board, row, one, other)
