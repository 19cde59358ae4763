//! The reader of operations takes anything without falling over.

use proptest::prelude::*;
use sim::ops::{canonical, parse};

/// A word of an operation, or something like one.
const WORD: &str = concat!(
    "(open|read|write|close|mark|prepared|fadvise|sql|truncate|0|1|63|64|4096|-1|007|a/b|",
    "\\.\\.|rw,create|ro|normal|9223372036854775807|)"
);

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_a_line(text in "\\PC{0,400}") {
        if let Err(error) = parse(&format!("flashbed-ops 1\n{text}")) {
            prop_assert!(error.line >= 2 && error.detail.chars().count() <= 120);
        }
    }

    #[test]
    fn anything_like_an_operation_is_read_or_refused(
        words in prop::collection::vec(WORD, 0..40),
        breaks in prop::collection::vec(prop::bool::ANY, 40),
    ) {
        let mut text = String::from("flashbed-ops 1\n");
        for (word, line_ends) in words.iter().zip(breaks) {
            text.push_str(word);
            text.push(if line_ends { '\n' } else { ' ' });
        }
        if let Ok(operations) = parse(&text) {
            let once = canonical(&operations);
            let again = canonical(&parse(&once).expect("canonical text is valid"));
            prop_assert_eq!(once, again);
        }
    }
}
