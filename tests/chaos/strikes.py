"""Strikes on the program: what may hit it, when, and what has to be so afterwards.

A campaign is drawn from a seed. Each trial runs one command in a folder of its own, strikes it once
or twice, and then lets the same command complete: it has to leave the bytes that it leaves when
nothing strikes, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tests.chaos.program import Ended, bytes_of, left_behind
from tests.chaos.zygote import FULL, READ_ONLY

__all__ = ["KINDS", "Command", "Trial", "Zygote", "campaign", "zygote"]

MIB = 1 << 20
KINDS = ("kill", "terminate", "interrupt", "stop", "full", "read-only", "file-limit", "memory",
         "clock", "kill-all", "descriptors", "lack", "fork", "path")  # fmt: skip
"""`kill-all` takes guests with it; `full` and `read-only` last to the command's end.

`descriptors` and `lack` are what the environment does not have. `fork` is a child that ends in the
middle, `path` is something else at the place of the results.
"""
_LACKS = (
    {"HOME": "/nonexistent"}, {"TMPDIR": "/nonexistent"}, {"LC_ALL": "xx_YY.none", "LANG": ""},
    {"TERM": "", "COLUMNS": "0", "LINES": "0"}, {"XDG_CACHE_HOME": "/dev/null/x"},
)  # fmt: skip
_LED = ("/dev/null", "/dev/full", "nothing/at/all", ".", "victims", "loop")
"""What a link at the place of the results leads to; in turn with a pipe, a socket and a file."""
DONE = ("case_id", "target", "seq", "op", "file", "offset_bytes", "length_bytes", "result",
        "content_crc32", "bytes", "bytes_written")  # fmt: skip
_STUCK_S = 120.0
_SIGNALS = {
    "kill": signal.SIGKILL,
    "terminate": signal.SIGTERM,
    "interrupt": signal.SIGINT,
    "stop": signal.SIGSTOP,
}
_ERRORS = {"full": FULL, "read-only": READ_ONLY}


@dataclass(frozen=True)
class Command:
    """A command, what runs before it, and the results it leaves.

    `builds` are patterns of folders in the cache, which are not there when it begins. Where times
    are a real clock's, as on a board, `timed`, only what was done is compared.
    """

    name: str
    words: tuple[str, ...]
    before: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    timed: bool = False


@dataclass(frozen=True)
class Trial:
    """A command and what strikes it, each a kind and a moment from 0 to 1."""

    number: int
    command: Command
    strikes: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        said = ",".join(f"{kind}@{moment:.4f}" for kind, moment in self.strikes)
        return f"{self.number}-{self.command.name}-{said}"


def campaign(
    commands: Sequence[Command], count: int, seed: int, kinds: Sequence[str] = KINDS
) -> list[Trial]:
    """Trials drawn from a seed; every kind meets every command before one meets it again."""
    draw = random.Random(seed)
    trials: list[Trial] = []
    while len(trials) < count:
        pairs = [(command, kind) for kind in kinds for command in commands]
        draw.shuffle(pairs)
        for command, kind in pairs[: count - len(trials)]:
            strikes = [(kind, draw.random())]
            if draw.random() < 0.3:
                strikes.append((draw.choice(("kill", "terminate", "interrupt")), draw.random()))
            trials.append(Trial(len(trials), command, tuple(strikes)))
    return trials


@dataclass
class Zygote:
    """A process that forks the program, in a project."""

    process: subprocess.Popen[str]
    root: Path
    environment: Mapping[str, str]
    expected: dict[str, tuple[int, float, dict[str, str]]] = field(default_factory=dict)
    """Command -> events of files, seconds that it takes, and bytes that it leaves."""

    @property
    def cache(self) -> Path:
        """Where what is fetched and built is kept."""
        return Path(self.environment["FLASHBED_CACHE"])

    def run(
        self, words: Sequence[str], cwd: Path, strike: Mapping[str, Any] | None = None
    ) -> Ended:
        """Runs the program to its end, whatever strikes it."""
        files = {name: str(self.root / f"{name}.txt") for name in ("out", "err")}
        asked = {
            "words": list(words),
            "cwd": str(cwd),
            "folders": [str(cwd), str(self.root / "build"), str(self.cache)],
            "environment": dict(self.environment),
            **files,
            **(strike or {}),
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        if asked.get("signal") == signal.SIGSTOP:
            _let_go_on(pid)
        if "after_s" in asked:
            time.sleep(asked["after_s"])
            _kill_all(pid)
        with _ended_when_stuck(pid) if "memory_bytes" in asked else nullcontext():
            status = int(self.process.stdout.readline())
        out, err = (
            Path(path).read_text(encoding="utf-8", errors="replace") for path in files.values()
        )
        return Ended(status, out, err)

    def alone(self, command: Command, folder: Path) -> None:
        """Runs a command with nothing that strikes, and learns what it does."""
        cwd = folder / f"alone-{command.name}"
        cwd.mkdir()
        self._forget(command)
        if command.before:
            assert self.run(command.before, cwd).status == 0
        began = time.monotonic()
        count = folder / f"{command.name}.count"
        ended = self.run(command.words, cwd, {"count": str(count)})
        assert ended.status == 0, ended.err
        took_s = time.monotonic() - began
        events, left = int(count.read_text()), self._left(command, cwd)
        self.expected[command.name] = events, took_s, left

    def survive(self, trial: Trial, folder: Path) -> None:
        """Strikes a command, and has it complete."""
        command = trial.command
        if command.name not in self.expected:
            self.alone(command, folder)
        events, took_s, expected = self.expected[command.name]
        cwd = folder / f"trial-{trial.number}"
        cwd.mkdir()
        self._forget(command)
        if command.before:
            assert self.run(command.before, cwd).status == 0
        for kind, moment in trial.strikes:
            with _planted(command, cwd, moment) if kind == "path" else nullcontext():
                ended = self.run(command.words, cwd, _strike(kind, moment, events, took_s))
            _was_told(kind, ended)
            for kept in self._boots():
                # A person is told to look into it. Out of memory, an allocator may end the
                # process that would say so.
                if kept.name in ended.err or kind == "memory":
                    shutil.rmtree(kept)
            running = _none_left([cwd, self.root, *([self.cache] if command.builds else [])])
            assert not running, f"{kind}: {running}"
        ended = self.run(command.words, cwd)
        assert ended.status == 0, ended.err
        left = self._left(command, cwd)
        other = [name for name in left | expected if left.get(name) != expected.get(name)]
        assert not other, other
        assert not self._boots(), "folders of a run that is over"
        assert list((self.root / "build").glob("**/.lock")) == []

    def _boots(self) -> list[Path]:
        """Folders of boots."""
        return [
            folder
            for place in ("uml", "emulator", "board")
            for folder in (self.root / "build" / place).glob("run-*/")
        ]

    def _forget(self, command: Command) -> None:
        """Removes from the cache what a command is to build."""
        for pattern in command.builds:
            for path in self.cache.glob(pattern):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    def _left(self, command: Command, cwd: Path) -> dict[str, str]:
        """Bytes of what a command has left, and the names of all that is in the cache with it."""
        left = bytes_of(cwd)
        if command.timed:
            left |= {name: _done(cwd / name) for name in left if name.endswith(".parquet")}
        if command.builds:
            left |= {f"cache/{path.name}": "" for path in self.cache.iterdir()}
            # Not the bytes: compilers put the folder that they work in into a module's build ID.
            for pattern in command.builds:
                for path in self.cache.glob(f"{pattern}/*"):
                    left[f"{path.parent.name}/{path.name}"] = ""
        return left


def _done(path: Path) -> str:
    """What a table says that does not depend on how long anything took."""
    frame = pl.read_parquet(path)
    return frame.select(name for name in frame.columns if name in DONE).write_csv()


def _strike(kind: str, moment: float, events: int, took_s: float) -> dict[str, Any]:
    at = 1 + int(moment * events)
    if kind in _SIGNALS:
        return {"at": at, "signal": int(_SIGNALS[kind])}
    if kind in _ERRORS:
        return {"at": at, "error": _ERRORS[kind]}
    if kind == "file-limit":
        return {"file_bytes": 1 + int(10 ** (1 + 4.5 * moment))}
    if kind == "memory":
        return {"memory_bytes": int((100 + 1500 * moment) * MIB)}
    if kind == "descriptors":
        return {"descriptors": 32 + int(60 * moment)}
    if kind == "lack":
        return {"lacks": _LACKS[int(moment * len(_LACKS))]}
    if kind == "fork":
        return {"at": at, "fork": True}
    if kind == "path":
        return {}
    if kind == "clock":
        return {"clock_seed": 1 + int(1e6 * moment)}
    return {"after_s": took_s * moment}


def _was_told(kind: str, ended: Ended) -> None:
    """How the program has to end. Out of memory, the allocator of a library may end it."""
    about = f"{kind}: status {ended.status}, {ended.err}"
    if kind in ("stop", "clock", "lack", "fork"):
        assert ended.status == 0, about
    elif kind == "interrupt":
        assert ended.status in (0, 130), about
        assert ended.said_so, about
    elif kind == "path":
        assert ended.status in (1, 2), about
        assert ended.said_so, about
    elif kind in ("full", "read-only", "file-limit", "descriptors"):
        assert ended.status in (0, 1, 2), about
        assert ended.said_so, about


@contextmanager
def _planted(command: Command, cwd: Path, moment: float) -> Iterator[None]:
    """What is no folder stands where the results go, and is there as before at the end."""
    words = command.words
    place = cwd / (words[words.index("--out") + 1] if "--out" in words else "r")
    kept, victims = cwd / "kept", cwd / "victims"
    victims.mkdir()
    (victims / "file").write_bytes(b"precious")
    if place.exists():
        place.rename(kept)
    _plant(place, int(moment * (len(_LED) + 3)))
    before = place.lstat()
    yield
    after = place.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode), place
    assert bytes_of(victims) == {"file": hashlib.sha256(b"precious").hexdigest()}
    place.unlink()
    shutil.rmtree(victims)
    if kept.exists():
        kept.rename(place)


def _plant(place: Path, number: int) -> None:
    if number < len(_LED):
        place.symlink_to(place.name if _LED[number] == "loop" else _LED[number])
    elif number == len(_LED):
        os.mkfifo(place)
    elif number == len(_LED) + 1:
        with chdir(place.parent), socket.socket(socket.AF_UNIX) as bound:
            bound.bind(place.name)
    else:
        place.write_bytes(b"not a folder")


def _let_go_on(pid: int) -> None:
    """Waits until the process has stopped, and continues it; it may end before."""
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2][0]
        except OSError:
            return
        if state == "Z":
            return
        if state == "T":
            os.kill(pid, signal.SIGCONT)
            return
        time.sleep(0.01)


def _kill_all(pid: int) -> None:
    """Ends a process and what it started, as the kernel does when memory is out."""
    below = [pid]
    for process in below:
        children = Path(f"/proc/{process}/task/{process}/children")
        if children.exists():
            below += map(int, children.read_text(encoding="ascii").split())
    for process in reversed(below):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


@contextmanager
def _ended_when_stuck(pid: int) -> Iterator[None]:
    """Kills a process that hangs: polars waits for a thread that it had no memory to start."""
    timer = threading.Timer(_STUCK_S, _kill_all, [pid])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _none_left(folders: Sequence[Path]) -> list[str]:
    """Processes that are left, after the kernel has had the time to end those it was to."""
    for _ in range(100):
        # ssh's shared connection ends by itself after a minute (ControlPersist).
        found = [process for process in left_behind(folders) if "[mux]" not in process]
        if not found:
            return []
        time.sleep(0.05)
    return found


@contextmanager
def zygote(root: Path, environment: Mapping[str, str]) -> Iterator[Zygote]:
    """A `Zygote`, ended at the end."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("zygote.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root.parent,
    ) as process:
        yield Zygote(process, root, environment)
