"""Files of others: no pipe, device or bomb. Its own: whole, and under no planted name."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from flashbed.base.errors import InputError, RunError
from flashbed.base.files import read_bytes, read_text, whole
from flashbed.base.frames import DamagedError, read_parquet
from flashbed.base.toml import read_toml
from flashbed.cli.trace import _of_operations
from flashbed.plan.database import Database
from flashbed.report.page import in_script, write_whole
from flashbed.results.run_directory import RunDirectory
from flashbed.stack.profiles import ProfileError

GONE = 2**22 + 1
"""No process has this number (PID_MAX_LIMIT)."""


def test_only_files_are_read_and_within_their_size(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "large").write_bytes(bytes(4096))
    (tmp_path / "nul").write_bytes(b"ab\0")
    (tmp_path / "latin").write_bytes(b"a\xe9")
    for name, said in (
        ("pipe", "a device or a pipe, not a file"),
        ("zero", "a device or a pipe, not a file"),
        ("", "Is a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("none", "no such file"),
        ("a\0b", "not the path of a file"),
        ("large", "4 KiB, 1 KiB at most"),
        ("latin", "byte 2 is not UTF-8"),
        ("nul", "byte 3 is NUL"),
    ):
        with pytest.raises(InputError) as why:
            read_text(tmp_path / name, 1024)
        assert str(why.value).endswith(said)
    assert read_bytes(tmp_path / "large", 4096) == bytes(4096)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        ("a = " + "{a=" * 30 + "1" + "}" * 30, "nested too deeply"),
        ("[a" + ".a" * 20_000 + "]\nb = 1\n", "nested too deeply"),
        ("a = " + "9" * 5000, "not TOML: "),
        ("a = 1\0", "byte 6 is NUL"),
        ("#" * (1 << 20) + "#", "1,024 KiB, 1,024 KiB at most"),
    ],
    ids=["lists", "tables", "keys", "digits", "nul", "size"],
)
def test_toml_that_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.toml").write_text(text)
    with pytest.raises(ProfileError, match=said):
        read_toml(tmp_path / "x.toml", ProfileError)


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    folder = tmp_path / "results"
    folder.mkdir()
    for name in (".report.html.new", f".report.html.{os.getpid()}"):
        (folder / name).symlink_to(other)
    (folder / "report.html").symlink_to(other)
    with pytest.raises(InputError, match="a link"):
        write_whole("page", folder / "report.html")
    assert other.read_text() == "precious"
    (folder / "report.html").unlink()
    write_whole("page", folder / "report.html")
    assert other.read_text() == "precious"
    assert (folder / "report.html").read_text() == "page"


def test_a_descriptor_is_written_into(tmp_path: Path) -> None:
    """`-o /dev/stdout > page.html` replaced the machine's /dev/stdout."""
    link = tmp_path / "stdout"
    with (tmp_path / "page").open("wb") as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        write_whole("page", link)
        assert link.is_symlink()
    assert (tmp_path / "page").read_text() == "page"


def test_what_dead_processes_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    names = []
    for process in (GONE, os.getpid()):
        with whole(path) as new:
            name = new.name.replace(f"-{os.getpid()}-", f"-{process}-")
        (tmp_path / name).write_text("half")
        names.append(name)
    (tmp_path / ".report.html.notes.new").write_text("a user's own")
    with whole(path) as new:
        new.write_text("page")
    assert {file.name for file in tmp_path.iterdir()} == {
        "report.html", names[1], ".report.html.notes.new",
    }  # fmt: skip


def test_an_interrupted_file_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt), whole(path) as new:  # noqa: PT012
        new.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


FULL = """
import sys, resource
from pathlib import Path
import polars as pl
from flashbed.base.errors import RunError
from flashbed.base.files import whole
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
frame = pl.DataFrame({"a": range(100_000)})
for write in (
    lambda new: new.write_text("x" * 10_000),
    lambda new: frame.write_parquet(new, compression="uncompressed"),
):
    try:
        with whole(Path(sys.argv[1])) as new:
            write(new)
    except RunError as why:
        print(why)
"""


def test_a_full_disk_names_file_and_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "cases.parquet"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    line = f"cases.parquet could not be written to {tmp_path}: File too large"
    assert done.stdout.splitlines() == [line, line]
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="x could not be written to"):
        write_whole("page", tmp_path / "file" / "x")


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "<!--<ScRiPt >", "a<b"])
def test_data_cannot_end_or_keep_open_its_script(text: str) -> None:
    written = in_script({"name": text})
    assert "<" not in written
    assert json.loads(written) == {"name": text}


def test_a_packaged_file_is_found_without_running_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "hostile" / "below"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    ours = Database(name="x", script="x.sql", file="hostile.below:data.db")
    found = ours.file_path
    assert found == package / "data.db"
    for file, said in (
        ("this.x:y", "no package this.x"),
        ("os.path:y", "no package os.path"),
        ("hostile.nothing:y", "no package hostile.nothing"),
        ("hostile:../../etc/passwd", "not a file of the package"),
    ):
        with pytest.raises(InputError, match=said):
            _ = Database(name="x", script="x.sql", file=file).file_path
    assert not (tmp_path / "ran").exists()
    assert "this" not in sys.modules


def test_damaged_parquet_is_refused_quietly(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.parquet"
    frame = pl.DataFrame({"a": [None, "x", "y"] * 100, "b": range(300), "c": [1.5] * 300})
    frame.write_parquet(path)
    whole_file = path.read_bytes()
    refused = 0
    for seed in range(200):
        draw = random.Random(seed)
        damaged = bytearray(whole_file)
        for _ in range(draw.randint(1, 8)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        path.write_bytes(damaged[: draw.choice((len(damaged), draw.randrange(len(damaged))))])
        try:
            read_parquet(path)
        except DamagedError:
            refused += 1
    assert refused > 100
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["finished.parquet", "parts/000001/finished.parquet"])
def test_a_damaged_result_is_one_line(tmp_path: Path, name: str) -> None:
    directory = RunDirectory.create(tmp_path / "run", "a/b")
    path = directory.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for content in (b"", b"PAR1", b"ARROW1\0\0" + bytes(100)):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"finished\.(parquet|arrow): damaged; remove .*"):
            directory.finished()


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"format": 1}', "\0", "{}"])
def test_a_damaged_run_json_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run\.json"):
        RunDirectory.create(tmp_path, "a/b")


def test_operations_with_other_line_ends_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ops"
    path.write_bytes(b"flashbed-ops 1\nsync\r\n")
    with pytest.raises(InputError, match=r"x\.ops:2: bad-character"):
        _of_operations(path, [])
