//! Policies of one's own: this file is all that one of each takes
//! (policies/README.md quotes it).

use crate::support;
use sim::causes::Cause;
use sim::errno::{EIO, ENOSPC};
use sim::run::{run_cases, CaseInput, FsKind, Measured, Mount, Policies, RunError, Setting};
use sim::units::Ns;
use sim::vfs::readahead::{Asked, ReadAhead, Window};
use sim::victim::{Candidate, Greedy, Victim, Why};
use std::fmt::Write;

/// Takes the block with the most bytes to free.
#[derive(Clone, Debug)]
struct Dirtiest;

impl Victim for Dirtiest {
    fn choose(&mut self, _: Ns, _: Why, blocks: &[Candidate]) -> Option<Candidate> {
        let dirty = blocks.iter().filter(|block| block.dirty_bytes > 0);
        dirty.max_by_key(|block| block.dirty_bytes).copied()
    }
}

/// Reads this many pages from each missing one on, whatever was read before.
#[derive(Clone, Debug)]
struct Fixed {
    pages: u32,
}

impl ReadAhead for Fixed {
    fn on_miss(&mut self, asked: Asked<'_>) -> Option<Window> {
        let Asked { page, wanted, .. } = asked;
        Some(Window { start: page, pages: self.pages.max(wanted), marker: None })
    }
}

const KINDS: [FsKind; 3] = [FsKind::Jffs2, FsKind::Yaffs2, FsKind::Ubifs];

/// A partition that the files of `rewrites` fill by half, or by what UBIFS leaves free of more.
fn run(
    fs: impl Into<Mount>,
    policies: &Policies,
    (prepare, body): (&str, &str),
) -> Result<Measured, RunError> {
    let (fs, mut board) = (fs.into(), support::board("emulated"));
    board.partition.blocks = if fs.fs == FsKind::Ubifs { 96 } else { 64 };
    let kernel = support::kernel("6.1");
    let setting = Setting { policies, ..support::setting(&board, &kernel, fs, prepare) };
    let case = CaseInput { read_ahead_kib: 128, body, cuts: &[], gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0)
}

/// Four files of 1 MiB on 8 MiB, and pages of them written again, most of them in one file.
fn rewrites() -> (String, String) {
    let mut prepare = String::from("flashbed-ops 1\n");
    for file in 0..4 {
        writeln!(prepare, "open {file} f{file} rw,create").expect("a String");
        for offset in (0..1 << 20).step_by(4096) {
            writeln!(prepare, "write {file} {offset} 4096 1 0").expect("a String");
        }
        writeln!(prepare, "close {file}").expect("a String");
    }
    prepare += "sync\nprepared\n";
    let mut body = String::from("flashbed-ops 1\n");
    for file in 0..4 {
        writeln!(body, "open {file} f{file} rw").expect("a String");
    }
    body += "mark\n";
    let mut state: u64 = 1;
    for write in 0..3000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        let (file, page) = (if write % 8 < 5 { 0 } else { (state >> 40) % 4 }, (state >> 50) % 256);
        writeln!(body, "write {file} {} 4096 {write} 0", page * 4096).expect("a String");
        if write % 16 == 15 {
            writeln!(body, "fsync {file}").expect("a String");
        }
    }
    (prepare, body)
}

#[test]
fn a_victim_with_the_least_to_move_moves_less_than_the_kernels() {
    let (prepare, body) = rewrites();
    let greedy = Policies { victim: Some(Box::new(Greedy)), ..Policies::default() };
    for fs in KINDS {
        let of = |policies: &Policies| run(fs, policies, (&prepare, &body)).expect("it has space");
        let (kernels, own) = (of(Policies::KERNELS), of(&greedy));
        assert_eq!(kernels.bytes_written, own.bytes_written, "{fs:?}");
        let moved = |run: &Measured| run.causes.bytes(Cause::Collection);
        assert!(moved(&own) < moved(&kernels), "{fs:?}: {} of {}", moved(&own), moved(&kernels));
        let again = of(&greedy);
        assert_eq!(format!("{own:?}"), format!("{again:?}"), "{fs:?}");
    }
}

/// Four reads far apart miss once each: the kernel reads the page alone, or four at the file's
/// beginning.
#[test]
fn another_read_ahead_brings_in_the_pages_that_it_names() {
    let (prepare, body) =
        (support::written_file(1 << 20), support::page_reads(&[0, 100, 150, 200]));
    for fs in KINDS {
        let of =
            |policies: &Policies| run(fs, policies, (&prepare, &body)).expect("it runs").cache_adds;
        assert_eq!(of(Policies::KERNELS), 4 + 3, "{fs:?}");
        for pages in [1, 8, 32] {
            let own =
                Policies { read_ahead: Some(Box::new(Fixed { pages })), ..Policies::default() };
            assert_eq!(of(&own), 4 * u64::from(pages), "{fs:?}");
        }
    }
}

#[test]
fn a_window_is_cut_off_at_the_end_of_the_file() {
    let own = Policies { read_ahead: Some(Box::new(Fixed { pages: 1000 })), ..Policies::default() };
    let (prepare, body) = (support::written_file(40 * 4096), support::page_reads(&[30]));
    let measured = run(FsKind::Jffs2, &own, (&prepare, &body)).expect("it runs");
    assert_eq!(measured.cache_adds, 10);
}

#[test]
fn a_policy_is_refused_where_there_is_no_file_system() {
    let own = Policies { victim: Some(Box::new(Dirtiest)), ..Policies::default() };
    let empty = ("flashbed-ops 1\nprepared\n", "flashbed-ops 1\n");
    let raw = "mtd".parse::<Mount>().expect("known");
    let refused = run(raw, &own, empty).expect_err("nothing is collected");
    assert_eq!(refused.to_string(), "a policy where there is no file system is not modelled");
}

/// Takes nothing, ever.
#[derive(Clone, Debug)]
pub struct Never;

impl Victim for Never {
    fn choose(&mut self, _: Ns, _: Why, _: &[Candidate]) -> Option<Candidate> {
        None
    }
}

#[test]
fn a_collector_that_may_take_no_block_leaves_calls_without_space() {
    let (prepare, body) = rewrites();
    let never = Policies { victim: Some(Box::new(Never)), ..Policies::default() };
    for fs in KINDS {
        let measured = run(fs, &never, (&prepare, &body)).expect("the calls return");
        let full = if fs == FsKind::Jffs2 { EIO } else { ENOSPC };
        assert!(measured.requests.iter().any(|request| request.result == full), "{fs:?}");
    }
}

/// Checks what it is told of blocks of so many bytes, and chooses as `Dirtiest` does.
#[derive(Clone, Debug)]
struct Accounts {
    block_bytes: u32,
}

impl Victim for Accounts {
    fn choose(&mut self, now: Ns, why: Why, blocks: &[Candidate]) -> Option<Candidate> {
        for block in blocks {
            let bytes = block.live_bytes + block.dirty_bytes + block.free_bytes;
            assert_eq!(bytes, self.block_bytes, "{block:?}");
        }
        Dirtiest.choose(now, why, blocks)
    }
}

#[test]
fn a_policy_is_told_of_every_byte_of_a_block() {
    let (prepare, body) = rewrites();
    let block_bytes = 128 << 10;
    for fs in KINDS {
        let of_ubi = if fs == FsKind::Ubifs { 2048 } else { 0 };
        let accounts = Accounts { block_bytes: block_bytes - of_ubi };
        let accounts = Policies { victim: Some(Box::new(accounts)), ..Policies::default() };
        run(fs, &accounts, (&prepare, &body)).expect("it has space");
    }
}
