"""Addresses and memory of the host's process that runs user-mode Linux.

With fixed addresses two runs are alike. A memory file in RAM makes the kernel faster.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["at_fixed_addresses", "memory_folder"]


@cache
def at_fixed_addresses() -> tuple[str, ...]:
    """A prefix that fixes the addresses of the guest's memory, if the host allows it.

    The kernel uses the gap between its program and its heap as memory, and the host randomises that
    gap for each process.
    """
    prefix = ("setarch", platform.machine(), "-R", "--")
    try:
        tried = subprocess.run([*prefix, "true"], capture_output=True, check=False, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ()
    return prefix if tried.returncode == 0 else ()


def memory_folder(ram_mib: int) -> str:
    """The folder of the guest's memory file, which is deleted at once: in RAM if it fits."""
    shared = Path("/dev/shm")
    if shared.is_dir() and shutil.disk_usage(shared).free >= ram_mib << 20:
        return str(shared)
    return "{folder}"
