"""SQLite over files that write down what it asks: the calls, the costs, the workload."""

from __future__ import annotations

import random
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.answers.analysis.rates import RATE_POINT
from flashbed.answers.analysis.statements import statement_agreement, statement_points, statements
from flashbed.base.errors import InputError
from flashbed.plan.case import Case
from flashbed.plan.database import PAPERS, Database
from flashbed.plan.experiment import read_experiment
from flashbed.plan.narrowing import plan
from flashbed.plan.sqlite.compressibility import compressibility
from flashbed.plan.sqlite.recorder import DATABASE_PATH, SqlRecording, StatementError
from flashbed.plan.sqlite.vfs import Files
from flashbed.plan.workloads.sqlite import operations
from flashbed.program.operations import parse
from flashbed.program.sql import escaped, statement_kind
from flashbed.stack.profiles import load_board

JOURNAL = f"{DATABASE_PATH}-journal"


def table(files: Files, database: Database = PAPERS, rows: int = 0) -> None:
    with SqlRecording(files, database) as recording:
        recording.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, val TEXT)")
        for row in range(rows):
            recording.execute(f"INSERT INTO t VALUES ({row}, '{'x' * 300}')")


def calls(lines: list[str]) -> list[str]:
    """Without what differs by content, and what is looked for and not there."""
    known = []
    for line in lines:
        words = line.split(" ")
        known.append(" ".join(words[:4] if words[0] == "write" else words))
    return known


def test_an_insert_makes_the_calls_that_a_board_was_seen_to_make() -> None:
    """The second INSERT of the omap3evm's strace (olivierpierre/openflash:tecs, INSERT 128).

    The trace has no syncs, unlinks and accesses; opening the directory is there, to sync it.
    """
    files: Files = {}
    table(files)
    with SqlRecording(files, PAPERS) as recording:
        recording.execute("INSERT INTO t VALUES (1, 'x')")
        before = len(recording.lines)
        recording.execute("INSERT INTO t VALUES (2, 'x')")
        made = calls(recording.lines[before:])
    unseen = ("fsync", "unlink", "compute")
    looked_for = [index for index, line in enumerate(made) if line.endswith(" ro") and "." in line]
    skipped = {i for index in looked_for for i in (index, index + 1)}
    seen = [
        line
        for index, line in enumerate(made)
        if index not in skipped and not line.startswith(unseen)
    ]
    assert seen[seen.index("read 0 24 16") :] == [
        "read 0 24 16",
        f"open 1 {JOURNAL} rw,create",
        "write 1 0 512",
        "write 1 512 4",
        "write 1 516 1024",
        "write 1 1540 4",
        "write 1 1544 4",
        "write 1 1548 1024",
        "write 1 2572 4",
        "read 1 3072 8",
        "open 2 db ro",
        "close 2",
        "write 1 0 12",
        "write 0 0 1024",
        "write 0 1024 1024",
        "close 1",
    ]
    assert f"unlink {JOURNAL}" in made


def ends(journal: str, **more: str) -> list[str]:
    """What a committed INSERT does to its journal last."""
    files: Files = {}
    database = Database.model_validate({"journal": journal, **more})
    table(files, database)
    with SqlRecording(files, database) as recording:
        before = len(recording.lines)
        recording.execute("INSERT INTO t VALUES (1, 'x')")
        return calls(recording.lines[before:])


def test_every_journal_ends_a_transaction_in_its_own_way() -> None:
    assert f"unlink {JOURNAL}" in ends("delete")
    assert "truncate 1 0" in ends("truncate")
    assert {"write 1 0 28", "fsync 1"} <= set(ends("persist"))
    assert not any("-journal rw" in line for line in ends("memory"))
    wal = ends("wal")
    assert not any(
        line.startswith("write 0 ") for line in wal
    )  # the database waits for a checkpoint
    assert any(line.startswith("write 1 ") for line in wal)


def test_without_synchronous_nothing_is_synced() -> None:
    assert not any("sync" in line for line in ends("delete", synchronous="off"))
    assert "fsync 1" in ends("delete")
    assert not any(line.startswith("fdatasync") for line in ends("persist"))
    assert not any(line.startswith("fsync") for line in ends("persist", sync="fdatasync"))
    assert "fdatasync 1" in ends("delete", sync="fdatasync")


