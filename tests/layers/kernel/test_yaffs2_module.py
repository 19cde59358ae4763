"""kernel/yaffs2: trees of files come back; what is wrong with a chip is an error, never a crash."""

from __future__ import annotations

import errno
import random
import shutil
import struct
from pathlib import Path

import pytest

from tests.support.nand import (
    DEBUGFS,
    SHOW_BREACHES,
    SHOW_COUNTS,
    SOFTWARE,
    Boot,
    Booted,
    find_kernel,
    load,
    numbers,
)

pytestmark = [pytest.mark.uml, pytest.mark.timeout(600)]

LOAD = "load /modules.d/yaffs2.ko"
MOUNT = "mount yaffs2"
SCAN = "mount yaffs2 no-checkpoint-read"
ROOM = {"blocks": 512, "partition_blocks": 400}
IMAGE_HEAD = struct.Struct("<16s4I")
BLOCK_HEAD = struct.Struct("<IHBB")
PAGE_HEAD = struct.Struct("<HBBB3x")


def errors(booted: Booted) -> list[str]:
    """The commands that failed, with their errno."""
    return [f"{r.command} {errno.errorcode[r.error]}" for r in booted.results if r.error]


def source_tree(host: Path, count: int) -> int:
    """Puts headers of the kernel where the guest sees them as /host/tree; their bytes."""
    include = find_kernel() / "include"
    files = [path for path in sorted(include.rglob("*")) if path.is_file()]
    # Long ones would make this a test of long files; the folders stay as they are.
    chosen = [path for path in files if path.stat().st_size < 20_000][:count]
    assert len(chosen) == count
    for path in chosen:
        to = host / "tree" / path.relative_to(include)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, to)
    return sum(path.stat().st_size for path in chosen)


def test_a_tree_of_500_files_comes_back_with_and_without_a_checkpoint(
    boot_yaffs2: Boot, tmp_path: Path
) -> None:
    total = source_tree(tmp_path / "host", 500)
    compare = ["comparetree /host/tree t", "comparetree t /host/tree"]
    booted = boot_yaffs2(
        [load(SOFTWARE, **ROOM), LOAD, "fresh yaffs2", "copytree /host/tree t", "unmount"],
        [SHOW_COUNTS, MOUNT, SHOW_COUNTS, *compare, "unmount"],
        [SHOW_COUNTS, SCAN, SHOW_COUNTS, *compare, "unmount", SHOW_BREACHES],
        memory="384M",
    )
    for result in booted.results:
        if result.command in ("copytree", "comparetree"):
            assert result.detail == f"500 {total}"
    counts = [numbers(r) for r in booted.results if r.command == "show" and "reads" in r.detail]
    restored, scanned = (
        b["reads"] - a["reads"] for a, b in zip(counts[::2], counts[1::2], strict=True)
    )
    assert restored < scanned / 2
    assert booted.results[-1].detail == ""


def test_names_links_and_lengths_outlive_a_mount(boot_yaffs2: Boot) -> None:
    long_name = "n" * 254
    make = [
        *("mkdir d", "put d/a 5000 1", "link d/a hard", "symlink d/a soft", "mknod pipe"),
        *("put b 9000 2", "truncate b 3000", "truncate b 8000", "chmod b 640"),
        *("put c 4096 3", "put e 100 4", "rename e c", f"put {long_name} 10 5"),
        *("put m 20000 6", "mapwrite m 4000 7 9000", "mkdir x", "mkdir x/y", "rename x/y d/y"),
    ]
    look = [
        *("list .", "list d", "stat hard", "stat soft", "readlink soft", "stat pipe", "stat b"),
        *("check d/a 5000 1", "check hard 5000 1", "check soft 5000 1", "check c 100 4"),
        *("same b 3000 0 5000", f"check {long_name} 10 5", "same m 4000 7 9000"),
    ]
    booted = boot_yaffs2(
        [load(SOFTWARE, **ROOM), LOAD, "fresh yaffs2", *make, *look, "drop", *look],
        ["unmount", MOUNT, *look, "unmount", SCAN, *look],
        # The name it was made by goes, the other one stays; and what is open on neither.
        ["remove d/a", "check hard 5000 1", "stat hard", "unmount", SCAN, "check hard 5000 1"],
    )
    said = [r.detail for r in booted.results if r.command in ("list", "stat", "readlink")]
    first = said[:7]
    assert first[0] == f"b c d hard lost+found m {long_name} pipe soft x"
    assert first[1:] == [
        *("a y", "100644 2 5000", "120777 1 3", "d/a", "10600 1 2048", "100640 1 8000"),
    ]
    assert said[:28] == first * 4
    assert said[28] == "100644 1 5000"


