//! Boards and kernels as the simulator needs them: numbers only. Python reads boards/*.toml, checks
//! that every key is there and names its source, and hands over the same tables as JSON; a key that
//! is missing or unknown here is a bug of ours and refused by serde.

use crate::compress::{LzoWork, UbifsData, ZstdWork};
use crate::units::Ns;
use serde::Deserialize;

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

/// `[software]`: what the CPU needs, layer by layer. Calibrated once per board on cases of their own (docs/calibration.md).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwareCosts {
    /// A read or write system call: entry, fd, exit.
    pub syscall_ns: Ns,
    /// From the interrupt of a timer to the program that it wakes (try_to_wake_up, schedule), or to a thread.
    pub wake_ns: Ns,
    /// Opening a file besides its system call: the walk along its path, the open file.
    pub open_ns: Ns,
    /// A name made, besides what the flash and the nodes cost.
    pub name_add_ns: Ns,
    /// A name removed, likewise.
    pub name_remove_ns: Ns,
    /// A name changed, likewise.
    pub name_move_ns: Ns,
    /// Making a byte that is written, before the call, in picoseconds: the program's own work (the agent's data_fill), in no
    /// request's time.
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
    /// A slot of the cache's array without a page that is passed while pages are looked for that go (xas_find), in picoseconds.
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
    /// Calculating one ECC step in software.
    pub ecc_step_ns: Ns,
    /// JFFS2: finding, reading and checking one node, besides its bytes.
    pub jffs2_node_ns: Ns,
    /// JFFS2: reading in an inode (jffs2_iget), besides its nodes.
    pub jffs2_inode_ns: Ns,
    /// JFFS2: CRC and copy of one node byte, in picoseconds.
    pub jffs2_byte_ps: u64,
    /// JFFS2: one data node written, besides its bytes: setting up the compressors.
    pub jffs2_write_node_ns: Ns,
    /// JFFS2: compressing (or trying to), CRC and copy of one byte written, in picoseconds.
    pub jffs2_write_byte_ps: u64,
    /// JFFS2: one byte value that comes up in the data of a node: a leaf of deflate's trees.
    pub jffs2_write_symbol_ns: Ns,
    /// JFFS2: one data node that the first compressor has made smaller, besides its bytes.
    pub jffs2_packed_node_ns: Ns,
    /// JFFS2: one byte that is left in such a node, in picoseconds: literals, CRC and copy.
    pub jffs2_packed_byte_ps: u64,
    /// JFFS2: looking for a match at one position (LZO).
    pub jffs2_search_ns: Ns,
    /// JFFS2: a byte in a match, in picoseconds.
    pub jffs2_matched_byte_ps: u64,
    /// JFFS2: unpacking one data node, besides its bytes.
    pub jffs2_unpack_ns: Ns,
    /// JFFS2: a node that is written, whatever is in it: space for it, its header and checksums, its place in the lists.
    pub jffs2_add_node_ns: Ns,
    /// JFFS2: one node that nothing refers to any more as a file becomes shorter or is gone.
    pub jffs2_obsolete_ns: Ns,
    /// JFFS2: a byte of an erased block that is looked at, in picoseconds.
    pub jffs2_erased_byte_ps: u64,
    /// JFFS2: one pass of garbage collection, besides the nodes it reads and writes.
    pub jffs2_gc_pass_ns: Ns,
    /// UBI: detaching and attaching, besides the reads: devices, a thread. As many instructions for 200 blocks as for 400.
    pub ubi_attach_ns: Ns,
    /// UBI: a write to a logical block, besides MTD's.
    pub ubi_write_ns: Ns,
    /// UBIFS: looking up and reading one data node, besides its bytes.
    pub ubifs_node_ns: Ns,
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
    /// UBIFS: compressing a data node or trying to: setting zstd up.
    pub ubifs_compress_ns: Ns,
    /// UBIFS: looking for a match at one position.
    pub ubifs_search_ns: Ns,
    /// UBIFS: making a Huffman code for literals.
    pub ubifs_huffman_ns: Ns,
    /// UBIFS: one literal put into that code, in picoseconds.
    pub ubifs_huffman_byte_ps: u64,
    /// UBIFS: one node that is smaller by compressing: codes for its sequences.
    pub ubifs_packed_node_ns: Ns,
    /// UBIFS: one byte of data in a node that is written, in picoseconds: CRC and copies.
    pub ubifs_write_byte_ps: u64,
    /// UBIFS: unpacking one data node, besides its bytes.
    pub ubifs_unpack_ns: Ns,
    /// UBIFS: one page that is about to be written: its budget (ubifs_write_begin).
    pub ubifs_budget_ns: Ns,
    /// YAFFS2: one chunk read or written: tnode walk, tags, copy.
    pub yaffs2_chunk_ns: Ns,
    /// YAFFS2: one chunk written, besides what any chunk costs: collection is asked for, a chunk allocated, the file's tree changed.
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
    /// What the scheduler's clock counts in: nanoseconds but where only ticks are counted
    /// (user-mode Linux).
    #[serde(default = "nanosecond")]
    pub sched_clock_ns: u64,
    /// sizeof(void *) of the kernel: how much of some structures there is to write (a checkpoint of YAFFS2).
    #[serde(default = "word")]
    pub pointer_bytes: u64,
}

