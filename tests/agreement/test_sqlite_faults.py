"""Faults under a database: whole after power cuts, refused statements, no more room, a bad file."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from flashbed.bench.powercut.cutting import Choice, PowerCuts
from flashbed.bench.powercut.judge import RECOVERED, DoneOperation, judge
from flashbed.plan.case import Case
from flashbed.plan.database import Database
from flashbed.plan.sqlite.on_board import executed
from flashbed.plan.sqlite.recorder import DATABASE_PATH, SqlRecording, Written
from flashbed.plan.sqlite.vfs import FOLDER, Files
from flashbed.plan.workloads.sqlite import operations
from flashbed.program.operations import HEADER, parse
from flashbed.stack.profiles import load_board, load_kernel
from flashbed.stack.stack import Stack
from flashbed.targets import load_target
from flashbed.targets.base import Batch, Cut, Program
from flashbed.targets.guest import yaffs2
from flashbed.targets.guest.agent import path_of
from tests.support.sqlite_recovery import recovered, restored

FILE_SYSTEMS = ("jffs2", "ubifs", *(["yaffs2"] if yaffs2.core_found().found else []))
on_uml = [
    pytest.mark.uml,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        not path_of("sql-host").is_file(),
        reason="the agent with SQLite is not built: make sql-agents",
    ),
]
JOURNALS: dict[str, dict[str, object]] = {
    "delete": {},
    "delete-extra": {"synchronous": "extra"},
    "truncate": {"journal": "truncate"},
    "wal": {"journal": "wal"},
}
SETTLED_NS = 10_000_000_000


def texts(first: int, count: int, letter: str) -> list[str]:
    draw = random.Random(letter).randbytes
    return [f"INSERT INTO t VALUES ({first + n}, '{draw(150).hex()}')" for n in range(count)]


PREPARED = ["CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT)", *texts(0, 20, "a")]
MEASURED = [
    *texts(100, 1, "b"),
    *("BEGIN", *texts(200, 15, "c"), "UPDATE t SET v = hex(v) WHERE k < 10", "END"),
    "DELETE FROM t WHERE k = 3",
    *("BEGIN", "UPDATE t SET v = substr(v, 2) WHERE k > 5", "END"),
]
"""Four transactions; with a cache of 10 pages the long ones spill into the file before END."""


def program(
    folder: Path,
    fs: str,
    name: str,
    before: Sequence[str],
    after: Sequence[str],
    *,
    board: str = "emulated",
    database: Mapping[str, object] | None = None,
) -> Program:
    script = folder / f"{name}.sql"
    script.write_text(";\n".join([*before, "\n-- measured\n"]) + ";\n".join(after))
    given = {"name": name, "script": str(script), "cache_pages": 10, **(database or {})}
    case = Case(
        experiment="sqlite/x", board=board, kernel="6.1", fs=fs, read_ahead_kib=0,
        pattern="script", requests=1, request_bytes=1, file_bytes=0, seed=1,
        database=Database.model_validate({"executed": "board", **given}),
    )  # fmt: skip
    prepare, body = operations(case, SETTLED_NS)
    stack = Stack(board=load_board(board), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0)
    return Program(
        case_id=f"{fs}-{name}", stack=stack, prepare=prepare, body=body, check_contents=True
    )


Surveyed = dict[str, Batch]


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Surveyed:
    """Power fails in every change of the case."""
    folder = tmp_path_factory.mktemp("scripts")
    programs = [
        program(folder, fs, name=name, before=PREPARED, after=MEASURED, database=given)
        for fs in FILE_SYSTEMS
        for name, given in JOURNALS.items()
    ]
    target = PowerCuts(load_target("uml"), Choice(1, None, 1), "uml")
    batches = list(target.run(programs))
    assert not [failure for batch in batches for failure in batch.failures]
    return {case: batch for batch in batches for case in batch.cases["case_id"]}


@pytest.mark.parametrize("name", JOURNALS)
@pytest.mark.parametrize("fs", FILE_SYSTEMS)
class TestOnUserModeLinux:
    """SQLite recovers by itself from what the real kernel gives back."""

    pytestmark = on_uml

    def test_the_database_is_whole_after_a_cut_in_any_change(
        self, cut: Surveyed, fs: str, name: str
    ) -> None:
        cuts = cut[f"{fs}-{name}"].power_cuts.filter(pl.col("case_id") == f"{fs}-{name}")
        assert cuts.height > 20
        assert cuts.filter(pl.col("verdict") != RECOVERED)["reason"].to_list() == []
        assert cuts["acknowledged_files"].min() == 1

    def test_every_transaction_was_found_undone_and_done(
        self, cut: Surveyed, fs: str, name: str
    ) -> None:
        surveys = [s for s in cut[f"{fs}-{name}"].surveys if s.case_id == f"{fs}-{name}"]
        rows = {s.database.tables["t"] for s in surveys if s.database}
        assert {count for count, _ in rows} == {20, 21, 36, 35}
        assert len(rows) in (4, 5)  # with and without the last UPDATE, whose last change END makes


def recorded(database: Database) -> tuple[str, str, Written, list[DoneOperation]]:
    """Preparation and body of recorded calls, what they wrote, and the statements as operations."""
    files: Files = {}
    written: Written = {}
    with SqlRecording(files, database, measured=False, written=written) as preparing:
        for text in PREPARED:
            preparing.execute(text)
    with SqlRecording(files, database, seed=10**6, written=written) as measuring:
        for text in MEASURED:
            measuring.execute(text)
    lines = [f"mkdir {FOLDER}", *preparing.lines, f"pause {SETTLED_NS}", "prepared"]
    prepare = "\n".join((HEADER, *lines, ""))
    body = "\n".join((HEADER, "drop_caches", "mark", *measuring.lines, ""))
    statements = [
        line
        for texts_of in (PREPARED, MEASURED)
        for part in executed(
            DATABASE_PATH, database, statements=[(text, ()) for text in texts_of], seed=1
        )
        for line in part
    ]
    done = [
        DoneOperation(operation=operation, result=0, changes=0)
        for operation in parse("\n".join((HEADER, *statements)))
    ]
    return prepare, body, written, done


def with_changes(done: Sequence[DoneOperation], requests: pl.DataFrame) -> Iterator[DoneOperation]:
    """Statements of the measured part with the changes when each had returned."""
    ended = requests.filter(pl.col("op") == "compute")["changes"].to_list()
    first = len(done) - len(ended) - 2  # opening and closing
    counts = [0] * first + [0, *ended, requests["changes"].last()]
    for step, changes in zip(done, counts, strict=True):
        yield replace(step, changes=changes)


@pytest.mark.extension
@pytest.mark.parametrize("name", JOURNALS)
@pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
def test_sqlite_recovers_from_what_the_simulated_file_system_gives_back(fs: str, name: str) -> None:
    database = Database.model_validate({"cache_pages": 10, **JOURNALS[name]})
    prepare, body, written, done = recorded(database)
    stack = Stack(board=load_board("emulated"), kernel=load_kernel("6.1"), fs=fs, read_ahead_kib=0)
    asked = Program(case_id="case", stack=stack, prepare=prepare, body=body, record_changes=True)
    sim = load_target("sim")
    (counted,) = sim.run([asked])
    assert not counted.failures
    requests = counted.requests.sort("seq")
    changes = requests["changes"].last()
    assert isinstance(changes, int)
    assert changes > 20
    cuts = tuple(Cut(change, 0) for change in range(1, changes + 1))
    (batch,) = sim.run([replace(asked, cuts=cuts)])
    found = [
        replace(survey, files=(), database=recovered(restored(survey.files, written)))
        for survey in batch.surveys
    ]
    assert len(found) == changes
    verdicts = list(judge(list(with_changes(done, requests)), found))
    assert [one.reason for one in verdicts if one.verdict != RECOVERED] == []
    assert {s.database.tables["t"][0] for s in found if s.database} == {20, 21, 36, 35}


def answer(*values: str) -> int:
    """The sum of a row of texts that SQLite gave for integers (type 1) or text (3)."""
    total = 0
    for value in values:
        total = (total * 31 + (1 if value.isdigit() else 3)) % 2**32
        total = (total * 31 + zlib.crc32(value.encode())) % 2**32
    return total


COUNT = "SELECT count(*) FROM t"
CHECK = "SELECT * FROM pragma_integrity_check"
SPARE = f"open 0 spare rw,create\nwrite 0 0 400000 7 0\nfsync 0\nclose 0\nmkdir {FOLDER}\n"
FILL = (
    "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)"
    " INSERT INTO t SELECT i, hex(randomblob(50000)) FROM n"
)


def filled(folder: Path, fs: str) -> Program:
    """No more room in the middle of a transaction; later a file that was there gives some back."""
    statements = ["BEGIN", *texts(200, 5, "c"), FILL, COUNT, "ROLLBACK", COUNT, CHECK]
    after = [*texts(300, 1, "d"), COUNT]
    board = "emulated-46-lebs" if fs == "ubifs" else "emulated-small"
    asked = program(
        folder, fs, name="full", before=PREPARED, after=[*statements, *after], board=board
    )
    prepare = asked.prepare.replace(f"mkdir {FOLDER}\n", SPARE)
    again = f"sql {DATABASE_PATH} ROLLBACK"
    return replace(asked, prepare=prepare, body=asked.body.replace(again, f"unlink spare\n{again}"))


def spoilt(program: Program, offset: int, length: int) -> Program:
    """Bytes of the database are others' when measuring begins."""
    write = f"open 0 {DATABASE_PATH} rw\nwrite 0 {offset} {length} 7 0\nclose 0\nprepared\n"
    return replace(program, prepare=program.prepare.replace("prepared\n", write))


