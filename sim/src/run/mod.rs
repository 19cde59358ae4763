//! Runs a case: an operation list on a stack, from a prepared state, into rows.
//!
//! Invariants:
//! 1. Cases of one preparation start from equal states, whatever ran before them.
//! 2. Rows cover the operations after the mark, or all after the preparation if there is none.

pub mod boot;
mod failed;
mod laboratory;
mod layer_times;
mod live;
mod machine;
mod metadata;
pub mod parallel;
mod parts;
mod policies;
pub mod prepared;
mod results;
mod stack;
pub mod survey;
mod tasks;

pub use failed::Failed;
pub use laboratory::Laboratory;
pub use layer_times::LayerTimes;
pub use parts::{FsKind, Mount, MountError, MountOptions};
pub use policies::Policies;
pub use results::{BlockWear, Flush, FreeSpace, LiveSample, Measured, Request};
pub use stack::Stack;

use crate::block::Disk;
use crate::errno::FsError;
use crate::flash::{Chip, Faults, Faulty, FlashOp, PowerCut, Traced, MISCORRECTED};
use crate::fs::{jffs2, ubifs, FlashFs, Timed};
use crate::ledger::SpaceTable;
use crate::mtd::{Device, Driven, Mtd, NandDriver, Partition};
use crate::ops::{self, Operation, OperationError};
use crate::profile::{BoardProfile, EccKind, KernelFacts};
use crate::squashfs::{LayersRoot, Stored};
use crate::stop::Stop;
use crate::ubi::{self, Volumes};
use crate::units::{BlockNo, Ns};
use crate::vfs::readahead::KernelReadAhead;
use crate::vfs::{RootFs, Vfs};
use crate::waits::Waits;
use machine::{Machine, WholeCase};
use parts::OnStack;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use thiserror::Error;

/// A kernel, as far as the stack depends on it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelProfile {
    /// Its configuration.
    pub kernel: KernelFacts,
    /// Its read-ahead.
    pub readahead: KernelReadAhead,
    /// Its JFFS2.
    pub jffs2: jffs2::Options,
    /// Its UBIFS.
    pub ubifs: ubifs::Options,
    /// The volumes of UBI.
    #[serde(default)]
    pub volumes: Volumes,
    /// Whether the program's folder is a layer of overlayfs over its volume.
    #[serde(default)]
    pub overlay: bool,
    /// The root below that layer, where the preparation's files are in it.
    #[serde(skip)]
    pub root: Option<Root>,
    /// What the chip holds at first, in place of a new file system.
    #[serde(skip)]
    pub dump: Option<Dump>,
}

/// What a device's flash held.
#[derive(Clone, Debug)]
pub enum Dump {
    /// A JFFS2.
    Jffs2(Arc<jffs2::dumped::Dumped>),
    /// A UBIFS on a volume of UBI.
    Ubifs(Arc<(ubi::Dumped, ubifs::Dumped)>),
}

impl Dump {
    /// The blocks of the partition that are marked bad in it.
    pub fn bad_blocks(&self) -> Vec<u32> {
        match self {
            Dump::Jffs2(dumped) => dumped.bad_blocks.clone(),
            Dump::Ubifs(dumped) => dumped.0.bad_blocks().collect(),
        }
    }

    /// How often a block of the partition was erased, if the dump says so.
    fn erases(&self, block: u32) -> Option<u32> {
        match self {
            Dump::Jffs2(_) => None,
            Dump::Ubifs(dumped) => dumped.0.erases(block),
        }
    }
}

/// A read-only root that holds what a case's preparation makes.
#[derive(Clone, Debug)]
pub struct Root {
    /// Its volume.
    pub volume: usize,
    /// Its squashfs.
    pub stored: Arc<Stored>,
}

