"""What `space` says of a partition is what df, dmesg and a full file system say on a real kernel.

Chips of the catalogue by Linux' own drivers, and the emulated board's; partitions from the smallest
that mounts to the whole chip; UBIFS, JFFS2 and YAFFS2 of Linux 6.1 in user-mode Linux. `--long`
runs all of the points (evidence/space.md has their results), without it a few.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from flashbed.answers.space.fastmap import fastmap_blocks
from flashbed.api.fitting import filled, in_blocks, ledger, smallest_mount, volume_stack
from flashbed.api.fitting_image import make_image
from flashbed.base.paths import cache_folder
from flashbed.plan.stacks import one_stack
from flashbed.stack.stack import Stack
from flashbed.targets.base import Program
from flashbed.targets.guest.image_tools import image_tool
from flashbed.targets.sim import SimTarget
from flashbed.targets.uml.kernel_options import FASTMAP
from flashbed.targets.uml.uml_program import prepare
from flashbed.targets.uml.uml_target import UmlTarget
from tests.agreement.test_exec import FLASHBED
from tests.support import PROJECT

pytestmark = [pytest.mark.uml, pytest.mark.extension, pytest.mark.timeout(600)]

CHIPS = (
    "board=emulated", "board=emulated-4k", "chip=MT29F1G01ABAFD", "chip=W25N01GV",
    "chip=MT29F4G08ABADA", "chip=K9F2G08U0C", "chip=S34ML01G1", "chip=TC58CVG2S0HRAIJ",
    "chip=MX35LF4GE4AD", "chip=GD5F1GQ4UExxG", "chip=HY27UF082G2B", "chip=GD5F1GQ5UExxG",
)  # fmt: skip
FILE_SYSTEMS = ("ubifs", "jffs2", "yaffs2")
TIMES = ("chip.read_array_ns=60000", "chip.program_array_ns=250000", "chip.erase_array_ns=2000000")
"""Of parts that publish none; the space does not depend on them."""
BEYOND = (0, 1, 13, 97, 300)
"""Blocks more than the smallest partition has."""
WORDS = {
    "journal_bytes": r"journal size (\d+) bytes",
    "main_bytes": r"FS size: (\d+) bytes",
    "root_bytes": r"reserved for root: (\d+) bytes",
    "leb_bytes": r"LEB size: (\d+) bytes",
    "bad_block_reserve": r"PEBs reserved for bad PEB handling: (\d+)",
}


@dataclass(frozen=True)
class Point:
    """A chip or board, a file system and blocks beyond the smallest partition; None for all."""

    chip: str
    fs: str
    beyond: int | None

    def __str__(self) -> str:
        return f"{self.chip.partition('=')[2]}-{self.fs}-{self.beyond}"

    @property
    def settings(self) -> tuple[str, ...]:
        """As `--set` has them."""
        times = () if self.chip.startswith("board") else TIMES
        chosen = one_stack((self.chip, *times, f"fs={self.fs}"))
        least, chip = smallest_mount(chosen), chosen.board.chip.blocks
        assert least is not None
        blocks = chip if self.beyond is None else min(chip, least + self.beyond)
        return (self.chip, *times, f"fs={self.fs}", f"partition.blocks={blocks}")


POINTS = [
    Point(*each)
    for each in ((c, f, b) for c in CHIPS for f in FILE_SYSTEMS for b in (*BEYOND, None))
]
SAMPLE = [
    Point("chip=W25N01GV", "ubifs", 97),
    Point("board=emulated-4k", "jffs2", 13),
    Point("board=emulated", "yaffs2", 0),
    Point("board=emulated", "ubifs", None),
]


def sampled(points: Sequence[Any], sample: Sequence[Any]) -> list[Any]:
    """Points as parameters; those that are not of the sample are run with `--long`."""
    return [
        pytest.param(each, id=str(each), marks=[] if each in sample else [pytest.mark.long])
        for each in points
    ]


def said(*settings: str, here: Path | None = None) -> tuple[list[int], dict[str, int]]:
    """Size, used and available bytes of df, and numbers of the kernel's log."""
    words = [word for each in settings for word in ("--set", each)]
    # The working folder's layouts are found unless FLASHBED_ROOT is set.
    env = dict(os.environ) if here else {**os.environ, "FLASHBED_ROOT": str(PROJECT)}
    ran = subprocess.run(
        [FLASHBED, "exec", *words, "--", "sh", "-c", "df -k . | tail -1; dmesg"],
        capture_output=True, check=False, timeout=250, stdin=subprocess.DEVNULL, text=True,
        env=env, cwd=here,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    df, *log = ran.stdout.splitlines()
    found = {}
    for name, pattern in WORDS.items():
        numbers = [each[1] for line in log if (each := re.search(pattern, line))]
        if numbers:
            found[name] = int(numbers[-1])
    return [int(word) << 10 for word in df.split()[1:4]], found


def given_to_program(stack: Stack) -> int:
    """What is available once exec has given the folder to the program, a change of its mode."""
    program = Program(
        case_id="given", stack=stack, prepare="flashbed-ops 2\nprepared\n",
        body="flashbed-ops 2\nmark\nchmod . 755\nsync\n", record_flush=True,
    )  # fmt: skip
    (batch,) = SimTarget().run([program])
    return int(batch.cases["left_bytes"][0])


@pytest.mark.parametrize("point", sampled(POINTS, SAMPLE))
def test_df_and_the_log_say_what_space_says(point: Point) -> None:
    (size, _, available), log = said(*point.settings)
    stack = one_stack(point.settings).in_user_mode
    found = ledger(stack)
    assert (size, available) == (found.size_bytes, given_to_program(stack))
    told = {name: found.facts[name] for name in log}
    assert told == log
    parts = sum(part.bytes for part in found.parts)
    assert parts + found.available_bytes == found.partition_bytes


VOLUME = """title = "one volume"
source = "a test"
writes_to = "data"

[[volume]]
name = "data"
size = {mib}
holds = "ubifs"
"""


@pytest.mark.parametrize(
    ("chip", "mib"),
    [("chip=W25N01GV", 4), ("chip=W25N01GV", 17), ("board=emulated", 3), ("board=emulated", 29),
     ("board=emulated-4k", 9), ("board=emulated-4k", 40)],
)  # fmt: skip
def test_a_volume_of_a_partition_has_the_df_that_space_says(
    chip: str, mib: int, tmp_path: Path
) -> None:
    (tmp_path / "boards/layouts").mkdir(parents=True)
    (tmp_path / "boards/layouts/one.toml").write_text(VOLUME.format(mib=mib))
    chosen = (chip, "partition.blocks=400")
    (size, _, available), log = said(*chosen, "layout=one", here=tmp_path)
    stack = one_stack(chosen).in_user_mode
    volume, _, _ = volume_stack(stack, mib << 20)
    found = ledger(stack, volume)
    assert (size, available) == (found.size_bytes, given_to_program(volume))
    del log["bad_block_reserve"]
    assert {name: found.facts[name] for name in log} == log


# The kernel with a fastmap is built on first use, in minutes.
@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("chip", ["chip=W25N01GV", "board=emulated-4k"])
@pytest.mark.parametrize("blocks", [110, 640])
def test_a_kernel_with_fastmap_keeps_two_blocks_more(
    chip: str, blocks: int, tmp_path: Path
) -> None:
    prepare("6.1", print, [FASTMAP])
    (tmp_path / "boards/layouts").mkdir(parents=True)
    whole = VOLUME.format(mib='"rest"')
    (tmp_path / "boards/layouts/one.toml").write_text(whole)
    on_fastmap = (f"partition.blocks={blocks}", "layout=one", "layout.fastmap=1")
    (size, _, available), _ = said(chip, *on_fastmap, here=tmp_path)
    stack = one_stack((chip, f"partition.blocks={blocks}")).in_user_mode
    kept = fastmap_blocks(blocks, ledger(stack).facts["leb_bytes"])
    without = in_blocks(stack, blocks - kept)
    assert (size, available) == (ledger(without).size_bytes, given_to_program(without))


@dataclass(frozen=True)
class Full:
    """A file system that is filled with data of which this share is zeroes."""

    chip: str
    fs: str
    compressor: str
    beyond: int
    zeroes_pct: int

    def __str__(self) -> str:
        chip = self.chip.partition("=")[2]
        return f"{chip}-{self.fs}-{self.compressor}-{self.beyond}-{self.zeroes_pct}"

    @property
    def stack(self) -> Stack:
        """The stack of its partition."""
        own = () if self.compressor == "default" else (f"compressor={self.compressor}",)
        chosen = one_stack((self.chip, f"fs={self.fs}", *own))
        least = smallest_mount(chosen)
        assert least is not None
        return in_blocks(chosen, least + self.beyond)


FILLED = [
    Full(chip, fs, compressor, beyond, zeroes_pct)
    for chip in ("board=emulated", "board=emulated-4k", "chip=MT29F1G01ABAFD", "chip=W25N01GV")
    for fs, compressors in (
        ("jffs2", ("default", "none", "lzo", "zlib")),
        ("yaffs2", ("default",)),
        ("ubifs", ("default", "none", "lzo", "zlib", "zstd")),
    )
    for compressor in compressors
    for beyond in (13, 97)
    for zeroes_pct in (0, 50, 80)
]
FEW_FILLED = [
    Full("board=emulated", "jffs2", "default", 13, 50),
    Full("board=emulated", "yaffs2", "default", 13, 0),
    Full("chip=W25N01GV", "ubifs", "default", 13, 50),
]  # fmt: skip


@pytest.mark.parametrize("full", sampled(FILLED, FEW_FILLED))
def test_a_full_file_system_has_as_many_bytes_of_files(full: Full, tmp_path: Path) -> None:
    real = filled(full.stack, full.zeroes_pct, target=UmlTarget(work_dir=tmp_path))
    assert filled(full.stack.in_user_mode, full.zeroes_pct) == real


@pytest.mark.parametrize(
    ("file_bytes", "max_lebs", "lebs", "line"),
    [
        (31_760_000, 256, 272, "max_leb_cnt too low (272 needed): give it -c 656"),
        (87_060_000, 2047, 726, "the image has 726 LEBs, the volume 656: 70 LEBs"),
    ],
)
def test_mkfs_ubifs_asks_what_users_with_boards_published(
    file_bytes: int, max_lebs: int, lebs: int, line: str, tmp_path: Path
) -> None:
    """Roots of random bytes as large as theirs, for 85 MiB of a chip of 1 Gbit."""
    (tmp_path / "root").write_bytes(random.Random(1).randbytes(file_bytes))
    stack = one_stack(("chip=W25N01GV", "partition.blocks=680"))
    made = make_image(stack, ledger(stack), tmp_path, max_lebs=max_lebs, say=print)
    assert made.needs is not None
    assert made.needs.lebs == lebs
    assert line in made.refused[0]


def test_a_journal_of_mkfs_ubifs_is_larger_than_the_main_area(tmp_path: Path) -> None:
    """Published: 8,388,608 bytes refused where 3,555,328 are there, 28 LEBs of a volume of 39."""
    (tmp_path / "root").write_bytes(bytes(1_000_000))
    stack = one_stack(("chip=W25N01GV", "partition.blocks=680"))
    small = partial(make_image, stack, ledger(stack), tmp_path, volume_lebs=39, say=print)
    made = small(max_lebs=2047)
    assert made.refused == [
        "too large journal size (8,388,608 bytes), only 3,555,328 bytes available in the main"
        " area: give mkfs.ubifs -c 39"
    ]
    assert small().fits


def test_df_of_596_lebs_is_what_a_user_saw() -> None:
    """`df -h` 64.8M; a partition of 620 blocks of a chip of 1 Gbit has them."""
    (size, _, _), log = said("chip=MT29F1G01ABAFD", "partition.blocks=620")
    assert size == 66_400 << 10
    assert log["leb_bytes"] == 126_976
    assert f"{size / 2**20:.1f}M" == "64.8M"


@pytest.mark.parametrize(("spare_pct", "lebs"), [(77, 39), (250, 77), (254, 78)])
def test_linux_mounts_an_image_where_space_says_so(
    spare_pct: int, lebs: int, tmp_path: Path
) -> None:
    """A root of 22 LEBs with a journal of 8 MiB, on volumes that are larger by so much."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(random.Random(1).randbytes(1_000_000))
    of_chip = ("chip=W25N01GV", "partition.blocks=400")
    stack = one_stack(of_chip)
    given = {"volume_lebs": lebs, "max_lebs": 2047}
    made = make_image(stack, ledger(stack), tmp_path / "root", **given, say=print)
    assert made.needs is not None
    assert (made.needs.lebs, made.needs.volume_lebs_min) == (22, 78)
    assert made.needs.lebs * (100 + spare_pct) // 100 <= lebs
    words = [*image_tool("mkfs.ubifs", cache_folder(), print), *made.command.split()[1:-1]]
    subprocess.run([*words, str(tmp_path / "image")], check=True)
    chosen = (*of_chip, "layout=ubifs-ro-ubifs-rw", f"layout.spare_pct={spare_pct}")
    ran = subprocess.run(
        [FLASHBED, "exec", *(word for each in chosen for word in ("--set", each)), "--image",
         f"rootfs={tmp_path}/image", "--", "cat", "/sys/class/ubi/ubi0_0/reserved_ebs"],
        capture_output=True, check=False, timeout=250, stdin=subprocess.DEVNULL, text=True,
        env={**os.environ, "FLASHBED_ROOT": str(PROJECT)},
    )  # fmt: skip
    assert (ran.returncode == 0) == made.fits
    assert ran.stdout == (f"{lebs}\n" if made.fits else "")
    assert made.fits or "mounting ubifs of volume rootfs: Invalid argument" in ran.stderr
