//! Wear levelling: the free blocks, the queue of works and the thread that runs them.
//!
//! Mirrors drivers/mtd/ubi/wl.c of Linux 6.1: ubi_wl_get_peb with produce_free_peb, ubi_wl_put_peb,
//! ubi_wl_scrub_peb, serve_prot_queue, ensure_wear_leveling and ubi_thread. The thread is a task of
//! its own (sched/) and can be preempted between any two calls into MTD. erase.rs and moves.rs have
//! its works, fastmap_wl.rs what a kernel with fastmap does otherwise.
//!
//! Invariants:
//! 1. A good block is in exactly one of: `free`, `used`, `scrub`, `erroneous`, `protected`, a
//!    queued work, the work that the thread is running, what fastmap keeps.
//! 2. Once it was woken, the thread is runnable while there are works.

use super::erase::Erase;
use super::free::{FreeBlocks, FREE_MAX_DIFF, THRESHOLD};
use super::moves::{Move, Step};
use super::{Leb, Ubi};
use crate::errno::{FsError, Result};
use crate::mtd::NandDriver;
use crate::sched::{Mutex, Sched, Task};
use crate::units::Ns;
use crate::waits::{over, Wait};
use std::collections::{BTreeSet, VecDeque};

/// WL_RESERVED_PEBS: a move needs a free block.
pub(super) const LEVELLING_BLOCKS: u32 = 1;
/// EBA_RESERVED_PEBS: so does an atomic change of a LEB.
pub(super) const CHANGE_BLOCKS: u32 = 1;
pub(super) const WORK_BLOCKS: u32 = LEVELLING_BLOCKS + CHANGE_BLOCKS;
/// UBI_PROT_QUEUE_LEN.
const PROTECTED_ERASES: usize = 10;

/// struct ubi_work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// erase_worker.
    Erase { block: u32, torture: bool },
    /// wear_leveling_worker.
    Level,
}

impl Work {
    pub fn erase(block: u32, torture: bool) -> Work {
        Work::Erase { block, torture }
    }
}

/// The state of ubi->free, used, pq and works.
#[derive(Clone, Debug)]
pub(super) struct WearLevelling {
    pub free: FreeBlocks,
    /// Ordered by erases and number.
    pub used: BTreeSet<(u32, u32)>,
    /// Blocks with corrected bit flips, in the same order.
    pub scrub: BTreeSet<(u32, u32)>,
    /// Blocks that could not be read during a move.
    pub erroneous: BTreeSet<u32>,
    /// The protection queue; a block leaves it after ten erases of other blocks.
    protected: VecDeque<Vec<u32>>,
    works: VecDeque<Work>,
    pub is_level_scheduled: bool,
    thread_enabled: bool,
    step: Option<Step>,
    /// The foreground holds `work_sem`, so that no work begins.
    works_locked: bool,
    /// The thread waits for `work_sem` in do_work.
    thread_waits_for_works: bool,
    /// ubi->move_mutex, which the thread holds during a move.
    move_mutex: Mutex,
    /// The thread was preempted within a call into MTD, before it released the chip's lock.
    thread_has_chip: bool,
}

impl WearLevelling {
    /// The state before an attach: no blocks, and the thread not started.
    pub fn new(blocks: u32) -> WearLevelling {
        WearLevelling {
            free: FreeBlocks::new(blocks),
            used: BTreeSet::new(),
            scrub: BTreeSet::new(),
            erroneous: BTreeSet::new(),
            protected: vec![Vec::new(); PROTECTED_ERASES].into(),
            works: VecDeque::new(),
            is_level_scheduled: false,
            thread_enabled: false,
            step: None,
            works_locked: false,
            thread_waits_for_works: false,
            move_mutex: Mutex::default(),
            thread_has_chip: false,
        }
    }

    /// ubi_wl_init: adds an erased block with its header.
    pub fn add_free(&mut self, block: u32, erases: u32) {
        self.free.insert(block, erases);
    }

