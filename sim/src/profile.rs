//! Boards and kernels as the simulator needs them: numbers only. Python reads boards/*.toml, checks
//! that every key is there and names its source, and hands over the same tables as JSON; a key that
//! is missing or unknown here is a bug of ours and refused by serde.

use crate::compress::work::{CompressorCosts, Priced, Work};
use crate::compress::UbifsData;
use crate::units::Ns;
use serde::Deserialize;

/// What of a kernel's configuration every layer may ask for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelFacts {
    /// CONFIG_HZ.
    pub ticks_per_second: u64,
    /// CONFIG_SMP: what several processors count is counted in batches.
    pub smp: bool,
    /// How RCU learns that every task has been scheduled.
    pub rcu: Rcu,
    /// CONFIG_FAIR_GROUP_SCHED: tasks are scheduled in groups.
    pub task_groups: bool,
    /// Whether an idle processor still has the tick after it became idle.
    pub first_idle_tick: bool,
    /// How long an idle processor sleeps at most.
    pub longest_idle_ms: u64,
}

#[cfg(test)]
impl KernelFacts {
    /// Debian's 6.1, as unit tests need it.
    pub const DEBIAN: KernelFacts = KernelFacts {
        ticks_per_second: 250,
        smp: true,
        rcu: Rcu::Tree,
        task_groups: true,
        first_idle_tick: false,
        longest_idle_ms: 512,
    };
    /// The same as user-mode Linux.
    pub const USER_MODE: KernelFacts = KernelFacts {
        smp: false,
        rcu: Rcu::Tiny,
        task_groups: false,
        first_idle_tick: true,
        longest_idle_ms: 4_296,
        ..KernelFacts::DEBIAN
    };
}

/// Implementations of read-copy-update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rcu {
    /// kernel/rcu/tiny.c, for one processor: while a callback waits, each tick has the running task
    /// rescheduled (rcu_sched_clock_irq).
    Tiny,
    /// kernel/rcu/tree.c: a thread begins and ends grace periods (rcu_gp_kthread).
    Tree,
    /// Those before 3.7: softirqs begin and end grace periods, and no task is rescheduled.
    Softirqs,
}

/// What the bus moves for a read that asks for part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transfer {
    /// Only the bytes asked for, as a real chip does: the bus time of a page is shared out by byte.
    Bytes,
    /// The time of a whole page, whatever was asked for, as nandsim does.
    Page,
}

/// `[chip]`: geometry and datasheet timing, array time and bus time apart.
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
    /// How much of `bus_read_ns` a partial read pays.
    pub transfer: Transfer,
    /// Moving a whole page, OOB included, from the register to the controller.
    pub bus_read_ns: Ns,
    /// Moving a whole page, OOB included, to the register.
    pub bus_program_ns: Ns,
    /// Changing the column within the page register (random data output).
    pub column_change_ns: Ns,
}

/// How the driver checks and corrects what it reads, which decides what a partial read costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EccKind {
    /// In the controller: a partial read fetches the whole page into the driver's page buffer.
    HardwarePage,
    /// By the CPU over steps: a partial read fetches only the steps it touches, and then their ECC
    /// bytes with a change of column; the page buffer is never filled (nand_base.c
    /// nand_read_subpage, NAND_HAS_SUBPAGE_READ). Pages of 512 bytes are read as in hardware.
    SoftwareSubpage,
    /// Not at all (NAND_ECC_ENGINE_TYPE_NONE): reads as in hardware, but the OOB is moved only when
    /// it is asked for.
    #[serde(rename = "none")]
    NoEcc,
}

/// `[ecc]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EccProfile {
    /// Where and over what.
    pub kind: EccKind,
    /// Bytes one ECC covers.
    pub step_bytes: u32,
    /// Wrong bits of a step that it puts right; none without ECC.
    pub strength_bits: u32,
}

/// `[partition]`: the part of the chip the file system lives on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionProfile {
    /// First block of the partition.
    pub first_block: u32,
    /// Blocks in the partition.
    pub blocks: u32,
}

