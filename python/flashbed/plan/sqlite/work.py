"""A statement's processor time, as steps of `compute`, which the board prices.

Fitted to SQLite 3.54.1 on the emulated board (ARMv7, zig's clang -O2, an instruction 4 ns, a step
6.53 ns): 904 statements of 35 kinds on tables, texts and an index used for nothing else, within a
transaction and each in its own, prepared before or not. The fitted time is a statement's time minus
the chip's time and minus the time of the same statement's recorded calls:

    a statement                          1.8 us     an instruction of the virtual machine   0.84 us
    an instruction of its program        2.2 us     a page read                             5.5 us
    a byte of its text                   0.11 us    a write                                 2.9 us
    planning a SELECT                    25 us      a lock taken or left, a file's size     13 us
    opening a connection                 890 us

The three under the first apply only to a statement that was not prepared before. The sums of each
kind of case are within 8 % of what was measured, half of the statements within 13 %, nine of ten
within 35 %. Left out: differences between instructions (grouping is a third off, IN with a list of
values takes half a millisecond more for its table); memory touched for the first time; caches; a
program's own work with a row.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["OPENING_STEPS", "PREPARED_BYTE_STEPS", "Executed", "Prepared", "Work"]

STATEMENT_STEPS = 280
VM_STEP_STEPS = 130
"""One executed instruction of SQLite's virtual machine (SQLITE_STMTSTATUS_VM_STEP)."""
PLANNED_STEPS = 3_880
PREPARED_INSTRUCTION_STEPS = 340
"""sqlite3_prepare_v2: parser, planner and code, by the length of the program (EXPLAIN)..."""
PREPARED_BYTE_STEPS = 17
"""...and each byte of the statement's text; a board's `[sqlite]` may have another price."""
PAGE_READ_STEPS = 840
"""The pager's work for a page, besides the system call that reads it."""
WRITE_STEPS = 440
"""The pager's work for a write, of a page or to a journal."""
ASIDE_STEPS = 2_020
"""A system call that is no operation: fcntl for a lock, fstat."""
OPENING_STEPS = 136_000
"""sqlite3_open_v2, its settings, and reading the schema."""


class Prepared(NamedTuple):
    """The work of sqlite3_prepare_v2."""

    instructions: int
    text_bytes: int
    is_select: bool

    @property
    def steps(self) -> int:
        """Steps of `compute`."""
        planned = PLANNED_STEPS if self.is_select else 0
        texts = PREPARED_BYTE_STEPS * self.text_bytes
        return planned + texts + PREPARED_INSTRUCTION_STEPS * self.instructions


class Work(NamedTuple):
    """The work for one statement; `prepared` is None if it was prepared before."""

    vm_steps: int
    pages_read: int
    writes: int
    asides: int
    prepared: Prepared | None = None

    @property
    def steps(self) -> int:
        """Steps of `compute`."""
        return (
            STATEMENT_STEPS
            + VM_STEP_STEPS * self.vm_steps
            + PAGE_READ_STEPS * self.pages_read
            + WRITE_STEPS * self.writes
            + ASIDE_STEPS * self.asides
            + (self.prepared.steps if self.prepared else 0)
        )


class Executed(NamedTuple):
    """A statement behind a `compute`: what a board's `[sqlite]` prices by itself."""

    kind: str | None
    """Its first word, in lower case."""
    steps: int
    """Its own work, without opening the connection."""
    text_bytes: int
    """Bytes of text that were prepared for it, 0 if it was prepared before."""