def test_what_a_file_system_refuses_it_refuses_by_its_errno(boot_yaffs2: Boot) -> None:
    tried = {
        f"put {'n' * 255} 1 1": errno.ENAMETOOLONG,
        f"symlink {'t' * 160} s": errno.ENAMETOOLONG,
        "rmdir d": errno.ENOTEMPTY,
        "rename e d": errno.ENOTEMPTY,
        "rmdir lost+found": errno.EPERM,
        "rename lost+found l": errno.EPERM,
        "check nothing 1 1": errno.ENOENT,
        "put d/a/b 1 1": errno.ENOTDIR,
        "mkdir d": errno.EEXIST,
    }
    booted = boot_yaffs2(
        [load(SOFTWARE, **ROOM), LOAD, "fresh yaffs2", "mkdir d", "put d/a 10 1", "mkdir e"],
        [*tried, "unmount", "mount yaffs2 nonsense"],
        fail=True,
    )
    assert [r.error for r in booted.results[6:-2]] == list(tried.values())
    assert booted.results[-2].error == 0
    assert booted.results[-1].error == errno.EINVAL


def test_a_directory_can_be_removed_while_it_is_read(boot_yaffs2: Boot, tmp_path: Path) -> None:
    host = tmp_path / "host" / "many"
    host.mkdir(parents=True)
    for number in range(900):
        (host / f"file-with-a-long-name-{number:04}").write_text(str(number))
    booted = boot_yaffs2(
        [load(SOFTWARE, **ROOM), LOAD, "fresh yaffs2", "copytree /host/many many"],
        ["comparetree many /host/many", "removetree many", "list .", "unmount", SCAN, "list ."],
    )
    assert [r.detail for r in booted.results if r.command == "list"] == ["lost+found"] * 2


def test_the_module_loads_unloads_and_loads_again(boot_yaffs2: Boot) -> None:
    unload = "unload yaffs2"
    booted = boot_yaffs2(
        [load(SOFTWARE), LOAD, unload, LOAD, "fresh yaffs2", "put a 3000 1", unload],
        ["unmount", unload, MOUNT, LOAD, MOUNT, "check a 3000 1", "unmount", unload, "unload"],
        fail=True,
    )
    assert errors(booted) == ["unload EAGAIN", "mount ENODEV"]
    assert "Call Trace" not in booted.console


def test_a_read_only_mount_changes_nothing(boot_yaffs2: Boot) -> None:
    # The second is without a checkpoint, with blocks of which nothing is valid.
    work = ["put a 900000 1", "put a 900000 2", "put b 3000 3", "remove b"]
    look = [SHOW_COUNTS, "mount yaffs2 ro", "check a 900000 2", "put c 10 4", "rest 5000000"]
    booted = boot_yaffs2(
        [load(SOFTWARE), LOAD, "fresh yaffs2", *work, "readonly", "unmount"],
        [*look, "unmount", SHOW_COUNTS],
        ["mount yaffs2 no-checkpoint", *work, "unmount", *look, "unmount", SHOW_COUNTS],
        fail=True,
    )
    assert errors(booted) == ["readonly EINVAL", "put EROFS", "put EROFS"]
    counts = [numbers(r) for r in booted.results if r.command == "show"]
    for before, after in ((counts[0], counts[1]), (counts[2], counts[3])):
        assert after["reads"] > before["reads"]
        assert [after[what] - before[what] for what in ("programs", "erases")] == [0, 0]


@pytest.mark.parametrize("other", ["jffs2", "ubifs"])
def test_another_file_system_is_refused_and_left_alone(boot_yaffs2: Boot, other: str) -> None:
    booted = boot_yaffs2(
        [load(SOFTWARE, **ROOM), LOAD, f"fresh {other}", "put a 3000 1", "unmount", SHOW_COUNTS],
        [MOUNT, SHOW_COUNTS, f"mount {other}", "check a 3000 1", "unmount"],
        fail=True,
        loud=True,
    )
    assert errors(booted) == ["mount EINVAL"]
    assert "something else than YAFFS2" in booted.console
    before, after = (numbers(r) for r in booted.results if r.command == "show")
    assert [after[what] - before[what] for what in ("programs", "erases")] == [0, 0]
    assert "Call Trace" not in booted.console


