"""A reader's own recording on the playground: what `flashbed playground` makes of it, and how much.

The recording is one that ships, so that the page has the same program to hold it against.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flashbed.cli import app
from flashbed.plan.workloads.playground_program import packed_mix, packed_program, page_with
from tests.browser.test_playground import (
    ANSWER,
    PAGE,
    PROGRAMS,
    ROOT,
    Chosen,
    chosen,
    notice,
    pytestmark,
    settled,
)
from tests.support.chromium import Browser

__all__ = ["pytestmark"]

RECORDING = PROGRAMS / "config.parquet"
CALLS = 1_000_000
MEMORY_MAX_BYTES = 500_000_000


@pytest.fixture(scope="module")
def packed() -> bytes:
    return packed_program(RECORDING)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as browser:
        browser.open(f"{PAGE.as_uri()}#program=git&fs=ubifs")
        settled(browser)
        yield browser
        assert browser.wrong == []


def counts_of(browser: Browser, fs: str, compressor: str = "default") -> dict[str, Any]:
    """What is counted of the reader's program."""
    choice = json.dumps({"program": "own", "fs": fs, "compressor": compressor})
    browser.run(f"playground.change({choice})")
    settled(browser)
    assert notice(browser) == ""
    counts: dict[str, Any] = json.loads(browser.run(ANSWER))["counts"]
    return counts


def test_a_dropped_recording_runs_as_the_program_that_ships(
    browser: Browser, packed: bytes, tmp_path: Path
) -> None:
    """On every file system with the sizes of its compressor."""
    file = tmp_path / "mine.play"
    file.write_bytes(packed)
    browser.choose("#file", file)
    browser.until("playground.state.config.program == 'own'")
    settled(browser)
    assert "config on UBIFS" in browser.run("sentence.textContent")
    asked = (("ubifs", "default"), ("ubifs", "none"), ("jffs2", "default"), ("yaffs2", "default"))
    own = [counts_of(browser, *each) for each in asked]
    shipped = [
        chosen(browser, Chosen(fs, "config", compressor=name))["counts"] for fs, name in asked
    ]
    assert own == shipped
    assert own[0] != own[1]


def test_a_bare_recording_is_refused_with_the_command_that_helps(
    browser: Browser, tmp_path: Path
) -> None:
    """The command that the notice names is one that there is, and its file is what it names."""
    before = browser.run("sentence.textContent")
    file = tmp_path / "my.rec"
    file.write_bytes(RECORDING.read_bytes())
    browser.choose("#file", file)
    said = browser.until("!notice.hidden && notice.textContent")
    command = re.search(r"run flashbed (playground) (\S+), and drop (\S+)$", said)
    assert command is not None, said
    made = CliRunner().invoke(app, [command.group(1), str(tmp_path / command.group(2))])
    assert made.exit_code == 0, made.output
    assert browser.run("sentence.textContent") == before
    browser.choose("#file", tmp_path / command.group(3))
    browser.until("playground.state.config.program == 'own'")
    settled(browser)
    assert notice(browser) == ""


@pytest.mark.parametrize("rest", [b"", b"nothing", b"\x08\0\0\0\0\0\0\x03\x03\0"])
def test_a_file_that_only_looks_like_a_program_is_refused(
    browser: Browser, tmp_path: Path, rest: bytes
) -> None:
    file = tmp_path / "odd.play"
    file.write_bytes(b"\x1f\x8b" + rest)
    browser.choose("#file", file)
    said = browser.until("!notice.hidden && notice.textContent")
    assert said == "odd.play is no program: flashbed playground did not make it"


