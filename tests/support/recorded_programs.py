"""Programs that `flashbed exec` records, replayed: their table in evidence/programs.md.

Each program runs on each file system with and without the recorder; its recording is replayed on
user-mode Linux and on the simulator without software. Counts include the sync after the program.

`python -m tests.support.recorded_programs` prints the table of those that are there.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import exec_and_replay
from tests.support.exec_and_replay import FILE_SYSTEMS, Counts
from tests.support.exec_programs import PROGRAMS, TriedProgram, run

__all__ = ["FILE_SYSTEMS", "Counts", "Replays", "away", "of_answer", "replayed", "replays", "said"]


@dataclass(frozen=True)
class Replays:
    """What one program does to one file system."""

    bare: dict[str, Any]
    """The answer of exec without the recorder."""
    recorded: dict[str, Any]
    kernel: Counts
    simulator: Counts

    @property
    def run(self) -> Counts:
        """Of exec."""
        return of_answer(self.bare)


def of_answer(answer: dict[str, Any]) -> Counts:
    ran, flushed = answer["run"], answer["flush"]
    return tuple(ran[kind] + flushed[kind] for kind in ("reads", "programs", "erases"))


def replayed(recording: Path, fs: str, target: str) -> Counts:
    ran = exec_and_replay.replayed(recording, fs, target)
    assert ran.counts is not None, ran.why
    return ran.counts


def replays(program: TriedProgram, fs: str, recording: Path) -> Replays:
    """Runs it, records it into a file, replays that."""
    bare, _, _ = run(program, fs)
    recorded, _, _ = run(program, fs, record=recording)
    return Replays(bare, recorded, replayed(recording, fs, "uml"),
                   replayed(recording, fs, "sim-chip"))  # fmt: skip


def away(counts: Counts, by: Counts) -> float:
    """The largest share by which a count is another one; of counts below 100, operations."""
    return max(abs(one - other) / max(other, 100) for one, other in zip(counts, by, strict=True))


def said(counts: Counts, by: Counts) -> str:
    return "the same" if counts == by else " / ".join(f"{count:,}" for count in counts)


def row(name: str, fs: str, found: Replays) -> str:
    """Of the table."""
    cells = [f"`{name}`", fs, f"{found.recorded['recorded']['calls']:,}",
             " / ".join(f"{count:,}" for count in found.run),
             said(of_answer(found.recorded), found.run), said(found.kernel, found.run),
             said(found.simulator, found.kernel)]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def main(names: Sequence[str]) -> None:
    """Prints the table."""
    print("| program | on | calls | `exec` | with `--record` | replay: kernel | simulator |")
    print("|---|---|---|---|---|---|---|")
    for name, program in PROGRAMS.items():
        for fs in FILE_SYSTEMS:
            if shutil.which(program.needs) is None or fs in program.fails:
                continue
            if names and name not in names:
                continue
            with tempfile.TemporaryDirectory() as folder:
                found = replays(program, fs, Path(folder) / f"{name}.rec")
            print(row(name, fs, found), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
