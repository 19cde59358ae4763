"""What a device's flash held, put onto the guests' chip: programs and boots begin with its files.

Images are those of mtd-utils. Dumps are of a chip that another kernel wrote to, with OOB and
without, after an unmount and while it was mounted.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.test_exec import pytestmark
from tests.agreement.test_images import BLOCKS, Trial, trials
from tests.agreement.test_layouts import _flashbed
from tests.support.image_files import Tree, make, run_tool, with_oob
from tests.support.nand import Boot, boot, made

__all__ = ["boot", "made", "pytestmark"]

PAGE, OOB, KIB = 2048, 64, 128
SPI = ("--set", "chip=W25N01GV")
CHIP = (*SPI, "--set", f"partition.blocks={BLOCKS}")
"""A chip without sub-pages, as the images are made for."""


def words(kind: str, file: Path) -> list[str]:
    fs, volume = ("ubifs", ["--volume", "v0"]) if kind == "ubi" else ("jffs2", [])
    return [*CHIP, "--set", f"fs={fs}", "--dump", str(file), *volume]


def tree_of(folder: Path) -> dict[str, bytes | str]:
    """Files with their bytes, links with their targets."""
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)  # noqa: PTH115
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def tree_made(tree: Tree) -> dict[str, bytes | str]:
    """The same of what a tool was given."""
    hard = {name: tree.files[other] for name, other in tree.hard.items()}
    return {**tree.files, **tree.links, **hard}


def kept(kind: str, data: bytes, here: Path) -> dict[str, bytes | str]:
    """What a program leaves that changes nothing."""
    file = here / "a dump"  # a name that must be encoded
    file.write_bytes(data)
    out = here / f"kept{random.randrange(10**9)}"
    ran = _flashbed("exec", *words(kind, file), "--keep", str(out), "--", "true", here=here)
    assert ran.status == 0, ran.err
    return tree_of(out)


@pytest.mark.parametrize("kind", ["ubi", "jffs2"])
def test_a_program_finds_the_files_of_a_device(kind: str, boot: Boot, tmp_path: Path) -> None:
    found: list[Trial] = trials(kind, (PAGE, OOB, KIB), range(2), boot, tmp_path)
    for trial in found:
        tree = trial.made.trees["v0" if kind == "ubi" else ""]
        assert kept(kind, trial.data, tmp_path) == tree_made(tree)
        there = tree_of(trial.found)
        assert kept(kind, trial.dump, tmp_path) == there
        assert kept(kind, trial.dump_with_oob, tmp_path) == there
        if kind == "ubi":
            assert kept(kind, trial.last, tmp_path) == there, "dumped while it was mounted"


def test_a_program_goes_on_from_there_and_twice_alike(tmp_path: Path) -> None:
    """It runs as root, to whom a device's files belong, and finds the erase counters."""
    image = make("ubi", 5, tmp_path / "made", (PAGE, KIB))
    name = next(iter(image.trees["v0"].files))
    script = f"cp '{name}' copy; chmod 600 '{name}'; sync; id -u; ls copy"
    runs: list[dict[str, Any]] = []
    for _ in range(2):
        given = words("ubi", image.path)
        ran = _flashbed("exec", *given, "--format", "json", "--", "sh", "-c", script, here=tmp_path)
        assert ran.status == 0, ran.err
        assert "\n0\ncopy\n" in f"\n{ran.err}"
        runs.append(json.loads(ran.out)["exec"][0])
    for key in ("run", "flush", "mount", "erases_by_block"):
        assert runs[0][key] == runs[1][key], key
    assert runs[0]["run"]["programs"] > 0
    assert runs[0]["dump"].endswith("u.ubi, v0")
    assert [step["name"] for step in runs[0]["mount"]] == ["attach", "v0"]


