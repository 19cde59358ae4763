"""How full a file system is, from its free space when new and when prepared."""

from __future__ import annotations

from typing import NamedTuple

from flashbed.stack.file_systems import FILE_SYSTEMS

__all__ = ["FreeSpace", "reached"]


class FreeSpace(NamedTuple):
    """Bytes that df calls available, and programmed pages of the partition.

    None for what the target does not know.
    """

    fresh_bytes: int | None
    bytes: int | None
    fresh_pages: int | None
    pages: int | None


def reached(space: FreeSpace | None, fs: str, page_bytes: int) -> tuple[float | None, float | None]:
    """state_valid and state_invalid: the programmed pages that are live, and obsolete."""
    if space is None or not space.fresh_bytes or space.bytes is None:
        return None, None
    valid = 1 - space.bytes / space.fresh_bytes
    if space.pages is None or space.fresh_pages is None:
        return valid, None
    of_df, of_flash = FILE_SYSTEMS[fs].df_per_node if fs in FILE_SYSTEMS else (1, 1)
    programmed_bytes = (space.pages - space.fresh_pages) * page_bytes * (of_df / of_flash)
    return valid, programmed_bytes / space.fresh_bytes - valid