    /// ubi_wl_init: adds a block that holds a LEB.
    pub fn add_used(&mut self, block: u32, erases: u32, scrub: bool) {
        let tree = if scrub { &mut self.scrub } else { &mut self.used };
        tree.insert((erases, block));
    }

    /// ubi_wl_init: adds a block that the thread will erase once it is started.
    pub fn add_erase(&mut self, block: u32) {
        self.works.push_back(Work::Erase { block, torture: false });
    }

    /// ubi_for_each_protected_peb.
    pub fn protected_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        self.protected.iter().flatten().copied()
    }

    /// The blocks of queued works, in order.
    pub fn blocks_to_erase(&self) -> impl Iterator<Item = u32> + '_ {
        self.works.iter().filter_map(|work| match *work {
            Work::Erase { block, .. } => Some(block),
            Work::Level => None,
        })
    }

    /// Whether the thread has nothing to do.
    fn is_idle(&self) -> bool {
        self.step.is_none() && self.works.is_empty()
    }

    /// prot_queue_del.
    fn unprotect(&mut self, block: u32) -> bool {
        for queue in &mut self.protected {
            if let Some(at) = queue.iter().position(|&other| other == block) {
                queue.remove(at);
                return true;
            }
        }
        false
    }

    /// The move in progress.
    fn moving(&self) -> Option<&Move> {
        match &self.step {
            Some(Step::Move(moving)) => Some(moving),
            _ => None,
        }
    }
}

impl<D: NandDriver> Ubi<D> {
    /// The machine's scheduler.
    pub fn sched(&mut self) -> &mut Sched {
        &mut self.sched
    }

    /// Sets the task that makes the next calls; returns the one before.
    pub fn set_caller(&mut self, task: Option<Task>) -> Option<Task> {
        self.mtd.set_task(task.unwrap_or(Task::Background));
        std::mem::replace(&mut self.foreground, task)
    }

    /// Makes another task the foreground, or none until a timer expires. The task before waits for
    /// it.
    pub fn set_task(&mut self, now: Ns, task: Option<Task>) -> Result<Ns> {
        if self.foreground == task {
            return Ok(now);
        }
        if self.thread_waits {
            self.wake_thread(now);
        }
        let before = std::mem::replace(&mut self.foreground, task);
        let Some(next) = task else {
            if before.is_some() && self.sched.current() == before {
                self.sched.sleep(now);
            }
            return Ok(now);
        };
        self.sched.wake(now, next);
        self.sched.resched(now);
        self.run_others_while(now, next, before)
    }

    /// wb_shutdown of an unmount: the foreground waits for the update of the bandwidth.
    pub fn flush_bandwidth(&mut self, now: Ns) -> Result<Ns> {
        self.sched.flush_bandwidth(now);
        self.foreground.map_or(Ok(now), |task| self.run_others_until(now, task))
    }

    /// kthread_run of a thread of the file system.
    pub fn run_kthread(&mut self, now: Ns, task: Task) -> Result<Ns> {
        self.sched.create_kthread(now, task);
        let now = self.foreground.map_or(Ok(now), |creator| self.run_others_until(now, creator))?;
        self.sched.start_kthread(now, task);
        Ok(now)
    }

    /// kthread_stop: the thread finishes its current work and exits.
    pub fn stop_kthread(&mut self, now: Ns, task: Task) -> Result<Ns> {
        let Some(waiter) = self.foreground.take() else { return Ok(now) };
        let mut now = now;
        self.thread_waits = false;
        self.sched.wake(now, task);
        if self.sched.current() == Some(waiter) {
            self.sched.sleep(now);
        }
        while self.sched.current() != Some(task) || self.has_step(task) {
            now = self.run_other(now, None)?;
        }
        self.sched.exit_kthread(now, waiter);
        self.foreground = Some(waiter);
        self.run_others_until(now, waiter)
    }

