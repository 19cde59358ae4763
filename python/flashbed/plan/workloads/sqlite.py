"""SQL requests on a database: Algorithm 1 of the SQLite paper, or the user's own script.

`requests` statements between BEGIN and END, each a request of its own, on records of
`request_bytes`: `insert` into an empty table; `select` and `update` by id in order
(`select-random` by random ids); `join` of two tables, one statement for all; and `select-all`, one
statement with the join's result from its second table alone. What they read was inserted before,
`database.records` of them. `contacts` and `contacts-random` are the read-ahead paper's: selections
by id, in order or at random, each a transaction of its own, from a table like Android's contacts:
12 integers and 5 texts of `request_bytes`. `script` runs a file of SQL: the part before its line
`-- measured` is the preparation, the rest runs `requests` times.

Records are random bytes, which do not compress, or letters (`database.contents`). SQLite stores
both alike; bytes are blobs, because a statement's text has to be UTF-8.

Where the database commits by itself (`database.autocommit`), BEGIN and END are left out, and each
request is a transaction. The program sleeps for `pause_ns` between two requests, or begins them at
a rate (`database.transactions_per_s`), each of them a transaction.

Caches are dropped before the mark and the connection is opened after it, so the first statement
pays for opening the database and reading its schema. A `connected` database is opened between the
two. Another descriptor of a `held` one is open all the time, so that its inode stays. With
`reconnect` each request has a connection of its own.

Left out: what a program does with a row; statements of several connections.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import apsw

from flashbed.base.errors import InputError
from flashbed.base.files import read_bytes, read_text
from flashbed.base.paths import shown
from flashbed.plan.case import Case
from flashbed.plan.database import Database
from flashbed.plan.sqlite.complex import COMPLEX, complex_request, complex_rows
from flashbed.plan.sqlite.compressibility import compressibility
from flashbed.plan.sqlite.on_board import executed
from flashbed.plan.sqlite.pace import UNPACED, Pace
from flashbed.plan.sqlite.recorder import DATABASE_PATH, SqlRecording
from flashbed.plan.sqlite.vfs import FOLDER, SLOTS, Files
from flashbed.plan.sqlite.work import PREPARED_BYTE_STEPS, Executed
from flashbed.plan.workloads.layout_files import prepared
from flashbed.program.operations import HEADER, HEADER_2, text_of
from flashbed.stack.profiles import Board

__all__ = ["operations"]

LETTERS = (string.ascii_letters + string.digits + "+-").encode()
LETTER_OF = bytes(LETTERS[byte % len(LETTERS)] for byte in range(256))
TABLES = ("table1", "table2")
"""Every database has both tables. The paper's 46th query reads ahead, because the 46th record
begins a page of the page cache if the other table's root comes before it."""
ONE_REQUEST = ("join", "select-all")
FILLED = {
    "insert": (),
    "select": TABLES[:1],
    "select-random": TABLES[:1],
    "update": TABLES[:1],
    "join": TABLES,
    "select-all": TABLES,
}
"""Pattern -> the tables that hold records before."""
CONTACTS = ("contacts", "contacts-random", "contacts-insert", "contacts-update", "contacts-delete")
CONTACT_INTEGERS = 11
"""Columns besides the id."""
CONTACT_TEXTS = 5
CONTACT_COLUMNS = (
    *(f"number{n}" for n in range(CONTACT_INTEGERS)),
    *(f"text{n}" for n in range(CONTACT_TEXTS)),
)
INSERT_CONTACT = f"INSERT INTO contacts VALUES ({', '.join('?' * (1 + len(CONTACT_COLUMNS)))})"
UPDATE_CONTACT = f"UPDATE contacts SET {' = ?, '.join(CONTACT_COLUMNS)} = ? WHERE id = ?"
SCRIPT_SUFFIX = ".sql"
SCRIPT_BYTES_MAX = 1 << 20
DATABASE_BYTES_MAX = 256 << 20
MEASURED = "-- measured"
HOLDING_SLOT = SLOTS - 1
"""SQLite's files take the lowest."""
WRITES_MAX = 1000
"""Of one statement with a connection of its own: so far apart are their seeds."""
COPY_BYTES = 65536
"""The user's database is written in pieces of this size."""

