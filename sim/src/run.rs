//! Runs a case: an operation list on a stack, from a prepared state, into rows.
//!
//! Invariants:
//! 1. Cases of one preparation start from equal states, whatever ran before them.
//! 2. Rows cover the operations after the mark, or all after the preparation if there is none.

use crate::chip::{Chip, Flash};
use crate::content::Source;
use crate::fs::jffs2::{self, Jffs2};
use crate::fs::ubifs::Ubifs;
use crate::fs::yaffs2::Yaffs2;
use crate::fs::{FlashFs, FsError};
use crate::mtd::Mtd;
use crate::ops::{self, Operation, OperationError};
use crate::powercut::PowerCut;
use crate::profile::BoardProfile;
use crate::survey::{survey, Survey};
use crate::trace::{FlashOp, Traced};
use crate::units::{BlockNo, Ns};
use crate::vfs::readahead::KernelReadAhead;
use crate::vfs::{Outcome, Vfs, ENOSPC};
use serde::Deserialize;
use thiserror::Error;

/// A kernel: what of it the stack asks for.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelProfile {
    /// Its read-ahead.
    pub readahead: KernelReadAhead,
    /// How its JFFS2 is built.
    pub jffs2: jffs2::Options,
}

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FsKind {
    Jffs2,
    Yaffs2,
    Ubifs,
}

impl core::str::FromStr for FsKind {
    type Err = String;