def test_a_journal_that_is_kept_has_its_directory_synced_by_every_connection() -> None:
    """os_unix.c unixOpen sets UNIXFILE_DIRSYNC by O_CREAT, whether or not the file was there."""
    kept = ends("persist")
    opened = kept.index(f"open 1 {JOURNAL} rw,create")
    synced = kept.index("fsync 1", opened)
    assert kept[synced + 1 : synced + 4] == ["open 2 db ro", "fsync 2", "close 2"]


def test_what_is_written_is_sqlites_own_database(tmp_path: Path) -> None:
    files: Files = {}
    table(files, rows=30)
    assert set(files) == {DATABASE_PATH}
    copy = tmp_path / "copy.db"
    copy.write_bytes(files[DATABASE_PATH])
    with sqlite3.connect(copy) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert database.execute("SELECT count(*), max(id) FROM t").fetchone() == (30, 29)
        assert database.execute("PRAGMA page_size").fetchone() == (1024,)


def test_a_statement_that_fails_says_so_and_what_it_did_stays_recorded() -> None:
    files: Files = {}
    table(files, rows=3)
    with SqlRecording(files, PAPERS) as recording:
        with pytest.raises(
            StatementError, match=r"INSERT INTO t VALUES \(1, 2\): UNIQUE constraint"
        ):
            recording.execute("INSERT INTO t VALUES (1, 2)")
        assert recording.lines[-1].startswith("compute ")
        assert recording.execute("SELECT count(*) FROM t") == [(3,)]
    assert set(files) == {DATABASE_PATH}


def test_a_rollback_restores_what_spilled() -> None:
    """With a small cache pages reach the file before COMMIT; the journal has the old ones."""
    database = Database(cache_pages=10)
    files: Files = {}
    table(files, database, rows=200)
    before = bytes(files[DATABASE_PATH])
    with SqlRecording(files, database) as recording:
        recording.execute("BEGIN")
        recording.execute("UPDATE t SET val = 'changed'")
        spilled = sum(line.startswith("write 0 ") for line in recording.lines)
        recording.execute("ROLLBACK")
        assert spilled > 10
        assert recording.execute("SELECT count(*) FROM t WHERE val = 'changed'") == [(0,)]
    assert bytes(files[DATABASE_PATH])[100:] == before[100:]


def test_sqlites_own_work_is_priced_by_table_ii_and_by_the_two_clocks() -> None:
    """Two prices, a step and a byte of text: one price took 1.24 ms for an insert of 600 bytes.

    Table II of the SQLite paper, means of queries 11 to 19: 0.7067 ms at 150 bytes, 0.8367 at 600.
    Those of 300 bytes, 0.60 to 0.83 ms, are predicted.
    """
    apf27, omap3evm = (load_board(name) for name in ("apf27", "omap3evm"))

    def insert_ms(record_bytes: int) -> float:
        asked = replace(case("insert"), request_bytes=record_bytes, board="apf27", kernel="2.6.29")
        _, body = operations(asked, 0)
        steps = [int(line.split()[1]) for line in body.splitlines() if line.startswith("compute")]
        return sum(steps[11:20]) / 9 * apf27.software.compute_step_ps / 1e9

    assert insert_ms(150) == pytest.approx(0.7067, rel=1e-3)
    assert insert_ms(600) == pytest.approx(0.8367, rel=1e-3)
    assert 0.60 < insert_ms(300) < 0.83
    slower = 400 / 720 * 1.1 / 2.0  # clocks, and DMIPS a MHz of ARM9 and Cortex-A8
    assert round(apf27.software.compute_step_ps * slower) == omap3evm.software.compute_step_ps
    assert apf27.sqlite is not None
    assert omap3evm.sqlite is not None
    assert round(apf27.sqlite.text_byte_ps * slower) == omap3evm.sqlite.text_byte_ps


def test_a_board_without_a_price_of_text_takes_the_fitted_steps() -> None:
    _, here = operations(case("insert"), 0)
    _, there = operations(replace(case("insert"), board="apf27", kernel="2.6.29"), 0)
    calls_of = [re.sub(r"(?m)^compute .*", "compute", body) for body in (here, there)]
    assert calls_of[0] == calls_of[1]
    assert here != there


