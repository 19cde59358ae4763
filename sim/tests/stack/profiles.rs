//! The reader of profiles takes any JSON without a panic: it accepts it, or refuses it with a
//! message.

use crate::support;
use proptest::prelude::*;
use sim::profile::BoardProfile;
use sim::run::{KernelProfile, Mount};

/// JSON values that replace a value in a board or kernel.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        "\\PC{0,20}".prop_map(Into::into),
        prop::sample::select(vec!["jffs2", "hardware-page", "bytes", "zlib", "lzo-2.02"])
            .prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[a-z_]{1,12}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The number of values in a JSON value, itself included.
fn count(given: &serde_json::Value) -> usize {
    let below: usize = match given {
        serde_json::Value::Object(map) => map.values().map(count).sum(),
        serde_json::Value::Array(list) => list.iter().map(count).sum(),
        _ => 0,
    };
    below + 1
}

/// Replaces the `at`-th value by another.
fn bend(given: &mut serde_json::Value, at: &mut usize, new: &serde_json::Value) {
    if *at == 0 {
        *given = new.clone();
    }
    *at = at.wrapping_sub(1);
    match given {
        serde_json::Value::Object(map) => map.values_mut().for_each(|value| bend(value, at, new)),
        serde_json::Value::Array(list) => list.iter_mut().for_each(|value| bend(value, at, new)),
        _ => {}
    }
}

fn bent(mut values: serde_json::Value, at: usize, new: &serde_json::Value) -> String {
    let mut at = at % count(&values);
    bend(&mut values, &mut at, new);
    values.to_string()
}

fn read(text: &str) -> Result<(), TestCaseError> {
    let board = serde_json::from_str::<BoardProfile>(text).map(|_| ());
    let kernel = serde_json::from_str::<KernelProfile>(text).map(|_| ());
    for error in [board, kernel].into_iter().filter_map(Result::err) {
        prop_assert!(!error.to_string().is_empty());
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_text_is_no_profile_or_one(text in "\\PC{0,400}") {
        read(&text)?;
    }

    #[test]
    fn a_profile_with_one_other_value_is_read_or_refused(at in any::<usize>(), new in value()) {
        read(&bent(support::values("emulated", &support::OF_BOARD), at, &new))?;
        read(&bent(support::values("kernels/6.1", &support::OF_KERNEL), at, &new))?;
    }

    #[test]
    fn a_profile_that_is_cut_is_refused(at in any::<prop::sample::Index>()) {
        let text = support::values("emulated", &support::OF_BOARD).to_string();
        let at = at.index(text.len());
        prop_assert!(serde_json::from_str::<BoardProfile>(&text[..at]).is_err());
    }

    #[test]
    fn any_word_is_a_file_system_or_none(
        word in "(jffs2|ubifs|yaffs2|mtd|,|bulk_read|compr=|zlib|[a-z]{0,3}){0,6}"
    ) {
        if let Err(why) = word.parse::<Mount>() {
            prop_assert!(!why.to_string().is_empty());
        }
    }
}

/// The playground panicked at a page of 0 bytes, and at 10^9 pages in a block.
#[test]
fn a_chip_that_cannot_be_is_refused() {
    assert_eq!(support::board("emulated").check(), Ok(()));
    for (key, values) in [
        ("page_bytes", [0_u64, 3000, 1_000_000_000]),
        ("oob_bytes", [0, 4096, 1_000_000_000]),
        ("pages_per_block", [0, 3, 1_000_000_000]),
        ("blocks", [0, 65_537, 1_000_000_000]),
        ("erase_array_ns", [0, 1_000_000_001, 4_000_000_000]),
    ] {
        for value in values {
            let mut text = support::values("emulated", &support::OF_BOARD);
            text["chip"][key] = value.into();
            let board: BoardProfile = serde_json::from_value(text).expect("a profile's keys");
            assert!(board.check().is_err(), "{key} = {value}");
        }
    }
}

/// The playground had these checks a second time, and Python a third.
#[test]
fn a_partition_and_an_ecc_that_cannot_be_are_refused_with_the_key() {
    for (tables, why) in [
        (vec![("partition", "first_block", 2000)], "partition.blocks: the partition ends at block"),
        (vec![("ecc", "step_bytes", 500)], "ecc.step_bytes: a page of 2048 bytes is not whole"),
        (vec![("ecc", "step_bytes", 0)], "ecc.step_bytes: a page of 2048 bytes is not whole"),
        (vec![("chip", "oob_bytes", 16)], "chip.oob_bytes: 16 bytes have room for 6 of software"),
    ] {
        let mut text = support::values("emulated", &support::OF_BOARD);
        text["ecc"] = serde_json::json!({
            "kind": "software-subpage", "step_bytes": 256, "strength_bits": 1
        });
        for (table, key, value) in tables {
            text[table][key] = value.into();
        }
        let board: BoardProfile = serde_json::from_value(text).expect("a profile's keys");
        let refused = board.check().expect_err(why);
        assert!(refused.starts_with(why), "{refused}");
    }
}
