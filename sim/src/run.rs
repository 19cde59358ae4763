//! Runs a case: an operation list on a stack, from a prepared state, into rows.
//!
//! Invariants:
//! 1. Cases of one preparation start from equal states, whatever ran before them.
//! 2. Rows cover the operations after the mark, or all after the preparation if there is none.

use crate::causes::Causes;
use crate::chip::{Chip, Flash};
use crate::fault::{Faults, Faulty};
use crate::fs::jffs2::{self, Jffs2};
use crate::fs::ubifs::{self, Ubifs};
use crate::fs::yaffs2::Yaffs2;
use crate::fs::{FlashFs, FsError};
use crate::mtd::Mtd;
use crate::mtdchar::{Access, MtdChar};
use crate::ops::{self, Operation, OperationError};
use crate::powercut::PowerCut;
use crate::profile::{BoardProfile, EccKind};
use crate::stack::{Stack, TIMER_SLACK};
use crate::survey::Survey;
use crate::ticks::Ticks;
use crate::trace::{FlashOp, Traced};
use crate::units::{BlockNo, Ns};
use crate::vfs::readahead::KernelReadAhead;
use crate::vfs::{Vfs, ENOSPC};
use serde::Deserialize;
use thiserror::Error;

/// The agent sleeps to the next whole so much before it prepares, before a case and at its mark, at
/// least twice `LEAD_NS` (agent/job.c): the kernel's ticks fall into the same places whatever ran before.
const PHASE_NS: u64 = 1_000_000_000;
const LEAD_NS: u64 = 2_000_000;
/// A fresh file system is mounted and a preparation begins at multiples of this (DICE_NS there), both of a second and of the 128 ticks of 4 ms that
/// JFFS2's dice go round in (`jiffies % 128`) and that a timer of YAFFS2's thread is rounded to.
const DICE_NS: u64 = 64_000_000_000;

/// A kernel: what of it the stack asks for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelProfile {
    /// Its read-ahead.
    pub readahead: KernelReadAhead,
    /// How its JFFS2 is built.
    pub jffs2: jffs2::Options,
    /// How its UBIFS is.
    pub ubifs: ubifs::Options,
}

/// Which file system, or none: the partition itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FsKind {
    Jffs2,
    Yaffs2,
    Ubifs,
    /// UBIFS mounted with `bulk_read`.
    UbifsInBulk,
    Mtd(Access),
}

impl core::str::FromStr for FsKind {
    type Err = String;

    fn from_str(name: &str) -> Result<FsKind, String> {
        match name {
            "jffs2" => Ok(FsKind::Jffs2),
            "yaffs2" => Ok(FsKind::Yaffs2),
            "ubifs" => Ok(FsKind::Ubifs),
            "ubifs,bulk_read" => Ok(FsKind::UbifsInBulk),
            "mtd" => Ok(FsKind::Mtd(Access::Device)),
            "mtd-driver" => Ok(FsKind::Mtd(Access::Driver)),
            other => {
                Err(format!("no file system '{other}': jffs2, yaffs2, ubifs, mtd or mtd-driver"))
            }
        }
    }
}

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
    /// Programs and erases since the mark when it had returned.
    pub changes: u64,
    /// The system call's return value.
    pub result: i64,
}

/// What a case gave.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// The measured operations in order.
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
    /// What each of the cuts left.
    pub surveys: Vec<Survey>,
    /// Blocks of the partition that are bad by the end.
    pub bad_blocks: u64,
    /// Bits that ECC put right since the mark.
    pub ecc_corrected: u64,
    /// ECC steps it could not put right.
    pub ecc_failed: u64,
    /// How full the file system was when it was made.
    pub fresh: Room,
    /// And when it was prepared.
    pub prepared: Room,
    /// Every block of the partition, if its wear was asked for.
    pub wear: Vec<BlockWear>,
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
}

/// Why a case gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// The operations are broken.
    #[error("{0}")]
    Operations(#[from] OperationError),
    /// The preparation met an error a program would see.
    #[error("line {line}: {operation}: {message}")]
    Failed {
        /// Line of the operation.
        line: usize,
        /// Its name.
        operation: &'static str,
        /// What happened.
        message: String,
    },
    /// A power cut was asked for in a change that the case does not make.
    #[error("makes no change {0} to the chip")]
    NoSuchChange(u64),
    /// The file system cannot be made on this partition.
    #[error("{0}")]
    Format(FsError),
}

