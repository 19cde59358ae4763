//! A million 4 KiB writes, with fsync every 64, to files that fill half of a chip of 1 GiB or 2 GiB.
//!
//! The files are written in order first, four of them side by side; that is timed as the rest is. Every write has a seed of
//! its own, so no two pages go on generating the same bytes. The VFS is called without text or rows: what is measured is the
//! stack and nothing around it. Memory is what the process's resident set has grown by at its highest, so each case is
//! run in a process of its own.

use crate::{cpu_seconds, support};
use serde_json::{json, Value};
use sim::chip::{Chip, Flash};
use sim::content::Source;
use sim::fs::jffs2::Jffs2;
use sim::fs::ubifs::Ubifs;
use sim::fs::FlashFs;
use sim::mtd::Mtd;
use sim::ops::Flags;
use sim::profile::BoardProfile;
use sim::units::Ns;
use sim::vfs::Vfs;
use std::process::Command;

const WRITES: u64 = 1_000_000;
const WRITE_BYTES: u64 = 4096;
const WRITES_PER_FSYNC: u64 = 64;
const FILES: u64 = 4;
const BLOCKS_PER_GIB: u32 = 8192;

/// The argument that makes this process run one case and print what it measured.
const CASE_ARGUMENT: &str = "--write-case=";

/// What one case is.
struct Case {
    fs: &'static str,
    pattern: &'static str,
    chip_gib: u32,
}

impl Case {
    fn name(&self) -> String {
        format!("{}-write-{}-{}gib", self.fs, self.pattern, self.chip_gib)
    }
}

fn cases() -> impl Iterator<Item = Case> {
    ["jffs2", "ubifs"].into_iter().flat_map(|fs| {
        ["sequential", "random"].into_iter().flat_map(move |pattern| {
            [1, 2].into_iter().map(move |chip_gib| Case { fs, pattern, chip_gib })
        })
    })
}

/// The emulated board with a chip of so many GiB, all of it one partition.
fn board(gib: u32) -> BoardProfile {
    let mut board = support::board("emulated");
    board.chip.blocks = BLOCKS_PER_GIB * gib;
    (board.partition.first_block, board.partition.blocks) = (0, board.chip.blocks);
    board
}

/// VmHWM of this process.
fn peak_bytes() -> u64 {
    #[allow(clippy::disallowed_methods, clippy::disallowed_types)]
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kib * 1024
}

/// The page of all files that a write goes to.
fn pages(pattern: &str, count: u64) -> impl Iterator<Item = u64> {
    let is_random = pattern == "random";
    let mut state: u64 = 1;
    (0..WRITES).map(move |write| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if is_random && write >= count {
            (state >> 33) % count
        } else {
            write % count
        }
    })
}

fn run<S: FlashFs>(fs: S, mut now: Ns, board: &BoardProfile, pattern: &str) -> Value {
    let flags = Flags { write: true, create: true, ..Flags::default() };
    let kernel = support::kernel("6.1");
    let mut vfs = Vfs::new(fs, kernel.readahead, board.software, board.memory, FILES as usize);
    for slot in 0..FILES as usize {
        let (result, later) = vfs.open(now, slot, &format!("file{slot}"), flags).expect("open");
        assert!(result >= 0, "open: {result}");
        now = later;
    }
    let count = u64::from(board.chip.blocks)
        * u64::from(board.chip.pages_per_block)
        * u64::from(board.chip.page_bytes)
        / WRITE_BYTES
        / 2;
    let (before, began) = (vfs.flash().counts(), cpu_seconds());
    for (write, page) in pages(pattern, count).enumerate() {
        let (slot, at) = ((page % FILES) as usize, page / FILES * WRITE_BYTES);
        let source = Source { seed: write as u64, compressibility: 0 };
        now = vfs.catch_up(now).expect("background work");
        let (result, later) = vfs.write(now, slot, at, WRITE_BYTES, source).expect("a write");
        assert_eq!(result, WRITE_BYTES as i64, "write {write}");
        now = later;
        if (write as u64 + 1) % WRITES_PER_FSYNC == 0 {
            for slot in 0..FILES as usize {
                now = vfs.catch_up(now).expect("background work");
                now = vfs.fsync(now, slot, false).expect("fsync").1;
            }
        }
    }
    let (spent, after) = (cpu_seconds() - began, vfs.flash().counts());
    let flash_ops = after.reads + after.programs + after.erases
        - before.reads
        - before.programs
        - before.erases;
    json!({ "flash_ops": flash_ops, "cpu_seconds": spent })
}

/// Runs the case that the arguments name, if they name one, and says so.
pub fn run_named(argument: &str) -> bool {
    let Some(name) = argument.strip_prefix(CASE_ARGUMENT) else { return false };
    let case = cases().find(|case| case.name() == name).expect("a case of this bench");
    let board = board(case.chip_gib);
    let kernel = support::kernel("6.1");
    let baseline = peak_bytes();
    let mtd = Mtd::new(Chip::new(board.chip), &board);
    let mut result = match case.fs {
        "jffs2" => {
            let (fs, now) = Jffs2::format(mtd, Ns::ZERO, kernel.jffs2).expect("jffs2");
            run(fs, now, &board, case.pattern)
        }
        _ => {
            let (fs, now) = Ubifs::format(mtd, Ns::ZERO, kernel.ubifs).expect("ubifs");
            run(fs, now, &board, case.pattern)
        }
    };
    result["peak_bytes"] = json!(peak_bytes() - baseline);
    println!("{result}");
    true
}

/// Runs each case that is wanted in a process of its own.
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
        let pages =
            f64::from(board(case.chip_gib).chip.blocks) * f64::from(board(1).chip.pages_per_block);
        let bytes = number("peak_bytes") / pages;
        println!(
            "{:7} writes {:10} {} GiB {:8.2} million flash operations per CPU second, {:.1} s, {bytes:.1} bytes a flash page",
            case.fs, case.pattern, case.chip_gib, rate / 1e6, number("cpu_seconds")
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
