"""What a power cut may leave of a database: whole transactions, and all that were durable."""

from __future__ import annotations

from dataclasses import replace

import apsw
import pytest

from flashbed.base.errors import InputError
from flashbed.bench.powercut.judge import CORRUPT, LOST, RECOVERED, judge
from flashbed.plan.sqlite.call_tables import Tables, checked, tables_of
from flashbed.targets.base import Survey, SurveyedDatabase
from tests.layers.powercut.test_powercut_judge import Files, done, found

FULL = "PRAGMA journal_mode=truncate; PRAGMA synchronous=full"
STATEMENTS = """
    sql d/a.db CREATE TABLE t (k INTEGER PRIMARY KEY, v) = 10
    sql d/a.db INSERT INTO t VALUES (1, 'one') = 20
    sql d/a.db BEGIN
    sql d/a.db INSERT INTO t VALUES (2, 2.5), (3, NULL) = 30
    sql d/a.db UPDATE t SET v=x'00ff' WHERE k=1 = 40
    sql d/a.db COMMIT = 50
    sql d/a.db SELECT * FROM t
    sql_close d/a.db = 60
"""
CREATED = ("CREATE TABLE t (k INTEGER PRIMARY KEY, v)",)
INSERTED = (*CREATED, "INSERT INTO t VALUES (1, 'one')")
HALF = (*INSERTED, "INSERT INTO t VALUES (2, 2.5), (3, NULL)")
COMMITTED = (*HALF, "UPDATE t SET v=x'00ff' WHERE k=1")


def text(settings: str = FULL) -> str:
    return f"mkdir d\nsql_open d/a.db 1 fsync {settings}\n{STATEMENTS}"


def held(statements: tuple[str, ...]) -> Tables:
    connection = apsw.Connection(":memory:")
    for statement in statements:
        connection.execute(statement)
    assert checked(connection) == "ok"
    return tables_of(connection)


def survey(change: int, tables: Tables, words: str = "ok", result: int = 0) -> Survey:
    database = SurveyedDatabase("d/a.db", result, words, tables)
    files: Files = {"d/a.db": [(9, "other")], "d/a.db-journal": [(7, "other")]}
    return replace(found(files, change), database=database)


def verdict(
    change: int, statements: tuple[str, ...], settings: str = FULL
) -> tuple[str, str | None]:
    (one,) = judge(done(text(settings)), [survey(change, held(statements))])
    return one.verdict, one.reason


def test_a_transaction_is_there_whole_or_not_at_all() -> None:
    for during in (25, 35, 45):
        assert verdict(during, INSERTED) == (RECOVERED, None)
    assert verdict(45, COMMITTED) == (RECOVERED, None)
    what = "d/a.db: its tables match no state between transactions"
    assert verdict(45, HALF) == (CORRUPT, what)
    assert verdict(35, COMMITTED) == (CORRUPT, what)  # END had not been called


def test_a_transaction_that_was_acknowledged_is_there() -> None:
    assert verdict(55, COMMITTED) == (RECOVERED, None)
    lost = "d/a.db: 1 acknowledged transactions are missing"
    assert verdict(55, INSERTED) == (LOST, lost)
    assert verdict(25, CREATED) == (LOST, lost)


@pytest.mark.parametrize(
    ("settings", "last_but"),
    [
        ("PRAGMA journal_mode=delete; PRAGMA synchronous=extra", 0),
        ("PRAGMA journal_mode=delete; PRAGMA synchronous=full", 1),
        ("PRAGMA journal_mode=persist; PRAGMA synchronous=full", 0),
        ("PRAGMA journal_mode=persist; PRAGMA synchronous=normal", 1),
        ("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=wal; PRAGMA synchronous=full", 0),
        ("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=wal; PRAGMA synchronous=normal", 3),
        ("PRAGMA journal_mode=memory; PRAGMA synchronous=full", 3),
        ("PRAGMA journal_mode=delete; PRAGMA synchronous=off", 3),
    ],
)
def test_how_many_transactions_may_be_rolled_back_is_the_settings(
    settings: str, last_but: int
) -> None:
    states = (COMMITTED, INSERTED, CREATED, ())
    said = [verdict(55, state, settings)[0] for state in states]
    assert said == [RECOVERED] * (1 + last_but) + [LOST] * (3 - last_but)


def test_a_database_that_is_not_whole_is_corrupt_and_says_why() -> None:
    broken = survey(55, held(COMMITTED), "Tree 2 page 2 cell 0: Rowid 2 out of order")
    unreadable = survey(55, {}, "database disk image is malformed", -11)
    for left in (broken, unreadable):
        (one,) = judge(done(text()), [left])
        assert left.database is not None
        assert (one.verdict, one.reason) == (CORRUPT, f"d/a.db: {left.database.words}")


def test_a_database_that_is_gone_is_lost_once_it_was_acknowledged() -> None:
    gone = "unable to open database file"
    (before,) = judge(done(text()), [survey(5, {}, gone, -14)])
    (after,) = judge(done(text()), [survey(15, {}, gone, -14)])
    assert (before.verdict, before.acknowledged_files) == (RECOVERED, 0)
    assert (after.verdict, after.acknowledged_files) == (LOST, 1)
    assert (after.lost_files, after.kept_files) == (1, 0)


def test_what_a_statement_that_failed_left_is_not_guessed() -> None:
    steps = [replace(step, result=-13) if step.changes == 40 else step for step in done(text())]
    with pytest.raises(InputError, match="what a statement that failed left"):
        list(judge(steps, [survey(55, held(COMMITTED))]))
