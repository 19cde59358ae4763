"""QEMU's command line for the emulated board.

The guest's time is a count of instructions (`-icount shift=N,sleep=off`: 2^N ns each; waits are
skipped). Its date is a constant, its random numbers are seeded, and the host's time never reaches
it. Job and stream reach the guest by ARM semihosting (agent/base/channel.c).
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from flashbed.stack.profiles import Board
from flashbed.targets.guest.nand import memory_mib
from flashbed.targets.unavailable import Unavailable

__all__ = ["KERNEL_ARGUMENTS", "ONE_FILE", "ONE_FILE_MODULES", "QEMU", "command", "find_qemu"]

QEMU = "qemu-system-arm"
ARCHITECTURE = "armv7"
"""Architecture of the agent."""
KERNEL_ARGUMENTS = (
    "console=ttyAMA0 quiet nokaslr random.trust_cpu=on panic=-1 oops=panic",
    # These take half of the boot: self-tests of ciphers, and the check of a certificate.
    "cryptomgr.notests initcall_blacklist=load_system_certificate_list,init_blk_tracer",
)

SEMIHOSTING = ("-semihosting-config", "enable=on,userspace=on,target=native")
"""Lets any program of the guest open the host's files, so it is for our own agent only."""
ONE_FILE = (
    *("-device", "virtio-serial-device,max_ports=2", "-chardev", "file,id=answer,path=answer"),
    *("-device", "virtserialport,chardev=answer,name=answer,nr=1"),
)
"""A port that writes to the host's file `answer`, for boards that run other programs."""
ONE_FILE_MODULES = ("virtio_mmio", "virtio_console")
"""Kernel parameters that the port needs."""


def find_qemu(program: str = QEMU) -> str:
    """QEMU's path. Raises `Unavailable`."""
    path = shutil.which(program)
    if path is None:
        raise Unavailable(
            f"{program} is not installed (on Debian: apt-get install qemu-system-arm)"
        )
    return path


def command(
    qemu: str,
    board: Board,
    kernel: Path,
    initramfs: Path,
    *,
    more_mib: int = 0,
    channel: Sequence[str] = SEMIHOSTING,
    parameters: Sequence[str] = (),
) -> list[str]:
    """QEMU's command line.

    `more_mib` is memory on top of the board's, `parameters` are the kernel's besides the usual.
    """
    emulator = board.emulator
    if emulator is None:
        raise Unavailable(f"{board.path}: the board has no [emulator]")
    return [
        qemu,
        *("-M", emulator.machine, "-cpu", emulator.cpu, "-m", str(memory_mib(board) + more_mib)),
        *("-icount", f"shift={emulator.icount_shift},sleep=off"),
        *("-rtc", "base=2020-01-01,clock=vm", "-seed", "7"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
        *("-serial", "file:console.log"),
        *channel,
        *("-kernel", str(kernel), "-initrd", str(initramfs), "-append"),
        " ".join((*KERNEL_ARGUMENTS, *parameters)),
    ]
