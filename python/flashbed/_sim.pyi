"""The compiled simulator (bind/src/lib.rs)."""

from collections.abc import Sequence
from typing import Any

def check_operations(text: str) -> str:
    """Canonical text of a flashbed-ops file; ValueError(line, code, detail) if it is none."""

def run_cases(
    board_json: str,
    kernel_json: str,
    cases: Sequence[tuple[str, str, int, str, str, Sequence[int]]],
    trace_flash: bool,
    record_wear: bool,
    threads: int,
) -> dict[str, Any]:
    """Runs (case_id, fs, read_ahead_kib, prepare, body, cuts) cases; columns: targets/sim.py."""
