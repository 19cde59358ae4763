"""Stacks that `--set` and `--sysctl` choose, the same wherever there is no experiment."""

from __future__ import annotations

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.stacks import USUAL, ChosenStack, one_stack, stacks
from flashbed.stack.changes import PartitionChange, VmChange
from flashbed.stack.profiles import load_kernel


def _chosen(*settings: str, sysctls: tuple[str, ...] = ()) -> list[ChosenStack]:
    return stacks(settings, sysctls=sysctls)


def test_a_stack_that_is_chosen_is_that_of_a_case_with_the_same_axes() -> None:
    found = one_stack(
        ["fs=jffs2", "compressor=zlib", "partition.blocks=100", "vm.dirty_ratio=5",
         "read_ahead_kib=0", "mount=ubifs:bulk_read", "kernel=6.12"]
    )  # fmt: skip
    case = Case(
        experiment="a/b", board="emulated", kernel="6.12", fs="jffs2", pattern="random",
        requests=9, seed=7, file_bytes=0, request_bytes=9,
        read_ahead_kib=0, compressor="zlib", mount="ubifs:bulk_read",
        partition=PartitionChange(blocks=100), vm=VmChange(dirty_ratio=5),
    )  # fmt: skip
    assert found == case.stack(case.profile(), load_kernel("6.12"))


def test_nothing_set_is_the_usual_stack() -> None:
    usual = one_stack([])
    assert (usual.fs, usual.board.name, usual.kernel.name) == ("ubifs", "emulated", "6.1")
    assert usual == one_stack([f"{axis}={value}" for axis, value in USUAL.items()])


def test_one_stack_is_refused_where_several_are_chosen() -> None:
    with pytest.raises(InputError, match="--set fs=ubifs,jffs2: 2 stacks; only one holds here"):
        one_stack(["fs=ubifs,jffs2"])


def test_an_axis_that_does_not_hold_for_a_command_is_refused_with_those_that_do() -> None:
    with pytest.raises(
        InputError, match=r"--set vm.dirty_ratio=5: does not hold here; there are board, kernel$"
    ):
        one_stack(["vm.dirty_ratio=5"], axes=("kernel", "board"))


def test_an_axis_set_twice_is_refused_with_how_to_set_both() -> None:
    """The last of them won without a word."""
    with pytest.raises(InputError, match=r"fs is set twice; fs=ubifs,jffs2 has all of them"):
        stacks(["fs=ubifs", "fs=jffs2"])


def test_stacks_are_the_product_of_all_values_each_once() -> None:
    found = _chosen("partition.blocks=100,200", sysctls=("vm.dirty_ratio=5,10",))
    assert [each.word for each in found] == ["100-5", "100-10", "200-5", "200-10"]
    # A mount option of UBIFS leaves JFFS2 as it is.
    found = _chosen("fs=ubifs,jffs2", "mount=default,ubifs:bulk_read")
    assert [each.word for each in found] == [
        "ubifs-default", "ubifs-ubifs:bulk_read", "jffs2-default",
    ]  # fmt: skip
    assert len(_chosen()) == 1


def test_settings_of_write_back_are_an_axis_and_sysctls_alike() -> None:
    same = (
        _chosen("vm.dirty_ratio=5,10"),
        _chosen("vm=dirty_ratio=5,dirty_ratio=10"),
        _chosen(sysctls=("vm.dirty_ratio=5,10",)),
    )
    for found in same:
        assert [tuple(each.stack.vm.sysctls) for each in found] == [
            (("vm.dirty_ratio", "5"),), (("vm.dirty_ratio", "10"),),
        ]  # fmt: skip
    (other,) = _chosen("vm.dirty_ratio=5", sysctls=("vm.swappiness=1", "fs.pipe-max-size=4096"))
    assert {*other.stack.vm.sysctls, *other.sysctls} == {
        ("vm.dirty_ratio", "5"), ("vm.swappiness", "1"), ("fs.pipe-max-size", "4096"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "sysctls", "why"),
    [
        (["vm.dirty_ratio=101"], (), "dirty_ratio"),
        ([], ("vm.dirty_ratio=101",), "dirty_ratio"),
        ([], ("vm.dirty_ratio=5", "vm.dirty_bytes=9000"), "only one of them holds"),
        (["state=valid0.5"], (), "--set state=valid0.5: does not hold here"),
        (["pattern=random"], (), "--set pattern=random: does not hold here"),
        (["fs=ext4"], (), "--set fs=ext4: no such file system"),
        (["fs=ubifs,ubifs"], (), "names a value twice"),
        (["compressor=zstd", "fs=jffs2"], (), "jffs2 takes"),
        (["chip.pages=1"], (), "no key of chip"),
        (["partition.blocks=much"], (), "not KEY=NUMBER"),
        (["partition.blocks=9999"], (), "partition"),
        ([], ("vm=5",), "--sysctl vm=5: NAME=VALUE"),
        ([], ("vm/x.y=5",), "--sysctl"),
        ([], ("vm.x=5\n",), "--sysctl"),
        ([], ("../x.y=5",), "--sysctl"),
        (["partition.blocks=" + ",".join(map(str, range(50, 150)))],
         ("vm.dirty_ratio=" + ",".join(map(str, range(1, 90))),), "more than 1000"),
    ],
)  # fmt: skip
def test_what_cannot_be_set_is_refused_by_name(
    settings: list[str], sysctls: tuple[str, ...], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        _chosen(*settings, sysctls=sysctls)
