"""What a guest sends to be kept is unpacked below the folder, whatever it sends."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from flashbed.base.errors import InputError, RunError
from flashbed.targets.exec.unpacking import kept_folder, unpack

HEAD = b"flashbed-files 1\n"
FLASH = 50_000_000


def _unpacked(folder: Path, *lines: bytes) -> list[str]:
    folder.mkdir()
    unpack(BytesIO(HEAD + b"".join(lines) + b"end\n"), folder, FLASH)
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
    kept = unpack(BytesIO(HEAD + b"link " + target + b" l\nend\n"), folder, FLASH)
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
        unpack(BytesIO(stream), tmp_path, FLASH)


def test_the_folder_is_made_and_has_to_be_empty(tmp_path: Path) -> None:
    kept_folder(tmp_path / "a" / "b")
    kept_folder(tmp_path / "a" / "b")
    with pytest.raises(InputError, match="not empty"):
        kept_folder(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="--keep"):
        kept_folder(tmp_path / "file")


def test_holes_stay_holes_and_names_of_one_file_stay_one_file(tmp_path: Path) -> None:
    """A sparse file of 1 TiB filled the host's disk, 300 names of a file became 3 GB."""
    folder = tmp_path / "k"
    chunk = b"x" * 1000
    assert _unpacked(
        folder, b"sparse 640 500000000 big\n", b"at 400000000 1000\n", chunk, b"whole\n",
        b"file 600 3 a\n", b"abc", b"same a b\n", b"same b c\n", b"large 1099511627776 huge\n",
    ) == ["a", "b", "big", "c"]  # fmt: skip
    about = (folder / "big").stat()
    assert (about.st_size, about.st_blocks * 512 < 1 << 20) == (500_000_000, True)
    with (folder / "big").open("rb") as file:
        file.seek(399_999_999)
        assert file.read(1002) == b"\0" + chunk + b"\0"
    assert (folder / "c").stat().st_nlink == 3
    kept = unpack(BytesIO(HEAD + b"large 99 x\nend\n"), tmp_path, FLASH)
    assert kept.left_out == [("x", "its size, 99 bytes, is beyond the flash's")]


@pytest.mark.parametrize(
    "stream",
    [
        b"sparse 644 10 a\nat 5 6\n123456whole\nend\n",
        b"sparse 644 10 a\nat 5 -1\nwhole\nend\n",
        b"sparse 644 10 a\nwhat\nend\n",
        b"sparse 644 1099511627776 a\nwhole\nend\n",
        b"file 644 1099511627776 a\nend\n",
        b"same a b\nend\n",
        b"link /etc/passwd a\nsame a b\nend\n",
        b"file 644 1 a\nxsame ../a b\nend\n",
        b"file 644 1 a\nxsame a ../b\nend\n",
    ],
)
def test_what_no_flash_holds_or_no_file_is_ends_in_one_line(tmp_path: Path, stream: bytes) -> None:
    folder = tmp_path / "k"
    folder.mkdir()
    with pytest.raises(RunError, match="--keep"):
        unpack(BytesIO(HEAD + stream), folder, FLASH)
    assert sum(path.stat().st_blocks for path in folder.iterdir()) < 100
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k"]
