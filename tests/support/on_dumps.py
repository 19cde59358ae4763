"""Programs on what a device's flash held: user-mode Linux against the simulator.

A script is run by `exec` on both. The simulator replays what user-mode Linux recorded, from the
same dump. Used by tests/agreement/test_simulated_dumps.py, and to look at a single case.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agreement.test_layouts import _flashbed

__all__ = ["Counts", "both", "script_of"]


@dataclass(frozen=True)
class Counts:
    """Flash operations of a program, and programs of the sync after it."""

    reads: int
    programs: int
    erases: int
    flush_programs: int


def script_of(seed: int, names: Sequence[str], calls: int = 24) -> str:
    """A shell script that reads, changes, renames and removes files of a device, and makes some."""
    chance = random.Random(f"dump {seed}")
    there = list(names)
    lines = []
    for number in range(calls):
        file = chance.choice(there) if there else None
        kib = chance.choice((1, 3, 10, 40, 200))
        what = chance.choice(("read", "new", "new", "over", "append", "rename", "remove", "sync"))
        if file is None or what == "new":
            there.append(f"new{number}")
            source = chance.choice(("zero", "urandom"))
            lines.append(f"dd if=/dev/{source} of=new{number} bs={kib}k count=1")
        elif what == "read":
            lines.append(f"cat '{file}' >/dev/null")
        elif what == "over":
            at = chance.randrange(8)
            lines.append(f"dd if=/dev/urandom of='{file}' bs=2k count=3 seek={at} conv=notrunc")
        elif what == "append":
            lines.append(
                f"dd if=/dev/urandom of='{file}' bs={kib}k count=1 oflag=append conv=notrunc"
            )
        elif what == "rename":
            there.remove(file)
            there.append(f"moved{number}")
            lines.append(f"mv '{file}' moved{number}")
        elif what == "remove":
            there.remove(file)
            lines.append(f"rm '{file}'")
        else:
            lines.append("sync")
    return "; ".join(lines) + "; sync"


def both(words: Sequence[str], script: str, here: Path) -> tuple[Counts, Counts]:
    """What the script costs on user-mode Linux, and in the simulator."""
    real = _answer("uml", words, script, here)["exec"][0]
    (row,) = _answer("sim", words, script, here)["rows"]
    assert row["failed"] == 0, row
    run = real["run"]
    return (
        Counts(run["reads"], run["programs"], run["erases"], real["flush"]["programs"]),
        Counts(row["flash_reads"], row["flash_programs"], row["flash_erases"], row["flush_programs"]),
    )  # fmt: skip


def _answer(on: str, words: Sequence[str], script: str, here: Path) -> dict[str, Any]:
    ran = _flashbed(
        "exec", "--on", on, *words, "--format", "json", "--", "sh", "-c", script, here=here
    )
    assert ran.status == 0, ran.err
    answer: dict[str, Any] = json.loads(ran.out)
    return answer