/// The caller of a run, who may end it and take rows of a long case early.
///
/// # Examples
///
/// A caller that stops after so many rows:
///
/// ```
/// use sim::{flash::FlashOp, run::{Request, Watch}, stop::Stop};
/// use std::cell::Cell;
/// struct Enough { left: Cell<usize>, stop: Stop }
///
/// impl Watch for Enough {
///     fn stop(&self) -> &Stop { &self.stop }
///     fn rows_at_once(&self) -> usize { 1024 }
///     fn take(&self, _: usize, requests: Vec<Request>, _: Vec<FlashOp>, _: &[String]) {
///         self.left.set(self.left.get().saturating_sub(requests.len()));
///         if self.left.get() == 0 { self.stop.throw(); }
///     }
/// }
/// ```
pub trait Watch {
    /// The switch that the caller throws to stop. It is checked before every operation, and at
    /// every page within one.
    fn stop(&self) -> &Stop;
    /// A table's rows are handed over once there are this many.
    fn rows_at_once(&self) -> usize;
    /// Takes the next rows of a case, by its index. `files` are the paths named so far.
    fn take(&self, case: usize, requests: Vec<Request>, flash: Vec<FlashOp>, files: &[String]);
    /// Takes the layers' times of the same operations, before their rows. A caller that did not
    /// record them is given none.
    fn take_layers(&self, _case: usize, _layers: Vec<LayerTimes>) {}
    /// Takes what the same operations waited for, likewise.
    fn take_waits(&self, _case: usize, _waits: Vec<Waits>) {}
}

/// No caller: cases run to their end and keep their rows.
#[derive(Default)]
struct Unwatched(Stop);

impl Watch for Unwatched {
    fn stop(&self) -> &Stop {
        &self.0
    }

    fn rows_at_once(&self) -> usize {
        usize::MAX
    }

    fn take(&self, _: usize, _: Vec<Request>, _: Vec<FlashOp>, _: &[String]) {}
}

/// Why a case has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// Its operations are invalid.
    #[error("{0}")]
    Operations(#[from] OperationError),
    /// An operation of the preparation failed with an error that a program would see.
    #[error("line {line}: {operation}: {message}")]
    Failed {
        /// Line of the operation.
        line: usize,
        /// Its name.
        operation: &'static str,
        /// The error.
        message: String,
        /// What the operation needs and the model leaves out, if that is the reason.
        not_modelled: Option<&'static str>,
    },
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
    /// A power cut was requested in a change that the case does not make.
    #[error("makes no change {0} to the chip")]
    NoSuchChange(u64),
    /// The file system cannot be created on this partition.
    #[error("{0}")]
    Format(FsError),
    /// While the program slept before the preparation, the case or its mark, the kernel's
    /// background work failed with an error that no program sees.
    #[error("{0}")]
    Interrupted(FsError),
    /// The setting needs what the model leaves out. Refused before anything is run.
    #[error("{0} is not modelled")]
    NotModelled(&'static str),
}

impl RunError {
    /// The error of an operation that failed in a way that no program sees.
    fn of_operation(line: usize, operation: &Operation<'_>, error: &FsError) -> RunError {
        RunError::Failed {
            line,
            operation: ops::NAMES[operation.code()],
            message: error.to_string(),
            not_modelled: error.not_modelled(),
        }
    }

    /// What the case needs and the model leaves out; none if it failed for another reason.
    pub fn not_modelled(&self) -> Option<&'static str> {
        match self {
            RunError::Failed { not_modelled, .. } => *not_modelled,
            RunError::Format(error) | RunError::Interrupted(error) => error.not_modelled(),
            RunError::NotModelled(what) => Some(what),
            _ => None,
        }
    }
}

/// The stack that cases have in common.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The board.
    pub board: &'a BoardProfile,
    /// The kernel.
    pub kernel: &'a KernelProfile,
    /// The file system and its mount options.
    pub fs: Mount,
    /// What decides in the kernel's place, from the preparation on.
    pub policies: &'a Policies,
    /// The operations of the preparation.
    pub prepare: &'a str,
    /// What is recorded besides the counts.
    pub recorded: Recorded,
}

