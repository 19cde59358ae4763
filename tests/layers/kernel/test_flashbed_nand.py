"""kernel/flashbed_nand on user-mode Linux: chip, time, log, faults, parameters."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from itertools import pairwise

import pytest

from flashbed.stack.profiles import load_board
from flashbed.targets.guest.nand import parameters
from tests.support.nand import (
    BOARD,
    BREACH,
    CLOCK_NS,
    COPY_LOG,
    CORRECTED,
    DEBUGFS,
    ECCS,
    ERASE,
    FAILED,
    FILE_SYSTEMS,
    HARDWARE,
    NONE,
    PROGRAM,
    READ,
    SHOW_BREACHES,
    SHOW_COUNTS,
    SOFTWARE,
    SUM_CHIP,
    UBIFS_BLOCK_BYTES,
    Boot,
    load,
    numbers,
)

pytestmark = pytest.mark.uml

GEOMETRIES: Mapping[str, tuple[int, int, int, int, Mapping[str, object]]] = {
    "512 B, 16 pages": (512, 16, 16, 2048, SOFTWARE),
    "512 B, 32 pages, 3-byte rows": (512, 16, 32, 8192, SOFTWARE),
    "512 B, hardware": (512, 32, 32, 1024, {"ecc_step_bytes": 512, "ecc_strength_bits": 1}),
    "1 KiB": (1024, 32, 32, 512, SOFTWARE),
    "2 KiB": (2048, 64, 64, 128, SOFTWARE),
    "2 KiB, 1000 blocks": (2048, 64, 64, 1000, HARDWARE),
    "4 KiB": (4096, 128, 64, 100, SOFTWARE),
    "4 KiB, large OOB": (4096, 224, 128, 64, {"ecc_strength_bits": 8}),
    "8 KiB": (8192, 448, 128, 48, {"ecc_step_bytes": 1024, "ecc_strength_bits": 16}),
    "16 KiB, 256 pages": (16384, 1280, 256, 40, {"ecc_step_bytes": 1024, "ecc_strength_bits": 40}),
    "16 KiB, software": (16384, 1280, 256, 40, SOFTWARE),
    "16 KiB, none": (16384, 1280, 256, 40, NONE),
}


@pytest.mark.parametrize("name", GEOMETRIES)
def test_every_geometry_holds_file_systems(boot: Boot, name: str) -> None:
    page, oob, pages, blocks, ecc = GEOMETRIES[name]
    geometry = {"page_bytes": page, "oob_bytes": oob, "pages_per_block": pages, "blocks": blocks}
    last = page * pages * (blocks - 3) - page
    script = [load(geometry, ecc, first_block=2, partition_blocks=blocks - 3)]
    script += [
        f"write 0 {page} 1",
        f"read 0 {page}",
        f"write {last} {page} 2",
        f"read {last} {page}",
    ]
    for fs in FILE_SYSTEMS if page * pages >= UBIFS_BLOCK_BYTES else ("jffs2",):
        script += [f"fresh {fs}", "put a 150000 1", "put b 3000 2", "unmount", f"mount {fs}"]
        script += ["check a 150000 1", "check b 3000 2", "unmount"]
    done = boot(script, SHOW_BREACHES, SHOW_COUNTS, "unload")
    assert done.results[1].detail == done.results[2].detail
    assert done.results[3].detail == done.results[4].detail
    assert not done.results[-3].detail
    counts = numbers(done.results[-2])
    assert not counts["uncorrectable"]
    assert not counts["lost"]


@pytest.mark.parametrize(
    ("page", "oob", "pages", "blocks"), [(2048, 64, 64, 65536), (16384, 1280, 256, 2048)]
)
def test_eight_gib_take_no_memory(boot: Boot, page: int, oob: int, pages: int, blocks: int) -> None:
    geometry = {"page_bytes": page, "oob_bytes": oob, "pages_per_block": pages, "blocks": blocks}
    last = page * pages * blocks - page
    script = [load(geometry, partition_blocks=blocks), f"write {last} {page} 1"]
    script += [f"read {last} {page}", f"read {last - page} {page}", SUM_CHIP]
    done = boot(script, "unload", memory="192M")
    assert done.results[1].detail == done.results[2].detail != done.results[3].detail
    size = 32 + 8 * blocks + 8 + oob + page
    assert int(done.results[4].detail.split()[0]) == size


def share(whole_ns: int, moved: int) -> int:
    return whole_ns * moved // 2112


def test_times_by_bytes_are_arithmetic(boot: Boot) -> None:
    script = [load(SOFTWARE), "ctl clear", "read 0 2048 100", "read 300 10 100", "write 0 4096 1"]
    script += ["erase 0 262144", "writeoob 0 8 1", "readoob 0 64", COPY_LOG]
    done = boot(script)
    log = done.operations()
    code_ns = 700 + share(105_000, 3)
    expected = 100 * [(READ, 0, 2048, 25_000 + share(105_000, 2048) + share(105_000, 64))]
    expected += 100 * [(READ, 256, 256, 25_000 + share(105_000, 256) + code_ns)]
    write_ns = 200_000 + share(105_001, 2048) + share(105_001, 64)
    expected += 2 * [(PROGRAM, 0, 2048, write_ns)] + 2 * [(ERASE, 0, 131072, 500_000)]
    expected += [(PROGRAM, 2048, 64, 200_000 + share(105_001, 64))]
    expected += [(READ, 2048, 64, 25_000 + share(105_000, 64))]
    assert [(row.kind, row.column, row.length, row.duration_ns) for row in log] == expected
    assert [row.page for row in log[200:]] == [0, 1, 0, 64, 0, 0]
    assert {row.task for row in log} == {"init"}
    for result, rows in zip(
        done.results[2:6], (log[:100], log[100:200], log[200:202], log[202:204]), strict=True
    ):
        waited_ns = sum(row.duration_ns for row in rows)
        assert 0 <= result.took_ns - waited_ns <= 4 * CLOCK_NS
    for before, after in pairwise(log[:100]):
        assert abs(after.start_ns - before.start_ns - before.duration_ns) <= CLOCK_NS


def test_times_by_page_are_nandsims(boot: Boot) -> None:
    times = {"transfer": "page", "bus_read_ns": 102_000, "bus_program_ns": 81_000}
    times |= {"column_change_ns": 127_000}
    script = [load(SOFTWARE, times), "ctl clear", "read 0 2048", "read 300 10", "write 0 2048 1"]
    script += ["readoob 0 64", COPY_LOG, SHOW_COUNTS]
    done = boot(script)
    durations = [row.duration_ns for row in done.operations()]
    assert durations == [127_000, 254_000, 281_000, 127_000]
    counts = numbers(done.results[-1])
    scan_ns = 128 * 127_000
    assert counts["busy_ns"] == scan_ns + sum(durations)
    assert (counts["reads"], counts["programs"], counts["erases"]) == (128 + 3, 1, 0)


def test_hardware_ecc_moves_whole_pages_and_keeps_the_last(boot: Boot) -> None:
    script = [load(), "write 0 2048 1", "ctl clear", "read 0 2048", "read 100 10", "read 200 10"]
    done = boot(script, COPY_LOG)
    expected = 2 * [(READ, 0, 2048, 130_000)]
    log = done.operations()
    assert [(row.kind, row.column, row.length, row.duration_ns) for row in log] == expected


@pytest.mark.parametrize("wait", ["halt", "sleep"])
def test_other_waits_last_as_long(boot: Boot, wait: str) -> None:
    done = boot(load(wait=wait), "read 0 2048 100", "erase 0 131072")
    assert abs(done.results[1].took_ns - 13_000_000) <= 100 * 4 * CLOCK_NS
    assert abs(done.results[2].took_ns - 500_000) <= 8 * CLOCK_NS


@pytest.mark.parametrize("ecc", ECCS)
@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_file_systems_work_with_every_ecc(boot: Boot, fs: str, ecc: str) -> None:
    script = [load(ECCS[ecc], bad_blocks=3, seed=5), f"fresh {fs}"]
    for i in range(12):
        script += [f"put f{i % 4} {200_000 + 1000 * i} {i}"]
    script += ["remove f3", "unmount", f"mount {fs}"]
    script += [f"check f{i} {208_000 + 1000 * i} {8 + i}" for i in range(3)]
    script += ["unmount", SHOW_BREACHES, SHOW_COUNTS, COPY_LOG, "unload"]
    done = boot(script)
    assert not done.results[-4].detail
    counts = numbers(done.results[-3])
    assert (counts["lost"], counts["uncorrectable"], counts["corrected"]) == (0, 0, 0)
    log = done.operations()
    assert len(log) == counts["reads"] + counts["programs"] + counts["erases"]
    assert sum(row.duration_ns for row in log) == counts["busy_ns"]
    assert [row.start_ns for row in log] == sorted(row.start_ns for row in log)


@pytest.mark.parametrize("fs", FILE_SYSTEMS)
def test_nandsim_with_the_same_parameters_takes_as_long(boot: Boot, fs: str) -> None:
    """Where code takes no time; on an emulated CPU nandsim's own takes 13 us a command."""
    board = load_board("emulated")
    assert board.emulator
    ours = f"load /modules.d/flashbed_nand.ko {parameters(board, wait='busy')}"
    theirs = f"load /modules.d/nandsim.ko {board.emulator.nandsim}"
    script = (
        f"fresh {fs}",
        "put a 1000000 1",
        "unmount",
        f"mount {fs}",
        "drop",
        "check a 1000000 1",
    )
    times = [
        {result.command: result.took_ns for result in boot(load, *script).results}
        for load in (ours, theirs)
    ]
    for command in ("put", "mount", "check"):
        assert times[0][command] == pytest.approx(times[1][command], rel=0.01), command


