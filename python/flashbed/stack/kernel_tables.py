"""Tables of a kernel's profile, boards/kernels/*.toml: its configuration and its peculiarities.

The docstring below a key says what it is and, behind `From:`, where its value is found;
docs/reference/profiles.md is made of these. profiles.py puts the tables together.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from flashbed.base.toml import Strict
from flashbed.stack.bounds import Hertz, RaPages
from flashbed.stack.file_systems import FILE_SYSTEMS
from flashbed.stack.names import Name, Text

__all__ = [
    "BackingDevices",
    "Jffs2Options",
    "KernelFacts",
    "ReadAheadRules",
    "UbifsOptions",
    "UserMode",
]


def _refuses(name: str) -> str:
    if name != "ubi" and name not in FILE_SYSTEMS:
        raise ValueError(f"{name!r} is neither ubi nor one of {', '.join(FILE_SYSTEMS)}")
    return name


Refusing = Annotated[str, AfterValidator(_refuses)]
Rcu = Literal["tiny", "tree", "softirqs"]
Scheduler = Literal["cfs", "eevdf-6.6", "eevdf-6.12", "eevdf-7.3"]


class Configuration(Strict):
    """How a kernel is configured for its machine, as far as tasks and counters depend on it.

    `smp` is CONFIG_SMP, `task_groups` CONFIG_FAIR_GROUP_SCHED. An idle processor sleeps for at most
    `longest_idle_ms`; with `first_idle_tick` it still takes the first tick after becoming idle.
    """

    source: Text
    """Where the numbers of this table come from."""
    smp: bool
    """CONFIG_SMP: counters of several processors count in batches.
    From: the kernel's configuration.
    """
    rcu: Rcu
    """How RCU works: `tiny` (kernel/rcu/tiny.c), `tree` (kernel/rcu/tree.c, with threads),
    `softirqs` (before 3.7).
    From: the kernel's configuration.
    """
    task_groups: bool
    """CONFIG_FAIR_GROUP_SCHED: tasks are scheduled in groups.
    From: the kernel's configuration.
    """
    first_idle_tick: bool
    """Whether the tick after the processor became idle still comes.
    From: observed on a running kernel.
    """
    masks_interrupts: bool = False
    """Whether an interrupt waits for the end of the chip's operation.
    From: the kernel's source; only user-mode Linux with time travel does.
    """
    other_flusher: bool = False
    """Whether `sync` waits for another file system's flusher first.
    From: the kernel's source; on user-mode Linux hostfs has one.
    """
    longest_idle_ms: Annotated[int, Field(gt=0, le=1_000_000)]
    """How long an idle processor sleeps at most.
    From: periodic work of the kernel, or its clock.
    """


Xattr = Literal["off", "on", "unknown"]


class UserMode(Configuration):
    """`[uml]`: how the kernel is configured as user-mode Linux."""

    jffs2_xattr: Xattr
    """CONFIG_JFFS2_FS_XATTR.
    From: kernel/uml/config.
    """


class KernelFacts(Configuration):
    """`[kernel]`: which kernel it is, and which targets can run it."""

    name: Name
    """That of its file without `.toml`."""
    title: Text
    """What the kernel is, in a line."""
    like: Name | None = None
    """The profile that has what this one's sources did not say.
    From: `flashbed kernel add`.
    """
    targets: tuple[str, ...] = Field(min_length=1, strict=False)
    """Targets that can run it: `sim`, `uml`, `emulator`."""
    ticks_per_second: Hertz
    """CONFIG_HZ.
    From: the kernel's configuration.
    """
    scheduler: Scheduler
    """Which task runs: `cfs` before 6.6, EEVDF as in that release since.
    From: kernel/sched/fair.c: pick_eevdf, requeue_delayed_entity (6.12), update_protect_slice
    (7.3).
    """
    folio_batch: Annotated[int, Field(ge=1, le=255)] = 15
    """Pages that the page cache looks up at a time (PAGEVEC_SIZE).
    From: include/linux/pagevec.h.
    """
    file_free_rcu: bool = True
    """Whether a closed file is freed after a grace period of RCU (before 6.7).
    From: fs/file_table.c: whether it has file_free_rcu.
    """
    writeback_iter: bool = False
    """Whether only cyclic write-back stores where it stopped in a file (since 6.9).
    From: mm/page-writeback.c: whether it has writeback_iter.
    """
    spi_polls_sleep: bool = True
    """SPI-NAND sleeps between two polls of a busy chip (since 5.15).
    From: drivers/mtd/nand/spi/core.c: whether spinand_wait calls spi_mem_poll_status.
    """
    mlc_refused_by: Annotated[tuple[Refusing, ...], Field(strict=False)] = ()
    """What refuses MLC: `jffs2` and `yaffs2` (since 3.13), `ubi` unless in SLC mode (since 4.17).
    From: MTD_MLCNANDFLASH in fs/jffs2/fs.c and drivers/mtd/ubi/build.c.
    """
    slc_mode: bool = False
    """Whether a partition of MLC can have the first pages of pairs only (since 5.8).
    From: include/uapi/mtd/mtd-abi.h, MTD_SLC_ON_MLC_EMULATION.
    """
    cache_reads: bool = False
    """Raw NAND reads pages in order by READ CACHE SEQUENTIAL, where chip and ECC allow it (since
    6.4).
    From: drivers/mtd/nand/raw/nand_base.c: whether there is rawnand_enable_cont_reads.
    """
    continuous_reads: bool = False
    """SPI-NAND reads pages of a block continuously where the chip can (since 6.12).
    From: drivers/mtd/nand/spi/core.c: whether there is spinand_use_cont_read.
    """
    octal_dtr: bool = False
    """SPI-NAND uses octal DTR where chip and controller can (7.3).
    From: drivers/mtd/nand/spi/core.c: whether there is spinand_init_odtr_instruction_set.
    """


class ReadAheadRules(Strict):
    """`[readahead]`: how this kernel's mm/readahead.c differs from others."""

    source: Text
    """Where the numbers of this table come from."""
    backward_jump_is_sequential: bool
    """The distance to the previous page is signed, so each backward jump looks sequential (32 bits,
    until 3.12).
    From: mm/readahead.c.
    """
    context: Literal["none", "eager", "conservative"]
    """Random reads beside cached pages: `none` ignores them, `eager` starts a window at any,
    `conservative` if more than the request is cached.
    From: mm/readahead.c.
    """
    first_page_starts_window: bool
    """A miss on a file's first page starts a window wherever the last read was (since 2.6.31).
    From: mm/readahead.c.
    """
    hole_window_adds_request: bool
    """A window of which only the marker is known grows by the request as well (since 2.6.31).
    From: mm/readahead.c.
    """
    window_overflow: Literal["grows", "capped"]
    """A window that would hit its own marker: `grows` past the limit, or is `capped` at it.
    From: mm/readahead.c.
    """
    previous_position: Literal["last-page", "next-byte", "next-byte-at-end"]
    """`prev_pos`: in the `last-page` when the call ends; at the `next-byte` after every page;
    `next-byte-at-end` of the call.
    From: mm/filemap.c.
    """
    past_end_reads_last_page: bool
    """A read that begins behind the end of the file, in its last page, reads that page.
    From: mm/filemap.c: whether filemap_read compares the position with the end first.
    """
    hole_not_found: Literal["page-after", "last-page"]
    """What a scan upward gives where all pages are cached: the `page-after` the last, or the
    `last-page` (since 4.20).
    From: mm/filemap.c.
    """
    hole_not_found_below: Literal["page-after", "last-page"]
    """The same of a scan downward.
    From: mm/filemap.c.
    """
    miss_never_continues: bool
    """A miss starts a window, and only a marker continues one (6.12).
    From: mm/readahead.c.
    """
    stream_keeps_its_window: bool
    """The next window of a stream is not smaller than its last, even if `posix_fadvise` lowered the
    limit.
    From: mm/readahead.c.
    """
    cut_window_moves_its_marker: bool
    """A window that the end of the file cuts off has its marker moved toward its start, or dropped
    (since 5.8).
    From: mm/readahead.c.
    """
    last_window_has_no_marker: bool
    """A window that reaches the end of the file has no marker (7.3).
    From: mm/readahead.c do_page_cache_ra.
    """
    marked_window_end_pages: Literal[1, 4]
    """A window that a marker begins ends at a multiple of so many pages (7.3).
    From: mm/readahead.c page_cache_async_ra.
    """
    window_is_added_first: bool
    """All pages of a window are in the page cache, locked, before the first is read (since 5.8).
    From: mm/readahead.c.
    """
    faults_around: bool
    """Page faults are those of 6.1; else mapped files are refused.
    From: mm/memory.c, mm/filemap.c.
    """


