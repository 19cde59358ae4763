"""Building what a guest needs, everything that is said in a log.

Kernels (uml/kernel.py) and modules of ours (module.py) are built this way; where they are kept, and
what of them, is theirs.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from flashbed.targets.base import Unavailable
from flashbed.targets.guest.children import dies_with_us

__all__ = ["build"]


def build(
    what: str, steps: Sequence[Sequence[str]], log: Path, *, folder: Path, timeout_s: float
) -> None:
    """Runs commands in a folder, what they say into the log.

    Raises `Unavailable` with the first error in it when one of them fails.
    """
    with log.open("w", encoding="utf-8") as said:
        for step in steps:
            if _status(step, folder, said, timeout_s):
                raise Unavailable(f"{what} does not build: {_why(log)}; log: {log}")


def _status(step: Sequence[str], folder: Path, said: IO[str], timeout_s: float) -> int:
    """How a command ends. What it has started ends with it, whatever ends us."""
    process = subprocess.Popen(
        # make hands SIGTERM on to what it has started.
        [*dies_with_us("TERM"), *step],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(timeout_s)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _why(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if re.search(r"error:|\*\*\* ", line)]
    return (errors or lines or ["it said nothing"])[0].strip()