def test_log_is_cleared_and_read_from_anywhere(boot: Boot) -> None:
    script = [load(), "ctl clear", "read 0 2048 5000", COPY_LOG, f"copy {DEBUGFS}/log /host/odd 77"]
    script += ["ctl clear", f"sum {DEBUGFS}/log", "read 0 2048", f"sum {DEBUGFS}/log"]
    done = boot(script)
    assert len(done.operations()) == 5000
    assert (done.host / "odd").read_bytes() == (done.host / "log").read_bytes()
    assert done.results[6].detail.split()[0] == "0"
    assert done.results[8].detail.split()[0] == "48"


def test_rules_are_reported_and_programs_done(boot: Boot) -> None:
    script = [load(NONE), "ctl clear", "write 0 2048 1", "write 0 2048 2"]
    script += ["write 131072 2048 1", "write 135168 2048 1", "write 133120 2048 1"]
    script += [f"writeoob {2 * 131072} 2 {i}" for i in range(5)]
    script += ["markbad 131072", SHOW_BREACHES, SHOW_COUNTS, COPY_LOG, "read 0 2048"]
    done = boot(script)
    rules = [line.split()[1:] for line in done.results[-4].lines]
    assert rules == [
        ["programmed-twice", "0", "0", "init"],
        ["out-of-order", "1", "65", "init"],
        ["too-many-partial-programs", "2", "128", "init"],
    ]
    assert numbers(done.results[-3])["breaches"] == 3
    marked = [row.page for row in done.operations() if row.flags & BREACH]
    assert marked == [0, 65, 128]
    assert done.results[-1].detail not in (done.results[2].detail, done.results[3].detail)


