"""Reads what a kernel's boot log says of a board besides its chip (`board_words`).

The lines are those of setup_processor() and setup_machine_fdt() of ARM, of MIPS' cpu_report(), of
mem_init_print_info(), add_mtd_partitions() and UBI's attach. A log may begin late: what it does not
say is None. Clocks stand in few logs; a board that is asked over ssh says its own (`KHZ`).

Invariant: numbers are bounded by their digits, so no line of a file costs much.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from flashbed.base.errors import InputError
from flashbed.stack.begun_board import NamedPartition

__all__ = ["KHZ", "LoggedBoard", "logged_board"]

KHZ = "flashbed: cpuinfo_max_freq"
"""What stands before the processor's clock in kHz in the answer of a board."""

_ARM = re.compile(r"CPU: \S.* \[([0-9a-f]{8})\] revision")
_ARM64 = re.compile(r"Booting Linux on physical CPU 0x0+ \[0x([0-9a-f]{8})\]")
_MIPS = re.compile(r"CPU0 revision is: [0-9a-f]{1,8} \(MIPS ([\w.-]{1,30})\)")
_PARTS = {
    0x926: "arm926", 0xB76: "arm1176", 0xC05: "cortex-a5", 0xC07: "cortex-a7", 0xC08: "cortex-a8",
    0xC09: "cortex-a9", 0xC0E: "cortex-a17", 0xC0F: "cortex-a15", 0xD03: "cortex-a53",
    0xD04: "cortex-a35", 0xD05: "cortex-a55", 0xD07: "cortex-a57", 0xD08: "cortex-a72",
    0xD09: "cortex-a73",
}  # fmt: skip
"""Part numbers of ARM's cores in their MIDR (arch/arm/include/asm/cputype.h, arm64 likewise)."""
_MHZ = re.compile(r"(?:CPU clock|Clocks: CPU): ?(\d{1,5})(?:\.\d+)? ?MHz", re.IGNORECASE)
_KHZ = re.compile(re.escape(KHZ) + r" (\d{1,8})\b")
_MEMORY = re.compile(r"Memory: \d{1,10}K/(\d{1,10})K available")
_RELEASE = re.compile(r"Linux version (\d[\w.+-]{0,60})")
_PARTITION = re.compile(r'0x([0-9a-f]{1,12})-0x([0-9a-f]{1,12}) : "([^"\n]{1,64})"')
_ATTACHED = re.compile(r'ubi\d+: attached mtd\d+ \(name "([^"\n]{1,64})"')


@dataclass(frozen=True)
class LoggedBoard:
    """What a log says. `attached` is the partition that UBI attaches."""

    core: str | None
    mhz: int | None
    ram_mib: int | None
    release: str | None
    partitions: tuple[NamedPartition, ...]
    attached: str | None

    def partition(self, name: str | None, chip_bytes: int) -> NamedPartition | None:
        """The one of this name, or the one that UBI attaches, or the only one; else None.

        Raises `InputError` for a name that the log does not have, or a partition beyond the chip.
        """
        wanted = name or self.attached
        found = [one for one in self.partitions if wanted in (None, one.name)]
        if name is not None and not found:
            known = ", ".join(one.name for one in self.partitions) or "none"
            raise InputError(f"--partition {name}: the log has {known}")
        if len(found) != 1:
            return None
        if found[0].first_byte + found[0].size_bytes > chip_bytes:
            raise InputError(f"the partition {found[0].name} of the log ends beyond the chip")
        return found[0]


def logged_board(text: str) -> LoggedBoard:
    """Reads a log, with or without times before its lines."""
    ram, release, attached = (
        found[1] if (found := pattern.search(text)) else None
        for pattern in (_MEMORY, _RELEASE, _ATTACHED)
    )
    return LoggedBoard(
        core=_core(text),
        mhz=_mhz(text),
        ram_mib=None if ram is None else -(-int(ram) // 1024),
        release=release,
        partitions=tuple(_partitions(_PARTITION.findall(text))),
        attached=attached,
    )


def _core(text: str) -> str | None:
    for pattern in (_ARM64, _ARM):
        if found := pattern.search(text):
            return _PARTS.get(int(found[1], 16) >> 4 & 0xFFF)
    found = _MIPS.search(text)
    return f"mips-{found[1].lower()}" if found else None


def _mhz(text: str) -> int | None:
    if found := _KHZ.search(text):
        return int(found[1]) // 1000 or None
    found = _MHZ.search(text)
    return int(found[1]) or None if found else None


def _partitions(rows: Sequence[tuple[str, str, str]]) -> list[NamedPartition]:
    """Each once: a chip's partitions may be printed again by a second parser."""
    found: dict[NamedPartition, None] = {}
    for first, end, name in rows:
        begin, size = int(first, 16), int(end, 16) - int(first, 16)
        if size > 0:
            found[NamedPartition(name, begin, size)] = None
    return list(found)
