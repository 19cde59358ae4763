//! What calls wait for: the parts of each call add up to its latency, on new and on full
//! partitions.

use crate::support;
use sim::ops::NAMES;
use sim::run::{run_cases, CaseInput, FsKind, Measured, Recorded, Request, Setting};
use sim::units::Ns;
use sim::waits::{Wait, Waits};
use std::fmt::Write;

const FILE_SYSTEMS: [FsKind; 3] = [FsKind::Jffs2, FsKind::Yaffs2, FsKind::Ubifs];
const WAITS: [Wait; 6] = [
    Wait::WriteBack,
    Wait::ReadAhead,
    Wait::Commit,
    Wait::Collection,
    Wait::WearLevelling,
    Wait::Erase,
];

/// Overwrites a file in a random order until garbage collection has begun, syncs now and then, and
/// reads it in order.
fn program(file_bytes: u64, writes: u64) -> String {
    let mut body = String::from("flashbed-ops 1\nopen 0 file.bin rw\nmark\n");
    for number in 0..writes {
        let offset = number * 7919 % (file_bytes / 4096) * 4096;
        writeln!(body, "write 0 {offset} 4096 {number} 0").expect("a String");
        if number % 16 == 0 {
            body.push_str("fsync 0\n");
        }
        if number % 256 == 0 {
            body.push_str("pause 7000000000\n");
        }
    }
    body.push_str("sync\ndrop_caches\nread 0 0 4096\nread 0 4096 4096\nread 0 524288 65536\n");
    body
}

fn measured(fs: FsKind, file_bytes: u64, writes: u64, recorded: Recorded) -> Measured {
    let mut board = support::board("emulated");
    board.partition.blocks = 120;
    let kernel = support::kernel("6.1");
    let prepare = support::written_file(file_bytes);
    let setting = Setting { recorded, ..support::setting(&board, &kernel, fs, &prepare) };
    let body = program(file_bytes, writes);
    let case = CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0).expect("it runs")
}

fn with_waits(fs: FsKind, file_bytes: u64, writes: u64) -> Vec<(Request, Waits)> {
    let recorded = Recorded { waits: true, ..support::REQUESTS };
    let measured = measured(fs, file_bytes, writes, recorded);
    assert_eq!(measured.requests.len(), measured.waits.len());
    measured.requests.into_iter().zip(measured.waits).collect()
}

fn sum(calls: &[(Request, Waits)], op: &str, wait: Wait) -> Ns {
    let of_op = calls.iter().filter(|(request, _)| NAMES[request.op] == op);
    of_op.fold(Ns::ZERO, |sum, (_, waits)| sum + waits.of(wait))
}

#[test]
fn the_parts_of_a_call_add_up_to_its_latency() {
    for fs in FILE_SYSTEMS {
        for (file_bytes, writes) in [(1 << 20, 400), (5 << 20, 3000)] {
            for (request, waits) in with_waits(fs, file_bytes, writes) {
                let parts = waits.times().iter().fold(Ns::ZERO, |sum, &time| sum + time);
                assert_eq!(parts, request.latency, "{fs:?}: {request:?} {waits:?}");
                assert!(waits.chip() <= waits.of(Wait::Call), "{fs:?}: {request:?} {waits:?}");
            }
        }
    }
}

#[test]
fn a_full_partition_collects_more_than_a_new_one() {
    for fs in FILE_SYSTEMS {
        let (new, full) = (with_waits(fs, 1 << 20, 400), with_waits(fs, 5 << 20, 3000));
        let collection = |calls: &[(Request, Waits)]| {
            let each = calls.iter().map(|(_, waits)| waits.of(Wait::Collection));
            each.fold(Ns::ZERO, |sum, time| sum + time)
        };
        assert!(collection(&full) > collection(&new) * 10, "{fs:?}");
    }
}

#[test]
fn each_cause_is_where_it_belongs() {
    for fs in FILE_SYSTEMS {
        let calls = with_waits(fs, 5 << 20, 3000);
        let write_back = sum(&calls, "fsync", Wait::WriteBack);
        assert_eq!(write_back > Ns::ZERO, fs == FsKind::Ubifs, "{fs:?}: others write through");
        assert!(sum(&calls, "read", Wait::ReadAhead) > Ns::ZERO, "{fs:?}");
        let commits = calls.iter().any(|(_, waits)| waits.of(Wait::Commit) > Ns::ZERO);
        assert_eq!(commits, fs == FsKind::Ubifs, "{fs:?}");
        for wait in WAITS {
            let reads = calls.iter().filter(|(request, _)| NAMES[request.op] == "drop_caches");
            assert!(reads.into_iter().all(|(_, waits)| waits.of(wait) == Ns::ZERO), "{fs:?}");
        }
    }
}

#[test]
fn recording_waits_changes_nothing_else() {
    for fs in FILE_SYSTEMS {
        let recorded = Recorded { waits: true, ..support::TRACED };
        let (with, plain) =
            (measured(fs, 5 << 20, 1000, recorded), measured(fs, 5 << 20, 1000, support::TRACED));
        assert!(plain.waits.is_empty());
        let times = |of: &Measured| -> Vec<(Ns, Ns, Ns, i64)> {
            let row = |row: &Request| (row.start, row.latency, row.flash_time, row.result);
            of.requests.iter().map(row).collect()
        };
        assert_eq!(times(&with), times(&plain), "{fs:?}");
        assert_eq!(with.flash, plain.flash, "{fs:?}");
    }
}
