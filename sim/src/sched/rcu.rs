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

/// What frees when every task has been scheduled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rcu {
    /// kernel/rcu/tiny.c, of a kernel for one processor: while something waits (rcu_ctrlblk) a tick
    /// asks who runs to make way (rcu_sched_clock_irq).
    Tiny { waits: bool },
    /// kernel/rcu/tree.c, whose thread is woken when a grace period is to begin and when it is
    /// over.
    Tree(GracePeriod),
    /// The same before 3.7, all in softirqs.
    Softirqs,
}

/// rcu_state and rcu_data of the one processor that there is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GracePeriod {
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
