"""Processes that end when this one is killed outright: kernels that boot, compilers that build."""

from __future__ import annotations

import os
import shutil

__all__ = ["dies_with_us"]

_IF_OURS = '[ "$PPID" = "$0" ] && exec "$@"'
"""Whoever is killed before the signal is set has none sent: the parent is another one then."""


def dies_with_us(signal: str = "KILL") -> list[str]:
    """A prefix to a command, empty where setpriv of util-linux is missing.

    setpriv sets PR_SET_PDEATHSIG; Python cannot safely between fork and exec.
    """
    setpriv, shell = shutil.which("setpriv"), shutil.which("sh")
    if setpriv is None or shell is None:
        return []
    return [setpriv, "--pdeathsig", signal, "--", shell, "-c", _IF_OURS, str(os.getpid())]
