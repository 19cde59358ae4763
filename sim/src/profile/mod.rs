//! Boards and kernels as the simulator needs them: numbers only.
//!
//! Python reads boards/*.toml, checks that every key is there and names its source, and passes the
//! same tables as JSON. A missing or unknown key here is our bug, and serde refuses it.
//! `check` refuses what no chip can be, for callers without Python as well.

mod nor;
mod spi;
mod squashfs;

pub use nor::NorBus;
pub use spi::{BusPhase, EccStatus, SpiBus};
pub use squashfs::{SquashfsCosts, UnpackAll, UnpackBlockCosts};

use crate::compress::work::{CompressorCosts, Priced, Work};
use crate::compress::UbifsData;
use crate::units::Ns;
use serde::Deserialize;

/// A kernel's configuration, as far as several layers need it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelFacts {
    /// CONFIG_HZ.
    pub ticks_per_second: u64,
    /// CONFIG_SMP: counters of a kernel for several processors count in batches.
    pub smp: bool,
    /// The scheduler of its tasks.
    pub scheduler: Scheduler,
    /// How RCU learns that every task has been scheduled.
    pub rcu: Rcu,
    /// CONFIG_FAIR_GROUP_SCHED: tasks are scheduled in groups.
    pub task_groups: bool,
    /// Whether a processor still gets the tick after it became idle.
    pub first_idle_tick: bool,
    /// Whether an interrupt that falls into an operation of the chip is handled when that is over.
    #[serde(default)]
    pub masks_interrupts: bool,
    /// Another file system that is mounted has a flusher, for which `sync` waits first.
    #[serde(default)]
    pub other_flusher: bool,
    /// Pages that are looked up at a time (PAGEVEC_SIZE).
    #[serde(default = "fifteen")]
    pub folio_batch: usize,
    /// writeback_iter of mm/page-writeback.c: only write-back that is cyclic stores where it
    /// stopped, and stores the page after it (6.9).
    #[serde(default)]
    pub writeback_iter: bool,
    /// A closed file is freed after a grace period (file_free_rcu, before 6.7).
    #[serde(default = "yes")]
    pub file_free_rcu: bool,
    /// The longest sleep of an idle processor.
    pub longest_idle_ms: u64,
    /// The core of SPI-NAND sleeps between two polls of a busy chip (spi_mem_poll_status, 5.15).
    #[serde(default = "yes")]
    pub spi_polls_sleep: bool,
    /// The driver of raw NAND reads pages in order by READ CACHE SEQUENTIAL (6.4).
    #[serde(default)]
    pub cache_reads: bool,
    /// The core of SPI-NAND reads several pages of a block continuously (6.12).
    #[serde(default)]
    pub continuous_reads: bool,
    /// Its settings in /proc/sys/vm.
    #[serde(default)]
    pub vm: Vm,
}

fn fifteen() -> usize {
    15
}

fn yes() -> bool {
    true
}

/// Settings of write-back, as /proc/sys/vm has them. A field that is missing has the default of
/// mm/page-writeback.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Vm {
    /// How old dirty data is when the flusher writes it.
    pub dirty_expire_centisecs: u64,
    /// How long the flusher sleeps, and how long file systems keep a partly filled write-buffer.
    pub dirty_writeback_centisecs: u64,
    /// Dirty pages at which a writer waits, percent of the memory that the page cache may fill.
    pub dirty_ratio: u64,
    /// Dirty pages at which the flusher writes in the background, likewise.
    pub dirty_background_ratio: u64,
    /// The same limits in bytes; 0 leaves them to the ratios.
    pub dirty_bytes: u64,
    #[allow(missing_docs, reason = "the line above")]
    pub dirty_background_bytes: u64,
}

impl Vm {
    /// mm/page-writeback.c.
    pub const DEFAULT: Vm = Vm {
        dirty_expire_centisecs: 3_000,
        dirty_writeback_centisecs: 500,
        dirty_ratio: 20,
        dirty_background_ratio: 10,
        dirty_bytes: 0,
        dirty_background_bytes: 0,
    };

