//! How a run ends early: the switch that a caller throws, and the end of a case whose policy is
//! wrong.
//!
//! Every layer checks the switch where it checks for a power cut, and ends in the same way: it
//! leaves its work unfinished, because the state is not used again. A wrong policy unwinds: its
//! case's state is not used again either, and no layer need know that a policy can be wrong.

use std::panic::resume_unwind;
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

/// What a case unwinds with if its policy is wrong: who it is and what it did, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misbehaved(pub String);

/// Ends the case whose policy is wrong. The caller of the case catches [`Misbehaved`]; no panic
/// hook is called.
///
/// # Examples
///
/// ```
/// use sim::stop::{misbehaved, Misbehaved};
/// let caught = std::panic::catch_unwind(|| misbehaved("it chose no candidate".into()));
/// let wrong = caught.unwrap_err().downcast::<Misbehaved>().unwrap();
/// assert_eq!(wrong.0, "it chose no candidate");
/// ```
pub fn misbehaved(why: String) -> ! {
    resume_unwind(Box::new(Misbehaved(why)))
}
