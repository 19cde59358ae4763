//! The simulator in a browser tab: one case comes in as bytes, its answer goes out as JSON and
//! columns.
//!
//! `request.rs` reads a case, `answer.rs` writes what came of it, `columns.rs` keeps the rows of
//! operations compactly, `lifetime.rs` makes years of erases, and `boundary.rs` is the only file
//! that JavaScript sees. Nothing is modelled here: the numbers are those of `sim::run`, and
//! `common` has what the package works out as well.
//!
//! Invariant: the same bytes in give the same numbers out, whatever ran before.

mod answer;
#[cfg(target_arch = "wasm32")]
mod boundary;
mod columns;
mod lifetime;
mod request;

pub use answer::Answer;
use columns::Rows;
use request::Request;
use sim::flash::FlashOp;
use sim::run::{
    run_cases_watched, CaseInput, LayerTimes, Policies, Recorded, RunError, Setting, Watch,
};
use sim::stop::Stop;
use std::cell::{Cell, RefCell};

/// Operations between two reports of progress.
const REPORTED_EVERY: u64 = 2048;
/// Rows of a table that the simulator keeps before it hands them over.
const ROWS_AT_ONCE: usize = 1 << 14;

/// Runs the case in `bytes` and returns the answer; `progress` hears of operations that have begun.
pub fn run(bytes: &[u8], progress: &dyn Fn(u64)) -> Answer {
    match answered(bytes, progress) {
        Ok(answer) => answer,
        Err(refused) => answer::refused(&refused),
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum Refused {
    /// The request itself is broken.
    Request(String),
    /// The simulator says so.
    Run(RunError),
}

fn answered(bytes: &[u8], progress: &dyn Fn(u64)) -> Result<Answer, Refused> {
    let request = Request::read(bytes).map_err(Refused::Request)?;
    let setting = Setting {
        board: &request.board,
        kernel: &request.kernel,
        fs: request.fs,
        policies: Policies::KERNELS,
        prepare: &request.prepare,
        recorded: Recorded {
            requests: request.with_rows,
            flash: request.with_rows,
            wear: true,
            flush: true,
            live: request.with_rows,
            layers: request.with_rows,
            waits: false,
        },
    };
    let input = CaseInput {
        read_ahead_kib: request.read_ahead_kib,
        body: &request.body,
        cuts: &[],
        gc_choices: &[],
    };
    let watcher = Watcher {
        stop: Stop::default(),
        operations: Cell::new(0),
        rows: RefCell::new(Rows::new(request.rows_max)),
        progress,
    };
    let results = run_cases_watched(&setting, &request.chip, &[input], &watcher);
    let result = results.into_iter().next().expect("one case, one result");
    let mut measured = result.map_err(Refused::Run)?;
    let mut rows = watcher.rows.into_inner();
    rows.add_layers(&measured.layers);
    rows.add(&measured.requests, &measured.flash);
    measured.layers = Vec::new();
    measured.requests = Vec::new();
    measured.flash = Vec::new();
    Ok(answer::measured(&request, &measured, rows))
}

/// Takes rows as they come and reports progress; it never stops a case.
struct Watcher<'a> {
    stop: Stop,
    operations: Cell<u64>,
    rows: RefCell<Rows>,
    progress: &'a dyn Fn(u64),
}

impl Watch for Watcher<'_> {
    /// The simulator looks at it before every operation.
    fn stop(&self) -> &Stop {
        let count = self.operations.get() + 1;
        self.operations.set(count);
        if count % REPORTED_EVERY == 0 {
            (self.progress)(count);
        }
        &self.stop
    }

    fn rows_at_once(&self) -> usize {
        ROWS_AT_ONCE
    }

    fn take(
        &self,
        _: usize,
        requests: Vec<sim::run::Request>,
        flash: Vec<FlashOp>,
        _files: &[String],
    ) {
        self.rows.borrow_mut().add(&requests, &flash);
    }

    fn take_layers(&self, _: usize, layers: Vec<LayerTimes>) {
        self.rows.borrow_mut().add_layers(&layers);
    }
}
