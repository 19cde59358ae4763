//! Speed of the simulator: flash operations per CPU second of one thread, without tracing, through
//! the whole stack. Prints a line a case, and writes {case: {"flash_ops_per_cpu_second": n}} to the
//! file named by FLASHBED_BENCH.
//!
//! Each case reads a 5 MiB file with 4 KiB requests from a prepared state. The time includes
//! parsing the operations and restoring the state, but not the preparation. A rate is the best of
//! several runs, because other load can only lower it. writes.rs has the cases that write.

#[path = "../../tests/support/mod.rs"]
mod support;
mod writes;

use rustix::time::{clock_gettime, ClockId};
use serde_json::{json, Map, Value};
use sim::run::{run_cases, CaseInput, FsKind};

const FILE_BYTES: u64 = 5 << 20;
const RUNS: usize = 25;
const CASES_PER_RUN: usize = 50;

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Pages in an order that looks random and is always the same (a full-period LCG mod 2^n).
fn scattered_pages(count: u64, pages: u64) -> Vec<u64> {
    let mut state: u64 = 1;
    let next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % pages
    };
    std::iter::repeat_with(next).take(count as usize).collect()
}

fn rate(fs: FsKind, board: &str, pages: &[u64]) -> f64 {
    let (board, kernel) = (support::board(board), support::kernel("6.1"));
    let prepare = support::written_file(FILE_BYTES);
    let body = support::page_reads(pages);
    let setting = support::setting(&board, &kernel, fs, &prepare);
    let timed = |count: usize| {
        let cases =
            vec![CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] }; count];
        let start = cpu_seconds();
        let results = run_cases(&setting, &cases);
        let spent = cpu_seconds() - start;
        let reads = |result: &Result<sim::run::Measured, _>| match result {
            Ok(measured) => measured.flash_reads,
            Err(error) => panic!("{error}"),
        };
        (results.iter().map(reads).sum::<u64>(), spent)
    };
    let rates = (0..RUNS).map(|_| {
        let (_, preparing) = timed(0);
        let (reads, spent) = timed(CASES_PER_RUN);
        reads as f64 / (spent - preparing)
    });
    rates.into_iter().fold(0.0, f64::max)
}

fn main() {
    #[allow(clippy::disallowed_methods)]
    if std::env::args().skip(1).any(|argument| writes::run_named(&argument)) {
        return;
    }
    let sequential: Vec<u64> = (0..1280).collect();
    let random = scattered_pages(1024, 1280);
    #[allow(clippy::disallowed_methods)]
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let mut results = Map::new();
    for (fs, kind) in
        [("jffs2", FsKind::Jffs2), ("yaffs2", FsKind::Yaffs2), ("ubifs", FsKind::Ubifs)]
    {
        for (pattern, pages) in [("sequential", &sequential), ("random", &random)] {
            for board in ["omap3evm", "emulated"] {
                let name = format!("{fs}-{pattern}-{board}");
                if !wanted.is_empty() && !wanted.contains(&name) {
                    continue;
                }
                let rate = rate(kind, board, pages);
                println!(
                    "{fs:7} {pattern:10} {board:9} {:8.2} million flash operations per CPU second",
                    rate / 1e6
                );
                results.insert(name, json!({ "flash_ops_per_cpu_second": rate.round() as u64 }));
            }
        }
    }
    writes::run_all(&wanted, &mut results);
    #[allow(clippy::disallowed_methods)]
    if let Ok(path) = std::env::var("FLASHBED_BENCH") {
        let text = serde_json::to_string_pretty(&Value::Object(results)).expect("JSON");
        std::fs::write(&path, text + "\n").unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}
