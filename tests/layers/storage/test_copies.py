"""Parquet at which Polars ends the process it runs in: one line, and the next file is read."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from flashbed.base import copies
from flashbed.base.copies import DamagedError, copied, copy
from flashbed.base.errors import InputError, RunError
from flashbed.base.frames import read_parquet
from flashbed.results.columns import SCHEMAS
from flashbed.results.merging import FINISHED, made_ours, write_parquet
from flashbed.results.run_directory import RunDirectory, read_table
from tests.support import PROJECT
from tests.support.fatal import FATAL

READS = """
import sys
from pathlib import Path
from flashbed.base.copies import copy
copy(Path(sys.argv[1]))
from flashbed.base import copies
print(copies._copier._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def fatal(tmp_path: Path) -> Path:
    path = tmp_path / "fatal.parquet"
    path.write_bytes(FATAL)
    return path


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.parquet"
    pl.DataFrame({"a": [1, None, 3], "b": ["x", "", None]}).write_parquet(path)
    return path


def test_a_file_at_which_polars_aborts_is_damage(fatal: Path, good: Path) -> None:
    with pytest.raises(DamagedError, match=r"its reader ended \(-6\)"):
        read_parquet(fatal)
    assert read_parquet(good).rows() == [(1, "x"), (None, ""), (3, None)]


def test_a_reader_that_somebody_ends_is_replaced(good: Path) -> None:
    with copy(good):
        pass
    process = copies._copier._process
    assert process is not None
    process.send_signal(signal.SIGSEGV)
    process.wait()
    assert read_parquet(good).height == 3


def test_too_little_memory_is_no_damage(good: Path, tmp_path: Path) -> None:
    """The advice for damage is to remove the file."""
    path = tmp_path / "long.parquet"
    pl.DataFrame({"n": pl.int_range(50_000_000, eager=True)}).write_parquet(
        path, row_group_size=50_000_000
    )
    with copy(good):
        pass
    process = copies._copier._process
    assert process is not None
    resource.prlimit(process.pid, resource.RLIMIT_DATA, (300 << 20, resource.RLIM_INFINITY))
    with pytest.raises(InputError, match="it takes more memory to read than there is"):
        read_parquet(path)


def test_a_disk_too_full_for_the_copy_is_no_damage(good: Path) -> None:
    with Path("/dev/full").open("wb") as full, pytest.raises(RunError, match="No space left"):
        copied(good, full)


def test_a_footer_that_is_refused_is_no_damage(good: Path, tmp_path: Path) -> None:
    """Thrift has one word for all that the system says: "transport error"."""
    bound = len(good.read_bytes()) - 20
    code = f"""
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, ({bound}, {bound}))
import polars as pl
from flashbed.base.copies import copy
from flashbed.base.files import whole
def write(path):
    with whole(path) as new:
        pl.DataFrame({{"a": [1, None, 3], "b": ["x", "", None]}}).write_parquet(new)
for do in (lambda: write(Path("n.parquet")), lambda: copy(Path(sys.argv[1]))):
    try:
        do()
    except Exception as why:
        print(type(why).__name__, why)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code, str(good)],
        capture_output=True, text=True, cwd=tmp_path, check=True,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "python")},
    )  # fmt: skip
    first, second = ended.stdout.splitlines()
    assert first.startswith("RunError n.parquet could not be written to")
    assert first.endswith("File too large")
    assert second.startswith("RunError")
    assert second.endswith("File too large")


def test_no_reader_outlives_the_process_that_asked(good: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", READS, str(good)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=PROJECT,
    ) as asks:  # fmt: skip
        assert asks.stdout is not None
        reader = int(asks.stdout.readline())
        assert Path(f"/proc/{reader}").exists()
        asks.kill()
        asks.wait()
        for _ in range(1000):
            if not Path(f"/proc/{reader}").exists():
                break
            time.sleep(0.01)
        else:
            raise AssertionError("it is still there")


def test_a_table_of_ours_is_its_own_copy(tmp_path: Path) -> None:
    path = tmp_path / "requests.parquet"
    rows = pl.DataFrame({"n": pl.int_range(200_000, eager=True), "t": ["a", "b"] * 100_000})
    write_parquet(rows, path)
    before = path.read_bytes()
    made_ours(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_part_at_which_polars_aborts_is_named(tmp_path: Path) -> None:
    """The run that continues reads it when it merges the parts."""
    folder = tmp_path / "o"
    begun = RunDirectory.create(folder, "t/x")
    cases = pl.DataFrame({"case_id": ["c"], "target": ["sim"]})
    rows = {"requests": pl.DataFrame(schema=SCHEMAS["requests"]), "cases": cases}
    finished = cases.with_columns(pl.lit("k").alias("key"))
    assert finished.columns == list(FINISHED)
    begun.add(rows, finished)
    part = folder / "parts" / "000001" / "requests.parquet"
    part.write_bytes(FATAL)
    goes_on = RunDirectory.create(folder, "t/x")
    with pytest.raises(InputError, match=r"000001/requests\.parquet: damaged; remove"):
        goes_on.merge(["c"])


def test_a_table_at_which_polars_aborts_is_named(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, "t/x")
    (tmp_path / "requests.parquet").write_bytes(FATAL)
    with pytest.raises(InputError, match=r"requests\.parquet: cannot be read"):
        read_table(tmp_path, "requests")
