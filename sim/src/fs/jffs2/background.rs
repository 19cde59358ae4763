//! The garbage collector thread (`jffs2_gcd_mtdN`).
//!
//! Mirrors fs/jffs2/background.c of Linux 6.1: jffs2_garbage_collect_trigger and
//! jffs2_garbage_collect_thread. A signal wakes the thread at once. Without a signal it sleeps 50
//! ms before each pass. The thread is a task of its own (sched/) of nice 10.
//!
//! A pass is cut into steps. A step ends where the kernel's code takes a lock, allocates memory or
//! calls cond_resched(), because another task may preempt the thread there. tasks.rs schedules the
//! thread and the foreground, and holds their locks.
//!
//! While it moves a node or checks an inode, the thread holds c->alloc_sem and the inode's f->sem.
//! No other task can change the inode then, so the step computes the whole result when it begins.
//! It defers its calls into MTD (`work`), and later steps make them one by one. Erasing a block and
//! checking an erased block need no such lock, so a writer runs meanwhile.
//!
//! Since 3.13 (Linux "jffs2: do not support kill -HUP" and its followers in background.c) a signal
//! that arrives during a pass stays pending. Each erase sends one, so a pass that erased is
//! followed by another pass, which moves a node.
//!
//! Left out: what a deferred call would find on the chip if the power fails before it. The call is
//! then not made.
//!
//! Invariants:
//! 1. The thread holds c->alloc_sem in the steps from `Decide` to `Work`, and in no other.
//! 2. `work` is empty except in the step `Work`.

use super::call::Call;
use super::Jffs2;
use crate::flash::{Fault, Flash};
use crate::fs::tasks::run_other;
use crate::fs::{FsError, Ino, PageCache, Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::sched::Task;
use crate::units::Ns;
use crate::victim::Why;
use crate::waits::{over, Wait};
use std::collections::VecDeque;

/// msecs_to_jiffies(50): the thread sleeps this long, or one tick more.
const PACE_MS: u64 = 50;

/// The thread's next step, taken when it next runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// The head of the thread's loop: it sleeps until a signal if there is nothing to do.
    #[default]
    Loop,
    /// schedule_timeout_interruptible: the pause before each pass.
    Nap,
    /// The head of jffs2_garbage_collect_pass. `erased`: the thread found no more block to erase
    /// and starts over.
    Lock {
        erased: bool,
    },
    /// The thread is queued on c->alloc_sem.
    Wait {
        erased: bool,
    },
    /// Chooses between checking an inode, erasing and moving a node.
    Decide {
        erased: bool,
    },
    /// Moves a node of the block being collected.
    Collect,
    /// Makes the pass's deferred calls into MTD, then ends the pass.
    Work,
    /// The head of the loop in jffs2_erase_pending_blocks.
    Erase,
    /// jffs2_erase_block and jffs2_erase_succeeded.
    EraseBlock {
        block: u32,
    },
    EraseSucceeded {
        block: u32,
    },
    /// jffs2_block_check_erase, the cleanmarker, and the rest of jffs2_mark_erased_block.
    Check {
        block: u32,
        offset: u32,
    },
    WriteMarker {
        block: u32,
    },
    Marked {
        block: u32,
    },
    /// The thread has exited (-ENOSPC). From now on only writers collect.
    Dead,
}

