"""Reads a kernel's profile from its sources and configuration, as far as they say it.

What they do not say is another profile's, its `like`. Each value comes with the place it was read
from. An answer here is right for kernels from 5.4 on, the first with virtual time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flashbed.stack.imported.kernel_tree import KernelTree
from flashbed.stack.profiles import Kernel

__all__ = ["Known", "facts_of", "options_of_storage", "read_options"]

_FAULTS = {
    "mm/memory.c": ("do_fault_around",),
    "mm/filemap.c": ("filemap_map_pages", "filemap_fault", "do_sync_mmap_readahead"),
}
"""What page faults are made of."""
_SET = re.compile(r"(?:# )?(CONFIG_\w+)(?:=(.*)| is not set)")
_OF_STORAGE = re.compile(
    r"CONFIG_(JFFS2_(SUMMARY|COMPRESSION_OPTIONS|ZLIB|LZO|RTIME|RUBIN|CMODE_\w+|FS_WRITEBUFFER"
    r"|FS_WBUF_VERIFY)|UBIFS_FS_(ADVANCED_COMPR|LZO|ZLIB|ZSTD)|MTD_UBI_(WL_THRESHOLD|BEB_LIMIT))"
)


@dataclass(frozen=True)
class Known:
    """A value of a profile, and where it was read."""

    value: Any
    where: str


Facts = dict[str, dict[str, Known]]


def read_options(text: str) -> dict[str, str | None]:
    """A kernel's .config: name -> value, None for an option that is not set."""
    found = (_SET.fullmatch(line.strip()) for line in text.splitlines())
    return {one[1]: one[2] for one in found if one}


def options_of_storage(options: Mapping[str, str | None]) -> list[str]:
    """The lines of a configuration that say how the storage stack is built."""
    return [
        f"# {name} is not set" if value is None else f"{name}={value}"
        for name, value in options.items()
        if _OF_STORAGE.fullmatch(name)
    ]


def facts_of(
    tree: KernelTree, options: Mapping[str, str | None], like: Kernel, base: KernelTree | None
) -> Facts:
    """Table -> key -> what the sources say; `base` has those of the profile `like`."""
    found: Facts = {"readahead": _read_ahead(tree), "jffs2": _jffs2(tree)}
    compressor = _ubifs_compressor(tree, options)
    if compressor is not None:
        found["ubifs"] = {"compressor": compressor}
    waits = "local_irq_save" in tree.function(
        "arch/um/kernel/time.c", "time_travel_update_time_rel"
    )
    found["uml"] = {"masks_interrupts": Known(waits, "arch/um/kernel/time.c time_travel_ndelay")}
    kernel = _scheduler(tree)
    if "scheduler" in kernel:
        keeps_lag = kernel["scheduler"].value != "cfs"
        found["uml"]["other_flusher"] = Known(keeps_lag, "fs/hostfs/hostfs_kern.c super_setup_bdi")
    faults = (
        like.readahead is not None and like.readahead.faults_around and _same_faults(tree, base)
    )
    where = (
        "functions of page faults are those of the kernel named in like"
        if faults
        else ("mm/memory.c, mm/filemap.c: page faults are not known to be those of 6.1")
    )
    found["readahead"]["faults_around"] = Known(faults, where)
    found["kernel"] = kernel | _vfs(tree) | _polls(tree) | _reads_ahead(tree)
    found["kernel"] |= _configured(options)
    if options:
        found["jffs2"] |= _jffs2_options(options)
    return found


