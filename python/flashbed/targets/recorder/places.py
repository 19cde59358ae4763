"""Where a program can be recorded: on this machine, or on a board over ssh.

On this machine the agent's stream arrives through a pipe of its own. Over ssh it is standard
output; the program's output goes to standard error there.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from flashbed.targets.guest.agent import agent_file
from flashbed.targets.ssh.address import Address, AllowedBoard
from flashbed.targets.ssh.board import OnBoard
from flashbed.targets.ssh.connection import RefusedCommand

__all__ = ["HerePlace", "Place", "RecordedBoard", "Recorder"]

_PIPE_BYTES = 1 << 20
_STEPS = 1_000_000
_STEPS_OPS = "flashbed-ops 1\n" + f"compute {_STEPS}\n" * 9


class Recorder:
    """A running recorder: its process, and the descriptor of its stream."""

    def __init__(self, process: subprocess.Popen[bytes], stream: int) -> None:
        self.process = process
        self.stream = stream


class Place(Protocol):
    """A machine on which the agent records."""

    name: str
    machine: str

    def step_ps(self) -> int | None:
        """Time of a step of `compute` there, in picoseconds."""
        ...

    def start(self, arguments: Sequence[str]) -> Recorder:
        """Starts `flashbed-agent record`. Raises `Unavailable`."""
        ...

    def leave(self) -> None:
        """Removes what was copied there."""
        ...


class HerePlace:
    """The machine that flashbed runs on."""

    name = "host"

    def __init__(self, program: Path | None = None) -> None:
        """Raises `Unavailable` if there is no agent."""
        self.program = program or agent_file("host")
        about = platform.uname()
        self.machine = f"{about.system} {about.release} {about.machine}"

    def step_ps(self) -> int | None:
        """See `Place.step_ps`."""
        with tempfile.TemporaryDirectory(prefix="flashbed-") as folder:
            operations = Path(folder) / "steps.ops"
            operations.write_text(_STEPS_OPS, encoding="ascii")
            command = [str(self.program), "run", str(operations), "--dir", folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        return _step_ps(done.stdout)

    def start(self, arguments: Sequence[str]) -> Recorder:
        """See `Place.start`."""
        stream, end = os.pipe()
        with suppress(OSError):
            fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        command = [str(self.program), "record", "--fd", str(end), *arguments]
        try:
            return Recorder(subprocess.Popen(command, pass_fds=(end,)), stream)
        finally:
            os.close(end)

    def leave(self) -> None:
        """Does nothing: nothing was copied."""


class RecordedBoard:
    """A board over ssh. The agent is removed when the program ends or the connection drops."""

    name = "board"

    def __init__(self, address: Address) -> None:
        """Connects. Raises `Unavailable`."""
        self._board = OnBoard(AllowedBoard(address))
        self._folder = address.directory
        facts = self._board.facts.facts
        self.machine = f"Linux {facts['kernel']} {facts['machine']}"

    def step_ps(self) -> int | None:
        """See `Place.step_ps`."""
        home = self._board.home
        words = f"cat >{home.path}/steps.ops && {home.agent} run {home.path}/steps.ops --dir "
        with suppress(RefusedCommand):
            said = self._board.connection.run(words + home.path, _STEPS_OPS.encode())
            return _step_ps(said)
        return None

    def start(self, arguments: Sequence[str]) -> Recorder:
        """See `Place.start`. The program begins in the address's directory, if it has one."""
        home = self._board.home
        words = shlex.join(["record", *arguments])
        enter = f"cd {shlex.quote(self._folder)} && " if self._folder else ""
        remote = f"{{ {enter}{home.agent} {words}; }}; status=$?; rm -rf {home.path}; exit $status"
        given: IO[bytes] | int = subprocess.DEVNULL if sys.stdin.isatty() else sys.stdin.buffer
        process = subprocess.Popen(
            self._board.connection.own(remote), stdin=given, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        return Recorder(process, process.stdout.fileno())

    def leave(self) -> None:
        """See `Place.leave`."""
        self._board.leave()


def _step_ps(rows: bytes) -> int | None:
    """The fastest of several rounds: the others were interrupted."""
    took = [int(row.split()[4]) for row in rows.splitlines() if row.startswith(b"r ")]
    return max(1, min(took) * 1000 // _STEPS) if took and min(took) > 0 else None
