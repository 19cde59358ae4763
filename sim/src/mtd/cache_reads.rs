//! Sequential cache reads of raw NAND: which pages of a read the driver gets by them.
//!
//! Mirrors drivers/mtd/nand/raw/nand_base.c of Linux 6.12.117 (rawnand_enable_cont_reads,
//! rawnand_cap_cont_reads, nand_lp_exec_cont_read_page_op). Earlier kernels have them since 6.4,
//! with other rules at the border of a block. Left out: rawnand_cont_read_skip_first_page, because
//! only drivers that keep no page (software ECC) use sequential cache reads.
//!
//! READ CACHE SEQUENTIAL moves the page that the array has loaded into the cache register, and
//! begins to load the next one. READ CACHE END moves without loading.

use crate::flash::{Done, Flash, Moves};
use crate::profile::ChipProfile;
use crate::sched::Task;
use crate::units::{Ns, PageNo};

/// `chip->cont_read`, and what the chip does meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CacheReads {
    ongoing: bool,
    first: u32,
    /// The page that READ CACHE END ends with: the last one, or the last of the first block.
    pause: u32,
    last: u32,
    /// When the array has loaded the next page; none after READ CACHE END.
    loaded: Option<Ns>,
    /// Pages by which the chip is behind the driver, which continues by READ CACHE SEQUENTIAL after
    /// READ CACHE END: the chip moves the same page again.
    behind: u32,
}

impl CacheReads {
    /// rawnand_enable_cont_reads, for a read of `length` bytes from a column of `page`.
    pub(super) fn begin(&mut self, chip: &ChipProfile, page: PageNo, column: u32, length: u32) {
        let ChipProfile { page_bytes, pages_per_block, .. } = *chip;
        *self = CacheReads::default();
        if length < 2 * page_bytes {
            return;
        }
        self.first = page.0 + u32::from(column > 0);
        self.last = page.0 + (column + length) / page_bytes - 1;
        self.ongoing = self.first < self.last;
        if self.ongoing {
            self.cap(pages_per_block);
        }
    }

    /// rawnand_cap_cont_reads.
    fn cap(&mut self, pages_per_block: u32) {
        let last_of = |block: u32| block * pages_per_block + pages_per_block - 1;
        let first_block = self.first / pages_per_block;
        let crosses = first_block != self.last / pages_per_block;
        self.pause = if crosses { last_of(first_block) } else { self.last };
        if self.first == self.pause {
            self.first += 1;
            self.pause = self.last.min(last_of(first_block + 1));
        }
        self.ongoing &= self.first < self.last;
    }

    /// rawnand_cont_read_ongoing.
    #[inline]
    pub(super) fn has(&self, page: PageNo) -> bool {
        self.ongoing && page.0 >= self.first
    }

    /// nand_lp_exec_cont_read_page_op: reads `page`, and decides how the next one is.
    pub(super) fn read<F: Flash>(
        &mut self,
        flash: &mut F,
        (now, task): (Ns, Task),
        page: PageNo,
        moves: Moves,
    ) -> Done {
        let chip = *flash.profile();
        let cache = chip.cache_read_ns.expect("only chips that have them");
        let bus = chip.share(chip.bus_read_ns, moves.bytes);
        let over = if page.0 == self.first {
            self.behind = 0;
            let over = flash.read(now, task, page, moves)?;
            flash.command(over, cache)
        } else {
            let loads = self.loaded.unwrap_or(now).max(now) - now;
            let read = PageNo(page.0 - self.behind);
            flash.read_next(now, task, read, moves, loads + cache + bus)?
        };
        let ends = page.0 == self.pause && page.0 != self.first;
        self.loaded = (!ends).then_some(over - bus + chip.read_array_ns);
        self.go_on(page, chip.pages_per_block);
        self.behind += u32::from(ends);
        Ok(over)
    }

    fn go_on(&mut self, page: PageNo, pages_per_block: u32) {
        if page.0 == self.last {
            self.ongoing = false;
        } else if page.0 == self.pause {
            self.first += 1;
            self.cap(pages_per_block);
        }
    }
}