@pytest.mark.parametrize(
    ("board", "pattern", "ratio"),
    [
        ("apf27", "select", (26_363 / 16_649) / (22_989 / 15_435)),
        ("apf27", "update", (40_535 / 28_219) / (22_989 / 15_435)),
        ("omap3evm", "contacts", (75_038 / 45_359) / (22_989 / 15_435)),
    ],
)
def test_a_statement_costs_what_it_did_in_the_papers_version(
    board: str, pattern: str, ratio: float
) -> None:
    """Instructions of SQLite 3.7.8 and 3.54.1 (evidence/sqlite.md), an insert's beside them.

    Statements that are prepared once have no text, which has a price of its own.
    """

    def steps(of: str, kernel: str) -> list[int]:
        asked = case(pattern, 20, records=50, prepared=True)
        _, body = operations(replace(asked, request_bytes=600, board=of, kernel=kernel), 0)
        return [int(line.split()[1]) for line in body.splitlines() if line.startswith("compute")]

    assert steps(board, "2.6.37")[10] / steps("emulated", "6.1")[10] == pytest.approx(ratio, 2e-3)


def test_records_are_random_bytes_unless_letters_are_asked_for() -> None:
    """The paper's "contained random data to avoid disturbance caused by the data compression"."""

    def saved(**database: object) -> list[int]:
        _, body = operations(case("insert", 40, **database), 0)
        writes = [line.split() for line in body.splitlines() if line.startswith("write 0 ")]
        return sorted(int(words[5]) for words in writes)

    assert Database().contents == "random"
    assert Database().text == "papers"
    random, letters = saved(), saved(contents="letters")
    assert len(random) == len(letters)  # SQLite stores both alike
    assert sum(random) < sum(letters)


def test_a_record_that_fills_its_page_does_not_compress() -> None:
    _, body = operations(replace(case("insert", 6), request_bytes=950), 0)
    writes = [line.split() for line in body.splitlines() if line.startswith("write 0 ")]
    of_records = [words for words in writes if int(words[2]) >= 3072]  # two roots, the schema
    assert len(of_records) >= 5
    assert max(int(words[5]) for words in of_records) <= 5


def test_a_blob_in_a_statement_is_no_error() -> None:
    """EXPLAIN returned its bytes as text, which ended in an internal error."""
    files: Files = {}
    table(files)
    with SqlRecording(files, PAPERS) as recording:
        recording.execute("INSERT INTO t VALUES (-2, X'a9ff00')")
        assert recording.execute("SELECT val FROM t WHERE id = -2") == [(b"\xa9\xff\x00",)]


def test_each_selection_may_have_a_connection_of_its_own() -> None:
    _, once = operations(case("contacts", 3, autocommit=True), 0)
    _, each = operations(case("contacts", 3, reconnect=True, autocommit=True), 0)
    parse(each)
    assert once.count(f"open 0 {DATABASE_PATH} ") == 1
    assert each.count(f"open 0 {DATABASE_PATH} ") == 3
    assert each.count("compute ") == once.count("compute ") == 3
    with pytest.raises(InputError, match="reconnect: a transaction needs one connection"):
        operations(case("insert", 3, reconnect=True), 0)
    _, apart = operations(case("insert", 3, reconnect=True, autocommit=True), 0)
    seeds = [line.split()[4] for line in apart.splitlines() if line.startswith("write ")]
    assert len(set(seeds)) == len(seeds)


def test_a_held_database_is_open_while_caches_are_dropped() -> None:
    _, body = operations(case("contacts", 3, held=True), 0)
    lines = body.splitlines()
    assert lines[1:4] == [f"open 63 {DATABASE_PATH} ro", "drop_caches", "mark"]
    assert lines[-1] == "close 63"
    assert lines[4].startswith(f"open 0 {DATABASE_PATH} ")


def test_a_prepared_statement_costs_its_text_once() -> None:
    def steps(prepared: bool) -> list[int]:
        files: Files = {}
        table(files)
        with SqlRecording(files, Database(prepared=prepared)) as recording:
            recording.execute("BEGIN")
            recording.execute("INSERT INTO t VALUES (-1, 'x')")
            for row in range(3):
                recording.execute("INSERT INTO t VALUES (?, 'x')", (row,))
            return [int(w.split(" ")[1]) for w in recording.lines if w.startswith("compute")]

    first, second, third = steps(True)[2:]
    assert first > 3 * second
    assert second == third
    assert len(set(steps(False)[2:])) == 1


def test_opening_a_connection_is_work_of_the_first_statement_it_is_measured_in() -> None:
    def begins(measured: bool) -> int:
        with SqlRecording({}, PAPERS, measured=measured) as recording:
            recording.measure()
            recording.execute("BEGIN")
            return int(recording.lines[-1].split(" ")[1])

    assert begins(True) > begins(False) + 100_000


