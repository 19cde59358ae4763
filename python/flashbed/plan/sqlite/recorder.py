"""Runs statements on real SQLite and records its calls to the file system as operations.

A recording is a connection over `RecordingVfs`. Every statement ends with one `compute`, which
separates its operations from the next statement's (`answers/analysis/statements.py` relies on it).

Left out: threads, several connections at once, statements that are not stepped to their end.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import apsw

from flashbed.base.errors import InputError
from flashbed.plan.database import Database
from flashbed.plan.sqlite.vfs import FOLDER, Files, PagerTally, RecordingVfs
from flashbed.plan.sqlite.work import OPENING_STEPS, Executed, Prepared, Work
from flashbed.program.content import generated, generated_word
from flashbed.program.sql import statement_kind

__all__ = ["DATABASE_PATH", "SqlRecording", "StatementError", "Written", "draw_by"]

DATABASE_PATH = f"{FOLDER}/test.db"
VM_STEP = "SQLITE_STMTSTATUS_VM_STEP"
_VALUE = re.compile(r"'[^']*'|\b[0-9]+\b")
"""A text with a quote in it counts as two."""
_SET_BY_PREPARING = re.compile(r"\s*(?:PRAGMA|EXPLAIN)\b", re.IGNORECASE)
"""Statements that EXPLAIN would execute or cannot explain; their programs are short."""
_BLOB = re.compile(r"[xX]'[0-9a-fA-F]*'")
"""EXPLAIN returns its bytes as text, which apsw can decode only if they are UTF-8."""
EMPTY_BLOB = "x''"
SHORT = 4
VM_STEPS_MAX = 500_000_000
"""Of one statement: seven minutes of the emulated board. A statement that never ends has more."""
TURN_STEPS = 10_000
"""Between two looks at the clock."""
STATEMENT_S = 300.0
"""Processor time of one statement. Within an instruction SQLite continues however long its function
takes, and LIKE over values of megabytes is one: few of them take hours."""
ROWS_MAX = 2_000_000
VALUE_BYTES_MAX = 1 << 24
"""What a function does with two values takes their product."""
PATTERN_BYTES_MAX = 1000
Written = dict[int, tuple[int, bytes]]
Bindings = Sequence[int | float | str | bytes | None]


class StatementError(InputError):
    """A statement that SQLite refused; the transaction is as SQLite left it."""


class SqlRecording:
    """A connection to the database in `files`, whose system calls are `lines`.

    Opening it sets the pragmas. Leaving the `with` block closes it, which is recorded too. What is
    not `measured` has no `compute` and no failing operation. `written` collects the bytes of each
    write by its SEED.
    """

    def __init__(
        self,
        files: Files,
        database: Database,
        *,
        seed: int = 1,
        measured: bool = True,
        written: Written | None = None,
    ) -> None:
        self._vfs = RecordingVfs(files, database.sync, seed, measured)
        self._vfs.written = written
        self._prepared = database.prepared
        self.executed: list[Executed] = []
        """The statement of each `compute`."""
        self._vm_steps = 0
        self._instructions: dict[str, int] = {}
        """Lengths of the statements' programs, by text without values."""
        self._opening_steps = OPENING_STEPS
        # Keeps one prepared statement for each text if the setting says so, otherwise none.
        self._connection = apsw.Connection(
            f"/{DATABASE_PATH}",
            vfs=self._vfs.vfs_name,
            statementcachesize=100 if database.prepared else 0,
        )
        self._seen: set[str] = set()
        self._turns, self._begun_s = 0, 0.0
        self._connection.set_progress_handler(self._goes_on, TURN_STEPS)
        self._connection.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX)
        self._connection.limit(apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, PATTERN_BYTES_MAX)
        draw_by(self._connection, seed)
        self._connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._ended)
        try:
            for pragma in database.pragmas:
                self._run(pragma)
        except apsw.Error as why:
            self.close()
            raise StatementError(f"{DATABASE_PATH}: {why}") from None

    def measure(self) -> None:
        """Measures from here on."""
        if not self._vfs.measured:
            self._opening_steps = 0
            self._vfs.tally = PagerTally()
        self._vfs.measured = True

    @property
    def lines(self) -> list[str]:
        """The operations so far."""
        return self._vfs.lines

    def execute(self, statement: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Runs one statement to its end and returns its rows.

        Raises `StatementError` with SQLite's message. The calls until then, a rollback included,
        are recorded.
        """
        prepared = self._to_prepare(statement, bindings)
        self._vm_steps = 0
        try:
            return self._run(statement, bindings)
        except apsw.InterruptError:
            raise StatementError(
                f"{_shortened(statement)}: more than {self._more_than()}"
            ) from None
        except apsw.Error as why:
            raise StatementError(f"{_shortened(statement)}: {why}") from None
        finally:
            if self._vfs.measured:
                steps = self._steps(prepared)
                opening, self._opening_steps = self._opening_steps, 0
                self.lines.append(f"compute {opening + steps}")
                texts = prepared.text_bytes if prepared else 0
                self.executed.append(Executed(statement_kind(statement), steps, texts))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection, which first checkpoints a WAL into the database."""
        self._connection.close()
        self._vfs.unregister()

    def _steps(self, prepared: Prepared | None) -> int:
        tally, self._vfs.tally = self._vfs.tally, PagerTally()
        return Work(
            vm_steps=self._vm_steps,
            pages_read=tally.pages_read,
            writes=tally.writes,
            asides=tally.asides,
            prepared=prepared,
        ).steps

    def _to_prepare(self, statement: str, bindings: Bindings) -> Prepared | None:
        """The work of preparing a statement; None if it is prepared already.

        EXPLAIN makes no call to the file system that preparing would not make.
        """
        if not self._vfs.measured or (self._prepared and statement in self._seen):
            return None
        self._seen.add(statement)
        kind = _VALUE.sub("?", statement)
        if kind not in self._instructions:
            known = not _SET_BY_PREPARING.match(statement)
            try:
                asked = f"EXPLAIN {_BLOB.sub(EMPTY_BLOB, statement)}"
                explained = self._run(asked, bindings) if known else ()
            except apsw.Error:
                explained = ()  # running it will raise the error
            self._instructions[kind] = len(explained) or SHORT
        return Prepared(
            self._instructions[kind], len(statement), statement_kind(statement) == "select"
        )

    def _run(self, statement: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        self._turns, self._begun_s = 0, time.thread_time()
        rows = list(itertools.islice(self._connection.execute(statement, bindings), ROWS_MAX + 1))
        if len(rows) > ROWS_MAX:
            raise apsw.TooBigError(f"more than {ROWS_MAX:,} rows")
        return rows

    def _goes_on(self) -> bool:
        """Called by SQLite every TURN_STEPS instructions; true interrupts the statement."""
        self._turns += 1
        return self._has_too_many or time.thread_time() - self._begun_s > STATEMENT_S

    @property
    def _has_too_many(self) -> bool:
        return self._turns * TURN_STEPS > VM_STEPS_MAX

    def _more_than(self) -> str:
        """What the statement that was interrupted had more of than any may have."""
        if self._has_too_many:
            return f"{VM_STEPS_MAX:,} instructions of SQLite"
        return f"{STATEMENT_S:g} s of processor time"

    def _ended(self, event: dict[str, Any]) -> None:
        self._vm_steps += event["stmt_status"][VM_STEP]


def draw_by(connection: apsw.Connection, seed: int) -> None:
    """Replaces random() and randomblob(), which SQLite seeds with the host's entropy.

    The numbers are those of the board (agent/sql/sql.c).
    """
    drawn = itertools.count()

    def draw() -> int:
        return generated_word(seed, next(drawn))

    def integer(*_: Any) -> int:
        return (draw() ^ 2**63) - 2**63

    def blob(*values: Any) -> bytes:
        return generated(0, max(1, int(values[0] or 0)), draw(), 0).tobytes()

    connection.create_scalar_function("random", integer, 0)
    connection.create_scalar_function("randomblob", blob, 1)


def _shortened(statement: str) -> str:
    return statement if len(statement) <= 60 else f"{statement[:57]}..."
