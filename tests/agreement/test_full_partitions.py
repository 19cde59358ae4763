"""Programs on a partition that fills up, whose flash operations are the kernel's in order.

Each was found by `flashbed fuzz --class full`, and names what it needs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.bench.fuzz.bench import Bench
from flashbed.bench.fuzz.generator import generate
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

BOARDS = {"jffs2": "emulated-small", "ubifs": "emulated-46-lebs", "yaffs2": "emulated-small"}


def assert_exact(fs: str, seed: int, work_dir: Path) -> None:
    bench = Bench(
        SimTarget(), UmlTarget(work_dir=work_dir), load_board(BOARDS[fs]), load_kernel("6.1")
    )
    [verdict] = bench.verdicts([generate("full", fs, seed, ())], lambda *_: None)
    assert verdict.kind == "exact", verdict.difference


@pytest.mark.uml
def test_a_collection_that_ends_in_a_commit_has_taken_its_time(tmp_path: Path) -> None:
    assert_exact("ubifs", 6, tmp_path)


@pytest.mark.uml
@pytest.mark.parametrize(("fs", "seed"), [("ubifs", 42), ("jffs2", 45), ("yaffs2", 1)])
def test_the_page_of_a_write_without_space_stays_in_the_cache(
    fs: str, seed: int, tmp_path: Path
) -> None:
    assert_exact(fs, seed, tmp_path)


@pytest.mark.uml
def test_a_flusher_that_has_no_work_left_does_not_come_back(tmp_path: Path) -> None:
    """It ends while the program waits for the chip in a read; later UBI's thread keeps its turn."""
    assert_exact("ubifs", 153, tmp_path)
