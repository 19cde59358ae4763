//! Runs many cases on several threads.
//!
//! Cases with the same file system, preparation, chip and policies form a group, which prepares its
//! stack once. Each thread runs every n-th group and sends the results to the caller, who waits for
//! them.
//!
//! Invariants:
//! 1. The rows do not depend on the number of threads.
//! 2. A case ends with all of its rows or with an error. A stopped case does not end.
//! 3. A panic costs only the case in which it happens.

use super::{
    run_cases_watched, CaseInput, ChipState, KernelProfile, Measured, Mount, Policies, Recorded,
    Request, RunError, Setting, Watch,
};
use crate::flash::FlashOp;
use crate::profile::BoardProfile;
use crate::stop::Stop;
use crate::waits::Waits;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use thiserror::Error;

/// The largest group, so that threads share the work evenly.
const GROUP_CASES_MAX: usize = 64;
/// The least rows of a table in a piece.
const PIECE_ROWS: usize = 1 << 16;
/// Messages queued for the caller. A thread with another one blocks.
const MESSAGES: usize = 2;

/// A case and its stack.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The file system and its mount options.
    pub fs: Mount,
    /// The operations of the preparation.
    pub prepare: &'a str,
    /// The chip that the preparation begins with.
    pub chip: &'a ChipState,
    /// What decides in the kernel's place. Only cases with the same object share a preparation.
    pub policies: &'a Policies,
    /// The case.
    pub input: CaseInput<'a>,
}

/// Runs a closure and turns what it unwinds with into a message: a panic, or
/// [`Misbehaved`](crate::stop::Misbehaved).
pub type CatchPanic = fn(&mut dyn FnMut()) -> Result<(), String>;

/// Cases of one board and kernel.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The board.
    pub board: &'a BoardProfile,
    /// The kernel.
    pub kernel: &'a KernelProfile,
    /// The cases.
    pub cases: &'a [Case<'a>],
    /// What is recorded besides the counts.
    pub recorded: Recorded,
    /// Whether a long case's rows are sent in pieces. Otherwise they are sent at its end.
    pub in_pieces: bool,
    /// Runs a group.
    pub catch_panic: CatchPanic,
}

/// Numbers of rows of a case, by table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowsSent {
    /// Rows of `requests`.
    pub requests: usize,
    /// Rows of `flash`.
    pub flash: usize,
}

/// Rows of a case that has not ended. A case that is run again after a panic sends its first rows
/// again.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Index of the case.
    pub case: usize,
    /// Rows that were sent before.
    pub before: RowsSent,
    /// The next rows of `requests`.
    pub requests: Vec<Request>,
    /// What these requests waited for, if recorded.
    pub waits: Vec<Waits>,
    /// The next rows of `flash`.
    pub flash: Vec<FlashOp>,
    /// Paths that the case has named so far.
    pub files: Vec<String>,
}

/// A case that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Index of the case.
    pub case: usize,
    /// Rows that were sent in pieces.
    pub before: RowsSent,
    /// The counts and the last rows.
    pub result: Result<Measured, Failure>,
}

/// Why a case has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// The simulator's reason.
    #[error("{0}")]
    Run(RunError),
    /// It panicked, or its policy is wrong; the message is that of [`Job::catch_panic`].
    #[error("{0}")]
    Panic(String),
}

impl Failure {
    /// What the case needs and the model leaves out; none if it failed for another reason.
    pub fn not_modelled(&self) -> Option<&'static str> {
        match self {
            Failure::Run(error) => error.not_modelled(),
            Failure::Panic(_) => None,
        }
    }
}

/// A message of a thread.
#[derive(Clone, Debug)]
pub enum Message {
    /// Rows of a running case.
    Piece(Piece),
    /// The end of a case.
    Ended(Box<Ended>),
}