    fn has_step(&self, task: Task) -> bool {
        task == Task::UbiThread && self.wl.step.is_some()
    }

    /// Runs other tasks until `task` has the processor. The thread works; any other task blocks
    /// until `task` is done.
    fn run_others_until(&mut self, now: Ns, task: Task) -> Result<Ns> {
        self.run_others_while(now, task, None)
    }

    /// The same, where `before` has nothing left to do.
    fn run_others_while(&mut self, now: Ns, task: Task, before: Option<Task>) -> Result<Ns> {
        let mut now = now;
        while self.sched.current() != Some(task) {
            now = self.run_other(now, before)?;
        }
        self.mtd.set_task(task);
        Ok(now)
    }

    /// Runs, blocks or puts to sleep the task that has the processor.
    fn run_other(&mut self, now: Ns, before: Option<Task>) -> Result<Ns> {
        let current = self.sched.current();
        if current == Some(Task::UbiThread) {
            return self.run_thread(now);
        }
        if before.is_some() && before == current {
            self.sched.sleep(now);
        } else {
            self.sched.block(now);
        }
        Ok(now)
    }

    /// A place where the kernel's code may schedule another task (cond_resched, might_sleep).
    fn might_resched(&mut self, now: Ns, task: Task) -> Result<Ns> {
        if self.sched.resched(now) == Some(task) {
            return Ok(now);
        }
        self.run_others_until(now, task)
    }

    /// The foreground's task, if another task is runnable.
    #[inline]
    fn contended(&self) -> Option<Task> {
        self.foreground.filter(|_| !self.is_working && self.sched.is_contended())
    }

    /// Before a call into MTD, which takes the chip's lock: a task that holds it finishes its call
    /// first.
    #[inline]
    pub(super) fn lock_chip(&mut self, now: Ns) -> Result<Ns> {
        if self.contended().is_none() && !self.has_waiting_thread() {
            self.chip_released = false;
            return Ok(now);
        }
        self.lock_contended_chip(now)
    }

    #[cold]
    fn lock_contended_chip(&mut self, now: Ns) -> Result<Ns> {
        let now = self.reach_resched(now)?;
        let Some(task) = self.contended() else { return Ok(now) };
        // This task blocks on the chip's lock until the thread, which may not be the next to run,
        // releases it and wakes this task.
        if self.wl.thread_has_chip {
            self.sched.sleep(now);
            while self.sched.current() != Some(Task::UbiThread) {
                self.sched.block(now);
            }
            self.wl.thread_has_chip = false;
            self.sched.wake(now, task);
        }
        self.might_resched(now, task)
    }

    /// After a call into MTD: another task may run at the kernel's next preemption point.
    pub(super) fn release_chip(&mut self, now: Ns) {
        self.chip_released = !self.is_working;
        if self.contended().is_some() {
            // Without works the thread sleeps, for which it needs no lock.
            let blocks = self.sched.pass_locked(now - self.mtd.since_resched());
            self.thread_waits = blocks && !self.wl.is_idle();
        }
    }

    /// Whether the thread waits for the chip's lock, which the last call into MTD had.
    #[inline]
    fn has_waiting_thread(&self) -> bool {
        self.thread_waits && !self.is_working
    }

    /// The first preemption point after a call into MTD.
    #[inline]
    pub fn reach_resched(&mut self, now: Ns) -> Result<Ns> {
        let released = std::mem::take(&mut self.chip_released);
        match self.contended().or(self.foreground.filter(|_| self.has_waiting_thread())) {
            Some(task) if released => self.resched_from(now, task),
            _ => Ok(now),
        }
    }

    /// leb_read_unlock, leb_write_unlock.
    #[inline]
    pub(super) fn unlock_leb(&mut self, now: Ns) -> Result<Ns> {
        self.locked = None;
        if self.has_fastmap_work() {
            self.wake_thread(now);
        }
        self.reach_resched(now)
    }

