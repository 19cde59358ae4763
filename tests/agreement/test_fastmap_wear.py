"""What a fastmap wears on a real kernel: the first 64 PEBs in turn, not one PEB.

Kernel bug 217787: before Linux 6.7 the same PEB took every fastmap, one of 16,384 with 272,935
erases at a mean of 180. Debian's 6.1 has the patches (evidence/fastmap-wear.md).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flashbed.targets.uml.kernel_options import FASTMAP
from flashbed.targets.uml.uml_program import prepare
from tests.agreement.test_exec import pytestmark
from tests.agreement.test_layouts import _flashbed

__all__ = ["pytestmark"]

LOOP = "for i in $(seq 150); do head -c 500000 /dev/urandom > f; sync f; rm f; done"
ANCHORS = 64
"""UBI_FM_MAX_START: a fastmap begins in one of the first PEBs."""


def _erases(fastmap: int, here: Path) -> list[int]:
    ran = _flashbed(
        "exec", "--format", "json", "--set", "layout=squashfs-overlay-ubifs",
        "--set", f"layout.fastmap={fastmap}", "--set", "layout.image_kib=1024",
        "--set", "partition.blocks=256", "--", "sh", "-c", LOOP, here=here,
    )  # fmt: skip
    assert ran.status == 0, ran.err
    found: list[int] = json.loads(ran.out)["exec"][0]["erases_by_block"]
    return found


# The kernel with a fastmap is built on first use, in minutes.
@pytest.mark.long
@pytest.mark.timeout(1_200)
def test_fastmaps_wear_the_first_blocks_in_turn(tmp_path: Path) -> None:
    prepare("6.1", print, [FASTMAP])
    without, having = (_erases(fastmap, tmp_path) for fastmap in (0, 1))
    more = sum(having) - sum(without)
    assert more > 40, "a fastmap is written again whenever its pools are empty"
    first, rest = having[:ANCHORS], having[ANCHORS:]
    assert sum(first) - sum(without[:ANCHORS]) > more / 2
    assert max(first) <= max(rest) + 2
    assert max(having) < more / 4, "the bug: one PEB takes them all"
