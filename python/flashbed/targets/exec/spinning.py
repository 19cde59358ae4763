"""Ends a process of the guest that spins: it would spin for ever, because code takes no time.

The kernel of user-mode Linux is a process of the host, and each process of the guest is a child of
it that stops for each system call, page fault and signal. While the kernel's process does not wake,
the running child has done none of these. A child that gets SIGILL from the host stops, and its
kernel relays the signal to the process: that is how the processor refuses an instruction. The
program then ends as by any signal, and its counts are whole.

Leaves out terminals (`--shell`), where the user ends the session.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["LOOK_EVERY_S", "SpinWatch"]

LOOK_EVERY_S = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(kw_only=True)
class SpinWatch:
    """Looks at the guest whose kernel is a process; `bound_s` is in seconds of the processor."""

    kernel: int
    bound_s: float
    ended: int = 0
    """How many processes were ended."""
    _wakes: str = ""
    _used: dict[int, int] = field(default_factory=dict)
    """Child -> ticks of the processor when the kernel was last seen to have woken."""

    def look(self) -> bool:
        """Ends the child that has used the processor for the bound; whether one has."""
        try:
            wakes, used = _wakes_of(self.kernel), _used_by_children(self.kernel)
        except OSError:  # it has ended, or this host does not tell
            return False
        if wakes != self._wakes:
            self._wakes, self._used = wakes, used
            return False
        for child, ticks in used.items():
            if ticks - self._used.get(child, ticks) >= self.bound_s * _TICKS:
                os.kill(child, signal.SIGILL)
                self.ended += 1
                return True
        return False


def _wakes_of(process: int) -> str:
    """Lines that change whenever the process has run."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace")
    return status[status.index("voluntary_ctxt_switches") :]


def _used_by_children(process: int) -> dict[int, int]:
    found = {}
    for child in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split():
        with suppress(FileNotFoundError, ProcessLookupError):
            stat = Path(f"/proc/{child}/stat").read_text("ascii", errors="replace")
            times = stat.rpartition(")")[2].split()[11:13]
            found[int(child)] = sum(map(int, times))
    return found
