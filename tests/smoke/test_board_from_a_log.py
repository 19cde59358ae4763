"""A profile from a board's boot log, in a file or over ssh."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from flashbed.base.errors import InputError, RunError
from flashbed.cli import app
from flashbed.stack.imported.boot_log import KHZ, logged_board
from flashbed.stack.profiles import load_board

ROUTER = """
[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x410fd034]
[    0.000000] Linux version 6.6.54 (builder@host) (aarch64-openwrt-linux-musl-gcc)
[    0.000000] Memory: 238148K/262144K available (9088K kernel code, 886K rwdata)
[    1.1] spi-nand spi0.0: Macronix SPI NAND was found.
[    1.2] spi-nand spi0.0: 512 MiB, block size: 256 KiB, page size: 4096, OOB size: 128
[    1.4] Creating 2 MTD partitions on "spi0.0":
[    1.5] 0x000000000000-0x000000100000 : "bl2"
[    1.8] 0x000000580000-0x000008000000 : "ubi"
[    2.9] ubi0: attached mtd1 (name "ubi", size 122 MiB)
"""
GATEWAY = """
Linux version 4.1.15 (oe@host)
CPU: ARMv7 Processor [410fc075] revision 5 (ARMv7), cr=10c53c7d
Memory: 505124K/524288K available (6891K kernel code)
nand: device found, Manufacturer ID: 0x2c, Chip ID: 0xda
nand: Micron MT29F2G08ABAEAWP
nand: 256 MiB, SLC, erase size: 128 KiB, page size: 2048, OOB size: 64
0x000000000000-0x000000400000 : "boot"
0x000000400000-0x000010000000 : "rootfs"
"""
CLOCK = f"{KHZ} 1300000\n"


def new(*words: str) -> str:
    """What the command says besides the file's name."""
    done = CliRunner().invoke(app, ["board", "new", "mine", *words], catch_exceptions=True)
    if done.exception is not None:
        raise done.exception
    return done.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(*words: str) -> str:
    with pytest.raises(InputError) as raised:
        new(*words)
    return str(raised.value)


def test_a_log_says_chip_processor_memory_and_the_partition_of_ubi() -> None:
    Path("boot.log").write_text(ROUTER + CLOCK)
    new("--log", "boot.log", "--chip", "W25N04KV", "--processor", "cortex-a7@100MHz", "--ram", "64")
    text = Path("boards/mine.toml").read_text()
    assert "ram_mib = 64\ncpu_mhz = 100" in text
    Path("boards/mine.toml").unlink()
    new("--log", "boot.log")
    text = Path("boards/mine.toml").read_text()
    assert 'part = "MX35LF4GE4AD"' in text
    assert "ram_mib = 256\ncpu_mhz = 1300" in text
    assert 'source = "ubi, boot.log"\nfirst_block = 22\nblocks = 490\n' in text
    assert "pointer_bytes = 8" in text


def test_the_kernel_of_a_log_without_a_profile_is_warned_of() -> None:
    Path("boot.log").write_text((ROUTER + CLOCK).replace("6.6.54", "6.9.2"))
    said = new("--log", "boot.log")
    assert "flashbed: boot.log: Linux 6.9.2\n" in said
    assert "flashbed: WARNING: Linux 6.9.2 has no profile of its own: compare 6.6, the" in said


def test_what_a_log_leaves_open_is_asked_for_by_its_option() -> None:
    Path("boot.log").write_text(ROUTER)
    assert refusal("--log", "boot.log") == (
        "boot.log: does not say its clock; --processor cortex-a53@NMHz does"
    )
    Path("late.log").write_text("[9.0] random: crng init done\n")
    assert refusal("--log", "late.log") == (
        "late.log: no line of its NAND; --chip CHIP says which it has"
    )
    assert refusal("--log", "late.log", "--chip", "W25N01GV") == (
        "late.log: does not name its processor; --processor CORE@NMHz does"
    )
    Path("boot.log").write_text(ROUTER.replace("Macronix", "Winbond").replace("512 MiB", "1 MiB"))
    assert "boot.log: none of the catalogue fit" in refusal("--log", "boot.log")
    assert refusal("--chip", "W25N01GV").startswith("--processor CORE@NMHz: core and clock")
    assert refusal("--log", "boot.log", "--on", "ssh://x").startswith("--log FILE, --on ssh")
    assert not Path("boards").exists()


def test_a_partition_is_chosen_by_name_and_has_to_fit_the_chip() -> None:
    Path("boot.log").write_text(GATEWAY)
    machine = ("--log", "boot.log", "--processor", "cortex-a7@528MHz")
    assert refusal(*machine, "--partition", "data") == "--partition data: the log has boot, rootfs"
    assert "ends beyond the chip" in refusal(
        *machine, "--chip", "W25N01GV", "--partition", "rootfs"
    )
    new(*machine, "--partition", "rootfs")
    text = Path("boards/mine.toml").read_text()
    assert 'part = "MT29F2G08ABAEA"' in text
    assert "first_block = 32\nblocks = 2_016\n" in text


def test_without_a_partition_that_it_can_tell_the_whole_chip_is_meant() -> None:
    found = logged_board(GATEWAY)
    assert (found.core, found.mhz, found.ram_mib, found.release) == (
        "cortex-a7", None, 512, "4.1.15"
    )  # fmt: skip
    assert found.partition(None, 1 << 28) is None


def test_a_chip_that_is_not_finished_is_left_out() -> None:
    Path("boot.log").write_text(ROUTER + CLOCK)
    CliRunner().invoke(app, ["chip", "new", "MYCHIP"])
    new("--log", "boot.log")
    assert 'part = "MX35LF4GE4AD"' in Path("boards/mine.toml").read_text()


def test_mips_names_core_and_clock() -> None:
    found = logged_board("CPU0 revision is: 0001992f (MIPS 1004Kc)\nCPU Clock: 880MHz\n")
    assert (found.core, found.mhz) == ("mips-1004kc", 880)


def test_a_board_over_ssh_is_asked_for_its_log_and_clock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = folder / "client"
    client.write_text(f"#!/bin/sh\ncat <<'END'\n{ROUTER}{CLOCK}END\n")
    client.chmod(0o755)
    monkeypatch.setenv("FLASHBED_SSH", str(client))
    new("--on", "ssh://root@router", "--chip", "W25N01GV", "--partition", "ubi")
    board = load_board("mine")
    assert (board.board.cpu_mhz, board.partition.first_block) == (1300, 44)
    assert board.board.source is not None
    assert "ssh://root@router" in board.board.source
    client.write_text("#!/bin/sh\necho 'dmesg: read kernel buffer failed' >&2\nexit 1\n")
    with pytest.raises(RunError, match=r"dmesg: read kernel buffer failed; save the log of a boot"):
        new("--on", "ssh://root@router")
