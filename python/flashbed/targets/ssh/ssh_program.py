"""Runs a board's own program on a fresh file system, in a partition that the user confirmed.

The agent guards the board as it does for cases (docs/reference/boards-over-ssh.md). The program
reads this process's standard input; its output is printed after it has ended.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from flashbed.base.errors import Interrupted
from flashbed.targets.exec.answer_stream import hand_on
from flashbed.targets.exec.outcome import ExecOutcome, NotRunError
from flashbed.targets.exec.request import ExecRequest
from flashbed.targets.guest.children import dies_with_us
from flashbed.targets.ssh.address import AllowedBoard
from flashbed.targets.ssh.board import OnBoard
from flashbed.targets.ssh.connection import explained
from flashbed.targets.ssh.facts import why_no_program
from flashbed.targets.unavailable import Unavailable

__all__ = ["execute"]

TIMED_OUT = 124
_SSH_FAILED = 255

Say = Callable[[str], None]


def execute(
    allowed: AllowedBoard, request: ExecRequest, say: Say, *, aside: bool = False
) -> tuple[ExecRequest, ExecOutcome]:
    """See `exec.executors.Execute`; the returned request names the board's kernel."""
    say(f"connecting to {allowed.address.destination}")
    board = OnBoard(allowed)
    try:
        why = why_no_program(request.board, request.fs, board.facts, allowed)
        if why is not None:
            raise Unavailable(f"{allowed.address.destination}: {why}")
        request = replace(request, kernel_release=board.facts.kernel, home=board.home.path)
        for number, put in enumerate(request.puts):
            if put.kind == "file":
                board.put_file(f"put/{number}", Path(put.source).read_bytes())
        board.put_file("request", request.text().encode("ascii"))
        return request, _run(request, board, aside)
    finally:
        board.leave()


def _run(request: ExecRequest, board: OnBoard, aside: bool) -> ExecOutcome:
    with subprocess.Popen(
        [*dies_with_us(), *board.program_command()], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as client:
        try:
            data, said = client.communicate(timeout=request.patience_s)
        except subprocess.TimeoutExpired:
            # The agent's pipe breaks: it ends the program and restores the board.
            client.kill()
            client.communicate()
            raise NotRunError(
                f"the program did not end within {request.patience_s:g} s (--host-timeout)",
                TIMED_OUT,
            ) from None
        except KeyboardInterrupt:
            client.kill()
            client.communicate()
            raise Interrupted("interrupted; the board is restored") from None
    words = said.decode("utf-8", "replace")
    if client.returncode == _SSH_FAILED:
        raise NotRunError(explained(board.address, words))
    return _outcome(request, data, words, aside)


def _outcome(request: ExecRequest, data: bytes, said: str, aside: bool) -> ExecOutcome:
    def ended() -> str:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return f"the agent stopped early: {lines[-1] if lines else 'it printed nothing'}"

    return hand_on(BytesIO(data), request, aside, ended)
