"""Programs that ship: run by exec, and their recordings replayed (evidence/programs.md).

`python -m tests.support.shipped_programs [NAME…]` prints a row of the table for each program and
file system. Counts include the sync after the program.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

from flashbed.program.recording.file import open_recording
from tests.support import PROJECT
from tests.support.exec_programs import TriedProgram, run
from tests.support.recorded_programs import FILE_SYSTEMS, of_answer, replayed, said

FOLDER = PROJECT / "experiments" / "programs"
RECORDED_FROM = "/tmp/flashbed-programs"
CUT = frozenset({"dbench"})
"""The recording is the beginning of what the command does."""


def row(name: str, fs: str) -> str:
    recording = FOLDER / f"{name}.parquet"
    kernel, simulator = (replayed(recording, fs, target) for target in ("uml", "sim-chip"))
    words = [word.replace(RECORDED_FROM, str(FOLDER / "run"))
             for word in open_recording(recording).about.command]  # fmt: skip
    alone = "not run"
    if name not in CUT and shutil.which(words[0]):
        answer, _, _ = run(TriedProgram(words[0], words), fs)
        alone = said(of_answer(answer), kernel)
    counts = " / ".join(f"{count:,}" for count in kernel)
    cells = [f"`{name}`", fs, counts, said(simulator, kernel), alone]
    return f"| {' | '.join(cells)} |"


def main(names: Sequence[str]) -> None:
    """Prints the table."""
    print("| program | on | replay: kernel | simulator | `exec` |")
    print("|---|---|---|---|---|")
    for name in names or sorted(path.stem for path in FOLDER.glob("*.toml")):
        for fs in FILE_SYSTEMS:
            print(row(name, fs), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