/// `[software]`: what the CPU needs, layer by layer. Calibrated once per board on cases of their
/// own (docs/calibration.md).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwareCosts {
    /// A read or write system call: entry, fd, exit.
    pub syscall_ns: Ns,
    /// From the interrupt of a timer to the program that it wakes (try_to_wake_up, schedule), or to
    /// a thread.
    pub wake_ns: Ns,
    /// Opening a file besides its system call: the walk along its path, the open file.
    pub open_ns: Ns,
    /// A name made, besides what the flash and the nodes cost.
    pub name_add_ns: Ns,
    /// A name removed, likewise.
    pub name_remove_ns: Ns,
    /// A name changed, likewise.
    pub name_move_ns: Ns,
    /// Making a byte that is written, before the call, in picoseconds: the program's own work (the
    /// agent's data_fill), in no request's time.
    pub fill_byte_ps: u64,
    /// A write call besides any call and its pages.
    pub write_ns: Ns,
    /// Finding one page in the page cache (filemap_get_pages).
    pub page_find_ns: Ns,
    /// Copying one byte to the program (copy_page_to_iter), in picoseconds.
    pub copy_to_user_byte_ps: u64,
    /// Copying one byte from the program (copy_page_from_iter_atomic), in picoseconds.
    pub copy_from_user_byte_ps: u64,
    /// Adding a page to the page cache: allocation, insertion, read-ahead's bookkeeping.
    pub page_add_ns: Ns,
    /// One page write besides its copy: write_begin and write_end, without what the file system
    /// does in them.
    pub page_write_ns: Ns,
    /// A page of the cache that was clean becomes dirty.
    pub page_dirty_ns: Ns,
    /// Taking a page out of the cache as its file ends before it or is gone.
    pub page_drop_ns: Ns,
    /// Taking an inode and its name out of memory as the file system is unmounted.
    pub inode_drop_ns: Ns,
    /// A slot of the cache's array without a page that is passed while pages are looked for that go
    /// (xas_find), in picoseconds.
    pub page_slot_ps: u64,
    /// Giving a file another size (do_truncate, notify_change), besides the call, pages and nodes.
    pub truncate_ns: Ns,
    /// sync, besides the call and what is written: asking each mounted file system, several times.
    pub sync_ns: Ns,
    /// Noting the time of a write in the inode, once a second (file_update_time).
    pub time_update_ns: Ns,
    /// Writing 3 into drop_caches: asking every shrinker, several times, whatever there is to free.
    pub drop_caches_ns: Ns,
    /// A call into MTD (mtd_read, mtd_write): partition offset, chip lock.
    pub mtd_call_ns: Ns,
    /// A read command besides chip time.
    pub nand_read_ns: Ns,
    /// A program command besides chip time.
    pub nand_program_ns: Ns,
    /// An erase command besides chip time.
    pub nand_erase_ns: Ns,
    /// Moving one byte between controller and memory, in picoseconds.
    pub nand_byte_ps: u64,
    /// Copying one byte from the page buffer to the caller (`use_bounce_buf` of nand_do_read_ops),
    /// in picoseconds: of parts of pages, and of pages that the buffer already holds.
    pub nand_bounce_byte_ps: u64,
    /// Calculating one ECC step in software.
    pub ecc_step_ns: Ns,
    /// JFFS2: finding, reading and checking one node, besides its bytes.
    pub jffs2_node_ns: Ns,
    /// JFFS2: reading in an inode (jffs2_iget), besides its nodes.
    pub jffs2_inode_ns: Ns,
    /// JFFS2: CRC and copy of one node byte, in picoseconds.
    pub jffs2_byte_ps: u64,
    /// JFFS2: one data node written, besides its bytes and what compressors do.
    pub jffs2_write_node_ns: Ns,
    /// JFFS2: CRC and copies of one byte of data in a node that is written, in picoseconds.
    pub jffs2_write_byte_ps: u64,
    /// JFFS2: a node that is written, whatever is in it: space for it, its header and checksums,
    /// its place in the lists.
    pub jffs2_add_node_ns: Ns,
    /// JFFS2: one node that nothing refers to any more as a file becomes shorter or is gone.
    pub jffs2_obsolete_ns: Ns,
    /// JFFS2: a byte of an erased block that is looked at, in picoseconds.
    pub jffs2_erased_byte_ps: u64,
    /// JFFS2: one pass of garbage collection, besides the nodes it reads and writes.
    pub jffs2_gc_pass_ns: Ns,
    /// UBI: detaching and attaching, besides the reads: devices, a thread. As many instructions for
    /// 200 blocks as for 400.
    pub ubi_attach_ns: Ns,
    /// UBI: a write to a logical block, besides MTD's.
    pub ubi_write_ns: Ns,
    /// UBIFS: looking up and reading one data node, besides its bytes.
    pub ubifs_node_ns: Ns,
    /// UBIFS: checking one node of a bulk-read and finding the next one (validate_data_node).
    pub ubifs_bulk_node_ns: Ns,
    /// UBIFS: filling a page without a node with zeroes, in a hole or past the end (do_readpage).
    pub ubifs_hole_ns: Ns,
    /// UBIFS: looking up and reading the node of a name or an inode: no page to fill.
    pub ubifs_inode_ns: Ns,
    /// UBIFS: reading one index node into a znode.
    pub ubifs_znode_ns: Ns,
    /// UBIFS: one entry that leaves the index with others, as a file becomes shorter or is gone.
    pub ubifs_leaf_drop_ns: Ns,
    /// UBIFS: CRC and copy of one node byte, in picoseconds.
    pub ubifs_byte_ps: u64,
    /// UBIFS: one node, or group of nodes, put into a write-buffer, besides its bytes.
    pub ubifs_write_node_ns: Ns,
    /// UBIFS: a commit, besides its index nodes: log, LPT and master are made and summed up.
    pub ubifs_commit_ns: Ns,
    /// UBIFS: one byte of data in a node that is written, in picoseconds: CRC and copies.
    pub ubifs_write_byte_ps: u64,
    /// UBIFS: one page that is about to be written: its budget (ubifs_write_begin).
    pub ubifs_budget_ns: Ns,
    /// YAFFS2: one chunk read or written: tnode walk, tags, copy.
    pub yaffs2_chunk_ns: Ns,
    /// YAFFS2: one chunk written, besides what any chunk costs: collection is asked for, a chunk
    /// allocated, the file's tree changed.
    pub yaffs2_write_ns: Ns,
    /// YAFFS2: making the header of an object, which is a chunk besides.
    pub yaffs2_header_ns: Ns,
    /// YAFFS2: making an inode of an object (yfs_iget).
    pub yaffs2_inode_ns: Ns,
    /// YAFFS2: one chunk that a file does without as it becomes shorter or is gone.
    pub yaffs2_delete_ns: Ns,
    /// YAFFS2: one byte of a checkpoint, written or read, in picoseconds.
    pub yaffs2_checkpoint_byte_ps: u64,
    /// YAFFS2: an entry of a directory that is passed on the way to a name (yaffs_find_by_name).
    pub yaffs2_entry_ns: Ns,
    /// YAFFS2: mounting, and unmounting before, besides what is read: memory, a thread.
    pub yaffs2_mount_ns: Ns,
    /// YAFFS2: an object that a mount makes.
    pub yaffs2_object_ns: Ns,
    /// YAFFS2: a byte of an erased page that the first mount looks at (memchr_inv), in picoseconds.
    pub yaffs2_erased_byte_ps: u64,
    /// One step of a `compute` operation, in picoseconds.
    pub compute_step_ps: u64,
    /// What compressing and unpacking costs, whichever file system does it.
    #[serde(default)]
    pub compressors: CompressorCosts,
    /// What the scheduler's clock counts in: nanoseconds but where only ticks are counted
    /// (user-mode Linux).
    #[serde(default = "nanosecond")]
    pub sched_clock_ns: u64,
    /// sizeof(void *) of the kernel: how much of some structures there is to write (a checkpoint of
    /// YAFFS2).
    #[serde(default = "word")]
    pub pointer_bytes: u64,
}

impl SoftwareCosts {
    /// JFFS2: what the CPU needs for a data node of so many bytes, after the compressors did that.
    pub fn jffs2_write_ns(&self, node_bytes: u32, work: &Work) -> Priced {
        let bytes = Ns::from_ps(u64::from(node_bytes), self.jffs2_write_byte_ps);
        Ok(self.jffs2_write_node_ns + bytes + self.compressors.time(work)?)
    }

    /// UBIFS: what the CPU needs for the bytes of a data node.
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
    /// What is free when the kernel has started: what the page cache may become.
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
    /// Where the file system lives.
    pub partition: PartitionProfile,
    /// Its memory.
    pub memory: MemoryProfile,
    /// What the CPU needs.
    pub software: SoftwareCosts,
}
