"""The parts of a partition add up to it, and each is explained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flashbed.answers.space.fastmap import fastmap_blocks, with_fastmap
from flashbed.answers.space.parts import MEANINGS, NOT_IN_VOLUME
from flashbed.api.fitting import (
    crossing,
    filled,
    fits,
    in_blocks,
    ledger,
    smallest_for_files,
    smallest_mount,
    volume_stack,
)
from flashbed.base.errors import InputError
from flashbed.plan.stacks import one_stack
from flashbed.stack.conditions import Faults
from flashbed.stack.stack import Stack
from tests.support import PROJECT

pytestmark = pytest.mark.extension

MIB = 1 << 20


def stack(*settings: str) -> Stack:
    return one_stack(settings)


@pytest.mark.parametrize("fs", ["ubifs", "jffs2", "yaffs2"])
def test_parts_and_what_is_left_are_the_partition(fs: str) -> None:
    with_bad = replace(stack(f"fs={fs}"), faults=Faults(bad_blocks=(3, 17)))
    for each in (stack(f"fs={fs}"), with_bad):
        found = ledger(each)
        assert sum(part.bytes for part in found.parts) + found.available_bytes == 400 << 17
        assert all(part.meaning for part in found.parts)
    if fs == "ubifs":
        assert found.available_bytes == ledger(stack()).available_bytes, "two of 40 in reserve"


def test_each_part_is_on_the_page_of_the_model() -> None:
    page = (PROJECT / "docs/models/space.md").read_text(encoding="utf-8")
    assert [name for _, name in MEANINGS if f"| {name} |" not in page] == []


def test_a_user_saw_this_df_on_a_volume_of_596_lebs() -> None:
    """`df -h` 64.8M: 66,400 KiB."""
    of_chip = stack("chip=MT29F1G01ABAFD", "partition.blocks=700")
    volume, lebs, there_are = volume_stack(of_chip, 596 * 126_976)
    found = ledger(of_chip, volume)
    assert (lebs, there_are) == (596, 676)
    assert found.size_bytes == 66_400 << 10
    (others,) = [part for part in found.parts if part.name == NOT_IN_VOLUME]
    assert others.units == 80
    assert sum(part.bytes for part in found.parts) + found.available_bytes == 700 << 17


@pytest.mark.parametrize(("blocks", "kept"), [(64, 2), (9_900, 2), (10_000, 4)])
def test_two_fastmaps_are_kept(blocks: int, kept: int) -> None:
    assert fastmap_blocks(blocks, 126_976) == kept


def test_a_fastmap_is_a_part_of_its_own() -> None:
    with_two = with_fastmap(ledger(in_blocks(stack(), 398)), 2, 1 << 17)
    assert sum(part.bytes for part in with_two.parts) + with_two.available_bytes == 400 << 17


def test_85_mib_of_a_chip_of_1_gbit_are_656_lebs() -> None:
    facts = ledger(stack("chip=W25N01GV", "partition.blocks=680")).facts
    assert (facts["lebs"], facts["leb_bytes"]) == (656, 126_976)


def test_jffs2_has_no_volumes() -> None:
    with pytest.raises(InputError, match="jffs2 is not on UBI"):
        volume_stack(stack("fs=jffs2"), MIB)


@pytest.mark.parametrize(("fs", "blocks"), [("ubifs", 61), ("jffs2", 5), ("yaffs2", 9)])
def test_the_smallest_partition_mounts_and_none_smaller(fs: str, blocks: int) -> None:
    of_fs = stack(f"fs={fs}")
    assert smallest_mount(of_fs) == blocks
    ledger(in_blocks(of_fs, blocks))
    with pytest.raises(InputError, match="blocks"):
        ledger(in_blocks(of_fs, blocks - 1))


def test_the_smallest_partition_for_files_takes_them_and_none_smaller() -> None:
    least = smallest_for_files(stack("fs=jffs2"), 7 * MIB, 50)
    assert least is not None
    for blocks, fit in ((least, True), (least - 1, False)):
        assert fits(in_blocks(stack("fs=jffs2"), blocks), 7 * MIB, 50).fit == fit
    assert smallest_for_files(stack("fs=jffs2"), 1 << 30) is None


def test_what_can_be_written_beside_files_is_what_is_left_of_all() -> None:
    small = stack("partition.blocks=100")
    found = fits(small, 2 * MIB)
    assert found.fit
    assert found.written_bytes + found.more_bytes == filled(small)
    assert found.more_bytes > found.available_bytes, "root has its reserve too"
    none = fits(small, 60 * MIB)
    assert (none.fit, none.more_bytes) == (False, 0)


def test_a_crossing_is_where_the_order_changes() -> None:
    one, two = stack("fs=jffs2"), stack("fs=ubifs")

    def measure(of: Stack) -> int:
        blocks = of.board.partition.blocks
        return 3 * blocks if of.fs == "jffs2" else 4 * blocks - 500

    assert crossing(one, two, measure) == 500
    assert crossing(one, two, lambda of: of.fs == "jffs2") is None
    assert crossing(one, two, lambda _: 1) == 61