@pytest.mark.parametrize(
    "word", ["papers", "page4096-wal-prepared", "cache100-records7-fdatasync-board"]
)
def test_a_database_is_what_its_word_says(word: str) -> None:
    assert str(Database.parse(word)) == word


@pytest.mark.parametrize("word", ["page1000", "pages4096", "wal2", "records0"])
def test_no_database_is_meant_by_other_words(word: str) -> None:
    with pytest.raises(InputError):
        Database.parse(word)


def test_what_sqlite_would_ask_the_host_for_is_the_same_each_time() -> None:
    def drawn(seed: int) -> list[object]:
        with SqlRecording({}, PAPERS, seed=seed) as recording:
            asked = "SELECT random(), hex(randomblob(9)), datetime('now')"
            return [value for row in recording.execute(asked) for value in row]

    assert drawn(1) == drawn(1)
    assert drawn(1)[:2] != drawn(2)[:2]
    assert drawn(1)[2] == "2020-01-01 00:00:00"


def case(pattern: str, requests: int = 20, **database: object) -> Case:
    return Case(
        experiment="sqlite/x", board="emulated", kernel="6.1", fs="jffs2", read_ahead_kib=128,
        pattern=pattern, requests=requests, request_bytes=600, file_bytes=0, seed=1,
        database=Database.model_validate({"records": 40, **database}),
    )  # fmt: skip


@pytest.mark.parametrize(
    "pattern", ["insert", "select", "select-random", "update", "join", "select-all"]
)
def test_operations_are_valid_and_the_same_each_time(pattern: str) -> None:
    prepare, body = operations(case(pattern), 0)
    parse(prepare)
    parse(body)
    assert (prepare, body) == operations(case(pattern), 0)
    requests = 1 if pattern in ("join", "select-all") else 20
    assert body.count("\ncompute ") == requests + 2  # BEGIN and END
    assert prepare.count("compute") == 0


@pytest.mark.parametrize("pattern", ["contacts", "contacts-random"])
def test_selections_of_contacts_are_one_transaction_or_one_each(pattern: str) -> None:
    def measured(**database: object) -> str:
        prepare, body = operations(case(pattern, 50, connected=True, **database), 0)
        parse(prepare)
        parse(body)
        before, after = body.split("\nmark\n")
        assert before.count("open 0 db/test.db") == 1
        assert "open 0 db/test.db " not in after
        return after

    changed = "read 0 24 16\n"  # has another process changed the file?
    together, apart = measured(), measured(autocommit=True)
    assert together.count("compute ") == 52  # BEGIN and END
    assert together.count(changed) <= 1
    assert apart.count("compute ") == 50
    assert apart.count(changed) >= 49
    assert operations(case("contacts", 41), 0)[1].count("compute ") == 43  # from the first on again


@pytest.mark.parametrize("pattern", ["contacts-insert", "contacts-update", "contacts-delete"])
def test_a_change_of_a_contact_is_written_and_synced(pattern: str) -> None:
    """AndroBench's three loads, each statement a transaction."""
    prepare, body = operations(case(pattern, 20, records=50, autocommit=True), 0)
    parse(prepare)
    parse(body)
    assert body.count("compute ") == 20
    assert body.count("fsync 0") >= 20
    assert (prepare, body) == operations(case(pattern, 20, records=50, autocommit=True), 0)


def test_a_contact_is_deleted_once() -> None:
    with pytest.raises(InputError, match="21 requests of 20 records"):
        operations(case("contacts-delete", 21, records=20), 0)


def test_an_index_reads_less_than_a_scan_and_the_complex_requests_read_only() -> None:
    def read_bytes(pattern: str) -> int:
        prepare, body = operations(case(pattern, 1, records=400, connected=True), 0)
        parse(prepare)
        lines = [line.split() for line in body.split("\nmark\n")[1].splitlines()]
        assert not [words for words in lines if words[0] == "write"]
        return sum(int(words[3]) for words in lines if words[0] == "read")

    scanned = read_bytes("scanned")
    assert read_bytes("indexed") < scanned / 4
    assert read_bytes("join-three") < scanned / 2
    assert read_bytes("subquery") < scanned / 2
    assert read_bytes("group-by") >= scanned


