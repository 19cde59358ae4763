//! Waits for the simulator's threads so that Ctrl-C ends the wait, and a policy of the user's that
//! does not return ends its case.

use crate::decisions;
use crate::results::Piece;
use pyo3::prelude::*;
use sim::run::parallel::{Ended, Job, Message};
use sim::stop::Stop;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// How long a signal may wait to be noticed.
const LOOK: Duration = Duration::from_millis(5);

/// The results of a job, and what a signal's handler or the sink raised.
pub struct Waited {
    /// By index of the case.
    pub ended: Vec<Ended>,
    pub interrupted: Option<PyErr>,
}

/// Runs a job; `sink` is called with the pieces of long cases.
pub fn run(job: &Job<'_>, threads: usize, sink: Option<&Py<PyAny>>) -> Waited {
    let mut waited = job.run(threads, |receiver, stop| wait(job, receiver, stop, sink));
    waited.ended.sort_by_key(|ended| ended.case);
    waited
}

/// Receives until every thread has ended. After an interrupt the threads stop; cases that still end
/// are kept.
fn wait(
    job: &Job<'_>,
    receiver: &Receiver<Message>,
    stop: &Stop,
    sink: Option<&Py<PyAny>>,
) -> Waited {
    let mut waited = Waited { ended: Vec::new(), interrupted: None };
    loop {
        let received = match receiver.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Disconnected) => return waited,
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(Message::Ended(ended)) => {
                waited.ended.push(*ended);
                Ok(())
            }
            Ok(Message::Piece(_)) if waited.interrupted.is_some() => Ok(()),
            Ok(Message::Piece(piece)) => Python::attach(|py| {
                let Some(sink) = sink else { return Ok(()) };
                sink.call1(py, (Piece::new(py, job.board, &piece)?,)).map(|_| ())
            }),
        };
        let looked = received.and_then(|()| {
            Python::attach(|py| {
                py.check_signals()?;
                decisions::look(py, waited.interrupted.is_some())
            })
        });
        if let Err(raised) = looked {
            stop.throw();
            waited.interrupted.get_or_insert(raised);
        }
    }
}
