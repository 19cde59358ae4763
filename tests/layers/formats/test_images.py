"""Images of the tools, read: what the tool was given comes back; broken ones end in a line."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flashbed.api.images import extract, new_image
from flashbed.base.errors import InputError
from flashbed.base.paths import cache_folder
from flashbed.stack.flash_image import content, read_image
from flashbed.targets.guest.image_tools import image_tool
from flashbed.targets.unavailable import Unavailable
from tests.support.broken_images import broken, good_images, outcome
from tests.support.image_files import MadeImage, Tree, make, with_oob

SEEDS = 4
KINDS = ("ubifs", "ubi", "jffs2", "squashfs", "erofs")
FLASHBED = Path(sys.executable).parent / "flashbed"


@pytest.fixture(autouse=True, scope="module")
def _tools() -> None:
    try:
        image_tool("ubinize", cache_folder(), print)
    except Unavailable as why:
        pytest.skip(str(why))


def trees_of(made: MadeImage) -> list[tuple[int, Tree]]:
    """Each part of an image that has files, and what it was made of."""
    image = read_image(made.path)
    found = []
    for at, part in enumerate(image.parts):
        if part["content"]["format"] in ("ubifs", "jffs2"):
            name = image.ubi["volumes"][at]["name"] if image.ubi is not None else ""
            found.append((at, made.trees[name]))
    return found


def assert_files_are_those(made: MadeImage) -> None:
    """Names, bytes, modes, targets and hard links of each tree."""
    image = read_image(made.path)
    for at, tree in trees_of(made):
        files = {file.path.decode(): file for file in image.files(at)}
        assert set(files) == {*tree.files, *tree.links, *tree.folders, *tree.hard}
        for name, data in tree.files.items():
            assert content(image, at, files[name]) == data, name
        for name, target in tree.links.items():
            assert files[name].target.decode() == target
        for name, mode in tree.modes.items():
            assert files[name].mode & 0o7777 == mode, name
        for name, other in tree.hard.items():
            assert files[name].inode == files[other].inode
            assert files[name].links > 1


def assert_says_what_the_tool_was_told(made: MadeImage) -> None:
    image, told = read_image(made.path), made.options
    assert (image.problem_count, image.problems) == (0, [])
    content: Any = image.parts[0]["content"]
    match made.kind:
        case "ubifs":
            superblock = content["superblock"]
            assert superblock["compressor"] == told["compressor"]
            assert superblock["lebs_max"] == told["lebs_max"]
            assert (superblock["min_io_bytes"], superblock["leb_bytes"]) == (
                told["page"], told["leb"],
            )  # fmt: skip
            assert ("test" in told["more"]) == (superblock["key_hash"] == "test")
        case "ubi":
            ubi = image.ubi
            assert ubi is not None
            pages = None if not told["oob"] else (told["page"], told["oob"])
            assert image.pages == pages
            assert (ubi["peb_bytes"], ubi["min_io_bytes"]) == (told["block"], told["page"])
            assert ubi["vid_offset"] == max(64, told["sub"])
            assert ubi["data_offset"] == told["data_offset"]
            assert ubi["image_sequence"] == told["sequence"]
            erases = ubi["erases"]
            assert erases is not None
            assert (erases["min"], erases["max"]) == (told["erases"], told["erases"])
            for volume, given in zip(ubi["volumes"], told["volumes"], strict=True):
                assert (volume["name"], volume["lebs"]) == (given["name"], given["lebs"])
                assert volume["autoresize"] == given["autoresize"]
                assert (volume["kind"] == "static") == (given["kind"] == "static")
        case "jffs2":
            assert content["endian"] == ("big" if told["big"] else "little")
            if content["block_bytes_by"] != "nodes":
                assert content["block_bytes"] == told["block"]
            assert (content["clean_markers"] > 0) == told["marked"]
            # sumtool gives none to a block that is not full.
            assert told["summed"] or not content["summaries"]
        case "squashfs":
            assert (content["block_bytes"], content["compressor"]) == (
                told["block"], told["compressor"],
            )  # fmt: skip
        case "erofs":
            assert content["compressors"] == ([told["compressor"]] if told["compressor"] else [])


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_an_image_says_what_it_was_made_of(
    kind: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    seeds = 50 if pytestconfig.getoption("--long") else SEEDS
    for seed in range(seeds):
        made = make(kind, seed, tmp_path / str(seed))
        assert_says_what_the_tool_was_told(made)
        assert_files_are_those(made)


def small_ubi(folder: Path) -> bytes:
    """A UBI image of 16 KiB blocks with a UBIFS, a static volume and an empty one, some erased."""
    leb = 15_360
    tree = Tree(files={"a": b"a" * 9000, "d/b": b"b"}, folders={"d"}, links={"l": "a"})
    tree.write(folder / "root")
    (folder / "raw").write_bytes(b"x" * 20_000)
    cache = cache_folder()

    def run(name: str, *words: object) -> None:
        command = [*image_tool(name, cache, print), *map(str, words)]
        subprocess.run(command, check=True, capture_output=True)

    run("mkfs.ubifs", "-r", folder / "root", "-m", 512, "-e", leb, "-c", 60, "-o", folder / "fs")
    (folder / "ini").write_text(
        f"[a]\nmode=ubi\nimage={folder}/fs\nvol_id=0\nvol_type=dynamic\nvol_name=a\n"
        f"vol_size={60 * leb}\n[b]\nmode=ubi\nimage={folder}/raw\nvol_id=1\nvol_type=static\n"
        f"vol_name=b\nvol_size={2 * leb}\n"
    )
    run("ubinize", "-o", folder / "ubi", "-p", 16384, "-m", 512, "-Q", 7, folder / "ini")
    return (folder / "ubi").read_bytes()


def problems(folder: Path, data: bytes) -> list[str]:
    """What is wrong in it; the line alone if it cannot be read at all."""
    (folder / "broken").write_bytes(data)
    try:
        return read_image(folder / "broken").problems
    except InputError as why:
        return [str(why)]


def at(data: bytes, place: int, new: bytes) -> bytes:
    """The bytes with some of them replaced."""
    return data[:place] + new + data[place + len(new) :]


def test_what_is_broken_is_a_line_that_says_where(tmp_path: Path) -> None:
    """A byte in every structure; the files that it does not belong to are still there."""
    good = small_ubi(tmp_path)
    block = 16384
    assert problems(tmp_path, good) == []
    pebs = len(good) // block
    ubifs = next(n for n in range(pebs) if good[n * block + 1024 :][:4] == b"1\x18\x10\x06")
    lines = {
        5 * block: "PEB 5: erase-counter header: magic 0x",
        5 * block + 9: "PEB 5: erase-counter header: CRC 0x",
        5 * block + 512: "PEB 5: volume header: magic 0x",
        5 * block + 530: "PEB 5: volume header: CRC 0x",
        1024 + 3: "PEB 0: table of volumes: record 0: CRC 0x",
        ubifs * block + 1024 + 40: "volume 0 a: LEB 0: superblock: superblock: CRC 0x",
        (ubifs + 1) * block + 1024 + 40: "volume 0 a: LEB 1: master node: master node: CRC 0x",
        len(good) - block + 1024 + 7: "data of LEB 1 of the static volume 1: its CRC is wrong",
    }
    for place, line in lines.items():
        found = problems(tmp_path, at(good, place, bytes([good[place] ^ 0x10])))
        assert any(line in one for one in found), (place, line, found)


def test_every_byte_of_a_small_image_can_be_wrong(tmp_path: Path) -> None:
    """Each node of UBIFS and JFFS2 in turn: a line with its place, or a line that refuses it."""
    for kind in ("ubifs", "jffs2"):
        made = make(kind, 1, tmp_path / kind, (512, 16))
        good = made.path.read_bytes()
        magic = b"1\x18\x10\x06" if kind == "ubifs" else b"\x85\x19"
        place, nodes = good.find(magic), 0
        while place >= 0 and nodes < 40:
            wrong = at(good, place + 21, bytes([good[place + 21] ^ 0x40]))
            found = problems(tmp_path, wrong)
            assert all("\n" not in line for line in found)
            nodes += 1
            place = good.find(magic, place + 24)


def test_oob_and_bad_blocks_are_found(tmp_path: Path) -> None:
    """A dump with OOB is the same image; a block with a marker is bad, and not of the device."""
    good = small_ubi(tmp_path)
    plain = read_image(tmp_path / "ubi")
    blank = good + b"\xff" * 4 * 16384
    for oob in (16,):
        data = with_oob(blank, 512, oob, bad={len(good) // 16384 + 1}, block=16384)
        (tmp_path / "dump").write_bytes(data)
        dump = read_image(tmp_path / "dump")
        assert dump.pages == (512, oob)
        assert dump.ubi is not None
        assert plain.ubi is not None
        assert dump.ubi["pebs"] == {**plain.ubi["pebs"], "all": len(blank) // 16384, "blank": 3,
                                    "bad": 1}  # fmt: skip
        assert dump.parts == plain.parts
        given = read_image(tmp_path / "dump", page_bytes=512, oob_bytes=oob)
        assert given.ubi == dump.ubi


def test_extracted_files_are_those_of_the_tree(tmp_path: Path) -> None:
    for kind in ("ubifs", "jffs2"):
        made = make(kind, 3, tmp_path / kind)
        copied, left_out = extract(read_image(made.path), 0, tmp_path / kind / "out")
        tree = made.trees[""]
        assert left_out == []
        names = {*tree.files, *tree.links, *tree.folders, *tree.hard}
        assert copied == len(names)
        out = tmp_path / kind / "out"
        assert {str(path.relative_to(out)) for path in out.rglob("*")} == names
        for name, data in tree.files.items():
            assert (out / name).read_bytes() == data
            assert (out / name).stat().st_mode & 0o777 == tree.modes[name] & 0o777
        for name, target in tree.links.items():
            assert str((out / name).readlink()) == target


def test_nothing_is_extracted_through_a_link(tmp_path: Path) -> None:
    """A file below a name that the image made a link first: the second name is refused."""
    made_tree = Tree(files={"aaaa/x": b"1", "bbbb": b"2"}, folders={"aaaa"})
    made_tree.write(tmp_path / "root")
    out = tmp_path / "fs"
    command = image_tool("mkfs.jffs2", cache_folder(), print)
    words = ["-r", str(tmp_path / "root"), "-o", str(out), "-e", "64KiB"]
    subprocess.run([*command, *words], check=True, capture_output=True)
    extract(read_image(out), 0, tmp_path / "plain")
    (tmp_path / "planted").mkdir()
    with pytest.raises(InputError):
        extract(read_image(out), 0, tmp_path / "planted")


def show(*words: object) -> subprocess.CompletedProcess[str]:
    command = [str(FLASHBED), "image", "show", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_image_show_prints_and_fails_as_it_says(tmp_path: Path) -> None:
    good = small_ubi(tmp_path)
    shown = show(tmp_path / "ubi", "--files")
    assert shown.returncode == 0
    assert not shown.stderr
    for words in ("volume 0 a: UBIFS", "bytes free", " d/b", "l -> a", "static"):
        assert words in shown.stdout
    as_json = json.loads(show(tmp_path / "ubi", "--format", "json", "--files").stdout)
    assert [file["path"] for file in as_json["parts"][0]["files"]] == ["a", "d", "d/b", "l"]
    assert as_json["ubi"]["image_sequence"] == 7
    (tmp_path / "broken").write_bytes(at(good, 5 * 16384 + 530, b"?"))
    broken = show(tmp_path / "broken")
    assert broken.returncode == 1
    assert "PEB 5: volume header: CRC" in broken.stderr
    (tmp_path / "text").write_text("nothing of the kind")
    none = show(tmp_path / "text")
    assert (none.returncode, len(none.stderr.splitlines())) == (2, 1)
    assert "no UBI, UBIFS, JFFS2, squashfs or EROFS begins in it" in none.stderr


def test_broken_images_never_end_in_a_panic(tmp_path: Path) -> None:
    """A short run of `python -m tests.support.broken_images`."""
    images, draw = good_images(tmp_path), random.Random(44)
    for _ in range(300):
        outcome(broken(draw, images[draw.choice(list(images))]))


@pytest.mark.parametrize("layout", ["squashfs-overlay-ubifs", "erofs-overlay-ubifs"])
def test_the_image_of_a_layout_is_the_same_twice(tmp_path: Path, layout: str) -> None:
    folder = tmp_path / "root"
    (folder / "etc").mkdir(parents=True)
    (folder / "etc" / "version").write_text("1\n")
    first, again = (
        new_image(folder, [f"layout={layout}"], volume=None, say=print) for _ in range(2)
    )
    assert first == again
    (tmp_path / "image").write_bytes(first)
    assert read_image(tmp_path / "image").parts[0]["content"]["format"] == layout.split("-")[0]


def test_an_image_of_ubifs_is_whole_whatever_its_size_divides_by(tmp_path: Path) -> None:
    """33 LEBs of 129,024 bytes are also whole pages of 2048 bytes with 64 of OOB."""
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "random").write_bytes(random.Random(1).randbytes(2_580_000))
    settings = ["layout=ubifs-ro-ubifs-rw"]
    first, again = (new_image(folder, settings, volume="rootfs", say=print) for _ in range(2))
    assert first == again
    assert len(first) % 2112 == 0
    (tmp_path / "image").write_bytes(first)
    image = read_image(tmp_path / "image")
    assert (image.pages, image.problems) == (None, [])
    (file,) = (file for file in image.files(0) if file.path == b"random")
    assert content(image, 0, file) == (folder / "random").read_bytes()


def test_an_image_needs_a_layout_that_has_one(tmp_path: Path) -> None:
    for settings, volume, why in (
        ([], None, "--set layout=NAME"),
        (["layout=two-slots"], "data", "has images on rootfs_a"),
    ):
        with pytest.raises(InputError, match=why):
            new_image(tmp_path, settings, volume=volume, say=print)
    with pytest.raises(InputError, match="not a folder"):
        new_image(tmp_path / "none", ["layout=two-slots"], volume=None, say=print)
