//! The mutex on which tasks wait.
//!
//! Mirrors kernel/locking/mutex.c of Linux 6.1 on one processor: no task spins on a mutex.
//!
//! Invariant: a waiting task is in the list once, and the list is in order of arrival.

use super::Task;
use std::collections::VecDeque;

/// A mutex. If the first waiter is woken and finds it taken again, the next unlock hands it over to
/// that waiter (MUTEX_FLAG_HANDOFF).
#[derive(Clone, Debug, Default)]
pub struct Mutex {
    owner: Option<Task>,
    waiters: VecDeque<Task>,
    /// The next unlock hands it to the first waiter.
    handoff: bool,
}

impl Mutex {
    /// Its owner.
    #[inline]
    pub fn owner(&self) -> Option<Task> {
        self.owner
    }

    /// Whether a task waits for it.
    pub fn is_awaited_by(&self, task: Task) -> bool {
        self.waiters.contains(&task)
    }

    /// mutex_lock up to its first sleep; returns whether `task` owns it now. Otherwise the task is
    /// queued, sleeps, and calls `lock` again when it is woken.
    #[inline]
    pub fn lock(&mut self, task: Task) -> bool {
        if self.owner.is_none() && self.waiters.is_empty() {
            self.owner = Some(task);
            return true;
        }
        self.lock_contended(task)
    }

    #[inline(never)]
    fn lock_contended(&mut self, task: Task) -> bool {
        let waits_at = self.waiters.iter().position(|&waiter| waiter == task);
        if self.owner.is_some_and(|owner| owner != task) {
            match waits_at {
                Some(at) => self.handoff |= at == 0,
                None => self.waiters.push_back(task),
            }
            return false;
        }
        assert!(self.owner.is_none() || waits_at.is_some(), "{task:?} would wait for itself");
        self.owner = Some(task);
        if let Some(at) = waits_at {
            self.waiters.remove(at);
        }
        true
    }

    /// mutex_unlock; returns the task to wake.
    #[inline]
    pub fn unlock(&mut self) -> Option<Task> {
        let first = self.waiters.front().copied();
        self.owner = first.filter(|_| std::mem::take(&mut self.handoff));
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutex_is_handed_to_a_waiter_that_woke_to_find_it_taken() {
        let mut mutex = Mutex::default();
        assert!(mutex.lock(Task::Program));
        assert!(!mutex.lock(Task::Jffs2Thread));
        assert_eq!(mutex.unlock(), Some(Task::Jffs2Thread));
        assert!(mutex.lock(Task::Program), "who comes first has it");
        assert!(!mutex.lock(Task::Jffs2Thread));
        assert_eq!(mutex.unlock(), Some(Task::Jffs2Thread));
        assert!(!mutex.lock(Task::Program), "it was handed over");
        assert!(mutex.lock(Task::Jffs2Thread));
        assert_eq!(mutex.unlock(), Some(Task::Program));
        assert!(mutex.is_awaited_by(Task::Program) && mutex.lock(Task::Program));
        assert!(!mutex.is_awaited_by(Task::Program));
        assert_eq!(mutex.unlock(), None);
    }
}
