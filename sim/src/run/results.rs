//! What a case gives: rows, sums, and how full and how worn the partition is.

use super::stack::Stack;
use super::survey::Survey;
use crate::causes::Causes;
use crate::compress::work::Packing;
use crate::flash::{Flash, FlashOp};
use crate::ops;
use crate::profile::BoardProfile;
use crate::units::{BlockNo, Ns};

/// One measured operation.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Index of its name in [`ops::NAMES`].
    pub op: usize,
    /// Index of its file in [`Measured::files`].
    pub file: Option<u32>,
    /// Of read, write and fadvise.
    pub offset_bytes: Option<u64>,
    /// Of read, write, truncate and fadvise.
    pub length_bytes: Option<u64>,
    /// Since the mark.
    pub start: Ns,
    /// How long it took.
    pub latency: Ns,
    /// How long of that the chip was busy.
    pub flash_time: Ns,
    /// How long of that calls into the driver took, the chip's time included.
    pub driver_time: Ns,
    /// Programs and erases since the mark when it had returned.
    pub changes: u64,
    /// The system call's return value.
    pub result: i64,
}

/// What a case gave.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The time of the case: the sum of the latencies of what was measured, pauses left out.
    pub time: Ns,
    /// The chip's part of `time`: on a machine whose software costs nothing it is all of it.
    pub flash_time: Ns,
    /// From the mark to the end of the last operation, pauses included.
    pub elapsed: Ns,
    /// Bytes that reads and writes moved.
    pub bytes: u64,
    /// Those of them that writes did.
    pub bytes_written: u64,
    /// The measured operations in order, if they were asked for.
    pub requests: Vec<Request>,
    /// Paths that the requests name.
    pub files: Vec<String>,
    /// Flash operations, if they were asked for; their time counts from the mark.
    pub flash: Vec<FlashOp>,
    /// Read commands, programs and erases since the mark.
    pub flash_reads: u64,
    /// See `flash_reads`.
    pub flash_programs: u64,
    /// See `flash_reads`.
    pub flash_erases: u64,
    /// Bytes programmed since the mark, and why.
    pub causes: Causes,
    /// Pages found in the page cache.
    pub cache_hits: u64,
    /// Pages that had to be read first.
    pub cache_misses: u64,
    /// Pages brought into the page cache, asked for or not.
    pub cache_adds: u64,
    /// Most erases of any block of the partition since the chip was new.
    pub erase_count_max: u64,
    /// Erases of all blocks of the partition.
    pub erase_count_sum: u64,
    /// What JFFS2 chose pseudo-randomly since the mark (fs/jffs2/gc_choices.rs).
    pub gc_choices: Vec<u16>,
    /// What each of the cuts left.
    pub surveys: Vec<Survey>,
    /// Blocks of the partition that are bad by the end.
    pub bad_blocks: u64,
    /// Bits that ECC put right since the mark.
    pub ecc_corrected: u64,
    /// ECC steps it could not put right.
    pub ecc_failed: u64,
    /// A compressor that did something since the mark and has no price: the times are too short
    /// then.
    pub unpriced: Option<Packing>,
    /// How full the file system was when it was made.
    pub fresh: FreeSpace,
    /// And when it was prepared.
    pub prepared: FreeSpace,
    /// Every block of the partition, if its wear was asked for.
    pub wear: Vec<BlockWear>,
    /// How the bytes that are still of use lay on the blocks while it ran, if that was asked for
    /// and the model can tell.
    pub live: Vec<LiveSample>,
    /// What `sync()` then did to the flash, if that was asked for and the model can tell.
    pub flush: Option<Flush>,
}

/// Flash operations of a `sync()` right after the measured part: what it had left in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Read commands.
    pub reads: u64,
    /// Programs.
    pub programs: u64,
    /// Erases.
    pub erases: u64,
    /// Bytes programmed, and why.
    pub causes: Causes,
}

/// The blocks of the partition at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveSample {
    /// Since the mark.
    pub at: Ns,
    /// Bytes of each that are still of use, in 255ths of a block.
    pub live: Vec<u8>,
    /// Bytes of each that cannot be programmed without an erase, likewise.
    pub programmed: Vec<u8>,
}

/// How worn a block is at the end of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWear {
    /// Of the chip.
    pub block: BlockNo,
    /// Its erases since the chip was new, the one that made the file system among them.
    pub erases: u32,
    /// Its erases since the mark.
    pub erases_measured: u32,
    /// Its erases in the flush after the measured part, where there was one.
    pub erases_flush: Option<u32>,
}

/// How full a file system is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeSpace {
    /// What df says is available, where the model says so.
    pub bytes: Option<u64>,
    /// Pages of the partition that are programmed.
    pub pages: u64,
}

impl FreeSpace {
    pub(super) fn of<S: Stack>(stack: &S, board: &BoardProfile) -> FreeSpace {
        let blocks = board.partition.first_block..;
        let blocks = blocks.take(board.partition.blocks as usize);
        let page_bytes = board.chip.page_bytes;
        let flash = stack.mtd().flash();
        let pages = |block| flash.block(BlockNo(block)).programmed_bytes.div_ceil(page_bytes);
        let pages = blocks.map(|block| u64::from(pages(block))).sum();
        FreeSpace { bytes: stack.free_bytes(), pages }
    }
}

impl Measured {
    /// One more operation in time, flash time and bytes.
    pub(super) fn count(&mut self, request: &Request) {
        if request.op != ops::PAUSE {
            self.time += request.latency;
            self.flash_time += request.flash_time;
        }
        self.elapsed = request.start + request.latency;
        if [ops::READ, ops::WRITE].contains(&request.op) {
            self.bytes += request.result.max(0) as u64;
        }
        if request.op == ops::WRITE {
            self.bytes_written += request.result.max(0) as u64;
        }
    }
}