def _read_ahead(tree: KernelTree) -> dict[str, Known]:
    ahead, cache = "mm/readahead.c", "mm/filemap.c"
    text = tree.text(ahead)
    whole = bool(tree.function(ahead, "ondemand_readahead"))
    reads = tree.function(cache, "filemap_read")
    previous = "last-page"
    if reads:
        previous = "next-byte-at-end" if "last_pos" in reads else "next-byte"
    asks_end_first = re.search(r"ki_pos >= i_size_read\(inode\).{0,40}break;", reads, re.DOTALL)
    above = tree.function(cache, "page_cache_next_miss")
    below = tree.function(cache, "page_cache_prev_miss")
    later = bool(re.search(r"page_cache_(ra_unbounded|readahead_unbounded)", text))
    capped = not whole or "async_size = max_pages >> 1" in text
    rows: dict[str, tuple[Any, str]] = {
        "window_overflow": (
            "capped" if capped else "grows",
            f"{ahead} {'ondemand_readahead' if whole else 'page_cache_sync_ra'}",
        ),
        "previous_position": (
            previous, f"{cache} {'filemap_read' if reads else 'generic_file_buffered_read'}"
        ),
        "past_end_reads_last_page": (asks_end_first is None, f"{cache} filemap_read"),
        "hole_not_found": (
            "page-after" if re.search(r"max_scan;|xa_index \+ 1", above.rpartition("}")[0][-60:])
            else "last-page",
            f"{cache} page_cache_next_miss",
        ),
        "hole_not_found_below": (
            "page-after" if "xa_index - 1" in below else "last-page",
            f"{cache} page_cache_prev_miss",
        ),
        "miss_never_continues": (not whole, f"{ahead} ondemand_readahead"),
        "stream_keeps_its_window": (
            "max(ra->size, get_next_ra_size" in " ".join(text.split()), f"{ahead} get_next_ra_size"
        ),
        "cut_window_moves_its_marker": (later, f"{ahead} page_cache_ra_unbounded"),
        "last_window_has_no_marker": ("lookahead_size = 0" in text, f"{ahead} do_page_cache_ra"),
        "marked_window_end_pages": (
            4 if "aligned_end" in text else 1, f"{ahead} page_cache_async_ra"
        ),
        "window_is_added_first": (later, f"{ahead} page_cache_ra_unbounded"),
    }  # fmt: skip
    return {key: Known(*row) for key, row in rows.items()}


def _same_faults(tree: KernelTree, base: KernelTree | None) -> bool:
    return base is not None and all(
        tree.function(file, name) == base.function(file, name)
        for file, names in _FAULTS.items()
        for name in names
    )


def _jffs2(tree: KernelTree) -> dict[str, Known]:
    keeps = "sigprocmask" in tree.text("fs/jffs2/background.c")
    reports = "mapping_set_error" in tree.function("fs/jffs2/file.c", "jffs2_write_end")
    delayed = "queue_delayed_work" in tree.text("fs/jffs2/wbuf.c")
    return {
        "collector_keeps_signals": Known(
            keeps, "fs/jffs2/background.c jffs2_garbage_collect_thread"
        ),
        "write_end_sets_error": Known(reports, "fs/jffs2/file.c jffs2_write_end"),
        "wbuf_flush": Known(
            "delayed-work" if delayed else "sync-supers", "fs/jffs2/wbuf.c jffs2_dirty_trigger"
        ),
    }


def _ubifs_compressor(tree: KernelTree, options: Mapping[str, str | None]) -> Known | None:
    """The first compressor of get_default_compressor that the configuration has."""
    said = tree.function("fs/ubifs/sb.c", "get_default_compressor")
    order = re.findall(r"return UBIFS_COMPR_(\w+)", said)
    names = {"ZSTD": "zstd-1.4.10", "LZO": "lzo", "ZLIB": "zlib", "NONE": "none"}
    able = [
        name
        for name in order
        if name in names and options.get(f"CONFIG_UBIFS_FS_{name}", "y") is not None
    ]
    where = "fs/ubifs/sb.c get_default_compressor"
    return Known(names[able[0]], where) if able else None


def _scheduler(tree: KernelTree) -> dict[str, Known]:
    """`[kernel]` as kernel/sched/fair.c says it; nothing without that file."""
    text = tree.text("kernel/sched/fair.c")
    if not text:
        return {}
    marks = {
        "eevdf-7.3": "update_protect_slice",
        "eevdf-6.12": "requeue_delayed_entity",
        "eevdf-6.6": "pick_eevdf",
    }
    found = next((name for name, mark in marks.items() if mark in text), "cfs")
    return {"scheduler": Known(found, f"kernel/sched/fair.c {', '.join(marks.values())}")}


def _vfs(tree: KernelTree) -> dict[str, Known]:
    found: dict[str, Known] = {}
    where = "include/linux/pagevec.h"
    pages = re.search(r"#define PAGEVEC_SIZE\s+(\d+)", tree.text(where))
    if pages:
        found["folio_batch"] = Known(int(pages[1]), f"{where} PAGEVEC_SIZE")
    where = "mm/page-writeback.c"
    text = tree.text(where)
    if text:
        found["writeback_iter"] = Known("writeback_iter(" in text, f"{where} writeback_iter")
    where = "fs/file_table.c"
    text = tree.text(where)
    if text:
        found["file_free_rcu"] = Known("file_free_rcu" in text, f"{where} file_free")
    return found


