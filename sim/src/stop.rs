//! The switch by which a caller that has given up ends what runs.
//!
//! Every layer looks at it where it may find the power gone, and ends in the same way: what it was
//! doing is left where it is, for nobody looks at it again.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// A switch that is thrown once. Its copies are the same switch.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends what obeys it.
    pub fn throw(&self) {
        self.0.store(true, Relaxed);
    }

    /// Whether the caller has given up.
    #[inline]
    pub fn is_thrown(&self) -> bool {
        self.0.load(Relaxed)
    }
}
