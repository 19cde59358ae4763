"""A filtered strace becomes a program with SQLite's rollback journal in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from flashbed.errors import InputError
from flashbed.operations import canonical
from flashbed.replay.strace import Content, grown_bytes, operations_of, read_strace

STRACE = """#<time_stamp>;<sys_call>;<arguments;>;<file_name>;<elapsed>
10.0;open;3;0;0;0;/mnt/flash/test.db;0.0001
11.0;open;4;0;0;0;/mnt/flash/test.db-journal;0.0001
11.0;write;4;516;1024;/mnt/flash/test.db-journal;0.0001
11.0;read;4;3072;0;/mnt/flash/test.db-journal;0.0001
11.0;write;4;0;12;/mnt/flash/test.db-journal;0.0001
12.0;write;3;2048;1024;/mnt/flash/test.db;0.0001
12.0;close;4;/mnt/flash/test.db-journal;0.0001
12.0;close;3;/mnt/flash/test.db;0.0001
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "strace.csv"
    path.write_text(text, encoding="ascii")
    return path


def test_syncs_and_the_unlink_come_back_and_pauses_stretch(tmp_path: Path) -> None:
    calls = read_strace(written(tmp_path, STRACE))
    assert grown_bytes(calls) == 1024
    operations = operations_of(calls, 1_000_000_000, Content(records=20), shift_bytes=1024)
    assert canonical(operations).split("\n")[1:-1] == [
        "open 3 test.db rw,create",
        "pause 500000000",
        "open 4 test.db-journal rw,create",
        "write 4 516 1024 3 20",
        "fsync 4",
        "write 4 0 12 5 95",
        "fsync 4",
        "pause 500000000",
        "write 3 3072 1024 6 20",
        "fsync 3",
        "close 4",
        "unlink test.db-journal",
        "close 3",
    ]


def test_a_line_that_is_no_call_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"strace\.csv:2: not a call"):
        read_strace(
            written(tmp_path, "10.0;open;3;0;0;0;/mnt/flash/test.db;0.0001\n11.0;write;4\n")
        )