Row = tuple[str | None, int, str | None, int | None]


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """Case -> kind, result, error and contents of each statement."""
    folder = tmp_path_factory.mktemp("faults")
    check = [COUNT, CHECK]
    refused = ["BEGIN", *texts(50, 1, "x"), *texts(50, 1, "y"), "SELECT count(*) FROM t"]
    undone = ["INSERT OR ROLLBACK INTO t VALUES (50, 'z')", *check]
    programs = [
        program(folder, "jffs2", name="refused", before=PREPARED, after=[*refused, *undone]),
        program(folder, "ubifs", name="refused", before=PREPARED, after=[*refused, *undone]),
        *(filled(folder, fs) for fs in FILE_SYSTEMS),
        spoilt(program(folder, "jffs2", name="none", before=PREPARED, after=check), 0, 1024),
        spoilt(program(folder, "jffs2", name="damaged", before=PREPARED, after=check), 1024, 8192),
    ]  # fmt: skip
    run = load_target("uml").run(programs)
    batches = list(run)
    assert not [failure for batch in batches for failure in batch.failures]
    rows = pl.concat([batch.requests for batch in batches]).sort("case_id", "seq")
    columns = ("statement_kind", "result", "error", "content_crc32")
    return {
        p.case_id: rows.filter(pl.col("case_id") == p.case_id).select(columns).rows()
        for p in programs
    }