class Jffs2Options(Strict):
    """`[jffs2]`: how the kernel's JFFS2 is built."""

    source: Text
    """Where the numbers of this table come from."""
    summary: bool
    """CONFIG_JFFS2_SUMMARY: each full block ends with a list of its nodes.
    From: the kernel's configuration.
    """
    compressors: list[Literal["lzo", "lzo-2.02", "zlib", "rtime"]]
    """Compressors that are tried, in their order of priority.
    From: CONFIG_JFFS2_LZO, _ZLIB, _RTIME.
    """
    compr_option: list[Literal["none", "lzo", "zlib"]]
    """What the mount option `compr=` takes; empty before 3.2.
    From: fs/jffs2/super.c.
    """
    collector_keeps_signals: bool
    """Whether a signal that reaches the collector's thread in a pass is kept (sigprocmask).
    From: fs/jffs2/background.c.
    """
    wbuf_flush: Literal["delayed-work", "sync-supers"]
    """What writes a partly filled write-buffer out: `delayed-work` (since 3.7) or `sync-supers`.
    From: fs/jffs2/wbuf.c.
    """
    xattr: Xattr
    """CONFIG_JFFS2_FS_XATTR.
    From: the kernel's configuration.
    """
    write_end_sets_error: bool = False
    """Whether a write that finds no space is also reported by the file's next fsync (since 6.11).
    From: fs/jffs2/file.c: whether jffs2_write_end calls mapping_set_error.
    """
    wbuf_verify: bool = False
    """CONFIG_JFFS2_FS_WBUF_VERIFY: each page that the write-buffer filled is read back.
    From: the kernel's configuration.
    """


