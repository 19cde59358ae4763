"""`flashbed trace` as a user meets it: what it refuses, and where it keeps a trace."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import polars as pl
import pytest

from flashbed.bench.tracing.trace import load
from tests.smoke.conftest import Run

OPERATIONS = "flashbed-ops 1\nopen 0 f rw,create\nwrite 0 0 4096 1 0\nclose 0\n"


@pytest.fixture
def operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("my.ops").write_text(OPERATIONS)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("my.ops --on sim --set fs=ext3", "--set fs=ext3: no such file system; there are jffs2"),
        ("my.ops --on sim --set fs=jffs2,ubifs", "2 stacks; only one holds here"),
        ("my.ops --on uml --set state=valid0.5", "--set state=valid0.5: does not hold here"),
        ("my.ops", "my.ops: a file of operations, not a command; --on says where to run it"),
        ("my.rec", "my.rec: a recording, not a command; --on says where to run it"),
        ("my.ops --on ssh://root@board", "my.ops: a file of operations, not a command"),
        ("sqlite/requests", "sqlite/requests: an experiment, not a command; --on says"),
        ("mine.toml", "mine.toml: an experiment, not a command"),
    ],
)
def test_what_cannot_be_traced_is_one_line_and_exit_2(
    operations: Path, run: Run, arguments: str, says: str
) -> None:
    """The first two were internal errors, the others were run as a command."""
    status, out, err = run("trace", *arguments.split())
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1
    assert not Path("results").exists()


@pytest.mark.extension
def test_a_trace_is_not_overwritten_without_a_word(operations: Path, run: Run) -> None:
    """Every trace was kept in results/trace, in place of the one before."""
    words = ("trace", "my.ops", "--on", "sim", "--flash")
    places = [run(*words)[1].splitlines()[-1] for _ in range(2)]
    assert places == ["results/trace/my", "results/trace/my-2"]
    assert run(*words, "--out", "mine", "--export", "flashmon", "--export", "csv")[2] == ""
    status, _, err = run(*words, "--set", "mount=ubifs:bulk_read", "--out", "mine")
    assert (status, err) == (0, "flashbed: mine: replaces the trace of my\n")
    assert load(Path("mine")).facts.fs == "ubifs"
    # Nothing of the old one is taken for the new one's.
    assert sorted(file.suffix for file in Path("mine").iterdir()) == [".json"] + [".parquet"] * 4


def peak_kib(arguments: list[str]) -> int:
    """The most memory that a run of the program had."""
    program = [sys.executable, "-c", "from flashbed.__main__ import main; main()", *arguments]
    pid = os.spawnv(os.P_NOWAIT, sys.executable, program)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0
    return usage.ru_maxrss


@pytest.mark.extension
def test_ten_times_the_operations_take_hardly_more_memory(tmp_path: Path) -> None:
    """An operation took 1.25 KB: a million of them had 1.1 GB, ten million were killed."""
    read = "read 0 0 4096\n"
    peaks = []
    for reads in (70_000, 700_000):
        path = tmp_path / f"{reads}.ops"
        path.write_text(OPERATIONS.replace("close", f"{read * reads}close"))
        out = str(tmp_path / str(reads))
        peaks.append(peak_kib(["trace", str(path), "--on", "sim", "--flash", "--out", out]))
        counted = pl.scan_parquet(f"{out}/requests.parquet").select(pl.len()).collect().item()
        assert counted == reads + 3
    assert peaks[1] - peaks[0] < 150 << 10
