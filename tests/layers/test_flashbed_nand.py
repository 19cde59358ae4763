"""kernel/flashbed_nand on user-mode Linux: what docs/flashbed_nand.md promises, tried in a guest.

The guest is the kernel of `find_kernel` with tests/guest/nand_guest.c as process 1, which obeys a
script and writes a line of result for each of its lines; the host's folder is the guest's /host.
Time travel makes a guest's time its waits and nothing else, so times are compared to arithmetic.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from flashbed.targets.emulator.initramfs import archive

PROJECT = Path(__file__).resolve().parents[2]
DEBUGFS = "/sys/kernel/debug/flashbed_nand"
CLOCK_NS = 256  # one reading of the guest's clock costs this, and is rounded down to it
FILE_SYSTEMS = ("jffs2", "ubifs")
UBIFS_BLOCK_BYTES = 16384  # it takes no smaller ones
ARGUMENTS = ("initrd=initramfs", "time-travel=inf-cpu", "time-travel-start=1577836800")
CONSOLE = ("con=null", "con0=fd:0,fd:1", "ssl=null")


def find_kernel() -> Path | None:
    """A built user-mode Linux tree (with `linux` in it), or nothing."""
    given = os.environ.get("FLASHBED_UML_TREE")
    return Path(given) if given and (Path(given) / "linux").is_file() else None


@dataclass(frozen=True)
class Result:
    """What the guest says of one line of the script."""

    command: str
    error: int
    took_ns: int
    detail: str

    @property
    def lines(self) -> list[str]:
        """A text that was shown, by lines."""
        return [line for line in self.detail.split("|") if line]


@dataclass(frozen=True)
class Operation:
    """A record of the module's log."""

    start_ns: int
    duration_ns: int
    page: int
    column: int
    length: int
    kind: int
    flags: int
    task: str


READ, PROGRAM, ERASE = range(3)
FAILED, CORRECTED, BREACH = 1, 2, 4


@dataclass(frozen=True)
class Booted:
    """A boot that is over."""

    results: list[Result]
    console: str
    host: Path

    def operations(self, name: str = "log") -> list[Operation]:
        """The log that the script copied to /host/NAME."""
        data = (self.host / name).read_bytes()
        assert len(data) % 48 == 0
        rows = struct.iter_unpack("<QQIIIBBH16s", data)
        assert all(row[7] == 0 for row in rows)
        return [
            Operation(*row[:7], row[8].split(b"\0")[0].decode())
            for row in struct.iter_unpack("<QQIIIBBH16s", data)
        ]

    def module_lines(self) -> list[str]:
        """What the module printed."""
        return re.findall(r"flashbed_nand: ([^\r\n]*)", self.console)


Boot = Callable[..., Booted]
BOARD: dict[str, object] = {
    "page_bytes": 2048,
    "oob_bytes": 64,
    "pages_per_block": 64,
    "blocks": 128,
    "first_block": 0,
    "partition_blocks": 128,
    "read_array_ns": 25_000,
    "program_array_ns": 200_000,
    "erase_array_ns": 500_000,
    "bus_read_ns": 105_000,
    "bus_program_ns": 105_001,
    "transfer": "bytes",
    "column_change_ns": 700,
    "ecc": "hardware-page",
    "ecc_step_bytes": 512,
    "ecc_strength_bits": 4,
    "wait": "busy",
}
SOFTWARE: dict[str, object] = {"ecc": "software-subpage", "ecc_step_bytes": 256}
NONE: dict[str, object] = {"ecc": "none"}
HARDWARE: dict[str, object] = {}
ECCS = {"software": SOFTWARE, "hardware": HARDWARE, "none": NONE}


def load(*changes: dict[str, object], **more: object) -> str:
    """The line that loads the module; a parameter that is None is left out."""
    given: dict[str, object] = dict(BOARD)
    for change in (*changes, more):
        given.update(change)
    words = [f"{key}={value}" for key, value in given.items() if value is not None]
    return " ".join(["load /modules.d/flashbed_nand.ko", *words])


def numbers(shown: Result) -> dict[str, int]:
    """`counts`."""
    return {line.split()[0]: int(line.split()[1]) for line in shown.lines}