Value = int | str | bytes
Statement = tuple[str, tuple[Value, ...]]
Step = Statement | None
"""A statement, or None between two requests."""
Prepared = tuple[tuple[str, ...], tuple[tuple[str, bytes], ...]]
"""Operations, and the files they leave."""
_COMPUTE = re.compile(r"^compute (\d+)$", re.MULTILINE)


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files.

    Raises `InputError` for a request of a missing record, and for a script or statement that
    SQLite refuses, with SQLite's message.
    """
    sql_case = _SqlCase(
        pattern=case.pattern,
        requests=case.requests,
        request_bytes=case.request_bytes,
        seed=case.seed,
        database=case.database,
        pause_ns=case.pause_ns,
    )
    try:
        lines, body, statements = _recorded(sql_case)
    except InputError as why:
        raise InputError(f"{case.case_id}: {why}") from None
    return prepared([lines], settle_ns), _priced(body, statements, case.profile())


def _priced(body: str, statements: tuple[Executed, ...], board: Board) -> str:
    """The body with as many steps for statements and their texts as the board's prices make."""
    step_ps, prices = board.software.compute_step_ps, board.sqlite
    if prices is None or not step_ps:
        return body
    more_steps = prices.text_byte_ps / step_ps - PREPARED_BYTE_STEPS
    permille: dict[str | None, int] = {
        "select": prices.select_permille,
        "update": prices.update_permille,
    }
    rest = iter(statements)

    def compute(found: re.Match[str]) -> str:
        one = next(rest)
        texts = round(more_steps * one.text_bytes)
        kind = (permille.get(one.kind, 1000) - 1000) * (one.steps + texts) // 1000
        return f"compute {int(found[1]) + texts + kind}"

    return _COMPUTE.sub(compute, body)


@dataclass(frozen=True, kw_only=True)
class _SqlCase:
    """The part of a case that SQLite depends on: neither file system nor board."""

    pattern: str
    requests: int
    request_bytes: int
    seed: int
    database: Database
    pause_ns: int


@lru_cache(maxsize=1024)
def _recorded(sql_case: _SqlCase) -> tuple[tuple[str, ...], str, tuple[Executed, ...]]:
    """Operations of the preparation, the body, and its statements."""
    database = sql_case.database
    statements: Iterable[Step]
    pace = Pace.of(sql_case.pause_ns, database.period_ns)
    if pace.between and sql_case.pattern in ONE_REQUEST:
        key = "pause_ns" if sql_case.pause_ns else "database.transactions_per_s"
        raise InputError(f"{key}: {sql_case.pattern} is one request, with no other after it")
    if database.reconnect and not database.commits_each:
        raise InputError("reconnect: a transaction needs one connection; set autocommit too")
    if sql_case.pattern == "script":
        script = _script(database)
        lines, left = _prepared_script(script, database)
        statements = (*script[1], None) * (sql_case.requests - 1) + script[1]
    elif sql_case.pattern in CONTACTS:
        there = 0 if sql_case.pattern == "contacts-insert" else database.records
        lines, left = _prepared_contacts(sql_case.request_bytes, database, there)
        statements = _transactions(database, _requests_of_contacts(sql_case))
    elif sql_case.pattern in COMPLEX:
        lines, left = _prepared_complex(sql_case.pattern, sql_case.request_bytes, database)
        statements = _transactions(database, _complex_requests(sql_case))
    else:
        filled = FILLED[sql_case.pattern]
        if filled and sql_case.requests > database.records:
            raise InputError(f"{sql_case.requests} requests of {database.records} records")
        lines, left = _prepared_tables(sql_case.request_bytes, database, filled)
        statements = _transactions(database, _requests(sql_case))
    files = {path: bytearray(data) for path, data in left}
    run = _reconnecting if database.reconnect else _run
    ran = run(files, database, steps=statements, seed=1_000_000 * (1 + sql_case.seed), pace=pace)
    begin = [*ran.connecting, "mark"] if database.connected else ["mark", *ran.connecting]
    body = itertools.chain(("drop_caches", *begin), ran.lines)
    if database.held:
        opened, closed = f"open {HOLDING_SLOT} {DATABASE_PATH} ro", f"close {HOLDING_SLOT}"
        body = itertools.chain((opened,), body, (closed,))
    header = HEADER_2 if pace.has_tasks else HEADER
    return lines, text_of(body, header), tuple(ran.executed)


class _Ran(NamedTuple):
    """A connection's operations: opening it, and its statements."""

    connecting: list[str]
    lines: list[str]
    executed: list[Executed]


def _run(
    files: Files, database: Database, *, steps: Iterable[Step], seed: int | None = None,
    pace: Pace = UNPACED,
) -> _Ran:  # fmt: skip
    """Runs the statements over a connection of its own.

    Measured ones have a seed. Where SQLite runs on the board, the operations are the statements.
    """
    if database.executed == "board":
        return _Ran(
            *executed(DATABASE_PATH, database, statements=steps, seed=seed or 1, pace=pace), []
        )
    measured = seed is not None
    opening = measured and not database.connected
    with SqlRecording(files, database, seed=seed or 1, measured=opening) as recording:
        opened = len(recording.lines)
        if measured:
            recording.measure()
        recording.lines.extend(pace.first)
        for step in steps:
            if step is not None:
                recording.execute(*step)
            else:
                recording.lines.extend(pace.between)
        recording.lines.extend(pace.last)
    return _Ran(recording.lines[:opened], recording.lines[opened:], recording.executed)


