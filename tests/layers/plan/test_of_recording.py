"""The experiment that a recording or a file of operations becomes."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.plan.of_recording import experiment_of_operations, written_experiment

OPERATIONS = "flashbed-ops 1\nmkdir d\n"


def test_recordings_of_one_name_have_experiments_of_their_own(tmp_path: Path) -> None:
    """One thread read the experiment that another was writing: two of four runs failed."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.rec").touch()
    found = [written_experiment(tmp_path / folder / "x.rec") for folder in ("a", "b")]
    assert found[0].name == found[1].name == "x.toml"
    for folder, file in zip(("a", "b"), found, strict=True):
        assert str(tmp_path / folder / "x.rec") in file.read_text()


@pytest.mark.parametrize("name", ["\U0001f600.ops", "a\x7f'\"b.ops", "a\nb.ops", "ü.ops"])
def test_any_utf_8_may_name_a_file(tmp_path: Path, name: str) -> None:
    """A character beyond 16 bits became two that TOML refuses."""
    (tmp_path / name).write_text(OPERATIONS)
    title = tomllib.loads(experiment_of_operations(tmp_path / name).read_text())
    assert title["experiment"]["title"] == f"The operations of {name}"


def test_a_name_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    """`run` ended in "not TOML", `ops cut` and `record` in internal errors."""
    file = Path(os.fsdecode(os.fsencode(tmp_path / "x") + b"\xff.ops"))
    file.write_text(OPERATIONS)
    for made in (experiment_of_operations, written_experiment):
        with pytest.raises(InputError, match=r"not UTF-8; rename it"):
            made(file)
