//! The result of a case: rows, sums, and the fill and wear of the partition.

use super::failed::Failed;
use super::layer_times::LayerTimes;
use super::stack::Stack;
use super::survey::Survey;
use crate::causes::Causes;
use crate::compress::work::Packing;
use crate::flash::{Flash, FlashOp};
use crate::ops;
use crate::profile::BoardProfile;
use crate::units::{BlockNo, Ns};
use crate::waits::Waits;

/// One measured operation.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Index of its name in [`ops::NAMES`].
    pub op: usize,
    /// Index of its file in [`Measured::files`].
    pub file: Option<u32>,
    /// The OFFSET of read, write and fadvise.
    pub offset_bytes: Option<u64>,
    /// The LENGTH of read, write, truncate and fadvise.
    pub length_bytes: Option<u64>,
    /// When it began, since the mark.
    pub start: Ns,
    /// Its duration.
    pub latency: Ns,
    /// How long the chip was busy in it.
    pub flash_time: Ns,
    /// Programs and erases from the mark to its end.
    pub changes: u64,
    /// The system call's return value.
    pub result: i64,
}

/// The result of a case.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The time of the case: the sum of the measured latencies without pauses.
    pub time: Ns,
    /// The chip's part of `time`. It is the whole if software costs nothing.
    pub flash_time: Ns,
    /// From the mark to the end of all operations, pauses included.
    pub elapsed: Ns,
    /// Bytes that reads and writes transferred.
    pub bytes: u64,
    /// The writes' part of them.
    pub bytes_written: u64,
    /// Calls that failed, by their result.
    pub failed: Failed,
    /// The measured operations in order, if recorded.
    pub requests: Vec<Request>,
    /// Where each measured operation spent its time, if recorded.
    pub layers: Vec<LayerTimes>,
    /// What each measured operation waited for, if recorded.
    pub waits: Vec<Waits>,
    /// Paths that the requests name.
    pub files: Vec<String>,
    /// Flash operations, if recorded; their time counts from the mark.
    pub flash: Vec<FlashOp>,
    /// Read commands since the mark.
    pub flash_reads: u64,
    /// Program commands since the mark.
    pub flash_programs: u64,
    /// Erases since the mark.
    pub flash_erases: u64,
    /// Bytes programmed since the mark, by cause.
    pub causes: Causes,
    /// Pages found in the page cache.
    pub cache_hits: u64,
    /// Pages that had to be read first.
    pub cache_misses: u64,
    /// Pages added to the page cache, requested or read ahead.
    pub cache_adds: u64,
    /// The largest erase count of the partition's blocks since the chip was new.
    pub erase_count_max: u64,
    /// The sum of the erase counts of the partition's blocks.
    pub erase_count_sum: u64,
    /// JFFS2's pseudo-random choices since the mark (fs/jffs2/gc_choices.rs).
    pub gc_choices: Vec<u16>,
    /// What each power cut left.
    pub surveys: Vec<Survey>,
    /// Bad blocks of the partition at the end.
    pub bad_blocks: u64,
    /// Bits that ECC corrected since the mark.
    pub ecc_corrected: u64,
    /// ECC steps that it could not correct.
    pub ecc_failed: u64,
    /// A compressor without a price that ran since the mark. The times are too short if there is
    /// one.
    pub unpriced: Option<Packing>,
    /// The free space after formatting.
    pub fresh: FreeSpace,
    /// The free space after the preparation.
    pub prepared: FreeSpace,
    /// The wear of every block of the partition, if recorded.
    pub wear: Vec<BlockWear>,
    /// How the bytes that are still of use lay on the blocks while it ran, if requested
    /// and the model can tell.
    pub live: Vec<LiveSample>,
    /// What a `sync()` then did to the flash, if recorded and modelled.
    pub flush: Option<Flush>,
}

/// Flash operations of a `sync()` right after the measured part, which writes what that left in
/// memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flush {
    /// Read commands.
    pub reads: u64,
    /// Programs.
    pub programs: u64,
    /// Erases.
    pub erases: u64,
    /// Bytes programmed, by cause.
    pub causes: Causes,
    /// The space that df shows as available afterwards, if the model knows.
    pub free_bytes: Option<u64>,
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

/// The wear of a block at the end of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWear {
    /// Its number on the chip.
    pub block: BlockNo,
    /// Its erases since the chip was new, including the one of formatting.
    pub erases: u32,
    /// Its erases since the mark.
    pub erases_measured: u32,
    /// Its erases in the flush after the measured part, if there was one.
    pub erases_flush: Option<u32>,
}

/// The fill of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeSpace {
    /// The space that df shows as available, if the model knows.
    pub bytes: Option<u64>,
    /// Programmed pages of the partition.
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
    /// Adds one operation's time, flash time and bytes, and whether it failed.
    pub(super) fn count(&mut self, request: &Request) {
        if request.op != ops::PAUSE {
            self.time += request.latency;
            self.flash_time += request.flash_time;
        }
        self.elapsed = self.elapsed.max(request.start + request.latency);
        self.failed.count(request);
        let bytes = request.result.max(0) as u64;
        let is_written = [ops::WRITE, ops::COPY, ops::STORE].contains(&request.op);
        if is_written || [ops::READ, ops::SEND].contains(&request.op) {
            self.bytes += bytes;
        }
        if is_written {
            self.bytes_written += bytes;
        }
    }
}
