"""The compiled simulator (bind/src/lib.rs)."""

from collections.abc import Sequence
from typing import Any

def check_operations(text: str) -> str:
    """Canonical text of a flashbed-ops file; ValueError(line, code, detail) if it is none."""

def run_cases(
    board_json: str,
    kernel_json: str,
    cases: Sequence[tuple[Any, ...]],
    recorded: Sequence[str],
    threads: int,
) -> dict[str, Any]:
    """Runs cases (id, fs, read_ahead_kib, prepare, body, cuts, chip, dice).

    Columns: targets/sim.py.
    `recorded` are the tables wanted besides `cases`: requests, flash, wear; and flush, columns of
    `cases`.
    """

def fresh_bytes(
    board_json: str, kernel_json: str, fs: str, bad_blocks: Sequence[int]
) -> int | None:
    """Bytes that df calls available on a fresh file system; ValueError if there can be none."""
