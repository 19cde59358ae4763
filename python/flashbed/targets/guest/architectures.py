"""Which agent runs on a board, by what the board says it is.

The words are those of `uname -m`, which the kernel makes up: arch/arm/mm/proc-*.S (`armv5te`, and
then the endianness and what else the processor has), COMPAT_UTS_MACHINE of arch/arm64 (`armv8l`,
what an aarch64 kernel says to programs of 32 bits; a kernel of 32 bits says `armv7l` there),
arch/mips (`mips` and `mips64` in either byte order). The agents are those of the Makefile; all
are little-endian and static.

Leaves out ARMv4 and ARMv7-M, big-endian machines, x86 of 32 bits: no agent is built for them.
"""

from __future__ import annotations

import re

__all__ = ["ARCHITECTURES", "architecture_of"]

ARCHITECTURES = ("armv5", "armv7", "aarch64", "mipsel", "riscv64", "x86_64")
"""What an agent is built for, by `make build` and `make agents`."""

_MACHINES = (
    (r"armv5t\w*l|armv6\w*l", "armv5"),
    (r"armv7l", "armv7"),
    (r"armv8l|aarch64", "aarch64"),
    (r"mips|mips64", "mipsel"),
    (r"riscv64", "riscv64"),
    (r"x86_64", "x86_64"),
)


def architecture_of(machine: str, little_endian: bool) -> str | None:
    """The agent for a machine that `uname -m` calls so; None where there is none.

    `little_endian` matters for MIPS alone, whose `uname -m` does not tell: there byte 5 of any
    program's ELF header is 1. A mips64 kernel runs the agent if it runs o32 programs.
    """
    if not little_endian:
        return None
    return next((name for word, name in _MACHINES if re.fullmatch(word, machine)), None)
