//! The fair scheduler that a kernel has.
//!
//! Mirrors fair_sched_class of kernel/sched/fair.c: the one place that tells schedulers apart.

use super::cfs::Cfs;
use super::eevdf::Eevdf;
use super::fair::SchedClass;
use crate::profile::{KernelFacts, Scheduler};

/// fair_sched_class of the kernel.
#[derive(Clone, Debug)]
pub(super) enum Fair {
    /// Before 6.6.
    Cfs(Box<Cfs>),
    /// Since 6.6.
    Eevdf(Box<Eevdf>),
}

impl Fair {
    /// The kernel's scheduler, with the program running.
    pub fn new(facts: &KernelFacts, tick_ns: u64) -> Fair {
        match facts.scheduler {
            Scheduler::Cfs => Fair::Cfs(Box::new(Cfs::new(facts.task_groups))),
            eevdf => Fair::Eevdf(Box::new(Eevdf::new(eevdf, tick_ns))),
        }
    }

    /// Its functions.
    pub fn class(&mut self) -> &mut dyn SchedClass {
        match self {
            Fair::Cfs(cfs) => &mut **cfs,
            Fair::Eevdf(eevdf) => &mut **eevdf,
        }
    }
}
