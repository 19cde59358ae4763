"""All errors of a file are reported together, in the words of its writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.base.toml_errors import LINES_MAX
from flashbed.plan.experiment import load_experiment
from flashbed.stack.profiles import ProfileError, load_board
from tests.support import PROJECT

EXPERIMENT = """\
[experiment]
id = "my/own"
titel = "x"
question = "q"
source = "s"

[workload]
kind = "micro-read"
request_bytes = "4k"
file_bytes = 65_536
settle_ns = 0

[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1"]
fs = ["ext3"]
read_ahead_kib = [0]
pattern = "sequential"
requests = [8]
seed = [1]
state = [{valid = 2, worn = {mean = "x"}}]
"""


def _wrong(text: str, tmp_path: Path) -> list[str]:
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        load_experiment(str(path))
    return [line.split("own.toml: ")[1] for line in (str(raised.value), *raised.value.also)]


def test_all_of_an_experiment_that_is_wrong_is_said(tmp_path: Path) -> None:
    assert _wrong(EXPERIMENT, tmp_path) == [
        "experiment.titel: unknown key, title is meant?",
        'workload.request_bytes: "4k" is not a whole number',
        "grid.1.fs.1: \"ext3\" is not 'jffs2', 'yaffs2', 'ubifs', 'mtd', 'mtd-driver', "
        "'mtdblock', 'ftl', 'ext4' or 'f2fs'",
        'grid.1.pattern: "sequential" is not a list, as ["sequential"] is',
        "grid.1.state.1.valid: 2 is not at most 1",
        'grid.1.state.1.worn.mean: "x" is not a whole number',
    ]


def test_a_key_that_resembles_none_has_no_other_proposed(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("titel = ", "zzzz = ")
    said = _wrong(text, tmp_path)
    assert "experiment.zzzz: unknown key" in said
    assert "experiment.title: missing" in said


def test_a_board_of_which_much_is_wrong_says_so_in_as_many_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "boards").mkdir()
    text = (PROJECT / "boards" / "emulated.toml").read_text()
    bent = text.replace("page_bytes = 2048", 'page_bytes = "2k"').replace(
        "erase_array_ns", "erase_ns"
    )
    (tmp_path / "boards" / "emulated.toml").write_text(bent)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProfileError) as raised:
        load_board("emulated")
    said = [str(raised.value), *raised.value.also]
    assert said == [
        "boards/emulated.toml: chip.erase_ns: unknown key, erase_array_ns is meant?",
        'boards/emulated.toml: chip.page_bytes: "2k" is not a whole number',
    ]


def test_no_more_is_said_than_a_screen_has(tmp_path: Path) -> None:
    keys = "".join(f"titel{number} = 1\n" for number in range(1000))
    said = _wrong(EXPERIMENT.replace('id = "my/own"\n', f'id = "my/own"\n{keys}'), tmp_path)
    assert len(said) == LINES_MAX + 1
    assert said[-1].endswith("more errors, listed when these are fixed")


ONE_MISTAKE = (
    ("[board]", "[board.x]", "board: unknown key x; missing keys name, title, ram_mib, source"),
    ("[board]", "", "unknown keys name, title, ram_mib, cpu_mhz, source; missing key board"),
    ("[memory]", "[memory.x]", "memory: unknown key x; missing keys source, free_kib"),
    ("compressors.lzo.node_ns", "xcompressors.lzo.node_ns",
     "software.xcompressors: unknown key, compressors is meant?"),
)  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line"), ONE_MISTAKE)
def test_one_mistake_in_a_board_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, line: str
) -> None:
    """A table's wrong name was said in as many lines as the table has keys: 21 of `software`."""
    (tmp_path / "boards").mkdir()
    text = (PROJECT / "boards" / "emulated.toml").read_text()
    assert old in text
    (tmp_path / "boards" / "bent.toml").write_text(text.replace(old, new, 1))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProfileError) as raised:
        load_board("bent")
    assert [str(raised.value), *raised.value.also] == [f"boards/bent.toml: {line}"]