    /// `dirty_writeback_interval` in milliseconds.
    pub fn writeback_ms(&self) -> u64 {
        self.dirty_writeback_centisecs * 10
    }

    /// `dirty_expire_interval` in milliseconds.
    pub fn expire_ms(&self) -> u64 {
        self.dirty_expire_centisecs * 10
    }
}

impl Default for Vm {
    fn default() -> Vm {
        Vm::DEFAULT
    }
}

#[cfg(test)]
impl KernelFacts {
    /// Debian's 6.1, as unit tests need it.
    pub const DEBIAN: KernelFacts = KernelFacts {
        ticks_per_second: 250,
        smp: true,
        scheduler: Scheduler::Cfs,
        rcu: Rcu::Tree,
        task_groups: true,
        first_idle_tick: false,
        masks_interrupts: false,
        other_flusher: false,
        folio_batch: 15,
        writeback_iter: false,
        file_free_rcu: true,
        longest_idle_ms: 512,
        spi_polls_sleep: true,
        cache_reads: false,
        continuous_reads: false,
        vm: Vm::DEFAULT,
    };
    /// User-mode Linux 6.1.
    pub const USER_MODE: KernelFacts = KernelFacts {
        smp: false,
        rcu: Rcu::Tiny,
        task_groups: false,
        first_idle_tick: true,
        masks_interrupts: true,
        longest_idle_ms: 4_296,
        ..KernelFacts::DEBIAN
    };
}

/// Schedulers of kernel/sched/fair.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Scheduler {
    /// Before 6.6: the least `vruntime` runs.
    #[serde(rename = "cfs")]
    Cfs,
    /// EEVDF as in 6.6, whose tasks leave the queue as soon as they sleep.
    #[serde(rename = "eevdf-6.6")]
    Eevdf6_6,
    /// EEVDF as in 6.12: the earliest deadline of an eligible task runs.
    #[serde(rename = "eevdf-6.12")]
    Eevdf6_12,
    /// EEVDF as in 7.3.
    #[serde(rename = "eevdf-7.3")]
    Eevdf7_3,
}

/// Implementations of read-copy-update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rcu {
    /// kernel/rcu/tiny.c, for one processor: while a callback waits, each tick reschedules the
    /// running task (rcu_sched_clock_irq).
    Tiny,
    /// kernel/rcu/tree.c: a thread begins and ends grace periods (rcu_gp_kthread).
    Tree,
    /// Kernels before 3.7: softirqs begin and end grace periods, and no task is rescheduled.
    Softirqs,
}

/// What the bus transfers for a read of a part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transfer {
    /// Only the requested bytes, as a real chip does; they take their share of a page's bus time.
    Bytes,
    /// The time of a whole page, as nandsim does.
    Page,
}

/// Bits that a cell holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "one, two, three")]
pub enum Cells {
    #[default]
    Slc,
    Mlc,
    Tlc,
}

/// Pairs of pages that share cells (struct mtd_pairing_scheme).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pairing {
    /// dist3_pairing_scheme: three pages apart.
    Dist3,
}

