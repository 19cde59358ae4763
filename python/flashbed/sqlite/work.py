"""What a statement costs the processor, as steps of `compute`: instructions, priced by the board.

Counted with callgrind in SQLite 3.40.1 (x86-64, gcc -O2), as the difference of 1,200 and 200
statements of a kind over a table of 2,000 rows, less what the counting program does itself:

    instructions a statement   prepared once   prepared each time
    INSERT of 150 bytes                4,600               22,100   13 steps of the virtual machine
    SELECT by its rowid                4,000               25,700    9
    UPDATE by its rowid                4,600               25,100   16
    a row of a join                    1,500                         9

Left out: that another processor needs more or fewer of its own instructions for them; caches; what
the pager does for a page it reads or writes (a checksum over every 200th byte); a program's own
work with a row.
"""

from __future__ import annotations

__all__ = ["statement_steps"]

RUN_STEPS = 2_500
"""Beginning and ending a statement, whatever it does."""
VM_STEP_STEPS = 170
"""One instruction of SQLite's virtual machine (SQLITE_STMTSTATUS_VM_STEP)."""
PREPARE_STEPS = 18_000
PREPARE_BYTE_STEPS = 15
"""sqlite3_prepare_v2: parser, planner and code, and each byte of the statement's text."""


def statement_steps(vm_steps: int, prepared_bytes: int) -> int:
    """Instructions of one statement that was run; 0 `prepared_bytes` if it was prepared before."""
    preparing = PREPARE_STEPS + PREPARE_BYTE_STEPS * prepared_bytes if prepared_bytes else 0
    return RUN_STEPS + VM_STEP_STEPS * vm_steps + preparing
