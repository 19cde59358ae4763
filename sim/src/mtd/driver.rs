//! The seam between MTD and what drives a chip: [`NandDriver`], and what both know ([`MtdInfo`]).

use super::EccStats;
use crate::flash::{Done, Failed, Fault, Flash, Span, WrongBits, WrongStep};
use crate::profile::{
    BoardProfile, ChipProfile, EccKind, EccProfile, PartitionProfile, SoftwareCosts,
};
use crate::sched::Task;
use crate::stop::Stop;
use crate::units::{BlockNo, Ns, PageNo};
use std::ops::Range;

/// What MTD and a driver both know (`struct mtd_info`).
#[derive(Clone, Debug)]
pub struct MtdInfo {
    /// The task that calls.
    pub task: Task,
    /// The chip.
    pub chip: ChipProfile,
    /// Its error correction.
    pub ecc: EccProfile,
    /// The processor costs of this board.
    pub costs: SoftwareCosts,
    /// Set by each operation of a driver: the time between its last cond_resched() and its end.
    /// Each operation of the chip begins with a lock that may sleep, so the time after the last
    /// such lock has none.
    pub since_resched: Ns,
    /// The most bits corrected in a step by the last call.
    pub bit_flips: u32,
    pub(super) ecc_stats: EccStats,
    pub(super) partition: PartitionProfile,
    /// page_shift, and the same for an ECC step. Both sizes are powers of two.
    page_shift: u32,
    step_shift: u32,
    /// Bytes of the partition that the last read could not correct.
    pub(super) wrong: Vec<Range<u64>>,
    /// Whether ECC made wrong bits of others, which is not modelled.
    pub(super) miscorrects: bool,
    pub(super) stop: Stop,
}

/// What was wrong with the pages of a read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Judged {
    /// The most bits corrected in a step.
    pub most: u32,
    /// Steps with more wrong bits than ECC corrects.
    pub failed: u64,
}

impl MtdInfo {
    pub(super) fn new(board: &BoardProfile) -> MtdInfo {
        let (page_bytes, step_bytes) = (board.chip.page_bytes, board.ecc.step_bytes);
        assert!(page_bytes.is_power_of_two() && step_bytes.is_power_of_two(), "checked profiles");
        MtdInfo {
            task: Task::Program,
            chip: board.chip,
            ecc: board.ecc,
            costs: board.software,
            since_resched: Ns::ZERO,
            bit_flips: 0,
            ecc_stats: EccStats::default(),
            partition: board.partition,
            page_shift: page_bytes.trailing_zeros(),
            step_shift: step_bytes.trailing_zeros(),
            wrong: Vec::new(),
            miscorrects: false,
            stop: Stop::default(),
        }
    }

    /// The page at an offset of the partition.
    #[inline]
    pub(super) fn page_at(&self, offset: u64) -> PageNo {
        let first = self.partition.first_block * self.chip.pages_per_block;
        PageNo(first + (offset >> self.page_shift) as u32)
    }

    /// The offset of a page in the partition.
    pub(super) fn offset_of(&self, page: PageNo) -> u64 {
        let first = self.partition.first_block * self.chip.pages_per_block;
        u64::from(page.0 - first) << self.page_shift
    }

    /// ECC steps of so many bytes, or the step of a column.
    #[inline]
    pub fn steps(&self, bytes: u32) -> u32 {
        bytes >> self.step_shift
    }

    /// The bytes of so many ECC steps.
    #[inline]
    pub fn step_bytes(&self, steps: u32) -> u32 {
        steps << self.step_shift
    }

    /// Steps with more wrong bits than ECC corrects so far (`ecc_stats.failed`).
    #[inline]
    pub fn failed_steps(&self) -> u64 {
        self.ecc_stats.failed
    }

    /// Begins a read: clears the wrong bytes, and returns the failed steps so far.
    #[inline]
    pub(super) fn begin_read(&mut self) -> u64 {
        self.bit_flips = 0;
        self.wrong.clear();
        self.ecc_stats.failed
    }

