//! A stack and the program's clock: runs the operations before the mark and measures those after
//! it.
//!
//! agent/job/ (group.c, case.c, run.c) does the same on a real kernel.

use super::laboratory::Laboratory;
use super::live::LiveSamples;
use super::stack::Stack;
use super::survey::Survey;
use super::tasks::Tasks;
use super::{BlockWear, CaseInput, Flush, FreeSpace, Measured, Request, RunError, Setting, Watch};
use crate::causes::Causes;
use crate::errno::{FsError, ENOSPC};
use crate::flash::{Counts, Flash, FlashOp};
use crate::mtd::{EccStats, NandDriver};
use crate::ops::{self, Operation, OperationError, Operations, Version};
use crate::profile::BoardProfile;
use crate::sched::TIMER_SLACK;
use crate::stop::Stop;
use crate::units::{BlockNo, Ns};
use std::collections::BTreeMap;

// The phases of a case, as in agent/PROTOCOL.md and agent/job/phases.c.

/// Before a case and at its mark the agent sleeps until the next multiple of this, at least twice
/// `LEAD_NS`. The kernel's ticks then fall into the same places whatever ran before.
const PHASE_NS: u64 = 1_000_000_000;
const LEAD_NS: u64 = 2_000_000;
/// A new file system is mounted, and a preparation begins, at multiples of this. It is a multiple
/// of a second and of 128 ticks of 4 ms, by which JFFS2 chooses (`jiffies % 128`) and to which a
/// timer of YAFFS2's thread is rounded.
pub(super) const ROUND_NS: u64 = 64_000_000_000;
/// The longest run of a machine since its chip was created: 31 years. No sum of times overflows.
const LIFETIME: Ns = Ns(1_000_000_000_000_000_000);
/// How long the file system's threads have after a flush to erase the blocks that it freed.
const SETTLE_NS: u64 = 100_000_000;

/// The chip at the bottom of a stack.
type FlashOf<S> = <<S as Stack>::Driver as NandDriver>::Flash;

/// A stack and the program's clock.
#[derive(Clone, Debug)]
pub(super) struct Machine<S> {
    stack: S,
    now: Ns,
    /// Paths that operations have named, and the path of each slot.
    files: Vec<String>,
    /// Where each of them stands.
    places: BTreeMap<String, u32>,
    slots: Vec<Option<u32>>,
    /// The path of each mapping.
    mappings: Vec<Option<u32>>,
    tasks: Tasks,
    /// The free space after formatting, and after the preparation.
    fresh: FreeSpace,
    prepared: FreeSpace,
    /// The time in which the program generates a byte that it writes.
    fill_byte_ps: u64,
    /// The time of the agent's reading of the clock.
    clock_read_ns: Ns,
}

/// The counts when measuring began.
struct Mark {
    at: Ns,
    counts: Counts,
    causes: Causes,
    ecc: EccStats,
    /// How often a compressor without a price had run.
    unpriced: u64,
    /// Erases of each block, if wear is recorded.
    erases: Vec<(BlockNo, u32)>,
}

impl<S: Stack> Machine<S> {
    /// A machine with a stack that was formatted by `now`.
    pub fn new(stack: S, now: Ns, board: &BoardProfile) -> Machine<S> {
        let fresh = FreeSpace::of(&stack, board);
        let slots = vec![None; ops::SLOTS_AT_FIRST];
        let software = &board.software;
        Machine {
            stack,
            now,
            files: Vec::new(),
            places: BTreeMap::new(),
            slots,
            mappings: Vec::new(),
            tasks: Tasks::default(),
            fresh,
            prepared: fresh,
            fill_byte_ps: software.fill_byte_ps,
            clock_read_ns: software.clock_read_ns,
        }
    }

    /// Its stack.
    pub fn into_stack(self) -> S {
        self.stack
    }

    /// Makes it end when the caller stops the run.
    pub fn obey(&mut self, stop: &Stop) {
        self.stack.mtd_mut().obey(stop.clone());
    }

    fn flash(&self) -> &FlashOf<S> {
        self.stack.mtd().flash()
    }

    fn flash_mut(&mut self) -> &mut FlashOf<S> {
        self.stack.mtd_mut().flash_mut()
    }