    fn from_str(name: &str) -> Result<FsKind, String> {
        match name {
            "jffs2" => Ok(FsKind::Jffs2),
            "yaffs2" => Ok(FsKind::Yaffs2),
            "ubifs" => Ok(FsKind::Ubifs),
            other => Err(format!("no file system '{other}': jffs2, yaffs2 or ubifs")),
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

/// Prepares once and runs every case from there.
pub fn run_cases(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
) -> Vec<Result<Measured, RunError>> {
    let chip = Chip::new(setting.board.chip);
    if cases.iter().any(|case| !case.cuts.is_empty()) {
        run_on(setting, cases, Traced::new(PowerCut::new(chip)))
    } else if setting.trace_flash {
        run_on(setting, cases, Traced::new(chip))
    } else {
        run_on(setting, cases, chip)
    }
}

fn run_on<F: Flash>(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
    flash: F,
) -> Vec<Result<Measured, RunError>> {
    let mtd = Mtd::new(flash, setting.board);
    match setting.fs {
        FsKind::Jffs2 => run_fs(setting, cases, Jffs2::format(mtd, Ns::ZERO, setting.kernel.jffs2)),
        FsKind::Yaffs2 => run_fs(setting, cases, Yaffs2::format(mtd, Ns::ZERO)),
        FsKind::Ubifs => run_fs(setting, cases, Ubifs::format(mtd, Ns::ZERO)),
    }
}

fn run_fs<S: FlashFs>(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
    formatted: Result<(S, Ns), FsError>,
) -> Vec<Result<Measured, RunError>> {
    let prepared = formatted.map_err(RunError::Format).and_then(|(fs, now)| {
        let costs = setting.board.software;
        let vfs = Vfs::new(fs, setting.kernel.readahead, costs, setting.board.memory, ops::SLOTS);
        let slots = vec![None; ops::SLOTS];
        let mut machine = Machine { vfs, now, files: Vec::new(), slots };
        machine.prepare(setting.prepare)?;
        Ok(machine)
    });
    let run = |case: &CaseInput<'_>| {
        let mut machine = prepared.clone()?;
        machine.vfs.set_read_ahead_kib(case.read_ahead_kib);
        machine.vfs.forget_page_buffer();
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

/// A stack with the program's point in time.
#[derive(Clone, Debug)]
struct Machine<S> {
    vfs: Vfs<S>,
    now: Ns,
    /// Paths that operations have named, and which of them each slot holds.
    files: Vec<String>,
    slots: Vec<Option<u32>>,
}

impl<S: FlashFs> Machine<S> {
    fn prepare(&mut self, text: &str) -> Result<(), RunError> {
        for (line, operation) in ops::parse(text)? {
            self.must(line, &operation)?;
        }
        Ok(())
    }

    /// Runs an operation that has to succeed.
    fn must(&mut self, line: usize, operation: &Operation<'_>) -> Result<(), RunError> {
        let name = ops::NAMES[operation.code()];
        let failed = |message: String| RunError::Failed { line, operation: name, message };
        let result = self.step(operation).map_err(|error| failed(error.to_string()))?;
        let wanted = match operation {
            Operation::Write { length, .. } => *length as i64,
            _ => 0,
        };
        if result < wanted {
            return Err(failed(match result {
                ENOSPC => FsError::NoSpace.to_string(),
                errno if errno < 0 => format!("errno {}", -errno),
                bytes => format!("{}: {bytes} of {wanted} bytes", FsError::NoSpace),
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
        for (line, operation) in before {
            self.must(*line, operation)?;
        }
        Ok(after)
    }

    fn measure(&mut self, text: &str, setting: &Setting<'_>) -> Result<Measured, RunError> {
        let operations = ops::parse(text)?;
        let after = self.reach_mark(&operations)?;
        let start = self.now;
        let counts = self.vfs.flash().counts();
        (self.vfs.cache_hits, self.vfs.cache_misses, self.vfs.cache_adds) = (0, 0, 0);
        self.vfs.flash_mut().start_recording();
        let mut measured = Measured::default();
        measured.requests.reserve(after.len());
        let mut busy = counts.busy;
        for (line, operation) in after {
            let began = self.now;
            let result = self.step(operation).map_err(|error| RunError::Failed {
                line: *line,
                operation: ops::NAMES[operation.code()],
                message: error.to_string(),
            })?;
            let file = self.file_of(operation);
            let (latency, busy_before) = (self.now - began, busy);
            let so_far = self.vfs.flash().counts();
            busy = so_far.busy;
            let flash_time = busy - busy_before;
            let times = (began - start, latency, flash_time);
            let changes = so_far.changes() - counts.changes();
            measured.requests.push(request(operation, file, times, changes, result));
        }
        measured.files = core::mem::take(&mut self.files);
        let spent = self.vfs.flash().counts();
        measured.flash_reads = spent.reads - counts.reads;
        measured.flash_programs = spent.programs - counts.programs;
        measured.flash_erases = spent.erases - counts.erases;
        measured.cache_hits = self.vfs.cache_hits;
        measured.cache_misses = self.vfs.cache_misses;
        measured.cache_adds = self.vfs.cache_adds;
        measured.flash = self.vfs.flash_mut().take_record();
        for op in &mut measured.flash {
            op.start = op.start - start;
        }
        self.wear(setting, &mut measured);
        Ok(measured)
    }

    /// Runs the case again until the power fails in a change after the mark, and looks at what is left.
    fn survey(mut self, text: &str, change: u64) -> Result<Survey, RunError> {
        let operations = ops::parse(text)?;
        let after = self.reach_mark(&operations)?;
        self.vfs.flash_mut().cut_power_in(change);
        for (line, operation) in after {
            let failed = |error: FsError| RunError::Failed {
                line: *line,
                operation: ops::NAMES[operation.code()],
                message: error.to_string(),
            };
            match self.step(operation) {
                Ok(_) => {}
                Err(FsError::PowerLost(at)) => {
                    return survey(&mut self.vfs, at, change).map_err(failed);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Err(RunError::NoSuchChange(change))
    }

    fn wear(&self, setting: &Setting<'_>, measured: &mut Measured) {
        let partition = setting.board.partition;
        for block in partition.first_block..partition.first_block + partition.blocks {
            let erases = u64::from(self.vfs.flash().block_erases(BlockNo(block)));
            measured.erase_count_max = measured.erase_count_max.max(erases);
            measured.erase_count_sum += erases;
        }
    }

    /// Runs one operation; the time goes on, the result is the system call's.
    fn step(&mut self, operation: &Operation<'_>) -> Result<i64, FsError> {
        let now = self.vfs.catch_up(self.now)?;
        let (result, now) = self.call(now, operation)?;
        self.now = now;
        Ok(result)
    }

    fn call(&mut self, now: Ns, operation: &Operation<'_>) -> Outcome {
        let vfs = &mut self.vfs;
        match *operation {
            Operation::Mkdir { path } => vfs.mkdir(now, path),
            Operation::Open { slot, path, flags } => {
                self.slots[slot] = Some(index_of(&mut self.files, path));
                vfs.open(now, slot, path, flags)
            }
            Operation::Close { slot } => vfs.close(now, slot),
            Operation::Read { slot, offset, length } => vfs.read(now, slot, offset, length),
            Operation::Write { slot, offset, length, seed, compressibility } => {
                vfs.write(now, slot, offset, length, Source { seed, compressibility })
            }
            Operation::Fsync { slot } => vfs.fsync(now, slot, false),
            Operation::Fdatasync { slot } => vfs.fsync(now, slot, true),
            Operation::Fadvise { slot, offset, length, advice } => {
                vfs.fadvise(now, slot, offset, length, advice)
            }
            Operation::Sync => vfs.sync(now),
            Operation::DropCaches => vfs.drop_caches(now),
            Operation::Pause { ns } => Ok((0, vfs.pause(now, now + Ns(ns))?)),
            Operation::Compute { steps } => vfs.compute(now, steps),
            Operation::Prepared | Operation::Mark => Ok((0, now)),
            Operation::Remount => vfs.remount(now),
            Operation::Truncate { slot, length } => vfs.truncate(now, slot, length),
            Operation::Unlink { path } => vfs.unlink(now, path),
            Operation::Rmdir { path } => vfs.rmdir(now, path),
            Operation::Rename { old, new } => vfs.rename(now, old, new),
            Operation::Sql { .. } => Err(FsError::NotModelled("sql in the simulator")),
        }
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
