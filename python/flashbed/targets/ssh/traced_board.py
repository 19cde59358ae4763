"""A board as a place where a command is traced (`flashbed.bench.tracing.record.Place`)."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence

from flashbed.targets.ssh.address import Address, AllowedBoard
from flashbed.targets.ssh.board import OnBoard

__all__ = ["TracedBoard"]


class TracedBoard:
    """The agent's tracers on a board; their rows arrive as they happen."""

    name = "board"

    def __init__(self, address: Address) -> None:
        self.address = address

    def agent(self, arguments: Sequence[str]) -> tuple[str, int]:
        """See `Place.agent`. The shell removes the agent even if the connection drops."""
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
                    # ssh got the signal too and ends; the agent's pipe then breaks.
                    output = child.communicate()[0]
        finally:
            board.connection.close()
        return output.decode("utf-8", "replace"), child.returncode
