"""What `advise` asks of power cuts: also after the program, while the kernel writes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.answers.advice.words import Durability
from flashbed.api.durability import cut
from flashbed.plan.experiment import load_experiment

UNSYNCED = """flashbed-ops 2
open 0 log rw,create
write 0 0 9000 1 0
close 0
"""


def durability(tmp_path: Path, text: str) -> Durability | str:
    file = tmp_path / "program.ops"
    file.write_text(text)
    experiment = load_experiment(str(file))
    planned = [each for each in experiment.planned if each.case.fs == "ubifs"]
    (found,) = cut(
        experiment, planned, on="sim", samples=50, directory=tmp_path / "cuts",
        progress=lambda _what, _done, _total: None,
    ).values()  # fmt: skip
    return found


def test_what_a_program_did_not_sync_is_lost_after_its_end(tmp_path: Path) -> None:
    """UBIFS makes the name and leaves the data in the cache for half a minute."""
    found = durability(tmp_path, UNSYNCED)
    assert isinstance(found, Durability)
    assert found.damaging > 0
    assert found.word.startswith("may damage")


@pytest.mark.parametrize("end", ["sync\n", "open 1 . ro,directory\nfsync 1\nclose 1\n"])
def test_what_it_synced_is_kept(tmp_path: Path, end: str) -> None:
    found = durability(tmp_path, UNSYNCED.replace("close 0\n", "fsync 0\nclose 0\n") + end)
    assert isinstance(found, Durability)
    assert (found.damaging, found.not_recovered) == (0, 0)
    assert "damage" not in found.word
