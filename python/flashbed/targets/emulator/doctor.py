"""What the emulated board needs, what of it is here, and how to get the rest, a line each."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec

from flashbed import places
from flashbed.targets.emulator.kernel import META_PACKAGE, cached_kernel
from flashbed.targets.emulator.machine import QEMU
from flashbed.targets.guest.debian import cache_folder

__all__ = ["Finding", "check"]


@dataclass(frozen=True)
class Finding:
    """One thing that is needed: whether it is here, and how to get it."""

    name: str
    found: bool
    detail: str
    how: str


def _program(name: str, how: str) -> Finding:
    path = shutil.which(name)
    return Finding(name, path is not None, path or "not found", how)


def check() -> list[Finding]:
    """Everything the target looks for, in the order in which it does."""
    agent = places.root() / "build" / "agent" / "flashbed-agent-armv7"
    kernel = cached_kernel(cache_folder())
    zig = find_spec("ziglang") is not None
    return [
        _program(QEMU, "apt-get install qemu-system-arm"),
        Finding("agent", agent.is_file(), places.shown(agent), "make build"),
        Finding("ziglang", zig, "installed" if zig else "not installed", "pip install ziglang"),
        _program("apt-get", "a Debian-like system"),
        _program("dpkg-deb", "apt-get install dpkg"),
        Finding(
            META_PACKAGE,
            kernel is not None,
            f"{kernel.package} {kernel.version}" if kernel else "not fetched yet",
            "the first run on the emulator fetches it by apt",
        ),
    ]
