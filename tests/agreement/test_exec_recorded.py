"""Programs of Debian run by exec, recorded, and replayed: the same flash operations.

Programs that this machine lacks are skipped. evidence/programs.md has the table.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.support.exec_programs import PROGRAMS
from tests.support.recorded_programs import away, replays

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.long, pytest.mark.timeout(900)]

MOST_AWAY = 0.01
RACING = frozenset({"dbench"})
"""Processes that write at once: a replay makes their calls one after the other."""


@pytest.mark.parametrize("fs", ["ubifs", "jffs2"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_debian_is_replayed_as_it_ran(name: str, fs: str, tmp_path: Path) -> None:
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")
    program = PROGRAMS[name]
    if shutil.which(program.needs) is None:
        pytest.skip(f"{program.needs} is not installed")
    if fs in program.fails:
        pytest.skip(f"{name} does not run on {fs}")
    found = replays(program, fs, tmp_path / "program.rec")
    if name not in RACING:
        for part in ("run", "flush"):
            kinds = ("reads", "programs", "erases")
            assert [found.recorded[part][kind] for kind in kinds] == [
                found.bare[part][kind] for kind in kinds
            ]
        assert away(found.kernel, found.run) <= MOST_AWAY
    assert away(found.simulator, found.kernel) <= MOST_AWAY
