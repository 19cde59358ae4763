"""The contents of a database: whether it is intact, and each table's rows and checksum.

The board computes the same (agent/sql/sql.c), so that the contents there and here can be compared
without sending them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import apsw

__all__ = ["Tables", "checked", "tables_of"]

Tables = Mapping[str, tuple[int, int]]
"""Name -> number of rows, and checksum of their values."""
NAMES = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
)
_MASK = 2**32 - 1
_TYPES = {int: 1, float: 2, str: 3, bytes: 4, type(None): 5}


def tables_of(connection: apsw.Connection) -> Tables:
    """Every table of the database. Raises `apsw.Error`."""
    names = [str(name) for (name,) in connection.execute(NAMES)]
    return {name: _summed(connection, name) for name in names}


def checked(connection: apsw.Connection) -> str:
    """The first finding of PRAGMA integrity_check; "ok" if there is none. Raises `apsw.Error`."""
    ((words,),) = connection.execute("PRAGMA integrity_check(1)")
    return str(words).partition("\n")[0]


def _summed(connection: apsw.Connection, name: str) -> tuple[int, int]:
    quoted = name.replace('"', '""')
    rows = total = 0
    for row in connection.execute(f'SELECT * FROM "{quoted}" NOT INDEXED'):
        rows += 1
        for value in row:
            total = (total * 31 + _TYPES[type(value)]) & _MASK
            total = (total * 31 + zlib.crc32(_text(connection, value))) & _MASK
    return rows, total


def _text(connection: apsw.Connection, value: object) -> bytes:
    """A value as sqlite3_column_text returns it."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        ((value,),) = connection.execute("SELECT CAST(? AS TEXT)", (value,))
    return b"" if value is None else str(value).encode()