impl SoftwareCosts {
    /// JFFS2: what the CPU needs for a data node of so many bytes that cannot be compressed.
    ///
    /// Deflate is not tried on what leaves no room for a stream's end (compr_zlib.c STREAM_END_SPACE),
    /// and it is what costs.
    pub fn jffs2_write_ns(&self, data_bytes: u32) -> Ns {
        const STREAM_END_SPACE: u32 = 12;
        if data_bytes <= STREAM_END_SPACE {
            return Ns::ZERO;
        }
        let bytes = Ns::from_ps(u64::from(data_bytes), self.jffs2_write_byte_ps);
        let symbols = Ns(self.jffs2_write_symbol_ns.0 * symbols_milli(data_bytes) / 1000);
        self.jffs2_write_node_ns + bytes + symbols
    }

    /// JFFS2: and for one that the first compressor has made this small.
    pub fn jffs2_packed_ns(&self, packed_bytes: u32, work: LzoWork) -> Ns {
        self.jffs2_packed_node_ns
            + Ns::from_ps(u64::from(packed_bytes), self.jffs2_packed_byte_ps)
            + self.jffs2_search_ns * u64::from(work.searched)
            + Ns::from_ps(u64::from(work.matched_bytes), self.jffs2_matched_byte_ps)
    }

    /// UBIFS: what the CPU needs for a data node of so many bytes that were so many before.
    pub fn ubifs_write_ns(&self, data: UbifsData, unpacked_bytes: u32) -> Ns {
        let mut spent = Ns::from_ps(data.node_bytes as u64, self.ubifs_write_byte_ps);
        if let Some(ZstdWork { searched, coded_literals }) = data.work {
            spent += self.ubifs_compress_ns + self.ubifs_search_ns * u64::from(searched);
            if coded_literals > 0 {
                let literals = u64::from(coded_literals);
                spent += self.ubifs_huffman_ns + Ns::from_ps(literals, self.ubifs_huffman_byte_ps);
            }
        }
        if data.node_bytes < unpacked_bytes as usize {
            spent += self.ubifs_packed_node_ns;
        }
        spent
    }
}

/// Byte values that come up in so many bytes of chance, in thousandths: 256 (1 - (255/256)^n). Deflate
/// builds its trees of them, which is most of what a small node costs and levels off soon.
fn symbols_milli(bytes: u32) -> u64 {
    SYMBOLS_MILLI[(bytes as usize).min(SYMBOLS_LEVEL)]
}

/// From here on all of them have come up but for one in a thousand.
const SYMBOLS_LEVEL: usize = 2048;

static SYMBOLS_MILLI: [u64; SYMBOLS_LEVEL + 1] = {
    let all: u64 = 256_000 << 20;
    let mut table = [0; SYMBOLS_LEVEL + 1];
    let mut missing = all;
    let mut bytes = 0;
    while bytes <= SYMBOLS_LEVEL {
        table[bytes] = (all - missing) >> 20;
        missing -= missing / 256;
        bytes += 1;
    }
    table
};

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