    /// Runs the preparation.
    pub fn prepare(&mut self, setting: &Setting<'_>, watch: &dyn Watch) -> Result<(), RunError> {
        has_mark(setting.prepare)?;
        self.next_phase(ROUND_NS, TIMER_SLACK).map_err(RunError::Interrupted)?;
        for read in self.begin(setting.prepare)? {
            let (line, operation) = read?;
            self.must(line, &operation, watch)?;
        }
        self.wait_for_tasks().map_err(RunError::Interrupted)?;
        self.prepared = FreeSpace::of(&self.stack, setting.board);
        Ok(())
    }

    /// Sets the read-ahead of a case.
    pub fn begin_case(&mut self, read_ahead_kib: u32) {
        self.stack.set_read_ahead_kib(read_ahead_kib);
        self.stack.mtd_mut().forget_page_buffer();
    }

    /// Sleeps to the next multiple of `phase_ns`, and `late` more. Afterwards only the phase of the
    /// ticks depends on what ran before.
    fn next_phase(&mut self, phase_ns: u64, late: Ns) -> Result<(), FsError> {
        let end = Ns((self.now.0 + 2 * LEAD_NS).next_multiple_of(phase_ns));
        self.now = self.stack.pause(self.now, end + late)?;
        Ok(())
    }