class TestFaultsOnUserModeLinux:
    """The results that a program gets, and that acknowledged data stays."""

    pytestmark = on_uml

    @pytest.mark.parametrize("fs", ["jffs2", "ubifs"])
    def test_a_statement_that_is_refused_says_why_and_what_was_before_it_stays(
        self, faults: dict[str, list[Row]], fs: str
    ) -> None:
        _, begin, put, again, counted, undone, after, whole, _ = faults[f"{fs}-refused"]
        why = "UNIQUE constraint failed: t.k"
        assert (begin[1], put[1], again[1:3], undone[1:3]) == (0, 0, (-1555, why), (-1555, why))
        assert (counted[3], after[3]) == (answer("21"), answer("20"))
        assert whole[3] == answer("ok")

    @pytest.mark.parametrize("fs", FILE_SYSTEMS)
    def test_a_transaction_that_finds_no_more_room_is_rolled_back(
        self, faults: dict[str, list[Row]], fs: str
    ) -> None:
        """On JFFS2 and UBIFS ftruncate needs room as well: SQLite rolls back once there is some."""
        _, _, *put, fill, full, _, over, counted, whole, more, now, closed = faults[f"{fs}-full"]
        assert [row[1] for row in put] == [0] * 5
        assert fill[1:3] == (-13, "database or disk is full")
        if fs == "yaffs2":
            assert full[3] == answer("20")
        else:
            assert full[1:3] == (-1546, "disk I/O error")  # SQLITE_IOERR_TRUNCATE
        assert over[2] == "cannot rollback - no transaction is active"
        assert (counted[3], whole[3]) == (answer("20"), answer("ok"))
        assert (more[1], now[3], closed[1]) == (0, answer("21"), 0)

    def test_what_is_no_database_is_not_opened(self, faults: dict[str, list[Row]]) -> None:
        opened, *others = faults["jffs2-none"]
        assert opened[1:3] == (-26, "file is not a database")
        assert {row[1:3] for row in others} == {(-21, "opening the database had failed")}

    def test_a_damaged_database_says_so(self, faults: dict[str, list[Row]]) -> None:
        opened, counted, *_ = faults["jffs2-damaged"]
        assert opened[1] == 0
        assert counted[1] in (-11, -779)
        assert counted[2] == "database disk image is malformed"
