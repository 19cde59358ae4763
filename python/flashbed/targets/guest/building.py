"""Runs the commands that build what a guest needs, with their output in a log.

It builds kernels (uml/uml_kernel.py) and our modules (module.py), which decide what to keep where.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from flashbed.targets.guest.children import dies_with_us
from flashbed.targets.unavailable import Unavailable

__all__ = ["build"]


def build(
    what: str, steps: Sequence[Sequence[str]], log: Path, *, folder: Path, timeout_s: float
) -> None:
    """Runs commands in a folder, with their output in the log.

    If one fails, raises `Unavailable` with the first error in the log.
    """
    with log.open("w", encoding="utf-8") as said:
        for step in steps:
            if _status(step, folder, said, timeout_s):
                raise Unavailable(f"{what} does not build: {_why(log)}; log: {log}")


def _status(step: Sequence[str], folder: Path, said: IO[str], timeout_s: float) -> int:
    """A command's exit status. Its children end with it, even if this process is killed."""
    process = subprocess.Popen(
        # make passes SIGTERM on to its children.
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
