"""Calls of the program under limits, and what of their ends is a finding."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from tests.support import PROJECT as ROOT

PATIENCE_S = 60.0
"""Processor time of one call. One that needs more hangs; how long the others take says nothing."""
WAITS = 10
"""So often is waited for a call that needs none: it sleeps for good."""
LINE_CHARACTERS = 600
DEEP = 300
"""Folders one below the other."""
_FAILED = ("trace", "run", "powercut", "power", "lifetime", "reproduce", "report", "predict",
           "compare", "space")  # fmt: skip
"""Commands that end with status 1 although their input is right: they could not do it."""
_NEVER = ("internal error", "Traceback", "panicked", "came through", "PanicException")


class Kind(Enum):
    """What a path can lead to besides files, folders and links."""

    PIPE = "a pipe without a reader or a writer"
    SOCKET = "a socket"
    DEEP = "folders below folders"
    OTHER_NAME = "another name of the file ../victims/file"


Content = bytes | str | Kind | None


@dataclass(frozen=True)
class Call:
    """Files to create, and a command line. A content of None is a folder, text a link's target."""

    arguments: tuple[str, ...]
    files: Mapping[str, Content] = field(default_factory=dict)


class EndedError(Exception):
    """A call that did not end by itself."""


class Worker:
    """A process that calls are made in; one that hangs or dies is replaced."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.calls = 0
        self._environment = {
            **os.environ, "FLASHBED_ROOT": str(root), "POLARS_MAX_THREADS": "2",
            "RAYON_NUM_THREADS": "2", "COLUMNS": "200",
        }  # fmt: skip
        self._process: subprocess.Popen[str] | None = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.hostile.worker"], cwd=ROOT, env=self._environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                start_new_session=True,
            )  # fmt: skip
        return self._process

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None

    def finding(self, call: Call) -> str | None:
        """What is wrong with the end of a call, also in a new process; None if nothing is."""
        found = self._finding(call)
        if found is not None:
            self.close()
            found = self._finding(call)
        return found

    def _finding(self, call: Call) -> str | None:
        try:
            return wrong(call.arguments, *self.ends(call))
        except EndedError as why:
            return str(why)

    def _hangs(self, process: subprocess.Popen[str]) -> bool:
        """Waits for an answer, however busy the machine is."""
        before = _used_s(process.pid)
        with selectors.DefaultSelector() as ready:
            ready.register(process.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
            for _ in range(WAITS):
                if ready.select(PATIENCE_S):
                    return False
                if _used_s(process.pid) - before > PATIENCE_S:
                    return True
        return True

    def ends(self, call: Call) -> tuple[int, str]:
        """Its status, and what it said on standard error. Raises `EndedError`."""
        self.calls += 1
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        lay_out(work, call.files)
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {"folder": str(work), "arguments": list(call.arguments)}
        try:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            hangs = self._hangs(process)
            answer = "" if hangs else process.stdout.readline()
        except BrokenPipeError:
            hangs, answer = False, ""
        if not answer:
            self.close()
            raise EndedError("it hangs" if hangs else f"the process died ({process.returncode})")
        status, said = json.loads(answer)
        return status, said


def _used_s(process: int) -> float:
    """Processor time of the children of a process."""
    ticks = 0
    for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
        with suppress(OSError):
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def lay_out(folder: Path, files: Mapping[str, Content]) -> None:
    """Writes files, folders, links, and what is none of these."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        elif isinstance(content, str):
            path.symlink_to(content)
        elif isinstance(content, Kind):
            _lay_out_kind(folder, path, content)
        else:
            path.write_bytes(content)


def _lay_out_kind(folder: Path, path: Path, kind: Kind) -> None:
    if kind is Kind.PIPE:
        os.mkfifo(path)
    elif kind is Kind.SOCKET:
        # Its address has 107 characters at most, the path may have more.
        with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as bound:
            bound.bind(path.name)
    elif kind is Kind.OTHER_NAME:
        path.hardlink_to(folder.parent / "victims" / "file")
    else:
        path.joinpath(*["d"] * DEEP).mkdir(parents=True)


def wrong(arguments: Sequence[str], status: int, said: str) -> str | None:
    """What is not as docs/reference/environment.md has it; None if all is."""
    lines = said.splitlines()
    shown = f"status {status}: {said[:2000]}"
    if any(word in said for word in _NEVER):
        return shown
    if any(len(line) > LINE_CHARACTERS or not line.isprintable() for line in lines):
        return f"a line that is long or not printable: {shown}"
    if status == 0:
        return None
    if status == 2:
        # A line, or one for each thing that is wrong with a file; before it what is only odd.
        lines = [line for line in lines if not line.startswith("flashbed: WARNING: ")]
        named = {line.split(": ")[1] for line in lines if line.startswith("flashbed: ")}
        every = all(line.startswith("flashbed: ") for line in lines)
        return None if every and len(named) == 1 else f"not one line: {shown}"
    failed = status == 1 and arguments[0] in _FAILED
    return None if failed and lines else shown
