//! Decisions of the user's policies that take too long: who is deciding, since when, and its end.
//!
//! Python cannot be stopped from outside, but an exception can be raised in a thread
//! (PyThreadState_SetAsyncExc). The thread that waits for the simulator looks at all decisions,
//! and raises it in those that are over their limit. A call that stays in C raises it at its end.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "how long the user's code takes; nothing simulated depends on it"
)]

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyTimeoutError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest decision.
const LONGEST: Duration = Duration::from_secs(10);
/// By how much the process may grow while a policy decides.
const MEMORY_BYTES_MAX: u64 = 2 << 30;

/// Why a decision was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    TooLong,
    TooMuchMemory,
    Interrupted,
}

impl From<Ended> for PyErr {
    fn from(ended: Ended) -> PyErr {
        match ended {
            Ended::TooLong => {
                let seconds = LONGEST.as_secs();
                PyTimeoutError::new_err(format!("takes longer than {seconds} s for a decision"))
            }
            Ended::TooMuchMemory => {
                let gib = MEMORY_BYTES_MAX >> 30;
                PyMemoryError::new_err(format!("takes more than {gib} GiB for a decision"))
            }
            Ended::Interrupted => PyKeyboardInterrupt::new_err("interrupted"),
        }
    }
}

struct Running {
    began: Instant,
    /// The process's address space when the decision was first looked at.
    memory_bytes: Option<u64>,
    ended: Option<Ended>,
}

/// By Python's number of the thread.
static RUNNING: Mutex<BTreeMap<u64, Running>> = Mutex::new(BTreeMap::new());

/// Nothing that runs Python's code may hold it: another thread would then wait for it with Python's
/// lock.
fn running() -> MutexGuard<'static, BTreeMap<u64, Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A decision that has begun in this thread.
pub struct Decision {
    thread: u64,
}

impl Decision {
    pub fn begin(py: Python<'_>) -> PyResult<Decision> {
        let thread = py.import("threading")?.call_method0("get_ident")?.extract()?;
        let began = Running { began: Instant::now(), memory_bytes: None, ended: None };
        running().insert(thread, began);
        Ok(Decision { thread })
    }

    /// Ends it; returns why it was ended before, if it was.
    pub fn end(self) -> Option<Ended> {
        running().remove(&self.thread).and_then(|was| was.ended)
    }
}

/// Ends the decisions that are over a limit, or all of them.
pub fn look(py: Python<'_>, interrupted: bool) -> PyResult<()> {
    let mut over = Vec::new();
    for (&thread, decision) in running().iter_mut() {
        let memory_bytes = memory_bytes();
        let before = *decision.memory_bytes.get_or_insert(memory_bytes);
        let grown = memory_bytes.saturating_sub(before);
        let why = match () {
            () if interrupted => Ended::Interrupted,
            () if decision.began.elapsed() > LONGEST => Ended::TooLong,
            () if grown > MEMORY_BYTES_MAX => Ended::TooMuchMemory,
            () => continue,
        };
        over.push((thread, *decision.ended.get_or_insert(why)));
    }
    for (thread, why) in over {
        let ctypes = py.import("ctypes")?;
        let thread = ctypes.getattr("c_ulong")?.call1((thread,))?;
        let kind = ctypes.getattr("py_object")?.call1((PyErr::from(why).get_type(py),))?;
        let raise = ctypes.getattr("pythonapi")?.getattr("PyThreadState_SetAsyncExc")?;
        raise.call1((thread, kind))?;
    }
    Ok(())
}

/// The process's address space: memory that was allocated, used or not.
fn memory_bytes() -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').next().and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE_BYTES
}
