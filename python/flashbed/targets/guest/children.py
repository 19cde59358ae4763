"""Processes that end when this one is killed outright: kernels that boot, compilers that build."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["GroupKeeper", "dies_with_us"]

_IF_OURS = '[ "$PPID" = "$0" ] && exec "$@"'
"""Whoever is killed before the signal is set has none sent: the parent is another one then."""
_WHEN_WE_END = 'read -r never; kill -s KILL -- "-$0"; [ -z "$1" ] || rm -rf -- "$1"'


def dies_with_us(signal: str = "KILL") -> list[str]:
    """A prefix to a command, empty where setpriv of util-linux is missing.

    setpriv sets PR_SET_PDEATHSIG; Python cannot safely between fork and exec.
    """
    setpriv, shell = shutil.which("setpriv"), shutil.which("sh")
    if setpriv is None or shell is None:
        return []
    return [setpriv, "--pdeathsig", signal, "--", shell, "-c", _IF_OURS, str(os.getpid())]


class GroupKeeper:
    """Kills a process group when this process has ended, however it has; removes a folder then.

    User-mode Linux runs programs in processes that it traces. When it alone is killed they go on,
    untraced: their system calls are the host's then.
    """

    def __init__(self, group: int, folder: Path | None = None) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _WHEN_WE_END, str(group), str(folder or "")],
            stdin=subprocess.PIPE,  # its end is read when the last holder of this one is gone
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Ends it; the group lives on."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