/// `[chip]`: geometry and datasheet timing, array time and bus time separate.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChipProfile {
    /// Main area of a page, without its OOB.
    pub page_bytes: u32,
    /// Spare area of a page.
    pub oob_bytes: u32,
    /// Pages in an erase block.
    pub pages_per_block: u32,
    /// Erase blocks on the chip.
    pub blocks: u32,
    /// Array to page register (tR).
    pub read_array_ns: Ns,
    /// Page register to array (tPROG).
    pub program_array_ns: Ns,
    /// Block erase (tBERS).
    pub erase_array_ns: Ns,
    /// How much of `bus_read_ns` a partial read takes.
    pub transfer: Transfer,
    /// Moving a whole page, OOB included, from the register to the controller.
    pub bus_read_ns: Ns,
    /// Moving a whole page, OOB included, to the register.
    pub bus_program_ns: Ns,
    /// Changing the column within the page register (random data output).
    pub column_change_ns: Ns,
    /// Bits of a cell.
    #[serde(default)]
    pub cells: Cells,
    /// Which pages of a block share cells.
    #[serde(default)]
    pub pairing: Option<Pairing>,
    /// Only the first pages of pairs are the partition's; `pages_per_block` counts those.
    #[serde(default)]
    pub slc_mode: bool,
    /// From the end of READ CACHE SEQUENTIAL or READ CACHE END to the page in the cache register
    /// (tRCBSY); none if the chip or the kernel does without them.
    #[serde(default)]
    pub cache_read_ns: Option<Ns>,
    /// The bus of SPI-NAND, instead of the four bus times above; none for raw NAND.
    #[serde(default)]
    pub spi: Option<SpiBus>,
    /// The bus of SPI-NOR, likewise; none for NAND.
    #[serde(default)]
    pub nor: Option<NorBus>,
}

impl ChipProfile {
    /// A read of a page of which so many bytes are transferred.
    #[inline]
    pub fn read_ns(&self, bytes: u32) -> Ns {
        match (&self.spi, &self.nor) {
            (None, None) => self.read_array_ns + self.share(self.bus_read_ns, bytes),
            (Some(spi), _) => spi.read_ns(self.read_array_ns, bytes),
            (None, Some(nor)) => nor.read_ns(bytes),
        }
    }

    /// A program of a page, after so many bytes are transferred.
    #[inline]
    pub fn program_ns(&self, bytes: u32) -> Ns {
        match (&self.spi, &self.nor) {
            (None, None) => self.program_array_ns + self.share(self.bus_program_ns, bytes),
            (Some(spi), _) => spi.program_ns(self.program_array_ns, bytes),
            (None, Some(nor)) => nor.program_ns(self.program_array_ns, bytes),
        }
    }

    /// An erase of a block.
    #[inline]
    pub fn erase_ns(&self) -> Ns {
        match (&self.spi, &self.nor) {
            (None, None) => self.erase_array_ns,
            (Some(spi), _) => spi.row_ns() + spi.erase_polled_ns(self.erase_array_ns),
            (None, Some(nor)) => nor.erase_ns(self.erase_array_ns),
        }
    }

    /// The part of a page's bus time for `length` bytes.
    #[inline]
    pub fn share(&self, whole: Ns, length: u32) -> Ns {
        if self.transfer == Transfer::Page {
            return whole;
        }
        let page = self.page_bytes + self.oob_bytes;
        if length == page {
            return whole;
        }
        Ns(whole.0 * u64::from(length) / u64::from(page))
    }
}

/// How the driver checks and corrects reads, which decides the cost of a partial read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EccKind {
    /// In the controller: a partial read fetches the whole page into the driver's page buffer.
    HardwarePage,
    /// By the processor over steps: a partial read fetches only the steps it touches, and then
    /// their ECC bytes after a column change. The page buffer is never filled (nand_base.c
    /// nand_read_subpage, NAND_HAS_SUBPAGE_READ). Pages of 512 bytes are read as with hardware ECC.
    SoftwareSubpage,
    /// None (NAND_ECC_ENGINE_TYPE_NONE): reads as with hardware ECC, but the OOB is transferred
    /// only on request.
    #[serde(rename = "none")]
    NoEcc,
    /// In the chip, which is SPI-NAND: it corrects a page when it reads it into the page register.
    OnDie,
}

/// `[ecc]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EccProfile {
    /// How and over what it is computed.
    pub kind: EccKind,
    /// Bytes that one ECC covers.
    pub step_bytes: u32,
    /// Wrong bits of a step that it corrects; 0 without ECC.
    pub strength_bits: u32,
}

/// `[partition]`: the part of the chip that the file system uses.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionProfile {
    /// First block of the partition.
    pub first_block: u32,
    /// Blocks in the partition.
    pub blocks: u32,
}

