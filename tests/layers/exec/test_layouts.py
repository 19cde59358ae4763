"""Layouts: what is refused, how they become lines for the agent, and what a boot's answer says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from flashbed.answers.lifetimes.volume_update import image_bytes
from flashbed.api.booting import boots, files_of
from flashbed.api.exec_options import ExecOptions, requests_of
from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.plan.stacks import one_stack, stacks
from flashbed.plan.workloads.space import space_table
from flashbed.stack.layouts import load_layout
from flashbed.targets.exec.outcome import FileRead, MountStep, outcome_of
from flashbed.targets.guest.layout_images import (
    Images,
    given_images,
    leb_bytes,
    lines,
    partitions,
)
from flashbed.targets.guest.verity import with_hash_tree

SQUASHFS = "layout=squashfs-overlay-ubifs"
OWN = """\
title = "mine"
source = "a test"
writes_to = "data"
[[volume]]
name = "env"
size = 1
holds = "nothing"
[[volume]]
name = "data"
size = "rest"
holds = "ubifs"
"""
"""A whole layout, to be broken."""


@pytest.mark.parametrize("name", sorted(paths.layout_files()))
def test_each_layout_has_one_volume_to_write_to(name: str) -> None:
    layout = load_layout(name)
    assert layout.fs == {"ubi": "ubifs", "mtd": "jffs2"}[layout.on]
    assert layout.images or name == "jffs2-only"
    assert not layout.images or (layout.root is None) == (layout.layer is not None)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('writes_to = "data"', 'writes_to = "log"', "log: no such volume"),
        ('writes_to = "data"', 'writes_to = "env"', "a volume of ubifs, on ubi"),
        ('name = "env"', 'name = "data"', "two have the same name"),
        ("size = 1\n", 'size = "rest"\n', "the one that takes the rest is the last"),
        ("size = 1\n", 'size = "data"\n', "no volume before it"),
        ('holds = "nothing"', 'holds = "ext4"', "squashfs"),
        ('holds = "nothing"', 'holds = "jffs2"', "volume env: holds jffs2: not on ubi"),
        ('title = "mine"', 'title = "mine"\non = "mtd"', "a volume of jffs2, on mtd"),
        ("size = 1\n", "size = 1\nsise = 2\n", "sise"),
    ],
)
def test_a_wrong_layout_is_refused_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "boards" / "layouts"
    folder.mkdir(parents=True)
    assert old in OWN
    (folder / "broken.toml").write_text(OWN.replace(old, new, 1))
    load_layout.cache_clear()
    with pytest.raises(InputError, match=why):
        load_layout("broken")


def test_a_layout_of_the_working_folder_is_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boards" / "layouts").mkdir(parents=True)
    (tmp_path / "boards" / "layouts" / "mine.toml").write_text(OWN)
    load_layout.cache_clear()
    stack = one_stack(["layout=mine"])
    assert lines(stack, Images({})) == [
        "volume env dynamic 1048576 nothing - -",
        "volume data dynamic 0 ubifs - -",
        "writes_to data",
    ]


def test_a_layout_becomes_lines_of_a_request() -> None:
    stack = one_stack([SQUASHFS, "layout.spare_pct=50"])
    assert lines(stack, Images({"rootfs": bytes(1000)})) == [
        "volume rootfs dynamic 1500 squashfs - /images/rootfs",
        "volume rootfs_data dynamic 0 ubifs - -",
        "writes_to rootfs_data",
        "layer rootfs rootfs_data",
    ]
    slots = lines(one_stack(["layout=two-slots"]), Images({"rootfs_a": bytes(1000)}))
    assert slots[1] == "volume rootfs_b dynamic 1250 nothing - -", "as large as the other"
    assert slots[-1] == "root rootfs_a"


def test_a_checked_volume_is_told_with_its_hashes() -> None:
    stack = one_stack([SQUASHFS, "layout.verity=1"])
    image, found = with_hash_tree(bytes(1000))
    told = lines(stack, Images({"rootfs": image}, {"rootfs": found}))
    assert told[0].split()[3] == str(3 * 4096), "data, superblock, hashes"
    assert told[2] == f"verity rootfs 1 {found.root} {found.salt}"
    assert "layout.verity" in str(stack.not_simulated)


def test_a_hash_covers_128_below_it() -> None:
    image, found = with_hash_tree(b"x" * 4096 * 129)
    assert found.blocks == 129
    assert len(image) == 4096 * (129 + 1 + 1 + 2), "data, superblock, the top, two blocks of hashes"
    top, first = image[4096 * 130 : 4096 * 131], image[4096 * 131 : 4096 * 132]
    salt = bytes.fromhex(found.salt)
    assert hashlib.sha256(salt + top).hexdigest() == found.root
    assert top[:32] == hashlib.sha256(salt + first).digest()
    assert first[:32] == hashlib.sha256(salt + b"x" * 4096).digest()


def test_partitions_of_mtd_have_whole_blocks() -> None:
    nor = ["layout=nor-squashfs-overlay-jffs2", "fs=jffs2", "chip=W25Q128JV"]
    stack = one_stack(nor)
    images = Images({"rootfs": bytes(100_000)})
    assert partitions(stack, images) == {"rootfs": 2, "rootfs_data": 254}
    assert lines(stack, images)[0] == "volume rootfs partition 100000 squashfs - /images/rootfs"
    assert stack.blocks == range(64, 256), "behind an image of 4 MiB"
    told = json.loads(stack.simulated_board)["partition"]
    assert (told["first_block"], told["blocks"]) == (64, 192)
    assert partitions(one_stack([SQUASHFS]), images) == {}
    with pytest.raises(InputError, match="rootfs_data takes the rest; 0 of the partition's 64"):
        _ = one_stack([*nor, "partition.blocks=64"]).blocks


def test_the_wear_of_a_partition_is_its_own() -> None:
    with pytest.raises(InputError, match="each of which wears alone"):
        image_bytes("nor-squashfs-overlay-jffs2", "rootfs")


def test_a_stack_with_a_layout_is_another_one() -> None:
    plain, laid, finer = (
        one_stack(given) for given in ([], [SQUASHFS], [SQUASHFS, "layout.block_kib=4"])
    )
    assert len({plain, laid, finer}) == 3
    assert laid.only_in_user_mode is None
    assert laid.not_simulated is None
    fastmap = one_stack([SQUASHFS, "layout.fastmap=1"])
    assert json.loads(fastmap.simulated_kernel)["volumes"]["fastmap"] is True
    assert fastmap.not_simulated is None


def test_the_simulator_is_told_the_volumes_and_the_layer() -> None:
    stack = one_stack([SQUASHFS, "layout.image_kib=1000"])
    told = json.loads(stack.simulated_kernel)
    assert told["overlay"] is True
    image = {"bytes": 1_024_000, "lebs_min": 0, "image_bytes": 1_024_000}
    rest = {"bytes": 0, "lebs_min": 17, "image_bytes": 0}
    assert told["volumes"] == {"volumes": [image, rest], "program": 1, "fastmap": False}
    slots = json.loads(one_stack(["layout=two-slots"]).simulated_kernel)
    a, b, data = slots["volumes"]["volumes"]
    assert (a["bytes"], a["image_bytes"]) == (10 << 20, 8 << 20)
    assert (b["bytes"], b["image_bytes"], data["bytes"]) == (10 << 20, 0, 0)
    assert not slots["overlay"]


def test_volumes_that_do_not_fit_are_refused_by_the_simulator() -> None:
    stack = one_stack(["layout=two-slots", "layout.image_kib=40000"])
    with pytest.raises(InputError, match="volume 0 of UBI takes 397 LEBs; 356 of the partition"):
        space_table("ubifs", stack.board, (), stack.layout)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (["layout=none-such"], "no such layout; there are erofs"),
        ([SQUASHFS, "fs=jffs2"], "writes to ubifs there, not to jffs2"),
        (["layout.block_kib=4"], "--set layout=NAME too"),
        ([SQUASHFS, "layout.block_kib=0"], "block_kib"),
        ([SQUASHFS, "layout.color=4"], "color"),
        (["layout=ubifs-ro-ubifs-rw", "layout.verity=1"], "has no squashfs and no erofs"),
        (["layout=jffs2-only", "layout.fastmap=1"], "jffs2-only has partitions of MTD"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(settings: list[str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        stacks(settings)


def test_an_image_goes_to_the_volume_that_is_named(tmp_path: Path) -> None:
    layout = load_layout("squashfs-overlay-ubifs")
    assert given_images([str(tmp_path)], layout) == {"rootfs": tmp_path}
    assert given_images([f"rootfs={tmp_path}"], layout) == {"rootfs": tmp_path}
    with pytest.raises(InputError, match="takes rootfs=PATH"):
        given_images([f"rootfs_data={tmp_path}"], layout)
    with pytest.raises(InputError, match="no such file or folder"):
        given_images([str(tmp_path / "none")], layout)
    with pytest.raises(InputError, match="--set layout=NAME"):
        given_images([str(tmp_path)], None)


@pytest.mark.parametrize(
    ("chip", "bytes_"),
    [("W25N01GV", 126_976), ("MT29F4G08ABADA", 129_024)],
)
def test_a_leb_is_a_block_without_two_headers(chip: str, bytes_: int) -> None:
    """126,976 bytes are those of boards' logs (`ubinfo`) on blocks of 64 pages of 2 KiB.

    With software's ECC both headers share a page.
    """
    assert leb_bytes(one_stack([f"chip={chip}"])) == bytes_


def test_a_list_of_files_is_checked(tmp_path: Path) -> None:
    listed = tmp_path / "list"
    listed.write_text("# first\n/sbin/init\n\n lib/libc.so \n")
    assert files_of(listed) == ["sbin/init", "lib/libc.so"]
    listed.write_text(
        '12 openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3\n'
        '12 openat(AT_FDCWD, "/etc/none", O_RDONLY) = -1 ENOENT (No such file or directory)\n'
        '13 open("/lib/libc.so.6", O_RDONLY|O_LARGEFILE) = 4\n'
        '13 openat(AT_FDCWD, "/etc", O_RDONLY|O_NONBLOCK|O_DIRECTORY) = 4\n'
        '12 openat(AT_FDCWD, "/proc/self/maps", O_RDONLY) = 3\n'
        '12 openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3\n'
    )
    assert files_of(listed) == ["etc/ld.so.cache", "lib/libc.so.6"]
    listed.write_text("../etc/passwd\n")
    with pytest.raises(InputError, match="not a path below the root"):
        files_of(listed)


def test_an_answer_says_what_each_part_of_a_boot_took() -> None:
    found = outcome_of(
        "step attach 10\nboot attach 20 3 2 1 15\nboot rootfs 5 1 0 0 4\nread 7 100 2 0 0 6\n"
        "unread 2\nend\n",
        "boot",
    )
    assert found is not None
    assert found.steps == [MountStep("attach", 10, None)]
    assert [(step.name, step.ns) for step in found.boot] == [("attach", 20), ("rootfs", 5)]
    assert found.boot[0].chip is not None
    assert found.boot[0].chip.busy_ns == 15
    read, why = found.reads
    assert isinstance(read, FileRead)
    assert (read.ns, read.bytes) == (7, 100)
    assert why == "No such file or directory"


def test_the_root_of_a_program_is_filled_by_an_image() -> None:
    """`layout.files=root` was taken, and had no effect."""
    options = ExecOptions(
        words=["true"], on="uml", put=[], env=[], memory=None, patience=None, keep=None
    )
    given = stacks([SQUASHFS, "layout.files=root"])
    with pytest.raises(InputError, match=r"of cases; here --image rootfs=DIR fills it"):
        requests_of(options, given, print)
    with pytest.raises(InputError, match=r"of cases; here --image rootfs=DIR fills it"):
        boots(options, given, off="clean", files=[], say=print)


def test_a_fastmap_needs_a_kernel_that_has_it() -> None:
    options = ExecOptions(
        words=[], on="emulator", put=[], env=[], memory=None, patience=None, keep=None
    )
    with pytest.raises(InputError, match="Debian's kernel has no fastmap"):
        boots(options, stacks([SQUASHFS, "layout.fastmap=1"]), off="clean", files=[], say=print)


def test_a_boot_without_a_program_runs_on_two_targets_only() -> None:
    options = ExecOptions(
        words=[], on="ssh://board", put=[], env=[], memory=None, patience=None, keep=None
    )
    with pytest.raises(InputError, match="uml or emulator"):
        boots(options, stacks([]), off="clean", files=[], say=print)