def test_what_a_device_has_behind_it_shortens_the_lifetime(tmp_path: Path) -> None:
    """UBI's counters are taken from the endurance; a device at its end has no years left."""
    seeds = {7: 5, 100_000: 7}
    told = {}
    for erases, seed in seeds.items():
        image = make("ubi", seed, tmp_path / str(erases), (PAGE, KIB))
        assert image.options["erases"] == erases
        given = (*words("ubi", image.path), "--rate", "1/min", "--", "sh", "-c", "echo a >a; sync")
        ran = _flashbed("exec", *given, here=tmp_path)
        assert ran.status == 0, ran.err
        told[erases] = ran.err
    assert "less the 7 that a block of the dump has" in told[7]
    assert "none: a block has 100,000 erases, of 100,000" in told[100_000]


@pytest.mark.emulator
@pytest.mark.parametrize("kind", ["ubi", "jffs2"])
def test_its_first_boot_is_the_same_on_both_kernels(kind: str, tmp_path: Path) -> None:
    """But for what UBI's thread erases meanwhile: more, where the processor's time counts."""
    image = make(kind, 7, tmp_path / "made", (PAGE, KIB))
    files = image.trees["v0" if kind == "ubi" else ""].files
    name = max(files, key=lambda each: len(files[each]))
    (tmp_path / "list").write_text(f"{name}\n")
    found = []
    for on in ("uml", "emulator"):
        given = ("--on", on, "--read", "list", "--format", "json")
        ran = _flashbed("boot", *words(kind, image.path), *given, here=tmp_path)
        assert ran.status == 0, ran.err
        (booted,) = json.loads(ran.out)["boots"]
        assert booted["files"][0]["bytes"] == len(files[name])
        found.append([(part["name"], part["reads"]) for part in booted["parts"]])
    assert found[0] == found[1]
    assert sum(reads for _, reads in found[0]) > BLOCKS


def test_an_image_of_jffs2_is_mounted_on_nor(tmp_path: Path) -> None:
    """Its clean markers are in the blocks; those after it get one each."""
    tree = Tree(files={f"file{number}": bytes([number]) * 9_000 for number in range(40)})
    tree.write(tmp_path / "root")
    run_tool("mkfs.jffs2", "-r", tmp_path / "root", "-o", tmp_path / "nor", "-e", "64KiB", "-l",
             "-m", "none")  # fmt: skip
    nor = ("--set", "chip=W25Q128JV", "--set", "fs=jffs2", "--dump", str(tmp_path / "nor"))
    given = (*nor, "--keep", str(tmp_path / "kept"), "--format", "json")
    script = "cp file1 copy; sync; rm copy"
    ran = _flashbed("exec", *given, "--", "sh", "-c", script, here=tmp_path)
    assert ran.status == 0, ran.err
    assert tree_of(tmp_path / "kept") == tree.files
    (ran_,) = json.loads(ran.out)["exec"]
    assert ran_["run"]["erases"] == 0, "no block waits for its marker"


def test_blocks_that_are_marked_bad_are_bad(tmp_path: Path) -> None:
    image = make("ubi", 5, tmp_path / "made", (PAGE, KIB))
    block = KIB << 10
    whole = image.path.read_bytes().ljust(BLOCKS * block, b"\xff")
    bad = {400, 401, 511}
    attach = []
    for marked in (set(), bad):
        (tmp_path / "dump").write_bytes(with_oob(whole, PAGE, OOB, bad=marked, block=block))
        given = words("ubi", tmp_path / "dump")
        ran = _flashbed("boot", "--on", "uml", *given, "--format", "json", here=tmp_path)
        assert ran.status == 0, ran.err
        attach.append(json.loads(ran.out)["boots"][0]["parts"][0]["reads"])
    # A block that is empty is read once in the scan; the headers that UBI then writes are not read.
    assert attach[0] > attach[1]


