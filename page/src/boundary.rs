//! What JavaScript calls, and what it is called for: bytes pass through linear memory.
//!
//! The page writes a request at `reserve(n)`, calls `run(n)` and reads `answer_bytes()` bytes of
//! JSON at `answer()`, and from memory the columns whose places it names. One thread alone calls,
//! so a static holds the buffers.

#![allow(unsafe_code, reason = "exported functions, and a static that one thread alone uses")]

use crate::Answer;
use std::cell::UnsafeCell;
use std::panic;

#[link(wasm_import_module = "page")]
extern "C" {
    /// So many operations have begun.
    fn progress(operations: f64);
    /// The simulator found a bug of its own: a line of UTF-8.
    fn panicked(text: *const u8, bytes: usize);
}

struct Buffers {
    request: Vec<u8>,
    answer: Option<Answer>,
}

struct OneThread(UnsafeCell<Buffers>);

// SAFETY: a module without shared memory has one thread.
unsafe impl Sync for OneThread {}

static BUFFERS: OneThread =
    OneThread(UnsafeCell::new(Buffers { request: Vec::new(), answer: None }));

/// The buffers, for as long as one exported function runs.
#[allow(clippy::mut_from_ref, reason = "exported functions do not call each other")]
fn buffers() -> &'static mut Buffers {
    // SAFETY: one thread, and no exported function calls another.
    unsafe { &mut *BUFFERS.0.get() }
}

/// Makes room for a request of so many bytes and returns where it goes. The last answer is gone.
#[no_mangle]
pub extern "C" fn reserve(bytes: usize) -> *mut u8 {
    let buffers = buffers();
    buffers.answer = None;
    buffers.request = vec![0; bytes];
    buffers.request.as_mut_ptr()
}

/// Runs the request. The answer stands at `answer()`.
#[no_mangle]
pub extern "C" fn run() {
    panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // SAFETY: the text lives until the call is over.
        unsafe { panicked(text.as_ptr(), text.len()) };
    }));
    let buffers = buffers();
    let request = core::mem::take(&mut buffers.request);
    // SAFETY: JavaScript's function takes a number and gives nothing.
    let answer = crate::run(&request, &|operations| unsafe { progress(operations as f64) });
    buffers.answer = Some(answer);
}

/// The JSON of the answer; empty before a run.
fn json() -> &'static [u8] {
    buffers().answer.as_ref().map_or(&[], |answer| &answer.json)
}

/// Where the answer's JSON stands.
#[no_mangle]
pub extern "C" fn answer() -> *const u8 {
    json().as_ptr()
}

/// Bytes of the answer's JSON.
#[no_mangle]
pub extern "C" fn answer_bytes() -> usize {
    json().len()
}
