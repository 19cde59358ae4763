//! Many 4 KiB writes to files that fill half of a chip, with an fsync every 64.
//!
//! The files are first written in order, four of them in turn, and then again in order or randomly.
//! Every write has its own seed, so no two pages continue the same source. The VFS is called
//! without text or rows.

use sim::content::Source;
use sim::flash::{Chip, Flash};
use sim::fs::jffs2::Jffs2;
use sim::fs::ubifs::Ubifs;
use sim::fs::FlashFs;
use sim::mtd::{Mtd, RawNand};
use sim::ops::Flags;
use sim::profile::BoardProfile;
use sim::units::Ns;
use sim::vfs::Vfs;

pub const WRITE_BYTES: u64 = 4096;
const WRITES_PER_FSYNC: u64 = 64;
const FILES: u64 = 4;

/// The order of the writes after the files were created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    Sequential,
    Random,
}

impl Pattern {
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Sequential => "sequential",
            Pattern::Random => "random",
        }
    }
}

/// The emulated board with a chip of so many blocks, all of it one partition.
pub fn board(blocks: u32) -> BoardProfile {
    let mut board = super::board("emulated");
    board.chip.blocks = blocks;
    (board.partition.first_block, board.partition.blocks) = (0, blocks);
    board
}

/// Pages of the chip.
pub fn flash_pages(board: &BoardProfile) -> u64 {
    u64::from(board.chip.blocks) * u64::from(board.chip.pages_per_block)
}

/// 4 KiB pages of all files together: half of the chip.
pub fn file_pages(board: &BoardProfile) -> u64 {
    flash_pages(board) * u64::from(board.chip.page_bytes) / WRITE_BYTES / 2
}

/// The page of each write, counted over all files.
fn pages(pattern: Pattern, count: u64, writes: u64) -> impl Iterator<Item = u64> {
    let mut state: u64 = 1;
    (0..writes).map(move |write| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if pattern == Pattern::Random && write >= count {
            (state >> 33) % count
        } else {
            write % count
        }
    })
}

pub fn jffs2(board: &BoardProfile) -> (Jffs2<RawNand<Chip>>, Ns) {
    let mtd = Mtd::new(Chip::new(board.chip), board);
    Jffs2::format(mtd, Ns::ZERO, super::kernel("6.1").jffs2, super::facts()).expect("jffs2")
}

pub fn ubifs(board: &BoardProfile) -> (Ubifs<RawNand<Chip>>, Ns) {
    let mtd = Mtd::new(Chip::new(board.chip), board);
    Ubifs::format(mtd, Ns::ZERO, super::kernel("6.1").ubifs, super::facts()).expect("ubifs")
}

/// Creates and opens the empty files.
pub fn open<S: FlashFs>((fs, mut now): (S, Ns), board: &BoardProfile) -> (Vfs<S>, Ns) {
    let flags = Flags { write: true, create: true, ..Flags::default() };
    let readahead = super::kernel("6.1").readahead;
    let mut vfs =
        Vfs::new(fs, readahead, board.software, board.memory, super::facts(), FILES as usize);
    for slot in 0..FILES as usize {
        let (result, later) = vfs.open(now, slot, &format!("file{slot}"), flags).expect("open");
        assert!(result >= 0, "open: {result}");
        now = later;
    }
    (vfs, now)
}

/// Makes so many writes.
pub fn write<S: FlashFs>(
    vfs: &mut Vfs<S>,
    mut now: Ns,
    board: &BoardProfile,
    pattern: Pattern,
    writes: u64,
) {
    for (write, page) in (0..).zip(pages(pattern, file_pages(board), writes)) {
        let (slot, at) = ((page % FILES) as usize, page / FILES * WRITE_BYTES);
        let source = Source { seed: write, compressibility: 0 };
        now = vfs.catch_up(now).expect("background work");
        let (result, later) = vfs.write(now, slot, at, WRITE_BYTES, source).expect("a write");
        assert_eq!(result, WRITE_BYTES as i64, "write {write}");
        now = later;
        if (write + 1) % WRITES_PER_FSYNC == 0 {
            for slot in 0..FILES as usize {
                now = vfs.catch_up(now).expect("background work");
                now = vfs.fsync(now, slot, false).expect("fsync").1;
            }
        }
    }
}

/// Reads, programs and erases so far.
pub fn flash_ops<S: FlashFs>(vfs: &Vfs<S>) -> u64 {
    let counts = vfs.fs().mtd().flash().counts();
    counts.reads + counts.programs + counts.erases
}
