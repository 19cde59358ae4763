"""Names that become paths, texts that are printed, and what a message may quote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flashbed.base.errors import InputError
from flashbed.cli.progress import say
from flashbed.plan.experiment import ExperimentError, read_experiment
from flashbed.plan.study import load_study
from flashbed.results.run_directory import conform, read_table
from flashbed.stack.names import MESSAGE_CHARACTERS, escaped, is_name, message
from flashbed.stack.profiles import load_board, load_kernel
from tests.support import SMALL

FLASHBED = str(Path(sys.executable).parent / "flashbed")
NO_NAMES = ("", ".", "..", "../x", "/etc/passwd", "a/b", "a\nb", "a\x1b[2J", "-x", "a" * 65, "ü")


def changed(tmp_path: Path, before: str, after: str) -> Path:
    text = SMALL.read_text()
    assert before in text
    path = tmp_path / "x.toml"
    path.write_text(text.replace(before, after))
    return path


@given(st.text(max_size=80))
def test_a_name_stays_in_its_folder(text: str) -> None:
    if is_name(text):
        folder = Path("/results")
        assert (folder / text).parent == folder
        assert Path(f"/results/{text}.toml").resolve().parent == folder
        assert escaped(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "../../x",
        "../x/y",
        "/tmp/x",
        "/x",
        "x",
        "a/b/c",
        "a/..",
        "a//b",
        "",
        "t/x\\ny",
        "t/\\u001b[2J",
    ],
)
def test_an_experiment_cannot_be_called_like_a_path(tmp_path: Path, text: str) -> None:
    path = changed(tmp_path, 'id = "small/one"', f'id = "{text}"')
    with pytest.raises(ExperimentError, match=r"experiment\.id: .* is not STUDY/NAME"):
        read_experiment(path)


def test_nothing_is_written_elsewhere(tmp_path: Path) -> None:
    path = changed(tmp_path, 'id = "small/one"', 'id = "../../x"')
    (tmp_path / "a" / "b").mkdir(parents=True)
    done = subprocess.run(
        [FLASHBED, "run", path],
        cwd=tmp_path / "a" / "b",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert {file.name for file in tmp_path.rglob("*")} == {"a", "b", "x.toml"}


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ('title = "Small"', 'title = "a\\nb"', "experiment.title: character 2 is "),
        ('title = "Small"', 'title = "a\\u202eb"', "experiment.title: character 2 is "),
        ('board = ["omap3evm"]', 'board = ["../../etc/passwd"]', "grid.1.board.1: "),
        ('kernel = ["6.1"]', 'kernel = ["/etc/passwd"]', "grid.2.kernel.1: "),
    ],
)
def test_texts_are_one_line_and_profiles_have_names(
    tmp_path: Path, before: str, after: str, key: str
) -> None:
    with pytest.raises(ExperimentError) as why:
        read_experiment(changed(tmp_path, before, after))
    assert key in str(why.value)


@pytest.mark.parametrize("name", NO_NAMES)
def test_no_profile_or_study_is_read_elsewhere(name: str) -> None:
    with pytest.raises(InputError, match="not a board's name"):
        load_board(name)
    with pytest.raises(InputError, match="not a kernel's name"):
        load_kernel(name)
    assert load_study(name) is None


@given(st.text(max_size=2000))
def test_a_message_is_one_line_that_a_terminal_prints(text: str) -> None:
    assert message(text).isprintable()
    assert len(message(text)) <= MESSAGE_CHARACTERS
    if len(text) <= MESSAGE_CHARACTERS and text.isprintable():
        assert message(text) == text


def test_what_is_said_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    say("flashbed: a\x1b[2J\nb\udcff")
    assert capsys.readouterr().err == "flashbed: a\\x1b[2J\\nb\\udcff\n"


def test_a_table_that_a_terminal_would_obey_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    frame = pl.DataFrame({"case_id": ["a\x1b[2J"], "target": ["sim"]})
    conform(frame, "cases").write_parquet(tmp_path / "cases.parquet")
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path, "cases")
