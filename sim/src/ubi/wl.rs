//! Wear levelling: free blocks, the queue of works and the thread that does them.
//!
//! Mirrors drivers/mtd/ubi/wl.c of Linux 6.1 without fastmap: ubi_wl_get_peb with produce_free_peb,
//! ubi_wl_put_peb, __erase_worker, serve_prot_queue, ensure_wear_leveling, wear_leveling_worker with
//! ubi_eba_copy_leb of eba.c, and ubi_thread. The thread is a task of its own (sched.rs): it works
//! when the scheduler lets it, and can be stopped between the erase of a block and the header that
//! counts it. A move of a block for wear is done in one go.
//!
//! Left out: a block that is unmapped while it is being moved (nobody can, for a move is one step),
//! marking blocks bad.
//!
//! Invariants:
//! 1. A good block is in exactly one of: `free`, `used`, `protected`, a work, the thread's hands.
//! 2. The thread is runnable while there are works, from the moment it was woken.

use super::free::FreeBlocks;
use super::{Block, Header, Holds, Ubi, HEADER_BYTES};
use crate::causes::{Cause, Causes};
use crate::chip::Flash;
use crate::fs::{FsError, Result};
use crate::trace::Task;
use crate::units::Ns;
use std::collections::{BTreeSet, VecDeque};

/// CONFIG_MTD_UBI_WL_THRESHOLD.
const THRESHOLD: u32 = 4096;
/// WL_FREE_MAX_DIFF.
const FREE_MAX_DIFF: u32 = 2 * THRESHOLD;
/// UBI_PROT_QUEUE_LEN.
const PROTECTED_ERASES: usize = 10;

/// struct ubi_work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// erase_worker.
    Erase(u32),
    /// wear_leveling_worker.
    Level,
}

/// What the thread has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begun(Work),
    /// The block is erased, its header not written.
    Erased(u32),
}

/// The state of ubi->free, used, pq and works.
#[derive(Clone, Debug)]
pub(super) struct WearLevelling {
    free: FreeBlocks,
    /// By erases and number.
    used: BTreeSet<(u32, u32)>,
    /// The protection queue; a block leaves it after ten erases of others.
    protected: VecDeque<Vec<u32>>,
    works: VecDeque<Work>,
    is_level_scheduled: bool,
    thread_enabled: bool,
    step: Option<Step>,
    /// Since when the thread could go on.
    thread_at: Ns,
    /// It had to make way within a call into MTD, before the lock was free.
    thread_has_chip: bool,
}

impl WearLevelling {
    /// No block is known yet and the thread is not started.
    pub fn new(blocks: u32) -> WearLevelling {
        WearLevelling {
            free: FreeBlocks::new(blocks),
            used: BTreeSet::new(),
            protected: vec![Vec::new(); PROTECTED_ERASES].into(),
            works: VecDeque::new(),
            is_level_scheduled: false,
            thread_enabled: false,
            step: None,
            thread_at: Ns::ZERO,
            thread_has_chip: false,
        }
    }

    /// ubi_wl_init: an erased block with its header.
    pub fn add_free(&mut self, block: u32, erases: u32) {
        self.free.insert(block, erases);
    }

    /// ubi_wl_init: a block that holds a LEB.
    pub fn add_used(&mut self, block: u32, erases: u32) {
        self.used.insert((erases, block));
    }

    /// ubi_wl_init: a block to be erased when the thread is started.
    pub fn add_erase(&mut self, block: u32) {
        self.works.push_back(Work::Erase(block));
    }

    /// Whether the thread has nothing to do.
    fn is_idle(&self) -> bool {
        self.step.is_none() && self.works.is_empty()
    }

    /// Takes a block out of where ubi_wl_put_peb finds it.
    fn remove(&mut self, block: u32, erases: u32) {
        if self.used.remove(&(erases, block)) {
            return;
        }
        for queue in &mut self.protected {
            if let Some(at) = queue.iter().position(|&other| other == block) {
                queue.remove(at);
                return;
            }
        }
        unreachable!("block {block} is put and was not taken");
    }
}

impl<F: Flash> Ubi<F> {
    /// When the thread goes on, while nothing else does.
    pub fn next_due(&self) -> Option<Ns> {
        (self.sched.current() == Some(Task::UbiThread)).then_some(self.wl.thread_at)
    }

    /// Another task goes on with what is done in the foreground; none when all wait for a time. Who
    /// did so far waits for it.
    pub fn set_task(&mut self, now: Ns, task: Option<Task>) -> Result<Ns> {
        if self.foreground == task {
            return Ok(now);
        }
        self.foreground = task;
        let Some(next) = task else {
            self.sleep_all(now);
            self.wl.thread_at = now;
            return Ok(now);
        };
        self.sched.wake(now, next);
        self.sched.resched(now);
        self.let_run_until(now, next)
    }

