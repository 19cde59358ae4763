//! Workers of a workqueue's pool, which run the flusher's work.
//!
//! Mirrors kernel/workqueue.c of Linux 6.12 (kick_pool, worker_thread, manage_workers,
//! create_worker, assign_work) for the pool of unbound workers, on one processor. The worker that
//! became idle last takes the next work. A worker that begins one wakes another if more work is
//! queued, and has kthreadd create one if none is idle.
//!
//! A task stands for what a worker does: the flusher's work, that of another file system's flusher,
//! the update of the write bandwidth. Its entity is that of the worker which took it.
//!
//! Left out: more than three workers, the end of workers that were idle for five minutes.
//!
//! Invariant: a worker is in the list of idle ones at most once.

use super::{Sched, Task};
use crate::units::Ns;

/// worker_pool.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    /// idle_list, the most recently idle last.
    idle: Vec<Task>,
    /// The task for which no worker was created yet.
    missing: Option<Task>,
    /// The worker that is being created.
    born: Option<Task>,
    /// The flusher's work was begun and is not over (find_worker_executing_work).
    flusher_runs: bool,
    /// The other file system has dirty inodes: on user-mode Linux the agent's, until a `sync`.
    is_other_dirty: bool,
    /// wakeup_flusher_threads has queued the work of its flusher, which the worker of the flusher
    /// does first.
    starts_other: bool,
    /// The work of the other file system's flusher is queued.
    is_other_queued: bool,
    /// The program is in `sync` and has yet to queue that work.
    begins_next: bool,
    /// `sync` waits for that work. The program then queues the flusher's, and sleeps again.
    is_other_awaited: bool,
    syncs_next: bool,
    /// The program was preempted before it sleeps until the flusher wakes it.
    sleeps_next: bool,
    /// The program has queued the flusher's work.
    has_synced: bool,
    /// The task that waits until the bandwidth is updated.
    flush_waiter: Option<Task>,
}

impl Workers {
    /// The two workers that there are after a boot.
    pub fn new() -> Workers {
        Workers {
            idle: vec![Task::BandwidthWorker, Task::Background],
            missing: Some(Task::OtherFlusher),
            born: None,
            flusher_runs: false,
            is_other_dirty: true,
            starts_other: false,
            is_other_queued: false,
            begins_next: false,
            is_other_awaited: false,
            syncs_next: false,
            sleeps_next: false,
            has_synced: false,
            flush_waiter: None,
        }
    }
}

impl Sched {
    /// wake_up_worker: the worker that became idle last takes the task's work.
    pub(super) fn take_worker(&mut self, task: Task) {
        let pool = &mut self.workers;
        if !pool.idle.contains(&task) && pool.missing != Some(task) {
            return;
        }
        let Some(worker) = pool.idle.pop() else { return };
        if worker != task {
            self.fair.class().swap(task, worker);
            for other in pool.idle.iter_mut().filter(|other| **other == task) {
                *other = worker;
            }
            if pool.missing == Some(task) {
                pool.missing = Some(worker);
            }
        }
    }

    /// worker_enter_idle.
    pub(super) fn enter_idle(&mut self, task: Task) {
        self.workers.idle.retain(|&other| other != task);
        self.workers.idle.push(task);
    }

    /// manage_workers of a worker that begins a work: has kthreadd create one if none is idle.
    /// Returns whether the worker waits for that.
    fn manage_workers(&mut self, now: Ns, task: Task) -> bool {
        if let Some(born) = self.workers.born.take() {
            self.enter_idle(born);
            self.make_runnable(now, born);
            return false;
        }
        if !self.workers.idle.is_empty() || !self.fair.class().has_lag() {
            return false;
        }
        let Some(missing) = self.workers.missing.take() else { return false };
        self.workers.born = Some(missing);
        self.newborn = Some((missing, task));
        self.make_runnable(now, Task::Kthreadd);
        true
    }

    /// The running flusher begins its work. Another worker is woken for what else is queued.
    pub fn begin_work(&mut self, now: Ns) {
        let begins = !std::mem::replace(&mut self.workers.flusher_runs, true);
        let is_queued = std::mem::take(&mut self.workers.starts_other);
        if begins && (is_queued || self.workers.is_other_queued) {
            self.enqueue(now, Task::OtherFlusher);
        }
    }

    /// mod_delayed_work of the flusher's work, at once.
    pub fn queue_flusher(&mut self, now: Ns) {
        self.pass(now);
        self.kick_flusher(now);
    }

    fn kick_flusher(&mut self, now: Ns) {
        self.flusher_ends = false;
        // The worker that is woken leaves the work to the one that still has it.
        let hands_over = self.workers.flusher_runs && self.other_flusher;
        let task = if hands_over { Task::OtherFlusher } else { Task::Background };
        self.blocked.remove(task);
        self.enqueue(now, task);
    }