def test_contacts_of_1000_records_are_as_large_as_the_papers() -> None:
    """Read-ahead paper, section 3.1.2: 518 KB with texts of 64 bytes, 1 MB with 128."""
    for text_bytes, low, high in ((64, 480_000, 560_000), (128, 950_000, 1_100_000)):
        asked = replace(case("contacts", 1, records=1000), request_bytes=text_bytes)
        prepare, _ = operations(asked, 0)
        ends = [
            int(line.split()[2]) + int(line.split()[3])
            for line in prepare.splitlines()
            if line.startswith("write 0 ")
        ]
        assert low < max(ends) < high


def on_board(pattern: str, requests: int = 3, **database: object) -> tuple[list[str], list[str]]:
    """Lines of preparation and body."""
    prepare, body = operations(case(pattern, requests, executed="board", **database), 0)
    parse(prepare)
    parse(body)
    return prepare.splitlines(), body.splitlines()


def test_on_the_board_the_statements_are_the_operations() -> None:
    prepare, body = on_board("update", records=2, requests=2, sync="fdatasync")
    settings = "; ".join(Database(sync="fdatasync").pragmas)
    assert prepare[2] == f"sql_open {DATABASE_PATH} 1 fdatasync {settings}"
    assert [line.split()[2] for line in prepare if line.startswith("sql ")] == [
        *("CREATE", "CREATE", "BEGIN", "INSERT", "INSERT", "END"),
    ]
    kinds = [line.split()[2 if line.startswith("sql ") else 0] for line in body[1:]]
    assert kinds == [
        *("drop_caches", "mark", "sql_open", "BEGIN", "UPDATE", "UPDATE", "END", "sql_close"),
    ]
    assert on_board("select", connected=True)[1][2].startswith("sql_open ")


def test_values_are_bound_on_the_board() -> None:
    with pytest.raises(InputError, match=r'binds no bytes; use database\.contents = "letters"'):
        on_board("insert", 1, prepared=True)
    _, body = on_board("insert", 1, prepared=True, contents="letters")
    assert body[3].split(" ")[3] == "fsync,prepared"
    bound = body[5].split("\\|")
    assert bound[0] == f"sql {DATABASE_PATH} INSERT INTO table1 VALUES (?, ?)"
    assert bound[1] == "1"
    assert len(bound[2]) == 601
    assert bound[2][0] == "'"


def test_a_statement_of_any_text_is_a_line() -> None:
    assert escaped("SELECT '\\',\n'é'") == "SELECT '\\\\',\\x0a'\\xc3\\xa9'"
    with pytest.raises(InputError, match=r"a statement of 8[0-9]{3} bytes with its path"):
        operations(replace(case("insert", 1, executed="board"), request_bytes=4100), 0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("  Select 1", "select"), ("END TRANSACTION", "end"), ("PRAGMA x", "pragma"), ("(1)", None)],
)
def test_the_kind_of_a_statement_is_its_first_word(text: str, kind: str | None) -> None:
    assert statement_kind(text) == kind


def test_more_requests_than_records_are_refused() -> None:
    with pytest.raises(InputError, match="41 requests of 40 records"):
        operations(case("select", 41), 0)
    operations(case("insert", 41), 0)


SCRIPT = """CREATE TABLE log (at INTEGER, what TEXT);
CREATE TRIGGER short AFTER INSERT ON log BEGIN
  DELETE FROM log WHERE at < new.at - 5; SELECT 1;
END;
-- measured
INSERT INTO log VALUES (1, 'a;b');
SELECT count(*) FROM log
"""


def test_a_script_is_cut_where_sqlite_would_cut_it(tmp_path: Path) -> None:
    script = tmp_path / "my.sql"
    script.write_text(SCRIPT)
    prepare, body = operations(case("script", 3, name="mine", script=str(script)), 0)
    assert f"open 0 {DATABASE_PATH} rw,create" in prepare
    assert body.count("\ncompute ") == 3 * 2
    script.write_text(f"{SCRIPT.rstrip()};\n")
    assert operations(case("script", 3, name="mine", script=str(script)), 0)[1] == body


def test_no_other_file_is_quoted_as_a_script(tmp_path: Path) -> None:
    secret = tmp_path / "shadow"
    secret.write_text("root:$6$secret:19000:0:99999:7:::")
    (tmp_path / "my.sql").symlink_to(secret)
    for path in (secret, tmp_path / "my.sql"):
        with pytest.raises(InputError, match=r"must be named NAME\.sql") as why:
            operations(case("script", 1, name="mine", script=str(path)), 0)
        assert "secret" not in str(why.value)