    /// Nobody in the foreground has anything left to do.
    fn sleep_all(&mut self, now: Ns) {
        while self.sched.current().is_some_and(|task| task != Task::UbiThread) {
            self.sched.sleep(now);
        }
    }

    /// A thread is made.
    pub fn fork(&mut self, now: Ns, task: Task) {
        self.sched.fork(now, task);
    }

    /// Others have the processor until `task` has. The thread works; whoever else gets it waits for
    /// `task`.
    fn let_run_until(&mut self, now: Ns, task: Task) -> Result<Ns> {
        let mut now = now;
        while self.sched.current() != Some(task) {
            if self.sched.current() == Some(Task::UbiThread) {
                now = self.run_thread(now)?;
            } else {
                self.sched.sleep(now);
            }
        }
        self.mtd.flash_mut().set_task(task);
        Ok(now)
    }

    /// A place at which the kernel's code lets others run (cond_resched, might_sleep).
    fn might_resched(&mut self, now: Ns, task: Task) -> Result<Ns> {
        if self.sched.resched(now) == Some(task) {
            return Ok(now);
        }
        self.let_run_until(now, task)
    }

    /// The foreground's task, if others want the processor as well.
    #[inline]
    fn contended(&self) -> Option<Task> {
        self.foreground.filter(|_| self.sched.is_contended())
    }

    /// Before a call into MTD, which takes the chip's lock: whoever has it ends what it does there.
    #[inline]
    pub(super) fn lock_chip(&mut self, now: Ns) -> Result<Ns> {
        let Some(task) = self.contended() else { return Ok(now) };
        if std::mem::take(&mut self.wl.thread_has_chip) {
            self.sched.sleep(now);
            self.sched.wake(now, task);
        }
        self.might_resched(now, task)
    }

    /// After a call into MTD. Who was let in by a tick within the call stood before the lock and is
    /// woken now.
    #[inline]
    pub(super) fn unlock_chip(&mut self, now: Ns) -> Result<Ns> {
        let Some(task) = self.contended() else { return Ok(now) };
        if self.sched.resched(now) == Some(Task::UbiThread) && !self.wl.is_idle() {
            self.sched.sleep(now);
            let now = self.let_run_until(now, task)?;
            self.sched.wake(now, Task::UbiThread);
            return self.might_resched(now, task);
        }
        self.might_resched(now, task)
    }

    /// ubi_thread, one step of it, which has the processor; it may make way before.
    pub fn run_thread(&mut self, now: Ns) -> Result<Ns> {
        self.mtd.flash_mut().set_task(Task::UbiThread);
        self.wl.thread_has_chip = false;
        if self.sched.resched(now) != Some(Task::UbiThread) {
            return Ok(now);
        }
        let step = self.wl.step.take().or_else(|| self.wl.works.pop_front().map(Step::Begun));
        let mut now = now;
        match step {
            None => {
                self.sched.sleep(now);
                if self.foreground.is_none() {
                    self.sleep_all(now);
                }
                return Ok(now);
            }
            Some(Step::Begun(Work::Erase(block))) => {
                self.wl.step = Some(Step::Erased(block));
                now = self.erase_block(now, block)?;
            }
            Some(Step::Erased(block)) => now = self.finish_erase(now, block)?,
            Some(Step::Begun(Work::Level)) => now = self.level(now)?,
        }
        self.wl.thread_has_chip = self.sched.resched(now) != Some(Task::UbiThread);
        if self.foreground.is_none() {
            self.sleep_all(now);
        }
        self.wl.thread_at = now;
        Ok(now)
    }

    /// __schedule_ubi_work.
    fn schedule(&mut self, now: Ns, work: Work) {
        self.wl.works.push_back(work);
        self.wake_thread(now);
    }

    fn wake_thread(&mut self, now: Ns) {
        if self.wl.thread_enabled && !self.sched.is_runnable(Task::UbiThread) {
            self.sched.wake(now, Task::UbiThread);
            self.wl.thread_at = now;
        }
    }

    /// The end of ubi_attach_mtd_dev: the thread is started and finds what there is to do.
    pub(super) fn enable_thread(&mut self, now: Ns) -> Result<Ns> {
        self.sched.fork(now, Task::UbiThread);
        self.wl.thread_enabled = true;
        self.wake_thread(now);
        self.lock_chip(now)
    }

    /// kthread_stop in ubi_detach_mtd_dev: the thread ends what it has begun; works that nobody has
    /// begun are forgotten (shutdown_work).
    pub(super) fn stop_thread(&mut self, now: Ns) -> Result<Ns> {
        let mut now = now;
        if let Some(Step::Erased(block)) = self.wl.step.take() {
            now = self.finish_erase(now, block)?;
        }
        self.wl.works.clear();
        while self.sched.is_runnable(Task::UbiThread) {
            now = self.set_task(now, None)?;
            now = self.run_thread(now)?;
            now = self.set_task(now, Some(Task::Program))?;
        }
        Ok(now)
    }