/// `[software]`: processor time, layer by layer. Calibrated once per board on cases of their own
/// (docs/models/costs.md).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwareCosts {
    /// A read or write system call: entry, fd, exit.
    pub syscall_ns: Ns,
    /// From a timer's interrupt to the task that it wakes (try_to_wake_up, schedule).
    pub wake_ns: Ns,
    /// Opening a file besides its system call.
    pub open_ns: Ns,
    /// Closing a file besides its system call.
    pub close_ns: Ns,
    /// The walk along a path: of stat, chmod, readlink, xattr, link's old name.
    pub path_ns: Ns,
    /// A folder on that path.
    pub path_folder_ns: Ns,
    /// Copying an inode's attributes to the program (cp_new_stat64).
    pub stat_ns: Ns,
    /// Changing an inode's attributes (notify_change), besides what the file system writes.
    pub attribute_ns: Ns,
    /// Listing a folder, besides its system calls, names and flash reads.
    pub list_ns: Ns,
    /// Mapping a file besides the system call (do_mmap).
    pub map_ns: Ns,
    /// Ending a mapping besides the system call (do_munmap).
    pub unmap_ns: Ns,
    /// A page that was mapped there (zap_present_pte).
    pub unmap_page_ns: Ns,
    /// A page fault besides entry (a system call's) and finding the page (handle_mm_fault).
    pub fault_ns: Ns,
    /// A cached page that a fault maps besides its own (filemap_map_pages).
    pub fault_page_ns: Ns,
    /// Creating a name, besides the cost of flash and nodes.
    pub name_add_ns: Ns,
    /// Removing a name, likewise.
    pub name_remove_ns: Ns,
    /// Renaming, likewise.
    pub name_move_ns: Ns,
    /// Generating a byte to be written (the agent's data_fill), in no request's time.
    pub fill_byte_ps: u64,
    /// A write call besides the system call and its pages.
    pub write_ns: Ns,
    /// Finding one page in the page cache (filemap_get_pages).
    pub page_find_ns: Ns,
    /// Copying one byte to the program (copy_page_to_iter).
    pub copy_to_user_byte_ps: u64,
    /// Copying one byte from the program (copy_page_from_iter_atomic).
    pub copy_from_user_byte_ps: u64,
    /// Adding a page to the page cache: allocation, insertion, read-ahead.
    pub page_add_ns: Ns,
    /// One page of a write, besides its copy and the file system's write_begin and write_end.
    pub page_write_ns: Ns,
    /// Making a clean cached page dirty.
    pub page_dirty_ns: Ns,
    /// Dropping a page from the cache at a truncation or deletion.
    pub page_drop_ns: Ns,
    /// Dropping an inode and its name from memory at an unmount.
    pub inode_drop_ns: Ns,
    /// Passing an empty slot of the cache in a search for pages to drop (xas_find).
    pub page_slot_ps: u64,
    /// Changing a file's size (do_truncate, notify_change), besides the call, pages and nodes.
    pub truncate_ns: Ns,
    /// sync, besides the call and the writes.
    pub sync_ns: Ns,
    /// Updating the inode's time at a write, once a second (file_update_time).
    pub time_update_ns: Ns,
    /// Writing 3 into drop_caches: it calls every shrinker several times.
    pub drop_caches_ns: Ns,
    /// A call into MTD (mtd_read, mtd_write).
    pub mtd_call_ns: Ns,
    /// A read command besides chip time.
    pub nand_read_ns: Ns,
    /// A program command besides chip time.
    pub nand_program_ns: Ns,
    /// An erase command besides chip time.
    pub nand_erase_ns: Ns,
    /// Moving one byte between controller and memory.
    pub nand_byte_ps: u64,
    /// Copying one byte from the page buffer to the caller (`use_bounce_buf`).
    pub nand_bounce_byte_ps: u64,
    /// One operation of spi-mem besides the bus (spi_mem_exec_op, spi_mem_dirmap_read).
    #[serde(default)]
    pub spi_operation_ns: Ns,
    /// Calculating one ECC step in software.
    pub ecc_step_ns: Ns,
    /// Finding, reading and checking one node, besides its bytes.
    pub jffs2_node_ns: Ns,
    /// Reading an inode (jffs2_iget), besides its nodes.
    pub jffs2_inode_ns: Ns,
    /// CRC and copy of one node byte.
    pub jffs2_byte_ps: u64,
    /// Writing one data node, besides its bytes and compression.
    pub jffs2_write_node_ns: Ns,
    /// CRC and copies of one data byte of a written node.
    pub jffs2_write_byte_ps: u64,
    /// Writing any node: space, header, checksums, lists.
    pub jffs2_add_node_ns: Ns,
    /// One node that becomes obsolete at a truncation or deletion.
    pub jffs2_obsolete_ns: Ns,
    /// Checking one byte of an erased block.
    pub jffs2_erased_byte_ps: u64,
    /// One pass of garbage collection, besides the nodes it reads and writes.
    pub jffs2_gc_pass_ns: Ns,
    /// A name that a listing returns (jffs2_readdir).
    pub jffs2_listed_ns: Ns,
    /// Detaching and attaching, besides the reads.
    pub ubi_attach_ns: Ns,
    /// A write to a logical block, besides MTD's cost.
    pub ubi_write_ns: Ns,
    /// Looking up and reading one data node, besides its bytes.
    pub ubifs_node_ns: Ns,
    /// Checking one node of a bulk-read and finding the next one (validate_data_node).
    pub ubifs_bulk_node_ns: Ns,
    /// Zeroing a page without a node, in a hole or beyond the end (do_readpage).
    pub ubifs_hole_ns: Ns,
    /// Looking up and reading the node of a name or an inode, without a page to fill.
    pub ubifs_inode_ns: Ns,
    /// Reading one index node into a znode.
    pub ubifs_znode_ns: Ns,
    /// Removing one entry of the index in a truncation or deletion.
    pub ubifs_leaf_drop_ns: Ns,
    /// CRC and copy of one node byte.
    pub ubifs_byte_ps: u64,
    /// Putting one node or group of nodes into a write-buffer, besides its bytes.
    pub ubifs_write_node_ns: Ns,
    /// A commit, besides its index nodes.
    pub ubifs_commit_ns: Ns,
    /// CRC and copies of one data byte of a written node.
    pub ubifs_write_byte_ps: u64,
    /// The budget of one page that is about to be written (ubifs_write_begin).
    pub ubifs_budget_ns: Ns,
    /// A name that a listing returns (ubifs_readdir, ubifs_tnc_next_ent).
    pub ubifs_listed_ns: Ns,
    /// One chunk read or written: tnode walk, tags, copy.
    pub yaffs2_chunk_ns: Ns,
    /// Writing one chunk, besides the cost of any chunk.
    pub yaffs2_write_ns: Ns,
    /// Building an object's header, besides its chunk.
    pub yaffs2_header_ns: Ns,
    /// Creating an object's inode (yfs_iget).
    pub yaffs2_inode_ns: Ns,
    /// Deleting one chunk at a truncation or deletion.
    pub yaffs2_delete_ns: Ns,
    /// One byte of a checkpoint, written or read.
    pub yaffs2_checkpoint_byte_ps: u64,
    /// Passing one directory entry in a search for a name (yaffs_find_by_name).
    pub yaffs2_entry_ns: Ns,
    /// A name that a listing returns (yaffs_readdir).
    pub yaffs2_listed_ns: Ns,
    /// Unmounting and mounting, besides the reads.
    pub yaffs2_mount_ns: Ns,
    /// Creating one object at a mount.
    pub yaffs2_object_ns: Ns,
    /// Checking one byte of an erased page at the first mount (memchr_inv), in picoseconds.
    pub yaffs2_erased_byte_ps: u64,
    /// Overlayfs: opening the file below as well (ovl_open).
    #[serde(default)]
    pub overlay_open_ns: Ns,
    /// Overlayfs: closing it (ovl_release).
    #[serde(default)]
    pub overlay_close_ns: Ns,
    /// Overlayfs: a read of the file below (ovl_read_iter).
    #[serde(default)]
    pub overlay_read_ns: Ns,
    /// Overlayfs: a write to it (ovl_write_iter).
    #[serde(default)]
    pub overlay_write_ns: Ns,
    /// Overlayfs: a call about an inode or a listing, which asks the inode below.
    #[serde(default)]
    pub overlay_inode_ns: Ns,
    /// Overlayfs: looking a name up (ovl_lookup), besides what the file system does.
    #[serde(default)]
    pub overlay_lookup_ns: Ns,
    /// Overlayfs: making a name (ovl_create_or_link), likewise.
    #[serde(default)]
    pub overlay_create_ns: Ns,
    /// Overlayfs: removing a name (ovl_do_remove), likewise.
    #[serde(default)]
    pub overlay_remove_ns: Ns,
    /// Overlayfs: renaming (ovl_rename), likewise.
    #[serde(default)]
    pub overlay_rename_ns: Ns,
    /// squashfs; none where nothing is priced.
    #[serde(default)]
    pub squashfs: Option<SquashfsCosts>,
    /// One step of a `compute` operation.
    pub compute_step_ps: u64,
    /// Compressing and decompressing, in any file system.
    #[serde(default)]
    pub compressors: CompressorCosts,
    /// The resolution of the scheduler's clock: 1 ns, or a tick on user-mode Linux.
    #[serde(default = "nanosecond")]
    pub sched_clock_ns: u64,
    /// The agent's reading of the clock before an operation, and after it, where code takes no time
    /// but this does (user-mode Linux). `syscall_ns` contains both elsewhere.
    #[serde(default)]
    pub clock_read_ns: Ns,
    /// sizeof(void *) of the kernel, which decides the size of some structures on flash (a
    /// checkpoint of YAFFS2).
    #[serde(default = "word")]
    pub pointer_bytes: u64,
}

