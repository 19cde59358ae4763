"""What a power cut may leave of a database whose statements run on the board.

Statements are processed like operations of the tree (tree.py): `begin` when one is called,
`returned` when it has returned. They are also executed here; the contents of the tables whenever no
transaction is open are a state. After a cut SQLite must find the database intact and in one of the
states from the last durable one to that of the current statement. A transaction is thus present
with all of its rows or with none.

What is durable follows SQLite's documentation of `synchronous` and `journal_mode`, and pager.c:

- full or extra, with a journal that is truncated or kept, or WAL: every transaction that returned;
- extra, with a journal that is deleted: the same; with full the directory is not synced after the
  unlink, so the last transaction may be rolled back, and the one before is durable;
- normal or off with WAL, off, or any without a journal on flash: none, but the database must be in
  a state.

Left out: statements that fail on the board; several databases.
"""

from __future__ import annotations

import apsw

from flashbed.base.errors import InputError
from flashbed.plan.sqlite.call_tables import Tables, tables_of
from flashbed.plan.sqlite.recorder import draw_by
from flashbed.plan.sqlite.vfs import Files, RecordingVfs
from flashbed.program.operations import Operation
from flashbed.program.sql import statement_kind, unescaped
from flashbed.targets.base import SurveyedDatabase

__all__ = ["History"]

SUFFIXES = ("", "-journal", "-wal", "-shm")
_NORMAL, _FULL, _EXTRA = 1, 2, 3
_KEEPS_STATE = frozenset({"select", "begin", "pragma", "explain"})
NOTHING_OPEN = -14
"""SQLITE_CANTOPEN."""


class History:
    """The states of one database, oldest first; the first is empty."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.states: list[Tables] = [{}]
        self.durable = 0
        """Index of the oldest state that may be found."""
        self.returned_states = 0
        """Index of the state that the last statement that returned left."""
        self._files: Files = {}
        self._connection: apsw.Connection | None = None
        self._vfs: RecordingVfs | None = None
        self._lag = 0
        """Transactions that returned and are not durable; a huge number if none is durable."""

    def owns(self, path: str) -> bool:
        """Whether a file belongs to the database."""
        return self.path is not None and path in {f"{self.path}{end}" for end in SUFFIXES}

    def begin(self, operation: Operation, result: int) -> None:
        """Begins a statement. Raises `InputError` for one that failed on the board."""
        if not operation.name.startswith("sql"):
            return
        if result < 0:
            raise InputError(f"line {operation.line}: what a statement that failed left")
        fields = [str(part) for part in operation.fields]
        if operation.name == "sql_open":
            self._open(fields[0], int(fields[1]), unescaped(fields[3])[0])
        elif self._connection is not None and operation.name == "sql":
            text, values = unescaped(fields[1])
            list(self._connection.execute(text, values))
            if statement_kind(text) not in _KEEPS_STATE:
                self._look()
        elif self._connection is not None:
            self.close()

    def returned(self, operation: Operation) -> None:
        """Ends a statement."""
        if operation.name.startswith("sql"):
            self.durable = max(self.durable, len(self.states) - 1 - self._lag)
            self.returned_states = len(self.states) - 1

    def fault(self, found: SurveyedDatabase) -> tuple[bool, str] | None:
        """What is wrong with a database: whether anything is lost, and a message."""
        if found.result == NOTHING_OPEN and self.durable == 0:
            return None
        if found.result or found.words != "ok":
            return found.result == NOTHING_OPEN, f"{found.path}: {found.words}"
        at = self._found_at(found)
        if at is None:
            return False, f"{found.path}: its tables match no state between transactions"
        if at < self.durable:
            lost = self.durable - at
            return (
                True,
                f"{found.path}: {lost} acknowledged transactions are missing",
            )
        return None

    def lost_transactions(self, found: SurveyedDatabase) -> int | None:
        """How many transactions had returned and are not there; None if it is not whole."""
        if found.result == NOTHING_OPEN:
            return self.returned_states
        at = self._found_at(found) if not found.result and found.words == "ok" else None
        return None if at is None else max(0, self.returned_states - at)

    def _found_at(self, found: SurveyedDatabase) -> int | None:
        """The newest state that it is in."""
        last = len(self.states) - 1
        return next((n for n in range(last, -1, -1) if self.states[n] == found.tables), None)

    def close(self) -> None:
        """Closes the connection that executes the statements."""
        if self._connection is not None and self._vfs is not None:
            self._connection.close()
            self._vfs.unregister()
            self._connection = None

    def _open(self, path: str, seed: int, settings: str) -> None:
        if self.path not in (None, path):
            raise InputError(f"{path}: a second database")
        self.path = path
        self._vfs = RecordingVfs(self._files, "fsync", seed, measured=False)
        self._connection = apsw.Connection(f"/{path}", vfs=self._vfs.vfs_name)
        draw_by(self._connection, seed)
        list(self._connection.execute(settings))
        self._lag = self._lag_of(self._connection)

    def _lag_of(self, connection: apsw.Connection) -> int:
        ((synchronous,),) = connection.execute("PRAGMA synchronous")
        ((journal,),) = connection.execute("PRAGMA journal_mode")
        never = 2**62
        if synchronous == 0 or journal in ("memory", "off"):
            return never
        if journal == "wal":
            return 0 if synchronous >= _FULL else never
        if journal == "delete":
            return 0 if synchronous == _EXTRA else 1
        return 0 if synchronous >= _FULL else 1

    def _look(self) -> None:
        connection = self._connection
        if connection is None or connection.in_transaction:
            return
        now = tables_of(connection)
        if now != self.states[-1]:
            self.states.append(now)