    /// ubi_wl_get_peb: a free block, which the caller may have to produce itself.
    pub(super) fn get_block(&mut self, now: Ns) -> Result<(u32, Ns)> {
        let mut now = now;
        while self.wl.free.is_empty() {
            now = match self.wl.works.pop_front() {
                Some(Work::Erase(block)) => {
                    let now = self.erase_block(now, block)?;
                    self.finish_erase(now, block)?
                }
                Some(Work::Level) => self.level(now)?,
                None => return Err(FsError::NoSpace),
            };
        }
        let block = self.wl.free.take(FREE_MAX_DIFF).ok_or(FsError::NoSpace)?;
        self.protect(block);
        Ok((block, now))
    }

    /// prot_queue_add.
    fn protect(&mut self, block: u32) {
        self.wl.protected[PROTECTED_ERASES - 1].push(block);
    }

    /// ubi_wl_put_peb: the thread is to erase it, and usually does before the caller gets far.
    pub(super) fn put_block(&mut self, now: Ns, block: u32) -> Result<Ns> {
        self.wl.remove(block, self.blocks[block as usize].erases);
        self.schedule(now, Work::Erase(block));
        self.contended().map_or(Ok(now), |task| self.might_resched(now, task))
    }

    /// ubi_sync_erase without the header.
    fn erase_block(&mut self, now: Ns, block: u32) -> Result<Ns> {
        let state = &mut self.blocks[block as usize];
        let erases = state.erases + 1;
        *state = Block { erases, header: Header::Missing, holds: Holds::Nothing, written_bytes: 0 };
        Ok(self.mtd.erase(now, block)?)
    }

    /// The rest of __erase_worker.
    fn finish_erase(&mut self, now: Ns, block: u32) -> Result<Ns> {
        let now = self.write_erase_header(now, block)?;
        self.wl.free.insert(block, self.blocks[block as usize].erases);
        self.serve_protection_queue();
        self.ensure_levelling(now);
        Ok(now)
    }

    /// serve_prot_queue.
    fn serve_protection_queue(&mut self) {
        let mut over = self.wl.protected.pop_front().expect("ten queues");
        for block in over.drain(..) {
            self.wl.used.insert((self.blocks[block as usize].erases, block));
        }
        self.wl.protected.push_back(over);
    }

    /// ensure_wear_leveling.
    fn ensure_levelling(&mut self, now: Ns) {
        let worn = self.wl.free.closest(FREE_MAX_DIFF);
        let least = self.wl.used.first().copied();
        let (Some((erases, _)), Some(worn)) = (least, worn) else { return };
        let is_due = self.blocks[worn as usize].erases >= erases + THRESHOLD;
        if is_due && !std::mem::replace(&mut self.wl.is_level_scheduled, true) {
            self.schedule(now, Work::Level);
        }
    }

    /// wear_leveling_worker: what the least worn block in use holds goes to a much worn free one.
    fn level(&mut self, now: Ns) -> Result<Ns> {
        self.wl.is_level_scheduled = false;
        let Some((erases, from)) = self.wl.used.first().copied() else { return Ok(now) };
        let Some(to) = self.wl.free.take_worn(FREE_MAX_DIFF) else { return Ok(now) };
        let to_erases = self.blocks[to as usize].erases;
        if to_erases < erases + THRESHOLD {
            self.wl.free.insert(to, to_erases);
            return Ok(now);
        }
        self.wl.used.remove(&(erases, from));
        let now = self.copy_block(now, from, to)?;
        self.wl.used.insert((to_erases, to));
        let now = self.erase_block(now, from)?;
        self.finish_erase(now, from)
    }

    /// ubi_eba_copy_leb of a dynamic volume: the whole LEB is read, what is not erased at its end is
    /// written, and the new header is read back before it.
    fn copy_block(&mut self, now: Ns, from: u32, to: u32) -> Result<Ns> {
        let header = self.header_bytes;
        let mut now = self.mtd.read(now, self.address(from, header), HEADER_BYTES)?;
        now = self.mtd.read(now, self.address(from, self.leb_start), self.leb_bytes)?;
        let Holds::Leb { leb, .. } = self.blocks[from as usize].holds else {
            unreachable!("block {from} is in use and holds no LEB")
        };
        let bytes = self.blocks[from as usize].written_bytes;
        now = self.write_volume_header(now, to, leb, (bytes > 0).then_some(bytes))?;
        now = self.mtd.read(now, self.address(to, header), HEADER_BYTES)?;
        if bytes > 0 {
            let moved = Causes::of(Cause::WearLevelling, bytes);
            now = self.mtd.write_for(now, self.address(to, self.leb_start), bytes, moved)?;
        }
        self.blocks[to as usize].written_bytes = bytes;
        *self.place_mut(leb) = to;
        Ok(now)
    }
}
