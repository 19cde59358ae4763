"""Layouts in the simulator do what they do on the kernel's own code: counts, df, updates.

`python -m tests.support.laid_out` runs as many programs as one wants; a few are here.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flashbed.answers.lifetimes.volume_update import cost_of
from flashbed.base.paths import layout_files
from flashbed.plan.stacks import one_stack
from flashbed.plan.workloads.space import leb_bytes, space_table
from tests.agreement.test_exec import pytestmark
from tests.support import PROJECT
from tests.support.exec_and_replay import FLASHBED
from tests.support.laid_out import compared_on
from tests.support.layout_settings import ON_MTD, settings_of

__all__ = ["pytestmark"]

SEEDS = (4, 9, 61)
CONTENDED = (0, 6)
"""Where JFFS2's collector thread and the program compete: RCU and each lock decide who runs."""
IMAGE_BYTES = 3_000_000


def _exec(*words: str, here: Path) -> tuple[dict[str, Any], str]:
    ran = subprocess.run(
        [FLASHBED, "exec", "--on", "uml", "--format", "json", *words], cwd=here,
        capture_output=True, check=False, timeout=250, stdin=subprocess.DEVNULL,
        env={**os.environ, "FLASHBED_ROOT": str(PROJECT)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)["exec"][0]
    return found, ran.stderr.decode()


@pytest.mark.parametrize("layout", sorted(layout_files()))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_program_on_a_layout_does_the_same_to_the_flash(layout: str, seed: int) -> None:
    compared = compared_on(layout, seed)
    assert compared.simulated == compared.kernel == compared.executed


@pytest.mark.parametrize("layout", ON_MTD)
@pytest.mark.parametrize("seed", CONTENDED)
def test_a_program_beside_the_collector_does_the_same(layout: str, seed: int) -> None:
    compared = compared_on(layout, seed)
    assert compared.simulated == compared.kernel


SPACES = ["two-slots", "ubifs-ro-ubifs-rw", "nor-squashfs-overlay-jffs2", "jffs2-only"]


@pytest.mark.parametrize("layout", SPACES)
def test_the_space_of_a_layout_is_what_df_says(tmp_path: Path, layout: str) -> None:
    words = [word for setting in settings_of(layout) for word in ("--set", setting)]
    _, said = _exec(*words, "--", "df", "-k", ".", here=tmp_path)
    size_kib, _, free_kib = said.splitlines()[-1].split()[1:4]
    stack = one_stack(settings_of(layout))
    table = space_table(stack.fs, stack.board, (), stack.layout)
    assert table.size_bytes >> 10 == int(size_kib)
    assert table.left_bytes >> 10 == int(free_kib)


def test_an_update_costs_what_the_kernel_makes_of_it(tmp_path: Path) -> None:
    """The second update of a volume; the first one finds it empty and erases less."""
    (tmp_path / "image").write_bytes(os.urandom(IMAGE_BYTES))
    update = "ubiupdatevol /dev/ubi0_1 image; sleep 20; "
    words = ("--set", "layout=two-slots", "--put", "image", "--", "sh", "-c")
    once, twice = (_exec(*words, update * times, here=tmp_path)[0] for times in (1, 2))
    board = one_stack(["layout=two-slots"]).board
    page_bytes = board.chip.page_bytes
    cost = cost_of(IMAGE_BYTES, leb_bytes=leb_bytes(board), page_bytes=page_bytes)
    added = {kind: twice["run"][kind] - once["run"][kind] for kind in ("programs", "erases")}
    assert added == {"programs": cost.programs, "erases": cost.erases}
