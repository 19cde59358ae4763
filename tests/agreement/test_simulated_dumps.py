"""Programs on what a device's flash held: the simulator counts what the kernel counts.

Images are those of mtd-utils, dumps those of a chip that a kernel wrote to. Random programs change
the files that they find and make others; partitions are small enough for collectors to run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.stacks import one_stack
from flashbed.targets.sim import begun_with
from tests.agreement.test_dumps import KIB, OOB, PAGE
from tests.agreement.test_exec import pytestmark
from tests.agreement.test_images import trials
from tests.agreement.test_layouts import _flashbed
from tests.support.image_files import Tree, make, run_tool
from tests.support.laid_out import compared, program_of
from tests.support.nand import Boot, boot, made

__all__ = ["boot", "made", "pytestmark"]

CHIP = ("chip=W25N01GV",)
NOR = ("chip=W25Q128JV", "partition.blocks=128", "fs=jffs2")
SEEDS, ALL_SEEDS = 12, 60
_BLOCKS = (24, 40, 512)
"""Of JFFS2; volumes of UBI need the most."""
_OTHERS = ("UBIFS with another hash than r5", "UBIFS with another fanout")
"""What mkfs.ubifs makes with `-k test` and `-f`."""


def of_kind(kind: str, blocks: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The settings and the options of `exec`."""
    fs, volume = ("ubifs", ("--volume", "v0")) if kind == "ubi" else ("jffs2", ())
    return (*CHIP, f"fs={fs}", f"partition.blocks={blocks}"), volume


def is_other(file: Path, settings: Sequence[str], volume: Sequence[str]) -> bool:
    """Whether the image is one of those that the simulator refuses by name."""
    name = volume[-1] if volume else None
    try:
        begun_with(file, one_stack(list(settings)), volume=name, compressor=None)
    except InputError as why:
        refused = str(why)
    else:
        return False
    assert any(other in refused for other in _OTHERS), refused
    return True


