//! A decorator that fails operations and flips bits.
//!
//! Mirrors kernel/flashbed_nand/faults.c and array.c: it makes the same draws (draws.rs) over the
//! same numbers, so a seed fails the same operations in the simulator and on a real kernel.
//! Operations of each kind are counted from [`Faulty::begin_faults`]; none fails
//! before it. Simulated chips store no contents, so a failed program leaves cells that ECC cannot
//! correct. (The module programs a random part of the bits. One in two thousand such steps would
//! look like a single wrong bit.)
//!
//! Bits are wrong for one read, drawn at a rate, or follow the chip (errors.rs) and stay until the
//! block is erased.
//!
//! Left out: torn operations (power cuts), wrong bits in the OOB.
//!
//! Invariants:
//! 1. The draws do not depend on what ran before `begin_faults`.
//! 2. A failed erase leaves its block unchanged. It counts as an operation of the chip.

use super::draws::{below, draw, hit, next, Draw};
use super::errors::{self, ErrorCurve};
use crate::flash::{Block, Counts, Done, Failed, Fault, Flash, Moves, Span, WrongBits, WrongStep};
use crate::profile::ChipProfile;
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};
use std::collections::BTreeMap;
use std::ops::Range;

/// The faults of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Faults {
    /// The seed of all draws.
    pub seed: u64,
    /// Mean endurance in erases; a block's is up to a tenth more or less. 0 means no limit.
    pub endurance_erases: u32,
    /// The rate of failing programs, in parts per million.
    pub program_fail_ppm: u32,
    /// Further failing programs, by number from 1.
    pub program_fail: Vec<u64>,
    /// The rate of failing erases, in parts per million.
    pub erase_fail_ppm: u32,
    /// Further failing erases, by number from 1.
    pub erase_fail: Vec<u64>,
    /// The rate of page reads with `bits_flipped` wrong bits in one ECC step, in parts per million.
    pub bit_flip_ppm: u32,
    /// Wrong bits of such a read.
    pub bits_flipped: u32,
    /// Bit errors that follow erases, reads and age. Not with flips.
    pub errors: Option<ErrorCurve>,
}

/// A page that was programmed since its block was erased.
#[derive(Clone, Copy, Debug)]
struct Programmed {
    /// When, or when faults began if that was later.
    at: Ns,
    /// Reads of its block at that time.
    reads: u32,
    /// Whether it was programmed before faults began.
    is_old: bool,
}

/// What bit errors depend on; empty on a chip without a curve.
#[derive(Clone, Debug, Default)]
struct Ageing {
    pages: BTreeMap<PageNo, Programmed>,
    /// Reads of each block since it was erased or faults began.
    reads: Vec<u32>,
}

/// A chip with faults.
#[derive(Clone, Debug)]
pub struct Faulty<F> {
    inner: F,
    faults: Faults,
    step_bytes: u32,
    /// The chip's counts when faults began; none before that.
    since: Option<Counts>,
    wrong: Option<WrongBits>,
    /// Failed erases and programs, which do not reach the inner chip.
    failed: Counts,
    /// Blocks past their endurance.
    worn: Vec<bool>,
    /// The ECC steps of pages that a failed program left half programmed.
    torn: BTreeMap<PageNo, Range<u32>>,
    ageing: Ageing,
}

/// Nanoseconds of an hour.
const HOUR_NS: u64 = 3_600_000_000_000;
/// `step` of [`errors::wrong_bits`] counts this many steps a page: 16 KiB in steps of 256 bytes.
const STEPS_A_PAGE: u32 = 64;

impl Ageing {
    /// A block is erased.
    fn forget(&mut self, block: BlockNo, pages: Range<PageNo>) {
        self.reads[block.0 as usize] = 0;
        let mut later = self.pages.split_off(&pages.start);
        self.pages.append(&mut later.split_off(&pages.end));
    }
}