/// What cases have in common: the stack they run on.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The board.
    pub board: &'a BoardProfile,
    /// The kernel.
    pub kernel: &'a KernelProfile,
    /// The file system.
    pub fs: FsKind,
    /// The operations that prepare it.
    pub prepare: &'a str,
    /// Whether flash operations are recorded.
    pub trace_flash: bool,
    /// Whether the wear of every block is wanted.
    pub record_wear: bool,
}

/// One case on a setting.
#[derive(Clone, Copy, Debug)]
pub struct CaseInput<'a> {
    /// The read-ahead window.
    pub read_ahead_kib: u32,
    /// The operations after the preparation.
    pub body: &'a str,
    /// Changes of the chip since the mark, from 1, in which power fails: after the case that many more
    /// times, each from its start (survey.rs).
    pub cuts: &'a [u64],
}

/// The chip that cases begin with, and what goes wrong with it.
#[derive(Clone, Debug, Default)]
pub struct ChipState {
    /// Erases of each block of the partition; none of them was ever erased if it is empty.
    pub erases: Vec<u32>,
    /// Blocks of the partition that are bad from the factory.
    pub bad_blocks: Vec<u32>,
    /// What fails from the mark on.
    pub faults: Faults,
}

/// Prepares once on a new chip and runs every case from there.
pub fn run_cases(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
) -> Vec<Result<Measured, RunError>> {
    run_cases_on(setting, &ChipState::default(), cases)
}

/// The same on a chip in a given state.
pub fn run_cases_on(
    setting: &Setting<'_>,
    state: &ChipState,
    cases: &[CaseInput<'_>],
) -> Vec<Result<Measured, RunError>> {
    if let Some(refused) = not_modelled(setting, state) {
        let refused = || Err(RunError::Format(FsError::NotModelled(refused)));
        return cases.iter().map(|_| refused()).collect();
    }
    let mut chip = new_chip(setting.board, state);
    set_erases(&mut chip, setting.board, state);
    if state.faults != Faults::default() || cases.iter().any(|case| !case.cuts.is_empty()) {
        let steps = setting.board.ecc.step_bytes;
        let faulty = Faulty::new(PowerCut::new(chip), state.faults.clone(), steps);
        run_on(setting, cases, Traced::new(faulty))
    } else if setting.trace_flash {
        run_on(setting, cases, Traced::new(chip))
    } else {
        run_on(setting, cases, chip)
    }
}

/// What df says is available on a fresh file system; none where the model does not say.
pub fn fresh_bytes(
    board: &BoardProfile,
    kernel: &KernelProfile,
    fs: FsKind,
    bad_blocks: &[u32],
) -> Result<Option<u64>, RunError> {
    let state = ChipState { bad_blocks: bad_blocks.to_vec(), ..ChipState::default() };
    let mtd = Mtd::new(new_chip(board, &state), board);
    let free = match fs {
        FsKind::Jffs2 => {
            Jffs2::format(mtd, Ns::ZERO, kernel.jffs2.clone()).map(|(fs, _)| fs.free_bytes())
        }
        FsKind::Yaffs2 => {
            let hz = kernel.jffs2.ticks_per_second;
            Yaffs2::format(mtd, Ns::ZERO, hz).map(|(fs, _)| fs.free_bytes())
        }
        FsKind::Ubifs | FsKind::UbifsInBulk => {
            Ubifs::format(mtd, Ns::ZERO, kernel.ubifs).map(|(fs, _)| fs.free_bytes())
        }
        FsKind::Mtd(_) => Ok(None),
    };
    free.map_err(RunError::Format)
}

fn new_chip(board: &BoardProfile, state: &ChipState) -> Chip {
    let bad = state.bad_blocks.iter().map(|bad| BlockNo(board.partition.first_block + bad));
    Chip::with_bad_blocks(board.chip, bad)
}

/// What is not done yet of such a chip.
fn not_modelled(setting: &Setting<'_>, state: &ChipState) -> Option<&'static str> {
    let faults = &state.faults;
    let ecc = setting.board.ecc;
    if faults.bit_flip_ppm > 0 && ecc.kind == EccKind::NoEcc {
        Some("reading wrong bits without ECC")
    } else if faults.bit_flip_ppm > 0
        && ecc.kind == EccKind::SoftwareSubpage
        && faults.bits_flipped > ecc.strength_bits + 1
    {
        Some("a Hamming code that takes three wrong bits for one")
    } else {
        None
    }
}

fn set_erases(flash: &mut Chip, board: &BoardProfile, state: &ChipState) {
    let partition = board.partition;
    for block in 0..partition.blocks {
        let erases = state.erases.get(block as usize).copied().unwrap_or(0);
        flash.set_block_erases(BlockNo(partition.first_block + block), erases);
    }
}

fn run_on<F: Flash>(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
    flash: F,
) -> Vec<Result<Measured, RunError>> {
    let mtd = Mtd::new(flash, setting.board);
    let kernel = setting.kernel;
    match setting.fs {
        FsKind::Jffs2 => run_fs(setting, cases, Jffs2::format(mtd, Ns::ZERO, kernel.jffs2.clone())),
        FsKind::Yaffs2 => {
            let hz = kernel.jffs2.ticks_per_second;
            run_fs(setting, cases, Yaffs2::format(mtd, Ns::ZERO, hz))
        }
        FsKind::Ubifs => run_fs(setting, cases, Ubifs::format(mtd, Ns::ZERO, kernel.ubifs)),
        FsKind::UbifsInBulk => {
            let formatted = Ubifs::format(mtd, Ns::ZERO, kernel.ubifs);
            run_fs(setting, cases, formatted.map(|(fs, now)| (fs.read_in_bulk(), now)))
        }
        FsKind::Mtd(access) => run_stack(setting, cases, Ok((MtdChar::new(mtd, access), Ns::ZERO))),
    }
}

fn run_fs<S: FlashFs>(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
    formatted: Result<(S, Ns), FsError>,
) -> Vec<Result<Measured, RunError>> {
    let costs = setting.board.software;
    let (readahead, memory) = (setting.kernel.readahead, setting.board.memory);
    let ticks = Ticks::new(setting.kernel.jffs2.ticks_per_second);
    let mounted =
        formatted.map(|(fs, now)| (Vfs::new(fs, readahead, costs, memory, ticks, ops::SLOTS), now));
    run_stack(setting, cases, mounted)
}

fn run_stack<S: Stack>(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
    made: Result<(S, Ns), FsError>,
) -> Vec<Result<Measured, RunError>> {
    let prepared = made.map_err(RunError::Format).and_then(|(stack, now)| {
        let fresh = Room::of(&stack, setting.board);
        let slots = vec![None; ops::SLOTS];
        let fill_byte_ps = setting.board.software.fill_byte_ps;
        let files = Vec::new();
        let mut machine =
            Machine { stack, now, files, slots, fresh, prepared: fresh, fill_byte_ps };
        machine.prepare(setting.prepare)?;
        machine.prepared = Room::of(&machine.stack, setting.board);
        Ok(machine)
    });
    let run = |case: &CaseInput<'_>| {
        let mut machine = prepared.clone()?;
        machine.stack.set_read_ahead_kib(case.read_ahead_kib);
        machine.stack.forget_page_buffer();
        let before = (!case.cuts.is_empty()).then(|| machine.clone());
        let mut measured = machine.measure(case.body, setting)?;
        for &change in case.cuts {
            let machine = before.clone().expect("kept for the cuts");
            measured.surveys.push(machine.survey(case.body, change)?);
        }
        Ok(measured)
    };
    cases.iter().map(run).collect()
}

/// How full a file system is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// What df says is available, where the model says so.
    pub bytes: Option<u64>,
    /// Pages of the partition that are programmed.
    pub pages: u64,
}

