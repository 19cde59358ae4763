//! The reader of operations takes any input without a panic.

use proptest::prelude::*;
use sim::ops::{canonical, data_bytes, name_bytes, name_len, operations, parse, pieces};
use sim::ops::{Fill, Operation, OperationError};

/// A word of an operation, or something similar.
const WORD: &str = concat!(
    "(open|read|write|close|mark|prepared|fadvise|sql|truncate|0|1|63|64|4096|-1|007|a/b|",
    "\\.\\.|rw,create|ro|normal|9223372036854775807|task|spawn|wait|data|YWJj|mmap|store|touch|",
    "1\\+2x3|%20|SLOT:0|link|setxattr|user\\.a|)"
);

fn once_more(text: &str) -> Result<String, OperationError> {
    Ok(canonical(operations(text)?.version(), &parse(text)?))
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_a_line(text in "\\PC{0,400}", version in 1..3) {
        if let Err(error) = parse(&format!("flashbed-ops {version}\n{text}")) {
            prop_assert!(error.line >= 2 && error.detail.chars().count() <= 120);
        }
    }

    #[test]
    fn anything_like_an_operation_is_read_or_refused(
        words in prop::collection::vec(WORD, 0..40),
        breaks in prop::collection::vec(prop::bool::ANY, 40),
        version in 1..3,
    ) {
        let mut text = format!("flashbed-ops {version}\n");
        for (word, line_ends) in words.iter().zip(breaks) {
            text.push_str(word);
            text.push(if line_ends { '\n' } else { ' ' });
        }
        if let Ok(once) = once_more(&text) {
            let again = once_more(&once).expect("canonical text is valid");
            prop_assert_eq!(once, again);
        }
    }
}

#[test]
fn data_lines_are_the_bytes_of_the_operation_below() {
    let text = "flashbed-ops 2\nopen 0 a rw\ndata YWJj\n# and\n\ndata ZA==\nwrite 0 0 4 0 data\n";
    let read = parse(text).expect("a good file");
    let (line, Operation::Write { fill: Fill::Data(lines), .. }) = &read[1] else {
        panic!("{read:?}")
    };
    assert_eq!((*line, data_bytes(lines)), (7, b"abcd".to_vec()));
}

#[test]
fn pieces_are_as_many_as_they_say() {
    let sizes: Vec<_> = pieces("1+2,3+4t1z5s2x2,6+7t8b4")
        .map(|one| (one.common, one.own, one.text, one.bits, one.zeroes, one.runs))
        .collect();
    let twice = (3, 4, 1, 6, 5, 2);
    assert_eq!(sizes, [(1, 2, 0, 6, 0, 0), twice, twice, (6, 7, 8, 4, 0, 0)]);
}

#[test]
fn a_name_stands_for_its_bytes() {
    assert_eq!(name_bytes("a%C3%A4").collect::<Vec<_>>(), "aä".as_bytes());
    assert_eq!((name_len("a%C3%A4"), name_len("a")), (3, 1));
}
