"""What a run says when it has ended: the choices compared, and what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashbed.cli.laid_out import print_table
from flashbed.paths import shown

if TYPE_CHECKING:
    from flashbed.analysis.answer import Answer

__all__ = ["HEADS", "answer_json", "say_answer"]

HEADS = {
    "time_ns": "time",
    "flash_time_ns": "chip time",
    "flash_reads": "reads",
    "flash_programs": "programs",
    "flash_erases": "erases",
    "bytes_written": "written",
    "amplification": "amplification",
    "energy_nj": "energy",
}
"""Measures of a case or an answer, in the order in which they are shown -> their heads."""
_SAYS_NOTHING = {None, 0}


def say_answer(found: Answer | None, directory: Path) -> None:
    """On standard output: the table, the folder of the results, the next two commands."""
    if found is not None:
        print(_title(found))
        print_table(found.rows.select(*found.axes, *_measured(found)), HEADS)
        if found.left:
            print(f"{found.left:,} more rows: flashbed table {_word(directory)} cases")
    print(shown(directory.absolute()))
    print(f"next: flashbed report {_word(directory)}")
    print(f"      flashbed table {_word(directory)} cases --format csv")


def answer_json(found: Answer | None, directory: Path) -> dict[str, Any]:
    """For a program; unknown is null."""
    return {
        "directory": str(directory),
        "works": found.works if found else 0,
        "rows": found.rows.to_dicts() if found else [],
        "rows_left_out": found.left if found else 0,
    }


def _word(directory: Path) -> str:
    return shlex.quote(str(directory))


def _title(found: Answer) -> str:
    rows = found.rows.height + found.left
    by = "chip time" if found.best_by == "flash_time_ns" else "time"
    if not found.works:
        return f"{rows:,} cases, the least {by} first"
    if rows == 1:
        return "1 case" if found.works == 1 else f"The sum over {found.works:,} cases"
    each = "the same work" if found.works == 1 else f"the sum over the same {found.works:,} cases"
    return f"{rows:,} choices, {each} for each, the least {by} first"


def _measured(found: Answer) -> list[str]:
    """Measures that are known and not all 0; a zero of programs and erases says something."""
    names = []
    for name in HEADS:
        values = set(found.rows[name])
        if values <= {None} or (name in ("bytes_written", "energy_nj") and values <= _SAYS_NOTHING):
            continue
        names.append(name)
    return names
