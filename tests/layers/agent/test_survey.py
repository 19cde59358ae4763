"""The agent names what files hold: every byte by something it equals."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from flashbed.program.content import generated
from flashbed.targets.base import Survey, SurveyedFile
from flashbed.targets.guest.stream import Reader
from tests.layers.agent.test_agent import AGENT

pytestmark = pytest.mark.skipif(not AGENT.is_file(), reason="the agent is not built; make build")

WRITES = (
    "flashbed-ops 1\nopen 0 a rw,create\nwrite 0 0 10 1 0\nwrite 0 0 10 2 0\nwrite 0 0 10 3 60\n"
    "write 0 4096 10 1 0\n"
)


def surveyed(tmp_path: Path, files: dict[str, bytes], writes: str = WRITES) -> Survey:
    """What the agent says of a folder, read as a guest's is."""
    folder, operations = tmp_path / "folder", tmp_path / "writes.ops"
    operations.write_text(writes)
    folder.mkdir(exist_ok=True)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    done = subprocess.run(
        [AGENT, "survey", operations, "--dir", folder],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    (tmp_path / "stream").write_text(f"\n{done.stdout}")
    rows = f"flashbed-stream 1\ncut c 1\nm 0 5\n{done.stdout}u 0\nendcut c 1\n"
    survey = list(Reader().feed(rows.encode()))[-1]
    assert isinstance(survey, Survey)
    return survey


def one(tmp_path: Path, data: bytes) -> SurveyedFile:
    (file,) = surveyed(tmp_path, {"a": data}).files
    return file


def written(offset: int, length: int, seed: int, compressibility: int = 0) -> bytes:
    return generated(offset, length, seed, compressibility).tobytes()


def named(file: SurveyedFile) -> list[tuple[int, object]]:
    return [(run.length_bytes, run.what) for run in file.runs]


def test_content_is_named_by_the_write_it_is_of(tmp_path: Path) -> None:
    data = written(0, 5000, 1) + written(5000, 3, 2) + bytes(500) + written(5503, 9000, 2)
    file = one(tmp_path, data)
    assert file.size_bytes == len(data)
    # Too short a run is not named: the rest of its page is sent.
    assert named(file) == [(5000, (1, 0)), (3192, data[5000:8192]), (6311, (2, 0))]


def test_content_with_zeros_in_it_is_one_run(tmp_path: Path) -> None:
    assert named(one(tmp_path, written(0, 10_000, 3, 60))) == [(10_000, (3, 60))]


def content(file: SurveyedFile) -> bytes:
    """The bytes that the runs stand for."""
    data = b""
    for run in file.runs:
        assert run.offset_bytes == len(data)
        match run.what:
            case tuple():
                data += written(run.offset_bytes, run.length_bytes, *run.what)
            case bytes():
                data += run.what
            case _:
                assert run.what == "zero"
                data += bytes(run.length_bytes)
        assert len(data) == run.offset_bytes + run.length_bytes
    return data


def test_bytes_of_another_offset_or_of_nobody_are_sent(tmp_path: Path) -> None:
    data = written(0, 104, 1) + b"\xff" * 100 + written(0, 56, 1)
    file = one(tmp_path, data)
    assert named(file) == [(104, (1, 0)), (156, data[104:])]


def test_the_runs_are_the_content_whatever_it_is(tmp_path: Path) -> None:
    """Bytes in which runs of one byte are found: all of them say what they should."""
    data = bytes(at * 37 % 251 for at in range(9001))
    assert content(one(tmp_path, data)) == data


def test_equal_pages_are_sent_once(tmp_path: Path) -> None:
    page, end = bytes(range(1, 129)) * 32, b"\xfe" * 7
    files = {"a": page * 3 + end, "b": page + end[:6]}
    survey = surveyed(tmp_path, files)
    assert {file.path: content(file) for file in survey.files} == files
    blocks = {run.what for file in survey.files for run in file.runs}
    assert blocks == {page, end, end[:6]}
    assert (tmp_path / "stream").read_text().count("\nk ") == len(blocks)


def test_links_and_names_of_any_bytes_are_written_as_in_operations(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "s p").symlink_to("../a\nb/c")
    survey = surveyed(tmp_path, {"%2": b"", "d\n/x": b""})
    assert [(file.path, file.target) for file in survey.files] == [
        ("%252", None),
        ("d%0A/x", None),
        ("s%20p", "../a%0Ab/c"),
    ]


def test_files_come_in_the_order_of_their_names_folders_among_them(tmp_path: Path) -> None:
    files = {"b/2": b"", "b/10": b"", "a": b"", "b.x": b"", "c/d/e": b""}
    survey = surveyed(tmp_path, files)
    assert [file.path for file in survey.files] == ["a", "b/10", "b/2", "b.x", "c/d/e"]
    assert all(file.size_bytes == 0 and file.runs == () for file in survey.files)


def test_nothing_written_leaves_only_zero_and_bytes(tmp_path: Path) -> None:
    survey = surveyed(tmp_path, {"a": b"\0\0xyz"}, "flashbed-ops 1\n")
    assert named(survey.files[0]) == [(5, b"\0\0xyz")]


def test_a_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "none.ops").write_text("flashbed-ops 1\n")
    done = subprocess.run(
        [AGENT, "survey", tmp_path / "none.ops", "--dir", tmp_path / "nothing"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == f"{tmp_path / 'nothing'}: No such file or directory\n"