impl SoftwareCosts {
    /// JFFS2: the processor time of a data node of so many bytes, after the compressors' `work`.
    pub fn jffs2_write_ns(&self, node_bytes: u32, work: &Work) -> Priced {
        let bytes = Ns::from_ps(u64::from(node_bytes), self.jffs2_write_byte_ps);
        Ok(self.jffs2_write_node_ns + bytes + self.compressors.time(work)?)
    }

    /// UBIFS: the processor time of a data node's bytes.
    pub fn ubifs_write_ns(&self, data: &UbifsData) -> Priced {
        let bytes = Ns::from_ps(data.node_bytes as u64, self.ubifs_write_byte_ps);
        Ok(bytes + self.compressors.time(&data.work)?)
    }
}

fn nanosecond() -> u64 {
    1
}

fn word() -> u64 {
    4
}

/// `[memory]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryProfile {
    /// Free memory after boot: the most that the page cache can use.
    pub free_kib: u64,
}

/// A board: everything but the kernel.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardProfile {
    /// The NAND chip.
    pub chip: ChipProfile,
    /// Its driver's ECC.
    pub ecc: EccProfile,
    /// The partition.
    pub partition: PartitionProfile,
    /// Its memory.
    pub memory: MemoryProfile,
    /// Processor costs.
    pub software: SoftwareCosts,
}