def test_factory_bad_blocks_are_chosen_by_seed(boot: Boot) -> None:
    def bad(seed: int) -> list[int]:
        script = [load(bad_blocks=5, seed=seed, first_block=10, partition_blocks=50)]
        script += [f"bad {131072 * i}" for i in range(50)]
        done = boot(script, f"show {DEBUGFS}/blocks")
        seen = [i + 10 for i in range(50) if done.results[1 + i].detail == "1"]
        rows = [line.split() for line in done.results[-1].lines]
        assert [int(row[0]) for row in rows] == list(range(128))
        assert [int(row[0]) for row in rows if row[2] == "bad"] == seen
        return seen

    first = bad(1)
    assert len(first) == 5
    assert first == bad(1) != bad(2)


def test_blocks_wear_out_within_a_tenth(boot: Boot) -> None:
    erases = [f"erase {131072 * block} 131072" for block in range(4) for _ in range(56)]
    script = [load(wear_out_erases=50), *erases, f"show {DEBUGFS}/blocks", "write 0 2048 1"]
    done = boot(script, fail=True)
    rows = [line.split() for line in done.results[-2].lines[:4]]
    for block in range(4):
        errors = [result.error for result in done.results[1 + 56 * block : 57 + 56 * block]]
        stood = errors.count(0)
        assert errors == [0] * stood + [errno.EIO] * (56 - stood)
        assert 45 <= stood <= 55
        assert rows[block] == [str(block), str(stood), "worn", "0"]
    assert len({row[1] for row in rows}) > 1
    assert done.results[-1].error == 0


