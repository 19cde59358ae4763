"""Logs of SQLite on a board become programs: reads as they were, INSERTs by SQLite itself."""

from __future__ import annotations

import random
import string
from collections import Counter
from pathlib import Path

import pytest

from flashbed.base.errors import InputError
from flashbed.program.operations import canonical
from tests.support.replay.board_traces import FlashmonLog, insert_series, read_flashmon
from tests.support.replay.inserts import PAGE_BYTES, compressibility, transactions
from tests.support.replay.strace import pace_of, read_strace, reads_of

INSERTS = "".join(
    f"""{at + 0.0};open;4;0;0;0;/mnt/flash/test.db-journal;0.0001
{at + 0.1};write;4;0;512;/mnt/flash/test.db-journal;0.0001
{at + 0.2};write;4;512;4;/mnt/flash/test.db-journal;0.0001
{at + 0.3};write;4;516;1024;/mnt/flash/test.db-journal;0.0001
{at + 0.4};write;4;1540;4;/mnt/flash/test.db-journal;0.0001
{at + 0.5};read;4;3072;0;/mnt/flash/test.db-journal;0.0001
{at + 0.6};write;4;0;12;/mnt/flash/test.db-journal;0.0001
{at + 0.7};write;3;2048;1024;/mnt/flash/test.db;0.0001
{at + 0.8};close;4;/mnt/flash/test.db-journal;0.0001
"""
    for at in (10, 11, 12)
)
SELECT = """#<time_stamp>;<sys_call>;<arguments;>;<file_name>;<elapsed>
10.0;open;3;0;0;0;/mnt/flash/test.db;0.0001
10.5;read;3;0;100;/mnt/flash/test.db;0.0001
10.5;read;3;4096;0;/mnt/flash/test.db;0.0001
10.5;close;3;/mnt/flash/test.db;0.0001
11.0;open;3;0;0;0;/mnt/flash/test.db;0.0001
11.0;close;3;/mnt/flash/test.db;0.0001
"""
SECOND_NS = 1_000_000_000


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="ascii")
    return path


def test_a_program_that_reads_is_as_it_was_logged(tmp_path: Path) -> None:
    calls = read_strace(written(tmp_path, SELECT))
    assert canonical(reads_of(calls)).split("\n")[1:-1] == [
        "open 3 test.db ro",
        "pause 500000000",
        "read 3 0 100",
        "close 3",
        "pause 500000000",
        "open 9 test.db ro",  # the page cache is dropped, and the inode kept
        "drop_caches",
        "close 9",
        "open 3 test.db ro",
        "close 3",
    ]


def test_a_pace_is_in_parts_of_a_transaction(tmp_path: Path) -> None:
    pace = pace_of(read_strace(written(tmp_path, INSERTS)))
    assert pace.journal == pytest.approx((0.1, 0.2, 0.3, 0.4))
    assert (pace.synced, pace.completed, pace.closed) == pytest.approx((0.5, 0.6, 0.8))
    assert pace.database == pytest.approx((0.7,))


def test_an_inner_page_of_the_table_is_journaled_and_written_once_there_is_one() -> None:
    made = transactions(682, 151)
    pages = [[page.number for page in made[number].written] for number in (0, 1, 2, 150)]
    assert pages == [[0, 1], [0, 1, 2, 3], [0, 1, 4], [0, 147, 154]]
    journaled = [{page.number for page in made[number].journaled} for number in (2, 150)]
    assert journaled == [{0, 1}, {0, 147}]
    assert made[150].leaf == 154


def test_compressibility_is_that_of_the_bytes() -> None:
    letters = (string.ascii_letters + string.digits).encode()
    draw = random.Random(3)  # any bytes
    text = bytes(draw.choices(letters, k=PAGE_BYTES))
    noise = draw.randbytes(PAGE_BYTES)
    half = noise[: PAGE_BYTES // 2] + bytes(PAGE_BYTES // 2)
    assert compressibility(bytes(PAGE_BYTES)) == 100
    assert compressibility(noise) == 0
    assert compressibility(text) == pytest.approx(26, abs=2)  # zlib; 6 of 8 bits
    assert compressibility(half) == pytest.approx(50 + 3, abs=1)  # LZO


def test_a_flashmon_log_tells_program_and_threads_apart(tmp_path: Path) -> None:
    log = read_flashmon(
        written(tmp_path, "1.5;R;70;insert\n2.0;W;71;insert\n4.5;W;72;sync_supers\n")
    )
    counts = {("read", "insert"): 1, ("program", "insert"): 1, ("program", "sync_supers"): 1}
    assert log == FlashmonLog(1_500_000_000, 2_000_000_000, Counter(counts), (4_500_000_000,))
    assert log.total("program") == 2


def test_a_run_nobody_logged_is_between_its_neighbours(tmp_path: Path) -> None:
    def log(start_s: int) -> FlashmonLog:
        start_ns, end_ns = start_s * SECOND_NS, (start_s + 200) * SECOND_NS
        return FlashmonLog(start_ns, end_ns, Counter(), (start_ns,))

    calls = read_strace(written(tmp_path, INSERTS))
    series = insert_series(682, {1: log(6), 3: log(420)}, calls)
    lines = series.program.body.split("\n")[1:]
    assert len(series.starts) == 3
    assert sum(line.startswith("unlink") for line in lines) == 1 + 3 * 100
    begun_ns = [
        sum(int(line.split()[1]) for line in lines[:start] if line.startswith("pause"))
        for start in series.starts
    ]
    assert [after - begun_ns[0] for after in begun_ns] == [0, 204 * SECOND_NS, 414 * SECOND_NS]


def test_a_line_that_is_no_call_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"log\.csv:2: not a call"):
        read_strace(
            written(tmp_path, "10.0;open;3;0;0;0;/mnt/flash/test.db;0.0001\n11.0;write;4\n")
        )