    /// After a call into MTD. A task that a tick scheduled within the call blocked on the chip's
    /// lock and is woken now.
    #[inline]
    pub(super) fn unlock_chip(&mut self, now: Ns) -> Result<Ns> {
        self.contended().map_or(Ok(now), |task| self.resched_from(now, task))
    }

    /// Runs other tasks than `task`, if the scheduler chooses them.
    #[cold]
    fn resched_from(&mut self, now: Ns, task: Task) -> Result<Ns> {
        let (mut now, mut is_waiting) = (now, false);
        self.sched.resched(now - self.mtd.since_resched());
        while self.sched.current() != Some(task) {
            // Scheduled within the call, at once or after another task, the thread blocks on the
            // chip's lock until `task` runs again and has released it.
            if self.sched.current() == Some(Task::UbiThread) && !self.wl.is_idle() {
                self.sched.sleep(now);
                // It waits for `work_sem` instead if it would begin a work while that is held.
                self.wl.thread_waits_for_works = self.wl.works_locked;
                is_waiting |= !self.wl.works_locked;
            } else {
                now = self.run_other(now, None)?;
            }
        }
        self.mtd.set_task(task);
        if is_waiting | std::mem::take(&mut self.thread_waits) {
            self.sched.wake(now, Task::UbiThread);
        }
        self.might_resched(now, task)
    }

    /// yield(): lets the thread finish its work before a retry.
    pub(super) fn yield_to_thread(&mut self, now: Ns) -> Result<Ns> {
        let Some(task) = self.contended() else { return Ok(now) };
        self.sched.yield_now(now);
        self.run_others_until(now, task)
    }

    /// yield() of a work, which takes effect after this step.
    pub(super) fn yield_after_step(&mut self) {
        self.is_yielding = true;
    }

    /// One step of ubi_thread, which has the processor, unless another task preempts it first.
    pub fn run_thread(&mut self, now: Ns) -> Result<Ns> {
        self.mtd.set_task(Task::UbiThread);
        self.wl.thread_has_chip = false;
        if self.sched.resched(now) != Some(Task::UbiThread) {
            return Ok(now);
        }
        if self.wl.step.is_none() {
            if self.has_fastmap_work() && !self.wl.works_locked {
                return self.do_fastmap_work(now);
            }
            if self.is_read_only || self.wl.works.is_empty() {
                self.wl.thread_waits_for_works = false;
                self.sched.sleep(now);
                return Ok(now);
            }
            self.wl.thread_waits_for_works = self.wl.works_locked;
            if self.wl.works_locked {
                self.sched.sleep(now);
                return Ok(now);
            }
        }
        if !self.thread_locks_moves() {
            self.sched.sleep(now);
            return Ok(now);
        }
        let step = self.wl.step.or_else(|| {
            let work = self.wl.works.pop_front()?;
            self.begin(now, work)
        });
        // The foreground holds buf_mutex: the thread keeps this step for when it is woken.
        if self.has_buffer && step.is_some_and(|step| step.locks_buffer()) {
            self.wl.step = step;
            self.sched.sleep(now);
            return Ok(now);
        }
        let mut now = now;
        if let Some(step) = step {
            let was_working = std::mem::replace(&mut self.is_working, true);
            (self.wl.step, now) = self.continue_work(now, step)?;
            self.is_working = was_working;
        }
        if self.wl.moving().is_none() {
            self.unlock_moves(now, Task::UbiThread);
        }
        let is_yielding = std::mem::take(&mut self.is_yielding);
        if is_yielding {
            self.sched.yield_now(now);
        }
        // Preempted at the end of a call into MTD the thread still holds the chip's lock. yield()
        // comes after the call, where it does not.
        let within = now - self.mtd.since_resched();
        let is_preempted = self.sched.resched(within) != Some(Task::UbiThread);
        self.wl.thread_has_chip = is_preempted && !is_yielding;
        Ok(now)
    }