class UbifsOptions(Strict):
    """`[ubifs]`: how the kernel's UBIFS is built."""

    source: Text
    """Where the numbers of this table come from."""
    compressor: Literal["none", "lzo", "lzo-2.02", "zlib", "zstd-1.4.10"]
    """The compressor of a new file system.
    From: fs/ubifs/sb.c get_default_compressor.
    """
    compr_option: list[Literal["none", "lzo", "lzo-2.02", "zlib", "zstd-1.4.10"]]
    """What the mount option `compr=` takes.
    From: fs/ubifs/super.c.
    """


BackingDevice = str


class BackingDevices(Strict):
    """`[backing_devices]`: the device whose `ra_pages` become an opened file's window.

    A mapping has default_backing_dev_info, the disk's on a block device, or UBIFS' own. A
    superblock has that of its MTD device, its disk or its UBIFS.
    """

    source: Text
    """Where the numbers of this table come from."""
    looked_up: Literal["mapping", "superblock"]
    """Where an opened file finds its backing device: `superblock` since 4.0.
    From: mm/readahead.c file_ra_state_init.
    """
    yaffs2_mounts: Literal["block", "mtd"]
    """What YAFFS2 is mounted on.
    From: how the kernel's YAFFS2 is built.
    """
    ra_pages: dict[BackingDevice, RaPages]
    """The window of each device (`default`, `mtd`, `block`, `ubifs`) in pages of 4 KiB.
    From: drivers/mtd, fs/ubifs/super.c, mm/backing-dev.c.
    """

    def device(self, fs: str) -> BackingDevice:
        """The device that a file system's inodes refer to."""
        of = FILE_SYSTEMS[fs].window_of
        if of == "own":
            return fs
        if of == "mount" and self.yaffs2_mounts == "block":
            return "block"
        return "default" if self.looked_up == "mapping" else "mtd"

    @model_validator(mode="after")
    def _whole(self) -> Self:
        needed = {self.device(fs) for fs in FILE_SYSTEMS}
        odd = sorted(needed ^ self.ra_pages.keys())
        if odd:
            problem = "missing" if odd[0] in needed else "no file system uses it"
            raise ValueError(f"ra_pages.{odd[0]}: {problem}")
        return self