/// The thread's state.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    step: Step,
    /// The thread sleeps, and a signal wakes it.
    is_asleep: bool,
    /// SIGHUP is pending.
    signal: bool,
    /// When the thread's timer expires.
    pub(super) until: Option<Ns>,
    /// The pass's calls into MTD that are still to be made.
    pub(super) work: VecDeque<Call>,
    /// A pass is being computed, so calls into MTD are deferred.
    pub(super) defers_calls: bool,
    /// The inode whose f->sem the thread holds, and whether that inode is absent from memory.
    pub(super) inode: Option<(Ino, bool)>,
    /// The thread is in a call into MTD, whose last cond_resched() was at this time.
    pub(super) in_call: Option<Ns>,
    /// The thread has read a page of an erased block and will now check it for 0xff.
    has_read: bool,
    /// The call into MTD continues to its next page, so the thread keeps the chip's lock.
    pub(super) keeps_chip_lock: bool,
    /// While a pass is being computed, its calls into MTD are made at once instead of deferred.
    pub(super) makes_deferred_at_once: bool,
    /// The pass allocates memory after its last call into MTD.
    pub(super) allocates_last: bool,
    /// The thread sleeps on c->inocache_wq until another task has read or evicted the inode.
    pub(super) waits_for_inode: bool,
    /// The thread sleeps on f->sem or the page's lock until the foreground has read the page.
    pub(super) waits_for_page: bool,
}

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_start_garbage_collect_thread, which waits until the thread has started.
    pub(super) fn start_collector(&mut self, now: Ns) -> Result<Ns> {
        self.collector = Collector::default();
        let Some(task) = self.foreground else {
            self.sched.fork(now, Task::Jffs2Thread);
            self.sched.wake(now, Task::Jffs2Thread);
            return Ok(now);
        };
        self.sched.create_kthread(now, Task::Jffs2Thread);
        let now = self.run_others_until(now, task, None)?;
        self.sched.wake(now, Task::Jffs2Thread);
        self.sched.sleep(now); // wait_for_completion(&c->gc_thread_start)
        self.sched.wake(now, task);
        if self.sched.current() == Some(Task::Jffs2Thread) {
            self.begin_collector(now);
        }
        self.run_others_until(now, task, None)
    }

    /// The thread has signalled that it started. It goes to sleep before its first cond_resched().
    fn begin_collector(&mut self, now: Ns) {
        if self.space.thread_should_wake() {
            self.collector.step = Step::Lock { erased: false };
            self.sleep_interruptibly(now, Some(self.ticks.timer(now, PACE_MS)));
        } else {
            self.collector.step = Step::Nap;
            self.sleep_interruptibly(now, None);
        }
    }

    /// jffs2_stop_garbage_collect_thread: waits until the thread has ended its pass. The flusher
    /// may run meanwhile.
    pub(super) fn stop_collector(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let mut now = self.set_foreground(now, None, None)?;
        while self.sched.is_runnable(Task::Jffs2Thread) {
            if self.sched.current() != Some(Task::Jffs2Thread) {
                now = run_other(self, now, pages)?;
            } else if matches!(self.collector.step, Step::Loop | Step::Nap | Step::Lock { .. }) {
                self.sched.sleep(now);
            } else {
                now = self.run_collector(now, Some(&mut *pages))?;
            }
        }
        (self.collector, self.alloc_sem, self.chip_lock) = Default::default();
        self.set_foreground(now, Some(Task::Program), None)
    }

    /// jffs2_garbage_collect_trigger: signals the thread if there is work for it.
    pub(super) fn trigger_collector(&mut self, now: Ns) {
        // disallow_signal of older kernels: a signal that arrives during a pass is lost.
        let is_ignored = self.collector.is_in_pass() && !self.options.collector_keeps_signals;
        if self.collector.signal || is_ignored || !self.space.thread_should_wake() {
            return;
        }
        self.collector.signal = true;
        if self.collector.is_asleep {
            self.wake_collector(now);
        }
    }

    /// Wakes the thread, for a signal or because its timer expired.
    pub(super) fn wake_collector(&mut self, now: Ns) {
        self.collector.is_asleep = false;
        self.collector.until = None;
        self.sched.wake(now, Task::Jffs2Thread);
    }

    /// schedule() in an interruptible sleep: returns at once if a signal is pending, else sleeps
    /// until a signal or until `until`.
    fn sleep_interruptibly(&mut self, now: Ns, until: Option<Ns>) {
        if self.collector.signal {
            self.sched.yields(now);
            return;
        }
        (self.collector.is_asleep, self.collector.until) = (true, until);
        self.sched.sleep(now);
    }

    /// Runs the thread's next step, unless another task preempts it first. Moving a node needs
    /// `pages`. Without them the foreground is reading a page, and the thread waits for it.
    pub(super) fn run_collector(
        &mut self,
        now: Ns,
        pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        let before = self.mtd.enter(now, Wait::Collection);
        let done = self.collector_step(now, pages);
        self.mtd.enter(over(&done, now), before);
        done
    }

    fn collector_step(&mut self, now: Ns, pages: Option<&mut dyn PageCache>) -> Result<Ns> {
        self.end_thread_call(now);
        if self.may_be_preempted() && self.sched.resched(now) != Some(Task::Jffs2Thread) {
            return Ok(now);
        }
        if std::mem::take(&mut self.collector.has_read) {
            return Ok(now + self.erased_check_ns(PAGE_BYTES.min(self.block_bytes)));
        }
        match self.collector.step {
            Step::Loop => {
                self.collector.step = Step::Nap;
                if !self.space.thread_should_wake() {
                    self.sleep_interruptibly(now, None);
                }
            }
            Step::Nap => {
                self.collector.step = Step::Lock { erased: false };
                self.sleep_interruptibly(now, Some(self.ticks.timer(now, PACE_MS)));
            }
            Step::Lock { erased } => {
                self.collector.signal &= erased;
                let has_it = self.alloc_sem.lock(Task::Jffs2Thread);
                self.has_or_awaits_lock(now, has_it, erased);
            }
            Step::Wait { erased } => {
                let has_it = self.alloc_sem.lock(Task::Jffs2Thread);
                self.has_or_awaits_lock(now, has_it, erased);
            }
            Step::Decide { erased } => return self.decide(now, erased),
            Step::Collect => return self.compute_collect(now, pages),
            Step::Work => return self.do_work(now),
            Step::Dead => {
                self.sched.sleep(now);
            }
            _ => return self.erase_in_steps(now),
        }
        Ok(now)
    }

    /// Whether the thread may be preempted before its step. On NOR nothing in the kernel's code may
    /// sleep from the last call of a pass into MTD, unless a fragment is allocated for what it has
    /// written, to the thread's next sleep. (On NAND the pass's end counts as a place to sleep.)
    fn may_be_preempted(&self) -> bool {
        let Collector { step, ref work, allocates_last, .. } = self.collector;
        match step {
            _ if self.medium.has_wbuf => true,
            Step::Loop | Step::Nap => false,
            Step::Work => allocates_last || !work.is_empty(),
            _ => true,
        }
    }

    fn has_or_awaits_lock(&mut self, now: Ns, has_it: bool, erased: bool) {
        if has_it {
            self.collector.step = Step::Decide { erased };
        } else {
            self.collector.step = Step::Wait { erased };
            self.sched.sleep(now);
        }
    }

    /// jffs2_garbage_collect_pass up to the choice of what the pass does.
    fn decide(&mut self, now: Ns, erased: bool) -> Result<Ns> {
        // Until every inode is checked a pass does nothing else.
        if self.space.total.unchecked_bytes > 0 && !erased {
            return self.compute_check(now);
        }
        if self.space.erases_wait() && !erased {
            self.unlock_alloc(now);
            self.collector.step = Step::Erase;
            return Ok(now);
        }
        self.collector.step = Step::Work;
        self.collector.allocates_last = false;
        let mut now = now;
        if self.gc_block.is_none() {
            now = self.defer_calls(|fs| fs.find_gc_block(now, Why::Idle))?;
        }
        if self.gc_block.is_some() {
            self.collector.step = Step::Collect;
        }
        Ok(now)
    }

    /// Computes a pass that checks an inode.
    fn compute_check(&mut self, now: Ns) -> Result<Ns> {
        match self.next_unchecked() {
            Some(ino) if self.reading == Some(ino) => {
                self.check_ino = ino.0;
                Ok(self.wait_for_reader(now))
            }
            Some(ino) => {
                self.collector.step = Step::Work;
                self.collector.inode = Some((ino, true));
                self.collector.allocates_last = true;
                self.defer_calls(|fs| {
                    let now = fs.verify_data(now)?;
                    fs.check_inode(now, ino)
                })
            }
            None => {
                self.exit_thread(now);
                Ok(now)
            }
        }
    }

    /// sleep_on_spinunlock(&c->inocache_wq): drops c->alloc_sem and sleeps while another task reads
    /// or evicts the inode.
    fn wait_for_reader(&mut self, now: Ns) -> Ns {
        self.unlock_alloc(now);
        self.collector.step = Step::Loop;
        self.collector.waits_for_inode = true;
        self.sched.sleep(now);
        now
    }

    /// Computes a pass that moves a node.
    fn compute_collect(&mut self, now: Ns, pages: Option<&mut dyn PageCache>) -> Result<Ns> {
        let Some(pages) = pages else {
            self.collector.waits_for_page = true;
            self.sched.sleep(now);
            return Ok(now);
        };
        let inode = self.node_to_collect().and_then(|id| self.inode_of(id));
        if inode.is_some_and(|(ino, _)| self.reading == Some(ino)) {
            return Ok(self.wait_for_reader(now));
        }
        if inode.is_some_and(|(ino, _)| self.page_of == Some(ino)) {
            self.collector.waits_for_page = true;
            self.sched.sleep(now);
            return Ok(now);
        }
        self.collector.step = Step::Work;
        self.collector.inode = inode;
        self.collector.allocates_last = false;
        self.defer_calls(|fs| fs.collect_next_node(now, pages))
    }

    /// Ends the thread: no space is left to collect into.
    fn exit_thread(&mut self, now: Ns) {
        self.collector.work.clear();
        self.collector.step = Step::Dead;
        self.unlock_alloc(now);
    }

    /// Computes a pass with its calls into MTD deferred. On a chip whose power can fail the calls
    /// are made at once, and no other task runs between them.
    fn defer_calls(&mut self, settle: impl FnOnce(&mut Self) -> Result<Ns>) -> Result<Ns> {
        self.collector.defers_calls = true;
        self.collector.makes_deferred_at_once = self.mtd.can_lose_power();
        let settled = settle(self);
        self.collector.defers_calls = false;
        match settled {
            Err(FsError::NoSpace(at)) => {
                self.exit_thread(at);
                Ok(at)
            }
            Err(error) => error.failed_at().ok_or(error),
            settled => settled,
        }
    }

    /// Makes the pass's next deferred call into MTD, or ends the pass.
    fn do_work(&mut self, now: Ns) -> Result<Ns> {
        if !self.collector.work.is_empty() {
            if !self.thread_locks_chip(now) {
                return Ok(now);
            }
            let mut call = self.collector.work.pop_front().expect("there is one");
            if !self.medium.has_wbuf {
                let (first, rest) = call.split(self.mtd.page_bytes());
                self.collector.keeps_chip_lock = rest.is_some();
                rest.into_iter().for_each(|rest| self.collector.work.push_front(rest));
                call = first;
            }
            return Ok(self.thread_call(now, call)?);
        }
        self.collector.inode = None;
        self.collector.step = Step::Loop;
        self.wake_waiter(now);
        self.unlock_alloc(now);
        self.finish_gc_block(now);
        Ok(now)
    }

    /// One step of jffs2_erase_pending_blocks for one block.
    fn erase_in_steps(&mut self, now: Ns) -> Result<Ns> {
        let (block, call, next) = match self.collector.step {
            Step::EraseBlock { block } => {
                (block, Call::Erase { block }, Step::EraseSucceeded { block })
            }
            Step::Check { block, offset } => {
                let (bytes, call) = self.check_page_of(block, offset);
                let offset = offset + bytes;
                let is_last = offset == self.block_bytes;
                let more = Step::Check { block, offset };
                (block, call, if is_last { Step::WriteMarker { block } } else { more })
            }
            Step::WriteMarker { block } => {
                (block, Call::WriteMarker { block }, Step::Marked { block })
            }
            _ => {
                self.collector.step = self.next_to_erase(now);
                return Ok(now);
            }
        };
        if !self.thread_locks_chip(now) {
            return Ok(now);
        }
        let is_check = matches!(self.collector.step, Step::Check { .. });
        let failed_step = if matches!(call, Call::Erase { .. }) { Step::Erase } else { Step::Loop };
        self.collector.step = next;
        self.collector.keeps_chip_lock =
            matches!(next, Step::Check { offset, .. } if offset % PAGE_BYTES != 0);
        let at = match self.thread_call(now, call) {
            Ok(at) if !is_check || !self.mtd.is_unclean() => {
                self.collector.has_read = is_check && !self.collector.keeps_chip_lock;
                return Ok(at);
            }
            Err(failed) if failed.fault == Fault::PowerLost => return Err(failed.into()),
            Err(failed) => failed.at,
            Ok(at) => at,
        };
        let at = self.read_rest_of_check(at, next)?;
        self.collector.step = failed_step;
        self.erase_failed(at, block)
    }

    /// Reads the rest of a call's range although one of its pages is bad (nand_do_read_ops).
    fn read_rest_of_check(&mut self, now: Ns, step: Step) -> Result<Ns> {
        let (mut at, mut step) = (now, step);
        while let Step::Check { block, offset } = step {
            if offset % PAGE_BYTES == 0 {
                break;
            }
            let (bytes, call) = self.check_page_of(block, offset);
            at = match self.thread_call(at, call) {
                Err(failed) if failed.fault == Fault::PowerLost => return Err(failed.into()),
                Err(failed) => failed.at,
                Ok(at) => at,
            };
            step = Step::Check { block, offset: offset + bytes };
        }
        self.collector.keeps_chip_lock = false;
        Ok(at)
    }

    /// The step after this one, or the first one at the head of the loop.
    fn next_to_erase(&mut self, now: Ns) -> Step {
        match self.collector.step {
            Step::EraseSucceeded { block } => {
                self.erase_succeeded(now, block);
                return Step::Erase;
            }
            Step::Marked { block } => {
                self.mark_free(now, block);
                return Step::Loop;
            }
            _ => {}
        }
        if let Some(block) = self.take_erased() {
            Step::Check { block, offset: 0 }
        } else if let Some(block) = self.begin_erase() {
            Step::EraseBlock { block }
        } else {
            Step::Lock { erased: true }
        }
    }

    /// The read that checks the next page for the thread, which may be preempted between pages. On
    /// a chip with bit errors one read covers the whole range, because its result tells about the
    /// whole.
    fn check_page_of(&self, block: u32, offset: u32) -> (u32, Call) {
        let page_bytes = self.mtd.page_bytes();
        let is_one_read = page_bytes >= PAGE_BYTES || !self.medium.has_wbuf;
        if is_one_read || self.mtd.flash().wrong_bits().is_some() {
            return self.check_of(block, offset);
        }
        let at = block * self.block_bytes + offset;
        let call = match offset % PAGE_BYTES {
            0 => Call::Read { offset: at, bytes: page_bytes },
            _ => Call::ReadOn { offset: at, bytes: page_bytes },
        };
        (page_bytes, call)
    }

    /// The read that checks a part of an erased block, and its length in bytes.
    pub(super) fn check_of(&self, block: u32, offset: u32) -> (u32, Call) {
        let bytes = PAGE_BYTES.min(self.block_bytes - offset);
        (bytes, Call::Read { offset: block * self.block_bytes + offset, bytes })
    }
}

impl Collector {
    /// Whether the thread is inside a pass, where it blocks signals.
    fn is_in_pass(&self) -> bool {
        !matches!(self.step, Step::Loop | Step::Nap | Step::Lock { erased: false })
    }
}