impl Room {
    fn of<S: Stack>(stack: &S, board: &BoardProfile) -> Room {
        let blocks = board.partition.first_block..;
        let blocks = blocks.take(board.partition.blocks as usize);
        let page_bytes = board.chip.page_bytes;
        let pages = |block| stack.flash().programmed_bytes(BlockNo(block)).div_ceil(page_bytes);
        let pages = blocks.map(|block| u64::from(pages(block))).sum();
        Room { bytes: stack.free_bytes(), pages }
    }
}

/// A stack with the program's point in time.
#[derive(Clone, Debug)]
struct Machine<S> {
    stack: S,
    now: Ns,
    /// Paths that operations have named, and which of them each slot holds.
    files: Vec<String>,
    slots: Vec<Option<u32>>,
    /// When it was made, and when it was prepared.
    fresh: Room,
    prepared: Room,
    /// What the program needs to make a byte that it writes.
    fill_byte_ps: u64,
}

impl<S: Stack> Machine<S> {
    fn prepare(&mut self, text: &str) -> Result<(), RunError> {
        self.next_phase(DICE_NS, TIMER_SLACK).map_err(RunError::Format)?;
        for (line, operation) in ops::parse(text)? {
            self.must(line, &operation)?;
        }
        Ok(())
    }

    /// Sleeps to where nothing but the phase of the ticks depends on what ran before, and `late`.
    fn next_phase(&mut self, phase_ns: u64, late: Ns) -> Result<(), FsError> {
        let end = Ns((self.now.0 + 2 * LEAD_NS).next_multiple_of(phase_ns));
        self.now = self.stack.pause(self.now, end + late)?;
        Ok(())
    }

