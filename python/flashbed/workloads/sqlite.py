"""SQL requests on a database: Algorithm 1 of the SQLite paper, or the user's own script.

`requests` statements between BEGIN and END, each a request of its own, on records of
`request_bytes` letters: `insert` into an empty table; `select` and `update` by id in order
(`select-random` by random ids); `join` of two tables, one statement for all; and `select-all`, one
statement with the join's result from its second table alone. What they read was inserted before,
`database.records` of them. `contacts` and `contacts-random` are the read-ahead paper's: selections
by id, in order or at random, each a transaction of its own, from a table like Android's contacts:
12 integers and 5 texts of `request_bytes` letters. `script` runs a file of SQL: the part before its
line `-- measured` is the preparation, the rest runs `requests` times.

Where the database commits by itself (`database.autocommit`), BEGIN and END are left out, and each
request is a transaction. The program sleeps for `pause_ns` between two requests, or begins them at
a rate (`database.transactions_per_s`), each of them a transaction.

Caches are dropped before the mark and the connection is opened after it, so the first statement
pays for opening the database and reading its schema. A `connected` database is opened between the
two.

Left out: what a program does with a row; statements of several connections.
"""

from __future__ import annotations

import itertools
import os
import random
import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import apsw

from flashbed.errors import InputError
from flashbed.formats.operations import HEADER, HEADER_2, text_of
from flashbed.paths import shown
from flashbed.plan.case import Case
from flashbed.plan.database import Database
from flashbed.sqlite.compressibility import compressibility
from flashbed.sqlite.on_board import executed
from flashbed.sqlite.pace import UNPACED, Pace
from flashbed.sqlite.recorder import DATABASE_PATH, Recording
from flashbed.sqlite.vfs import FOLDER, Files
from flashbed.storage.files import read_bytes, read_text
from flashbed.workloads.layout_files import prepared

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
CONTACTS = ("contacts", "contacts-random")
CONTACT_INTEGERS = 11
"""Columns besides the id."""
CONTACT_TEXTS = 5
SCRIPT_SUFFIX = ".sql"
SCRIPT_BYTES_MAX = 1 << 20
DATABASE_BYTES_MAX = 256 << 20
MEASURED = "-- measured"
COPY_BYTES = 65536
"""The user's database is written in pieces of this size."""

Statement = tuple[str, tuple[int | str, ...]]
Step = Statement | None
"""A statement, or None between two requests."""
Prepared = tuple[tuple[str, ...], tuple[tuple[str, bytes], ...]]
"""Operations, and the files they leave."""


def operations(case: Case, settle_ns: int) -> tuple[str, str]:
    """The case as (prepare, body), two flashbed-ops files.

    Raises `InputError` for a request of a missing record, and for a script or statement that
    SQLite refuses, with SQLite's message.
    """
    sql_case = _SqlCase(
        case.pattern, case.requests, case.request_bytes, case.seed, case.database, case.pause_ns
    )
    try:
        lines, body = _recorded(sql_case)
    except InputError as why:
        raise InputError(f"{case.case_id}: {why}") from None
    return prepared([lines], settle_ns), body


@dataclass(frozen=True)
class _SqlCase:
    """The part of a case that SQLite depends on: neither file system nor board."""

    pattern: str
    requests: int
    request_bytes: int
    seed: int
    database: Database
    pause_ns: int


@lru_cache(maxsize=1024)
def _recorded(sql_case: _SqlCase) -> tuple[tuple[str, ...], str]:
    """Operations of the preparation, and the body."""
    database = sql_case.database
    statements: Iterable[Step]
    pace = Pace.of(sql_case.pause_ns, database.period_ns)
    if pace.between and sql_case.pattern in ONE_REQUEST:
        key = "pause_ns" if sql_case.pause_ns else "database.transactions_per_s"
        raise InputError(f"{key}: {sql_case.pattern} is one request, with no other after it")
    if sql_case.pattern == "script":
        script = _script(database)
        lines, left = _prepared_script(script, database)
        statements = (*script[1], None) * (sql_case.requests - 1) + script[1]
    elif sql_case.pattern in CONTACTS:
        lines, left = _prepared_contacts(sql_case.request_bytes, database)
        statements = _selections(sql_case)
    else:
        filled = FILLED[sql_case.pattern]
        if filled and sql_case.requests > database.records:
            raise InputError(f"{sql_case.requests} requests of {database.records} records")
        lines, left = _prepared_tables(sql_case.request_bytes, database, filled)
        statements = _requests(sql_case)
    files = {path: bytearray(data) for path, data in left}
    connecting, measured = _run(files, database, statements, 1_000_000 * (1 + sql_case.seed), pace)
    begin = [*connecting, "mark"] if database.connected else ["mark", *connecting]
    header = HEADER_2 if pace.has_tasks else HEADER
    return lines, text_of(itertools.chain(("drop_caches", *begin), measured), header)