def test_a_page_with_a_program_in_it_opens_on_it(packed: bytes, tmp_path: Path) -> None:
    page = tmp_path / "mine.html"
    page.write_bytes(page_with(PAGE, packed))
    with Browser(tmp_path / "profile") as browser:
        browser.open(page.as_uri())
        browser.until("window.playground && playground.state.config.program == 'own'")
        settled(browser)
        assert "config on" in browser.run("sentence.textContent")
        browser.open(f"{page.as_uri()}#program=git&fs=ubifs")
        settled(browser)
        assert browser.run("sentence.textContent").startswith("git")
        assert browser.wrong == []


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
def test_programs_of_a_product_last_as_lifetime_says_of_one_run(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fs: str
) -> None:
    """The page had one program at a time: the product's question needs all of them at once."""
    monkeypatch.chdir(tmp_path)
    for name in ("config", "logger", "update"):
        shutil.copyfile(PROGRAMS / f"{name}.parquet", tmp_path / f"{name}.rec")
    programs = ["config.rec@2/h", "logger.rec@6/h", "update.rec@1/mo"]
    made = CliRunner().invoke(app, ["playground", *programs])
    assert made.exit_code == 0, made.output
    browser.choose("#file", tmp_path / "mix.play")
    browser.until("playground.state.config.program == 'own'")
    counts_of(browser, fs)
    found = json.loads(browser.run("JSON.stringify(playground.state.mix)"))

    # The page runs each program once; `lifetime` of folders takes the runs that are in them.
    for name in ("config", "logger", "update"):
        ran = ["run", f"{name}.rec", "--trace", "wear", "--set", f"fs={fs}", "--out", name]
        assert CliRunner().invoke(app, ran).exit_code == 0
    folders = [program.replace(".rec", "") for program in programs]
    answer = CliRunner().invoke(app, ["lifetime", *folders, "--format", "json"])
    assert answer.exit_code == 0, answer.output
    (wanted,) = json.loads(answer.stdout)["lifetime"]
    blocks, cycles = wanted["blocks"], wanted["endurance_cycles"]
    for name in ("runs_per_day", "programs_per_run", "erases_per_day", "share"):
        assert [part[name] for part in found["shares"]] == pytest.approx(
            [part[name] for part in wanted["programs"]]
        ), name
    assert found["steady"] == wanted["steady"]
    years = cycles / wanted["mean_block_erases_per_day"] / 365.25
    assert found["years"] == pytest.approx(years)
    if not found["steady"]:
        assert found["years"] == pytest.approx(wanted["years"]["high"])
    assert blocks > 0
    said = browser.run("document.querySelector('#mix-card p').textContent")
    assert said.startswith("Together the chip lasts ")
    assert browser.run("document.querySelectorAll('#mix-card tr').length") == 4

    browser.run("[...document.querySelectorAll('#mix-card button')][1].click()")
    settled(browser)
    assert browser.run("sentence.textContent").startswith("logger on ")
    browser.run("playground.change({program: 'git'})")
    settled(browser)
    assert browser.run("document.querySelector('#mix-card').hidden")


def test_a_page_opens_on_what_its_file_says_and_knows_its_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product's page opened on JFFS2 and 16 MiB, where its programs do not fit."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(RECORDING, tmp_path / "config.rec")
    (tmp_path / "boards").mkdir()
    text = (ROOT / "boards/apf27.toml").read_text().replace('name = "apf27"', 'name = "ours"')
    (tmp_path / "boards/ours.toml").write_text(text)
    words = ("--set", "board=ours", "--set", "partition.blocks=512", "-o", "mine.html")
    made = CliRunner().invoke(app, ["playground", "config.rec@2/h", *words])
    assert made.exit_code == 0, made.output
    with Browser(tmp_path / "profile") as browser:
        browser.open((tmp_path / "mine.html").as_uri())
        browser.until("window.playground && playground.state.config.program == 'own'")
        settled(browser)
        shown = json.loads(browser.run("JSON.stringify(playground.state.config)"))
        assert (shown["fs"], shown["board"], shown["blocks"]) == ("ubifs", "ours", 512)
        said = browser.run("document.querySelector('#mix-card p').textContent")
        assert said.startswith("Together the chip lasts ")
        assert browser.wrong == []


def test_a_mix_without_a_rate_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "dbench.rec").write_bytes((PROGRAMS / "dbench.parquet").read_bytes())
    file = tmp_path / "mix.play"
    file.write_bytes(packed_mix([(tmp_path / "dbench.rec", None), (RECORDING, 24.0)]))
    browser.choose("#file", file)
    browser.until("playground.state.config.program == 'own'")
    settled(browser)
    said = browser.run("document.querySelector('#mix-card p').textContent")
    assert said.startswith("No lifetime: how often does dbench run?")


@pytest.mark.long
@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
def test_a_million_calls_take_less_memory_than_the_limit(tmp_path: Path, fs: str) -> None:
    """Of the tab's process: all that is its own, at its highest."""
    file = tmp_path / "long.ops"
    writes = (f"write 0 {at * 4096 % (8 << 20)} 4096 1 0\n" for at in range(CALLS))
    file.write_text("flashbed-ops 1\nopen 0 f rw,create\nmark\n" + "".join(writes))
    with Browser(tmp_path / "profile") as browser:
        browser.open(f"{PAGE.as_uri()}#program=config&fs={fs}")
        settled(browser)
        with browser.highest_memory() as highest:
            browser.choose("#file", file)
            browser.until("playground.state.config.program == 'own'")
            settled(browser)
        assert browser.run("playground.state.shown.answer.columns.request_op.length") == CALLS
        assert browser.wrong == []
    assert 0 < highest() < MEMORY_MAX_BYTES
