"""The folders that a program of `exec` sees in place of the host's."""

from __future__ import annotations

from pathlib import Path

__all__ = ["AT", "COVERS", "KERNELS", "USUAL_PATH", "at"]

COVERS = ("/tmp", "/var/tmp", "/run", "/dev/shm")
"""Folders that are empty for the program; they are in memory."""
KERNELS = ("/proc", "/sys", "/dev")
"""Folders that belong to the guest."""
AT = "/mnt"
"""The folder of the flash as the program sees it; `at` names another if the host lacks this."""
_AT_ELSEWHERE = "/tmp/flash"
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def at() -> str:
    """The folder of the flash as the program sees it."""
    path = Path(AT)
    return AT if path.is_dir() and not path.is_symlink() else _AT_ELSEWHERE