def test_a_fresh_chip_and_one_whose_first_program_was_torn_are_mounted(boot_yaffs2: Boot) -> None:
    booted = boot_yaffs2(
        [load(SOFTWARE), LOAD, MOUNT, "unmount", "ctl renew", MOUNT],
        # Nothing of YAFFS2 is there yet but a program that power failed in.
        ["ctl cut 1 3", "put a 100 1", "unmount", "ctl on", MOUNT, "put a 100 1", "check a 100 1"],
        fail=True,
    )
    assert [r.command for r in booted.results if r.error] == ["put"]


def test_a_third_of_the_blocks_may_be_bad(boot_yaffs2: Boot, tmp_path: Path) -> None:
    total = source_tree(tmp_path / "host", 300)
    compare = ["comparetree /host/tree t", "comparetree t /host/tree"]
    booted = boot_yaffs2(
        [load(SOFTWARE, bad_blocks=38, seed=5), LOAD, "fresh yaffs2", "copytree /host/tree t"],
        ["unmount", MOUNT, *compare, "unmount", SCAN, *compare, SHOW_BREACHES],
    )
    assert {r.detail for r in booted.results if r.command == "comparetree"} == {f"300 {total}"}
    assert booted.results[-1].detail == ""


def test_a_chip_with_hardly_a_good_block_is_an_error(boot_yaffs2: Boot) -> None:
    booted = boot_yaffs2(
        [load(SOFTWARE, bad_blocks=124, seed=5), LOAD, "fresh yaffs2", "put a 100 1", "unmount"],
        fail=True,
    )
    assert errors(booted), "five blocks are a file system's reserve"
    assert "Call Trace" not in booted.console


def test_blocks_that_fail_are_given_up_and_nothing_is_lost(
    boot_yaffs2: Boot, tmp_path: Path
) -> None:
    total = source_tree(tmp_path / "host", 300)
    booted = boot_yaffs2(
        [load(SOFTWARE, **ROOM), LOAD, "fresh yaffs2"],
        ["ctl faults 7 500 2000 0 1", "ctl fail-program 40", "ctl fail-erase 3"],
        ["copytree /host/tree t", "removetree t", "copytree /host/tree t", "rest 20000000"],
        ["unmount", MOUNT, "comparetree /host/tree t", "unmount", SCAN, "comparetree /host/tree t"],
        [f"copy {DEBUGFS}/blocks /host/blocks"],
    )
    assert {r.detail for r in booted.results if r.command == "comparetree"} == {f"300 {total}"}
    states = [line.split()[2] for line in (booted.host / "blocks").read_text().splitlines()]
    assert "bad" in states


def test_a_full_file_system_says_so_and_goes_on(boot_yaffs2: Boot) -> None:
    fill = [f"put f{number} 1500000 {number}" for number in range(14)]
    again = [f"remove f{number}" for number in range(4)]
    booted = boot_yaffs2(
        [load(SOFTWARE), LOAD, "fresh yaffs2", *fill, *again, "put g 2000000 77"],
        ["check g 2000000 77", "check f5 1500000 5", "unmount", SCAN],
        ["check g 2000000 77", "check f5 1500000 5", SHOW_BREACHES],
        fail=True,
    )
    assert "Call Trace" not in booted.console
    # One write that came to the end is short, the next ones find no room at all.
    assert set(errors(booted)[1:]) == {"put ENOSPC"}
    assert {r.command for r in booted.results if r.error} == {"put"}
    assert not any(r.error for r in booted.results[3:11])
    assert booted.results[-1].detail == ""


def test_what_is_overwritten_is_collected_in_the_background(boot_yaffs2: Boot) -> None:
    churn = [f"put f{number % 6} 400000 {number}" for number in range(60)]
    booted = boot_yaffs2(
        [load(SOFTWARE), LOAD, "fresh yaffs2", *churn, SHOW_COUNTS, "rest 60000000", SHOW_COUNTS],
        [f"copy {DEBUGFS}/log /host/log", *(f"check f{n} 400000 {n + 54}" for n in range(6))],
    )
    before, after = (numbers(r) for r in booted.results if r.command == "show")
    assert after["erases"] > before["erases"]
    tasks = {operation.task for operation in booted.operations() if operation.kind == 2}
    assert "yaffs-bg-0" in tasks


