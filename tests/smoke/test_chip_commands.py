"""The commands `chip` and `board` as a user meets them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flashbed.base.errors import InputError
from flashbed.cli import app
from flashbed.stack.chips import chip_names
from flashbed.stack.profiles import load_board


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, words, catch_exceptions=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout


def test_the_list_has_every_chip_in_both_forms() -> None:
    code, text = run("chip", "list")
    assert code == 0
    assert all(name in text for name in chip_names())
    listed = json.loads(run("chip", "list", "--format", "json")[1])
    assert [one["chip"]["name"] for one in listed] == chip_names()


def test_the_arithmetic_of_an_attach_is_that_of_a_published_board() -> None:
    """1,008 PEBs of a 128 MiB SPI-NAND on an MT7988 attach in 0.813 s: one line at 52 MHz."""
    words = ("chip", "show", "W25N01GV", "--arithmetic", "--format", "json")
    found = json.loads(run(*words, "--set", "controller.lines=1")[1])["arithmetic"]
    attach_ns = sum(step["ns"] for step in found["attach of an eraseblock"])
    assert abs(1_008 * attach_ns / 813_000_000 - 1) < 0.15
    read = found["read of a page"]
    assert read[0]["what"] == "read command 0x13"
    assert sum(step["ns"] for step in read) == 377_378


def test_a_profile_in_one_command_runs_and_says_what_it_rests_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--chip", "W25N01GV", "--processor", "cortex-a7@528MHz")
    assert run("board", "new", "mine", *words)[0] == 0
    board = load_board("mine")
    assert board.like is not None
    assert board.like.name == "emulated"
    assert board.partition.blocks == 1024
    known = load_board("emulated").software.syscall_ns
    assert board.software.syscall_ns == round(known * 250 / 528)
    code, text = run("board", "check", "mine", "--measured", "attach 1008 0.813s")
    assert code == 0
    assert "CPU time of mine is an estimate: prices of emulated" in text
    assert "this fits 1 data line at 52 MHz, not 4" in text
    with pytest.raises(InputError, match=r"boards/mine.toml: File exists"):
        run("board", "new", "mine", *words)


def test_a_profile_of_a_chip_without_times_asks_for_them_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("board", "new", "mine", "--chip", "W25N02KV", "--processor", "cortex-a53@1200MHz")
    with pytest.raises(InputError) as raised:
        load_board("mine")
    said = [str(raised.value), *raised.value.also]
    assert all('"?" is not a whole number' in line for line in said)
    assert len(said) == 3
    assert tomllib.loads(Path("boards/mine.toml").read_text())["software"]["pointer_bytes"] == 8


def test_an_odd_line_is_named_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("board", "new", "mine", "--chip", "W25N01GV", "--processor", "cortex-a7@528MHz")
    path = Path("boards/mine.toml")
    text = path.read_text().replace("cpu_mhz = 528", "cpu_mhz = 5_280")
    path.write_text(text)
    number = 1 + text.splitlines().index("cpu_mhz = 5_280")
    code, said = run("board", "check", "mine")
    assert code == 1
    assert f"odd: boards/mine.toml:{number}: board.cpu_mhz = 5_280: boards with NAND" in said


def test_what_is_imported_is_a_chip_of_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = "spi-nand spi0.0: Winbond SPI NAND was found.\nspi-nand spi0.0: 128 MiB,"
    Path("boot.log").write_text(f"{log} block size: 128 KiB, page size: 2048, OOB size: 64\n")
    assert "of the catalogue W25N01GV" in run("chip", "import", "boot.log")[1]
    Path("empty.txt").write_text("nothing")
    with pytest.raises(InputError, match=r"empty.txt: no SPINAND_INFO table"):
        run("chip", "import", "empty.txt")
    rows = "".join(
        f'{{"TWICE 1G", {{ .id = {{0x98, {device}}} }}, SZ_2K, SZ_128, SZ_128K, 0, 2, 64, }},\n'
        for device in ("0xd1", "0xa1")
    )
    Path("nand_ids.c").write_text(rows)
    assert run("chip", "import", "nand_ids.c") == (0, "boards/chips/TWICE.toml\n")
    assert "id = [0x98, 0xd1]" in Path("boards/chips/TWICE.toml").read_text()
    assert run("chip", "new", "OWN", "--bus", "parallel") == (0, "boards/chips/OWN.toml\n")
    with pytest.raises(InputError, match=r"boards/chips/OWN.toml: geometry.page_bytes: \"\?\""):
        run("chip", "show", "OWN")
