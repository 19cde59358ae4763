"""A board over ssh on which a program is recorded.

The agent's stream is standard output; the program's output goes to standard error.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from flashbed.targets.recorder.places import STEPS_OPS, Recorder, step_ps_of
from flashbed.targets.ssh.address import Address, AllowedBoard
from flashbed.targets.ssh.board import OnBoard
from flashbed.targets.ssh.connection import RefusedCommand

__all__ = ["RecordedBoard"]


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
            said = self._board.connection.run(words + home.path, STEPS_OPS.encode())
            return step_ps_of(said)
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
