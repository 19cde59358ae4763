"""The compiled simulator (bind/src/lib.rs)."""

from collections.abc import Callable, Sequence
from typing import Any

def check_operations(text: str) -> str:
    """Canonical text of a flashbed-ops file; ValueError(line, code, detail) if it is none."""

def body_offset(text: str) -> int:
    """Where the body of a flashbed-ops file begins, behind `prepared`; 0 if all of it is the body.

    ValueError(line, code, detail) if it is no such file.
    """

def run_cases(
    board_json: str,
    kernel_json: str,
    cases: Sequence[tuple[Any, ...]],
    recorded: Sequence[str],
    threads: int,
    sink: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Runs cases (id, fs, read_ahead_kib, prepare, body, cuts, chip, dice).

    Columns: targets/sim.py.
    `recorded` are the tables wanted besides `cases`: requests, flash, wear; and flush, columns of
    `cases`. `sink` is given rows of long cases as they come, in the form of the result; a piece
    whose `seq` begin at 0 replaces what was given of its case before. Ctrl-C ends it: what has
    ended by then is returned, `interrupted` is what the signal's handler raised, else None.
    """

def fresh_bytes(
    board_json: str, kernel_json: str, fs: str, bad_blocks: Sequence[int]
) -> int | None:
    """Bytes that df calls available on a fresh file system; ValueError if there can be none."""
