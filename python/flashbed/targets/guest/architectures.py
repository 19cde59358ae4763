"""Which agent runs on a board, from the machine name that the board reports.

The names are those of `uname -m`, which the kernel composes. arch/arm/mm/proc-*.S gives `armv5te`,
followed by the endianness and further features. COMPAT_UTS_MACHINE of arch/arm64 gives `armv8l` to
32-bit programs on an aarch64 kernel; a 32-bit kernel says `armv7l` there. arch/mips gives `mips`
and `mips64` in either byte order. The agents are those of the Makefile, little-endian and static.

Left out: ARMv4 and ARMv7-M, big-endian machines, 32-bit x86. No agent is built for them.
"""

from __future__ import annotations

import re

__all__ = ["ARCHITECTURES", "architecture_of"]

ARCHITECTURES = ("armv5", "armv7", "aarch64", "mipsel", "riscv64", "x86_64")
"""What `make build` and `make agents` build agents for."""

_MACHINES = (
    (r"armv5t\w*l|armv6\w*l", "armv5"),
    (r"armv7l", "armv7"),
    (r"armv8l|aarch64", "aarch64"),
    (r"mips|mips64", "mipsel"),
    (r"riscv64", "riscv64"),
    (r"x86_64", "x86_64"),
)


def architecture_of(machine: str, little_endian: bool) -> str | None:
    """The agent for a machine with this `uname -m`; None if there is none.

    `little_endian` matters only for MIPS, whose `uname -m` does not tell; byte 5 of any program's
    ELF header is 1 there. A mips64 kernel runs the agent if it runs o32 programs.
    """
    if not little_endian:
        return None
    return next((name for word, name in _MACHINES if re.fullmatch(word, machine)), None)
