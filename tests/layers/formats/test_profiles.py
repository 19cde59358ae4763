"""A profile is complete or refused, in one line that names the file and the key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flashbed.base.paths import cache_folder
from flashbed.stack.profiles import (
    ProfileError,
    board_names,
    kernel_names,
    load_board,
    load_kernel,
)
from flashbed.targets.uml.uml_kernel import cached_kernel


def change(small: Path, old: str, new: str) -> None:
    file = small / "boards" / "omap3evm.toml"
    text = file.read_text()
    assert text.count(old) >= 1, old
    file.write_text(text.replace(old, new, 1))


def test_a_copy_with_other_values_is_another_board_to_the_simulator() -> None:
    board = load_board("emulated")
    first = board.sim_json
    other = board.model_copy(update={"partition": board.partition.model_copy(update={"blocks": 9})})
    assert other.sim_json != first
    assert board.sim_json == first
    assert other.path == board.path


def test_every_shipped_kernel_is_complete() -> None:
    assert {
        "2.6.29",
        "2.6.29-apf27",
        "2.6.29-apf27-wbuf-verify",
        "2.6.29-uncompressed",
        "2.6.37",
        "2.6.37-64bit",
        "3.12",
        "3.13",
        "4.0",
        "5.4",
        "5.10",
        "5.15",
        "6.1",
        "6.1-no-summary",
        "6.1-wbuf-verify",
        "6.6",
        "6.12",
        "7.3",
    } == set(kernel_names())
    assert all(load_kernel(name).sim_json for name in kernel_names())


def test_a_kernel_that_is_only_real_is_not_simulated(small: Path) -> None:
    file = small / "boards" / "kernels" / "6.12.toml"
    file.write_text(file.read_text().replace('["sim", "uml", "emulator"]', '["uml"]'))
    with pytest.raises(ProfileError, match=r"6\.12\.toml: Linux 6\.12 is not simulated"):
        _ = load_kernel("6.12").sim_json


def test_only_user_mode_linux_states_how_user_mode_linux_is_configured(small: Path) -> None:
    file = small / "boards" / "kernels" / "6.12.toml"
    file.write_text(file.read_text().replace('["sim", "uml", "emulator"]', '["sim"]'))
    with pytest.raises(ProfileError, match=r"6\.12\.toml: kernel\.targets: uml and \[uml\] need"):
        load_kernel("6.12")
    alone = load_kernel("3.13")
    assert alone.in_user_mode is alone


@pytest.mark.uml
@pytest.mark.parametrize("name", ["6.1", "6.12"])
def test_user_mode_linux_is_configured_as_its_profile_says(name: str) -> None:
    """Kconfig decides what follows from the options of kernel/uml/config."""
    kernel = load_kernel(name)
    built = cached_kernel(cache_folder(), name)
    if built is None:
        pytest.skip(f"user-mode Linux {name} is not built")
    options = set((built.tree / ".config").read_text().splitlines())
    facts = kernel.in_user_mode.kernel
    assert facts.smp == ("CONFIG_SMP=y" in options)
    assert facts.task_groups == ("CONFIG_FAIR_GROUP_SCHED=y" in options)
    assert (facts.rcu == "tiny") == ("CONFIG_TINY_RCU=y" in options)
    assert f"CONFIG_HZ={facts.ticks_per_second}" in options


@pytest.mark.parametrize(
    ("kernel", "fs", "device", "kib"),
    [
        ("2.6.29", "jffs2", "default", 128),
        ("2.6.37", "jffs2", "default", 128),
        ("2.6.37", "yaffs2", "block", 128),
        ("2.6.37", "ubifs", "ubifs", 0),
        ("3.13", "jffs2", "default", 128),
        ("4.0", "jffs2", "mtd", 0),
        ("4.0", "yaffs2", "block", 128),
        ("6.1", "jffs2", "mtd", 0),
        ("6.1", "yaffs2", "mtd", 0),
        ("6.12", "ubifs", "ubifs", 0),
    ],
)
def test_a_window_is_that_of_the_backing_device(
    kernel: str, fs: str, device: str, kib: int
) -> None:
    profile = load_kernel(kernel)
    assert (profile.backing_devices.device(fs), profile.shipped_kib(fs)) == (device, kib)
    assert profile.shipped_kib("mtd") == 0


def test_a_backing_device_that_is_missing_is_named(small: Path) -> None:
    file = small / "boards" / "kernels" / "6.12.toml"
    text = file.read_text()
    file.write_text(text.replace("mtd = 0, ubifs", "ubifs"))
    with pytest.raises(ProfileError, match=r"6\.12\.toml: .*ra_pages\.mtd: missing"):
        load_kernel("6.12")
    file.write_text(text.replace("mtd = 0, ubifs", "default = 32, mtd = 0, ubifs"))
    with pytest.raises(ProfileError, match=r"ra_pages\.default: no file system uses it"):
        load_kernel("6.12")


def test_every_shipped_board_is_complete() -> None:
    assert {"emulated", "emulated-4k", "omap3evm"} <= set(board_names())
    pages = {name: load_board(name).chip.page_bytes for name in board_names()}
    assert pages["emulated"] == pages["omap3evm"] == 2048
    assert pages["emulated-4k"] == 4096


def test_the_4k_chip_moves_a_byte_in_40_ns() -> None:
    chip = load_board("emulated-4k").chip
    whole_bytes = chip.page_bytes + chip.oob_bytes
    assert chip.bus_read_ns == chip.bus_program_ns == 40 * whole_bytes
    assert chip.page_bytes * chip.pages_per_block * chip.blocks == 256 << 20


def test_the_driver_of_omap3evm_takes_what_was_measured() -> None:
    board = load_board("omap3evm")
    chip, software = board.chip, board.software
    read_ns = chip.read_array_ns + chip.bus_read_ns + software.nand_read_ns
    program_ns = chip.program_array_ns + chip.bus_program_ns + software.nand_program_ns
    assert chip.read_array_ns + chip.bus_read_ns == 130_000  # datasheet, read-ahead paper 3.2
    assert (read_ns, program_ns) == (185_065, 407_600)  # slides


def test_the_driver_of_apf27_takes_what_was_measured() -> None:
    """SQLite paper, Table I: 5.94 MB/s read and 3.36 written, pages of 2,048 bytes."""
    board = load_board("apf27")
    chip, software = board.chip, board.software
    read_ns = chip.read_array_ns + chip.bus_read_ns + software.nand_read_ns
    program_ns = chip.program_array_ns + chip.bus_program_ns + software.nand_program_ns
    assert round(2048 / read_ns * 1e3, 4) == 5.94
    assert round(2048 / program_ns * 1e3, 4) == 3.36
    assert (chip.read_array_ns, chip.program_array_ns, chip.erase_array_ns) == (
        25_000, 300_000, 500_000,
    )  # fmt: skip
    assert board.partition.blocks * chip.pages_per_block * chip.page_bytes == 50 << 20


def test_the_simulator_gets_numbers_and_no_sources(small: Path) -> None:
    tables = json.loads(load_board("omap3evm").sim_json)
    assert list(tables) == ["chip", "ecc", "partition", "memory", "software"]
    assert all("source" not in table for table in tables.values())
    assert tables["ecc"] == {"kind": "hardware-page", "step_bytes": 512, "strength_bits": 1}
    assert "source" not in json.loads(load_kernel("6.1").sim_json)["readahead"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("page_bytes = 2048", "page_byte = 2048", "chip.page_byte: unknown key"),
        ("erase_array_ns = 500_000\n", "", "chip.erase_array_ns: missing"),
        ("page_bytes = 2048", "page_bytes = 2000", "page_bytes = 2000 is not a power of two"),
        (
            "page_bytes = 2048",
            "page_bytes = 0",
            "chip.page_bytes: 0 is not at least 256",
        ),
        ("page_bytes = 2048", 'page_bytes = "2048"', "chip.page_bytes: "),
        ("first_block = 0", "first_block = 1300", "the partition ends at block 2100"),
        ("step_bytes = 512", "step_bytes = 500", "ecc.step_bytes: a page of 2048"),
        ("strength_bits = 1 ", "strength = 1 ", "ecc.strength: unknown key"),
        ("strength_bits = 1 ", "strength_bits = 0 ", "it is 0 with 'none' and with nothing else"),
        ('"hardware-page"', '"none"', "it is 0 with 'none' and with nothing else"),
        ('"hardware-page"', '"software"', "ecc.kind: "),
        ('transfer = "bytes"', 'transfer = "bits"', "chip.transfer: "),
        ("oob_bytes = 64", "oob_bytes = -1", "chip.oob_bytes: "),
        ("oob_bytes = 64", "oob_bytes = 7", "chip.oob_bytes: "),
        ("\n[chip]\n", "\n[chip\n", "not TOML"),
        ('name = "omap3evm"', 'name = "omap4"', "name = 'omap4' is not the file's name"),
        ("read_array_ns = 25_000", "read_array_ns = 0", "cannot be 0"),
    ],
)
def test_a_bad_board_is_refused_by_key(small: Path, old: str, new: str, says: str) -> None:
    change(small, old, new)
    with pytest.raises(ProfileError) as refused:
        load_board("omap3evm")
    message = str(refused.value)
    assert "boards/omap3evm.toml: " in message
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("kind", "step_bytes", "strength_bits", "oob_bytes", "says"),
    [
        ("none", 2048, 0, 64, None),
        ("none", 512, 0, 64, "ecc.step_bytes: without ECC a page of 2048 bytes is the only step"),
        ("software-subpage", 256, 1, 64, None),
        ("software-subpage", 512, 1, 64, None),
        ("software-subpage", 256, 1, 224, "chip.oob_bytes: 224 bytes have room for 0 of software"),
        ("software-subpage", 256, 1, 16, "chip.oob_bytes: 16 bytes have room for 6 of software"),
        ("software-subpage", 256, 4, 64, "strength_bits: the kernel's software ECC is a Hamming"),
        ("software-subpage", 1024, 1, 64, "step_bytes: the kernel's Hamming code has steps of"),
        ("hardware-page", 512, 4, 224, None),
    ],
)
def test_an_ecc_the_kernel_would_not_scan_is_refused(
    small: Path, kind: str, step_bytes: int, strength_bits: int, oob_bytes: int, says: str | None
) -> None:
    change(small, 'kind = "hardware-page"', f'kind = "{kind}"')
    change(small, "step_bytes = 512", f"step_bytes = {step_bytes}")
    change(small, "strength_bits = 1 ", f"strength_bits = {strength_bits} ")
    change(small, "oob_bytes = 64", f"oob_bytes = {oob_bytes}")
    if says is None:
        assert load_board("omap3evm").ecc.kind == kind
        return
    with pytest.raises(ProfileError) as refused:
        load_board("omap3evm")
    assert says in str(refused.value)


@pytest.mark.parametrize("table", ["board", "chip", "ecc", "partition", "software"])
def test_numbers_without_a_source_are_refused(small: Path, table: str) -> None:
    file = small / "boards" / "omap3evm.toml"
    head, tail = file.read_text().split(f"[{table}]\n", 1)
    lines = tail.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("source"))
    file.write_text(f"{head}[{table}]\n" + "\n".join(lines[:at] + lines[at + 1 :]))
    with pytest.raises(ProfileError, match=rf"{table}\.source: missing"):
        load_board("omap3evm")


def test_a_board_that_is_not_there_names_those_that_are(small: Path) -> None:
    with pytest.raises(
        ProfileError, match=r"boards/none\.toml: no such board; there are apf27, emulated"
    ):
        load_board("none")
