"""Programs whose order of operations is that of the scheduler which the kernel has.

Until 6.6 a thread that slept runs at once; since then it runs when it is owed the processor. Under
the rules of 6.1 none of these programs was equal to Linux 6.12: JFFS2's collector ran too often.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.bench.fuzz.bench import Bench
from flashbed.bench.fuzz.generator import generate
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget
from tests.agreement.test_uml import needs


@pytest.mark.uml
@pytest.mark.parametrize("kernel", ["6.12", "7.3"])
def test_a_partition_fills_up_as_the_scheduler_since_6_6_has_it(
    kernel: str, tmp_path: Path
) -> None:
    needs(kernel)
    bench = Bench(
        SimTarget(),
        UmlTarget(work_dir=tmp_path),
        load_board("emulated-small"),
        load_kernel(kernel),
    )
    programs = [generate("full", "jffs2", seed, ()) for seed in range(5002, 5010)]
    found = {each.case.case_id: each for each in bench.verdicts(programs, lambda *_: None)}
    assert [name for name, each in found.items() if each.kind != "exact"] == []
