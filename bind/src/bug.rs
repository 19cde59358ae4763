//! A panic of the simulator is our bug. It becomes one line with its place in the source, without a
//! traceback. What a policy of the user's did wrong is a line already.

use pyo3::exceptions::PyRuntimeError;
use pyo3::PyErr;
use sim::stop::Misbehaved;
use std::cell::Cell;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static LAST: Cell<String> = const { Cell::new(String::new()) };
}
static HOOK: Once = Once::new();

/// The closure's result, or one line with the place of its panic.
pub fn or_line<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        set_hook(Box::new(|info| {
            let place = info.location().map_or(String::new(), |at| format!(" at {at}"));
            let payload = info.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let words: Vec<_> = text.unwrap_or("no message").split_whitespace().collect();
            LAST.set(format!("{}{place}", words.join(" ")));
        }));
    });
    catch_unwind(AssertUnwindSafe(work)).map_err(|unwound| match unwound.downcast::<Misbehaved>() {
        Ok(wrong) => wrong.0,
        Err(_) => {
            let what = LAST.take();
            format!("a bug of flashbed's simulator, please report it with the experiment: {what}")
        }
    })
}

/// The same as a Python exception.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, PyErr> {
    or_line(work).map_err(PyRuntimeError::new_err)
}
