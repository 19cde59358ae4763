//! The switch by which a caller ends a run early.
//!
//! Every layer checks it where it checks for a power cut, and ends in the same way: it leaves its
//! work unfinished, because the state is not used again.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// A switch that can be thrown once. Clones share its state.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the runs that obey it.
    pub fn throw(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether the caller has ended the run.
    #[inline]
    pub fn is_thrown(&self) -> bool {
        self.0.load(Relaxed)
    }
}
