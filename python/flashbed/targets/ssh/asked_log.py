"""Asks a board for its kernel's log and its processor's clock, as a file of a boot log has them."""

from __future__ import annotations

from flashbed.base.errors import InputError, RunError
from flashbed.stack.imported.boot_log import KHZ
from flashbed.targets.ssh.address import is_address, parse_address
from flashbed.targets.ssh.connection import Connection, RefusedCommand
from flashbed.targets.unavailable import Unavailable

__all__ = ["boot_log_of"]

_CLOCK = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"
_ASKED = f'dmesg && if [ -r {_CLOCK} ]; then echo "{KHZ} $(cat {_CLOCK})"; fi'


def boot_log_of(on: str) -> str:
    """The log. Raises `InputError` for no address, `RunError` if the board does not answer."""
    if not is_address(on):
        raise InputError(f"--on {on}: not a board, ssh://USER@HOST")
    try:
        said = Connection(parse_address(on)).run(_ASKED)
    except Unavailable as why:
        raise RunError(str(why)) from None
    except RefusedCommand as why:
        raise RunError(f"{on}: dmesg: {why.said}; save the log of a boot for --log") from None
    return said.decode("utf-8", "replace")
