"""Power cuts on a real kernel that attaches by a fastmap: the device boots after each of them.

Cuts come everywhere, also while a fastmap is written and before its old blocks are erased. The
partitions are small, so that pools are empty soon. evidence/layouts.md has the figures.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.test_layouts import _flashbed

pytestmark = [
    pytest.mark.uml,
    pytest.mark.timeout(300, func_only=True),
    pytest.mark.usefixtures("programs_with_fastmap"),
]

REWRITE = "for i in $(seq 60); do head -c 300000 /dev/urandom > f; sync f; rm f; done"
DATABASE = """import sqlite3
d = sqlite3.connect('x.db'); d.execute('create table t(a, b)')
for n in range(200):
    d.execute('insert into t values (?, ?)', (n, 'x' * 2000)); d.commit()"""
NEARLY_FULL = """head -c 12000000 /dev/urandom > big; sync
for i in $(seq 60); do head -c 200000 /dev/urandom > f$((i % 3)); sync f$((i % 3)); done"""
UNPACK = """for round in 1 2 3; do
for i in $(seq 80); do mkdir -p d$((i % 7)); head -c 40000 /dev/urandom > d$((i % 7))/f$i; done
sync; rm -r d*; done; sync"""
PROGRAMS = {
    "rewrite": ("squashfs-overlay-ubifs", 256, ["sh", "-c", REWRITE]),
    "database": ("squashfs-overlay-ubifs", 256, ["/usr/bin/python3", "-c", DATABASE]),
    "nearly-full": ("two-slots", 256, ["sh", "-c", NEARLY_FULL]),
    "unpack": ("squashfs-overlay-ubifs", 128, ["sh", "-c", UNPACK]),
}
"""Layout, blocks of the partition, command."""
CUTS, ALL_CUTS = 10, 250


def _booted(name: str, cuts: int, here: Path) -> dict[str, Any]:
    layout, blocks, command = PROGRAMS[name]
    ran = _flashbed(
        "boot", "--on", "uml", "--format", "json", "--set", f"layout={layout}",
        "--set", "layout.fastmap=1", "--set", "layout.image_kib=1024",
        "--set", f"partition.blocks={blocks}", "--cuts", str(cuts), "--", *command, here=here,
    )  # fmt: skip
    assert ran.status == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)["boots"][0]["cuts"]
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_device_with_a_fastmap_boots_after_a_power_cut(name: str, tmp_path: Path) -> None:
    found = _booted(name, CUTS, tmp_path)
    assert (found["booted"], found["failed"]) == (CUTS, {})


@pytest.mark.long
@pytest.mark.timeout(3_600, func_only=True)
def test_a_device_with_a_fastmap_boots_after_a_thousand_power_cuts(tmp_path: Path) -> None:
    for name in PROGRAMS:
        found = _booted(name, ALL_CUTS, tmp_path)
        assert (found["booted"], found["failed"]) == (ALL_CUTS, {}), name
