"""Where a program can be recorded, and this machine, the first of such places.

The agent's stream arrives through a pipe of its own. ssh/recorded_board.py is another place.
"""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from flashbed.targets.guest.agent import agent_file

__all__ = ["STEPS_OPS", "HerePlace", "Place", "Recorder", "step_ps_of"]

_PIPE_BYTES = 1 << 20
_STEPS = 1_000_000
STEPS_OPS = "flashbed-ops 1\n" + f"compute {_STEPS}\n" * 9
"""Operations whose times `step_ps_of` reads."""


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
            operations.write_text(STEPS_OPS, encoding="ascii")
            command = [str(self.program), "run", str(operations), "--dir", folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        return step_ps_of(done.stdout)

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


def step_ps_of(rows: bytes) -> int | None:
    """The fastest of several rounds: the others were interrupted."""
    took = [int(row.split()[4]) for row in rows.splitlines() if row.startswith(b"r ")]
    return max(1, min(took) * 1000 // _STEPS) if took and min(took) > 0 else None