SHOW_COUNTS = f"show {DEBUGFS}/counts"
SHOW_BREACHES = f"show {DEBUGFS}/breaches"
COPY_LOG = f"copy {DEBUGFS}/log /host/log"
SUM_CHIP = f"sum {DEBUGFS}/chip"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, Path]:
    """The kernel, and the module and the guest's program built for it."""
    tree = find_kernel()
    if tree is None or shutil.which("make") is None:
        pytest.skip("no user-mode Linux tree (FLASHBED_UML_TREE) to build the module against")
    folder = tmp_path_factory.mktemp("flashbed_nand")
    shutil.copytree(PROJECT / "kernel" / "flashbed_nand", folder / "module")
    built = subprocess.run(
        ["make", "-C", str(tree), "ARCH=um", f"M={folder / 'module'}", "W=1", "modules"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "warning" not in built.stderr.replace("modpost: suppressed", "")
    guest = folder / "guest"
    sources = [PROJECT / "tests" / "guest" / "nand_guest.c", PROJECT / "agent" / "fs.c"]
    flags = ["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-std=gnu11"]
    target = ["-target", "x86_64-linux-musl", f"-I{PROJECT / 'agent'}"]
    compiled = subprocess.run(
        [sys.executable, "-m", "ziglang", "cc", *flags, *target, "-o", str(guest)]
        + [str(source) for source in sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
    image = archive(guest.read_bytes(), [folder / "module" / "flashbed_nand.ko"], {})
    return tree / "linux", image, folder


@pytest.fixture
def boot(made: tuple[Path, bytes, Path], tmp_path: Path) -> Boot:
    """Boots a guest with a script and returns when it is off."""
    linux, image, _ = made

    def run(
        *script: str | Sequence[str], memory: str = "256M", fail: bool = False, loud: bool = False
    ) -> Booted:
        """`fail`: lines of the script may fail; `loud`: warnings go to the console as well."""
        lines = [line for part in script for line in ([part] if isinstance(part, str) else part)]
        host = tmp_path / "host"
        host.mkdir(exist_ok=True)
        (host / "script").write_text("\n".join(lines) + "\n")
        (host / "result").unlink(missing_ok=True)
        (tmp_path / "initramfs").write_bytes(image)
        with (tmp_path / "console").open("wb") as console:
            subprocess.run(
                [str(linux), f"mem={memory}", *ARGUMENTS, *CONSOLE]
                + [f"host={host}", "loglevel=8" if loud else "quiet"],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                cwd=tmp_path,
                timeout=300,
                check=False,
            )
        said = (tmp_path / "console").read_text(errors="replace")
        results = []
        for row in (host / "result").read_text().splitlines():
            _, command, error, took_ns, detail = row.split(" ", 4)
            results.append(Result(command, int(error), int(took_ns), detail))
        assert len(results) == len(lines), said
        assert "Call Trace" not in said or fail, said
        for line, result in zip(lines, results, strict=True):
            code = errno.errorcode.get(result.error, "")
            assert fail or not result.error, f"{line}: {code} {result.detail}\n{said}"
        return Booted(results, said, host)

    return run


GEOMETRIES = {
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
    expected = 2 * [(READ, 0, 2112, 130_000)]
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
        assert rows[block] == [str(block), str(stood), "worn"]
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
    assert any(line.endswith("bad") for line in done.results[-1].lines)


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
    script = [params, f"fresh {fs}", "put a 300000 5", "unmount"]
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
    """Reads it as docs/flashbed_nand.md says."""
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
    assert erases >= 126


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


def bad_parameters() -> list[tuple[str, dict[str, object]]]:
    """One for each parameter, missing, and some that are impossible."""
    given: list[tuple[str, dict[str, object]]] = [(name, {name: None}) for name in BOARD]
    wrong: dict[str, list[object]] = {
        "page_bytes": [256, 2000, 32768],
        "oob_bytes": [8, 1024],
        "pages_per_block": [8, 48, 512],
        "blocks": [0, 65537],
        "first_block": [128],
        "partition_blocks": [0, 129],
        "transfer": ["words"],
        "ecc": ["bch"],
        "ecc_step_bytes": [128, 4096, 600],
        "ecc_strength_bits": [0, 65],
        "wait": ["forever"],
        "bad_blocks": [129],
        "program_fail_ppm": [1_000_001],
        "erase_fail_ppm": [1_000_001],
        "bit_flip_ppm": [1_000_001],
        "bit_flips_max": [0, 65],
    }
    given += [(name, {name: value}) for name, values in wrong.items() for value in values]
    given.append(("oob_bytes", {"ecc_strength_bits": 24}))
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