    /// Ends a read: -EBADMSG if steps failed since there were `failed` of them. All pages are read
    /// anyway.
    #[inline]
    pub(super) fn outcome(&self, at: Ns, failed: u64) -> Done {
        if self.ecc_stats.failed == failed {
            return Ok(at);
        }
        let fault = if self.miscorrects { Fault::Miscorrected } else { Fault::Uncorrectable };
        Err(Failed { at, fault })
    }

    /// ecc.correct for steps `first..first + steps` of `page`, which was read with these wrong
    /// bits. Returns the most bits corrected in one of them.
    #[inline]
    pub fn correct(
        &mut self,
        wrong: Option<&WrongBits>,
        page: PageNo,
        first: u32,
        steps: u32,
    ) -> u32 {
        wrong.map_or(0, |wrong| self.correct_bits(wrong, page, first, steps))
    }

    #[cold]
    fn correct_bits(&mut self, wrong: &WrongBits, page: PageNo, first: u32, steps: u32) -> u32 {
        if self.ecc.kind == EccKind::NoEcc {
            return 0;
        }
        let found = self.found(wrong, page, first, steps);
        if self.ecc.kind == EccKind::OnDie {
            return self.judge(found, 1);
        }
        self.ecc_stats.failed += found.failed;
        self.bit_flips = self.bit_flips.max(found.most);
        found.most
    }

    /// The wrong bits of a page that the chip corrects itself, added to those of pages before it.
    #[inline]
    pub fn gather(
        &mut self,
        wrong: Option<&WrongBits>,
        page: PageNo,
        steps: u32,
        before: Judged,
    ) -> Judged {
        let Some(wrong) = wrong else { return before };
        let Judged { most, failed } = self.found(wrong, page, 0, steps);
        Judged { most: most.max(before.most), failed: failed + before.failed }
    }

    /// Corrects steps; what the chip corrects itself is not counted yet.
    #[cold]
    fn found(&mut self, wrong: &WrongBits, page: PageNo, first: u32, steps: u32) -> Judged {
        let start = self.offset_of(page);
        let on_die = self.ecc.kind == EccKind::OnDie;
        let (mut most, mut failed) = (0, 0);
        for WrongStep { step, bits } in &wrong.0 {
            if !(first..first + steps).contains(step) {
                continue;
            }
            match bits {
                Some(bits) if bits.len() as u32 <= self.ecc.strength_bits => {
                    most = most.max(bits.len() as u32);
                    self.ecc_stats.corrected += if on_die { 0 } else { bits.len() as u64 };
                    continue;
                }
                Some(bits) => {
                    self.miscorrects |= self.takes_for_one(bits);
                    let bytes = bits.iter().map(|&bit| start + u64::from(bit / 8));
                    self.wrong.extend(bytes.map(|byte| byte..byte + 1));
                }
                None => {
                    let byte = |step: u32| start + (u64::from(step) << self.step_shift);
                    self.wrong.push(byte(*step)..byte(step + 1));
                }
            }
            failed += 1;
        }
        Judged { most, failed }
    }

    /// spinand_ondie_ecc_finish_io_req: the status tells of a read once, and counts for each of its
    /// pages. Returns the most bits corrected in a step.
    pub fn judge(&mut self, Judged { most, failed }: Judged, pages: u32) -> u32 {
        if failed > 0 {
            self.ecc_stats.failed += 1;
            return 0;
        }
        if most > 0 {
            let told = self.told(most);
            self.ecc_stats.corrected += u64::from(told) * u64::from(pages);
            self.bit_flips = self.bit_flips.max(told);
        }
        most
    }

    /// Whether the kernel's Hamming code takes wrong bits for fewer: the difference of the codes is
    /// that of one wrong bit where they are odd in number, and of none where their places add up to
    /// 0 (ecc-sw-hamming.c).
    fn takes_for_one(&self, bits: &[u32]) -> bool {
        let places = bits.iter().fold(0, |sum, bit| sum ^ bit) & (self.step_bytes(1) * 8 - 1);
        self.ecc.kind == EccKind::SoftwareSubpage && (bits.len() % 2 == 1 || places == 0)
    }