    /// mutex_lock(&ubi->move_mutex) of wear_leveling_worker, if the thread is about to begin it.
    fn thread_locks_moves(&mut self) -> bool {
        let begins = self.wl.step.is_none() && self.wl.works.front() == Some(&Work::Level);
        !begins || self.wl.move_mutex.lock(Task::UbiThread)
    }

    /// mutex_unlock(&ubi->move_mutex) of its holder.
    fn unlock_moves(&mut self, now: Ns, task: Task) {
        if self.wl.move_mutex.owner() != Some(task) {
            return;
        }
        if let Some(waiter) = self.wl.move_mutex.unlock() {
            self.sched.wake(now, waiter);
        }
    }

    /// A task that puts a block which is being moved waits for the move. The task holds the LEB's
    /// lock, so the move ends soon.
    fn wait_for_move(&mut self, mut now: Ns, block: u32) -> Result<Ns> {
        let Some(task) = self.foreground else { return Ok(now) };
        while self.wl.moving().is_some_and(|moving| moving.from == block) {
            while !self.wl.move_mutex.lock(task) {
                self.sched.sleep(now);
                now = self.run_others_until(now, task)?;
            }
            self.unlock_moves(now, task);
        }
        Ok(now)
    }

    /// The first step of a work; none if there is nothing to do.
    fn begin(&mut self, now: Ns, work: Work) -> Option<Step> {
        match work {
            Work::Erase { block, torture } => Some(Step::Erase(Erase::new(block, torture))),
            Work::Level => self.begin_move(now),
        }
    }

    /// One call into MTD of a work; returns the remaining work.
    pub(super) fn continue_work(&mut self, now: Ns, step: Step) -> Result<(Option<Step>, Ns)> {
        let wait = match step {
            Step::Erase(_) => Wait::Erase,
            Step::Move(_) => Wait::WearLevelling,
        };
        let before = self.mtd.enter(now, wait);
        let done = self.one_call(now, step);
        self.mtd.enter(over(&done, now), before);
        done
    }

    fn one_call(&mut self, now: Ns, step: Step) -> Result<(Option<Step>, Ns)> {
        match step {
            Step::Erase(erase) => {
                let (rest, now) = self.continue_erase(now, erase)?;
                Ok((rest.map(Step::Erase), now))
            }
            Step::Move(moving) => self.continue_move(now, moving),
        }
    }

    /// do_work of a task other than the thread, without interruption.
    pub(super) fn do_work(&mut self, now: Ns, step: Option<Step>) -> Result<Ns> {
        let was_working = std::mem::replace(&mut self.is_working, true);
        let (mut step, mut now) = (step, now);
        while let Some(next) = step {
            match self.continue_work(now, next) {
                Ok(done) => (step, now) = done,
                Err(error) => {
                    self.is_working = was_working;
                    return Err(error);
                }
            }
        }
        self.is_yielding = false;
        self.is_working = was_working;
        Ok(now)
    }

    /// do_work of the first queued work, if there is one.
    pub(super) fn do_next_work(&mut self, now: Ns) -> Result<Option<Ns>> {
        let Some(work) = self.wl.works.pop_front() else { return Ok(None) };
        let step = self.begin(now, work);
        self.do_work(now, step).map(Some)
    }

    /// ubi_sync_erase by the foreground, which keeps the block.
    pub(super) fn sync_erase(&mut self, now: Ns, block: u32, torture: bool) -> Result<Ns> {
        self.do_work(now, Some(Step::Erase(Erase::kept(block, torture))))
    }

    /// ubi_wl_flush of all works: the caller does them.
    pub(super) fn flush_works(&mut self, mut now: Ns) -> Result<Ns> {
        while let Some(later) = self.do_next_work(now)? {
            now = later;
        }
        Ok(now)
    }