    /// `sync` of the running program: sync_inodes_sb of the other file system, which has nothing
    /// to write, and after it of the program's. Other tasks may run before each.
    pub fn begin_sync(&mut self, now: Ns) {
        self.workers.begins_next = true;
        let is_dirty = std::mem::take(&mut self.workers.is_other_dirty);
        self.workers.starts_other = is_dirty && self.is_runnable(Task::Background);
        if self.resched(now) == Some(Task::Program) {
            match self.begin_wait(now) {
                true => _ = self.sleep(now),
                false => self.schedule(now, self.current),
            }
        }
    }

    /// Whether another file system has a flusher, for which `sync` waits first.
    pub fn has_other_flusher(&self) -> bool {
        self.other_flusher
    }

    fn queue_other(&mut self, now: Ns) {
        (self.workers.is_other_queued, self.workers.is_other_awaited) = (true, true);
        // A worker that was woken and has not run yet is still the first of the idle ones.
        if !self.is_runnable(Task::Background) || self.workers.flusher_runs {
            self.wake(now, Task::OtherFlusher);
        }
    }

    /// Whether the program still has to queue the flusher's work.
    pub fn is_sync_ahead(&self) -> bool {
        let pool = &self.workers;
        pool.begins_next || pool.is_other_awaited || pool.syncs_next || pool.has_synced
    }

    /// wait_event of the running program: a preemption point, and then it sleeps.
    pub fn wait_event(&mut self, now: Ns) {
        self.pass(now);
        if self.fair.class().has_lag() && self.need_resched {
            self.workers.sleeps_next = true;
            self.resched(now);
        } else {
            self.sleep(now);
        }
    }

    /// The program is woken before it sleeps.
    pub(super) fn sleeps_no_more(&mut self) {
        self.workers.sleeps_next = false;
    }

    /// Whether the program only sleeps, or queues works of flushers and sleeps, once it has the
    /// processor.
    pub(super) fn sleeps_next(&self) -> bool {
        let pool = &self.workers;
        pool.begins_next || pool.syncs_next || pool.sleeps_next
    }

    /// The program, which has the processor, queues a work if it is in `sync`. Returns whether it
    /// sleeps then, or is preempted before.
    pub(super) fn begin_wait(&mut self, now: Ns) -> bool {
        if std::mem::take(&mut self.workers.sleeps_next) {
            return true;
        }
        if std::mem::take(&mut self.workers.begins_next) {
            self.queue_other(now);
        } else {
            (self.workers.syncs_next, self.workers.has_synced) = (false, true);
            self.kick_flusher(now);
        }
        self.workers.sleeps_next = self.need_resched;
        !self.need_resched
    }

    /// Whether the program has queued the flusher's work since the last time.
    pub fn take_sync(&mut self) -> bool {
        std::mem::take(&mut self.workers.has_synced)
    }

    /// The work of the other file system's flusher, which wakes the program.
    fn do_other_work(&mut self, now: Ns) {
        self.workers.is_other_queued = false;
        if std::mem::take(&mut self.workers.is_other_awaited) {
            self.workers.syncs_next = true;
            self.workers.sleeps_next = false;
            self.make_runnable(now, Task::Program);
        }
    }

    /// The running flusher has no work left. Its worker continues with other work that is queued.
    pub(super) fn finish_flusher(&mut self, now: Ns) {
        self.workers.flusher_runs = false;
        if self.workers.is_other_queued {
            self.do_other_work(now);
        }
        self.enter_idle(Task::Background);
    }

    /// wb_shutdown of an unmount: the flusher's work is over.
    pub fn stop_flusher(&mut self) {
        if !std::mem::take(&mut self.workers.flusher_runs) {
            return;
        }
        self.blocked.remove(Task::Background);
        self.flusher_ends = self.is_runnable(Task::Background);
        if !self.flusher_ends {
            self.enter_idle(Task::Background);
        }
    }

    /// flush_delayed_work of the update of the bandwidth, in wb_shutdown: the running task waits
    /// until a worker has done it.
    pub fn flush_bandwidth(&mut self, now: Ns) {
        let Some(waiter) = self.current.filter(|_| self.bandwidth_tick.take().is_some()) else {
            return;
        };
        self.enqueue(now, Task::BandwidthWorker);
        if self.resched(now) == Some(waiter) && self.is_runnable(Task::BandwidthWorker) {
            self.workers.flush_waiter = Some(waiter);
            self.sleep(now);
        }
    }

    pub(super) fn end_flush(&mut self, now: Ns) {
        if let Some(waiter) = self.workers.flush_waiter.take() {
            self.make_runnable(now, waiter);
        }
    }

    /// A momentary work. Returns whether it is over.
    pub(super) fn do_momentary_work(&mut self, now: Ns, task: Task) -> bool {
        if self.manage_workers(now, task) {
            return false;
        }
        if self.workers.is_other_queued && task == Task::OtherFlusher {
            self.do_other_work(now);
        }
        self.enter_idle(task);
        true
    }
}
