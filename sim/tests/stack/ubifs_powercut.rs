//! After a power cut everything synced exists, and nothing that was never written.

use crate::support::powercut::{step, survives, survives_on};
use proptest::prelude::*;
use sim::run::FsKind;
use sim::ubi::Volumes;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_was_synced_survives_a_cut_in_any_change(
        steps in proptest::collection::vec(step(), 1..25),
        at in proptest::collection::vec(0.0..1.0, 4),
    ) {
        survives(FsKind::Ubifs, &steps, &at)?;
    }

    #[test]
    fn so_it_does_on_a_kernel_with_fastmaps(
        steps in proptest::collection::vec(step(), 1..25),
        at in proptest::collection::vec(0.0..1.0, 4),
    ) {
        let volumes = Volumes { fastmap: true, ..Volumes::default() };
        survives_on(FsKind::Ubifs, &volumes, &steps, &at)?;
    }
}