    /// down_write of `work_sem`: the thread ends the work that it does, and begins no other.
    pub(super) fn lock_works(&mut self, now: Ns) -> Result<Ns> {
        let mut now = now;
        if !self.is_working {
            now = self.cond_resched(now)?;
            now =
                self.wait_while(now, |ubi| ubi.wl.step.is_some() || ubi.wl.thread_waits_for_works)?;
        }
        self.wl.works_locked = true;
        Ok(now)
    }

    /// up_write of `work_sem`.
    pub(super) fn unlock_works(&mut self, now: Ns) {
        self.wl.works_locked = false;
        if self.wl.thread_waits_for_works {
            self.wake_thread(now);
        }
    }

    /// cond_resched of the foreground.
    pub(super) fn cond_resched(&mut self, now: Ns) -> Result<Ns> {
        self.contended().map_or(Ok(now), |task| self.might_resched(now, task))
    }

    /// leb_read_lock, leb_write_lock: waits while the LEB is being moved.
    #[inline]
    pub(super) fn lock_leb(&mut self, now: Ns, leb: Leb) -> Result<Ns> {
        let is_free = self.contended().is_none() && self.wl.step.is_none();
        let now = if is_free { now } else { self.wait_for_leb(now, leb)? };
        self.locked = Some(leb);
        Ok(now)
    }

    #[cold]
    fn wait_for_leb(&mut self, now: Ns, leb: Leb) -> Result<Ns> {
        let now = self.contended().map_or(Ok(now), |task| self.might_resched(now, task))?;
        self.wait_while(now, |ubi| {
            let moving = ubi.wl.moving().filter(|moving| moving.has_locked());
            moving.is_some_and(|moving| ubi.holds(moving.from) == Some(leb))
        })
    }

    /// buf_mutex, which torture and moves hold, too.
    pub(super) fn lock_buffer(&mut self, now: Ns) -> Result<Ns> {
        let now = self.wait_while(now, |ubi| ubi.wl.step.is_some_and(|step| step.has_buffer()))?;
        self.has_buffer = true;
        Ok(now)
    }

    pub(super) fn unlock_buffer(&mut self, now: Ns) {
        self.has_buffer = false;
        if self.wl.step.is_some_and(|step| step.locks_buffer()) {
            self.wake_thread(now);
        }
    }

    /// The foreground sleeps while the thread holds what it needs.
    fn wait_while(&mut self, now: Ns, held: impl Fn(&Self) -> bool) -> Result<Ns> {
        let Some(task) = self.foreground.filter(|_| held(self)) else { return Ok(now) };
        if self.thread_waits {
            self.wake_thread(now);
        }
        let mut now = now;
        while held(self) {
            match self.sched.current() {
                Some(Task::UbiThread) => now = self.run_thread(now)?,
                Some(other) if other != task => self.sched.block(now),
                _ => _ = self.sched.sleep(now),
            }
        }
        self.sched.wake(now, task);
        self.might_resched(now, task)
    }

    /// __schedule_ubi_work.
    pub(super) fn schedule(&mut self, now: Ns, work: Work) {
        self.wl.works.push_back(work);
        self.wake_thread(now);
    }

    pub(super) fn wake_thread(&mut self, now: Ns) {
        self.thread_waits = false;
        if self.wl.thread_enabled && !self.sched.is_runnable(Task::UbiThread) {
            self.sched.wake(now, Task::UbiThread);
        }
    }

    /// The end of ubi_attach_mtd_dev: starts the thread, which finds the queued works.
    pub(super) fn enable_thread(&mut self, now: Ns) -> Result<Ns> {
        self.sched.create_kthread(now, Task::UbiThread);
        let now = self.foreground.map_or(Ok(now), |creator| self.run_others_until(now, creator))?;
        self.wl.thread_enabled = true;
        self.wake_thread(now);
        self.lock_chip(now)
    }

    /// kthread_stop in ubi_detach_mtd_dev: the thread finishes its current work; queued works are
    /// dropped (shutdown_work).
    pub(super) fn stop_thread(&mut self, now: Ns) -> Result<Ns> {
        if std::mem::take(&mut self.wl.thread_waits_for_works) {
            let work = self.wl.works.pop_front();
            self.wl.step = work.and_then(|work| self.begin(now, work));
        }
        self.wl.works.clear();
        self.stop_kthread(now, Task::UbiThread)
    }

