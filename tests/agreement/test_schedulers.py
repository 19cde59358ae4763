"""Programs whose order of operations is that of the scheduler which the kernel has.

Until 6.6 a thread that slept runs at once; since then it runs when it is owed the processor. Under
the rules of 6.1 none of these programs was equal to Linux 6.12: JFFS2's collector ran too often.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.bench.fuzz.bench import Bench
from flashbed.bench.fuzz.generator import generate
from flashbed.bench.fuzz.program import FuzzCase
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget
from tests.agreement.test_uml import needs

FULL = [generate("full", "jffs2", seed) for seed in range(5002, 5010)]
ATTACHED = [generate("any", "ubifs", seed) for seed in (5000, 5001, 5002, 5003, 5004)]


def differing(programs: list[FuzzCase], kernel: str, board: str, folder: Path) -> list[str]:
    needs(kernel)
    bench = Bench(SimTarget(), UmlTarget(work_dir=folder), load_board(board), load_kernel(kernel))
    verdicts = bench.verdicts(programs, lambda *_: None)
    return [each.case.case_id for each in verdicts if each.kind != "exact"]


@pytest.mark.uml
@pytest.mark.parametrize("kernel", ["6.12", "7.3"])
def test_a_partition_fills_up_as_the_scheduler_since_6_6_has_it(
    kernel: str, tmp_path: Path
) -> None:
    assert differing(FULL, kernel, "emulated-small", tmp_path) == []


@pytest.mark.uml
def test_ubis_thread_begins_with_the_lag_that_it_had_after_the_attach(tmp_path: Path) -> None:
    """Since 6.6 a task keeps its lag over any sleep, so the ticks of the attach decide later."""
    assert differing(ATTACHED, "6.12", "emulated", tmp_path) == []