def test_tags_go_into_the_page_where_the_oob_has_no_room(boot_yaffs2: Boot, tmp_path: Path) -> None:
    total = source_tree(tmp_path / "host", 100)
    ecc = {"ecc_strength_bits": 8}  # 52 of 64 bytes, and the marker
    booted = boot_yaffs2(
        [load(**ecc, **ROOM), LOAD, "fresh yaffs2", "copytree /host/tree t"],
        ["unmount", MOUNT, "comparetree /host/tree t", "unmount", SCAN, "comparetree /host/tree t"],
    )
    assert {r.detail for r in booted.results if r.command == "comparetree"} == {f"100 {total}"}


def spoiled(image: bytes, seed: int, share: float) -> bytes:
    """The chip with a share of its programmed pages spoiled, in data or OOB or both."""
    draw = random.Random(seed)
    data = bytearray(image)
    _, page_bytes, oob_bytes, _, blocks = IMAGE_HEAD.unpack_from(data)
    at = IMAGE_HEAD.size
    for _ in range(blocks):
        _, pages, _, _ = BLOCK_HEAD.unpack_from(data, at)
        at += BLOCK_HEAD.size
        for _ in range(pages):
            areas = data[at + 4]
            oob, main = at + PAGE_HEAD.size, at + PAGE_HEAD.size + oob_bytes
            at = main + page_bytes * ((areas & 1) + (areas >> 1 & 1))
            if draw.random() >= share:
                continue
            for start, length in ((oob + 2, oob_bytes - 2), (main, page_bytes * (areas & 1))):
                if draw.random() < 0.6:
                    for _ in range(draw.choice((1, 3, length // 4))):
                        if length:
                            data[start + draw.randrange(length)] = draw.randrange(256)
    assert at == len(data)
    return bytes(data)


def relabelled(image: bytes, seed: int) -> bytes:
    """The chip with pages given the OOB of others: tags that are whole and say what is not so."""
    draw = random.Random(seed)
    data = bytearray(image)
    _, page_bytes, oob_bytes, _, blocks = IMAGE_HEAD.unpack_from(data)
    at, oobs = IMAGE_HEAD.size, []
    for _ in range(blocks):
        _, pages, _, _ = BLOCK_HEAD.unpack_from(data, at)
        at += BLOCK_HEAD.size
        for _ in range(pages):
            areas = data[at + 4]
            oobs.append(at + PAGE_HEAD.size)
            at += PAGE_HEAD.size + oob_bytes + page_bytes * ((areas & 1) + (areas >> 1 & 1))
    for _ in range(len(oobs) // 4):
        one, other = draw.choice(oobs), draw.choice(oobs)
        # The free bytes: between the marker and the 24 of the ECC.
        data[one + 2 : one + 40] = data[other + 2 : other + 40]
    return bytes(data)


def test_a_corrupt_image_is_an_error_or_less_files_and_never_a_crash(
    boot_yaffs2: Boot, tmp_path: Path
) -> None:
    host = tmp_path / "host"
    source_tree(host, 200)
    chip = f"{DEBUGFS}/chip"
    boot_yaffs2(
        [load(SOFTWARE), LOAD, "fresh yaffs2", "copytree /host/tree t", "link t/linux l"][:4],
        ["put a 30000 1", "link a b", "symlink a c", "truncate a 100", "unmount"],
        [f"copy {chip} /host/whole"],
    )
    whole = (host / "whole").read_bytes()
    script = []
    for seed in range(24):
        image = (
            relabelled(whole, seed)
            if seed % 4 == 0
            else spoiled(whole, seed, 0.02 * 3 ** (seed % 4))
        )
        (host / f"chip{seed}").write_bytes(image)
        for mount in (MOUNT, SCAN):
            script += [f"copy /host/chip{seed} {chip}", mount, "list .", "list t"]
            script += ["comparetree t /host/tree", "put new 9000 1", "check new 9000 1"]
            script += ["removetree t", "rest 3000000", "unmount"]
    booted = boot_yaffs2([load(SOFTWARE), LOAD, *script], fail=True)
    assert "Call Trace" not in booted.console
    assert "BUG" not in booted.console
    assert not any(r.error for r in booted.results if r.command in ("copy", "unmount"))
    worked = [r.error == 0 for r in booted.results if r.command == "check"]
    assert sum(worked) > len(worked) / 2, "a new file is whole whatever else is there"
