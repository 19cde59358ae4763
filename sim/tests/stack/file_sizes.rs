//! No file grows beyond its file system's limit (s_maxbytes), wherever a program writes.

use crate::support;
use sim::errno::EFBIG;
use sim::run::{run_cases, CaseInput, FsKind, Measured, RunError, Setting};

const UBIFS_BYTES: u64 = 1 << 41;
/// The limit in chunks of 2 KiB.
const YAFFS2_BYTES: u64 = ((1 << 28) - 1) * 2048;

fn run(fs: FsKind, body: &str) -> Result<Measured, RunError> {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let body = format!("flashbed-ops 1\nopen 0 a rw,create\n{body}\n");
    let prepare = "flashbed-ops 1\nprepared\n";
    let setting =
        Setting { recorded: support::TRACED, ..support::setting(&board, &kernel, fs, prepare) };
    let case = CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0)
}

fn results(fs: FsKind, body: &str) -> Vec<i64> {
    let measured = run(fs, body).unwrap_or_else(|error| panic!("{fs:?}: {error}"));
    measured.requests.iter().skip(1).map(|request| request.result).collect()
}

const ALL: [FsKind; 3] = [FsKind::Jffs2, FsKind::Yaffs2, FsKind::Ubifs];

#[test]
fn nothing_is_written_beyond_the_largest_file() {
    for fs in ALL {
        for offset in [1_u64 << 62, 1 << 44, (1 << 63) - 2] {
            let got = results(fs, &format!("write 0 {offset} 1 1 0\nread 0 {offset} 1\nclose 0"));
            assert_eq!(got, [EFBIG, 0, 0], "{fs:?} at {offset}");
        }
    }
}

#[test]
fn no_file_is_truncated_to_more_than_the_largest() {
    for fs in ALL {
        for length in [(1_u64 << 63) - 1, 1 << 44] {
            let got = results(fs, &format!("truncate 0 {length}\nread 0 0 4096\nclose 0"));
            assert_eq!(got, [EFBIG, 0, 0], "{fs:?} to {length}");
        }
    }
}

#[test]
fn the_largest_file_can_be_written_to_its_end_and_read_there() {
    for (fs, max) in [(FsKind::Yaffs2, YAFFS2_BYTES), (FsKind::Ubifs, UBIFS_BYTES)] {
        let (last, tail) = (max - 100, max - 4096);
        let body = format!(
            "truncate 0 {max}\ntruncate 0 {}\nwrite 0 {last} 4096 1 0\nwrite 0 {max} 1 1 0\n\
             fsync 0\ndrop_caches\nread 0 {tail} 8192\nread 0 0 4096\ntruncate 0 1\nclose 0",
            max + 1,
        );
        let want = [0, EFBIG, 100, EFBIG, 0, 0, 4096, 4096, 0, 0];
        assert_eq!(results(fs, &body), want, "{fs:?}");
    }
}

/// The last page of JFFS2's 4 GiB ends where 32 bits wrap around, and is refused by name.
#[test]
fn a_file_of_jffs2_ends_before_its_last_page() {
    let last = (1_u64 << 32) - 4096;
    let got = results(FsKind::Jffs2, &format!("write 0 {} 100 1 0\nfsync 0\nclose 0", last - 100));
    assert_eq!(got, [100, 0, 0]);
    for body in [format!("write 0 {last} 1 1 0"), format!("truncate 0 {}", last + 1)] {
        let error = run(FsKind::Jffs2, &body).expect_err("refused").to_string();
        assert!(error.ends_with("of JFFS2 is not modelled"), "{error}");
    }
    assert_eq!(results(FsKind::Jffs2, &format!("write 0 {} 1 1 0", u32::MAX)), [EFBIG]);
}

/// Times are sums in 64 bits.
#[test]
fn a_machine_runs_for_31_years_at_most() {
    let pauses = "pause 1000000000000000\n".repeat(2000);
    let error = run(FsKind::Jffs2, &format!("close 0\n{pauses}")).expect_err("refused").to_string();
    assert!(error.ends_with("runs for more than 31 years is not modelled"), "{error}");
}