/// Bounds of a chip, as python/flashbed/stack/bounds.py has them.
const PAGE_BYTES: std::ops::RangeInclusive<u32> = 256..=65_536;
const OOB_BYTES: std::ops::RangeInclusive<u32> = 8..=16_384;
/// NOR's.
const NO_OOB_BYTES: std::ops::RangeInclusive<u32> = 0..=0;
const PAGES_PER_BLOCK: std::ops::RangeInclusive<u32> = 1..=1_024;
const BLOCKS: std::ops::RangeInclusive<u32> = 1..=65_536;
const PAGES_MAX: u64 = 1 << 23;
const SMALL_PAGE_BYTES: u32 = 512;
const STEP_NS_MAX: u64 = 1_000_000_000;
const NOR_ERASE_NS_MAX: u64 = 2_000_000_000;
const SPI_HZ: std::ops::RangeInclusive<u64> = 100_000..=1_000_000_000;
/// Of a step of software ECC.
const HAMMING_CODE_BYTES: u32 = 3;
/// OOB size, and the bytes that the kernel keeps there for Hamming codes (drivers/mtd/nand/ecc.c).
const HAMMING_ROOM_BYTES: [(u32, u32); 4] = [(8, 3), (16, 6), (64, 24), (128, 48)];

impl BoardProfile {
    /// The board as a kernel drives it.
    pub fn driven_by(mut self, kernel: &KernelFacts) -> BoardProfile {
        if !kernel.cache_reads {
            self.chip.cache_read_ns = None;
        }
        if let Some(spi) = &mut self.chip.spi {
            spi.polls_sleep = kernel.spi_polls_sleep;
            spi.continuous_reads &= kernel.continuous_reads;
        }
        self
    }

