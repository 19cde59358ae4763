"""Layouts on real kernels: what is read is what was packed, and two runs and machines agree."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flashbed.base.paths import cache_folder
from flashbed.targets.guest.image_tools import image_tool
from tests.agreement.test_exec import FLASHBED, Ran, pytestmark
from tests.support import PROJECT
from tests.support.layout_settings import ON_MTD, ON_UBI, settings_of

__all__ = ["pytestmark"]

SQUASHFS = "layout=squashfs-overlay-ubifs"


def _flashbed(*words: str, here: Path) -> Ran:
    ran = subprocess.run(
        [FLASHBED, *words], cwd=here, capture_output=True, check=False, timeout=250,
        env={**os.environ, "FLASHBED_ROOT": str(PROJECT)}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def _boots(*words: str, here: Path) -> list[dict[str, Any]]:
    ran = _flashbed("boot", "--format", "json", *words, here=here)
    assert ran.status == 0, ran.err
    found: list[dict[str, Any]] = json.loads(ran.out)["boots"]
    return found


def _root(here: Path) -> list[str]:
    """A root with files of several sizes, half of them compressible; their names."""
    drawn = random.Random(3)
    sizes = [0, 1, 700, 4096, 5000, 131_072, 300_001, 2_500_000]
    for number, size in enumerate(sizes):
        path = here / "root" / f"lib{number % 3}" / f"file{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = drawn.randbytes(size) if number % 2 else (b"a line of text\n" * size)[:size]
        path.write_bytes(content)
    names = sorted(str(path.relative_to(here / "root")) for path in here.glob("root/*/*"))
    (here / "list").write_text("\n".join(names) + "\n")
    return names


def _sets(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


LAYERS = ["squashfs-overlay-ubifs", "erofs-overlay-ubifs", "nor-squashfs-overlay-jffs2"]


@pytest.mark.parametrize("layout", LAYERS)
def test_a_layer_shows_what_was_packed_and_what_was_written(tmp_path: Path, layout: str) -> None:
    names = _root(tmp_path)
    script = "sha256sum */*; echo new > lib0/new; cat lib0/new; rm lib1/file1; ls lib1"
    ran = _flashbed(
        "exec", *_sets(settings_of(layout)), "--image", "root", "--format", "json",
        "--", "sh", "-c", script, here=tmp_path,
    )  # fmt: skip
    assert ran.status == 0, ran.err
    packed = [
        f"{hashlib.sha256((tmp_path / 'root' / name).read_bytes()).hexdigest()}  {name}"
        for name in names
    ]
    said = [line for line in ran.err.splitlines() if not line.startswith("flashbed: ")]
    assert [line for line in said if line.endswith(tuple(names))] == packed
    assert said[len(names) :][:2] == ["new", "file4"], "the removed file is gone from the layer"
    found = json.loads(ran.out)["exec"][0]
    assert found["bytes_written"] == len("new\n")
    attached = [] if layout in ON_MTD else ["attach"]
    steps = [step["name"] for step in found["mount"]]
    assert steps == [*attached, "rootfs", "rootfs_data", "layer"]


def test_each_layout_boots_alike_twice_and_reads_every_byte(tmp_path: Path) -> None:
    names = _root(tmp_path)
    every = f"layout={','.join(ON_UBI)}"
    words = ("--on", "uml", "--image", "root", "--read", "list")
    on_ubi = (*words, "--set", every)
    on_nor = (*words, *_sets(settings_of("nor-squashfs-overlay-jffs2")))
    first, again = (
        _boots(*on_ubi, here=tmp_path) + _boots(*on_nor, here=tmp_path) for _ in range(2)
    )
    assert first == again
    assert len(first) == len(ON_UBI) + 1
    for boot in first:
        sizes = [(tmp_path / "root" / name).stat().st_size for name in names]
        assert [each["bytes"] for each in boot["files"]] == sizes, boot["layout"]
        assert boot["time_ns"] == sum(part["time_ns"] for part in boot["parts"])


def test_the_emulated_board_reads_the_same_pages_and_takes_longer(tmp_path: Path) -> None:
    """With blocks of up to 64 KiB.

    A request for ubiblock has 64 segments at most (UBI_MAX_SG_COUNT), and neighbours in memory are
    one. Where the block of squashfs is larger, memory decides where a request is split, and the
    page at the split is read twice.
    """
    _root(tmp_path)
    words = ("--set", SQUASHFS, "--set", "layout.block_kib=64", "--image", "root", "--read", "list")
    (uml,), (board,) = (_boots("--on", on, *words, here=tmp_path) for on in ("uml", "emulator"))
    kinds = ("reads", "programs", "erases")
    for ours, theirs in zip(uml["parts"], board["parts"], strict=True):
        assert [ours[kind] for kind in kinds] == [theirs[kind] for kind in kinds], ours["name"]
        assert ours["time_ns"] < theirs["time_ns"]


def test_the_emulated_board_reads_the_same_sectors_of_a_partition(tmp_path: Path) -> None:
    """On raw NAND, as the board has no NOR. mtdblock reads each sector by itself."""
    _root(tmp_path)
    settings = settings_of("nor-squashfs-overlay-jffs2", chip=None)
    words = (*_sets(settings), "--image", "root", "--read", "list")
    (uml,), (board,) = (_boots("--on", on, *words, here=tmp_path) for on in ("uml", "emulator"))
    kinds = ("reads", "programs", "erases")
    for ours, theirs in zip(uml["parts"], board["parts"], strict=True):
        assert [ours[kind] for kind in kinds] == [theirs[kind] for kind in kinds], ours["name"]
        assert ours["time_ns"] < theirs["time_ns"]


def test_a_device_that_loses_its_power_takes_longer_to_mount(tmp_path: Path) -> None:
    """A file that was synced is there after the cut, one that was not need not be."""
    (tmp_path / "list").write_text("kept\n")
    written = "dd if=/dev/urandom of=kept bs=64k count=20 2>&-; sync; echo late > late"
    words = ("--on", "uml", "--set", SQUASHFS, "--read", "list")
    clean, cut = (
        _boots("--off", off, *words, "--", "sh", "-c", written, here=tmp_path)[0]
        for off in ("clean", "unclean")
    )
    assert clean["files"][0]["bytes"] == cut["files"][0]["bytes"] == 20 * 65_536
    mounts = [
        next(part for part in boot["parts"] if part["name"] == "mount ubifs (rootfs_data)")
        for boot in (clean, cut)
    ]
    assert mounts[1]["reads"] > mounts[0]["reads"]


def test_an_image_that_is_no_file_system_ends_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"not squashfs" * 1000)
    ran = _flashbed("boot", "--on", "uml", "--set", SQUASHFS, "--image", "broken", here=tmp_path)
    assert ran.status == 1
    assert "mounting squashfs of volume rootfs: Invalid argument" in ran.out
    assert len(ran.out.splitlines()) == 1


def test_an_image_of_ubifs_that_linux_would_not_mount_is_refused(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "file").write_text("a line\n")
    words = ("--on", "uml", "--set", "layout=ubifs-ro-ubifs-rw", "--image", "small")
    ran = _flashbed("boot", *words, here=tmp_path)
    assert ran.status == 2
    assert "Linux mounts images from 17 LEBs on" in ran.err


def test_a_larger_block_of_squashfs_packs_tighter_and_reads_more_at_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    text = "".join(f"setting{number} = {number * 7919 % 10_007}\n" for number in range(60_000))
    (root / "large").write_text(text)
    (tmp_path / "list").write_text("large\n")
    small, large = _boots(
        "--on", "uml", "--set", SQUASHFS, "--set", "layout.block_kib=4,256", "--image", "root",
        "--read", "list", here=tmp_path,
    )  # fmt: skip
    assert small["files"][0]["reads"] > large["files"][0]["reads"]


def _new_image(here: Path) -> None:
    """The root of the next version, as its build packs it."""
    (here / "next").mkdir()
    (here / "next" / "version").write_text("2\n")
    (here / "root").mkdir(exist_ok=True)
    (here / "root" / "version").write_text("1\n")
    (here / "list").write_text("version\n")
    words = image_tool("mksquashfs", cache_folder(), print)
    made = [*words, str(here / "next"), str(here / "new.squashfs"), "-root-owned"]
    subprocess.run(made, check=True, capture_output=True, timeout=60)


def _cuts(*words: str, cuts: int, here: Path) -> dict[str, Any]:
    (boot,) = _boots("--on", "uml", "--read", "list", "--cuts", str(cuts), *words, here=here)
    found: dict[str, Any] = boot["cuts"]
    return found


WRITES = "ubiupdatevol /dev/ubi0_1 new.squashfs"
SWITCHES = "ubirename /dev/ubi0 rootfs_a rootfs_b rootfs_b rootfs_a"
SLOTS = ("--set", "layout=two-slots", "--image", "root", "--put", "new.squashfs")


def test_slots_that_are_exchanged_last_boot_after_every_cut(tmp_path: Path) -> None:
    """The old root or the new one, in every change that the update makes."""
    _new_image(tmp_path)
    found = _cuts(*SLOTS, "--", "sh", "-c", f"{WRITES}; {SWITCHES}", cuts=10_000, here=tmp_path)
    assert found["cuts"] == found["changes"] == found["booted"] > 20
    (version,) = found["files"]
    assert version["old"] + version["new"] == found["cuts"]
    assert version["new"] > 0


def test_slots_that_are_exchanged_first_leave_a_device_that_does_not_boot(tmp_path: Path) -> None:
    _new_image(tmp_path)
    found = _cuts(*SLOTS, "--", "sh", "-c", f"{SWITCHES}; {WRITES}", cuts=10_000, here=tmp_path)
    assert found["booted"] < found["cuts"]
    assert all("mounting squashfs of volume rootfs_a" in why for why in found["failed"])
    (version,) = found["files"]
    assert version["old"] + version["new"] == found["booted"]


def test_a_file_on_the_layer_that_is_replaced_by_rename_is_old_or_new(tmp_path: Path) -> None:
    """One that is written over is neither, or empty, after some cuts."""
    _root(tmp_path)
    (tmp_path / "list").write_text("lib0/file3\n")
    (tmp_path / "next").write_bytes(random.Random(5).randbytes(200_000))
    words = ("--set", SQUASHFS, "--image", "root", "--put", "next", "--", "sh", "-c")
    over, renamed = (
        _cuts(*words, script, cuts=10_000, here=tmp_path)
        for script in (
            "cat next > lib0/file3; sync",
            "cat next > lib0/new; sync lib0/new; mv lib0/new lib0/file3; sync",
        )
    )
    assert over["booted"] == over["cuts"] > 90
    assert renamed["booted"] == renamed["cuts"] > 90
    assert over["files"][0]["other"] > 0
    assert renamed["files"][0]["other"] == renamed["files"][0]["missing"] == 0
    assert renamed["files"][0]["new"] > 0


def test_a_program_finds_the_volumes_of_its_layout(tmp_path: Path) -> None:
    script = "ubinfo -a | grep Name; ubimkvol /dev/ubi0 -N x -s 1 2>&1"
    ran = _flashbed("exec", "--set", "layout=two-slots", "--", "sh", "-c", script, here=tmp_path)
    names = [line.split()[1] for line in ran.out.splitlines() if line.startswith("Name:")]
    assert names == ["rootfs_a", "rootfs_b", "data"]
    assert "does not have free logical eraseblocks" in ran.out, (
        "the volume for data has all that is left"
    )


def test_layouts_on_ubi_are_not_for_nor_and_those_on_mtd_have_to_fit(tmp_path: Path) -> None:
    chip = ("--set", "chip=W25Q64JV")
    ran = _flashbed("exec", *chip, "--set", SQUASHFS, "--", "true", here=tmp_path)
    assert ran.status == 2
    assert "UBI is not on SPI-NOR here (chip W25Q64JV)" in ran.err
    words = _sets([*settings_of("nor-squashfs-overlay-jffs2", chip=None), "layout.image_kib=9000"])
    ran = _flashbed("exec", *chip, *words, "--", "true", here=tmp_path)
    assert ran.status == 2
    assert "rootfs takes 141 blocks; 128 of the partition's 128 blocks are left" in ran.err
