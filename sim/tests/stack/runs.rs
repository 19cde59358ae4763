//! Whole runs: any modelled program runs to its end, with the same result every time.

use crate::support;
use proptest::prelude::*;
use sim::flash::{FlashOp, Kind};
use sim::profile::EccKind;
use sim::run::{run_cases, CaseInput, FsKind, Recorded, Setting};
use sim::sched::Task;
use sim::units::Ns;
use std::fmt::Write;

const KINDS: [FsKind; 3] = [FsKind::Jffs2, FsKind::Yaffs2, FsKind::Ubifs];

/// A file of `kib` KiB, then reads anywhere in it and beyond its end.
fn program(kib: u64, reads: &[(u64, u64)]) -> (String, String) {
    let mut body = String::from("flashbed-ops 1\ndrop_caches\nopen 0 file.bin ro\nmark\n");
    for (offset, length) in reads {
        writeln!(body, "read 0 {offset} {length}").expect("a String");
    }
    (support::written_file(kib * 1024), body)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn reads_return_what_the_file_has_and_take_time_exactly_when_flash_is_read(
        pages in 1u64..200,
        reads in prop::collection::vec((0u64..900_000, 1u64..200_000), 1..20),
        read_ahead_kib in prop::sample::select(vec![0u32, 16, 128, 512]),
        kernel in prop::sample::select(vec!["2.6.37", "2.6.37-64bit", "3.12", "6.1"]),
        board in prop::sample::select(vec!["omap3evm", "emulated", "emulated-4k"]),
    ) {
        let (board, kernel) = (support::board(board), support::kernel(kernel));
        let file_bytes = pages * 4096;
        let (prepare, body) = program(pages * 4, &reads);
        for fs in KINDS {
            let measured = support::run(&board, &kernel, fs, &prepare, read_ahead_kib, &body);
            for (request, (offset, length)) in measured.requests.iter().zip(&reads) {
                let wanted = file_bytes.saturating_sub(*offset).min(*length);
                prop_assert_eq!(request.result, wanted as i64);
            }
            prop_assert!(measured.cache_adds <= pages, "no page comes in twice");
            prop_assert!(measured.cache_misses <= measured.cache_adds);
            prop_assert_eq!(measured.flash_programs + measured.flash_erases, 0);
            let array = board.chip.read_array_ns.0 * measured.flash_reads;
            prop_assert!(measured.time.0 >= array);
        }
    }
}

/// JFFS2's write buffer is flushed five seconds after its first byte, at a tick, even while the
/// program works without a call.
#[test]
fn a_timer_that_ends_in_the_programs_own_work_is_served_there() {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let setting = Setting {
        recorded: support::TRACED,
        ..support::setting(&board, &kernel, FsKind::Jffs2, "flashbed-ops 1\nprepared\n")
    };
    let steps = 8_000_000_000_000 / board.software.compute_step_ps; // eight seconds
    let body =
        format!("flashbed-ops 1\nmark\nopen 0 f rw,create\nwrite 0 0 100 7 0\ncompute {steps}\n");
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
    let measured = run_cases(&setting, &[case]).remove(0).expect("it runs");
    let flushed = measured.flash.last().expect("the write buffer");
    let (earliest, latest) = (Ns(5_000_000_000), Ns(5_200_000_000));
    assert!(flushed.start > earliest && flushed.start < latest, "{:?}", flushed.start);
}

#[test]
fn cases_after_one_preparation_do_not_see_each_other() {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let (prepare, body) = program(400, &[(0, 4096), (8192, 4096), (100_000, 30_000)]);
    for fs in KINDS {
        let setting = Setting {
            recorded: support::TRACED,
            ..support::setting(&board, &kernel, fs, &prepare)
        };
        let case = CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] };
        let results = run_cases(&setting, &[case, case, case]);
        let flash: Vec<_> = results.into_iter().map(|r| r.expect("it runs").flash).collect();
        assert_eq!(flash[0], flash[1]);
        assert_eq!(flash[1], flash[2]);
        assert!(!flash[0].is_empty());
    }
}

#[test]
fn tracing_changes_nothing_that_is_measured() {
    let (board, kernel) = (support::board("omap3evm"), support::kernel("2.6.37"));
    let (prepare, body) = program(400, &[(0, 4096), (200_000, 4096), (100_000, 30_000)]);
    for fs in KINDS {
        let measure = |recorded| {
            let setting = Setting { recorded, ..support::setting(&board, &kernel, fs, &prepare) };
            let case = CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] };
            run_cases(&setting, &[case]).remove(0).expect("it runs")
        };
        let traced = measure(support::TRACED);
        for less in [support::REQUESTS, Recorded::default()] {
            let plain = measure(less);
            assert_eq!(plain.requests.len(), if less.requests { 3 } else { 0 });
            assert_eq!(
                (plain.time, plain.flash_time, plain.bytes, plain.flash_reads),
                (traced.time, traced.flash_time, traced.bytes, traced.flash_reads)
            );
        }
        assert_eq!(traced.flash.len() as u64, traced.flash_reads);
    }
}

