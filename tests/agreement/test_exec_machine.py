"""What a program in `flashbed exec` sees of the machine: its files, and nothing that differs by it.

A program's random numbers depended on when the agent had read what, so that Python's hashes, its
memory and its system calls differed with `--record`, `--memory` or `--put`, and between a clone
and another: one system call less was 2 ms and an erase in JFFS2's run.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.agreement.test_exec import pytestmark
from tests.agreement.test_exec_systems import _exec
from tests.agreement.test_exec_time import MANY_FILES
from tests.support import PROJECT

__all__ = ["pytestmark"]

PYTHON = "/usr/bin/python3"
RANDOM = (
    "head -c 8 /dev/urandom | od -An -tx8; cat /proc/sys/kernel/random/uuid;"
    f" {PYTHON} -c 'import random; print(hash(\"a\"), random.random())'; mktemp -u XXXXXXXXXX"
)


def test_random_numbers_depend_on_the_programs_calls_alone(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(300_000))
    said = {
        _exec(*options, "--", "sh", "-c", RANDOM, here=tmp_path).out
        for options in (
            (), ("--memory", "128"), ("--record", "a.rec"), ("--put", "big"), ("--fs", "jffs2"),
            ("--set", "mount=ubifs:bulk_read"), ("--software", "none"),
        )
    }  # fmt: skip
    assert len(said) == 1
    numbers = said.pop().split()
    assert len(numbers) == 5
    assert len(set(numbers)) == 5


@pytest.mark.parametrize("calls", [0, 58, 87, 348])
def test_the_recorder_moves_jffs2s_collector_by_few_operations_in_any_phase(
    calls: int, tmp_path: Path
) -> None:
    """An erase falls on another side of a call in three of these (docs/models/programs.md)."""
    first = f"import os\nfor _ in range({calls}):\n    os.getppid()\n"
    (tmp_path / "many.py").write_text(first + MANY_FILES)
    words = ("--fs", "jffs2", "--format", "json", "--put", "many.py", "--", PYTHON, "many.py")
    bare, recorded = (
        json.loads(_exec(*options, *words, here=tmp_path).out)["exec"][0]
        for options in ((), ("--record", "a.rec"))
    )
    assert bare["run"]["erases"] > 0
    assert recorded["bytes_written"] == bare["bytes_written"]
    assert recorded["time_ns"] == pytest.approx(bare["time_ns"], rel=0.003)
    for name, most in (("erases", 2), ("programs", 4)):
        both = [answer["run"][name] + answer["flush"][name] for answer in (recorded, bare)]
        assert abs(both[0] - both[1]) <= most, name


def test_folders_of_the_host_have_one_order_and_one_size(tmp_path: Path) -> None:
    """The order of a folder is the host's file system's, and with it that of `cp -r`."""
    names = [f"n{(n * 37) % 101}" for n in range(101)]
    script = "import os, sys; print(os.listdir(sys.argv[1])); s = os.stat(sys.argv[1])\n"
    script += "f = os.stat(sys.argv[1] + '/n1'); print(s.st_size, s.st_blocks, f.st_blocks)"
    # The guest's own /tmp hides the host's.
    with TemporaryDirectory(dir=PROJECT / "build") as folder:
        for name in names:
            Path(folder, name).write_bytes(b"x" * 5000)
        ran = _exec("--", PYTHON, "-c", script, folder, here=tmp_path)
    listed, sizes = ran.out.splitlines()
    assert listed == str(sorted(names))
    assert sizes == "4096 8 16"


def test_the_host_and_its_processor_are_not_named(tmp_path: Path) -> None:
    said = _exec("--", "cat", "/proc/cpuinfo", here=tmp_path).out
    facts = {name.strip(): value.strip() for name, _, value in
             (line.partition(":") for line in said.splitlines())}  # fmt: skip
    assert facts["host"] == "flashbed"
    assert platform.node() not in said.split()
    assert os.uname().release not in said
    flags = facts["flags"].split()
    assert "sse2" in flags
    assert "avx" not in flags


WRITES = """
import os, random
r = random.Random(1)
for n in range(30):
    with open(f"f{n}", "wb") as f:
        f.write(r.randbytes(1 << 20))
os.sync()
seen = {}
for name in ("/proc/meminfo", "/proc/vmstat"):
    for line in open(name):
        seen[line.split()[0]] = int(line.split()[1])
print(seen["MemTotal:"], seen["MemFree:"] + seen["Cached:"], seen["nr_dirty_threshold"])
for n in range(20, 30):
    open(f"f{n}", "rb").read()
"""


def test_what_a_program_writes_on_the_flash_takes_none_of_its_memory(tmp_path: Path) -> None:
    """30 MB on the flash were in a guest of 64 MiB, whose page cache was 30 MB smaller."""
    (tmp_path / "writes.py").write_text(WRITES)
    ran = _exec("--memory", "64", "--format", "json", "--put", "writes.py", "--",
                PYTHON, "writes.py", here=tmp_path)  # fmt: skip
    total_kib, page_cache_kib, threshold = map(int, ran.err.split("{")[0].split()[:3])
    assert page_cache_kib > total_kib - 24_000
    assert threshold * 4 > 0.2 * 0.6 * total_kib
    assert json.loads(ran.out)["exec"][0]["run"]["reads"] < 1000