    /// What MTD hears of so many corrected bits of SPI-NAND, whose status tells them.
    fn told(&self, bits: u32) -> u32 {
        let strength = self.ecc.strength_bits;
        self.chip.spi.map_or(bits, |spi| spi.ecc_status.told(bits, strength))
    }
}

/// What drives a chip, below MTD: one page or block a call.
///
/// The part of a page that a call is about is a [`Span`]: bytes of the main area, the main area
/// and the OOB behind it, or bytes of the OOB alone. MTD walks over pages, keeps the bad block
/// table, adds up times and causes, and looks whether there is power. A driver decides which
/// commands a part of a page takes, what it costs, and what it keeps in memory.
///
/// # Examples
///
/// A driver that reads every page whole, corrects nothing and keeps nothing:
///
/// ```
/// use sim::flash::{Chip, Done, Flash, Moves, Span};
/// use sim::mtd::{Mtd, MtdInfo, NandDriver};
/// use sim::units::{BlockNo, Ns, PageNo};
/// #[derive(Clone)]
/// struct Plain<F>(F);
///
/// impl<F: Flash> NandDriver for Plain<F> {
///     type Flash = F;
///     fn flash(&self) -> &F { &self.0 }
///     fn flash_mut(&mut self) -> &mut F { &mut self.0 }
///     fn subpage_bytes(&self) -> u32 { self.0.profile().page_bytes }
///     fn free_oob_bytes(&self) -> u32 { self.0.profile().oob_bytes - 2 }
///     fn forget(&mut self) {}
///     fn read(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
///         let whole = Moves::one(0, mtd.chip.page_bytes.max(part.column + part.length));
///         self.0.read(now, mtd.task, page, whole)
///     }
///     fn program(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done {
///         self.0.program(now, mtd.task, page, Moves::one(part.column, part.length), part)
///     }
///     fn erase(&mut self, mtd: &mut MtdInfo, now: Ns, block: BlockNo) -> Done {
///         self.0.erase(now, mtd.task, block)
///     }
/// }
/// # fn drives(chip: Chip, board: &sim::profile::BoardProfile) -> Mtd<Plain<Chip>> {
/// Mtd::with_driver(Plain(chip), board)
/// # }
/// ```
pub trait NandDriver: Clone {
    /// The chip.
    type Flash: Flash;
    /// The chip below.
    fn flash(&self) -> &Self::Flash;
    /// The chip below, to be changed by the laboratory.
    fn flash_mut(&mut self) -> &mut Self::Flash;
    /// The smallest unit of a program (`mtd->writesize >> mtd->subpage_sft`).
    fn subpage_bytes(&self) -> u32;
    /// Free bytes of an OOB (`mtd->oobavail`).
    fn free_oob_bytes(&self) -> u32;
    /// Drops the pages that it keeps in memory.
    fn forget(&mut self);
    /// Whether a block is erased before it is marked bad (nand_block_markbad_lowlevel).
    fn erases_before_mark(&self) -> bool {
        true
    }
    /// Whether one command reads any length, and [`NandDriver::read`] is called once for all of it.
    #[inline]
    fn reads_across_pages(&self) -> bool {
        false
    }
    /// A read of several pages begins at `column` of `page`.
    #[inline]
    fn begin_read(&mut self, _mtd: &MtdInfo, _page: PageNo, _column: u32, _length: u32) {}
    /// Reads a part of a page, and corrects what its ECC covers.
    fn read(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done;
    /// Programs a part of a page: whole sub-pages, the page with its OOB, or bytes of its OOB.
    fn program(&mut self, mtd: &mut MtdInfo, now: Ns, page: PageNo, part: Span) -> Done;
    /// Erases a block of the chip.
    fn erase(&mut self, mtd: &mut MtdInfo, now: Ns, block: BlockNo) -> Done;
}