    /// Refuses a chip or a partition that cannot be, with what is wrong with it.
    ///
    /// The simulator relies on it. Python checks the keys of a profile's file and asks this for the
    /// rest, as the playground does for what its address says.
    pub fn check(&self) -> Result<(), String> {
        let chip = &self.chip;
        let is_nor = chip.nor.is_some();
        for (name, value, bounds) in [
            ("page_bytes", chip.page_bytes, &PAGE_BYTES),
            ("oob_bytes", chip.oob_bytes, if is_nor { &NO_OOB_BYTES } else { &OOB_BYTES }),
            ("pages_per_block", chip.pages_per_block, &PAGES_PER_BLOCK),
            ("blocks", chip.blocks, &BLOCKS),
        ] {
            if !bounds.contains(&value) {
                let (least, most) = (bounds.start(), bounds.end());
                return Err(format!("chip.{name}: {value} is not from {least} to {most}"));
            }
        }
        for (name, value) in
            [("page_bytes", chip.page_bytes), ("pages_per_block", chip.pages_per_block)]
        {
            if !value.is_power_of_two() {
                return Err(format!("chip.{name}: {value} is not a power of two"));
            }
        }
        let pages = u64::from(chip.pages_per_block) * u64::from(chip.blocks);
        if pages > PAGES_MAX {
            return Err(format!("chip.blocks: {pages} pages, {PAGES_MAX} at most"));
        }
        if chip.oob_bytes > chip.page_bytes {
            return Err(format!("chip.oob_bytes: {} is more than a page", chip.oob_bytes));
        }
        self.check_times()?;
        self.check_spi()?;
        self.check_nor()?;
        let end = u64::from(self.partition.first_block) + u64::from(self.partition.blocks);
        if self.partition.blocks == 0 || end > u64::from(chip.blocks) {
            return Err(format!(
                "partition.blocks: the partition ends at block {end}, the chip at {} (chip.blocks)",
                chip.blocks
            ));
        }
        self.check_ecc()
    }

    /// What drivers/mtd/nand/raw/nand_base.c checks when it scans the chip.
    fn check_ecc(&self) -> Result<(), String> {
        let (page, oob, step) = (self.chip.page_bytes, self.chip.oob_bytes, self.ecc.step_bytes);
        if step == 0 || page % step != 0 {
            return Err(format!(
                "ecc.step_bytes: a page of {page} bytes is not whole steps of {step}"
            ));
        }
        if self.ecc.kind == EccKind::NoEcc && step != page {
            return Err(format!(
                "ecc.step_bytes: without ECC a page of {page} bytes is the only step"
            ));
        }
        if self.ecc.kind == EccKind::SoftwareSubpage {
            let code = page / step * HAMMING_CODE_BYTES;
            let room = HAMMING_ROOM_BYTES.iter().find(|(of, _)| *of == oob);
            let room = room.map_or(0, |&(_, bytes)| bytes);
            if code > room {
                return Err(format!(
                    "chip.oob_bytes: {oob} bytes have room for {room} of software ECC, a page has \
                     {code}"
                ));
            }
        }
        Ok(())
    }

