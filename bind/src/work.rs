//! Shares cases out to threads, and waits for them in a way that Ctrl-C ends.
//!
//! Invariants:
//! 1. The same rows come out whatever the number of threads.
//! 2. A case is in the results whole or not at all.

use crate::{bug, chip_state, Case, Columns, Group};
use pyo3::{Py, PyAny, PyErr, PyResult, Python};
use sim::flash::FlashOp;
use sim::profile::BoardProfile;
use sim::run::{
    run_cases_watched, CaseInput, KernelProfile, Measured, Recorded, Request, RunError, Setting,
    Watch,
};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// How long a signal waits to be seen.
const LOOK: Duration = Duration::from_millis(5);
/// Rows of a table that are handed over at once.
const PIECE_ROWS: usize = 1 << 16;
/// Pieces that wait to be taken.
const PIECES: usize = 2;

/// A case that has ended.
pub struct Ended {
    pub case: usize,
    /// Its rows of requests and flash that were sent before.
    pub before: (i64, i64),
    pub result: Result<Measured, String>,
}

/// Everything that is to be run.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub board: &'a BoardProfile,
    pub kernel: &'a KernelProfile,
    pub cases: &'a [Case],
    pub groups: &'a [Group],
    pub recorded: Recorded,
}

/// What came of it, and what a signal's handler or the sink raised.
pub struct Waited {
    pub results: Vec<Ended>,
    pub interrupted: Option<PyErr>,
}

/// Rows of a case that has not ended.
pub struct Piece {
    pub case: usize,
    pub requests: Vec<Request>,
    pub flash: Vec<FlashOp>,
    pub files: Vec<String>,
    /// Rows of requests and flash that were sent before.
    pub before: (i64, i64),
}

enum Message {
    Piece(Piece),
    Ended(Box<Ended>),
}

impl Job<'_> {
    /// Every `threads`-th group on the same thread.
    pub fn run(self, threads: usize, sink: Option<&Py<PyAny>>) -> Waited {
        let stop = AtomicBool::new(false);
        let (sender, receiver) = sync_channel(PIECES);
        let mut waited = std::thread::scope(|scope| {
            for first in 0..threads {
                let (sender, stop) = (sender.clone(), &stop);
                let streams = sink.is_some();
                scope.spawn(move || {
                    for group in self.groups.iter().skip(first).step_by(threads) {
                        self.run_group(group, &Worker::new(&sender, stop, streams, group));
                    }
                });
            }
            drop(sender);
            self.wait(&receiver, sink, &stop)
        });
        waited.results.sort_by_key(|ended| ended.case);
        waited
    }

    /// Takes what comes until every thread has ended.
    fn wait(
        self,
        receiver: &Receiver<Message>,
        sink: Option<&Py<PyAny>>,
        stop: &AtomicBool,
    ) -> Waited {
        let mut waited = Waited { results: Vec::new(), interrupted: None };
        loop {
            let taken = match receiver.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Disconnected) => return waited,
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Ok(Message::Ended(result)) => {
                    waited.results.push(*result);
                    Ok(())
                }
                Ok(Message::Piece(_)) if waited.interrupted.is_some() => Ok(()),
                Ok(Message::Piece(piece)) => self.hand_over(&piece, sink),
            };
            let looked = taken.and_then(|()| Python::attach(|py| py.check_signals()));
            if let Err(raised) = looked {
                stop.store(true, Relaxed);
                waited.interrupted.get_or_insert(raised);
            }
        }
    }

    fn hand_over(self, piece: &Piece, sink: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(sink) = sink else { return Ok(()) };
        let columns = Columns::of_piece(self.board, piece);
        Python::attach(|py| sink.call1(py, (columns.into_dict(py)?,)).map(|_| ()))
    }

    /// A panic costs the case that it happens in: the cases of a group are run one by one then.
    fn run_group(self, group: &Group, worker: &Worker<'_>) {
        match bug::or_line(|| self.simulated(group, worker)) {
            Ok(results) => {
                for (case, result) in results.into_iter().enumerate() {
                    worker.end(case, result);
                }
            }
            Err(bug) if group.indices.len() == 1 => worker.send_end(0, Err(bug)),
            Err(_) => {
                for &index in &group.indices {
                    let alone = Group { fs: group.fs, indices: vec![index] };
                    let worker = Worker::new(worker.sender, worker.stop, worker.streams, &alone);
                    self.run_group(&alone, &worker);
                }
            }
        }
    }

    fn simulated(self, group: &Group, worker: &Worker<'_>) -> Vec<Result<Measured, RunError>> {
        let Job { board, kernel, cases, recorded, .. } = self;
        let first = &cases[group.indices[0]];
        let setting = Setting { board, kernel, fs: group.fs, prepare: &first.3, recorded };
        let input = |&index: &usize| {
            let (_, _, read_ahead_kib, _, body, cuts, _, dice) = &cases[index];
            CaseInput { read_ahead_kib: *read_ahead_kib, body, cuts, dice }
        };
        let inputs: Vec<CaseInput<'_>> = group.indices.iter().map(input).collect();
        run_cases_watched(&setting, &chip_state(&first.6), &inputs, worker)
    }
}

/// What a thread tells of a group's cases, and hears.
struct Worker<'a> {
    sender: &'a SyncSender<Message>,
    stop: &'a AtomicBool,
    streams: bool,
    group: &'a Group,
    /// Rows of requests and flash that were sent of each case.
    sent: RefCell<Vec<(i64, i64)>>,
}

impl<'a> Worker<'a> {
    fn new(
        sender: &'a SyncSender<Message>,
        stop: &'a AtomicBool,
        streams: bool,
        group: &'a Group,
    ) -> Worker<'a> {
        let sent = RefCell::new(vec![(0, 0); group.indices.len()]);
        Worker { sender, stop, streams, group, sent }
    }

    /// One that was stopped is as if it had never begun.
    fn end(&self, case: usize, result: Result<Measured, RunError>) {
        if !matches!(result, Err(RunError::Stopped)) {
            self.send_end(case, result.map_err(|error| error.to_string()));
        }
    }

    fn send_end(&self, case: usize, result: Result<Measured, String>) {
        let before = self.sent.borrow()[case];
        let ended = Ended { case: self.group.indices[case], before, result };
        // it is heard until all threads have ended
        let _ = self.sender.send(Message::Ended(Box::new(ended)));
    }
}

impl Watch for Worker<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    fn rows_at_once(&self) -> usize {
        if self.streams {
            PIECE_ROWS
        } else {
            usize::MAX
        }
    }

    fn take(&self, case: usize, requests: Vec<Request>, flash: Vec<FlashOp>, files: &[String]) {
        let sent = &mut self.sent.borrow_mut()[case];
        let before = *sent;
        *sent = (before.0 + requests.len() as i64, before.1 + flash.len() as i64);
        let (case, files) = (self.group.indices[case], files.to_vec());
        let _ = self.sender.send(Message::Piece(Piece { case, requests, flash, files, before }));
    }
}
