"""Compares programs that `flashbed exec` runs with the replays of their recordings.

`python -m tests.support.exec_and_replay --fs ubifs,jffs2 -- sh -c 'echo x >a'` prints a row for
each file system, `--list FILE` for each program of a file, and how many agree. A line of FILE is
`NAME [--put FILE]… -- COMMAND…`, in the shell's quoting; `#` begins a comment.

Counts are reads/programs/erases, the sync after the program included. Times are of the virtual
clock. The replay runs on user-mode Linux and on the simulator without software (`sim-chip`).
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flashbed.plan.experiment import load_experiment
from flashbed.plan.of_recording import written_experiment
from flashbed.running.programs import programs_of
from flashbed.targets import load_target
from flashbed.targets.base import RunOptions

__all__ = ["Compared", "Counts", "Ran", "TriedCommand", "answer_of", "compared", "replayed"]

FLASHBED = Path(sys.executable).parent / "flashbed"
FILE_SYSTEMS = ("ubifs", "jffs2", "yaffs2")
KINDS = ("reads", "programs", "erases")
NEAR = 0.02
"""Counts this near, or one operation away, are near."""
FEW_READS = 4
"""Reads may also differ by this many."""

Counts = tuple[int, int, int]
"""Reads, programs and erases."""


@dataclass(frozen=True)
class TriedCommand:
    """A program with the files that it finds on the flash, of the folder `here`.

    `contents`: its recording keeps the bytes that it wrote, not their sizes.
    """

    name: str
    words: tuple[str, ...]
    puts: tuple[str, ...] = ()
    here: Path = field(default_factory=Path)
    contents: bool = False


@dataclass(frozen=True)
class Ran:
    """What one run did; `why` says why there is none."""

    counts: Counts | None
    time_ns: int | None = None
    why: str = ""
    written: int | None = None

    def __str__(self) -> str:
        if self.counts is None:
            return self.why
        seconds = "" if self.time_ns is None else f" {self.time_ns / 1e9:.3f} s"
        return "/".join(map(str, self.counts)) + seconds


@dataclass(frozen=True)
class Compared:
    """One program on one file system: run, run with the recorder, replayed."""

    name: str
    fs: str
    run: Ran
    recorded: Ran
    uml: Ran
    sim: Ran

    @property
    def verdict(self) -> str:
        """How near the replay on user-mode Linux is to the program."""
        if self.run.counts is None or self.uml.counts is None:
            return "not run" if self.run.counts is None else "not replayed"
        if self.run.counts == self.uml.counts:
            return "equal"
        near = [_near(kind, *pair) for kind, *pair in
                zip(KINDS, self.run.counts, self.uml.counts, strict=True)]  # fmt: skip
        if all(near):
            return "near"
        same_writes = self.run.counts[1:] == self.uml.counts[1:]
        return "reads differ" if same_writes else "other"


def _near(kind: str, one: int, other: int) -> bool:
    few = FEW_READS if kind == "reads" else 1
    return abs(one - other) <= max(few, NEAR * one)


def answer_of(
    tried: TriedCommand, fs: str, *, record: Path | None = None, patience_s: int = 300
) -> dict[str, Any]:
    """The answer of `flashbed exec`. Raises `ValueError` with its error."""
    words = ["exec", "--fs", fs, "--format", "json", "--host-timeout", str(patience_s)]
    if record is not None:
        words += ["--record", str(record), *(["--contents"] if tried.contents else [])]
    words += [word for put in tried.puts for word in ("--put", put)]
    done = subprocess.run(
        [FLASHBED, *words, "--", *tried.words], stdin=subprocess.DEVNULL, capture_output=True,
        check=False, cwd=tried.here, timeout=2 * patience_s,
    )  # fmt: skip
    if not done.stdout:
        raise ValueError(done.stderr.decode("utf-8", "replace").strip().splitlines()[-1])
    answer: dict[str, Any] = json.loads(done.stdout)["exec"][0]
    return answer


def _ran(tried: TriedCommand, fs: str, record: Path | None, patience_s: int) -> Ran:
    try:
        answer = answer_of(tried, fs, record=record, patience_s=patience_s)
    except ValueError as why:
        return Ran(None, why=str(why))
    reads, programs, erases = (answer["run"][kind] + answer["flush"][kind] for kind in KINDS)
    return Ran((reads, programs, erases), answer["time_ns"], written=answer["bytes_written"])


def replayed(recording: Path, fs: str, target: str) -> Ran:
    """The replay of a recording, as it was recorded."""
    experiment = load_experiment(str(written_experiment(recording)))
    cases = [item.case for item in experiment.planned
             if item.case.fs == fs and item.case.pattern == "recorded"]  # fmt: skip
    (program,) = programs_of(experiment, cases)
    (batch,) = load_target(target).run([program], RunOptions())
    for failure in batch.failures:
        return Ran(None, why=failure.message)
    (row,) = batch.cases.iter_rows(named=True)
    reads, programs, erases = (row[f"flash_{kind}"] + row[f"flush_{kind}"] for kind in KINDS)
    return Ran((reads, programs, erases), row["elapsed_ns"], written=row["bytes_written"])


def compared(
    tried: TriedCommand, fs: str, *, bare: bool = True, sim: bool = True, patience_s: int = 300
) -> Compared:
    """Runs, records and replays one program; not `bare`: without the run before the recorder's."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / f"{tried.name}.rec"
        run = _ran(tried, fs, None, patience_s) if bare else None
        recorded = _ran(tried, fs, recording, patience_s)
        missing = Ran(None, why="not recorded")
        uml = _replay(recording, fs, "uml") if recorded.counts else missing
        simulated = _replay(recording, fs, "sim-chip") if recorded.counts and sim else missing
    return Compared(
        name=tried.name, fs=fs, run=run or recorded, recorded=recorded, uml=uml, sim=simulated
    )


