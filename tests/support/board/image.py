"""The initramfs of the board of the ssh tests: busybox, dropbear, modules, and a script as /init.

Two users with one key: `root`, and `guest` without root's rights. The flash is two chips:
flashbed_nand's with its partition `flashbed`, and nandsim's with `PARTITIONS`, which board_names
(names/) names as a boot loader's and a root file system's. Leaves out udev, login, a disk.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from flashbed.targets.guest.initramfs import pack

__all__ = [
    "FLASHBED",
    "GUEST_ADDRESS",
    "HOST_KEY_IS",
    "NANDSIM",
    "PARTITIONS",
    "READY",
    "Plan",
    "build",
]

FLASHBED = "flashbed"
"""The partition of flashbed_nand's chip: /dev/mtd0."""
PARTITIONS = ("u-boot", "rootfs", "data", "spare")
"""Of nandsim's chip: /dev/mtd1 and on. The last is what the others leave."""
NANDSIM = "id_bytes=0x2c,0xda,0x90,0x95 parts=8,128,128"
"""256 MiB in blocks of 128 KiB; sizes of all partitions but the last, in blocks."""
GUEST_ADDRESS = "10.0.2.15"
"""What QEMU's user network gives its first guest."""
READY = "board: the server listens"
HOST_KEY_IS = "board: host key"
"""What the console says before the server's public key."""
_HOST_KEY = "/etc/dropbear/key"
_FOLDERS = (
    *("bin", "sbin", "lib", "dev", "proc", "sys", "tmp", "mnt", "data", "modules"),
    *("etc", "etc/dropbear", "root", "root/.ssh", "home", "home/guest", "home/guest/.ssh"),
    *("run", "var", "var/log"),
)
_TEXTS = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nguest:x:1000:1000:guest:/home/guest:/bin/sh\n",
    "etc/group": "root:x:0:\nguest:x:1000:\n",
    "etc/shadow": "root:*:18262:0:99999:7:::\nguest:*:18262:0:99999:7:::\n",
    "etc/shells": "/bin/sh\n",
    "etc/inittab": "::ctrlaltdel:/sbin/reboot\n",
}


@dataclass(frozen=True)
class Plan:
    """What the board does when it boots, beside what it always does."""

    authorized_key: str
    tracefs: bool = True
    """Whether /sys/kernel/tracing is mounted."""
    tmp_kib: int = 65_536
    jffs2_on: str | None = None
    """The partition mounted as jffs2 on /data."""
    extra_init: Sequence[str] = ()
    """Lines of shell, run before the server starts."""


def build(
    programs: Mapping[str, Path],
    modules: Sequence[Path],
    parameters: Mapping[str, str],
    plan: Plan,
) -> bytes:
    """The initramfs, with modules in the order to load them and the parameters some have."""
    files = {path: (0o755, source.read_bytes()) for path, source in programs.items()}
    files |= {path: (0o644, text.encode("ascii")) for path, text in _TEXTS.items()}
    for home in ("root", "home/guest"):
        key = f"{plan.authorized_key}\n".encode("ascii")
        files[f"{home}/.ssh/authorized_keys"] = (0o600 if home == "root" else 0o644, key)
    files |= {f"modules/{path.name}": (0o644, path.read_bytes()) for path in modules}
    loads = [
        f"insmod /modules/{path.name} {parameters.get(path.stem, '')}".rstrip() for path in modules
    ]
    files["init"] = (0o755, _init(loads, plan).encode("ascii"))
    return pack(_FOLDERS, files, {"bin/sh": "busybox"})


def _init(loads: Sequence[str], plan: Plan) -> str:
    mounts = [
        "mount -t proc proc /proc",
        "mount -t sysfs sys /sys",
        "mount -t devtmpfs dev /dev",
        "mkdir -p /dev/pts",
        "mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts",
        f"mount -t tmpfs -o size={plan.tmp_kib}k,mode=1777 tmp /tmp",
        "mount -t debugfs debug /sys/kernel/debug",
    ]
    if plan.tracefs:
        mounts.append("mount -t tracefs trace /sys/kernel/tracing")
    flash = []
    if plan.jffs2_on:
        number = (FLASHBED, *PARTITIONS).index(plan.jffs2_on)
        flash = [f"mount -t jffs2 /dev/mtdblock{number} /data"]
    lines = [
        "#!/bin/busybox sh",
        "export PATH=/bin:/sbin",
        "/bin/busybox --install -s /bin",
        "umask 022",
        "chmod 700 /root /root/.ssh",
        "chown -R 1000:1000 /home/guest",
        "set -e",
        "trap 'echo \"board: init failed\"' EXIT",
        *mounts,
        *loads,
        *flash,
        "hostname board",
        "ip link set lo up",
        f"ip addr add {GUEST_ADDRESS}/24 dev eth0",
        "ip link set eth0 up",
        f"dropbearkey -t ed25519 -f {_HOST_KEY} | sed -n 's/^ssh-/{HOST_KEY_IS} &/p'",
        *plan.extra_init,
        f"dropbear -E -r {_HOST_KEY}",
        f"echo {shlex.quote(READY)}",
        "trap - EXIT",
        "exec /bin/init",
    ]
    return "\n".join(lines) + "\n"
