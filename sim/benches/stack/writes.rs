//! A million writes, as in tests/support/writes.rs, on a chip of 1 GiB or 2 GiB.
//!
//! The time includes creating the files. Memory is the peak growth of the process's resident set,
//! so each case is run in a process of its own.

use crate::cpu_seconds;
use crate::support::writes::{board, flash_ops, flash_pages, jffs2, open, ubifs, write, Pattern};
use serde_json::{json, Value};
use sim::fs::FlashFs;
use sim::profile::BoardProfile;
use sim::units::Ns;
use std::process::Command;

const WRITES: u64 = 1_000_000;
const BLOCKS_PER_GIB: u32 = 8192;

/// The argument that makes this process run one case and print its results.
const CASE_ARGUMENT: &str = "--write-case=";

/// A case.
struct Case {
    fs: &'static str,
    pattern: Pattern,
    chip_gib: u32,
}

impl Case {
    fn name(&self) -> String {
        format!("{}-write-{}-{}gib", self.fs, self.pattern.name(), self.chip_gib)
    }

    fn board(&self) -> BoardProfile {
        board(BLOCKS_PER_GIB * self.chip_gib)
    }
}

fn cases() -> impl Iterator<Item = Case> {
    ["jffs2", "ubifs"].into_iter().flat_map(|fs| {
        [Pattern::Sequential, Pattern::Random].into_iter().flat_map(move |pattern| {
            [1, 2].into_iter().map(move |chip_gib| Case { fs, pattern, chip_gib })
        })
    })
}

/// VmHWM of this process.
fn peak_bytes() -> u64 {
    #[allow(clippy::disallowed_methods, clippy::disallowed_types)]
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kib * 1024
}

fn run<S: FlashFs>(fresh: (S, Ns), board: &BoardProfile, pattern: Pattern) -> Value {
    let (mut vfs, now) = open(fresh, board);
    let (before, began) = (flash_ops(&vfs), cpu_seconds());
    write(&mut vfs, now, board, pattern, WRITES);
    let spent = cpu_seconds() - began;
    json!({ "flash_ops": flash_ops(&vfs) - before, "cpu_seconds": spent })
}

/// Runs the case that the argument names; returns whether it names one.
pub fn run_named(argument: &str) -> bool {
    let Some(name) = argument.strip_prefix(CASE_ARGUMENT) else { return false };
    let case = cases().find(|case| case.name() == name).expect("a case of this bench");
    let board = case.board();
    let baseline = peak_bytes();
    let mut result = match case.fs {
        "jffs2" => run(jffs2(&board), &board, case.pattern),
        _ => run(ubifs(&board), &board, case.pattern),
    };
    result["peak_bytes"] = json!(peak_bytes() - baseline);
    println!("{result}");
    true
}

/// Runs each selected case in a process of its own.
pub fn run_all(wanted: &[String], results: &mut serde_json::Map<String, Value>) {
    for case in cases() {
        let name = case.name();
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        let this = std::env::current_exe().expect("this program");
        let argument = format!("{CASE_ARGUMENT}{name}");
        let output = Command::new(this).arg(argument).output().expect("this program");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let measured: Value = serde_json::from_slice(&output.stdout).expect("what it printed");
        let number = |key: &str| measured[key].as_f64().expect("a number");
        let rate = number("flash_ops") / number("cpu_seconds");
        let bytes = number("peak_bytes") / flash_pages(&case.board()) as f64;
        println!(
            "{:7} writes {:10} {} GiB {:8.2} million flash operations per CPU second, {:.1} s, \
             {bytes:.1} bytes a flash page",
            case.fs,
            case.pattern.name(),
            case.chip_gib,
            rate / 1e6,
            number("cpu_seconds")
        );
        results.insert(
            name,
            json!({
                "flash_ops_per_cpu_second": rate.round() as u64,
                "cpu_seconds": number("cpu_seconds"),
                "bytes_per_flash_page": bytes,
            }),
        );
    }
}
