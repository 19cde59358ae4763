"""Random programs on a layout: recorded by `exec`, replayed on the kernel and in the simulator.

`python -m tests.support.laid_out --layout two-slots --seeds 0:60` prints a row for each program,
and how far off the simulator is. Counts are reads/programs/erases, the sync after the program
included; first those of `exec`, where they are others than the kernel's of the replay. A program
makes folders and files, writes, syncs, moves, links and removes them, some of it in the folder that
the layer merges, some below; it is the same for a seed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashbed.plan.experiment import load_experiment
from flashbed.plan.narrowing import parse_settings, plan
from flashbed.plan.of_recording import written_experiment
from flashbed.running.programs import programs_of
from flashbed.targets import load_target
from flashbed.targets.base import RunOptions
from tests.support.exec_and_replay import FLASHBED, KINDS, Counts
from tests.support.layout_settings import settings_of

__all__ = ["LaidOut", "compared", "compared_on", "program_of"]

PYTHON = "/usr/bin/python3"
CALLS_MAX = 120


@dataclass(frozen=True)
class LaidOut:
    """One program on one layout."""

    seed: int
    executed: Counts
    kernel: Counts
    simulated: Counts

    def off(self, kind: int) -> float:
        """How far off the simulator is, of what the kernel did."""
        kernel, simulated = self.kernel[kind], self.simulated[kind]
        return abs(simulated - kernel) / max(kernel, 1)


class _Drawn:
    """A program as it is drawn, call by call."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.folders, self.number = [""], 0
        self.files: list[str] = []
        self.lines = ["import os"]

    def _new(self) -> str:
        self.number += 1
        return f"{self.random.choice(self.folders)}n{self.number}"

    def write(self) -> None:
        again = self.files and self.random.random() < 0.5
        name = self.random.choice(self.files) if again else self._new()
        if name not in self.files:
            self.files.append(name)
        size = self.random.choice([1, 80, 600, 4096, 5000, 30_000, 200_000])
        sync = self.random.choice(["", "os.fsync(f)", "os.fdatasync(f)", "os.fsync(f)"])
        flags = self.random.choice(["os.O_APPEND", "0", "os.O_TRUNC", "os.O_SYNC"])
        text = self.random.choice(
            [f"bytes({size})", f"(b'a line of text %d ' * {size})[:{size}]", f"drawn({size})"]
        )
        opened = f"os.open('{name}', os.O_WRONLY | os.O_CREAT | {flags})"
        self.lines.append(f"f = {opened}; os.write(f, {text}); {sync or 'pass'}; os.close(f)")

    def mkdir(self) -> None:
        name = self._new()
        self.folders.append(name + "/")
        self.lines.append(f"os.mkdir('{name}')")

    def rename(self) -> None:
        if self.files:
            old, new = self.random.choice(self.files), self._new()
            if self.random.random() < 0.4:
                new = self.random.choice(self.files)
            self.lines.append(f"os.rename('{old}', '{new}')")
            self.files = [name for name in self.files if name != old]
            if new not in self.files:
                self.files.append(new)

    def move_folder(self) -> None:
        leaves = [
            one for one in self.folders[1:]
            if not any(name != one and name.startswith(one) for name in self.folders + self.files)
        ]  # fmt: skip
        if leaves:
            old = self.random.choice(leaves)
            self.folders.remove(old)
            new = self._new() + "/"
            self.folders.append(new)
            self.lines.append(f"os.rename('{old[:-1]}', '{new[:-1]}')")

    def unlink(self) -> None:
        if self.files:
            name = self.files.pop(self.random.randrange(len(self.files)))
            self.lines.append(f"os.unlink('{name}')")

    def link(self) -> None:
        if self.files:
            name = self._new()
            self.lines.append(f"os.link('{self.random.choice(self.files)}', '{name}')")
            self.files.append(name)

    def read(self) -> None:
        if self.files:
            self.lines.append(f"open('{self.random.choice(self.files)}', 'rb').read()")

    def attribute(self) -> None:
        if self.files:
            self.lines.append(f"os.chmod('{self.random.choice(self.files)}', 0o600)")

    def truncate(self) -> None:
        if self.files:
            name = self.random.choice(self.files)
            self.lines.append(f"os.truncate('{name}', {self.random.choice([0, 10, 5000])})")

    def sync(self) -> None:
        self.lines.append("os.sync()")