impl<F: Flash> Faulty<F> {
    /// Wraps `inner`, whose driver has ECC over steps of `step_bytes`.
    pub fn new(inner: F, faults: Faults, step_bytes: u32) -> Faulty<F> {
        let worn = vec![false; inner.profile().blocks as usize];
        let failed = Counts::default();
        let mut ageing = Ageing::default();
        if faults.errors.is_some() {
            ageing.reads = vec![0; inner.profile().blocks as usize];
        }
        let torn = BTreeMap::new();
        Faulty { inner, faults, step_bytes, since: None, wrong: None, failed, worn, torn, ageing }
    }

    /// The flash below, to be changed by the laboratory.
    pub fn inner_mut(&mut self) -> &mut F {
        &mut self.inner
    }

    /// Begins to fail operations.
    pub fn begin_faults(&mut self, now: Ns) {
        self.since = Some(self.counts());
        self.ageing.reads.fill(0);
        let old = Programmed { at: now, reads: 0, is_old: true };
        self.ageing.pages.values_mut().for_each(|page| *page = old);
    }

    /// fbn_endurance.
    fn endurance(&self, block: BlockNo) -> u32 {
        let mut state = draw(self.faults.seed, Draw::Wear, u64::from(block.0));
        let tenth = self.faults.endurance_erases / 10;
        self.faults.endurance_erases - tenth + below(&mut state, 2 * tenth + 1)
    }

    /// fbn_draw_flips for a read, counted from 0. The bits are distinct and in one step.
    fn flips(&self, number: u64) -> Option<WrongBits> {
        let mut state = draw(self.faults.seed, Draw::Read, number);
        if self.faults.bit_flip_ppm == 0 || !hit(next(&mut state), self.faults.bit_flip_ppm) {
            return None;
        }
        // The kernel module draws the count of bits; with a limit of 1 that consumes a draw and
        // adds 0.
        let wanted = (self.faults.bits_flipped + below(&mut state, 1)) as usize;
        let step = below(&mut state, self.inner.profile().page_bytes / self.step_bytes);
        let step_bits = self.step_bytes * 8;
        let mut bits = Vec::with_capacity(wanted);
        while bits.len() < wanted {
            let bit = step * step_bits + below(&mut state, step_bits);
            if !bits.contains(&bit) {
                bits.push(bit);
            }
        }
        Some(WrongBits(vec![WrongStep { step, bits: Some(bits) }]))
    }

    /// fbn_page_errors for the `reads`th read of a block since its erase, counted from 0.
    fn errors_of(
        &self,
        now: Ns,
        page: PageNo,
        curve: &ErrorCurve,
        reads: u32,
    ) -> Option<WrongBits> {
        let programmed = self.ageing.pages.get(&page)?;
        let mut hours = ((now.0 - programmed.at.0) / HOUR_NS) as u32;
        let mut reads = reads - programmed.reads;
        if programmed.is_old {
            hours += curve.age_hours;
            reads += curve.reads;
        }
        let erases = self.inner.block(self.block_of(page)).erases;
        let expected = curve.expected(erases, hours, reads);
        let step_bits = self.step_bytes * 8;
        let wrong = (0..self.inner.profile().page_bytes / self.step_bytes).filter_map(|step| {
            let number = page.0 * STEPS_A_PAGE + step;
            let bits = errors::wrong_bits(self.faults.seed, erases, number, step_bits, expected);
            let bits: Vec<u32> = bits.iter().map(|bit| step * step_bits + bit).collect();
            (!bits.is_empty()).then_some(WrongStep { step, bits: Some(bits) })
        });
        let wrong: Vec<WrongStep> = wrong.collect();
        (!wrong.is_empty()).then_some(WrongBits(wrong))
    }

    fn block_of(&self, page: PageNo) -> BlockNo {
        BlockNo(page.0 / self.inner.profile().pages_per_block)
    }

