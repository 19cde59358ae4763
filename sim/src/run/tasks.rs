//! The tasks of a program of version 2, as in docs/reference/operations.md: calls do not overlap,
//! and `pause` and `wait` make their task wait before its next line.
//!
//! agent/job/run.c does the same on a real kernel. A program of version 1 sleeps in the pause
//! itself.

use crate::ops::Operation;
use crate::units::Ns;

/// The current task, and when each task is ready.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    /// Whether the program is one of version 2.
    is_new: bool,
    current: usize,
    ready: Vec<Ns>,
}

impl Tasks {
    /// The tasks at the beginning of a file.
    pub fn new(is_new: bool) -> Tasks {
        Tasks { is_new, ..Tasks::default() }
    }

    fn at(&mut self, task: usize) -> &mut Ns {
        if task >= self.ready.len() {
            self.ready.resize(task + 1, Ns::ZERO);
        }
        &mut self.ready[task]
    }

    /// Handles `task`, which is no call: makes that task the current one. Returns whether it did.
    #[inline]
    pub fn switch(&mut self, operation: &Operation<'_>) -> bool {
        if let Operation::Task { task } = *operation {
            self.current = task;
            return true;
        }
        false
    }

    /// When the current task is ready, if it sleeps.
    #[inline]
    pub fn ready(&self) -> Option<Ns> {
        self.ready.get(self.current).copied().filter(|&ready| ready > Ns::ZERO)
    }

    /// When all tasks are ready.
    pub fn all_ready(&self) -> Option<Ns> {
        self.ready.iter().copied().max().filter(|&ready| ready > Ns::ZERO)
    }

    /// Handles an operation that concerns only tasks. Returns whether it did.
    #[inline]
    pub fn call(&mut self, now: Ns, operation: &Operation<'_>) -> bool {
        if !self.is_new {
            return false;
        }
        let current = self.current;
        match *operation {
            Operation::Pause { ns } => *self.at(current) = now + Ns(ns),
            Operation::Spawn { task } => *self.at(task) = Ns::ZERO,
            Operation::Wait { task } => *self.at(current) = (*self.at(task)).max(*self.at(current)),
            _ => return false,
        }
        true
    }
}
