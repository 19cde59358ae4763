"""The simulator and a real kernel fail the same calls, and count them by the same errors."""

from __future__ import annotations

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets import load_target
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.layers.targets.test_failed_calls import program

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(300)]


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_failed_calls_are_those_of_the_kernel(fs: str) -> None:
    if cached_kernel(cache_folder(), "6.1") is None:
        pytest.skip("Linux 6.1 is not built: make uml")
    programs = [program(fs, body).in_user_mode for body in ("full", "looks", "mapped", "missing")]
    counted: dict[str, list[str | None]] = {}
    for target in (SimTarget(), load_target("uml")):
        for batch in target.run(programs):
            assert batch.failures == ()
            for case_id, failed in batch.cases.select("case_id", "failed_errno").iter_rows():
                counted.setdefault(case_id, []).append(failed)
    assert len(counted) == len(programs)
    assert all(len(both) == 2 and both[0] == both[1] for both in counted.values()), counted
