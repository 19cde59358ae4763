//! Read-copy-update, as far as it affects scheduling.
//!
//! Mirrors kernel/rcu/tiny.c (rcu_sched_clock_irq) and kernel/rcu/tree.c (rcu_core, rcu_gp_kthread)
//! of Linux 6.1 on one processor. The beginning and end of grace periods are modelled; what is
//! freed is not.
//!
//! Left out: grace periods that outlast the next tick without a quiescent state (force_qs_rnp), and
//! expedited ones.
//!
//! Invariant: at most one grace period is in progress.

use crate::profile::Rcu;

/// How callbacks wait for a grace period.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waiting {
    /// Callbacks (rcu_ctrlblk) wait for the running task to be scheduled.
    Tiny { waits: bool },
    /// The thread is woken at the beginning and the end of a grace period.
    Tree(GracePeriod),
    /// Softirqs handle it; no task is affected.
    Softirqs,
}

impl Waiting {
    /// No callback waits.
    pub fn new(rcu: Rcu) -> Waiting {
        match rcu {
            Rcu::Tiny => Waiting::Tiny { waits: false },
            Rcu::Tree => Waiting::Tree(GracePeriod::default()),
            Rcu::Softirqs => Waiting::Softirqs,
        }
    }
}

/// rcu_state and rcu_data of the single processor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GracePeriod {
    /// A callback waits for a grace period that is not requested yet.
    waits: bool,
    /// RCU_GP_FLAG_INIT.
    is_requested: bool,
    is_under_way: bool,
    /// The processor has passed and reported a quiescent state.
    is_reported: bool,
}

impl GracePeriod {
    /// call_rcu.
    pub fn call(&mut self) {
        self.waits = true;
    }

    /// Whether it needs further ticks.
    pub fn is_busy(&self) -> bool {
        self.waits || self.is_requested || self.is_under_way
    }

    /// rcu_core after a tick; returns whether to wake the thread. When the thread begins a period
    /// and goes to sleep, that is already a quiescent state.
    pub fn pass_tick(&mut self) -> bool {
        if self.is_under_way {
            self.is_reported = true;
            return true;
        }
        self.is_requested |= std::mem::take(&mut self.waits);
        self.is_requested
    }

    /// rcu_gp_kthread: rcu_gp_cleanup, and rcu_gp_init of the next.
    pub fn run_thread(&mut self) {
        if std::mem::take(&mut self.is_reported) {
            self.is_under_way = false;
            self.is_requested |= std::mem::take(&mut self.waits);
        }
        self.is_under_way |= std::mem::take(&mut self.is_requested);
    }
}
