//! The tasks of a program of version 2, as in docs/reference/operations.md: calls do not overlap,
//! and each task has its own time, before which its next call does not begin.
//!
//! agent/job/run.c does the same on a real kernel. A program of version 1 sleeps in the pause
//! itself.

use crate::ops::Operation;
use crate::units::Ns;

/// The current task, and the own time of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    /// Whether the program is one of version 2.
    is_new: bool,
    current: usize,
    own: Vec<Ns>,
    /// No own time is before this: the beginning of the file, or the mark.
    began: Ns,
}

impl Tasks {
    /// The tasks at the beginning of a file.
    pub fn new(is_new: bool, now: Ns) -> Tasks {
        Tasks { is_new, began: now, ..Tasks::default() }
    }

    /// Measuring begins.
    pub fn mark(&mut self, now: Ns) {
        self.began = now;
    }

    fn own(&self, task: usize) -> Ns {
        self.own.get(task).copied().unwrap_or(Ns::ZERO).max(self.began)
    }

    #[inline]
    fn set(&mut self, task: usize, own: Ns) {
        if task >= self.own.len() {
            self.own.resize(task + 1, Ns::ZERO);
        }
        self.own[task] = own;
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

    /// When the next call of the current task may begin.
    #[inline]
    pub fn ready(&self) -> Ns {
        self.own(self.current)
    }

    /// When all tasks are ready.
    pub fn all_ready(&self) -> Ns {
        self.own.iter().copied().max().unwrap_or(Ns::ZERO)
    }

    /// A call of the current task has returned.
    #[inline]
    pub fn returned(&mut self, now: Ns) {
        self.set(self.current, now);
    }

    /// Whether an operation is no call because it concerns only own times.
    #[inline]
    pub fn is_own(&self, operation: &Operation<'_>) -> bool {
        let of_tasks = matches!(
            operation,
            Operation::Pause { .. } | Operation::Spawn { .. } | Operation::Wait { .. }
        );
        self.is_new && of_tasks
    }

    /// Handles such an operation. Returns when it began, after the file or the mark, and how long
    /// it lasts: a pause is its length.
    pub fn call(&mut self, operation: &Operation<'_>) -> (Ns, Ns) {
        let ready = self.ready();
        let mut lasts = Ns::ZERO;
        match *operation {
            Operation::Pause { ns } => {
                lasts = Ns(ns);
                self.set(self.current, ready + lasts);
            }
            Operation::Spawn { task } => self.set(task, ready),
            Operation::Wait { task } => self.set(self.current, ready.max(self.own(task))),
            _ => {}
        }
        (ready - self.began, lasts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(tasks: &mut Tasks, line: Operation<'static>) -> Ns {
        tasks.call(&line);
        tasks.ready()
    }

    #[test]
    fn a_pause_counts_from_the_end_of_the_tasks_own_call() {
        let mut tasks = Tasks::new(true, Ns(5));
        assert_eq!(after(&mut tasks, Operation::Pause { ns: 10 }), Ns(15));
        tasks.returned(Ns(20));
        tasks.call(&Operation::Spawn { task: 1 });
        assert_eq!(after(&mut tasks, Operation::Pause { ns: 100 }), Ns(120));
        tasks.switch(&Operation::Task { task: 1 });
        assert_eq!(tasks.ready(), Ns(20), "as its parent when it was spawned");
        tasks.returned(Ns(30));
        assert_eq!(after(&mut tasks, Operation::Pause { ns: 100 }), Ns(130));
        tasks.switch(&Operation::Task { task: 0 });
        assert_eq!(after(&mut tasks, Operation::Wait { task: 1 }), Ns(130));
        assert_eq!(tasks.all_ready(), Ns(130));
    }

    #[test]
    fn no_own_time_is_before_the_mark() {
        let mut tasks = Tasks::new(true, Ns(5));
        tasks.returned(Ns(7));
        tasks.mark(Ns(50));
        assert_eq!(tasks.call(&Operation::Pause { ns: 10 }), (Ns::ZERO, Ns(10)));
        assert_eq!(tasks.ready(), Ns(60));
    }

    #[test]
    fn version_1_sleeps_in_the_pause_itself() {
        assert!(!Tasks::new(false, Ns(5)).is_own(&Operation::Pause { ns: 10 }));
    }
}
