//! Any program of valid operations, on any file system, gives results or is refused. Nothing
//! overflows or panics.

use crate::support;
use proptest::prelude::*;
use sim::block::Disk;
use sim::mtd::Access;
use sim::run::{run_cases, CaseInput, FsKind, Mount, Setting};

/// Values at which sizes and sums overflow a width, and values near them.
fn number() -> impl Strategy<Value = u64> {
    let edges = vec![0_u64, 1, 4096, 1 << 20, 1 << 31, 1 << 32, 1 << 41, 1 << 43, 1 << 44, 1 << 62];
    let edge = prop::sample::select(edges);
    let near = (edge, 0..10_000_u64, any::<bool>());
    let number = near.prop_map(|(edge, by, is_before)| match is_before {
        true => edge.saturating_sub(by),
        false => edge + by,
    });
    prop_oneof![2 => 0..200_000_u64, 1 => number]
}

fn operation() -> impl Strategy<Value = String> {
    let slot = 0..2_usize;
    let length = prop_oneof![8 => 1..9000_u64, 1 => Just(1 << 20)];
    let path = || prop::sample::select(vec!["a", "b", "d", "d/a"]);
    let time = prop_oneof![3 => 0..10_000_000_000_u64, 1 => Just(1_000_000_000_000_000)];
    let advice =
        prop::sample::select(vec!["normal", "random", "sequential", "willneed", "dontneed"]);
    let flat = vec!["sync", "drop_caches", "mkdir d", "rmdir d", "compute 100000"];
    prop_oneof![
        6 => (slot.clone(), number(), length.clone(), 0..100_u8)
            .prop_map(|(slot, at, length, packs)| format!("write {slot} {at} {length} 1 {packs}")),
        4 => (slot.clone(), number(), length)
            .prop_map(|(slot, at, bytes)| format!("read {slot} {at} {bytes}")),
        2 => (slot.clone(), number())
            .prop_map(|(slot, length)| format!("truncate {slot} {length}")),
        1 => (slot.clone(), number(), number(), advice)
            .prop_map(|(slot, at, bytes, advice)| format!("fadvise {slot} {at} {bytes} {advice}")),
        1 => slot.clone().prop_map(|slot| format!("fsync {slot}")),
        1 => slot.prop_map(|slot| format!("fdatasync {slot}")),
        1 => path().prop_map(|path| format!("unlink {path}")),
        1 => (path(), path()).prop_map(|(old, new)| format!("rename {old} {new}")),
        1 => time.prop_map(|ns| format!("pause {ns}")),
        2 => prop::sample::select(flat).prop_map(str::to_owned),
    ]
}

fn program(fs: impl Into<Mount>, operations: &[String], append: bool) -> Result<(), TestCaseError> {
    let fs = fs.into();
    let (mut board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    board.partition.blocks = 80; // 10 MiB: some programs fill it
    let (file, how) = match fs.fs {
        FsKind::Mtd(_) => (["partition"; 2], "rw,create"),
        FsKind::Disk(Disk::MtdBlock) => (["partition"; 2], "rw,create,direct"),
        _ => (["a", "b"], "rw,create"),
    };
    let flags = if append { ",append" } else { "" };
    let mut body =
        format!("flashbed-ops 1\nopen 0 {} {how}{flags}\nopen 1 {} {how}\n", file[0], file[1]);
    for operation in operations {
        body += operation;
        body.push('\n');
    }
    body += "close 0\nclose 1\nremount\n";
    let prepare = "flashbed-ops 1\nprepared\n";
    let setting =
        Setting { recorded: support::TRACED, ..support::setting(&board, &kernel, fs, prepare) };
    let case = CaseInput { read_ahead_kib: 128, body: &body, cuts: &[], gc_choices: &[] };
    match run_cases(&setting, &[case]).remove(0) {
        Ok(measured) => prop_assert!(measured.requests.len() >= operations.len()),
        Err(error) => prop_assert!(error.to_string().ends_with("not modelled"), "{error}"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 32,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_program_gives_results_or_is_refused_by_name(
        operations in prop::collection::vec(operation(), 1..40),
        append in any::<bool>(),
    ) {
        for fs in [
            FsKind::Jffs2,
            FsKind::Yaffs2,
            FsKind::Ubifs,
            FsKind::Mtd(Access::Device),
            FsKind::Disk(Disk::MtdBlock),
        ] {
            program(fs, &operations, append)?;
        }
        let in_bulk: Mount = "ubifs,bulk_read".parse().expect("modelled");
        program(in_bulk, &operations, append)?;
    }
}
