"""Power cuts on real file systems, in user-mode Linux on our own chip."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from flashbed.experiment import load_experiment, parse_settings, plan
from flashbed.powercut.judge import LOST, NOT_MOUNTED, RECOVERED
from flashbed.powercut.run import Choice, PowerCuts
from flashbed.runner import programs_of
from flashbed.targets.uml import UmlTarget

pytestmark = [pytest.mark.uml, pytest.mark.timeout(300)]


def cut(work: Path, fs: str, choice: Choice) -> pl.DataFrame:
    return cuts_and_requests(work, fs, choice)[0]


def cuts_and_requests(work: Path, fs: str, choice: Choice) -> tuple[pl.DataFrame, pl.DataFrame]:
    experiment = load_experiment("powercut/fsync")
    cases = [item.case for item in plan(experiment, parse_settings([f"fs={fs}"]))]
    target = PowerCuts(UmlTarget(work_dir=work), choice, "uml")
    batches = list(
        target.run(programs_of(experiment, cases), trace_flash=False, progress=lambda *_: None)
    )
    assert [failure for batch in batches for failure in batch.failures] == []
    return (
        pl.concat([batch.power_cuts for batch in batches if batch.power_cuts.height]),
        pl.concat([batch.requests for batch in batches if batch.requests.height]),
    )


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_what_fsync_acknowledged_survives_sixty_cuts(tmp_path: Path, fs: str) -> None:
    rows = cut(tmp_path, fs, Choice(None, 60, 1))
    assert rows.height == 60
    assert rows.filter(pl.col("verdict") != RECOVERED)["reason"].to_list() == []
    assert rows["acknowledged_files"].max() > 8  # type: ignore[operator]
    assert rows["lost_files"].sum() == 0
    # 400 blocks are scanned: a mount that read less, or nothing, would be none.
    assert rows["mount_time_ns"].min() > 100_000_000  # type: ignore[operator]


@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_a_chip_that_loses_a_program_is_caught(tmp_path: Path, fs: str) -> None:
    rows = cut(tmp_path, fs, Choice(10, None, 1, ("drop 100",)))
    before, after = rows.filter(pl.col("change") < 100), rows.filter(pl.col("change") > 100)
    assert set(before["verdict"]) == {RECOVERED}
    caught = after.filter(pl.col("verdict").is_in([LOST, NOT_MOUNTED]))
    assert caught.height > 0
    assert all(reason for reason in caught["reason"])


def test_yaffs2_keeps_what_fsync_acknowledged_but_in_a_truncation(tmp_path: Path) -> None:
    """yaffs_resize_file_down writes the last chunk, zeros behind its end, before the header."""
    rows, requests = cuts_and_requests(tmp_path, "yaffs2", Choice(4, None, 1))
    assert rows.height > 250
    lost = rows.filter(pl.col("verdict") != RECOVERED)
    assert set(lost["verdict"]) <= {LOST}
    for change, reason in lost.select("change", "reason").iter_rows():
        during = requests.filter(pl.col("changes") >= change).row(0, named=True)
        assert (during["op"], "acknowledged bytes are zero" in reason) == ("truncate", True), reason
    assert rows["acknowledged_files"].max() > 8  # type: ignore[operator]
    # The checkpoint of the prepared file system goes with the first change: the blocks are scanned.
    assert rows["mount_time_ns"].median() > 100_000_000  # type: ignore[operator]
