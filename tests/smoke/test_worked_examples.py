"""Worked examples over more than one page, and what they leave: long, for `make agreement`.

tests/smoke/test_guides.py follows every guide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.smoke.examples import check, steps
from tests.smoke.following import Place, printed
from tests.support.board import SshBoard, ssh_board


@pytest.fixture(scope="module")
def board_with_data(
    ssh_parts: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SshBoard]:
    """A board with JFFS2 on /data, of a chip whose erases take no time: collecting is over."""
    folder = tmp_path_factory.mktemp("traced") / "board"
    with ssh_board(folder, jffs2_on="data") as board:
        yield board


@pytest.mark.long
@pytest.mark.emulator
@pytest.mark.timeout(900)
def test_trace_my_program(project: Path, tmp_path: Path, board_with_data: SshBoard) -> None:
    """Not on the machine of the tests, which may have no kprobes: on the emulated board."""
    page = project / "docs" / "guide" / "trace.md"
    found = [
        *steps(page, "A program on a board"),
        *steps(page, "A case of an experiment"),
        *steps(page, "Look at it")[:1],
    ]
    assert [step.command.split(" --")[0] for step in found] == [
        "flashbed trace", "flashbed trace", "flashbed table /tmp/insert functions",
        "flashbed report /tmp/insert",
    ]  # fmt: skip
    place = Place.made(tmp_path, {"FLASHBED_SSH": f"ssh -F {board_with_data.config}"})
    for step in found:
        place.run(step, exact=False)
    assert "Layer by layer" in (place.tmp / "insert.html").read_text()
    assert (place.tmp / "insert" / "trace.perfetto-trace").stat().st_size > 0


@pytest.mark.long
@pytest.mark.extension
@pytest.mark.emulator
@pytest.mark.timeout(1200)
def test_calibrate_and_predict(project: Path, tmp_path: Path) -> None:
    guide = project / "docs" / "guide" / "predict.md"
    found = [
        *steps(project / "docs" / "models" / "costs.md", "Calibrate a board"),
        *steps(guide, "Steps"),
        *steps(guide, "Check the answer on Linux"),
    ]
    names = [step.command.split()[1] for step in found]
    assert names == ["calibrate", "run", "cost", "cost", "run"]
    profile = (project / "boards" / "emulated.toml").read_bytes()
    place = Place.made(tmp_path)
    for step in found:
        place.run(step, exact=False)
    assert (project / "boards" / "emulated.toml").read_bytes() == profile
    # What the board itself does is within the band of what was predicted.
    status, lines = printed(f"{found[3].command} --format json", place.here, place.env)
    assert status == 0
    told = "\n".join(line for stream, line in lines if stream == "stdout")
    predicted = json.loads(told)["prediction"]
    (real,) = pl.read_parquet(place.here / "real" / "cases.parquet").to_dicts()
    assert real["target"] == "emulator"
    for cost in ("time_ns", "flash_reads", "flash_programs", "flash_erases"):
        band = predicted[cost]
        assert band["low"] - 0.5 <= real[cost] <= band["high"] + 0.5, cost


def test_the_check_notices() -> None:
    said = ["a  3.1 ms", "b 200", "c"]
    near = [["a 3.0 ms", "..."], ["...", "b 210", "c"]]
    for shown in (["..."], said, ["...", "c"]):
        check(shown, said)
    for shown in near:
        check(shown, said, exact=False)
    others = [["a 3.1 ms"], ["b 200", "..."], ["...", "b 300", "c"], [*said, "d"], ["...", "d"]]
    for shown, exact in [*((shown, True) for shown in near), *((shown, False) for shown in others)]:
        with pytest.raises(AssertionError):
            check(shown, said, exact)