def _replay(recording: Path, fs: str, target: str) -> Ran:
    try:
        return replayed(recording, fs, target)
    except Exception as why:  # one program must not end a list of them
        return Ran(None, why=(str(why).splitlines() or [type(why).__name__])[0])


def listed(file: Path) -> Iterator[TriedCommand]:
    """The programs of a file; their `--put` files are looked up from its folder."""
    for line in file.read_text(encoding="utf-8").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        name, *before = words[: words.index("--")]
        puts = tuple(before[at + 1] for at in range(0, len(before), 2) if before[at] == "--put")
        yield TriedCommand(name, tuple(words[words.index("--") + 1 :]), puts, file.parent)


def _print(rows: Iterable[Compared]) -> None:
    print("| program | on | exec | with --record | replay: kernel | simulator | replay is |")
    print("|---|---|---|---|---|---|---|", flush=True)
    verdicts: Counter[str] = Counter()
    agree = total = 0
    for row in rows:
        verdicts[row.verdict] += 1
        recorded = "the same" if row.recorded.counts == row.run.counts else str(row.recorded)
        same = row.sim.counts == row.uml.counts
        total += row.uml.counts is not None and row.sim.counts is not None
        agree += same and row.uml.counts is not None
        sim = f"the same{'' if row.sim.time_ns is None else f' {row.sim.time_ns / 1e9:.3f} s'}"
        cells = [row.name, row.fs, str(row.run), recorded, str(row.uml),
                 sim if same and row.sim.counts else str(row.sim), row.verdict]  # fmt: skip
        print(f"| {' | '.join(cells)} |", flush=True)
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"\nof {sum(verdicts.values())}: {said}; simulator = kernel in {agree} of {total}")


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="exec_and_replay", description=__doc__)
    parser.add_argument("--fs", default=",".join(FILE_SYSTEMS))
    parser.add_argument("--put", action="append", default=[])
    parser.add_argument("--list", type=Path, help="a file of programs, one a line")
    parser.add_argument("--only", default="", help="of the list: these names, with , between")
    parser.add_argument("--contents", action="store_true", help="record the bytes written")
    parser.add_argument("--no-bare", action="store_true", help="exec with the recorder only")
    parser.add_argument("--no-sim", action="store_true", help="no replay on the simulator")
    parser.add_argument("--patience", type=int, default=300, help="real seconds for each exec")
    parser.add_argument("command", nargs="*")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> None:
    """Compares what the command line names."""
    asked = _arguments(words)
    tried = list(listed(asked.list)) if asked.list else []
    if asked.command:
        name = Path(asked.command[0]).name
        tried.append(TriedCommand(name, tuple(asked.command), tuple(asked.put)))
    only = set(filter(None, asked.only.split(",")))
    _print(
        compared(
            replace(one, contents=asked.contents), fs,
            bare=not asked.no_bare, sim=not asked.no_sim, patience_s=asked.patience,
        )
        for one in tried if not only or one.name in only
        for fs in asked.fs.split(",")
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
