"""Reads a kernel's sources: its release, its functions and constants, and those that differ.

A function is what begins in the first column and has its brace there, as in Linux. Comments and
white space do not count.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

__all__ = ["MODELLED", "KernelTree", "mirrored_of"]

MODELLED = (
    "mm/readahead.c",
    "mm/filemap.c",
    "mm/page-writeback.c",
    "fs/fs-writeback.c",
    "kernel/sched/fair.c",
    "fs/jffs2",
    "fs/ubifs",
    "drivers/mtd/mtdcore.c",
    "drivers/mtd/mtdblock.c",
    "drivers/mtd/ubi",
    "drivers/mtd/nand/spi/core.c",
    "drivers/mtd/nand/raw/nand_base.c",
)
"""What the simulator models, of a kernel's sources."""
MIRRORED = {
    "mm/readahead.c": (
        "page_cache_sync_ra", "page_cache_async_ra", "ondemand_readahead", "do_page_cache_ra",
        "force_page_cache_ra", "get_init_ra_size", "get_next_ra_size", "try_context_readahead",
    ),
    "mm/filemap.c": (
        "filemap_read", "generic_file_buffered_read", "page_cache_next_miss",
        "page_cache_prev_miss", "filemap_fault", "filemap_map_pages",
    ),
    "mm/page-writeback.c": ("write_cache_pages", "balance_dirty_pages"),
    "fs/fs-writeback.c": ("wb_writeback", "writeback_sb_inodes", "wb_do_writeback"),
    "kernel/sched/fair.c": (
        "update_curr", "place_entity", "pick_next_entity", "pick_eevdf", "update_deadline",
        "check_preempt_tick", "check_preempt_wakeup", "check_preempt_wakeup_fair",
        "wakeup_preempt_fair", "requeue_delayed_entity",
    ),
    "fs/jffs2/gc.c": (
        "jffs2_find_gc_block", "jffs2_garbage_collect_pass", "jffs2_garbage_collect_dnode",
        "jffs2_garbage_collect_pristine",
    ),
    "fs/jffs2/nodemgmt.c": (
        "jffs2_reserve_space", "jffs2_do_reserve_space", "jffs2_find_nextblock",
        "jffs2_mark_node_obsolete", "jffs2_thread_should_wake",
    ),
    "fs/jffs2/erase.c": ("jffs2_erase_pending_blocks",),
    "fs/jffs2/wbuf.c": ("jffs2_flash_writev", "__jffs2_flush_wbuf", "jffs2_dirty_trigger"),
    "fs/jffs2/write.c": ("jffs2_write_dnode", "jffs2_write_inode_range"),
    "fs/jffs2/compr.c": ("jffs2_compress",),
    "fs/jffs2/build.c": ("jffs2_calc_trigger_levels",),
    "fs/jffs2/background.c": ("jffs2_garbage_collect_thread",),
    "fs/ubifs/gc.c": ("ubifs_garbage_collect", "ubifs_garbage_collect_leb", "move_nodes"),
    "fs/ubifs/find.c": ("ubifs_find_dirty_leb", "ubifs_find_free_space"),
    "fs/ubifs/budget.c": ("ubifs_budget_space", "ubifs_calc_available", "make_free_space"),
    "fs/ubifs/journal.c": ("reserve_space", "make_reservation", "ubifs_jnl_write_data"),
    "fs/ubifs/commit.c": ("do_commit", "nothing_to_commit"),
    "fs/ubifs/log.c": ("ubifs_add_bud_to_log", "ubifs_log_start_commit"),
    "fs/ubifs/sb.c": ("create_default_filesystem", "get_default_compressor"),
    "fs/ubifs/io.c": ("ubifs_wbuf_write_nolock", "ubifs_bg_wbufs_sync"),
    "drivers/mtd/ubi/wl.c": ("wear_leveling_worker", "find_wl_entry", "ensure_wear_leveling",
                             "wl_get_wle", "prot_queue_add"),
    "drivers/mtd/ubi/ubi.h": ("UBI_PROT_QUEUE_LEN", "UBI_IO_RETRIES"),
    "drivers/mtd/ubi/attach.c": ("ubi_attach", "scan_peb"),
}  # fmt: skip
"""Functions whose decisions the simulator mirrors, by file."""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_FUNCTION = re.compile(
    r"^(?!#)[A-Za-z_][^;{}#=]*?\b(\w+)\s*\([^;{}]*\)[^;{}()]*\n\{\n(.*?)^\}",
    re.DOTALL | re.MULTILINE,
)
_CONSTANT = re.compile(r"^#\s*define\s+([A-Z][A-Z0-9_]*)[ \t]+((?:[^\n\\]|\\\n)+)$", re.MULTILINE)
_LEVELS = ("VERSION", "PATCHLEVEL", "SUBLEVEL")


class KernelTree:
    """The sources of a kernel in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def text(self, name: str) -> str:
        """A file without comments; empty if there is none."""
        try:
            found = (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return _COMMENT.sub(" ", found)

    @cached_property
    def release(self) -> str | None:
        """`6.1.192`, from the Makefile; None if this is no kernel's tree."""
        text = self.text("Makefile")
        found = [re.search(rf"(?m)^{level}\s*=\s*(\d+)", text) for level in _LEVELS]
        return ".".join(one[1] for one in found if one) if found[0] and found[1] else None

    def function(self, file: str, name: str) -> str:
        """A function's text, with single blanks; empty if the file has none of this name."""
        return self.items(file).get(name, "")

    def items(self, file: str) -> dict[str, str]:
        """The functions and constants of a file by name; of several of a name, all together."""
        found: dict[str, str] = {}
        text = self.text(file)
        for one in (*_FUNCTION.finditer(text), *_CONSTANT.finditer(text)):
            whole = " ".join(one[0].split())
            found[one[1]] = f"{found[one[1]]} {whole}" if one[1] in found else whole
        return found

    def files(self) -> Iterator[str]:
        """The files that are modelled, as far as the tree has them."""
        for name in MODELLED:
            path = self.folder / name
            if path.is_dir():
                for file in sorted(path.rglob("*.[ch]")):
                    yield str(file.relative_to(self.folder))
            elif path.is_file():
                yield name

    def sha256(self) -> str:
        """Hash over the modelled files and the release."""
        digest = hashlib.sha256(f"{self.release}\n".encode())
        for name in self.files():
            digest.update(f"{name}\n".encode() + (self.folder / name).read_bytes())
        return digest.hexdigest()

    def differing(self, other: KernelTree) -> dict[str, list[str]]:
        """File -> functions and constants that are not the other tree's, of modelled files."""
        found = {}
        for name in sorted({*self.files(), *other.files()}):
            own, others = self.items(name), other.items(name)
            names = [one for one in {**own, **others} if own.get(one) != others.get(one)]
            if names:
                found[name] = sorted(names)
        return found


def mirrored_of(differing: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Of functions that differ those that the simulator mirrors, by file."""
    found = {
        file: [name for name in names if name in MIRRORED.get(file, ())]
        for file, names in differing.items()
    }
    return {file: names for file, names in found.items() if names}