def _run(
    files: Files, database: Database, steps: Iterable[Step], seed: int | None = None,
    pace: Pace = UNPACED,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """Operations of a connection of its own: opening it, and the statements.

    Measured ones have a seed. Where SQLite runs on the board, the operations are the statements.
    """
    if database.executed == "board":
        return executed(DATABASE_PATH, database, steps, seed or 1, pace)
    measured = seed is not None
    opening = measured and not database.connected
    with Recording(files, database, seed=seed or 1, measured=opening) as recording:
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
    return recording.lines[:opened], recording.lines[opened:]


def _records(seed: int, length_bytes: int) -> Iterator[str]:
    """Texts of letters, all different."""
    draw = random.Random(seed).randbytes  # the same in every version of Python
    while True:
        yield draw(length_bytes).translate(LETTER_OF).decode()


def _statement(database: Database, statement: str, *values: int | str) -> Statement:
    """A statement with its values bound, or written into it: numbers, and unquoted letters."""
    if database.prepared:
        return statement, values
    texts = (f"'{value}'" if isinstance(value, str) else str(value) for value in values)
    return statement.replace("?", "{}").format(*texts), ()


def _insert(database: Database, table: str, number: int, text: str) -> Statement:
    return _statement(database, f"INSERT INTO {table} VALUES (?, ?)", number, text)


@lru_cache(maxsize=64)
def _prepared_tables(record_bytes: int, database: Database, filled: tuple[str, ...]) -> Prepared:
    """The schema, and the existing records."""
    statements: list[Statement] = [
        (f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, val TEXT)", ()) for table in TABLES
    ]
    texts = _records(1, record_bytes)
    for table in filled:
        numbers = range(1, 1 + database.records)
        inserts = (_insert(database, table, number, next(texts)) for number in numbers)
        statements += [("BEGIN", ()), *inserts, ("END", ())]
    return _left_by(statements, database)


def _left_by(statements: Iterable[Statement], database: Database) -> Prepared:
    files: Files = {}
    connecting, lines = _run(files, database, statements)
    return (f"mkdir {FOLDER}", *connecting, *lines), _frozen(files)


def _frozen(files: Files) -> tuple[tuple[str, bytes], ...]:
    return tuple((path, bytes(data)) for path, data in files.items())


@lru_cache(maxsize=8)
def _prepared_contacts(text_bytes: int, database: Database) -> Prepared:
    """The contacts, inserted in one transaction, by id."""
    draw, texts = random.Random(1).getrandbits, _records(1, text_bytes)
    columns = [f"number{n} INTEGER" for n in range(CONTACT_INTEGERS)]
    columns += [f"text{n} TEXT" for n in range(CONTACT_TEXTS)]
    create = f"CREATE TABLE contacts (id INTEGER PRIMARY KEY, {', '.join(columns)})"
    insert = f"INSERT INTO contacts VALUES ({', '.join('?' * (1 + len(columns)))})"
    rows: Iterable[Statement] = (
        (
            insert,
            (
                number,
                *(draw(31) for _ in range(CONTACT_INTEGERS)),
                *(next(texts) for _ in range(CONTACT_TEXTS)),
            ),
        )
        for number in range(1, 1 + database.records)
    )
    return _left_by([(create, ()), ("BEGIN", ()), *rows, ("END", ())], database)


def _selections(sql_case: _SqlCase) -> Iterator[Step]:
    """Whole records by id: in order, again from the first after the last, or random."""
    draw, records = random.Random(sql_case.seed).random, sql_case.database.records
    for index in range(sql_case.requests):
        if index:
            yield None
        at = index % records if sql_case.pattern == "contacts" else int(draw() * records)
        yield _statement(sql_case.database, "SELECT * FROM contacts WHERE id = ?", 1 + at)


def _requests(sql_case: _SqlCase) -> Iterator[Step]:
    """BEGIN, the requests, END; without BEGIN and END where each commits by itself."""
    database, records = sql_case.database, sql_case.database.records
    together = not database.autocommit and database.period_ns is None
    numbers: Iterable[int] = range(1, 1 + sql_case.requests)
    texts = _records(1 + sql_case.seed, sql_case.request_bytes)
    if together:
        yield "BEGIN TRANSACTION", ()
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
            yield _insert(database, "table1", number, next(texts))
        elif sql_case.pattern == "update":
            yield _statement(
                database, "UPDATE table1 SET val = ? WHERE id = ?", next(texts), number
            )
        else:
            yield _statement(database, "SELECT val FROM table1 WHERE id = ?", number)
    if together:
        yield "END TRANSACTION", ()


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
    connecting, lines = _run(files, database, script[0]) if script[0] else ([], [])
    return (f"mkdir {FOLDER}", *copied, *connecting, *lines), _frozen(files)


def _copied(data: bytes) -> list[str]:
    """Writes that copy the database onto the partition, with seeds above those of statements."""
    pieces = [data[at : at + COPY_BYTES] for at in range(0, len(data), COPY_BYTES)]
    writes = [
        f"write 0 {COPY_BYTES * number} {len(piece)} {2**40 + number} {compressibility(piece)}"
        for number, piece in enumerate(pieces)
    ]
    return [f"open 0 {DATABASE_PATH} rw,create", *writes, "fsync 0", "close 0"]