    /// Begins the operations of a file, and its tasks.
    fn begin<'a>(&mut self, text: &'a str) -> Result<Operations<'a>, OperationError> {
        let operations = ops::operations(text)?;
        self.tasks = Tasks::new(operations.version() == Version::Two, self.read_ns());
        Ok(operations)
    }

    /// What the agent's clock shows now: the reading itself takes time.
    #[inline]
    fn read_ns(&self) -> Ns {
        self.now + self.clock_read_ns
    }

    /// Before a call: the current task sleeps until it is ready.
    #[inline]
    fn wait(&mut self, operation: &Operation<'_>) -> Result<(), FsError> {
        if self.tasks.is_own(operation) {
            return Ok(());
        }
        self.sleep_until(self.tasks.ready())
    }

    /// Sleeps until every task is ready, at the end of a file.
    fn wait_for_tasks(&mut self) -> Result<(), FsError> {
        self.sleep_until(self.tasks.all_ready())
    }

    #[inline]
    fn sleep_until(&mut self, ready: Ns) -> Result<(), FsError> {
        if ready > self.read_ns() {
            self.now = self.stack.sleep_until(self.now, ready)?;
        }
        Ok(())
    }

    /// Runs an operation that has to succeed.
    fn must(
        &mut self,
        line: usize,
        operation: &Operation<'_>,
        watch: &dyn Watch,
    ) -> Result<(), RunError> {
        if watch.stop().is_thrown() {
            return Err(RunError::Stopped);
        }
        let failed = |message: String| RunError::Failed {
            line,
            operation: ops::NAMES[operation.code()],
            message,
            not_modelled: None,
        };
        if self.tasks.switch(operation) {
            return Ok(());
        }
        let result = self.wait(operation).and_then(|()| self.fill(operation));
        let result = result.and_then(|()| self.step(operation));
        let result = result.map_err(|error| RunError::of_operation(line, operation, &error))?;
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

    /// Runs the operations before the mark, if there is one; returns those to measure.
    fn reach_mark<'a>(
        &mut self,
        case: &WholeCase<'a>,
        watch: &dyn Watch,
    ) -> Result<Operations<'a>, RunError> {
        let mut at_mark = !case.has_mark;
        let case = case.input;
        let mut operations = self.begin(case.body)?;
        self.next_phase(PHASE_NS, TIMER_SLACK).map_err(RunError::Interrupted)?;
        while !at_mark {
            let (line, operation) = operations.next().expect("a mark")?;
            self.must(line, &operation, watch)?;
            at_mark = operation == Operation::Mark;
        }
        // The agent sleeps until LEAD_NS before the mark, then once more. The tick of the mark
        // finds its timer expired.
        let mark = Ns((self.now.0 + 2 * LEAD_NS).next_multiple_of(PHASE_NS));
        let read = Ns(mark.0 - LEAD_NS) + TIMER_SLACK;
        let now = self.stack.pause(self.now, read).map_err(RunError::Interrupted)?;
        self.stack.close_elsewhere(now); // the file with the driver's counts
        self.now = self.stack.pause(now, mark).map_err(RunError::Interrupted)?;
        self.tasks.mark(self.read_ns());
        self.stack.replay_choices(case.gc_choices);
        Ok(operations)
    }

    /// Runs a case.
    pub fn measure(
        &mut self,
        case: &WholeCase<'_>,
        setting: &Setting<'_>,
        watch: &dyn Watch,
    ) -> Result<Measured, RunError> {
        let after = self.reach_mark(case, watch)?;
        let (mark, recorded) = (self.mark(setting), setting.recorded);
        let now = self.now;
        self.flash_mut().begin_faults(now);
        if recorded.flash {
            self.flash_mut().start_recording();
        }
        let mut measured = Measured::default();
        let mut taken = mark.counts;
        let mut live = LiveSamples::new(setting);
        live.look(&self.stack, Ns::ZERO, 0);
        for read in after {
            let (line, operation) = &read?;
            if watch.stop().is_thrown() {
                return Err(RunError::Stopped);
            }
            let failed = |error| RunError::of_operation(*line, operation, &error);
            if self.tasks.switch(operation) {
                continue;
            }
            self.wait(operation).and_then(|()| self.fill(operation)).map_err(failed)?;
            let busy = self.flash().counts().busy;
            let before = recorded.layers.then(|| self.stack.layer_times());
            if recorded.waits {
                self.stack.mtd_mut().begin_waits(self.now);
            }
            let (result, (start, latency)) = self.timed(operation, mark.at).map_err(failed)?;
            if recorded.waits {
                measured.waits.push(self.stack.mtd_mut().end_waits(self.now));
            }
            let file = self.file_of(operation);
            let so_far = self.flash().counts();
            let times = (start, latency, so_far.busy - busy);
            let changes = so_far.changes() - mark.counts.changes();
            let request = request(operation, file, times, changes, result);
            measured.count(&request);
            live.look(&self.stack, self.now - mark.at, changes);
            if let Some(before) = before {
                measured.layers.push(self.stack.layer_times().since(before));
            }
            if recorded.requests {
                measured.requests.push(request);
            }
            let traced = if recorded.flash { operations_between(&taken, &so_far) } else { 0 };
            let rows = measured.requests.len().max(traced);
            if rows >= watch.rows_at_once() {
                taken = so_far;
                let flash = self.take_flash(mark.at, setting);
                watch.take_layers(case.index, core::mem::take(&mut measured.layers));
                watch.take_waits(case.index, core::mem::take(&mut measured.waits));
                let requests = core::mem::take(&mut measured.requests);
                watch.take(case.index, requests, flash, &self.files);
            }
        }
        self.wait_for_tasks().map_err(RunError::Interrupted)?;
        measured.live = live.end(&self.stack, self.now - mark.at);
        self.end(&mark, setting, measured, watch)
    }

    /// What is known when all tasks have ended, and what the flush afterwards does.
    fn end(
        &mut self,
        mark: &Mark,
        setting: &Setting<'_>,
        mut measured: Measured,
        watch: &dyn Watch,
    ) -> Result<Measured, RunError> {
        measured.files = core::mem::take(&mut self.files);
        self.places.clear();
        self.since(mark, setting, &mut measured);
        measured.wear = self.wear_since(mark, setting, &mut measured);
        if setting.recorded.flush {
            measured.flush = self.flush();
            if watch.stop().is_thrown() {
                return Err(RunError::Stopped); // rather than a model that refuses to flush
            }
        }
        if measured.flush.is_some() {
            self.add_wear_of_flush(setting, &mut measured);
        }
        Ok(measured)
    }

    /// Stores the counts when measuring starts.
    fn mark(&mut self, setting: &Setting<'_>) -> Mark {
        self.stack.take_cache_counts();
        let mtd = self.stack.mtd();
        Mark {
            at: self.now,
            counts: self.flash().counts(),
            causes: *mtd.causes(),
            ecc: mtd.ecc_stats(),
            unpriced: mtd.unpriced().0,
            erases: if setting.recorded.wear {
                self.block_erases(setting).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Computes the counts since the mark, and ends recording.
    fn since(&mut self, mark: &Mark, setting: &Setting<'_>, measured: &mut Measured) {
        let spent = self.flash().counts().since(&mark.counts);
        measured.flash_reads = spent.reads;
        measured.flash_programs = spent.programs;
        measured.flash_erases = spent.erases;
        measured.causes = self.stack.mtd().causes().since(&mark.causes);
        [measured.cache_hits, measured.cache_misses, measured.cache_adds] =
            self.stack.take_cache_counts();
        measured.flash = self.take_flash(mark.at, setting);
        self.flash_mut().take_record(); // ends recording
        measured.gc_choices = self.stack.choices().to_vec();
        let mtd = self.stack.mtd();
        measured.ecc_corrected = mtd.ecc_stats().corrected - mark.ecc.corrected;
        measured.ecc_failed = mtd.ecc_stats().failed - mark.ecc.failed;
        measured.bad_blocks = u64::from(mtd.bad_blocks());
        let (count, packing) = mtd.unpriced();
        measured.unpriced = packing.filter(|_| count > mark.unpriced);
        (measured.fresh, measured.prepared) = (self.fresh, self.prepared);
    }

    /// Each block's wear, if it is recorded; in any case the maximum and the sum.
    fn wear_since(
        &self,
        mark: &Mark,
        setting: &Setting<'_>,
        measured: &mut Measured,
    ) -> Vec<BlockWear> {
        for (_, erases) in self.block_erases(setting) {
            measured.erase_count_max = measured.erase_count_max.max(u64::from(erases));
            measured.erase_count_sum += u64::from(erases);
        }
        let worn = self.block_erases(setting).zip(&mark.erases);
        worn.map(|((block, erases), (_, before))| BlockWear {
            block,
            erases,
            erases_measured: erases - before,
            erases_flush: None,
        })
        .collect()
    }

    /// Adds the erases since the measured part ended to the wear, if that is recorded.
    fn add_wear_of_flush(&self, setting: &Setting<'_>, measured: &mut Measured) {
        let now = self.block_erases(setting);
        for (worn, (_, erases)) in measured.wear.iter_mut().zip(now) {
            worn.erases_flush = Some(erases - worn.erases);
        }
    }

    /// The flash operations since the last call, if they are recorded. Recording continues.
    fn take_flash(&mut self, start: Ns, setting: &Setting<'_>) -> Vec<FlashOp> {
        if !setting.recorded.flash {
            return Vec::new();
        }
        let flash = self.flash_mut();
        let mut taken = flash.take_record();
        flash.start_recording();
        for op in &mut taken {
            op.start = op.start - start;
        }
        taken
    }

    /// Flushes what the measured part left in memory, as the agent's `sync()` does
    /// (agent/job/answer.c). None if the model refuses it; the case itself is measured by then.
    fn flush(&mut self) -> Option<Flush> {
        let counts = self.flash().counts();
        let causes = *self.stack.mtd().causes();
        self.tasks = Tasks::default();
        self.step(&Operation::Sync).ok()?;
        self.step(&Operation::Pause { ns: SETTLE_NS }).ok()?;
        let spent = self.flash().counts().since(&counts);
        Some(Flush {
            reads: spent.reads,
            programs: spent.programs,
            erases: spent.erases,
            causes: self.stack.mtd().causes().since(&causes),
            free_bytes: self.stack.free_bytes(),
        })
    }

    /// Runs the case again until the power fails in a change after the mark, and surveys what is
    /// left.
    pub fn survey(
        mut self,
        case: &WholeCase<'_>,
        change: u64,
        watch: &dyn Watch,
    ) -> Result<Survey, RunError> {
        let after = self.reach_mark(case, watch)?;
        self.flash_mut().cut_power_in(change);
        for read in after {
            let (line, operation) = &read?;
            if watch.stop().is_thrown() {
                return Err(RunError::Stopped);
            }
            if self.tasks.switch(operation) {
                continue;
            }
            let failed = |error| RunError::of_operation(*line, operation, &error);
            let ready = self.wait(operation).and_then(|()| self.fill(operation));
            match ready.and_then(|()| self.step(operation)) {
                Ok(_) => {}
                Err(FsError::PowerLost(_)) if watch.stop().is_thrown() => {
                    return Err(RunError::Stopped);
                }
                Err(FsError::PowerLost(at)) => {
                    let torn = self.flash_mut().power_on();
                    return self.stack.survey(at, change, torn).map_err(failed);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Err(RunError::NoSuchChange(change))
    }

    /// The blocks of the partition with their erase counts.
    fn block_erases<'a>(
        &'a self,
        setting: &Setting<'_>,
    ) -> impl Iterator<Item = (BlockNo, u32)> + 'a {
        let first = setting.board.partition.first_block;
        let blocks = (first..first + setting.board.partition.blocks).map(BlockNo);
        blocks.map(|block| (block, self.flash().block(block).erases))
    }

    /// The program generates the bytes that it is about to write. Timers that expire meanwhile are
    /// handled.
    fn fill(&mut self, operation: &Operation<'_>) -> Result<(), FsError> {
        if let Operation::Write { length, fill, .. } | Operation::Store { length, fill, .. } =
            *operation
        {
            let generated = fill.generated_bytes(length);
            self.now = self.stack.work(self.now, Ns::from_ps(generated, self.fill_byte_ps))?;
        }
        Ok(())
    }

    /// Runs one operation and advances the clock; returns the system call's result.
    fn step(&mut self, operation: &Operation<'_>) -> Result<i64, FsError> {
        if let Operation::Open { slot, path, .. } = *operation {
            if slot >= self.slots.len() {
                self.slots.resize(slot + 1, None);
            }
            self.slots[slot] = Some(self.index_of(path));
        } else if let Operation::Mmap { mapping, slot, .. } = *operation {
            if mapping >= self.mappings.len() {
                self.mappings.resize(mapping + 1, None);
            }
            self.mappings[mapping] = self.slots[slot];
        }
        if self.tasks.is_own(operation) {
            self.tasks.call(operation);
            return Ok(0);
        }
        let (result, now) = self.stack.call(self.now, operation)?;
        if now > LIFETIME {
            return Err(FsError::NotModelled("a machine that runs for more than 31 years"));
        }
        self.now = now;
        self.tasks.returned(self.read_ns());
        Ok(result)
    }

    /// The same, and when the operation began, since the mark, and how long it took.
    fn timed(&mut self, operation: &Operation<'_>, mark: Ns) -> Result<(i64, (Ns, Ns)), FsError> {
        let began = self.now;
        if self.tasks.is_own(operation) {
            return Ok((0, self.tasks.call(operation)));
        }
        let result = self.step(operation)?;
        Ok((result, (began - mark, self.now - began)))
    }

    /// The index of an operation's file.
    /// The index of `path` in `files`. Adds a path that is new.
    fn index_of(&mut self, path: &str) -> u32 {
        if let Some(&known) = self.places.get(path) {
            return known;
        }
        let index = u32::try_from(self.files.len()).expect("fewer files than 2^32");
        self.files.push(path.to_owned());
        self.places.insert(path.to_owned(), index);
        index
    }

    #[inline]
    fn file_of(&mut self, operation: &Operation<'_>) -> Option<u32> {
        match operation.path() {
            Some(path) => Some(self.index_of(path)),
            None => match operation.mapping() {
                Some(mapping) => self.mappings[mapping],
                None => self.slots[operation.slot()?],
            },
        }
    }
}

/// A case whose operations were read to their end without an error.
#[derive(Clone, Copy, Debug)]
pub struct WholeCase<'a> {
    index: usize,
    pub input: &'a CaseInput<'a>,
    has_mark: bool,
}

impl<'a> WholeCase<'a> {
    /// Checks a case, or returns the first bad line. Operations that `before` shares are not read
    /// again, because cases of a sweep often have the same.
    pub fn of(
        (index, input): (usize, &'a CaseInput<'a>),
        before: Option<&WholeCase<'a>>,
    ) -> Result<WholeCase<'a>, OperationError> {
        let same = before.filter(|before| before.input.body == input.body);
        let has_mark = same.map_or_else(|| has_mark(input.body), |same| Ok(same.has_mark))?;
        Ok(WholeCase { index, input, has_mark })
    }
}

/// Whether operations have a mark, or their first bad line. Runs none of them.
fn has_mark(operations: &str) -> Result<bool, OperationError> {
    let mut has_mark = false;
    for read in ops::operations(operations)? {
        has_mark |= read?.1 == Operation::Mark;
    }
    Ok(has_mark)
}

/// The number of flash operations between two counts.
fn operations_between(before: &Counts, after: &Counts) -> usize {
    let all = |counts: &Counts| counts.reads + counts.programs + counts.erases;
    (all(after) - all(before)) as usize
}

fn request(
    operation: &Operation<'_>,
    file: Option<u32>,
    (start, latency, flash_time): (Ns, Ns, Ns),
    changes: u64,
    result: i64,
) -> Request {
    let (offset_bytes, length_bytes) = (operation.offset(), operation.length());
    let op = operation.code();
    Request { op, file, offset_bytes, length_bytes, start, latency, flash_time, changes, result }
}
