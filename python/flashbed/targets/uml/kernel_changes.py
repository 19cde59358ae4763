"""How kernels differ for a build: what is replaced in their sources, and options' other names.

- arch/x86/um/os-Linux/registers.c offers PTRACE_SETREGSET a buffer of fixed size, which hosts with
  AVX-512 or AMX refuse ("ptrace set fp regs failed"). Without have_xstate_support it uses
  PTRACE_SETFPREGS, which all hosts accept.
- arch/um/os-Linux/util.c gives random numbers of the host. Here they are always the same.
- arch/um/kernel/skas/syscall.c makes a failed system call take a microsecond and then schedules
  the task that waited longest, which no board does. Before 6.0 each system call schedules.
- arch/um/kernel/time.c counts in units of 256 ns while waits and timers are exact, so results would
  depend on where in a unit a case begins. Here the clock counts nanoseconds.
- arch/um/Kconfig has no preemption and 100 ticks a second. Debian's kernels have both otherwise.
- drivers/spi/Kconfig asks for memory-mapped I/O, which user-mode Linux lacks. The core of SPI does
  without, and so does the controller of kernel/flashbed_nand.

Kernels of other years lack some of what is replaced: `_MENDED` is how each is recognised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CHANGES",
    "CHANGES_BEFORE_6_1",
    "Change",
    "NotApplied",
    "apply_changes",
    "changes_for",
    "with_former_names",
]

Change = tuple[str, str, str]
"""A file of the kernel, what is replaced in it, and by what."""
CHANGES: tuple[Change, ...] = (
    (
        "arch/x86/um/os-Linux/registers.c",
        "have_xstate_support = 1;",
        "have_xstate_support = 0;",
    ),
    (
        "arch/um/os-Linux/util.c",
        "return getrandom(buf, len, flags);",
        "memset(buf, 0x5a, len); return len;",
    ),
    ("arch/um/kernel/skas/syscall.c", "if (IS_ERR_VALUE(ret) &&", "if (false &&"),
    ("arch/um/kernel/time.c", " / TIMER_MULTIPLIER;", ";"),
    ("arch/um/kernel/time.c", "NSEC_PER_SEC/TIMER_MULTIPLIER", "NSEC_PER_SEC"),
    ("arch/um/Kconfig", "\tselect ARCH_NO_PREEMPT\n", ""),
    (
        "drivers/spi/Kconfig",
        '\tbool "SPI support"\n\tdepends on HAS_IOMEM\n',
        '\tbool "SPI support"\n',
    ),
    ("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n", "config HZ\n\tint\n\tdefault 250\n"),
)
"""What is replaced in the kernel that experiments run on."""
CHANGES_BEFORE_6_1: tuple[Change, ...] = (
    (
        "arch/um/kernel/skas/syscall.c",
        "\tif (time_travel_mode == TT_MODE_INFCPU ||\n"
        "\t    time_travel_mode == TT_MODE_EXTERNAL)\n\t\tschedule();\n",
        "",
    ),
    (
        "arch/um/kernel/skas/syscall.c",
        "\tif (time_travel_mode == TT_MODE_INFCPU)\n\t\tschedule();\n",
        "",
    ),
)
"""What is replaced besides in kernels that schedule at each system call."""
_BEFORE_6_1 = ("5.10",)
"""Debian's series that need these."""
_RENAMED = {"CONFIG_SYSCTL=y": "CONFIG_PROC_SYSCTL=y"}
"""A later name of an option -> the name in kernel/uml/config; 7.0 made one of two."""
_MENDED = {
    "have_xstate_support = 1;": "have_xstate_support",
    "return getrandom(buf, len, flags);": "getrandom(",
    "if (IS_ERR_VALUE(ret) &&": "IS_ERR_VALUE",
    " / TIMER_MULTIPLIER;": "TIMER_MULTIPLIER",
    "NSEC_PER_SEC/TIMER_MULTIPLIER": "TIMER_MULTIPLIER",
    "\tselect ARCH_NO_PREEMPT\n": "ARCH_NO_PREEMPT",
    **{before: before for _, before, _ in CHANGES_BEFORE_6_1},
}
"""A change's text -> what a file has that needs it. A file without that is right as it is."""
_SHOWN = 60


@dataclass(frozen=True)
class NotApplied:
    """A change that a tree has no place for."""

    file: str
    what: str
    missing: bool = False
    """Whether the tree lacks the whole file."""

    def __str__(self) -> str:
        return f"{self.file}: {'no such file' if self.missing else f'no {self.what}'}"


def changes_for(series: str) -> tuple[Change, ...]:
    """What only this series of Debian's needs, besides what all need."""
    return CHANGES_BEFORE_6_1 if series in _BEFORE_6_1 else ()


def with_former_names(options: set[str]) -> set[str]:
    """Lines of a kernel's configuration, and those as kernel/uml/config names them."""
    return options | {_RENAMED[line] for line in options if line in _RENAMED}


def apply_changes(tree: Path, changes: Sequence[Change]) -> list[NotApplied]:
    """Replaces the text of each change in a tree; returns the changes that it needs but lacks."""
    lacking = []
    for name, before, after in changes:
        source = tree / name
        what = " ".join(before.split())[:_SHOWN]
        if not source.is_file():
            lacking.append(NotApplied(name, what, missing=True))
            continue
        text = source.read_text(encoding="utf-8")
        if before in text:
            source.write_text(text.replace(before, after), encoding="utf-8")
        elif _MENDED.get(before, "") in text:
            lacking.append(NotApplied(name, what))
    return lacking
