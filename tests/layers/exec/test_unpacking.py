"""What a guest sends to be kept is unpacked below the folder, whatever it sends."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from flashbed.errors import InputError, RunError
from flashbed.exec.unpacking import kept_folder, unpack

HEAD = b"flashbed-files 1\n"


def _unpacked(folder: Path, *lines: bytes) -> list[str]:
    folder.mkdir()
    unpack(BytesIO(HEAD + b"".join(lines) + b"end\n"), folder)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_files_folders_and_links_are_there_with_their_modes(tmp_path: Path) -> None:
    folder = tmp_path / "k"
    assert _unpacked(
        folder, b"folder 555 d\n", b"file 4640 3 d/a%20b\n", b"abc", b"file 600 0 e\n",
        b"link ../e d/l\n", b"other 644 fifo\n",
    ) == ["d", "d/a b", "d/l", "e"]  # fmt: skip
    assert (folder / "d" / "a b").read_bytes() == b"abc"
    assert (folder / "d" / "a b").stat().st_mode & 0o7777 == 0o640
    assert (folder / "d" / "l").read_bytes() == b""


@pytest.mark.parametrize(
    "path", [b"../x", b"/x", b"d/../../x", b"", b".", b"a//b", b"..", b"a%00b", b"%2e%2e/x"]
)
def test_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: bytes) -> None:
    with pytest.raises(RunError, match="named"):
        _unpacked(tmp_path / "k", b"file 644 1 " + path + b"\nx")
    assert [found.name for found in tmp_path.rglob("*") if found.is_file()] == []


@pytest.mark.parametrize("target", [b"/etc/passwd", b"../../x", b"..", b"a/../../x", b"d/../x"])
def test_a_link_that_could_lead_elsewhere_is_left_out(tmp_path: Path, target: bytes) -> None:
    folder = tmp_path / "k"
    folder.mkdir()
    kept = unpack(BytesIO(HEAD + b"link " + target + b" l\nend\n"), folder)
    assert list(folder.iterdir()) == []
    assert kept.left_out == [("l", f"a link to {target.decode()}")]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "k"
    with pytest.raises(RunError):
        _unpacked(folder, b"link . l\n", b"file 644 1 l/x\n", b"x")
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "stream",
    [b"", b"flashbed-files 2\n", HEAD, HEAD + b"file 644 9 a\nabc", HEAD + b"what 1 2\nend\n",
     HEAD + b"file 644 a\nend\n", HEAD + b"error No space\n"],
)  # fmt: skip
def test_a_stream_that_is_not_whole_is_an_error(tmp_path: Path, stream: bytes) -> None:
    with pytest.raises(RunError, match="--keep"):
        unpack(BytesIO(stream), tmp_path)


def test_the_folder_is_made_and_has_to_be_empty(tmp_path: Path) -> None:
    kept_folder(tmp_path / "a" / "b")
    kept_folder(tmp_path / "a" / "b")
    with pytest.raises(InputError, match="not empty"):
        kept_folder(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--keep"):
        kept_folder(tmp_path / "file")