    /// The wrong bits of a read that begins.
    fn wrong_of(&mut self, now: Ns, page: PageNo) -> Option<WrongBits> {
        let number = self.inner.counts().reads;
        let block = self.block_of(page);
        let (curve, since) = (self.faults.errors, self.since?);
        let Some(curve) = curve else {
            return self.flips(number - since.reads);
        };
        let reads = self.ageing.reads[block.0 as usize];
        self.ageing.reads[block.0 as usize] += 1;
        self.errors_of(now, page, &curve, reads)
    }

    /// erase_effect.
    fn erase_fails(&mut self, block: BlockNo) -> bool {
        let spent = self.since.is_some()
            && self.faults.endurance_erases > 0
            && self.inner.block(block).erases >= self.endurance(block);
        self.worn[block.0 as usize] |= spent;
        let drawn = self.since.is_some_and(|since| {
            let number = self.counts().erases - since.erases;
            hit(draw(self.faults.seed, Draw::Erase, number), self.faults.erase_fail_ppm)
                || self.faults.erase_fail.contains(&(number + 1))
        });
        self.worn[block.0 as usize] || drawn
    }

    /// What is wrong with a page that is read.
    fn load(&mut self, now: Ns, page: PageNo) {
        let wrong = self.wrong_of(now, page);
        self.wrong = match self.torn.get(&page) {
            Some(steps) => {
                let lost = |step| WrongStep { step, bits: None };
                Some(WrongBits(steps.clone().map(lost).collect()))
            }
            None => wrong,
        };
    }

    /// program_effect.
    fn program_fails(&self) -> bool {
        self.since.is_some_and(|since| {
            let number = self.counts().programs - since.programs;
            hit(draw(self.faults.seed, Draw::Program, number), self.faults.program_fail_ppm)
                || self.faults.program_fail.contains(&(number + 1))
        })
    }
}

impl<F: Flash> Flash for Faulty<F> {
    fn profile(&self) -> &ChipProfile {
        self.inner.profile()
    }

    fn read(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves) -> Done {
        self.load(now, page);
        self.inner.read(now, task, page, moves)
    }

    fn read_next(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, time: Ns) -> Done {
        self.load(now, page);
        self.inner.read_next(now, task, page, moves, time)
    }

    #[inline]
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        self.inner.change_column(now, length)
    }

    #[inline]
    fn command(&mut self, now: Ns, time: Ns) -> Ns {
        self.inner.command(now, time)
    }

    fn program(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, cells: Span) -> Done {
        let fails = self.program_fails();
        let at = self.inner.program(now, task, page, moves, cells)?;
        if self.faults.errors.is_some() && cells.column < self.profile().page_bytes {
            let reads = self.ageing.reads[self.block_of(page).0 as usize];
            self.ageing.pages.insert(page, Programmed { at: now, reads, is_old: false });
        }
        if fails {
            let end = (cells.column + cells.length).min(self.profile().page_bytes);
            if cells.column < end {
                let steps = cells.column / self.step_bytes..end.div_ceil(self.step_bytes);
                self.torn.insert(page, steps);
            }
            return Err(Failed { at, fault: Fault::ProgramFailed });
        }
        Ok(at)
    }

    fn erase(&mut self, now: Ns, task: Task, block: BlockNo) -> Done {
        if !self.erase_fails(block) {
            let pages = self.profile().pages_per_block;
            let first = PageNo(block.0 * pages);
            self.torn.retain(|&page, _| page < first || page.0 >= first.0 + pages);
            if self.faults.errors.is_some() {
                self.ageing.forget(block, first..PageNo(first.0 + pages));
            }
            return self.inner.erase(now, task, block);
        }
        let time = self.profile().erase_ns();
        self.failed.erases += 1;
        self.failed.busy += time;
        Err(Failed { at: now + time, fault: Fault::EraseFailed })
    }

    fn wrong_bits(&self) -> Option<&WrongBits> {
        self.wrong.as_ref()
    }

    fn block(&self, block: BlockNo) -> &Block {
        self.inner.block(block)
    }

    fn counts(&self) -> Counts {
        let mut counts = self.inner.counts();
        counts.erases += self.failed.erases;
        counts.busy += self.failed.busy;
        counts
    }
}