#[test]
fn a_full_partition_names_the_line_of_the_write() {
    let (mut board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    board.partition.blocks = 80;
    for fs in KINDS {
        let (prepare, body) = program(16 * 1024, &[]);
        let setting = support::setting(&board, &kernel, fs, &prepare);
        let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
        let error = run_cases(&setting, &[case]).remove(0).expect_err("16 MiB in 10 MiB");
        let text = error.to_string();
        assert!(text.starts_with("line ") && text.contains("no space"), "{fs:?}: {text}");
    }
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let prepare = "flashbed-ops 1\nsql_open a 1 fsync PRAGMA user_version\n";
    let setting = support::setting(&board, &kernel, FsKind::Jffs2, prepare);
    let case =
        CaseInput { read_ahead_kib: 0, body: "flashbed-ops 1\n", cuts: &[], gc_choices: &[] };
    let error = run_cases(&setting, &[case]).remove(0).expect_err("sql");
    assert_eq!(error.to_string(), "line 2: sql_open: sql in the simulator is not modelled");
}

/// A program of writes, syncs, reads, pauses and flushes, in which only the chip takes time.
#[test]
fn where_software_is_free_every_operation_takes_the_chips_time() {
    let kernel = support::kernel("6.1");
    let mut body = support::page_reads(&[3, 4, 90, 5]);
    body += "open 1 new rw,create\npause 6000000000\n";
    for offset in (0..40).map(|page| page * 4096) {
        writeln!(body, "write 1 {offset} 4096 1 0").expect("a String");
    }
    body += "fsync 1\nwrite 1 0 4096 1 0\npause 40000000000\nsync\ndrop_caches\nread 1 0 9000\n";
    for name in ["omap3evm", "emulated", "emulated-4k"] {
        let mut board = support::board(name);
        board.software = support::free_software();
        for fs in KINDS {
            let prepare = support::written_file(100 * 4096);
            let measured = support::run(&board, &kernel, fs, &prepare, 128, &body);
            for request in &measured.requests {
                if request.op != sim::ops::PAUSE {
                    assert_eq!(request.flash_time, request.latency, "{name} {fs:?} {request:?}");
                }
            }
            assert_eq!(measured.flash_time, measured.time);
            assert!(measured.time > Ns::ZERO);
            let all: Ns = measured.requests.iter().map(|request| request.flash_time).sum();
            assert!(all > measured.flash_time, "{fs:?} works in the pauses");
        }
    }
}

#[test]
fn software_takes_time_that_the_chip_does_not() {
    let (board, kernel) = (support::board("omap3evm"), support::kernel("2.6.37"));
    let (prepare, body) = program(400, &[(0, 4096)]);
    let measured = support::run(&board, &kernel, FsKind::Yaffs2, &prepare, 0, &body);
    assert_eq!(measured.flash_time, Ns(2 * 130_000), "two chunks");
    assert!(measured.time > measured.flash_time);
}

/// Blocks from 16 KiB to 4 MiB, each kind of ECC: a program reads what it wrote, and the chip's
/// rules hold.
#[test]
fn every_file_system_runs_on_every_chip_it_can_be_on() {
    use EccKind::{HardwarePage, NoEcc, SoftwareSubpage};
    let kernel = support::kernel("6.1");
    for (page_bytes, oob_bytes, pages_per_block, kind, step_bytes) in [
        (512, 16, 32, SoftwareSubpage, 256),
        (512, 16, 64, NoEcc, 512),
        (1024, 32, 64, HardwarePage, 512),
        (2048, 64, 64, NoEcc, 2048),
        (4096, 128, 64, SoftwareSubpage, 256),
        (4096, 224, 64, NoEcc, 4096),
        (8192, 640, 128, HardwarePage, 1024),
        (16384, 1280, 256, HardwarePage, 1024),
    ] {
        let mut board = support::board("emulated-4k");
        (board.chip.page_bytes, board.chip.oob_bytes) = (page_bytes, oob_bytes);
        board.chip.pages_per_block = pages_per_block;
        (board.ecc.kind, board.ecc.step_bytes) = (kind, step_bytes);
        let mut body = support::page_reads(&[0, 1, 2, 250, 7, 255]);
        body += "open 1 new rw,create\nwrite 1 0 9000 1 0\nfsync 1\nwrite 1 9000 4096 1 0\nsync\n";
        body += "write 0 4096 4096 1 0\n";
        let body = body.replace("open 0 file.bin ro", "open 0 file.bin rw");
        for fs in KINDS {
            let chip = format!("{fs:?} on {page_bytes} * {pages_per_block}, {kind:?}");
            let case = CaseInput { read_ahead_kib: 16, body: &body, cuts: &[], gc_choices: &[] };
            let prepare = support::written_file(1 << 20);
            let setting = Setting {
                recorded: support::TRACED,
                ..support::setting(&board, &kernel, fs, &prepare)
            };
            let result = run_cases(&setting, &[case]).remove(0);
            if fs == FsKind::Yaffs2 && !(2048..=4096).contains(&page_bytes) {
                let refusal = result.expect_err("no chunk of this size").to_string();
                assert!(refusal.contains("yaffs2 on flash pages"), "{chip}: {refusal}");
                continue;
            }
            let measured = result.unwrap_or_else(|error| panic!("{chip}: {error}"));
            let results: Vec<i64> = measured.requests.iter().map(|r| r.result).collect();
            let mut wanted = vec![4096; 6];
            wanted.extend([0, 9000, 0, 4096, 0, 4096]);
            assert_eq!(results, wanted, "{chip}");
            assert!(measured.flash_programs > 0 && measured.flash_reads > 0, "{chip}");
            let whole = |op: &&FlashOp| op.kind == Kind::Program;
            let programs: Vec<_> = measured.flash.iter().filter(whole).collect();
            assert!(programs.iter().all(|op| (op.column, op.length) == (0, page_bytes)), "{chip}");
        }
    }
}

#[test]
fn blocks_too_small_for_ubifs_are_refused() {
    let (mut board, kernel) = (support::board("emulated-4k"), support::kernel("6.1"));
    (board.chip.page_bytes, board.chip.oob_bytes, board.chip.pages_per_block) = (1024, 32, 16);
    let setting = support::setting(&board, &kernel, FsKind::Ubifs, "");
    let case =
        CaseInput { read_ahead_kib: 0, body: "flashbed-ops 1\n", cuts: &[], gc_choices: &[] };
    let refusal = run_cases(&setting, &[case]).remove(0).expect_err("too small").to_string();
    assert_eq!(
        refusal,
        "UBIFS needs LEBs of at least 15360 bytes; on these blocks they have 14336"
    );
}

#[test]
fn what_a_program_does_wrong_is_answered_as_linux_answers_it() {
    const STEPS: [(&str, i64); 14] = [
        ("mkdir d", 0),
        ("open 0 f rw,create", 0),
        ("close 0", 0),
        ("open 0 nothing ro", -2),
        ("read 0 0 1", -9),
        ("close 0", -9),
        ("open 0 nothing/x ro", -2),
        ("open 1 f/x ro", -20),
        ("open 2 f/x/y rw,create", -20),
        ("open 3 d rw", -21),
        ("open 4 d ro,create", -21),
        ("open 5 d ro,trunc", -21),
        ("open 6 d ro", 0),
        ("read 6 0 1", -21),
    ];
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let mut body = String::from("flashbed-ops 1\n");
    for (step, _) in STEPS {
        writeln!(body, "{step}").expect("a String");
    }
    for fs in [FsKind::Jffs2, FsKind::Ubifs] {
        let measured = support::run(&board, &kernel, fs, "flashbed-ops 1\nprepared\n", 0, &body);
        let results = measured.requests.iter().map(|request| request.result);
        assert!(results.eq(STEPS.iter().map(|(_, expected)| *expected)), "{fs:?}");
    }
}

/// Removing a file calls cond_resched() after each batch of pages (truncate_inode_pages_range). The
/// collector, which is woken when enough blocks are very dirty, therefore starts within a removal
/// and not after it.
#[test]
fn the_collector_is_let_in_while_a_files_pages_go() {
    let (mut board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    board.partition.blocks = 64;
    board.software.page_drop_ns = Ns(500_000);
    let mut prepare = String::from("flashbed-ops 1\n");
    let mut body = String::from("flashbed-ops 1\nmark\n");
    for file in 0..24 {
        for (name, bytes) in [("removed", 100 * 1024), ("kept", 20 * 1024)] {
            writeln!(
                prepare,
                "open 0 {name}-{file} rw,create\nwrite 0 0 {bytes} {file} 0\nclose 0"
            )
            .expect("a String");
        }
        writeln!(body, "unlink removed-{file}").expect("a String");
    }
    prepare += "sync\npause 10000000000\nprepared\n";
    let setting = Setting {
        recorded: support::TRACED,
        ..support::setting(&board, &kernel, FsKind::Jffs2, &prepare)
    };
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
    let measured = run_cases(&setting, &[case]).remove(0).expect("it runs");
    let first = measured.flash.iter().find(|op| op.task == Task::Jffs2Thread);
    let first = first.expect("there is something to collect").start;
    let within = measured.requests.iter().find(|r| r.start < first && first < r.start + r.latency);
    let within = within.expect("not between two calls");
    let since = first - within.start;
    assert!(
        since > Ns(1_000_000) && since + Ns(2_000_000) < within.latency,
        "{since:?}: {within:?}"
    );
}

/// Times of calls, in order, with one price of 1,000 ns and no other.
fn priced(set: impl Fn(&mut sim::profile::SoftwareCosts), body: &str) -> Vec<u64> {
    let kernel = support::kernel("6.1");
    let mut board = support::board("emulated");
    board.software = support::free_software();
    set(&mut board.software);
    let prepare = "flashbed-ops 2\nmkdir way\nmkdir way/to\nopen 0 way/to/it rw,create\n\
                   write 0 0 40000 1 0\nclose 0\nopen 0 way/to/other rw,create\nclose 0\nsync\n\
                   pause 60000000000\nprepared\n";
    let body = format!(
        "flashbed-ops 2\nstat way/to/it\nopen 1 way/to/it ro\nread 1 0 40000\n\
                        open 2 way/to ro,directory\nmark\n{body}"
    );
    let setting = support::setting(&board, &kernel, FsKind::Jffs2, prepare);
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
    let measured = run_cases(&setting, &[case]).remove(0).expect("it runs");
    measured.requests.iter().map(|request| request.latency.0).collect()
}

#[test]
fn calls_about_names_and_mappings_cost_what_they_walk_list_and_map() {
    let unit = Ns(1000);
    let stats = "stat way/to/it\nstat way/none\nreadlink way\nchmod way 448\n";
    assert_eq!(priced(|costs| costs.path_ns = unit, stats), [1000; 4]);
    assert_eq!(priced(|costs| costs.path_folder_ns = unit, stats), [2000, 1000, 0, 0]);
    assert_eq!(priced(|costs| costs.stat_ns = unit, stats), [1000, 0, 0, 0]);
    assert_eq!(priced(|costs| costs.attribute_ns = unit, stats), [0, 0, 0, 1000]);
    assert_eq!(priced(|costs| costs.list_ns = unit, "readdir 2\n"), [1000]);
    assert_eq!(priced(|costs| costs.jffs2_listed_ns = unit, "readdir 2\n"), [2000]);
    assert_eq!(priced(|costs| costs.close_ns = unit, "close 2\n"), [1000]);
    // ten pages of 4 KiB, all of them cached
    let mapped = "mmap 0 1 0 40000 ro\ntouch 0 5000 1\ntouch 0 0 40000\nmunmap 0\n";
    assert_eq!(priced(|costs| costs.map_ns = unit, mapped), [1000, 0, 0, 0]);
    assert_eq!(priced(|costs| costs.fault_ns = unit, mapped), [0, 1000, 0, 0]);
    assert_eq!(priced(|costs| costs.fault_page_ns = unit, mapped), [0, 9000, 0, 0]);
    assert_eq!(priced(|costs| costs.unmap_ns = unit, mapped), [0, 0, 0, 1000]);
    assert_eq!(priced(|costs| costs.unmap_page_ns = unit, mapped), [0, 0, 0, 10_000]);
}

/// The program makes the bytes before the call: those of pieces, not the zeroes behind them.
#[test]
fn a_program_takes_time_for_the_bytes_that_it_makes() {
    let start_of_last = |fill: &str| {
        let (mut board, kernel) = (support::board("emulated"), support::kernel("6.1"));
        board.software = support::free_software();
        board.software.fill_byte_ps = 1_000_000;
        let body = format!("flashbed-ops 2\nopen 0 new rw,create\nmark\nwrite 0 0 4096 1 {fill}\n");
        let measured =
            support::run(&board, &kernel, FsKind::Ubifs, "flashbed-ops 2\nprepared\n", 0, &body);
        measured.requests.last().expect("the write").start.0
    };
    let none = start_of_last("0+0");
    assert_eq!(start_of_last("0") - none, 4_096_000);
    assert_eq!(start_of_last("100+7") - none, 107_000);
    assert_eq!(start_of_last("100+7t50") - none, 107_000);
}