def _reconnecting(
    files: Files, database: Database, *, steps: Iterable[Step], seed: int, pace: Pace
) -> _Ran:
    """The same with a connection for each statement."""
    ran = _Ran([], [*pace.first], [])
    for number, step in enumerate(steps):
        if step is None:
            ran.lines.extend(pace.between)
            continue
        one = _run(files, database, steps=[step], seed=seed + WRITES_MAX * number)
        ran.lines.extend((*one.connecting, *one.lines))
        ran.executed.extend(one.executed)
    ran.lines.extend(pace.last)
    return ran


def _records(seed: int, length_bytes: int, database: Database) -> Iterator[str | bytes]:
    """Contents of records, all different."""
    draw = random.Random(seed).randbytes  # the same in every version of Python
    while True:
        drawn = draw(length_bytes)
        yield drawn if database.contents == "random" else drawn.translate(LETTER_OF).decode()


def _statement(database: Database, statement: str, *values: Value) -> Statement:
    """A statement with its values bound, or written into it."""
    if database.prepared:
        return statement, values
    return _written_into(statement, values)


def _written_into(statement: str, values: Iterable[Value]) -> Statement:
    return statement.replace("?", "{}").format(*map(_literal, values)), ()


def _literal(value: Value) -> str:
    """A number, a blob, or letters, none of which is a quote."""
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _insert(database: Database, table: str, number: int, record: str | bytes) -> Statement:
    return _statement(database, f"INSERT INTO {table} VALUES (?, ?)", number, record)


@lru_cache(maxsize=64)
def _prepared_tables(record_bytes: int, database: Database, filled: tuple[str, ...]) -> Prepared:
    """The schema, and the existing records."""
    statements: list[Statement] = [
        (f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, val TEXT)", ()) for table in TABLES
    ]
    records = _records(1, record_bytes, database)
    for table in filled:
        numbers = range(1, 1 + database.records)
        inserts = (_insert(database, table, number, next(records)) for number in numbers)
        statements += [("BEGIN", ()), *inserts, ("END", ())]
    return _left_by(statements, database)


def _left_by(statements: Iterable[Statement], database: Database) -> Prepared:
    files: Files = {}
    ran = _run(files, database, steps=statements)
    return (f"mkdir {FOLDER}", *ran.connecting, *ran.lines), _frozen(files)


def _frozen(files: Files) -> tuple[tuple[str, bytes], ...]:
    return tuple((path, bytes(data)) for path, data in files.items())


@lru_cache(maxsize=8)
def _prepared_contacts(text_bytes: int, database: Database, records: int) -> Prepared:
    """The contacts, inserted in one transaction, by id."""
    columns = [f"{name} INTEGER" for name in CONTACT_COLUMNS[:CONTACT_INTEGERS]]
    columns += [f"{name} TEXT" for name in CONTACT_COLUMNS[CONTACT_INTEGERS:]]
    create = f"CREATE TABLE contacts (id INTEGER PRIMARY KEY, {', '.join(columns)})"
    contacts = itertools.islice(_contacts(1, text_bytes, database), records)
    rows = _bindable(database, ((INSERT_CONTACT, contact) for contact in contacts))
    return _left_by([(create, ()), ("BEGIN", ()), *rows, ("END", ())], database)


def _bindable(database: Database, statements: Iterable[Statement]) -> Iterable[Statement]:
    """The board binds numbers and texts only."""
    board = database.executed == "board"
    return (_written_into(*one) for one in statements) if board else statements


def _contacts(seed: int, text_bytes: int, database: Database) -> Iterator[tuple[Value, ...]]:
    """Rows of the table, by id."""
    draw, texts = random.Random(seed).getrandbits, _records(seed, text_bytes, database)
    for number in itertools.count(1):
        numbers = [draw(31) for _ in range(CONTACT_INTEGERS)]
        yield number, *numbers, *(next(texts) for _ in range(CONTACT_TEXTS))


def _requests_of_contacts(sql_case: _SqlCase) -> Iterator[Step]:
    """Whole records by id: in order, again from the first after the last, or random."""
    database, pattern, records = sql_case.database, sql_case.pattern, sql_case.database.records
    if pattern == "contacts-delete" and sql_case.requests > records:
        raise InputError(f"{sql_case.requests} requests of {records} records")
    draw = random.Random(sql_case.seed).random
    rows = _contacts(1 + sql_case.seed, sql_case.request_bytes, database)
    for index in range(sql_case.requests):
        if index:
            yield None
        number = 1 + (int(draw() * records) if pattern == "contacts-random" else index % records)
        if pattern == "contacts-insert":
            yield _statement(database, INSERT_CONTACT, *next(rows))
        elif pattern == "contacts-update":
            yield _statement(database, UPDATE_CONTACT, *next(rows)[1:], number)
        elif pattern == "contacts-delete":
            yield _statement(database, "DELETE FROM contacts WHERE id = ?", number)
        else:
            yield _statement(database, "SELECT * FROM contacts WHERE id = ?", number)


