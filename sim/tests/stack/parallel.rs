//! Cases on several threads: rows do not depend on the number of threads, and a case ends whole.

use crate::support;
use sim::profile::BoardProfile;
use sim::run::parallel::{Case, Ended, Failure, Job, Message, Piece};
use sim::run::{
    CaseInput, ChipState, FsKind, KernelProfile, Measured, Policies, Request, RunError,
};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const EMPTY: &str = "flashbed-ops 1\nprepared\n";

fn case<'a>(fs: FsKind, chip: &'a ChipState, body: &'a str) -> Case<'a> {
    let input = CaseInput { read_ahead_kib: 0, body, cuts: &[], gc_choices: &[] };
    Case { fs: fs.into(), prepare: EMPTY, chip, policies: Policies::KERNELS, input }
}

fn job<'a>(board: &'a BoardProfile, kernel: &'a KernelProfile, cases: &'a [Case<'a>]) -> Job<'a> {
    let catch_panic = |work: &mut dyn FnMut()| {
        catch_unwind(AssertUnwindSafe(work)).map_err(|_| String::from("a panic"))
    };
    Job { board, kernel, cases, recorded: support::TRACED, in_pieces: false, catch_panic }
}

/// The results of a job: the cases that ended, in their order, and the pieces.
fn results(job: &Job<'_>, threads: usize) -> (Vec<Ended>, Vec<Piece>) {
    let (mut all, mut pieces) = (Vec::new(), Vec::new());
    job.run(threads, |receiver, _stop| {
        for message in receiver {
            match message {
                Message::Ended(ended) => all.push(*ended),
                Message::Piece(piece) => pieces.push(piece),
            }
        }
    });
    all.sort_by_key(|ended| ended.case);
    (all, pieces)
}

fn measured(ended: &Ended) -> &Measured {
    ended.result.as_ref().unwrap_or_else(|error| panic!("case {}: {error}", ended.case))
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let (new, worn) = (ChipState::default(), ChipState { erases: vec![7], ..ChipState::default() });
    let bodies: Vec<String> = (1..100)
        .map(|pages| {
            let bytes = pages * 4096;
            format!("flashbed-ops 1\nopen 0 f rw,create\nmark\nwrite 0 0 {bytes} 1 0\nclose 0\n")
        })
        .collect();
    let of = |fs, chip| bodies.iter().map(move |body| case(fs, chip, body));
    let cases: Vec<_> = of(FsKind::Jffs2, &new)
        .chain(of(FsKind::Jffs2, &worn))
        .chain(of(FsKind::Yaffs2, &new))
        .collect();
    let (alone, _) = results(&job(&board, &kernel, &cases), 1);
    let (shared, _) = results(&job(&board, &kernel, &cases), 3);
    assert_eq!(format!("{alone:?}"), format!("{shared:?}"));
    assert!(alone.iter().map(|ended| ended.case).eq(0..cases.len()));
    assert_eq!(measured(&alone[0]).bytes_written, 4096);
    assert_eq!(measured(&alone[0]).erase_count_max + 7, measured(&alone[99]).erase_count_max);
}

#[test]
fn the_pieces_of_a_long_case_are_its_rows() {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let chip = ChipState::default();
    let reads = "read 0 0 4096\n".repeat(70_000);
    let body = format!("flashbed-ops 1\nopen 0 f rw,create\nmark\n{reads}close 0\n");
    let cases = [case(FsKind::Jffs2, &chip, &body)];
    let whole = job(&board, &kernel, &cases);
    let (all, none) = results(&whole, 1);
    assert!(none.is_empty());
    let (rest, pieces) = results(&Job { in_pieces: true, ..whole }, 1);
    let mut requests: Vec<Request> = Vec::new();
    for piece in &pieces {
        assert_eq!((piece.case, piece.before.requests), (0, requests.len()));
        requests.extend(&piece.requests);
    }
    assert_eq!(rest[0].before.requests, requests.len());
    requests.extend(&measured(&rest[0]).requests);
    assert_eq!(requests.len(), 70_001);
    let expected = &measured(&all[0]).requests;
    assert_eq!(format!("{requests:?}"), format!("{expected:?}"));
}

#[test]
fn a_panic_costs_its_case_alone() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let chip = ChipState::default();
    let cases = [case(FsKind::Jffs2, &chip, "flashbed-ops 1\n"); 3];
    let unlucky = Job {
        // The group is the first call; then come its cases, of which the second fails again.
        catch_panic: |work| {
            work();
            match CALLS.fetch_add(1, Relaxed) {
                0 | 2 => Err(String::from("a panic")),
                _ => Ok(()),
            }
        },
        ..job(&board, &kernel, &cases)
    };
    let (all, _) = results(&unlucky, 1);
    let panicked = Failure::Panic(String::from("a panic"));
    let failures: Vec<_> = all.into_iter().map(|ended| ended.result.err()).collect();
    assert_eq!(failures, [None, Some(panicked), None]);
}

#[test]
fn a_stopped_case_does_not_end_and_an_early_return_ends_the_threads() {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let chip = ChipState::default();
    let endless = format!("flashbed-ops 1\n{}", "compute 1000000000000\n".repeat(100_000));
    let forever = [case(FsKind::Jffs2, &chip, &endless)];
    let ended = job(&board, &kernel, &forever).run(1, |receiver, stop| {
        stop.throw();
        receiver.iter().count()
    });
    assert_eq!(ended, 0);
    let cases = [case(FsKind::Jffs2, &chip, "flashbed-ops 1\n"); 9];
    job(&board, &kernel, &cases).run(2, |receiver, _stop| assert!(receiver.recv().is_ok()));
}

#[test]
fn a_refusal_says_what_is_not_modelled() {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let chip = ChipState::default();
    let cases = [
        case(
            FsKind::Jffs2,
            &chip,
            "flashbed-ops 1\nsql_open a 1 fsync PRAGMA user_version\nsql_close a\n",
        ),
        case(FsKind::Jffs2, &chip, "flashbed-ops 1\nopen 0 a\n"),
    ];
    let (all, _) = results(&job(&board, &kernel, &cases), 1);
    let failures = all.iter().map(|ended| ended.result.as_ref().expect_err("fails"));
    let refused: Vec<_> = failures.map(Failure::not_modelled).collect();
    assert_eq!(refused, [Some("sql in the simulator"), None]);
    assert!(matches!(all[1].result, Err(Failure::Run(RunError::Operations(_)))));
}