@pytest.mark.parametrize("kind", ["jffs2", "ubi"])
def test_a_program_on_an_image_is_exact(
    kind: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    off = []
    for seed in range(ALL_SEEDS if pytestconfig.getoption("--long") else SEEDS):
        image = make(kind, seed, tmp_path / str(seed), (PAGE, KIB))
        if image.options.get("big"):
            continue  # of a device whose processor is big-endian
        least = -(-image.path.stat().st_size // (KIB << 10)) + 8
        blocks = _BLOCKS[seed % 3] if kind == "jffs2" else _BLOCKS[-1]
        settings, volume = of_kind(kind, max(blocks, least))
        if is_other(image.path, settings, volume):
            continue
        files = image.trees["v0" if kind == "ubi" else ""].files
        program = program_of(seed, sorted(files))
        found = compared(settings, program, tmp_path / f"{seed}.rec",
                         "--dump", str(image.path), *volume)  # fmt: skip
        if found[1] != found[2]:
            off.append((seed, *found))
    assert not off


@pytest.mark.parametrize("kind", ["jffs2", "ubi"])
def test_a_program_on_a_dump_is_exact(kind: str, boot: Boot, tmp_path: Path) -> None:
    """With OOB and without it; of UBIFS also while it was mounted."""
    settings, volume = of_kind(kind, 512)
    for number, trial in enumerate(trials(kind, (PAGE, OOB, KIB), range(3), boot, tmp_path)):
        if trial.made.options.get("big"):
            continue
        there = [path for path in trial.found.rglob("*") if path.is_file()]
        names = [str(path.relative_to(trial.found)) for path in there if not path.is_symlink()]
        mounted = (trial.last,) if kind == "ubi" else ()
        for data in (trial.dump, trial.dump_with_oob, *mounted):
            (tmp_path / "dump").write_bytes(data)
            if is_other(tmp_path / "dump", settings, volume):
                continue
            program = program_of(number, sorted(names))
            recording = tmp_path / f"{number}-{len(list(tmp_path.iterdir()))}.rec"
            words = ("--dump", str(tmp_path / "dump"), *volume)
            _, kernel, simulated = compared(settings, program, recording, *words)
            assert kernel == simulated, number


def test_a_program_on_an_image_for_nor_is_exact(tmp_path: Path) -> None:
    tree = Tree(files={f"file{number}": bytes([number]) * 9_000 for number in range(40)})
    tree.write(tmp_path / "root")
    run_tool("mkfs.jffs2", "-r", tmp_path / "root", "-o", tmp_path / "nor", "-e", "64KiB", "-l",
             "-m", "none")  # fmt: skip
    for number in range(6):
        program = program_of(number, sorted(tree.files))
        recording = tmp_path / f"{number}.rec"
        _, kernel, simulated = compared(NOR, program, recording, "--dump", str(tmp_path / "nor"))
        assert kernel == simulated, number


@pytest.mark.parametrize("kind", ["jffs2", "ubi"])
def test_the_first_boot_of_an_image_is_exact(kind: str, tmp_path: Path) -> None:
    """Its mount, and its files.

    What UBI's thread erases meanwhile is not compared: a moment more or less decides of which part
    it is.
    """
    for seed in range(4, 8):
        image = make(kind, seed, tmp_path / str(seed), (PAGE, KIB))
        names = sorted(image.trees["v0" if kind == "ubi" else ""].files)
        (tmp_path / "list").write_text("".join(f"{name}\n" for name in names))
        settings, volume = of_kind(kind, 512)
        if is_other(image.path, settings, volume):
            continue
        given = [word for setting in settings for word in ("--set", setting)]
        words = (*given, "--dump", str(image.path), *volume, "--read", "list")
        kernel, simulated = (_parts(on, words, tmp_path) for on in ("uml", "sim-chip"))
        if kind == "ubi":
            kernel, simulated = ([part[:2] for part in each] for each in (kernel, simulated))
        assert kernel == simulated, seed


def _parts(on: str, words: Sequence[str], here: Path) -> list[tuple[object, ...]]:
    ran = _flashbed("boot", "--on", on, *words, "--format", "json", here=here)
    assert ran.status == 0, ran.err
    (booted,) = json.loads(ran.out)["boots"]
    kinds = ("name", "reads", "programs", "erases")
    return [tuple(part[kind] for kind in kinds) for part in booted["parts"]]


def packed(kind: str, tree: Tree, here: Path) -> Path:
    """An image of these files, for the chip."""
    tree.write(here / "root")
    out, root = here / "image", here / "root"
    if kind == "jffs2":
        run_tool("mkfs.jffs2", "-r", root, "-o", out, "-e", "128KiB", "-n", "-s", str(PAGE))
        return out
    leb = (KIB << 10) - 2 * PAGE
    run_tool("mkfs.ubifs", "-r", root, "-m", PAGE, "-e", leb, "-c", 100, "-o", here / "v0.ubifs")
    (here / "ini").write_text(
        f"[v0]\nmode=ubi\nimage={here / 'v0.ubifs'}\nvol_id=0\nvol_type=dynamic\n"
        "vol_name=v0\nvol_size=8MiB\n"
    )
    run_tool("ubinize", "-p", KIB << 10, "-m", PAGE, "-o", out, here / "ini")
    return out


@pytest.mark.parametrize("kind", ["jffs2", "ubi"])
def test_names_of_all_bytes_are_found(kind: str, tmp_path: Path) -> None:
    """What operations encode is encoded of a dump too, of a link's target likewise."""
    odd = "a b%/é,#"
    tree = Tree(files={f"{odd}/x y": b"12345" * 2000}, links={"to it": f"{odd}/x y"},
                folders={odd})  # fmt: skip
    image = packed(kind, tree, tmp_path)
    program = f"open('to it', 'ab').write(b'more'); import os; os.rename('{odd}/x y', '{odd}/z')"
    settings, volume = of_kind(kind, 200)
    given = ("--dump", str(image), *volume)
    _, kernel, simulated = compared(settings, program, tmp_path / "odd.rec", *given)
    assert kernel == simulated
    assert simulated[1] > 0
    (tmp_path / "list").write_text(f"to it\n{odd}/x y\n")
    words = [*(word for setting in settings for word in ("--set", setting)), *given]
    boots = [_parts(on, [*words, "--read", "list"], tmp_path) for on in ("uml", "sim-chip")]
    reads = [[part[:2] for part in boot] for boot in boots]
    assert reads[0] == reads[1]


@pytest.mark.parametrize("kind", ["jffs2", "ubi"])
def test_what_a_power_cut_leaves_of_a_dump(kind: str, tmp_path: Path) -> None:
    """Files that the program did not touch are there; of JFFS2 both find the same of the others.

    UBIFS writes back by the clock, and in the simulator the processor takes time.
    """
    image = make(kind, 4, tmp_path / "made", (PAGE, KIB))
    settings, volume = of_kind(kind, 512)
    given = [word for setting in settings for word in ("--set", setting)]
    program = program_of(4, sorted(image.trees["v0" if kind == "ubi" else ""].files))
    compared(settings, program, tmp_path / "p.rec", "--dump", str(image.path), *volume)
    told = []
    for on in ("sim", "uml"):
        ran = _flashbed("powercut", "p.rec", *given, "--on", on, "--samples", "10", here=tmp_path)
        assert "10 of 10 cuts recovered" in ran.out, ran.out + ran.err
        told.append([line for line in ran.out.splitlines() if line.startswith("    ")])
    assert kind == "ubi" or told[0] == told[1]
