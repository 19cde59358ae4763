"""A boot in the simulator reads what the kernel reads: UBI, squashfs, UBIFS, the layer, files.

`python -m tests.support.booted` boots as many roots as one wants; a few are here.
"""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pytest

from tests.agreement.test_exec import pytestmark
from tests.support.booted import KINDS, Booted, booted
from tests.support.exec_and_replay import FLASHBED
from tests.support.squashfs_prices import draw_root, times

__all__ = ["pytestmark"]

SEEDS, ALL_SEEDS = (1, 2, 4, 7), 64
FASTMAP_SEEDS = (1, 2, 10)
FILES_READ = 24
WHOLE_KIB = 64
"""Blocks up to which no request of the kernel is split by where its memory is."""
READS_OFF_MAX = 0.01
"""Of the reads of a root's files where blocks are larger (sim/src/squashfs/README.md)."""


def _check(row: Booted) -> None:
    """All parts are the same, but for the requests that memory splits."""
    assert [found for found, _ in row.simulated_files] == [found for found, _ in row.kernel_files]
    for name, kernel in row.kernel.items():
        simulated = row.simulated[name]
        if name.startswith("read ") and row.block_kib > WHOLE_KIB:
            assert simulated[1:] == kernel[1:] == (0, 0)
            assert abs(simulated[0] - kernel[0]) <= READS_OFF_MAX * kernel[0], row.setting
        else:
            assert simulated == kernel, (row.setting, name)
    if row.block_kib <= WHOLE_KIB:
        assert row.equal, row.setting


def _check_attach(row: Booted) -> None:
    """Attach and mounts are the same, and all of it where memory splits no request."""
    for name, kernel in row.kernel.items():
        assert name.startswith("read ") or row.simulated[name] == kernel, (row.setting, name)
    assert row.equal or row.block_kib > WHOLE_KIB, row.setting


@pytest.mark.parametrize("seed", SEEDS)
def test_a_boot_in_the_simulator_does_what_the_kernel_does(seed: int) -> None:
    _check(booted(seed))


@pytest.mark.timeout(300, func_only=True)
@pytest.mark.usefixtures("programs_with_fastmap")
@pytest.mark.parametrize("seed", FASTMAP_SEEDS)
def test_an_attach_by_a_fastmap_does_what_the_kernel_does(seed: int) -> None:
    _check_attach(booted(seed, fastmap=True))


@pytest.mark.long
@pytest.mark.timeout(3_600, func_only=True)
@pytest.mark.usefixtures("programs_with_fastmap")
def test_attaches_of_many_devices_by_a_fastmap_do_what_the_kernel_does() -> None:
    for seed in range(ALL_SEEDS):
        _check_attach(booted(seed, fastmap=True))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_boot_on_mtd_reads_sector_by_sector_as_the_kernel_does(seed: int) -> None:
    row = booted(seed, on_mtd=True)
    assert row.equal, row.setting


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_boots_of_many_roots_do_what_the_kernel_does() -> None:
    for seed in range(ALL_SEEDS):
        _check(booted(seed))
        assert booted(seed, on_mtd=True).equal


def _said(*words: str, here: Path) -> str:
    ran = subprocess.run(
        [FLASHBED, "boot", "--on", "sim", *words], cwd=here, capture_output=True, text=True,
        check=False, timeout=100, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ran.returncode in (1, 2)
    return (ran.stdout + ran.stderr).strip()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "layout=erofs-overlay-ubifs"), "erofs of volume rootfs: the simulator reads"),
        (("--set", "layout=ubifs-ro-ubifs-rw"), "ubifs of volume"),
        (("--set", "layout=two-slots", "--cuts", "3"), "--cuts: the simulator boots an unchanged"),
        (("--set", "layout=two-slots", "--off", "unclean"), "--off unclean: the simulator boots"),
        (("--set", "layout=two-slots", "--", "true"), "COMMAND: the simulator boots an unchanged"),
        ((), "--on sim: boots a layout"),
    ],
)  # fmt: skip
def test_what_the_simulator_cannot_boot_is_refused_in_a_line(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    found = _said(*words, here=tmp_path)
    assert said in found
    assert len(found.splitlines()) == 1


def test_an_image_that_is_broken_is_refused_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "broken").write_bytes(b"hsqs" + bytes(5000))
    found = _said("--set", "layout=squashfs-overlay-ubifs", "--image", "broken", here=tmp_path)
    assert "squashfs: format 0.0, not 4.0" in found
    assert len(found.splitlines()) == 1


def test_a_boot_is_the_same_every_time(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(bytes(range(256)) * 900)
    (tmp_path / "list").write_text("file\n")
    words = ["--format", "json", "--set", "layout=two-slots", "--image", "root", "--read", "list"]
    first, again = (
        subprocess.run(
            [FLASHBED, "boot", "--on", "sim", *words], cwd=tmp_path, capture_output=True,
            check=True, timeout=100,
        ).stdout
        for _ in range(2)
    )  # fmt: skip
    assert first == again
    assert all(kind in first.decode() for kind in KINDS)


@pytest.mark.emulator
@pytest.mark.parametrize(("compressor", "off_max"), [("lz4", 0.05), ("xz", 0.20)])
def test_a_boot_takes_about_as_long_as_on_the_board(
    compressor: str, off_max: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of files that the prices were not found with (evidence/layouts.md)."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    files = draw_root(1, tmp_path)[:FILES_READ]
    settings = [f"layout.compressor={compressor}", "layout.block_kib=64"]
    board, simulated = (times(on, settings, tmp_path, files) for on in ("emulator", "sim"))
    assert [busy for *_, busy in simulated] == [busy for *_, busy in board]
    whole = [sum(ns for _, ns, _ in rows) for rows in (board, simulated)]
    assert whole[1] == pytest.approx(whole[0], rel=off_max)


def test_a_board_without_prices_takes_the_flashs_time_alone(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_bytes(b"a line\n" * 9_000)
    both = {"emulated": "the processor's time and", "emulated-4k": "the flash's time alone"}
    for board, said in both.items():
        ran = subprocess.run(
            [FLASHBED, "boot", "--on", "sim", "--set", f"board={board}", "--set",
             "layout=squashfs-overlay-ubifs", "--image", "root"],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert said in ran.stdout