@lru_cache(maxsize=8)
def _prepared_complex(pattern: str, record_bytes: int, database: Database) -> Prepared:
    rows = complex_rows(pattern, database.records, _records(1, record_bytes, database))
    return _left_by(_bindable(database, rows), database)


def _complex_requests(sql_case: _SqlCase) -> Iterator[Step]:
    for index in range(sql_case.requests):
        if index:
            yield None
        yield complex_request(sql_case.pattern, index, sql_case.database.records), ()


def _transactions(database: Database, steps: Iterable[Step]) -> Iterator[Step]:
    """BEGIN, the requests, END; without BEGIN and END where each commits by itself."""
    if database.commits_each:
        yield from steps
        return
    yield "BEGIN TRANSACTION", ()
    yield from steps
    yield "END TRANSACTION", ()


def _requests(sql_case: _SqlCase) -> Iterator[Step]:
    """The requests of Algorithm 1."""
    database, records = sql_case.database, sql_case.database.records
    numbers: Iterable[int] = range(1, 1 + sql_case.requests)
    contents = _records(1 + sql_case.seed, sql_case.request_bytes, database)
    if sql_case.pattern == "join":
        yield (
            "SELECT table2.val FROM table1, table2 "
            f"WHERE table1.id = table2.id AND table2.id <= {sql_case.requests}",
            (),
        )
        numbers = ()
    if sql_case.pattern == "select-all":
        yield f"SELECT val FROM table2 WHERE id <= {sql_case.requests}", ()
        numbers = ()
    if sql_case.pattern == "select-random":
        draw = random.Random(sql_case.seed).random
        numbers = [1 + int(draw() * records) for _ in range(sql_case.requests)]
    for index, number in enumerate(numbers):
        if index:
            yield None
        if sql_case.pattern == "insert":
            yield _insert(database, "table1", number, next(contents))
        elif sql_case.pattern == "update":
            yield _statement(
                database, "UPDATE table1 SET val = ? WHERE id = ?", next(contents), number
            )
        else:
            yield _statement(database, "SELECT val FROM table1 WHERE id = ?", number)


Script = tuple[tuple[Statement, ...], tuple[Statement, ...]]
"""Statements before and after `-- measured`."""


def _script(database: Database) -> Script:
    if database.script is None:
        raise InputError("database.script: missing; the pattern script needs it")
    path = Path(database.script)
    # SQLite quotes what it cannot parse; such a message is shown for scripts only.
    if {path.suffix, Path(os.path.realpath(path)).suffix} != {SCRIPT_SUFFIX}:
        raise InputError(f"database.script: {shown(path)}: must be named NAME{SCRIPT_SUFFIX}")
    text = read_text(path, SCRIPT_BYTES_MAX)
    before, mark, after = text.partition(f"\n{MEASURED}\n")
    return (_statements(before), _statements(after)) if mark else ((), _statements(text))


def _statements(text: str) -> tuple[Statement, ...]:
    """Splits where SQLite calls a statement complete: not at semicolons in triggers."""
    found: list[Statement] = []
    pending = ""
    for piece in text.split(";"):
        pending += f"{piece};"
        if apsw.complete(pending):
            text = pending.strip()
            found += [(text, ())] if text != ";" else []
            pending = ""
    rest = pending.removesuffix(";").strip()
    return (*found, (rest, ())) if rest else tuple(found)


@lru_cache(maxsize=8)
def _prepared_script(script: Script, database: Database) -> Prepared:
    files: Files = {}
    copied: list[str] = []
    path = database.file_path
    if path is not None:
        data = read_bytes(path, DATABASE_BYTES_MAX)
        files[DATABASE_PATH] = bytearray(data)
        copied = _copied(data)
    ran = _run(files, database, steps=script[0]) if script[0] else _Ran([], [], [])
    return (f"mkdir {FOLDER}", *copied, *ran.connecting, *ran.lines), _frozen(files)


def _copied(data: bytes) -> list[str]:
    """Writes that copy the database onto the partition, with seeds above those of statements."""
    pieces = [data[at : at + COPY_BYTES] for at in range(0, len(data), COPY_BYTES)]
    writes = [
        f"write 0 {COPY_BYTES * number} {len(piece)} {2**40 + number} {compressibility(piece)}"
        for number, piece in enumerate(pieces)
    ]
    return [f"open 0 {DATABASE_PATH} rw,create", *writes, "fsync 0", "close 0"]
