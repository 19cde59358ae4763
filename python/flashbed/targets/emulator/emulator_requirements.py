"""What the emulated board needs, in the order in which it is used."""

from __future__ import annotations

from flashbed.base.paths import cache_folder
from flashbed.targets.emulator.debian_kernel import CROSS_COMPILER, cached_kernel
from flashbed.targets.emulator.machine import QEMU
from flashbed.targets.guest import yaffs2
from flashbed.targets.guest.requirements import Requirement, agents, program, ziglang

__all__ = ["check"]


def check() -> list[Requirement]:
    """Everything the target needs."""
    kernel = cached_kernel(cache_folder())
    return [
        program(QEMU, "apt-get install qemu-system-arm"),
        ziglang(),
        *agents("armv7"),
        program("apt-get", "a Debian-like system"),
        program("dpkg-deb", "apt-get install dpkg"),
        program(CROSS_COMPILER, "apt-get install gcc-arm-linux-gnueabihf"),
        Requirement(
            "linux-image-armmp",
            kernel is not None,
            f"{kernel.package} {kernel.version}" if kernel else "not fetched yet",
            "flashbed prepare --on emulator, or the first run, fetches it by apt",
        ),
        yaffs2.core_found(),
    ]
