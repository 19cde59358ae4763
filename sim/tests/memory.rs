//! The simulator's memory while it writes, counted by the allocator: bytes per flash page, and how
//! memory and allocations grow with the chip.
//!
//! The goal is 8 bytes a flash page, plus what the file system itself keeps in memory, which is
//! counted with the sizes of the kernel's structures (64 bits, no authentication). The kernel's
//! page cache, which holds all of these files, is not counted: what the simulator stores about
//! contents has to fit into the 8 bytes. On chips as small as these, memory that does not grow with
//! the chip (mainly the compressors' tables) adds 3 to 6 bytes a page. The goal is therefore
//! compared with the increase for twice the chip. The other limits are the current values.

mod support;

use allocation_counter::{measure, AllocationInfo};
use sim::flash::Chip;
use sim::fs::jffs2::Jffs2;
use sim::fs::ubifs::Ubifs;
use sim::fs::FlashFs;
use sim::mtd::RawNand;
use sim::profile::BoardProfile;
use sim::units::Ns;
use support::writes::{board, file_pages, flash_pages, jffs2, open, ubifs, write, Pattern};

/// 64 MiB.
const BLOCKS: u32 = 512;
/// The memory that a page of the chip may take in addition.
const GOAL_BYTES: f64 = 8.0;
/// Writes for each page of the files: each is created, and then written three more times on
/// average.
const ROUNDS: u64 = 4;

/// The memory that a file system uses on a real kernel.
trait Kept: FlashFs {
    fn kept_bytes(&self, board: &BoardProfile) -> u64;
}

/// `struct ubifs_znode` with its eight branches.
const ZNODE_BYTES: u64 = 80 + 8 * 32;
/// A quarter of `struct ubifs_pnode`, and for each pnode a third of a quarter of the nnodes above.
const LEB_BYTES: u64 = 168 / 4 + 104 / 12;
/// `struct ubi_wl_entry`, its place in `lookuptbl`, and an entry of `eba_tbl`.
const PEB_BYTES: u64 = 32 + 8 + 4;

impl Kept for Ubifs<RawNand<Chip>> {
    fn kept_bytes(&self, board: &BoardProfile) -> u64 {
        let blocks = u64::from(board.chip.blocks);
        self.znodes() * ZNODE_BYTES + blocks * (LEB_BYTES + PEB_BYTES)
    }
}

/// `struct jffs2_raw_node_ref`: they are allocated in blocks of 14, with one more as a link
/// (REFS_PER_BLOCK).
const REFERENCES_BYTES: u64 = 15 * 16;
const REFERENCES: u64 = 14;
/// `struct jffs2_node_frag`.
const FRAGMENT_BYTES: u64 = 40;
/// `struct jffs2_full_dnode`, at least one for each page of a file.
const FULL_DNODE_BYTES: u64 = 24;
/// `struct jffs2_eraseblock`.
const ERASEBLOCK_BYTES: u64 = 72;
/// The match tables of deflate, a part of the workspace that JFFS2 holds permanently
/// (`alloc_workspaces` of fs/jffs2/compr_zlib.c): `head` and `prev`, two bytes an entry.
const DEFLATE_BYTES: u64 = 2 * ((1 << 15) + (1 << 12));

impl Kept for Jffs2<RawNand<Chip>> {
    fn kept_bytes(&self, board: &BoardProfile) -> u64 {
        let (nodes, fragments) = self.nodes_and_fragments();
        nodes as u64 * REFERENCES_BYTES / REFERENCES
            + fragments as u64 * FRAGMENT_BYTES
            + file_pages(board) * FULL_DNODE_BYTES
            + u64::from(board.chip.blocks) * ERASEBLOCK_BYTES
            + DEFLATE_BYTES
    }
}

struct Run {
    flash_pages: u64,
    kept_bytes: u64,
    memory: AllocationInfo,
}

/// Runs a pattern, from the empty chip on.
fn run<S: Kept>(format: impl Fn(&BoardProfile) -> (S, Ns), blocks: u32, pattern: Pattern) -> Run {
    let board = board(blocks);
    let writes = ROUNDS * file_pages(&board);
    let mut kept_bytes = 0;
    let memory = measure(|| {
        let (mut vfs, now) = open(format(&board), &board);
        write(&mut vfs, now, &board, pattern, writes);
        kept_bytes = vfs.fs().kept_bytes(&board);
    });
    Run { flash_pages: flash_pages(&board), kept_bytes, memory }
}

impl Run {
    /// Bytes that do not belong to the file system itself.
    fn other_bytes(&self) -> f64 {
        self.memory.bytes_max as f64 - self.kept_bytes as f64
    }

    /// Those bytes per flash page.
    fn bytes_per_flash_page(&self) -> f64 {
        self.other_bytes() / self.flash_pages as f64
    }
}

fn assert_grows_as_the_chip<S: Kept>(format: impl Fn(&BoardProfile) -> (S, Ns), pattern: Pattern) {
    let once = run(&format, BLOCKS, pattern);
    let twice = run(&format, 2 * BLOCKS, pattern);
    let (bytes, more_bytes) = (once.memory.bytes_max, twice.memory.bytes_max);
    assert!(more_bytes <= 2 * bytes, "{pattern:?}: {bytes} bytes, then {more_bytes}");
    let (count, more) = (once.memory.count_total, twice.memory.count_total);
    assert!(more <= 2 * count, "{pattern:?}: {count} allocations, then {more}");
    let more_pages = (twice.flash_pages - once.flash_pages) as f64;
    let bytes = (twice.other_bytes() - once.other_bytes()) / more_pages;
    assert!(bytes <= GOAL_BYTES, "{pattern:?}: {bytes:.1} bytes a page more");
}

#[test]
fn jffs2_keeps_few_bytes_a_flash_page() {
    for (pattern, most) in [(Pattern::Sequential, 9.0), (Pattern::Random, 14.0)] {
        let bytes = run(jffs2, BLOCKS, pattern).bytes_per_flash_page();
        assert!(bytes <= most, "{pattern:?}: {bytes:.1} bytes a flash page");
    }
}

#[test]
fn jffs2_on_twice_the_chip_takes_at_most_twice_the_memory() {
    for pattern in [Pattern::Sequential, Pattern::Random] {
        assert_grows_as_the_chip(jffs2, pattern);
    }
}

#[test]
fn ubifs_keeps_few_bytes_a_flash_page() {
    for (pattern, most) in [(Pattern::Sequential, 3.0), (Pattern::Random, 6.5)] {
        let bytes = run(ubifs, BLOCKS, pattern).bytes_per_flash_page();
        assert!(bytes <= most, "{pattern:?}: {bytes:.1} bytes a flash page");
    }
}

#[test]
fn ubifs_on_twice_the_chip_takes_at_most_twice_the_memory() {
    for pattern in [Pattern::Sequential, Pattern::Random] {
        assert_grows_as_the_chip(ubifs, pattern);
    }
}
