//! A decorator that fails operations and flips bits.
//!
//! Mirrors kernel/flashbed_nand/faults.c and exec.c: it makes the same SplitMix64 draws (Steele,
//! Lea, Flood 2014) over the same numbers, so a seed fails the same operations in the simulator and
//! on a real kernel. Operations of each kind are counted from [`Faulty::begin_faults`]; none fails
//! before it. Simulated chips store no contents, so a failed program leaves cells that ECC cannot
//! correct. (The module programs a random part of the bits. One in two thousand such steps would
//! look like a single wrong bit.)
//!
//! Left out: torn operations (power cuts), read disturb, retention, wrong bits in the OOB.
//!
//! Invariants:
//! 1. The draws do not depend on what ran before `begin_faults`.
//! 2. A failed erase leaves its block unchanged. It counts as an operation of the chip.

use crate::flash::{Block, Counts, Done, Failed, Fault, Flash, Moves, Span, WrongBits};
use crate::profile::ChipProfile;
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};
use std::collections::BTreeMap;
use std::ops::Range;

/// Kinds of draws, as `enum fbn_draw` numbers them.
#[derive(Clone, Copy)]
enum Draw {
    Wear = 1,
    Program = 2,
    Erase = 3,
    Read = 4,
}

/// The unit of rates: parts per million.
const PPM: u64 = 1_000_000;

fn scramble(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// fbn_draw: the `number`th draw of a kind.
fn draw(seed: u64, what: Draw, number: u64) -> u64 {
    let kind = scramble(scramble(seed.wrapping_add(1)).wrapping_add(what as u64 + 1));
    scramble(kind.wrapping_add(number).wrapping_add(1))
}

/// fbn_next.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    scramble(*state)
}

/// fbn_below: 0 to `limit` - 1.
fn below(state: &mut u64, limit: u32) -> u32 {
    (((next(state) >> 32) * u64::from(limit)) >> 32) as u32
}

/// fbn_hit.
fn hit(draw: u64, ppm: u32) -> bool {
    (((draw >> 32) * PPM) >> 32) < u64::from(ppm)
}

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
}

impl<F: Flash> Faulty<F> {
    /// Wraps `inner`, whose driver has ECC over steps of `step_bytes`.
    pub fn new(inner: F, faults: Faults, step_bytes: u32) -> Faulty<F> {
        let worn = vec![false; inner.profile().blocks as usize];
        let failed = Counts::default();
        let torn = BTreeMap::new();
        Faulty { inner, faults, step_bytes, since: None, wrong: None, failed, worn, torn }
    }

    /// The flash below, to be changed by the laboratory.
    pub fn inner_mut(&mut self) -> &mut F {
        &mut self.inner
    }

    /// Begins to fail operations.
    pub fn begin_faults(&mut self) {
        self.since = Some(self.counts());
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
        Some(WrongBits { steps: step..step + 1, bits: Some(bits) })
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
        let before = self.inner.counts().reads;
        self.wrong = match self.torn.get(&page) {
            Some(steps) => Some(WrongBits { steps: steps.clone(), bits: None }),
            None => self.since.and_then(|since| self.flips(before - since.reads)),
        };
        self.inner.read(now, task, page, moves)
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