    /// Runs an operation that has to succeed.
    fn must(&mut self, line: usize, operation: &Operation<'_>) -> Result<(), RunError> {
        let name = ops::NAMES[operation.code()];
        let failed = |message: String| RunError::Failed { line, operation: name, message };
        let result = self.fill(operation).and_then(|()| self.step(operation));
        let result = result.map_err(|error| failed(error.to_string()))?;
        let wanted = match operation {
            Operation::Write { length, .. } => *length as i64,
            _ => 0,
        };
        if result < wanted {
            return Err(failed(match result {
                ENOSPC => FsError::NoSpace(self.now).to_string(),
                errno if errno < 0 => format!("errno {}", -errno),
                bytes => format!("{}: {bytes} of {wanted} bytes", FsError::NoSpace(self.now)),
            }));
        }
        Ok(())
    }

    /// Runs what comes before the mark, if there is one; returns what is measured.
    fn reach_mark<'a, 'b>(
        &mut self,
        operations: &'b [(usize, Operation<'a>)],
    ) -> Result<&'b [(usize, Operation<'a>)], RunError> {
        let mark = operations.iter().position(|(_, op)| *op == Operation::Mark);
        let (before, after) = operations.split_at(mark.map_or(0, |mark| mark + 1));
        self.next_phase(PHASE_NS, TIMER_SLACK).map_err(RunError::Format)?;
        for (line, operation) in before {
            self.must(*line, operation)?;
        }
        // The agent has slept but for the last LEAD_NS before: the tick at the mark finds its timer due.
        let mark = Ns((self.now.0 + 2 * LEAD_NS).next_multiple_of(PHASE_NS));
        let read = Ns(mark.0 - LEAD_NS) + TIMER_SLACK;
        let now = self.stack.pause(self.now, read).map_err(RunError::Format)?;
        self.stack.close_elsewhere(now); // the driver's counts
        self.now = self.stack.pause(now, mark).map_err(RunError::Format)?;
        Ok(after)
    }

    fn measure(&mut self, text: &str, setting: &Setting<'_>) -> Result<Measured, RunError> {
        let operations = ops::parse(text)?;
        let after = self.reach_mark(&operations)?;
        let start = self.now;
        let counts = self.stack.flash().counts();
        let causes = self.stack.causes();
        let erases_at_mark =
            if setting.record_wear { self.block_erases(setting).collect() } else { Vec::new() };
        self.stack.take_cache_counts();
        let ecc = self.stack.mtd().ecc_stats();
        self.stack.flash_mut().begin_faults();
        if setting.trace_flash {
            self.stack.flash_mut().start_recording();
        }
        let mut measured = Measured::default();
        measured.requests.reserve(after.len());
        for (line, operation) in after {
            let failed = |error: FsError| RunError::Failed {
                line: *line,
                operation: ops::NAMES[operation.code()],
                message: error.to_string(),
            };
            self.fill(operation).map_err(failed)?;
            let (began, busy) = (self.now, self.stack.flash().counts().busy);
            let result = self.step(operation).map_err(failed)?;
            let file = self.file_of(operation);
            let so_far = self.stack.flash().counts();
            let (latency, flash_time) = (self.now - began, so_far.busy - busy);
            let times = (began - start, latency, flash_time);
            let changes = so_far.changes() - counts.changes();
            measured.requests.push(request(operation, file, times, changes, result));
        }
        measured.files = core::mem::take(&mut self.files);
        let spent = self.stack.flash().counts();
        measured.flash_reads = spent.reads - counts.reads;
        measured.flash_programs = spent.programs - counts.programs;
        measured.flash_erases = spent.erases - counts.erases;
        measured.causes = self.stack.causes().since(&causes);
        [measured.cache_hits, measured.cache_misses, measured.cache_adds] =
            self.stack.take_cache_counts();
        measured.flash = self.stack.flash_mut().take_record();
        for op in &mut measured.flash {
            op.start = op.start - start;
        }
        let mtd = self.stack.mtd();
        measured.ecc_corrected = mtd.ecc_stats().corrected - ecc.corrected;
        measured.ecc_failed = mtd.ecc_stats().failed - ecc.failed;
        measured.bad_blocks = u64::from(mtd.bad_blocks());
        (measured.fresh, measured.prepared) = (self.fresh, self.prepared);
        for (_, erases) in self.block_erases(setting) {
            measured.erase_count_max = measured.erase_count_max.max(u64::from(erases));
            measured.erase_count_sum += u64::from(erases);
        }
        let worn = self.block_erases(setting).zip(erases_at_mark);
        measured.wear = worn
            .map(|((block, erases), (_, before))| BlockWear {
                block,
                erases,
                erases_measured: erases - before,
            })
            .collect();
        Ok(measured)
    }

    /// Runs the case again until the power fails in a change after the mark, and looks at what is left.
    fn survey(mut self, text: &str, change: u64) -> Result<Survey, RunError> {
        let operations = ops::parse(text)?;
        let after = self.reach_mark(&operations)?;
        self.stack.flash_mut().cut_power_in(change);
        for (line, operation) in after {
            let failed = |error: FsError| RunError::Failed {
                line: *line,
                operation: ops::NAMES[operation.code()],
                message: error.to_string(),
            };
            match self.fill(operation).and_then(|()| self.step(operation)) {
                Ok(_) => {}
                Err(FsError::PowerLost(at)) => {
                    return self.stack.survey(at, change).map_err(failed);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Err(RunError::NoSuchChange(change))
    }

    /// The blocks of the partition, and how often each was erased.
    fn block_erases<'a>(
        &'a self,
        setting: &Setting<'_>,
    ) -> impl Iterator<Item = (BlockNo, u32)> + 'a {
        let first = setting.board.partition.first_block;
        let blocks = (first..first + setting.board.partition.blocks).map(BlockNo);
        blocks.map(|block| (block, self.stack.flash().block_erases(block)))
    }

    /// The program makes the bytes that it is about to write; what becomes due meanwhile is done.
    fn fill(&mut self, operation: &Operation<'_>) -> Result<(), FsError> {
        if let Operation::Write { length, .. } = *operation {
            let filled = self.now + Ns::from_ps(length, self.fill_byte_ps);
            if filled > self.now {
                self.now = self.stack.catch_up(filled)?;
            }
        }
        Ok(())
    }

    /// Runs one operation; the time goes on, the result is the system call's.
    fn step(&mut self, operation: &Operation<'_>) -> Result<i64, FsError> {
        let now = self.stack.catch_up(self.now)?;
        if let Operation::Open { slot, path, .. } = *operation {
            self.slots[slot] = Some(index_of(&mut self.files, path));
        }
        let (result, now) = self.stack.call(now, operation)?;
        self.now = now;
        Ok(result)
    }

    /// The index of the file an operation is about.
    #[inline]
    fn file_of(&mut self, operation: &Operation<'_>) -> Option<u32> {
        match *operation {
            Operation::Mkdir { path }
            | Operation::Unlink { path }
            | Operation::Rmdir { path }
            | Operation::Rename { old: path, .. }
            | Operation::Sql { path, .. } => Some(index_of(&mut self.files, path)),
            _ => self.slots[operation.slot()?],
        }
    }
}

