//! Speed of the simulator: flash operations per CPU second of one thread, without tracing, through
//! the whole stack. Prints a line a case, and writes {case: {"flash_ops_per_cpu_second": n}} to the
//! file named by FLASHBED_BENCH.
//!
//! Each case reads a 5 MiB file with 4 KiB requests from a prepared state. The time includes
//! parsing the operations and restoring the state, but not the preparation. A rate is the best of
//! several runs, because other load can only lower it. writes.rs has the cases that write.
//!
//! Rates of two builds differ by up to 10 % even if the simulator does the same, because the linker
//! places its code elsewhere. Instructions do not: `--cases=N NAME` runs a case N times, untimed,
//! under `valgrind --main-stacksize=268435456 --tool=cachegrind --cache-sim=no`; 14 less 4 are ten
//! cases without the preparation.

#[path = "../../tests/support/mod.rs"]
mod support;
mod writes;

use rustix::time::{clock_gettime, ClockId};
use serde_json::{json, Map, Value};
use sim::run::{run_cases, CaseInput, FsKind};

const FILE_BYTES: u64 = 5 << 20;
const RUNS: usize = 25;
const CASES_PER_RUN: usize = 50;
/// The argument that runs a case so many times, untimed.
const CASES_ARGUMENT: &str = "--cases=";

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

/// Flash operations per CPU second of a case; nothing if it is to run so many times `untimed`.
fn rate(fs: FsKind, board: &str, pages: &[u64], untimed: Option<usize>) -> Option<f64> {
    let (board, kernel) = (support::board(board), support::kernel("6.1"));
    let prepare = support::written_file(FILE_BYTES);
    let body = support::page_reads(pages);
    let setting = support::setting(&board, &kernel, fs, &prepare);
    let case = CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] };
    let reads = |result: &Result<sim::run::Measured, _>| match result {
        Ok(measured) => measured.flash_reads,
        Err(error) => panic!("{error}"),
    };
    let run = |count: usize| run_cases(&setting, &vec![case; count]).iter().map(reads).sum::<u64>();
    if let Some(count) = untimed {
        run(count);
        return None;
    }
    let timed = |count: usize| {
        let start = cpu_seconds();
        let reads = run(count);
        (reads, cpu_seconds() - start)
    };
    let rates = (0..RUNS).map(|_| {
        let (_, preparing) = timed(0);
        let (reads, spent) = timed(CASES_PER_RUN);
        reads as f64 / (spent - preparing)
    });
    Some(rates.into_iter().fold(0.0, f64::max))
}

fn main() {
    #[allow(clippy::disallowed_methods)]
    if std::env::args().skip(1).any(|argument| writes::run_named(&argument)) {
        return;
    }
    let sequential: Vec<u64> = (0..1280).collect();
    let random = scattered_pages(1024, 1280);
    #[allow(clippy::disallowed_methods)]
    let (options, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let untimed = options.iter().find_map(|option| option.strip_prefix(CASES_ARGUMENT));
    let untimed = untimed.map(|count| count.parse::<usize>().expect("--cases=N"));
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
                let Some(rate) = rate(kind, board, pages, untimed) else { continue };
                println!(
                    "{fs:7} {pattern:10} {board:9} {:8.2} million flash operations per CPU second",
                    rate / 1e6
                );
                results.insert(name, json!({ "flash_ops_per_cpu_second": rate.round() as u64 }));
            }
        }
    }
    if untimed.is_some() {
        return;
    }
    writes::run_all(&wanted, &mut results);
    #[allow(clippy::disallowed_methods)]
    if let Ok(path) = std::env::var("FLASHBED_BENCH") {
        let text = serde_json::to_string_pretty(&Value::Object(results)).expect("JSON");
        std::fs::write(&path, text + "\n").unwrap_or_else(|error| panic!("{path}: {error}"));
    }
}
