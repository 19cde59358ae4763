"""What the parts of a partition are for.

The simulator's mount code names them (`SpaceTable`); docs/models/space.md has the kernel's names.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["FASTMAP", "MEANINGS", "NOT_IN_VOLUME", "OTHER_PARTITIONS"]

FASTMAP = "fastmap"
NOT_IN_VOLUME = "other volumes"
OTHER_PARTITIONS = "other partitions"
_BAD = "marked by the maker"
_ROUNDED = "df counts pages of 4 KiB"
MEANINGS: Mapping[tuple[str, str], str] = {
    ("mtd", OTHER_PARTITIONS): "those of the layout, whole blocks each",
    ("ubi", "bad blocks"): _BAD,
    ("ubi", "bad-block reserve"): "20 of 1,024 blocks of the whole chip",
    ("ubi", "layout volume"): "two copies of the volume table",
    ("ubi", "wear levelling"): "the target of a move",
    ("ubi", "atomic LEB change"): "the new copy of a LEB",
    ("ubi", FASTMAP): "two copies, with --fastmap or layout.fastmap=1",
    ("ubi", "headers"): "erase counter and volume header",
    ("ubi", NOT_IN_VOLUME): "LEBs that this volume does not have",
    ("ubifs", "superblock"): "format and geometry",
    ("ubifs", "master nodes"): "where log, index and LPT are, twice",
    ("ubifs", "log"): "which LEBs the journal has",
    ("ubifs", "LEB properties (LPT)"): "free and obsolete bytes of each LEB",
    ("ubifs", "orphans"): "removed files that are still open",
    ("ubifs", "index"): "three times its size, and a LEB",
    ("ubifs", "garbage collection"): "the LEB that it collects into",
    ("ubifs", "journal heads"): "a LEB for each",
    ("ubifs", "deletions"): "they need space where there is none",
    ("ubifs", "files"): "inodes, names and data",
    ("ubifs", "dead ends of LEBs"): "too short for any node",
    ("ubifs", "dark ends of LEBs"): "may be too short for a node",
    ("ubifs", "promised to dirty pages"): "in the page cache, not written yet",
    ("ubifs", "root's reserve"): "5 %, at most 5 MiB; root may fill it",
    ("ubifs", "headers and index of full pages"): "of the pages that df expects",
    ("jffs2", "bad blocks"): _BAD,
    ("jffs2", "clean markers"): "12 bytes of each free block of NOR",
    ("jffs2", "files"): "nodes in use",
    ("jffs2", "files not checked yet"): "nodes that the scan found",
    ("jffs2", "wasted ends and erases"): "padding, blocks being erased",
    ("jffs2", "deletions"): "they need a node",
    ("jffs2", "garbage collection"): "2 %, and 100 bytes a block",
    ("jffs2", "less than a page"): _ROUNDED,
    ("yaffs2", "bad blocks"): _BAD,
    ("yaffs2", "tags in pages"): "16 bytes a page without free OOB",
    ("yaffs2", "files"): "chunks in use, summaries, a checkpoint",
    ("yaffs2", "short-op cache"): "chunks that are not written yet",
    ("yaffs2", "garbage collection"): "blocks in reserve",
    ("yaffs2", "block in use"): "one more",
    ("yaffs2", "checkpoint"): "what is written when it is unmounted",
    ("yaffs2", "less than a page"): _ROUNDED,
}
"""Layer and name of a part -> what it is for."""
