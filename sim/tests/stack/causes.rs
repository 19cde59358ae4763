//! Every programmed byte has one cause: the causes that file systems report add up to the right
//! sums.

use crate::support;
use sim::causes::{Cause, Causes, Held};
use sim::flash::{FlashOp, Kind};
use sim::run::{run_cases, CaseInput, FsKind, Measured, Setting};

#[test]
fn a_write_buffer_gives_what_it_was_given_in_that_order() {
    let mut held = Held::default();
    held.push(Cause::Metadata, 68);
    held.push(Cause::Data, 4096);
    held.push(Cause::Data, 4);
    let page = held.take(2048);
    assert_eq!((page.bytes(Cause::Metadata), page.bytes(Cause::Data)), (68, 1980));
    assert_eq!(held.take(2048), Causes::of(Cause::Data, 2048));
    let rest = held.take(2048);
    assert_eq!((rest.bytes(Cause::Data), rest.bytes(Cause::Padding)), (72, 1976));
    assert_eq!(rest.total(), 2048);
    assert_eq!(held.take(512), Causes::of(Cause::Padding, 512));
}

/// `writes` of 4 KiB in order, each synced, on the board with software ECC.
fn synced(fs: FsKind, writes: u64) -> Measured {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let lines: String =
        (0..writes).map(|n| format!("write 0 {} 4096 {} 0\nfsync 0\n", n * 4096, n + 1)).collect();
    let prepare = "flashbed-ops 1\nopen 0 a rw,create\nfsync 0\nclose 0\nsync\nprepared\n";
    let body = format!("flashbed-ops 1\nopen 0 a rw\nmark\n{lines}");
    let setting =
        Setting { recorded: support::TRACED, ..support::setting(&board, &kernel, fs, prepare) };
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts: &[], gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0).expect("it runs")
}

#[test]
fn data_is_what_the_program_wrote() {
    for fs in [FsKind::Jffs2, FsKind::Ubifs, FsKind::Yaffs2] {
        let causes = synced(fs, 100).causes;
        assert_eq!(causes.bytes(Cause::Data), 100 * 4096, "{fs:?}");
        // At every fsync JFFS2 moves nodes rather than pad the page (jffs2_flush_wbuf_gc).
        assert_eq!(causes.bytes(Cause::Collection) > 0, fs == FsKind::Jffs2, "{fs:?}");
        assert_eq!(causes.bytes(Cause::WearLevelling), 0, "{fs:?}");
        assert!(causes.bytes(Cause::Metadata) >= 100 * 48, "{fs:?}");
    }
}

#[test]
fn causes_add_up_to_what_was_programmed() {
    // JFFS2 programs whole pages, except for a clean marker in the OOB after each erase.
    let jffs2 = synced(FsKind::Jffs2, 100);
    let in_oob = |op: &&FlashOp| op.kind == Kind::Program && op.column >= 2048;
    let markers = jffs2.flash.iter().filter(in_oob).count() as u64;
    let pages = (jffs2.flash_programs - markers) * 2048;
    assert!((pages..=pages + markers * 64).contains(&jffs2.causes.total()));
    assert!(jffs2.causes.bytes(Cause::Padding) > 0);
    // UBI's headers are sub-pages: less than a page each.
    let ubifs = synced(FsKind::Ubifs, 100);
    assert!(ubifs.causes.total() <= ubifs.flash_programs * 2048);
    assert!(ubifs.causes.total() > ubifs.flash_programs * 2048 * 9 / 10);
}
