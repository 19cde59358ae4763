//! A second driver below MTD: this file is all of one.
//!
//! The kernel's driver of SPI NAND (drivers/mtd/nand/spi/core.c) keeps no page, so a node that is
//! read in two parts reads its page twice.

use crate::support;
use sim::causes::{Cause, Causes};
use sim::content::Source;
use sim::flash::{Chip, Done, Flash, Moves, Span};
use sim::fs::jffs2::Jffs2;
use sim::fs::ubifs::Ubifs;
use sim::fs::yaffs2::Yaffs2;
use sim::fs::FlashFs;
use sim::mtd::{Mtd, MtdInfo, NandDriver, RawNand};
use sim::ops::{Advice, Flags};
use sim::profile::BoardProfile;
use sim::units::{BlockNo, Ns, PageNo};
use sim::vfs::Vfs;

/// Reads whole pages into the chip's cache, which corrects them, and keeps none.
#[derive(Clone, Debug)]
struct Unbuffered<F>(F);

impl<F: Flash> NandDriver for Unbuffered<F> {
    type Flash = F;

    fn flash(&self) -> &F {
        &self.0
    }

    fn flash_mut(&mut self) -> &mut F {
        &mut self.0
    }

    fn subpage_bytes(&self) -> u32 {
        self.0.profile().page_bytes
    }

    fn free_oob_bytes(&self) -> u32 {
        self.0.profile().oob_bytes - 2
    }

    fn forget(&mut self) {}

    fn read(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, _: Span) -> Done {
        let whole = Moves::one(0, mtd.chip.page_bytes).and(mtd.chip.oob_bytes);
        let over = self.0.read(now, mtd.task, page, whole)?;
        mtd.correct(self.0.wrong_bits(), page, 0, mtd.steps(mtd.chip.page_bytes));
        mtd.since_resched = over - now;
        Ok(over)
    }

    fn program(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
        let main = part.length.min(mtd.chip.page_bytes.saturating_sub(part.column));
        let cells = Span { length: if main > 0 { main } else { part.length }, ..part };
        let whole = Moves::one(0, mtd.chip.page_bytes).and(mtd.chip.oob_bytes);
        self.0.program(now, mtd.task, page, whole, cells)
    }

    fn erase(&mut self, mtd: &mut MtdInfo, now: Ns, block: BlockNo) -> Done {
        self.0.erase(now, mtd.task, block)
    }
}

fn board() -> BoardProfile {
    support::board("omap3evm")
}

fn unbuffered() -> Mtd<Unbuffered<Chip>> {
    Mtd::with_driver(Unbuffered(Chip::new(board().chip)), &board())
}

fn raw() -> Mtd<RawNand<Chip>> {
    Mtd::new(Chip::new(board().chip), &board())
}

/// Read commands for two parts of a page that was written.
fn reads_of_two_parts<D: NandDriver>(mut mtd: Mtd<D>) -> u64 {
    let page_bytes = mtd.page_bytes();
    let causes = Causes::of(Cause::Data, page_bytes);
    let now = mtd.write_for(Ns::ZERO, 0, page_bytes, &causes).expect("an erased page");
    let now = mtd.read(now, 0, 68).expect("a part of it");
    mtd.read(now, 68, 200).expect("another part");
    mtd.counts().reads
}

#[test]
fn a_driver_decides_how_often_a_page_is_read() {
    assert_eq!(reads_of_two_parts(raw()), 1);
    assert_eq!(reads_of_two_parts(unbuffered()), 2);
}

/// Writes a file, drops it from memory, and reads it back; the read commands of that.
fn reads_of_a_file<S: FlashFs>((fs, now): (S, Ns)) -> u64 {
    const BYTES: u64 = 256 << 10;
    let (board, kernel) = (board(), support::kernel("6.1"));
    let mut vfs = Vfs::new(fs, kernel.readahead, board.software, board.memory, kernel.kernel, 1);
    let flags = Flags { read: true, write: true, create: true, ..Flags::default() };
    let source = Source { seed: 1, compressibility: 60 };
    let (_, now) = vfs.open(now, 0, "file", flags).expect("open");
    let (written, now) = vfs.write(now, 0, 0, BYTES, source).expect("write");
    let (_, now) = vfs.fsync(now, 0, false).expect("fsync");
    let (_, now) = vfs.fadvise(now, 0, 0, 0, Advice::DontNeed).expect("fadvise");
    let before = vfs.fs().mtd().counts().reads;
    let (read, _) = vfs.read(now, 0, 0, BYTES).expect("read");
    assert_eq!((written, read), (BYTES as i64, BYTES as i64));
    vfs.fs().mtd().counts().reads - before
}

#[test]
fn every_file_system_runs_on_another_driver() {
    let (options, facts) = (support::kernel("6.1"), support::facts());
    let jffs2 = options.jffs2;
    let on_raw = Jffs2::format(raw(), Ns::ZERO, jffs2.clone(), facts).expect("jffs2");
    let on_other = Jffs2::format(unbuffered(), Ns::ZERO, jffs2, facts).expect("jffs2");
    let (buffered, not) = (reads_of_a_file(on_raw), reads_of_a_file(on_other));
    assert!(not > buffered, "{not} reads, and {buffered} with a page buffer");
    reads_of_a_file(Yaffs2::format(unbuffered(), Ns::ZERO, facts, false).expect("yaffs2"));
    reads_of_a_file(Ubifs::format(unbuffered(), Ns::ZERO, options.ubifs, facts).expect("ubifs"));
}
