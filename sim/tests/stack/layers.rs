//! Where a call spends its time: each layer has a part of it, and measuring them changes nothing.

use crate::support;
use sim::ops::NAMES;
use sim::run::{run_cases, CaseInput, FsKind, LayerTimes, Measured, Recorded, Request, Setting};
use sim::units::Ns;
use std::fmt::Write;

const FILE_SYSTEMS: [FsKind; 3] = [FsKind::Jffs2, FsKind::Yaffs2, FsKind::Ubifs];
/// Its UBI has a price.
const BOARD: &str = "emulated-4k";

/// Writes with and without a sync, names, a truncation, reads from flash and from the page cache,
/// a sleep in which the flusher and the collectors work, and a call that fails.
fn program() -> String {
    let mut body = String::from("flashbed-ops 1\nopen 0 file.bin rw\nmark\n");
    for number in 0..400 {
        writeln!(body, "write 0 {} 4096 {number} 0", number * 7919 % 256 * 4096).expect("a String");
        if number % 16 == 0 {
            body.push_str("fsync 0\n");
        }
    }
    body.push_str("mkdir d\nopen 1 d/new wo,create\nwrite 1 0 9000 1 50\nclose 1\n");
    body.push_str("rename d/new d/old\nunlink d/old\nrmdir missing\npause 40000000000\n");
    body.push_str("truncate 0 500000\nsync\ndrop_caches\nread 0 0 65536\nread 0 0 65536\n");
    body
}

fn measured(fs: FsKind, recorded: Recorded) -> Measured {
    let (board, kernel) = (support::board(BOARD), support::kernel("6.1"));
    let prepare = support::written_file(1 << 20);
    let setting = Setting { recorded, ..support::setting(&board, &kernel, fs, &prepare) };
    let body = program();
    let case = CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0).expect("it runs")
}

fn with_layers(fs: FsKind) -> Vec<(Request, LayerTimes)> {
    let recorded = Recorded { layers: true, ..support::TRACED };
    let measured = measured(fs, recorded);
    assert_eq!(measured.requests.len(), measured.layers.len());
    measured.requests.into_iter().zip(measured.layers).collect()
}

fn name(request: &Request) -> &'static str {
    NAMES[request.op]
}

#[test]
fn layers_lie_within_each_other() {
    for fs in FILE_SYSTEMS {
        for (request, layers) in with_layers(fs) {
            if name(&request) != "pause" {
                assert!(layers.fs <= request.latency, "{fs:?}: {request:?} {layers:?}");
            }
            assert!(layers.driver + layers.ubi <= layers.fs, "{fs:?}: {request:?} {layers:?}");
            assert!(request.flash_time <= layers.driver, "{fs:?}: {request:?} {layers:?}");
        }
    }
}

#[test]
fn a_read_of_the_page_cache_reaches_no_file_system() {
    for fs in FILE_SYSTEMS {
        let calls = with_layers(fs);
        let reads: Vec<_> = calls.iter().filter(|(request, _)| name(request) == "read").collect();
        let [missed, found] = reads[..] else { panic!("two reads") };
        assert!(missed.1.driver > Ns::ZERO && missed.1.fs > missed.1.driver, "{fs:?}");
        assert_eq!(found.1, LayerTimes::default(), "{fs:?}");
        assert!(found.0.latency > Ns::ZERO);
    }
}

#[test]
fn ubi_has_a_price_a_write_and_only_ubifs_has_ubi() {
    let price = support::board(BOARD).software.ubi_write_ns;
    assert!(price > Ns::ZERO);
    for fs in FILE_SYSTEMS {
        let calls = with_layers(fs);
        assert!(calls.iter().all(|(_, layers)| layers.ubi.0 % price.0 == 0), "{fs:?}");
        let syncs = calls.iter().filter(|(request, _)| name(request) == "fsync");
        let writes: u64 = syncs.map(|(_, layers)| layers.ubi.0 / price.0).sum();
        assert_eq!(writes > 0, fs == FsKind::Ubifs, "{fs:?}");
    }
}

#[test]
fn measuring_layers_changes_nothing_else() {
    for fs in FILE_SYSTEMS {
        let layers = measured(fs, Recorded { layers: true, ..support::TRACED });
        let plain = measured(fs, support::TRACED);
        assert!(plain.layers.is_empty());
        let times = |of: &Measured| -> Vec<(Ns, Ns, Ns, i64)> {
            let row = |row: &Request| (row.start, row.latency, row.flash_time, row.result);
            of.requests.iter().map(row).collect()
        };
        assert_eq!(times(&layers), times(&plain), "{fs:?}");
        assert_eq!(layers.flash, plain.flash, "{fs:?}");
    }
}
