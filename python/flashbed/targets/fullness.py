"""How full a file system is: what it was asked for when it was new and when it was prepared."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Room", "reached"]

_REPORTED = {"ubifs": 4096 / 4336}
"""Bytes of df in a byte of flash: ubifs_reported_space sets index nodes off against data nodes."""


class Room(NamedTuple):
    """Bytes that df calls available, and pages of the partition that are programmed.

    None is what the target does not know.
    """

    fresh_bytes: int | None
    bytes: int | None
    fresh_pages: int | None
    pages: int | None


def reached(room: Room | None, fs: str, page_bytes: int) -> tuple[float | None, float | None]:
    """state_valid and state_invalid: what is programmed is live or obsolete."""
    if room is None or not room.fresh_bytes or room.bytes is None:
        return None, None
    valid = 1 - room.bytes / room.fresh_bytes
    if room.pages is None or room.fresh_pages is None:
        return valid, None
    programmed_bytes = (room.pages - room.fresh_pages) * page_bytes * _REPORTED.get(fs, 1.0)
    return valid, programmed_bytes / room.fresh_bytes - valid