impl Job<'_> {
    /// Runs all cases while `wait` receives the results. The channel disconnects when all cases
    /// have ended. `wait` throws the switch to stop them early.
    pub fn run<T>(&self, threads: usize, wait: impl FnOnce(&Receiver<Message>, &Stop) -> T) -> T {
        let threads = threads.max(1);
        let groups = groups(self.cases);
        let stop = Stop::default();
        let (sender, receiver) = sync_channel(MESSAGES);
        std::thread::scope(|scope| {
            for first in 0..threads {
                let (sender, stop, groups) = (sender.clone(), &stop, &groups);
                scope.spawn(move || {
                    for group in groups.iter().skip(first).step_by(threads) {
                        self.run_group(group, &sender, stop);
                    }
                });
            }
            drop(sender);
            let waited = wait(&receiver, &stop);
            // If the caller returned early, threads that send end now; otherwise nothing is left to
            // do.
            stop.throw();
            drop(receiver);
            waited
        })
    }

    /// Runs the cases of a group. After a panic it runs each of them alone.
    fn run_group(&self, group: &[usize], sender: &SyncSender<Message>, stop: &Stop) {
        let worker = Worker::new(sender, stop, self.in_pieces, group);
        let mut results = Vec::new();
        match (self.catch_panic)(&mut || results = self.simulated(group, &worker)) {
            Ok(()) => {
                for (case, result) in results.into_iter().enumerate() {
                    worker.end(case, result.map_err(Failure::Run));
                }
            }
            Err(message) if group.len() == 1 => worker.end(0, Err(Failure::Panic(message))),
            Err(_) => group.chunks(1).for_each(|alone| self.run_group(alone, sender, stop)),
        }
    }

    fn simulated(&self, group: &[usize], worker: &Worker<'_>) -> Vec<Result<Measured, RunError>> {
        let Job { board, kernel, cases, recorded, .. } = *self;
        let Case { fs, prepare, chip, policies, .. } = cases[group[0]];
        let setting = Setting { board, kernel, fs, policies, prepare, recorded };
        let inputs: Vec<CaseInput<'_>> = group.iter().map(|&index| cases[index].input).collect();
        run_cases_watched(&setting, chip, &inputs, worker)
    }
}

/// Groups of cases, by index, with the same file system, preparation, chip and policies.
fn groups(cases: &[Case<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut open: BTreeMap<(Mount, &str, &ChipState, *const Policies), usize> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate() {
        let key = (case.fs, case.prepare, case.chip, std::ptr::from_ref(case.policies));
        let has_room = |&at: &usize| groups[at].len() < GROUP_CASES_MAX;
        match open.get(&key).copied().filter(has_room) {
            Some(at) => groups[at].push(index),
            None => {
                open.insert(key, groups.len());
                groups.push(vec![index]);
            }
        }
    }
    groups
}

/// A thread's sender, while it runs a group.
struct Worker<'a> {
    sender: &'a SyncSender<Message>,
    stop: &'a Stop,
    in_pieces: bool,
    group: &'a [usize],
    /// Rows sent so far, by case of the group.
    sent: RefCell<Vec<RowsSent>>,
    /// What the next rows waited for.
    waits: RefCell<Vec<Waits>>,
}

impl<'a> Worker<'a> {
    fn new(
        sender: &'a SyncSender<Message>,
        stop: &'a Stop,
        in_pieces: bool,
        group: &'a [usize],
    ) -> Worker<'a> {
        let sent = RefCell::new(vec![RowsSent::default(); group.len()]);
        Worker { sender, stop, in_pieces, group, sent, waits: RefCell::default() }
    }

    fn end(&self, case: usize, result: Result<Measured, Failure>) {
        if matches!(result, Err(Failure::Run(RunError::Stopped))) {
            return;
        }
        let before = self.sent.borrow()[case];
        let ended = Ended { case: self.group[case], before, result };
        // If the caller has gone, the rest is not needed.
        let _ = self.sender.send(Message::Ended(Box::new(ended)));
    }
}

impl Watch for Worker<'_> {
    fn stop(&self) -> &Stop {
        self.stop
    }

    fn rows_at_once(&self) -> usize {
        if self.in_pieces {
            PIECE_ROWS
        } else {
            usize::MAX
        }
    }

    fn take(&self, case: usize, requests: Vec<Request>, flash: Vec<FlashOp>, files: &[String]) {
        let sent = &mut self.sent.borrow_mut()[case];
        let before = *sent;
        sent.requests += requests.len();
        sent.flash += flash.len();
        let (case, files) = (self.group[case], files.to_vec());
        let waits = self.waits.take();
        let piece = Piece { case, before, requests, waits, flash, files };
        let _ = self.sender.send(Message::Piece(piece));
    }

    fn take_waits(&self, _: usize, waits: Vec<Waits>) {
        self.waits.replace(waits);
    }
}
