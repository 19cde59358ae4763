"""Files here that a command names are told, and how they get onto the flash."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.stack.profiles import load_board
from flashbed.targets.exec.named_files import missing_files
from flashbed.targets.exec.request import find, puts_of


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my.py").write_text("x")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "in").write_text("x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["python3", "my.py"], "--put my.py"),
        (["sh", "-c", "cat data/in my.py > out"], "--put data --put my.py"),
        (["dd", "if=data/in", "of=out"], "--put data"),
        (["cat", "/dev/null", "/proc/self/stat", "/etc/passwd"], None),
        (["python3", "other.py", "-c", "it's", "..", "."], None),
        (["my.py"], None),
    ],
)
def test_a_file_here_that_the_program_will_not_find_is_told(
    here: Path, words: list[str], options: str | None
) -> None:
    """`exec -- python3 my.py` ended in a bare ENOENT."""
    said = missing_files(words, [])
    assert said is None if options is None else said is not None and said.endswith(f": {options}")


def test_what_is_put_is_there(here: Path) -> None:
    puts = puts_of([Path("my.py"), Path("data")], load_board("emulated"))
    assert missing_files(["cat", "my.py", "data/in"], puts) is None


def test_a_file_below_a_folder_that_the_program_sees_empty_is_told() -> None:
    with_name = Path("/tmp") / "flashbed-named-file-of-test"
    with_name.write_text("x")
    try:
        said = missing_files(["cat", str(with_name)], [])
    finally:
        with_name.unlink()
    assert said is not None
    assert said.endswith(f"--put {with_name}")


def test_a_program_in_a_folder_that_is_hidden_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that PATH finds below /tmp was refused without its path."""
    monkeypatch.setattr("flashbed.targets.exec.request.COVERS", (str(tmp_path),))
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    with pytest.raises(InputError, match=f"tool: {tool} is in {tmp_path}, where"):
        find("tool", str(tmp_path), ())
    elsewhere = tmp_path.parent / f"{tmp_path.name}-script"
    elsewhere.write_text(f"#!{tool}\n")
    elsewhere.chmod(0o755)
    with pytest.raises(InputError, match=f"its interpreter {tool} is in {tmp_path}"):
        find(str(elsewhere), "", ())
