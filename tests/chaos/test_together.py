"""Several processes write into one folder: results stay whole, and a refused process says why."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

from flashbed.base.locking import held
from tests.chaos.program import bytes_of, finish, start

pytestmark = pytest.mark.extension
AT_ONCE = 4
ONE = ("run", "small/one", "--set", "kernel=2.6.37,6.1")


@pytest.fixture
def whole(small: Path, tmp_path: Path) -> dict[str, str]:
    """The bytes that a run alone leaves."""
    assert finish(start([*ONE, "--out", "alone"], tmp_path)).status == 0
    return bytes_of(tmp_path / "alone")


def test_runs_into_one_folder_lose_nothing(whole: dict[str, str], tmp_path: Path) -> None:
    """Four simultaneous runs lost cases in each of four rounds, and seven processes had exit 0.

    They gave parts the same numbers and removed each other's; only the last one's were merged.
    """
    for number in range(2):
        out = f"together-{number}"
        running = [start([*ONE, "--out", out], tmp_path) for _ in range(AT_ONCE)]
        ended = [finish(process) for process in running]
        assert {process.status for process in ended} <= {0, 2}
        assert any(process.status == 0 for process in ended)
        pids = {str(process.pid) for process in running}
        for process in ended:
            if process.status == 2:
                line = process.err.strip()
                said = re.fullmatch(
                    rf"flashbed: {out}: pid (\d+) on \S+ is writing there; .*", line
                )
                assert said is not None, line
                assert said[1] in pids
        assert bytes_of(tmp_path / out) == whole


@pytest.mark.parametrize(
    "words", [ONE, ("reproduce", "small", "--on", "sim"), ("powercut", "small/one", "--on", "sim")]
)
def test_a_folder_that_is_being_written_is_refused_at_once(
    words: tuple[str, ...], small: Path, tmp_path: Path
) -> None:
    with held(tmp_path / "r"):
        ended = finish(start([*words, "--out", "r"], tmp_path))
    assert ended.status == 2, ended.err
    assert re.fullmatch(r"flashbed: r: pid \d+ on \S+ is writing there; [^\n]*\n", ended.err)
    assert not (tmp_path / "r").exists()


def test_suites_that_end_at_once_are_both_kept(small: Path, tmp_path: Path) -> None:
    """Each read the table, put its own rows into it, and wrote it: the last one's were over."""
    keeps = """
import sys
import polars as pl
from pathlib import Path
from flashbed.bench.validation import MEASURES, ComparedSuite
from flashbed.bench.validation.results_table import keep
numbers = [f"{name}{end}" for name in MEASURES for end in ("", "_real", "_error_pct")]
table = pl.DataFrame({"case_id": ["a"], **{name: [0] for name in numbers}})
for kernel in range(25):
    run = {"board": "b", "kernel": str(kernel), "target": sys.argv[1], "suite": "reads"}
    nothing = {"limits": {}, "refused": {}, "failed": {}}
    keep(Path("v"), run, ComparedSuite(table=table, kinds={"a": "x"}, **nothing), {})
sys.exit()
"""
    running = [start([f"t{number}"], tmp_path, before=keeps) for number in range(AT_ONCE)]
    ended = [finish(process) for process in running]
    assert [process.status for process in ended] == [0] * AT_ONCE, ended[0].err
    assert pl.read_parquet(tmp_path / "v" / "validation.parquet").height == AT_ONCE * 25
    assert [path.name for path in (tmp_path / "v").iterdir()] == ["validation.parquet"]
