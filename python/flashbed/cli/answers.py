"""What a run prints when it has ended: the compared choices, and the next commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flashbed.base.paths import shown
from flashbed.cli.laid_out import print_table
from flashbed.stack.names import escaped

if TYPE_CHECKING:
    from flashbed.answers.analysis.answer import Answer

__all__ = ["answer_json", "print_answer", "say_answer"]


def say_answer(found: Answer | None, directory: Path) -> None:
    """Prints the table of choices, the folder of results and the next commands."""
    print_answer(found)
    if found is not None and found.left:
        print(f"{found.left:,} more rows: flashbed table {_shell_word(directory)} cases")
    print(escaped(shown(directory.absolute())))
    print(f"next: flashbed report {_shell_word(directory)}")
    print(f"      flashbed table {_shell_word(directory)} cases --format csv")
    if _is_below_results(directory):
        print("      flashbed report    # all results on one page, results/index.html")


def print_answer(found: Answer | None) -> None:
    """Prints the table of choices and its notes."""
    from flashbed.answers.analysis.answer import HEADS

    if found is not None:
        print(found.title)
        print_table(found.rows.select(*found.axes, *found.measured), HEADS)
        for note in found.notes:
            print(note)


def answer_json(found: Answer | None, directory: Path, notes: Sequence[str] = ()) -> dict[str, Any]:
    """The answer as a dictionary for JSON; unknown is null. `notes` are more of them."""
    return {
        "directory": str(directory),
        "works": found.works if found else 0,
        "rows": found.rows.to_dicts() if found else [],
        "rows_left_out": found.left if found else 0,
        "notes": [*(found.notes if found else ()), *notes],
    }


def _is_below_results(directory: Path) -> bool:
    return not directory.is_absolute() and directory.parts[:1] == ("results",)


def _shell_word(directory: Path) -> str:
    return escaped(shlex.quote(str(directory)))
