"""Building what a guest needs, everything that is said in a log.

Kernels (uml/kernel.py) and modules of ours (module.py) are built this way; where they are kept, and
what of them, is theirs.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from flashbed.targets.base import Unavailable

__all__ = ["build"]


def build(
    what: str, steps: Sequence[Sequence[str]], log: Path, *, folder: Path, timeout_s: float
) -> None:
    """Runs commands in a folder, what they say into the log.

    Raises `Unavailable` with the first error in it when one of them fails.
    """
    with log.open("w", encoding="utf-8") as said:
        for step in steps:
            done = subprocess.run(
                step,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            )
            if done.returncode:
                raise Unavailable(f"{what} does not build: {_why(log)}; log: {log}")


def _why(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    errors = [line for line in lines if re.search(r"error:|\*\*\* ", line)]
    return (errors or lines or ["it said nothing"])[0].strip()
