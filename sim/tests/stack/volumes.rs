//! Several volumes on a UBI device, and a layer of overlayfs over the program's.

use crate::support;
use sim::run::{run_cases, CaseInput, FsKind, KernelProfile, Measured, RunError};
use sim::ubi::{Volume, Volumes};

/// Two roots, of which one has an image, and the program's volume after them.
fn two_slots(kernel: &mut KernelProfile, image_bytes: u64) {
    let slot = |image_bytes| Volume { bytes: 3_000_000, lebs_min: 0, image_bytes };
    let volumes = vec![slot(image_bytes), slot(0), Volume::default()];
    kernel.volumes = Volumes { volumes, program: 2, ..Volumes::default() };
}

fn run(
    change: impl FnOnce(&mut KernelProfile),
    body: &str,
    cuts: &[u64],
) -> Result<Measured, RunError> {
    let board = support::board("emulated");
    let mut kernel = support::kernel("6.1");
    change(&mut kernel);
    let prepare = "flashbed-ops 1\nprepared\n";
    let body = format!("flashbed-ops 1\n{body}\n");
    let setting = support::setting(&board, &kernel, FsKind::Ubifs, prepare);
    let case = CaseInput { read_ahead_kib: 0, body: &body, cuts, gc_choices: &[] };
    run_cases(&setting, &[case]).remove(0)
}

fn free(measured: &Measured) -> u64 {
    measured.fresh.bytes.expect("known of UBIFS")
}

const LOGGER: &str = "open 0 a rw,create\nmark\nwrite 0 0 5000 1 0\nfsync 0\nrename a b\nsync";

#[test]
fn other_volumes_leave_the_program_less_space_and_the_same_calls() {
    let alone = run(|_| {}, LOGGER, &[]).expect("runs");
    let beside = run(|kernel| two_slots(kernel, 3_000_000), LOGGER, &[]).expect("runs");
    assert_eq!(alone.flash_programs, beside.flash_programs);
    let lost = free(&alone) - free(&beside);
    assert!(lost > 5_000_000, "{lost}");
}

#[test]
fn power_cuts_leave_the_other_volumes_mapped() {
    let cuts: Vec<u64> = (1..9).collect();
    let measured = run(|kernel| two_slots(kernel, 2_000_000), LOGGER, &cuts).expect("runs");
    assert_eq!(measured.surveys.len(), cuts.len());
}

#[test]
fn power_cuts_while_fastmaps_are_written_leave_all_volumes_mapped() {
    let churn: String = (0..40)
        .map(|round| {
            format!("open 1 b rw,create,trunc\nwrite 1 0 400000 {round} 0\nfsync 1\nclose 1\n")
        })
        .collect();
    let fastmap = |kernel: &mut KernelProfile| {
        two_slots(kernel, 2_000_000);
        kernel.volumes.fastmap = true;
    };
    let body = format!("mark\n{churn}sync");
    let without = run(|kernel| two_slots(kernel, 2_000_000), &body, &[]).expect("runs");
    let whole = run(fastmap, &body, &[]).expect("runs");
    let (before, having) = (without.flash_programs, whole.flash_programs);
    assert!(having > before + 3 * 63, "fastmaps are written: {before} and {having} pages");
    let changes = whole.requests.last().expect("a call").changes;
    let cuts: Vec<u64> = (0..60).map(|number| 1 + number * changes / 60).collect();
    let measured = run(fastmap, &body, &cuts).expect("runs");
    assert_eq!(measured.surveys.len(), cuts.len());
    assert!(measured.surveys.iter().all(|survey| survey.mount_result == 0));
}

#[test]
fn volumes_that_are_larger_than_the_partition_are_refused() {
    let large = Volume { bytes: 1 << 30, ..Volume::default() };
    let change = |kernel: &mut KernelProfile| {
        let volumes = vec![large, Volume::default()];
        kernel.volumes = Volumes { volumes, program: 1, ..Volumes::default() };
    };
    let refused = run(change, "mark\nsync", &[]).expect_err("too large").to_string();
    assert!(refused.starts_with("volume 0 of UBI takes"), "{refused}");
}

#[test]
fn a_layer_passes_calls_on_and_refuses_what_it_leaves_out() {
    let layer = |kernel: &mut KernelProfile| {
        two_slots(kernel, 3_000_000);
        kernel.overlay = true;
    };
    let direct = run(|kernel| two_slots(kernel, 3_000_000), LOGGER, &[]).expect("runs");
    let layered = run(layer, LOGGER, &[]).expect("runs");
    assert_eq!(direct.flash_programs, layered.flash_programs);
    let moved = "mkdir a\nmkdir a/b\nsync\nmark\nrename a/b c\nsync";
    let direct = run(|kernel| two_slots(kernel, 3_000_000), moved, &[]).expect("runs");
    let marked = run(layer, moved, &[]).expect("runs");
    assert!(marked.flash_programs >= direct.flash_programs, "the mark of a directory moved up");
    let cut = run(layer, LOGGER, &[1]).expect_err("left out").to_string();
    assert!(cut.contains("a power cut below a layer of overlayfs"), "{cut}");
}