    fn check_nor(&self) -> Result<(), String> {
        let Some(nor) = &self.chip.nor else { return Ok(()) };
        if self.chip.spi.is_some() || self.ecc.kind != EccKind::NoEcc {
            return Err("nor: SPI-NOR has no table [spi], and no ECC".to_owned());
        }
        if ![1, 2, 4].contains(&nor.read_lines) {
            return Err("nor.lines: lines are 1, 2 or 4".to_owned());
        }
        if !SPI_HZ.contains(&nor.clock_hz) || nor.op_ns.0 > STEP_NS_MAX {
            return Err(format!("nor.clock_hz: {} is not from 10^5 to 10^9", nor.clock_hz));
        }
        Ok(())
    }

    fn check_spi(&self) -> Result<(), String> {
        let on_die = self.ecc.kind == EccKind::OnDie;
        let Some(spi) = &self.chip.spi else {
            let why = "ecc.kind: only SPI-NAND, which has a table [spi], corrects on-die";
            return if on_die { Err(why.to_owned()) } else { Ok(()) };
        };
        if !on_die {
            return Err("ecc.kind: SPI-NAND, which has a table [spi], corrects on-die".to_owned());
        }
        let lines = [
            spi.read_address_lines,
            spi.read_data_lines,
            spi.program_address_lines,
            spi.program_data_lines,
        ];
        if lines.iter().any(|lines| ![1, 2, 4, 8].contains(lines)) {
            return Err("spi.read_data_lines: lines are 1, 2, 4 or 8".to_owned());
        }
        if spi.dtr && lines.iter().any(|lines| *lines != 8) {
            return Err("spi.dtr: octal DTR has 8 lines everywhere".to_owned());
        }
        if !SPI_HZ.contains(&spi.clock_hz) || spi.op_ns.0 > STEP_NS_MAX {
            return Err(format!("spi.clock_hz: {} is not from 10^5 to 10^9", spi.clock_hz));
        }
        if spi.read_address_bytes > 8 || spi.read_dummy_bytes > 64 {
            return Err(format!("spi.read_dummy_bytes: {} is too many", spi.read_dummy_bytes));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), String> {
        let chip = &self.chip;
        let (read_least, erase_most) = match chip.nor {
            None => (1, STEP_NS_MAX),
            Some(_) => (0, NOR_ERASE_NS_MAX),
        };
        for (name, time, least, most) in [
            ("read_array_ns", chip.read_array_ns, read_least, STEP_NS_MAX),
            ("program_array_ns", chip.program_array_ns, 1, STEP_NS_MAX),
            ("erase_array_ns", chip.erase_array_ns, 1, erase_most),
            ("bus_read_ns", chip.bus_read_ns, 0, STEP_NS_MAX),
            ("bus_program_ns", chip.bus_program_ns, 0, STEP_NS_MAX),
            ("column_change_ns", chip.column_change_ns, 0, STEP_NS_MAX),
        ] {
            if time.0 < least || time.0 > most {
                return Err(format!("chip.{name}: {} is not from {least} to {most}", time.0));
            }
        }
        self.check_cache_reads()
    }

    fn check_cache_reads(&self) -> Result<(), String> {
        let Some(time) = self.chip.cache_read_ns else { return Ok(()) };
        if time.0 > STEP_NS_MAX {
            return Err(format!("chip.cache_read_ns: {} is not from 0 to 10^9", time.0));
        }
        if self.chip.spi.is_some() {
            return Err("chip.cache_read_ns: SPI-NAND has continuous reads ([spi])".to_owned());
        }
        if self.chip.transfer == Transfer::Page {
            let why = "only a chip that transfers bytes has sequential cache reads";
            return Err(format!("chip.cache_read_ns: {why}, nandsim has none"));
        }
        if self.chip.page_bytes <= SMALL_PAGE_BYTES {
            return Err(format!("chip.cache_read_ns: pages of {SMALL_PAGE_BYTES} have none"));
        }
        Ok(())
    }
}
