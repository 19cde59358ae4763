"""A statement that never ends is refused by the instructions it takes, on any machine alike."""

from __future__ import annotations

import pytest

from flashbed.plan.database import PAPERS
from flashbed.plan.sqlite import recorder, vfs
from flashbed.plan.sqlite.recorder import SqlRecording, StatementError

COUNT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT "


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (f"{COUNT} count(*) FROM c", "more than 2,000,000 instructions"),
        (f"{COUNT} x FROM c", "more than 1,000 rows"),
        (f"{COUNT} count(*) FROM c a, c b, c d WHERE a.x = b.x * d.x", "instructions"),
        (f"CREATE TABLE t AS {COUNT} randomblob(5000) FROM c", "a file of more"),
        ("SELECT zeroblob(1000000000)", "too big"),
        ("SELECT 'a' LIKE printf('%.9999c', '%')", "too complex"),
    ],
)
def test_a_statement_ends(monkeypatch: pytest.MonkeyPatch, statement: str, why: str) -> None:
    monkeypatch.setattr(recorder, "VM_STEPS_MAX", 2_000_000)
    monkeypatch.setattr(recorder, "ROWS_MAX", 1000)
    monkeypatch.setattr(vfs, "FILE_BYTES_MAX", 1 << 20)
    with SqlRecording({}, PAPERS) as recording, pytest.raises(StatementError, match=why):
        recording.execute(statement)


def test_a_statement_whose_functions_take_hours_ends_by_its_processor_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """LIKE over megabytes is a handful of instructions: the count of these never ended it."""
    monkeypatch.setattr(recorder, "STATEMENT_S", 0.0)
    monkeypatch.setattr(recorder, "TURN_STEPS", 10)
    rows = "SELECT count(*) FROM json_each('[1,2,3,4,5,6,7,8,9]')"
    with pytest.raises(StatementError, match=r"processor time$"):
        SqlRecording({}, PAPERS).execute(f"{rows} WHERE printf('%.9999c', 'a') LIKE '%a%a%a%b'")


def test_the_next_statement_is_counted_from_its_own_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder, "VM_STEPS_MAX", 3_000_000)
    some = "WITH c AS (SELECT value FROM json_each('[1,2]')) SELECT count(*) FROM c"
    with SqlRecording({}, PAPERS) as recording:
        for _ in range(3):
            assert recording.execute(f"{COUNT} x FROM c LIMIT 100000")[-1] == (100_000,)
        assert recording.execute(some) == [(2,)]