/// What a case records besides its counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded {
    /// The measured operations.
    pub requests: bool,
    /// The flash operations.
    pub flash: bool,
    /// The wear of every block.
    pub wear: bool,
    /// The flash operations of a `sync()` after the measured part.
    pub flush: bool,
    /// Which bytes of each block are still of use, at moments of the case.
    pub live: bool,
    /// Where the measured operations spent their time, layer by layer. It needs `flash`, and a chip
    /// without faults and power cuts; elsewhere the file system's time stays 0.
    pub layers: bool,
    /// What the measured operations waited for.
    pub waits: bool,
}

/// One case on a setting.
#[derive(Clone, Copy, Debug)]
pub struct CaseInput<'a> {
    /// The read-ahead window.
    pub read_ahead_kib: u32,
    /// The operations after the preparation.
    pub body: &'a str,
    /// Changes of the chip since the mark, from 1, in which the power fails. The case is run again
    /// from its start for each of them (survey.rs).
    pub cuts: &'a [u64],
    /// JFFS2's choices on a recorded kernel, from the mark on. After the last of them the simulator
    /// chooses by itself.
    pub gc_choices: &'a [u16],
}

/// The chip that cases begin with, and its faults.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChipState {
    /// Erase counts of the partition's blocks; empty for a chip that was never erased.
    pub erases: Vec<u32>,
    /// Factory-bad blocks of the partition.
    pub bad_blocks: Vec<u32>,
    /// Faults from the mark on.
    pub faults: Faults,
}

/// Prepares once on a new chip and runs every case from there.
pub fn run_cases(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
) -> Vec<Result<Measured, RunError>> {
    run_cases_on(setting, &ChipState::default(), cases)
}

