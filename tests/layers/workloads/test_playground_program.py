"""A recording as a file for the playground: one program, with operations for every file system."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from flashbed.base import paths
from flashbed.base.errors import InputError
from flashbed.cli import app
from flashbed.plan.experiment import SETTLE_NS, load_experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.workloads import operations
from flashbed.plan.workloads.playground_program import packed_program, page_with
from flashbed.program.recording.file import Recording, open_recording
from flashbed.program.recording.translate import translate
from flashbed.stack.profiles import load_board
from tests.layers.workloads.test_recorded_program import recorded
from tests.support import PROJECT

PAGE = '<p></p><script type="text/plain" id="own"></script><p></p>'


def unpacked(packed: bytes) -> dict[str, Any]:
    program: dict[str, Any] = json.loads(gzip.decompress(packed))
    return program


def text_of(variants: dict[str, Any], number: int) -> str:
    """A variant, put together as page/web/world.ts does it."""
    if "whole" in variants:
        return str(variants["whole"][number])
    values = iter(variants["values"][number].split("\t"))
    return re.sub("\x01", lambda _: next(values), variants["lines"])


@pytest.mark.parametrize("fs", ["jffs2", "yaffs2", "ubifs"])
@pytest.mark.parametrize("compressor", ["default", "none"])
def test_a_variant_is_what_a_run_executes(tmp_path: Path, fs: str, compressor: str) -> None:
    path = recorded(tmp_path)
    if fs == "yaffs2" and compressor != "default":
        return
    program = unpacked(packed_program(path))
    settings = {"fs": (fs,), "kernel": ("6.1",), "pattern": ("recorded",)}
    settings |= {"compressor": (compressor,)}
    (planned,) = plan(load_experiment(str(path)), settings)
    key = {"yaffs2": "yaffs2"}.get(fs, f"{fs} {compressor}")
    number = program["variants"][key + (" 6.1" if key.endswith("default") else "")]
    made = text_of(program["prepare"], number), text_of(program["body"], number)
    assert made == operations("program", planned.case, SETTLE_NS, str(path))
    assert program["title"] == "my"


@pytest.mark.parametrize("name", ["git", "logger", "sqlite-wal"])
def test_a_program_that_never_waits_is_the_recording_without_its_waits(name: str) -> None:
    """The page leaves out the lines that page/web/world.ts calls UNKEPT."""
    recording = open_recording(PROJECT / "experiments" / "programs" / f"{name}.parquet")
    kept = translate(recording, None, SETTLE_NS, own=b"lost+found")[1].splitlines()
    flat_out = translate(recording, None, SETTLE_NS, think=False, own=b"lost+found")[1].splitlines()
    without = [line for line in kept if line.split()[0] not in ("pause", "compute")]
    if without[-1].startswith("task "):  # of a task that only waited at the end
        without.pop()
    assert flat_out == without
    assert flat_out != kept


def test_the_same_recording_is_the_same_file(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    assert packed_program(path) == packed_program(path)


def test_a_recording_is_read_once_for_all_that_compress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 34,000 calls took a minute: it was read and checked nine times."""
    read: list[Path] = []

    def opened(path: Path) -> Recording:
        read.append(path)
        return open_recording(path)

    monkeypatch.setattr("flashbed.plan.workloads.recorded_program.open_recording", opened)
    packed_program(recorded(tmp_path))
    assert len(read) == 2  # and once for YAFFS2, which makes a folder itself


def test_what_is_done_is_told_by_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flashbed.program.recording.translate._TOLD_EACH", 1)
    told: list[tuple[str, int, int]] = []
    path = recorded(tmp_path)
    packed_program(path, told=lambda *now: told.append(now))
    calls = [done for _, done, _ in told]
    assert calls == sorted(calls)
    assert calls[-1] <= told[0][2] == 2 * open_recording(path).length()
    assert {what for what, *_ in told} == {"translating my.rec"}


def test_the_command_writes_it_beside_the_recording(tmp_path: Path) -> None:
    path = recorded(tmp_path)
    done = CliRunner().invoke(app, ["playground", str(path)])
    assert done.exit_code == 0, done.output
    assert unpacked((tmp_path / "my.play").read_bytes())["flashbed-program"] == 1
    assert str(tmp_path / "my.play") in done.output


def test_a_file_says_on_what_the_page_opens(tmp_path: Path) -> None:
    """The page opened on JFFS2 and 16 MiB, whatever the product is, and knew no other board."""
    path = recorded(tmp_path)
    shutil.copyfile(PROJECT / "boards/apf27.toml", tmp_path / "ours.toml")
    (tmp_path / "boards").mkdir()
    text = (tmp_path / "ours.toml").read_text().replace('name = "apf27"', 'name = "ours"')
    (tmp_path / "boards/ours.toml").write_text(text)
    usual = unpacked(packed_by(tmp_path, path))
    assert usual["opens"] == "fs=ubifs"
    assert usual["board"]["name"] == "emulated"
    words = ("--set", "board=ours", "--set", "partition.blocks=512", "--set", "fs=jffs2")
    ours = unpacked(packed_by(tmp_path, path, *words))
    assert ours["opens"] == "fs=jffs2&board=ours&blocks=512"
    assert ours["board"]["name"] == "ours"
    shipped = load_board("apf27").endurance
    assert shipped is not None
    assert ours["board"]["tables"]["endurance"] == shipped.cycles
    for wrong, says in (
        (("--set", "fs=jffs2,ubifs"), "fs: the page opens on one value"),
        (("--set", "state=valid0.6"), "the page has no control for that"),
    ):
        done = CliRunner().invoke(app, ["playground", str(path), *wrong])
        assert says in str(done.exception)


def packed_by(folder: Path, path: Path, *words: str) -> bytes:
    """What the command makes in this folder."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, ["playground", str(path), *words])
    assert done.exit_code == 0, done.exception or done.output
    return path.with_suffix(".play").read_bytes()


def test_a_page_with_the_program_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, built = recorded(tmp_path), tmp_path / "root/build/playground/index.html"
    monkeypatch.setattr("flashbed.cli.playground.built_page", lambda: built)
    out = tmp_path / "my.html"
    done = CliRunner().invoke(app, ["playground", str(path), "-o", str(out)])
    assert isinstance(done.exception, InputError)
    assert "make playground" in str(done.exception)
    assert not out.exists()
    built.parent.mkdir(parents=True)
    built.write_text(PAGE, encoding="utf-8")
    done = CliRunner().invoke(app, ["playground", str(path), "-o", str(out)])
    assert done.exit_code == 0, done.output
    inside = re.search('id="own">([^<]+)<', out.read_text(encoding="utf-8"))
    assert inside is not None
    assert base64.b64decode(inside.group(1)) == packed_by(tmp_path, path)


def test_what_is_no_recording_and_no_page_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "my.ops"
    program.write_text("flashbed-ops 1\nsync\n")
    done = CliRunner().invoke(app, ["playground", str(program)])
    assert isinstance(done.exception, InputError)
    assert not (tmp_path / "my.play").exists()
    with pytest.raises(InputError, match="not the playground"):
        page_with(program, b"")


def test_the_page_has_the_place(tmp_path: Path) -> None:
    """The one that a program is put into."""
    page = paths.root() / "page/web/index.html"
    assert b"AAAA" in page_with(page, b"\0\0\0")