def test_operations_fail_as_often_as_asked(boot: Boot) -> None:
    writes = [f"write {2048 * page} 2048 {page}" for page in range(200)]
    erases = [f"erase {131072 * block} 131072" for block in range(10, 110)]
    script = [load(program_fail_ppm=100_000, erase_fail_ppm=200_000, seed=3), "ctl clear"]
    done = boot(script, writes, erases, COPY_LOG, fail=True)
    failed = [result.error for result in done.results[2:202]]
    assert set(failed) == {0, errno.EIO}
    assert 8 <= failed.count(errno.EIO) <= 35
    failed_erases = [result.error for result in done.results[202:302]]
    assert 8 <= failed_erases.count(errno.EIO) <= 35
    log = done.operations()
    flagged = [bool(row.flags & FAILED) for row in log]
    assert flagged == [bool(error) for error in failed + failed_erases]


def test_ubifs_survives_programs_that_fail(boot: Boot) -> None:
    script = [load(program_fail_ppm=3000, seed=4), "fresh ubifs"]
    script += [f"put f{i} 200000 {i}" for i in range(10)]
    script += ["unmount", "mount ubifs", *(f"check f{i} 200000 {i}" for i in range(10)), "unmount"]
    done = boot(script, COPY_LOG, f"show {DEBUGFS}/blocks")
    assert any(row.flags & FAILED for row in done.operations() if row.kind == PROGRAM)
    assert any(line.split()[2] == "bad" for line in done.results[-1].lines)


@pytest.mark.parametrize("ecc", ["software", "hardware"])
def test_few_flipped_bits_are_corrected(boot: Boot, ecc: str) -> None:
    most = 1 if ecc == "software" else 4
    faults = {"bit_flip_ppm": 1_000_000, "bit_flips_max": most, "seed": 4}
    script = [load(ECCS[ecc], faults), "write 0 4096 1", *["read 0 4096"] * 50, SHOW_COUNTS]
    done = boot(script, COPY_LOG)
    assert {result.detail for result in done.results[1:52]} == {done.results[1].detail}
    counts = numbers(done.results[-2])
    assert counts["uncorrectable"] == 0
    # Hamming says nothing of a flip in a whole page read that it puts right: one bit a page read.
    assert counts["corrected"] >= 100
    data = [row for row in done.operations() if row.kind == READ and row.length >= 2048]
    assert all(row.flags == CORRECTED for row in data)