/// The same on a chip in this state.
pub fn run_cases_on(
    setting: &Setting<'_>,
    state: &ChipState,
    cases: &[CaseInput<'_>],
) -> Vec<Result<Measured, RunError>> {
    run_cases_watched(setting, state, cases, &Unwatched::default())
}

/// The same with a caller that watches.
pub fn run_cases_watched(
    setting: &Setting<'_>,
    state: &ChipState,
    cases: &[CaseInput<'_>],
    watch: &dyn Watch,
) -> Vec<Result<Measured, RunError>> {
    let cuts = cases.iter().any(|case| !case.cuts.is_empty());
    if let Some(refused) = not_modelled(setting, state, cuts) {
        return cases.iter().map(|_| Err(RunError::NotModelled(refused))).collect();
    }
    let state = &with_dump(setting, state);
    let mut chip = new_chip(setting.board, state);
    set_erases(&mut chip, setting, state);
    if state.faults != Faults::default() || cuts {
        let steps = setting.board.ecc.step_bytes;
        let faulty = Faulty::new(PowerCut::new(chip), state.faults.clone(), steps);
        run_on(setting, (cases, watch), Traced::new(faulty))
    } else if setting.recorded.flash {
        run_on(setting, (cases, watch), Traced::new(chip))
    } else {
        run_on(setting, (cases, watch), chip)
    }
}

/// Where the bytes of the partition are on a new file system; none if the model does not know.
pub fn fresh_space(
    board: &BoardProfile,
    kernel: &KernelProfile,
    fs: Mount,
    bad_blocks: &[u32],
) -> Result<Option<SpaceTable>, RunError> {
    if let Some(refused) = refused_on_nor(board, fs) {
        return Err(RunError::NotModelled(refused));
    }
    let state = ChipState { bad_blocks: bad_blocks.to_vec(), ..ChipState::default() };
    let mtd = Mtd::with_driver(Driven::new(new_chip(board, &state), board), board);
    parts::on_stack(mtd, fs, kernel, FreshSpace).map_err(RunError::Format)
}

/// Asks a new file system for its space.
struct FreshSpace;

impl<D: NandDriver<Flash: Laboratory>> OnStack<D> for FreshSpace {
    type Output = Result<Option<SpaceTable>, FsError>;

    fn file_system<S: FlashFs<Driver = D>>(self, made: Result<(S, Ns), FsError>) -> Self::Output {
        made.map(|(fs, _)| fs.space())
    }

    fn device<B: Device<Driver = D>>(self, _: B) -> Self::Output {
        Ok(None)
    }
}

/// The chip with the dump's bad blocks and wear.
fn with_dump(setting: &Setting<'_>, state: &ChipState) -> ChipState {
    let mut state = state.clone();
    let Some(dump) = &setting.kernel.dump else { return state };
    state.bad_blocks.extend(dump.bad_blocks());
    state.erases.resize(setting.board.partition.blocks as usize, 0);
    for (block, erases) in (0..).zip(&mut state.erases) {
        *erases = dump.erases(block).unwrap_or(*erases);
    }
    state
}

fn new_chip(board: &BoardProfile, state: &ChipState) -> Chip {
    let bad = state.bad_blocks.iter().map(|bad| BlockNo(board.partition.first_block + bad));
    Chip::with_bad_blocks(board.chip, bad)
}

/// What is not modelled of such a chip.
fn not_modelled(setting: &Setting<'_>, state: &ChipState, cuts: bool) -> Option<&'static str> {
    if setting.board.chip.nor.is_some() {
        return not_modelled_on_nor(setting, state, cuts);
    }
    let faults = &state.faults;
    let ecc = setting.board.ecc;
    let has_wrong_bits = faults.bit_flip_ppm > 0 || faults.errors.is_some();
    if matches!(setting.fs.fs, FsKind::Disk(Disk::Ftl(_))) && *faults != Faults::default() {
        Some("a chip that fails under a flash translation layer")
    } else if has_wrong_bits && ecc.kind == EccKind::NoEcc {
        Some("reading wrong bits without ECC")
    } else if faults.bit_flip_ppm > 0
        && ecc.kind == EccKind::SoftwareSubpage
        && faults.bits_flipped > ecc.strength_bits + 1
    {
        Some(MISCORRECTED)
    } else {
        None
    }
}

/// What is not modelled of a file system there.
fn refused_on_nor(board: &BoardProfile, fs: Mount) -> Option<&'static str> {
    let is_nor = board.chip.nor.is_some();
    (is_nor && fs.fs != FsKind::Jffs2).then_some("another file system than JFFS2 on SPI-NOR")
}

fn not_modelled_on_nor(
    setting: &Setting<'_>,
    state: &ChipState,
    cuts: bool,
) -> Option<&'static str> {
    if let Some(refused) = refused_on_nor(setting.board, setting.fs) {
        Some(refused)
    } else if cuts || state.faults != Faults::default() || !state.bad_blocks.is_empty() {
        Some("power cuts, faults and bad blocks of SPI-NOR")
    } else {
        None
    }
}

/// Sets the chip's erase counts. ubiformat erases each block, as a part of formatting that is not
/// counted.
fn set_erases(chip: &mut Chip, setting: &Setting<'_>, state: &ChipState) {
    let partition = setting.board.partition;
    let is_formatted = setting.fs.fs.is_erased_before();
    for block in 0..partition.blocks {
        let erases = state.erases.get(block as usize).copied().unwrap_or(0);
        let number = BlockNo(partition.first_block + block);
        chip.set_block_erases(number, erases, is_formatted);
    }
}

/// Cases and their caller.
type Watched<'a> = (&'a [CaseInput<'a>], &'a dyn Watch);

fn run_on<F: Laboratory>(
    setting: &Setting<'_>,
    cases: Watched<'_>,
    flash: F,
) -> Vec<Result<Measured, RunError>> {
    let can_lose_power = flash.can_lose_power();
    let mut mtd = Mtd::with_driver(Driven::new(flash, setting.board), setting.board);
    if can_lose_power {
        mtd.expect_power_cuts();
    }
    parts::on_stack(mtd, setting.fs, setting.kernel, Cases(setting, cases))
}

/// Runs cases on a stack.
struct Cases<'a>(&'a Setting<'a>, Watched<'a>);

impl<D: NandDriver<Flash: Laboratory>> OnStack<D> for Cases<'_> {
    type Output = Vec<Result<Measured, RunError>>;

    fn file_system<S: FlashFs<Driver = D>>(self, made: Result<(S, Ns), FsError>) -> Self::Output {
        let Cases(setting, cases) = self;
        if D::Flash::TIMES_LAYERS && setting.recorded.layers {
            return run_vfs(setting, cases, made.map(|(fs, now)| (Timed::new(fs), now)));
        }
        run_vfs(setting, cases, made)
    }

    fn device<B: Device<Driver = D>>(self, device: B) -> Self::Output {
        let Cases(setting, cases) = self;
        run_stack(setting, cases, Ok((Partition::new(device), Ns::ZERO)))
    }
}

