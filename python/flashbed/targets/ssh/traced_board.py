"""A board as a place to trace a command at (`flashbed.tracing.record.Place`)."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

from flashbed.targets.ssh.address import Address, AllowedBoard
from flashbed.targets.ssh.board import OnBoard

__all__ = ["BoardPlace"]


class BoardPlace:
    """The agent's tracers on a board; what they say comes as it happens, and the agent goes."""

    name = "board"

    def __init__(self, address: Address) -> None:
        self.address = address

    def agent(self, arguments: Sequence[str]) -> tuple[str, int]:
        """See `Place.agent`. The agent goes even if the connection drops: the shell outlives it."""
        board = OnBoard(AllowedBoard(self.address))
        home = board.home
        words = " ".join(shlex.quote(word) for word in arguments)
        remote = f"{home.agent} {words}; status=$?; rm -rf {home.path}; exit $status"
        try:
            with subprocess.Popen(
                board.connection.own(remote), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
            ) as child:
                try:
                    output = child.communicate()[0]
                except KeyboardInterrupt:
                    # ssh was told as well and ends; the agent then finds nobody reading.
                    output = child.communicate()[0]
        finally:
            board.connection.close()
        return output.decode("utf-8", "replace"), child.returncode
