"""The smallest partitions and the largest chips: each works on both or is refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.uml_target import UmlTarget

pytestmark = [pytest.mark.uml, pytest.mark.extension]

HEADER = "flashbed-ops 1\n"
PREPARE = f"{HEADER}open 0 a rw,create\nwrite 0 0 8192 1 0\nfsync 0\nclose 0\nsync\nprepared\n"
READ = f"{HEADER}drop_caches\nopen 0 a ro\nmark\nread 0 0 8192\n"


def outcome(target: UmlTarget | SimTarget, fs: str, chip: int, partition: int) -> int | str:
    """Flash reads of a small case, or the reason why it cannot run."""
    board = load_board("emulated")
    other = board.model_copy(
        update={
            "chip": board.chip.model_copy(update={"blocks": chip}),
            "partition": board.partition.model_copy(update={"blocks": partition}),
        }
    )
    other._path = board.path
    one = Program(
        case_id="one",
        stack=Stack(board=other, kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0),
        prepare=PREPARE,
        body=READ,
    )
    (batch,) = target.run([one])
    if batch.failures:
        assert "\n" not in batch.failures[0].message
        return batch.failures[0].message
    return int(batch.cases["flash_reads"][0])


@pytest.mark.parametrize(
    ("fs", "chip", "partition"),
    [
        ("jffs2", 16, 16),
        ("jffs2", 16, 5),
        ("ubifs", 64, 23),
        ("jffs2", 65536, 400),
    ],
)
def test_both_work_alike(tmp_path: Path, fs: str, chip: int, partition: int) -> None:
    real = outcome(UmlTarget(work_dir=tmp_path), fs, chip, partition)
    assert isinstance(real, int)
    assert outcome(SimTarget(), fs, chip, partition) == real


@pytest.mark.parametrize(
    ("fs", "chip", "partition", "real", "simulated"),
    [
        ("jffs2", 16, 4, "4 is too small, jffs2 needs 5", "at least 5 blocks, this one has 4"),
        ("ubifs", 16, 16, "16 is too small, ubifs needs 22", "at least 22 blocks here"),
        ("ubifs", 64, 22, "22 is too small, ubifs needs 23", "at least 23 blocks here"),
        ("ubifs", 65536, 400, "ubifs needs 1301, 1280 of them for", "at least 1301 blocks here"),
        ("jffs2", 65536, 65536, "bytes of a partition in 32 bits", "in 32 bits, this one has more"),
    ],
)
def test_both_refuse_for_the_same_reason(
    tmp_path: Path, fs: str, chip: int, partition: int, real: str, simulated: str
) -> None:
    assert real in str(outcome(UmlTarget(work_dir=tmp_path), fs, chip, partition))
    assert simulated in str(outcome(SimTarget(), fs, chip, partition))


@pytest.mark.timeout(300)
def test_ubifs_on_eight_gib_is_the_real_kernels_only(tmp_path: Path) -> None:
    assert isinstance(outcome(UmlTarget(work_dir=tmp_path), "ubifs", 65536, 65536), int)
    assert "the big LPT" in str(outcome(SimTarget(), "ubifs", 65536, 65536))
