"""Programs of Debian run twice alike on UBIFS and JFFS2: output, and counts to the last one.

What this machine has is run.
"""

from __future__ import annotations

import shutil

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.support.exec_programs import PROGRAMS, run

pytestmark = [pytest.mark.uml, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def _kernel() -> None:
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")


@pytest.mark.parametrize("fs", ["ubifs", "jffs2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_debian_twice_does_the_same(name: str, fs: str) -> None:
    program = PROGRAMS[name]
    if shutil.which(program.needs) is None:
        pytest.skip(f"{program.needs} is not installed")
    first, second = run(program, fs), run(program, fs)
    assert first == second
    answer = first[0]
    if fs not in program.fails:
        assert answer["exit_status"] == 0, first[2]
        assert answer["bytes_written"] > 0
        assert answer["run"]["programs"] + answer["flush"]["programs"] > 0