/// Where `path` stands in `files`, added on first sight.
fn index_of(files: &mut Vec<String>, path: &str) -> u32 {
    let known = files.iter().position(|file| file == path);
    let index = known.unwrap_or_else(|| {
        files.push(path.to_owned());
        files.len() - 1
    });
    u32::try_from(index).expect("fewer files than 2^32")
}

fn request(
    operation: &Operation<'_>,
    file: Option<u32>,
    (start, latency, flash_time): (Ns, Ns, Ns),
    changes: u64,
    result: i64,
) -> Request {
    let (offset_bytes, length_bytes) = match *operation {
        Operation::Read { offset, length, .. }
        | Operation::Write { offset, length, .. }
        | Operation::Erase { offset, length, .. }
        | Operation::Fadvise { offset, length, .. } => (Some(offset), Some(length)),
        Operation::Truncate { length, .. } => (None, Some(length)),
        _ => (None, None),
    };
    let op = operation.code();
    Request { op, file, offset_bytes, length_bytes, start, latency, flash_time, changes, result }
}

impl Measured {
    /// The time of the case: the sum of the latencies of what was measured, pauses left out.
    pub fn time(&self) -> Ns {
        self.requests.iter().filter(|r| r.op != ops::PAUSE).map(|r| r.latency).sum()
    }

    /// The chip's part of `time`: on a machine whose software costs nothing it is all of it.
    pub fn flash_time(&self) -> Ns {
        self.requests.iter().filter(|r| r.op != ops::PAUSE).map(|r| r.flash_time).sum()
    }

    /// Bytes that reads and writes moved.
    pub fn bytes(&self) -> u64 {
        let moved = self.requests.iter().filter(|r| [ops::READ, ops::WRITE].contains(&r.op));
        moved.map(|r| r.result.max(0) as u64).sum()
    }
}
