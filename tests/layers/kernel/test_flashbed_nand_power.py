"""kernel/flashbed_nand: power cuts, rewinds and images of the chip."""

from __future__ import annotations

import errno
import struct

import pytest

from tests.support.nand import (
    DEBUGFS,
    ECCS,
    FILE_SYSTEMS,
    SHOW_BREACHES,
    SHOW_COUNTS,
    SUM_CHIP,
    Boot,
    load,
    numbers,
)

pytestmark = pytest.mark.uml


def workload(fs: str) -> list[str]:
    """Some of everything: new files, one written again, one removed."""
    script = [f"mount {fs}", "put a 9000 11", "put c 40000 12", "remove b", "drop"]
    return [*script, "put a 5000 13", "unmount"]


BASE = ["put a 20000 1", "put b 30000 2", "unmount"]


@pytest.mark.parametrize("ecc", ECCS)
@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_a_rewind_is_the_power_cut(boot: Boot, fs: str, ecc: str) -> None:
    small = {"blocks": 64, "partition_blocks": 64}
    first = [load(ECCS[ecc], small), f"fresh {fs}", *BASE, f"copy {DEBUGFS}/chip /host/base"]
    done = boot(first, "ctl record", workload(fs), SHOW_COUNTS, SUM_CHIP)
    changes = numbers(done.results[-2])["changes"]
    assert changes > 20
    script = [load(ECCS[ecc], small)]
    cuts = []
    for number in sorted({1, 2, 3, *range(4, changes, max(1, changes // 24))}):
        for seed in (number, number + 1000):
            script += [f"copy /host/base {DEBUGFS}/chip", "ctl record", f"ctl cut {number} {seed}"]
            script += [*workload(fs), SHOW_COUNTS, "ctl on", SUM_CHIP]
            cuts.append(len(script) - 1)
            script += [f"ctl rewind {number} {seed}", SUM_CHIP]
    done = boot(script, fail=True)
    images = set()
    for at in cuts:
        assert numbers(done.results[at - 2])["changes"] == int(script[at + 1].split()[2])
        assert done.results[at].detail == done.results[at + 2].detail, script[at + 1]
        assert done.results[at + 1].error == 0
        images.add(done.results[at].detail)
    assert len(images) > len(cuts) // 2


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_rewinds_in_any_order(boot: Boot, fs: str) -> None:
    script = [load(), f"fresh {fs}", *BASE, "ctl record", *workload(fs), SUM_CHIP, SHOW_COUNTS]
    changes = numbers(boot(script).results[-1])["changes"]
    end = len(script) - 2
    order = [1, changes, 7, changes + 1, changes // 2, 7, 1, changes + 1]
    for number in order:
        script += [f"ctl rewind {number} 5", SUM_CHIP, f"mount {fs}", "unmount"]
    done = boot(script, SHOW_BREACHES, fail=True)
    sums: dict[int, str] = {changes + 1: done.results[end].detail}
    for index, number in enumerate(order):
        at = end + 2 + 4 * index
        assert [result.error for result in done.results[at : at + 2]] == [0, 0]
        assert sums.setdefault(number, done.results[at + 1].detail) == done.results[at + 1].detail
    assert len(set(sums.values())) == len(sums)


def test_file_systems_mount_after_cuts_and_keep_what_was_synced(boot: Boot) -> None:
    for fs in FILE_SYSTEMS:
        script = [load(), f"fresh {fs}", *BASE, "ctl record", *workload(fs), SHOW_COUNTS]
        changes = numbers(boot(script).results[-1])["changes"]
        for number in range(1, changes + 2, 3):
            script += [f"ctl rewind {number} {number}", f"mount {fs}", "check a 20000 1"]
            script += ["check a 9000 11", "check a 5000 13", "unmount"]
        done = boot(script, fail=True)
        at = len(script) - 6 * len(range(1, changes + 2, 3))
        for result, mounted in zip(done.results[at::6], done.results[at + 1 :: 6], strict=True):
            assert (result.error, mounted.error) == (0, 0)


def test_nothing_reaches_a_chip_without_power(boot: Boot) -> None:
    script = [load(), "write 0 2048 1", "ctl cut 2 7", "write 2048 2048 2", "erase 131072 131072"]
    script += [SUM_CHIP, "write 4096 2048 3", "erase 0 131072", "read 0 2048", SUM_CHIP]
    done = boot(script, "ctl on", "read 0 2048", "write 6144 2048 4", fail=True)
    errors = [result.error for result in done.results]
    assert errors == [0, 0, 0, 0, errno.EIO, 0, *[errno.EIO] * 3, 0, 0, 0, 0]
    assert done.results[5].detail == done.results[9].detail
    assert done.results[11].detail == done.results[1].detail


def test_power_on_calls_a_cut_off(boot: Boot) -> None:
    script = [load(), "ctl cut 2 7", "ctl drop 2", "write 0 2048 1", "ctl on", "write 2048 2048 2"]
    done = boot(script, "read 2048 2048")
    assert done.results[-1].detail == done.results[-2].detail


def test_a_dropped_program_is_acknowledged_and_remembered(boot: Boot) -> None:
    script = [load(), "ctl record", "ctl drop 2", "write 0 2048 1", "write 2048 2048 2"]
    script += ["write 4096 2048 3", "read 0 2048", "read 2048 2048", "read 4096 2048", SUM_CHIP]
    done = boot(script, SHOW_COUNTS, "ctl rewind 4 1", SUM_CHIP, "read 2048 2048")
    results = done.results
    assert results[3].detail == results[6].detail
    assert results[5].detail == results[8].detail
    assert results[4].detail != results[7].detail == results[13].detail
    assert results[9].detail == results[12].detail
    assert numbers(results[10])["changes"] == 3


@pytest.mark.parametrize("ecc", ECCS)
@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_an_image_is_the_chip(boot: Boot, fs: str, ecc: str) -> None:
    params = load(ECCS[ecc], bad_blocks=2, seed=2)
    script = [params, "ctl wear 0 128 7", f"fresh {fs}", "put a 300000 5", "unmount"]
    script += [f"copy {DEBUGFS}/chip /host/one", "unload", params]
    script += [f"copy /host/one {DEBUGFS}/chip", f"copy {DEBUGFS}/chip /host/two 1000"]
    script += [f"mount {fs}", "check a 300000 5", "unmount"]
    script += [f"copy /host/one {DEBUGFS}/chip 333", f"copy {DEBUGFS}/chip /host/three"]
    done = boot(script, SHOW_BREACHES)
    image = (done.host / "one").read_bytes()
    assert image == (done.host / "two").read_bytes() == (done.host / "three").read_bytes()
    assert not done.results[-1].detail
    assert_image_is_as_documented(image)


def assert_image_is_as_documented(image: bytes) -> None:
    """Reads it as kernel/flashbed_nand/README.md says."""
    magic, page, oob, pages, blocks = struct.unpack_from("<16s4I", image)
    assert magic == b"flashbed-chip 1\n"
    assert (page, oob, pages, blocks) == (2048, 64, 64, 128)
    at, states, erases = 32, [], 0
    for _ in range(blocks):
        block_erases, count, state, zero = struct.unpack_from("<IHBB", image, at)
        at += 8
        last = -1
        states.append(state)
        erases += block_erases
        for _ in range(count):
            number, programs, touched, areas, zeros = struct.unpack_from("<HBBB3s", image, at)
            assert last < number < pages
            assert programs
            assert touched < 16
            assert (zero, zeros) == (0, bytes(3))
            last = number
            at += 8 + oob + page * (areas & 1) + page * (areas >> 1)
    assert at == len(image)
    assert states.count(1) == 2
    assert erases >= 7 * 126, "formatting leaves the wear of a block as it was"


def test_bad_images_change_nothing(boot: Boot) -> None:
    done = boot(load(), "write 0 4096 1", f"copy {DEBUGFS}/chip /host/good")
    image = (done.host / "good").read_bytes()
    other = image[:16] + struct.pack("<I", 4096) + image[20:]
    wrong = {
        "magic": b"nonsense" + image[8:],
        "geometry": other,
        "long": image + b"\0",
        "state": image[:38] + b"\7" + image[39:],
        "order": image[:40] + struct.pack("<H", 64) + image[42:],
    }
    script = [load(), "write 2048 2048 9", SUM_CHIP]
    for name, data in wrong.items():
        (done.host / name).write_bytes(data)
        script += [f"copy /host/{name} {DEBUGFS}/chip", SUM_CHIP]
    (done.host / "short").write_bytes(image[:-1])
    script += [f"copy /host/short {DEBUGFS}/chip", SUM_CHIP]
    after = boot(script, "ctl load", fail=True)
    assert [result.error for result in after.results[3:13:2]] == [errno.EINVAL] * 5
    assert len({result.detail for result in after.results[2::2] if result.command == "sum"}) == 1
    assert after.results[-1].error == errno.EINVAL
    assert len(after.module_lines()) == 6
    assert all(line.startswith("chip image refused") for line in after.module_lines())


BAD_CUTS = ("cut", "cut 0 1", "cut 1", "cut x 1", "cut 1 2 3", "cut -1 1")
BAD_OTHERS = ("rewind 1 1", "drop", "drop 0", "drop 1 2", "nonsense", "load", "record now")
BAD_COMMANDS = (*BAD_CUTS, *BAD_OTHERS)


def test_bad_commands_are_refused(boot: Boot) -> None:
    script = [load(), *(f"ctl {command}" for command in BAD_COMMANDS)]
    script += ["ctl record", "ctl rewind 0 1", "ctl rewind 2 1", "ctl rewind 1 1", "ctl forget"]
    done = boot(script, "ctl rewind 1 1", fail=True)
    count = len(BAD_COMMANDS)
    assert {result.error for result in done.results[1 : 1 + count]} == {errno.EINVAL}
    tail = [result.error for result in done.results[1 + count :]]
    assert tail == [0, errno.EINVAL, errno.EINVAL, 0, 0, errno.EINVAL]