def _product(here: Path) -> Path:
    """An image of UBI with a root in squashfs and an empty volume for the layer."""
    (here / "root").mkdir()
    (here / "root" / "config").write_text("old\n")
    run_tool("mksquashfs", here / "root", here / "s.squashfs", "-noappend")
    sections = [
        ["[a]", "mode=ubi", "vol_id=0", "vol_type=dynamic", "vol_name=rootfs", "vol_size=1MiB",
         f"image={here / 's.squashfs'}"],
        ["[b]", "mode=ubi", "vol_id=1", "vol_type=dynamic", "vol_name=rootfs_data",
         "vol_size=20MiB"],
    ]  # fmt: skip
    (here / "p.ini").write_text("\n".join(line for lines in sections for line in lines) + "\n")
    run_tool("ubinize", "-p", KIB << 10, "-m", PAGE, "-o", here / "p.ubi", here / "p.ini")
    return here / "p.ubi"


def test_the_image_of_a_product_boots_in_its_layout(tmp_path: Path) -> None:
    """Its first boot makes UBIFS on the empty volume; after each cut the file is old or new."""
    dump = ("--set", "layout=squashfs-overlay-ubifs", "--dump", str(_product(tmp_path)))
    script = "cat config; echo new >config.new; sync; mv config.new config; sync"
    given = (*CHIP, *dump, "--format", "json")
    ran = _flashbed("exec", *given, "--", "sh", "-c", script, here=tmp_path)
    assert ran.status == 0, ran.err
    assert "\nold\n" in f"\n{ran.err}"
    (tmp_path / "list").write_text("config\n")
    ran = _flashbed("boot", "--on", "uml", *given, "--read", "list", "--cuts", "8", "--", "sh",
                    "-c", script, here=tmp_path)  # fmt: skip
    assert ran.status == 0, ran.err
    (booted,) = json.loads(ran.out)["boots"]
    assert booted["cuts"]["booted"] == 8
    (file,) = booted["cuts"]["files"]
    assert (file["missing"], file["other"]) == (0, 0)
    ran = _flashbed("exec", *CHIP, "--set", "layout=two-slots", *dump[2:], "--", "true",
                    here=tmp_path)  # fmt: skip
    assert "no volume rootfs_a of layout=two-slots; it has rootfs, rootfs_data" in ran.err
    ran = _flashbed("exec", *CHIP, *dump, "--volume", "rootfs_data", "--", "true", here=tmp_path)
    assert "--volume rootfs_data: layout=squashfs-overlay-ubifs says it" in ran.err


@pytest.mark.parametrize(
    ("kind", "given", "why"),
    [
        ("ubi", ("--set", "fs=jffs2"), "holds ubifs: --set fs=ubifs"),
        ("jffs2", (), "holds jffs2: --set fs=jffs2"),
        ("ubi", ("--set", "fs=yaffs2"), "holds ubifs: --set fs=ubifs"),
        ("ubi", (*SPI, "--volume", "none"), "UBIFS on v0"),
        ("ubi", (), "UBI's headers need no sub-pages"),
        ("ubi", ("--set", "board=emulated-4k"), "blocks of 131,072 bytes, the chip has"),
        ("ubifs", SPI, "a bare image of UBIFS; ubinize makes one"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(
    tmp_path: Path, kind: str, given: tuple[str, ...], why: str
) -> None:
    image = make(kind, 5, tmp_path / "made", (PAGE, KIB))
    ran = _flashbed("exec", "--dump", str(image.path), *given, "--", "true", here=tmp_path)
    assert ran.status == 2, ran.err
    assert why in ran.err.splitlines()[-1]


def test_a_dump_that_is_longer_than_the_partition_is_refused(tmp_path: Path) -> None:
    image = make("ubi", 5, tmp_path / "made", (PAGE, KIB))
    file = tmp_path / "dump"
    file.write_bytes(image.path.read_bytes().ljust(70 * (KIB << 10), b"\xff"))
    given = (*SPI, "--volume", "v0", "--set", "partition.blocks=60", "--dump", str(file))
    ran = _flashbed("exec", *given, "--", "true", here=tmp_path)
    assert ran.status == 2
    assert "70 blocks, the partition has 60: --set partition.blocks=70" in ran.err