def _polls(tree: KernelTree) -> dict[str, Known]:
    core = "drivers/mtd/nand/spi/core.c"
    waits = tree.function(core, "spinand_wait")
    sleeps = Known("spi_mem_poll_status" in waits, f"{core} spinand_wait")
    return {"spi_polls_sleep": sleeps} if waits else {}


def _reads_ahead(tree: KernelTree) -> dict[str, Known]:
    """Whether the drivers let a chip load the next page while one is moved."""
    marks = {
        "cache_reads": ("drivers/mtd/nand/raw/nand_base.c", "rawnand_enable_cont_reads"),
        "continuous_reads": ("drivers/mtd/nand/spi/core.c", "spinand_use_cont_read"),
    }
    texts = {key: (tree.text(file), f"{file} {mark}", mark) for key, (file, mark) in marks.items()}
    refusals = {
        "jffs2": tree.function("fs/jffs2/fs.c", "jffs2_do_fill_super"),
        "ubi": tree.function("drivers/mtd/ubi/build.c", "ubi_attach_mtd_dev"),
    }
    refused = [name for name, text in refusals.items() if "MTD_MLCNANDFLASH" in text]
    refused += ["yaffs2"] if refused else []
    known = {"mlc_refused_by": Known(refused, "MTD_MLCNANDFLASH")} if all(refusals.values()) else {}
    flags = tree.text("include/uapi/mtd/mtd-abi.h")
    if flags:
        mark = "MTD_SLC_ON_MLC_EMULATION"
        known["slc_mode"] = Known(mark in flags, f"include/uapi/mtd/mtd-abi.h {mark}")
    return known | {
        key: Known(mark in text, where) for key, (text, where, mark) in texts.items() if text
    }


def _configured(options: Mapping[str, str | None]) -> dict[str, Known]:
    """`[kernel]` as a configuration says it."""
    if not options:
        return {}
    found = {}
    hz = options.get("CONFIG_HZ")
    if hz is not None and hz.isdecimal():
        found["ticks_per_second"] = Known(int(hz), "CONFIG_HZ")
    found["smp"] = Known(options.get("CONFIG_SMP") == "y", "CONFIG_SMP")
    tiny = options.get("CONFIG_TINY_RCU") == "y"
    found["rcu"] = Known("tiny" if tiny else "tree", "CONFIG_TINY_RCU")
    groups = options.get("CONFIG_FAIR_GROUP_SCHED") == "y"
    found["task_groups"] = Known(groups, "CONFIG_FAIR_GROUP_SCHED")
    return found


def _jffs2_options(options: Mapping[str, str | None]) -> dict[str, Known]:
    on = {name for name, value in options.items() if value == "y"}
    asked = "CONFIG_JFFS2_COMPRESSION_OPTIONS" in on
    able = {"lzo": asked and "CONFIG_JFFS2_LZO" in on}
    able |= {"zlib": not asked or "CONFIG_JFFS2_ZLIB" in on}
    able |= {"rtime": not asked or "CONFIG_JFFS2_RTIME" in on}
    never = "CONFIG_JFFS2_CMODE_NONE" in on
    names = [name for name, there in able.items() if there]
    attributes = "on" if "CONFIG_JFFS2_FS_XATTR" in on else "off"
    return {
        "summary": Known("CONFIG_JFFS2_SUMMARY" in on, "CONFIG_JFFS2_SUMMARY"),
        "compressors": Known(
            [] if never else names, "CONFIG_JFFS2_LZO, _ZLIB, _RTIME, _CMODE_NONE"
        ),
        "compr_option": Known(
            ["none", *(name for name in names if name != "rtime")],
            "fs/jffs2/super.c jffs2_param_compr",
        ),
        "xattr": Known(attributes, "CONFIG_JFFS2_FS_XATTR"),
        "wbuf_verify": Known("CONFIG_JFFS2_FS_WBUF_VERIFY" in on, "CONFIG_JFFS2_FS_WBUF_VERIFY"),
    }