@pytest.mark.parametrize("ecc", ["software", "hardware"])
def test_many_flipped_bits_are_not(boot: Boot, ecc: str) -> None:
    most = 2 if ecc == "software" else 8
    faults = {"bit_flip_ppm": 1_000_000, "bit_flips_max": most, "seed": 4}
    script = [load(ECCS[ecc], faults), "write 0 2048 1", *["read 0 2048"] * 60, SHOW_COUNTS]
    done = boot(script, COPY_LOG)
    # /dev/mtd0 hands out what was read, corrected or not.
    wrong = [result.detail != done.results[1].detail for result in done.results[2:62]]
    assert 15 <= wrong.count(True) <= 45
    assert numbers(done.results[-2])["uncorrectable"] == wrong.count(True)
    flags = [row.flags for row in done.operations() if row.kind == READ and row.length >= 2048]
    if ecc == "hardware":
        assert flags == [FAILED if row else CORRECTED for row in wrong]


def test_without_ecc_flipped_bits_reach_the_reader(boot: Boot) -> None:
    faults = {"bit_flip_ppm": 500_000, "seed": 4}
    done = boot(load(NONE, faults), "write 0 2048 1", *["read 0 2048"] * 40)
    right = [result.detail == done.results[1].detail for result in done.results[2:]]
    assert 8 <= right.count(False) <= 32


def bad_parameters() -> list[tuple[str, dict[str, object]]]:
    """One for each parameter, missing, and some that are impossible."""
    given: list[tuple[str, dict[str, object]]] = [(name, {name: None}) for name in BOARD]
    wrong: dict[str, list[object]] = {
        "page_bytes": [256, 2000, 32768],
        "oob_bytes": [8, 1024],
        "pages_per_block": [8, 48, 1024],
        "blocks": [0, 65537],
        "first_block": [128],
        "partition_blocks": [0, 129],
        "transfer": ["words"],
        "ecc": ["bch"],
        "ecc_step_bytes": [128, 4096, 600],
        "ecc_strength_bits": [0, 65],
        "wait": ["forever"],
        "bits_per_cell": [0, 4],
        "pairing": ["dist4"],
        "slc_mode": [1],
        "bad_blocks": [129],
        "program_fail_ppm": [1_000_001],
        "erase_fail_ppm": [1_000_001],
        "bit_flip_ppm": [1_000_001],
        "bit_flips_max": [0, 65],
    }
    given += [(name, {name: value}) for name, values in wrong.items() for value in values]
    given.append(("oob_bytes", {"ecc_strength_bits": 24}))
    given.append(("bits_per_cell", {"pairing": "dist3"}))
    given.append(("cache_read_ns", {"cache_read_ns": 3_000, "transfer": "page"}))
    given.append(("ecc_step_bytes", {"ecc": "software-subpage", "ecc_step_bytes": 1024}))
    return given


def test_bad_parameters_are_refused_in_one_line(boot: Boot) -> None:
    cases = bad_parameters()
    done = boot([load(change) for _, change in cases], load(), "unload", fail=True)
    lines = done.module_lines()
    assert [result.error for result in done.results] == [errno.EINVAL] * len(cases) + [0, 0]
    assert [re.split(r"[= ]", line)[0] for line in lines] == [name for name, _ in cases]


def test_loads_again_and_again_and_not_away_under_a_mount(boot: Boot) -> None:
    once = [load(SOFTWARE, bad_blocks=1), "fresh jffs2", "put a 100000 1", "ctl record"]
    once += ["put b 100000 2", "unmount", "ctl rewind 9 9", f"copy {DEBUGFS}/chip /host/chip"]
    script = 8 * [*once, "unload"] + [load(), "fresh jffs2", "unload", "unmount", "unload"]
    done = boot(script, fail=True, loud=True)
    errors = [result.error for result in done.results]
    assert errors == [0] * (8 * 9 + 2) + [errno.EAGAIN, 0, 0]
    assert "page size: 2048" in done.console  # so warnings are there too
    assert "still has objects" not in done.console
    assert "WARNING" not in done.console


def test_the_same_script_takes_the_same_time(boot: Boot) -> None:
    script = [load(SOFTWARE), "fresh ubifs", "put a 300000 1", "unmount", COPY_LOG]
    first = boot(script).operations()
    assert first == boot(script).operations()
