"""Child processes that end even if this process is killed: kernels that boot, compilers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

__all__ = ["GroupKeeper", "dies_with_us"]

_IF_OURS = '[ "$PPID" = "$0" ] && exec "$@"'
"""If this process dies before setpriv has run, no signal comes: the parent differs then."""
_WHEN_WE_END = 'read -r never; kill -s KILL -- "-$0"; [ -z "$1" ] || rm -rf -- "$1"'


def dies_with_us(signal: str = "KILL") -> list[str]:
    """A command's prefix that kills it with this process; empty without setpriv (util-linux).

    setpriv sets PR_SET_PDEATHSIG, which Python cannot safely do between fork and exec.
    """
    setpriv, shell = shutil.which("setpriv"), shutil.which("sh")
    if setpriv is None or shell is None:
        return []
    return [setpriv, "--pdeathsig", signal, "--", shell, "-c", _IF_OURS, str(os.getpid())]


class GroupKeeper:
    """Kills a process group when this process ends in any way; then removes a folder.

    User-mode Linux runs programs in processes that it traces. If it alone is killed they continue
    untraced, and their system calls reach the host.
    """

    def __init__(self, group: int, folder: Path | None = None) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _WHEN_WE_END, str(group), str(folder or "")],
            stdin=subprocess.PIPE,  # reads its end when this process, its only writer, is gone
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """Stops watching; the group lives on."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