    /// ubi_wl_get_peb: takes a free block. The caller may have to produce one itself.
    pub(super) fn get_block(&mut self, now: Ns) -> Result<(u32, Ns)> {
        if self.fastmap.is_some() {
            return self.get_pool_block(now);
        }
        let now = self.produce_free(now)?;
        let block = self.wl.free.take(FREE_MAX_DIFF, 0).ok_or(FsError::NoSpace(now))?;
        self.protect(block);
        Ok((block, now))
    }

    /// produce_free_peb: does works until a block is free, as long as there are any.
    pub(super) fn produce_free(&mut self, mut now: Ns) -> Result<Ns> {
        while self.wl.free.is_empty() {
            let Some(later) = self.do_next_work(now)? else { return Ok(now) };
            now = later;
            if self.is_read_only {
                return Err(FsError::ReadOnly(now));
            }
        }
        Ok(now)
    }

    /// prot_queue_add.
    pub(super) fn protect(&mut self, block: u32) {
        self.wl.protected[PROTECTED_ERASES - 1].push(block);
    }

    /// ubi_wl_put_peb: queues the block for the thread to erase, which usually happens before the
    /// caller gets far.
    pub(super) fn put_block(&mut self, now: Ns, block: u32, torture: bool) -> Result<Ns> {
        let now = self.wait_for_move(now, block)?;
        let entry = (self.blocks[block as usize].erases, block);
        let was_erroneous = self.wl.erroneous.remove(&block);
        let found = was_erroneous
            || self.wl.used.remove(&entry)
            || self.wl.scrub.remove(&entry)
            || self.wl.unprotect(block);
        // A move that failed and made UBI read-only has dropped the block.
        if found {
            self.schedule(now, Work::Erase { block, torture: torture || was_erroneous });
        } else {
            assert!(self.is_read_only, "block {block} is put and was not taken");
        }
        self.cond_resched(now)
    }

    /// ubi_wl_scrub_peb: queues a block with corrected bit flips to be moved.
    pub(super) fn scrub_block(&mut self, now: Ns, block: u32) {
        let entry = (self.blocks[block as usize].erases, block);
        let is_moved = self.wl.moving().is_some_and(|moving| moving.from == block);
        if is_moved || self.wl.scrub.contains(&entry) || self.wl.erroneous.contains(&block) {
            return;
        }
        if self.wl.used.remove(&entry) || self.wl.unprotect(block) {
            self.wl.scrub.insert(entry);
            self.ensure_levelling(now);
        }
    }

    /// The rest of __erase_worker for a block that is erased and has its header.
    pub(super) fn file_erased(&mut self, now: Ns, block: u32) {
        if !self.keep_anchor(block) {
            self.wl.free.insert(block, self.blocks[block as usize].erases);
        }
        self.serve_protection_queue();
        self.ensure_levelling(now);
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
    pub(super) fn ensure_levelling(&mut self, now: Ns) {
        if self.wl.is_level_scheduled || (self.wl.scrub.is_empty() && !self.is_levelling_due()) {
            return;
        }
        self.wl.is_level_scheduled = true;
        self.schedule(now, Work::Level);
    }

    /// need_wear_leveling.
    fn is_levelling_due(&self) -> bool {
        let in_pool = self.fastmap.as_ref().and_then(|_| self.next_for_move());
        let targets = self.wl.free.closest(FREE_MAX_DIFF).into_iter().chain(in_pool);
        let worn = targets.map(|block| self.blocks[block as usize].erases).max();
        let least = self.wl.used.first().copied();
        let (Some((erases, _)), Some(worn)) = (least, worn) else { return false };
        worn >= erases + THRESHOLD
    }
}