def test_a_script_that_sqlite_refuses_is_one_line_with_its_words(tmp_path: Path) -> None:
    script = tmp_path / "my.sql"
    script.write_text("SELECT a FROM nowhere")
    with pytest.raises(InputError, match="no such table: nowhere"):
        operations(case("script", 1, name="mine", script=str(script)), 0)
    (tmp_path / "my.db").write_bytes(b"no database" * 100)
    script.write_text("SELECT 1 FROM sqlite_master")
    given = {"script": str(script), "file": str(tmp_path / "my.db")}
    with pytest.raises(InputError, match="file is not a database"):
        operations(case("script", 1, name="mine", **given), 0)


def test_paths_of_an_experiment_are_meant_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "my.sql").write_text(SCRIPT)
    toml = tmp_path / "mine.toml"
    toml.write_text(
        """
[experiment]
id = "mine/mine"
title = "t"
question = "q"
source = "s"
[workload]
kind = "sqlite"
request_bytes = 1
settle_ns = 0
[[grid]]
targets = ["sim"]
board = ["emulated"]
kernel = ["6.1"]
fs = ["jffs2"]
read_ahead_kib = [0]
pattern = ["script"]
requests = [2]
seed = [1]
database = { name = "mine", script = "my.sql" }
"""
    )
    (planned,) = plan(read_experiment(toml))
    assert planned.case.case_id == "jffs2-emulated-6.1-script-2x1-ra0-s1-mine"
    operations(planned.case, 0)


def test_a_statement_of_the_board_is_one_row_and_opening_goes_with_the_first() -> None:
    requests = pl.DataFrame(
        {
            "case_id": ["a"] * 4,
            "target": ["uml"] * 4,
            "seq": range(4),
            "op": ["sql_open", "sql", "sql", "sql_close"],
            "latency_ns": [5, 10, 7, 1],
            "flash_time_ns": [1, 2, 3, 4],
        }
    )
    found = statements(requests)
    assert found["latency_ns"].to_list() == [15, 7]
    assert found["flash_time_ns"].to_list() == [3, 3]
    assert found["reads"].to_list() == [None, None]


def test_statements_are_put_together_again() -> None:
    rows = [
        ("open", 5, 0), ("compute", 10, 0), ("read", 7, 3), ("write", 1, None), ("compute", 10, 0),
        ("close", 2, 0),
    ]  # fmt: skip
    requests = pl.DataFrame(
        {
            "case_id": ["a"] * 6,
            "target": ["sim"] * 6,
            "seq": range(6),
            "op": [op for op, _, _ in rows],
            "latency_ns": [latency for _, latency, _ in rows],
            "flash_time_ns": [flash for _, _, flash in rows],
        }
    )
    axes = dict.fromkeys(RATE_POINT, 1) | {"case_id": "a", "target": "sim", "flash_time_ns": 3}
    points = statement_points(pl.DataFrame([axes]), requests)
    assert points["statement"].to_list() == [0, 1]
    assert points["statement_ms"].to_list() == pytest.approx([15e-6, 18e-6])
    assert points["statement_flash_ms"].to_list() == [0, None]
    assert points["statement_writes"].to_list() == [0, 1]
    board = requests.with_columns(pl.lit("emulator").alias("target"), pl.col("latency_ns") * 2)
    cases = pl.DataFrame([axes | {"fs": "jffs2", "pattern": "insert"}])
    parts = statement_agreement(cases, pl.concat([requests, board])).to_dicts()
    assert [(row["part"], row["statements"]) for row in parts] == [("BEGIN", 1), ("END", 1)]
    assert {row["error_pct"] for row in parts} == {-50}
    found = statements(requests)
    assert found["latency_ns"].to_list() == [15, 18]
    assert found["flash_time_ns"].to_list() == [0, None]
    assert found["reads"].to_list() == [0, 1]
    assert found["writes"].to_list() == [0, 1]


def test_how_well_a_page_would_compress() -> None:
    assert compressibility(bytes(1024)) >= 95
    assert compressibility(bytes(range(256)) * 2) in (45, 50)
    assert compressibility(random.Random(1).randbytes(1024)) == 0


def test_a_database_that_a_package_ships() -> None:
    given = {"name": "mine", "script": "my.sql"}
    shipped = Database.model_validate(given | {"file": "pytest:__init__.py"}).file_path
    assert shipped == Path(pytest.__file__)
    with pytest.raises(InputError, match="no package nowhere; pip install it"):
        Database.model_validate(given | {"file": "nowhere:x.db"}).file_path  # noqa: B018
