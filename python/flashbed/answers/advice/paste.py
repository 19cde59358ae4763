"""A choice as what is written into a product: mount lines, sysctl, pragmas.

Mount options are those of the kernel's file systems; the device and the folder are the product's,
and stand as words to replace: PARTITION, /data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flashbed.answers.advice.settings import Combination

__all__ = ["pasted"]

_DEVICES = {"jffs2": "mtd:PARTITION", "yaffs2": "/dev/mtdblockN", "ubifs": "ubi0:VOLUME"}
_BACKING = {"jffs2": "mtd-0", "yaffs2": "mtd-0", "ubifs": "ubifs_0_0"}
_PRAGMAS = {
    "database.page_bytes": "page_size", "database.journal": "journal_mode",
    "database.synchronous": "synchronous", "database.cache_pages": "cache_size",
}  # fmt: skip
"""In the order in which they take effect: in WAL mode the size of a page cannot change."""


def pasted(choice: Combination) -> list[tuple[str, str]]:
    """Where to write it, and the line."""
    values = choice.values
    return [*_mount(choice), *_of_values(choice.fs, values)]


def _mount(choice: Combination) -> Iterator[tuple[str, str]]:
    values = choice.values
    options = ["noatime"] if choice.fs != "yaffs2" else []
    if "compressor" in values and values["compressor"] != "default":
        options.append(f"compr={values['compressor']}")
    if ":" in values.get("mount", ""):
        options += values["mount"].partition(":")[2].split("+")
    device = _DEVICES.get(choice.fs)
    if device is not None:
        yield "/etc/fstab", f"{device} /data {choice.fs} {','.join(options) or 'defaults'} 0 0"
    if choice.fs == "ubifs" and values.get("compressor", "default") != "default":
        yield "mkfs", f"mkfs.ubifs -x {values['compressor']} …"


def _of_values(fs: str, values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    window = values.get("read_ahead_kib")
    if window not in (None, "default") and fs in _BACKING:
        yield "at boot", f"echo {window} > /sys/class/bdi/{_BACKING[fs]}/read_ahead_kb"
    for key, name in _PRAGMAS.items():
        if key in values:
            yield "SQLite", f"PRAGMA {name} = {values[key]};"
    for key, value in values.items():
        if key.startswith("vm."):
            yield "/etc/sysctl.d/flash.conf", f"{key} = {value}"
        elif key == "sync_every_s":
            yield "the program", f"sync all that was written, every {value} s"
        elif key == "advice":
            yield "the program", f"posix_fadvise(fd, 0, 0, POSIX_FADV_{value.upper()})"
