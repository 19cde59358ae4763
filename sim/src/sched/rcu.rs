//! Read-copy-update, as far as it has anybody make way.
//!
//! Mirrors kernel/rcu/tiny.c (rcu_sched_clock_irq) and kernel/rcu/tree.c (rcu_core, rcu_gp_kthread)
//! of Linux 6.1 on one processor. What is freed is not modelled; when a grace period begins and
//! ends is.
//!
//! Left out: grace periods that a quiescent state does not end by the next tick (force_qs_rnp), and
//! expedited ones.
//!
//! Invariant: at most one grace period is under way.

use crate::profile::Rcu;

/// What waits until every task has been scheduled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiting {
    /// Callbacks (rcu_ctrlblk) wait for the running task.
    Tiny { waits: bool },
    /// The thread is woken when a grace period is to begin and when it is over.
    Tree(GracePeriod),
    /// No task learns of it.
    Softirqs,
}

impl Waiting {
    /// Nothing waits.
    pub fn new(rcu: Rcu) -> Waiting {
        match rcu {
            Rcu::Tiny => Waiting::Tiny { waits: false },
            Rcu::Tree => Waiting::Tree(GracePeriod::default()),
            Rcu::Softirqs => Waiting::Softirqs,
        }
    }
}

/// rcu_state and rcu_data of the one processor that there is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GracePeriod {
    /// Something waits for a grace period that nobody has asked for yet.
    waits: bool,
    /// RCU_GP_FLAG_INIT.
    is_asked_for: bool,
    is_under_way: bool,
    /// The processor has been through a quiescent state, and has said so.
    is_reported: bool,
}

impl GracePeriod {
    /// call_rcu.
    pub fn call(&mut self) {
        self.waits = true;
    }

    /// Whether ticks have something to do for it.
    pub fn is_busy(&self) -> bool {
        self.waits || self.is_asked_for || self.is_under_way
    }

    /// rcu_core after a tick: whether the thread is to be woken. When it went to sleep, which
    /// begins a period, was a quiescent state already.
    pub fn pass_tick(&mut self) -> bool {
        if self.is_under_way {
            self.is_reported = true;
            return true;
        }
        self.is_asked_for |= std::mem::take(&mut self.waits);
        self.is_asked_for
    }

    /// rcu_gp_kthread: rcu_gp_cleanup, and rcu_gp_init of the next.
    pub fn go_on(&mut self) {
        if std::mem::take(&mut self.is_reported) {
            self.is_under_way = false;
            self.is_asked_for |= std::mem::take(&mut self.waits);
        }
        self.is_under_way |= std::mem::take(&mut self.is_asked_for);
    }
}
