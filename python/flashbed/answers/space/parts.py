"""What the parts of a partition are for, and whose number each is.

The simulator's mount code names them (`SpaceTable`); docs/models/space.md has the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["MEANINGS", "NOT_IN_VOLUME"]

NOT_IN_VOLUME = "other volumes"
_BAD = "blocks with a factory's mark"
MEANINGS: Mapping[tuple[str, str], str] = {
    ("ubi", "bad blocks"): _BAD,
    ("ubi", "bad-block reserve"): "20 of 1,024 blocks of the whole chip (get_bad_peb_limit)",
    ("ubi", "layout volume"): "two copies of the volume table (UBI_LAYOUT_VOLUME_EBS)",
    ("ubi", "wear levelling"): "the target of a move (WL_RESERVED_PEBS)",
    ("ubi", "atomic LEB change"): "the new copy of a LEB (EBA_RESERVED_PEBS)",
    ("ubi", "headers"): "erase counter and volume header of each block (leb_start)",
    ("ubi", NOT_IN_VOLUME): "LEBs of the UBI device that this volume does not have",
    ("ubifs", "superblock"): "UBIFS_SB_LEBS",
    ("ubifs", "master nodes"): "two copies (UBIFS_MST_LEBS)",
    ("ubifs", "log"): "which LEBs the journal has (create_default_filesystem)",
    ("ubifs", "LEB properties (LPT)"): "free and dirty bytes of each LEB (calc_dflt_lpt_geom)",
    ("ubifs", "orphans"): "removed files that are still open (UBIFS_MIN_ORPH_LEBS)",
    ("ubifs", "index"): "three times its size and a LEB (ubifs_calc_min_idx_lebs)",
    ("ubifs", "garbage collection"): "the LEB that is collected into (gc_lnum)",
    ("ubifs", "journal heads"): "a LEB for each (jhead_cnt)",
    ("ubifs", "deletions"): "they need no budget (ubifs_calc_available)",
    ("ubifs", "files"): "inodes, names and data (total_used)",
    ("ubifs", "dead ends of LEBs"): "too short for any node (dead_wm)",
    ("ubifs", "dark ends of LEBs"): "may be too short for the next node (dark_wm)",
    ("ubifs", "promised to dirty pages"): "in the page cache, not written yet (data_growth)",
    ("ubifs", "root's reserve"): "5 %, 5 MiB at most (rp_size); root may fill it",
    ("ubifs", "headers and index of full pages"): "of each page to come (ubifs_reported_space)",
    ("jffs2", "bad blocks"): _BAD,
    ("jffs2", "files"): "nodes in use (used_size)",
    ("jffs2", "files not checked yet"): "nodes found by the scan (unchecked_size)",
    ("jffs2", "wasted ends and erases"): "wasted_size, erasing_size",
    ("jffs2", "deletions"): "they need a node (resv_blocks_deletion)",
    ("jffs2", "garbage collection"): "2 % and 100 bytes a block (resv_blocks_write)",
    ("jffs2", "less than a page"): "df counts pages of 4 KiB",
    ("yaffs2", "bad blocks"): _BAD,
    ("yaffs2", "tags in pages"): "16 bytes a page without free OOB (inband-tags)",
    ("yaffs2", "files"): "chunks in use, summaries, the checkpoint",
    ("yaffs2", "short-op cache"): "chunks that are not written yet",
    ("yaffs2", "garbage collection"): "n_reserved_blocks",
    ("yaffs2", "block in use"): "yaffs_get_n_free_chunks keeps one more",
    ("yaffs2", "checkpoint"): "yaffs_calc_checkpt_blocks_required",
    ("yaffs2", "less than a page"): "df counts pages of 4 KiB",
}
"""Layer and name of a part -> what it is for, with the kernel's name of the number."""
