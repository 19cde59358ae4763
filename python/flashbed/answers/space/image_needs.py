"""What mkfs.ubifs says of an image, and whether a volume takes it.

mkfs.ubifs makes an image as small as its files. UBIFS grows it when it is mounted, up to the volume
or to `-c`, and refuses a journal that is larger than the main area (validate_sb of fs/ubifs/sb.c).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from flashbed.base.errors import RunError

__all__ = ["ImageNeeds", "max_leb_cnt_needed", "needs_of", "refusals"]

_LINE = re.compile(r"^\s*(\w[\w ]*):\s+(\d+)$", re.MULTILINE)
_MAIN_LEBS_MIN = 9
"""UBIFS_MIN_MAIN_LEBS."""
_TOO_LOW = re.compile(r"max_leb_cnt too low \((\d+) needed\)")
_NAMES = {
    "leb_size": "leb_bytes", "leb_cnt": "lebs", "max_leb_cnt": "max_lebs",
    "jrn_size": "journal_bytes", "main_lebs": "main_lebs",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ImageNeeds:
    """An image of UBIFS: its size, and the largest and smallest volume it suits."""

    leb_bytes: int
    lebs: int
    """Of the image; the volume has at least as many."""
    max_lebs: int
    """`-c`: what it can grow to."""
    journal_bytes: int
    """`-j`, or what mkfs.ubifs chose."""
    main_lebs: int

    @property
    def other_lebs(self) -> int:
        """Superblock, master nodes, log, LPT and orphans."""
        return self.lebs - self.main_lebs

    @property
    def journal_lebs(self) -> int:
        """LEBs of the main area that the journal needs."""
        return -(-self.journal_bytes // self.leb_bytes)

    @property
    def volume_lebs_min(self) -> int:
        """The smallest volume on which the kernel mounts it."""
        return max(self.lebs, self.other_lebs + max(_MAIN_LEBS_MIN, self.journal_lebs))

    def main_bytes(self, volume_lebs: int) -> int:
        """The main area once the image has grown to the volume."""
        return (min(volume_lebs, self.max_lebs) - self.other_lebs) * self.leb_bytes


def max_leb_cnt_needed(said: str) -> int | None:
    """The LEBs that mkfs.ubifs asks for if it refuses `-c`."""
    found = _TOO_LOW.search(said)
    return int(found[1]) if found else None


def needs_of(said: str) -> ImageNeeds:
    """Reads what `mkfs.ubifs -v` prints. Raises `RunError`."""
    told: Mapping[str, int] = {
        _NAMES[name]: int(number) for name, number in _LINE.findall(said) if name in _NAMES
    }
    if len(told) < len(_NAMES):
        raise RunError("mkfs.ubifs -v: does not print what its version 2.1 prints")
    return ImageNeeds(**told)


def refusals(needs: ImageNeeds, volume_lebs: int) -> list[str]:
    """Why a volume does not take the image, in the kernel's words; empty if it does."""
    found = []
    if needs.lebs > volume_lebs:
        more = needs.lebs - volume_lebs
        found.append(
            f"the image has {needs.lebs:,} LEBs, the volume {volume_lebs:,}: {more:,} LEBs"
            f" ({more * needs.leb_bytes:,} bytes) too many"
        )
    elif needs.main_bytes(volume_lebs) < _MAIN_LEBS_MIN * needs.leb_bytes:
        found.append(
            f"bad superblock, error 4: the main area has {needs.main_bytes(volume_lebs):,} bytes,"
            f" UBIFS needs {_MAIN_LEBS_MIN} LEBs"
        )
    elif needs.journal_bytes > needs.main_bytes(volume_lebs):
        main_bytes = needs.main_bytes(volume_lebs)
        found.append(
            f"too large journal size ({needs.journal_bytes:,} bytes), only {main_bytes:,} bytes"
            f" available in the main area: give mkfs.ubifs -c {volume_lebs}"
        )
    return found