def program_of(seed: int, files: Sequence[str] = (), folders: Sequence[str] = ()) -> str:
    """The program of a seed, in Python; these files and folders are there already."""
    drawn = _Drawn(seed)
    drawn.files.extend(files)
    drawn.folders.extend(f"{folder}/" for folder in folders)
    drawn.lines.append(f"import random; drawn = random.Random({seed}).randbytes")
    steps = [drawn.write] * 10 + [drawn.mkdir, drawn.rename, drawn.move_folder, drawn.unlink] * 2
    steps += [drawn.link, drawn.read, drawn.attribute, drawn.truncate, drawn.sync]
    for _ in range(drawn.random.randrange(10, CALLS_MAX)):
        drawn.random.choice(steps)()
    return "\n".join(drawn.lines)


def compared(
    settings: Sequence[str], program: str, recording: Path, *words: str
) -> tuple[Counts, Counts, Counts]:
    """What `exec` counts of a program, and of its recording the kernel and the simulator.

    `words` are more options of `exec`.
    """
    executed = _executed([*_set(settings), *words], program, recording)
    kernel, simulated = (_replayed(on, settings, recording) for on in ("uml", "sim-chip"))
    return executed, kernel, simulated


def _set(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def _executed(given: Sequence[str], script: str, recording: Path) -> Counts:
    words = ["exec", "--on", "uml", "--format", "json", *given]
    words += ["--record", str(recording), "--contents", "--", PYTHON, "-c", script]
    ran = subprocess.run(
        [FLASHBED, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False,
        cwd=recording.parent, timeout=300,
    )  # fmt: skip
    if not ran.stdout:
        raise RuntimeError(ran.stderr.decode("utf-8", "replace"))
    answer: dict[str, Any] = json.loads(ran.stdout)["exec"][0]
    reads, programs, erases = (answer["run"][kind] + answer["flush"][kind] for kind in KINDS)
    return reads, programs, erases


def _replayed(target: str, settings: Sequence[str], recording: Path) -> Counts:
    experiment = load_experiment(str(written_experiment(recording)))
    planned = plan(experiment, parse_settings(settings))
    cases = [item.case for item in planned if item.case.pattern == "recorded"]
    (program,) = programs_of(experiment, cases)
    (batch,) = load_target(target).run([program], RunOptions())
    assert not batch.failures, batch.failures
    (row,) = batch.cases.iter_rows(named=True)
    reads, programs, erases = (row[f"flash_{kind}"] + row[f"flush_{kind}"] for kind in KINDS)
    return reads, programs, erases


def compared_on(layout: str, seed: int) -> LaidOut:
    """Runs the program of a seed, and its recording on the kernel and in the simulator."""
    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / f"seed{seed}.rec"
        return LaidOut(seed, *compared(settings_of(layout), program_of(seed), recording))


def main(words: Sequence[str] | None = None) -> None:
    """Compares what the command line names."""
    parser = argparse.ArgumentParser(prog="laid_out", description=__doc__)
    parser.add_argument("--layout", required=True)
    parser.add_argument("--seeds", default="0:60", help="FROM:TO")
    asked = parser.parse_args(words)
    first, end = map(int, asked.seeds.split(":"))
    rows = []
    for seed in range(first, end):
        row = compared_on(asked.layout, seed)
        rows.append(row)
        same = "the same" if row.kernel == row.simulated else "/".join(map(str, row.simulated))
        executed = "" if row.executed == row.kernel else "/".join(map(str, row.executed))
        print(f"{seed:4} {executed:>16} {'/'.join(map(str, row.kernel)):>16}  {same}", flush=True)
    equal = sum(row.kernel == row.simulated for row in rows)
    print(f"{asked.layout}: {equal} of {len(rows)} the same")
    for at, kind in enumerate(KINDS):
        off = [row.off(at) for row in rows]
        print(f"  {kind}: mean {sum(off) / len(off):.2%}, worst {max(off):.2%}")


if __name__ == "__main__":
    main()