/// Runs cases on a file system of the caller's own, which it has made on a chip of its own. What
/// `setting` and `cases` say of file system, chip and power cuts is not looked at.
pub fn run_cases_on_own<D: NandDriver<Flash: Laboratory>, S: FlashFs<Driver = D>>(
    setting: &Setting<'_>,
    cases: &[CaseInput<'_>],
    made: Result<(S, Ns), FsError>,
) -> Vec<Result<Measured, RunError>> {
    Cases(setting, (cases, &Unwatched::default())).file_system(made)
}

fn run_vfs<S: FlashFs<Driver: NandDriver<Flash: Laboratory>>>(
    setting: &Setting<'_>,
    cases: Watched<'_>,
    formatted: Result<(S, Ns), FsError>,
) -> Vec<Result<Measured, RunError>> {
    let costs = setting.board.software;
    let (readahead, memory) = (setting.kernel.readahead, setting.board.memory);
    let facts = setting.kernel.kernel;
    let root = setting.kernel.root.as_ref();
    let Setting { board, kernel, fs, prepare, .. } = *setting;
    let left = match root.map(|_| prepared::files_left(board, kernel, fs, prepare)).transpose() {
        Ok(left) => left,
        Err(why) => return cases.0.iter().map(|_| Err(why.clone())).collect(),
    };
    let mounted = formatted.and_then(|(fs, now)| {
        let mut vfs = Vfs::new(fs, readahead, costs, memory, facts, ops::SLOTS_AT_FIRST);
        let below = match root.zip(left.as_ref()) {
            Some((root, tree)) => {
                let fs: Box<dyn RootFs> = Box::new(LayersRoot::new(&root.stored, costs.squashfs)?);
                Some((root.volume, fs, tree))
            }
            None => None,
        };
        let now = if kernel.overlay { vfs.new_layer(now, below)? } else { now };
        Ok((vfs, now))
    });
    // What the preparation makes is in the root.
    let prepare = if root.is_some() { prepared::NOTHING } else { prepare };
    run_stack(&Setting { prepare, ..*setting }, cases, mounted)
}

fn run_stack<S: Stack>(
    setting: &Setting<'_>,
    cases: Watched<'_>,
    made: Result<(S, Ns), FsError>,
) -> Vec<Result<Measured, RunError>> {
    let (cases, watch) = cases;
    let prepared = made.map_err(RunError::Format).and_then(|(mut stack, now)| {
        stack.set_policies(setting.policies).map_err(RunError::NotModelled)?;
        let mut machine = Machine::new(stack, now, setting.board);
        machine.obey(watch.stop());
        machine.prepare(setting, watch)?;
        Ok(machine)
    });
    let measured = |case: &WholeCase<'_>| {
        let mut machine = prepared.clone()?;
        machine.begin_case(case.input.read_ahead_kib);
        let before = (!case.input.cuts.is_empty()).then(|| machine.clone());
        let mut measured = machine.measure(case, setting, watch)?;
        let mut known = BTreeSet::new();
        for &change in case.input.cuts {
            let machine = before.clone().expect("kept for the cuts");
            let mut survey = machine.survey(case, change, watch)?;
            survey.share(&mut known);
            measured.surveys.push(survey);
        }
        Ok(measured)
    };
    // A layer that was stopped reports a power cut.
    let stopped = |error| if watch.stop().is_thrown() { RunError::Stopped } else { error };
    let mut before = None;
    let run = |case| {
        prepared.as_ref().map_err(Clone::clone)?; // before an error of the case itself
        let case = WholeCase::of(case, before.as_ref())?;
        before = Some(case);
        measured(&case).map_err(stopped)
    };
    cases.iter().enumerate().map(run).collect()
}
