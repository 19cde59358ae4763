"""A replay on user-mode Linux does what the recorded program of exec did: programs and erases."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from flashbed.paths import cache_folder
from flashbed.targets.uml.programs_kernel import SERIES, programs_kernel
from flashbed.targets.uml.uml_kernel import cached_kernel
from tests.support.exec_and_replay import FEW_READS, FILE_SYSTEMS, TriedCommand, compared

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(600)]

PYTHON = "/usr/bin/python3"
READS_WITHIN = 0.03
WRITABLE_MAPPINGS = ("ubifs", "yaffs2")

SYNCED = "import os; fd = os.open('a', os.O_RDWR | os.O_CREAT | os.O_SYNC)\n" \
    "for n in range(50): os.write(fd, b'x' * 100)"  # fmt: skip
SYNCED_BY_CALL = "import os; fd = os.open('a', os.O_RDWR | os.O_CREAT)\n" \
    "for n in range(20): os.pwritev(fd, [b'x' * 100], n * 100, os.RWF_DSYNC)\n" \
    "for n in range(20): os.pwritev(fd, [b'x' * 100], n * 100, os.RWF_SYNC)"  # fmt: skip
HINTS = "import os; fd = os.open('a', os.O_RDWR | os.O_CREAT); os.write(fd, b'x' * 9000)\n" \
    "os.posix_fadvise(fd, 2**63 - 1, 1, 3); os.posix_fadvise(fd, 4096, 2**63 - 1, 4)"  # fmt: skip
LOGGER = """
import os
fd = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for i in range(3000):
    os.write(fd, b"Nov 28 01:%02d:%02d host daemon[%d]: event %d value %d ok\\n"
             % (i // 60 % 60, i % 60, 100 + i % 7, i, i * 7919 % 1000))
    if i > 2000 and i % 10 == 0: os.fsync(fd)
"""
MAPPED = """
import mmap, os, time
fd = os.open('m', os.O_RDWR | os.O_CREAT); os.write(fd, os.urandom(81920)); os.fsync(fd)
m = mmap.mmap(fd, 81920); data = os.urandom(81920)
for n in range(5): m[:] = data; m.flush()
for n in range(3): m[:] = data; time.sleep(40)
"""
INHERITED = """
import os
fd = os.open('a', os.O_RDWR | os.O_CREAT)
for n in range(8):
    child = os.fork()
    if child == 0:
        os.write(fd, os.urandom(3000)); os._exit(0)
    os.waitpid(child, 0)
"""
CASES = {
    "O_SYNC": SYNCED, "RWF_SYNC": SYNCED_BY_CALL, "a hint near 2^63": HINTS, "a logger": LOGGER,
    "a mapping written again": MAPPED, "an inherited descriptor": INHERITED,
    "a file from before": "print(len(open('before', 'rb').read()))",
}  # fmt: skip


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
@pytest.mark.parametrize("name", CASES)
def test_a_replay_does_what_the_program_did(name: str, fs: str, tmp_path: Path) -> None:
    """Before, 109 programs of a synced file were replayed as 11, 667 reads of a file as none."""
    if cached_kernel(cache_folder(), SERIES[0], programs_kernel()) is None:
        pytest.skip("the kernel for programs is not built: make uml")
    if shutil.which(PYTHON) is None:
        pytest.skip(f"{PYTHON} is missing")
    if name == "a mapping written again" and fs not in WRITABLE_MAPPINGS:
        pytest.skip(f"{fs} refuses shared mappings that can be written to")
    lines = [f"{number}\n" for number in range(60_000)]
    (tmp_path / "before").write_text("".join(lines))
    puts = ("before",) if name == "a file from before" else ()
    tried = TriedCommand("tried", (PYTHON, "-c", CASES[name]), puts, tmp_path)
    found = compared(tried, fs)
    assert found.run.counts is not None, found.run.why
    assert found.uml.counts is not None, found.uml.why
    assert found.recorded.counts == found.run.counts
    assert found.uml.counts[1:] == found.run.counts[1:]
    reads, replayed = found.run.counts[0], found.uml.counts[0]
    assert abs(reads - replayed) <= max(FEW_READS, READS_WITHIN * reads)
    assert found.sim.counts == found.uml.counts, found.sim.why
