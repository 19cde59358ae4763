//! The texts of preparations, as flashbed-ops files (docs/reference/operations.md): a file written
//! in order, and the wait for background work that ends each preparation.

use sim::ops::{self, Operation, OperationError};
use std::borrow::Cow;
use std::fmt::Write;

/// The first line of a file of version 1.
pub const HEADER: &str = "flashbed-ops 1\n";

/// Lines that write a file in order, with incompressible bytes, and sync it.
#[must_use]
pub fn written_file(path: &str, length_bytes: u64, request_bytes: u64, seed: u64) -> String {
    assert!(request_bytes > 0, "requests of no bytes");
    let mut text = format!("open 0 {path} rw,create\n");
    let mut offset = 0;
    while offset < length_bytes {
        let length = request_bytes.min(length_bytes - offset);
        line(&mut text, format_args!("write 0 {offset} {length} {seed} 0"));
        offset += length;
    }
    text.push_str("fsync 0\nclose 0\n");
    text
}

/// A preparation to its end: what is written, sync, and a pause for background work.
#[must_use]
pub fn settled(mut text: String, settle_ns: u64) -> String {
    line(&mut text, format_args!("sync\npause {settle_ns}\nprepared"));
    text
}

/// Where the body of a file begins, behind `prepared`; 0 if all of it is the body.
///
/// # Errors
///
/// The first line that is no operation.
pub fn body_offset(text: &str) -> Result<usize, OperationError> {
    let mut operations = ops::operations(text)?;
    let mut at = 0;
    while let Some(read) = operations.next() {
        if read?.1 == Operation::Prepared {
            at = text.len() - operations.bytes_left();
        }
    }
    Ok(at)
}

/// A file as preparation and body: the lines before `prepared`, with a settling, and those after.
///
/// # Errors
///
/// The first line that is no operation.
pub fn parted(text: &str, settle_ns: u64) -> Result<(String, Cow<'_, str>), OperationError> {
    let at = body_offset(text)?;
    let header = text.find('\n').map_or(text.len(), |end| end + 1);
    let before = text[..at].trim_end_matches('\n');
    let prepare = before.rfind('\n').map_or(&text[..header], |end| &before[..=end]);
    let rest = [&text[..header], &text[at..]];
    let body = if at == 0 { Cow::Borrowed(text) } else { Cow::Owned(rest.concat()) };
    Ok((settled(prepare.to_owned(), settle_ns), body))
}

/// Appends a line.
pub(crate) fn line(text: &mut String, words: std::fmt::Arguments<'_>) {
    writeln!(text, "{words}").expect("a string takes every text");
}

#[cfg(test)]
mod tests {
    use super::{parted, settled, written_file, HEADER};

    #[test]
    fn a_file_is_written_in_requests_of_which_the_last_is_shorter() {
        assert_eq!(
            settled(HEADER.to_owned() + &written_file("f", 10, 4, 1), 5),
            "flashbed-ops 1\nopen 0 f rw,create\nwrite 0 0 4 1 0\nwrite 0 4 4 1 0\n\
             write 0 8 2 1 0\nfsync 0\nclose 0\nsync\npause 5\nprepared\n"
        );
    }

    #[test]
    fn a_program_is_parted_at_its_line_prepared() {
        let both = "flashbed-ops 1\nmkdir d\nprepared\nmark\nsync\n";
        let (prepare, body) = parted(both, 5).expect("operations");
        assert_eq!(prepare, "flashbed-ops 1\nmkdir d\nsync\npause 5\nprepared\n");
        assert_eq!(body, "flashbed-ops 1\nmark\nsync\n");
    }

    #[test]
    fn without_that_line_all_of_it_is_the_body() {
        let text = "flashbed-ops 1\nmark\nsync\n";
        let (prepare, body) = parted(text, 5).expect("operations");
        assert_eq!(prepare, "flashbed-ops 1\nsync\npause 5\nprepared\n");
        assert_eq!(body, text);
        assert!(parted("flashbed-ops 1\nnonsense\n", 5).is_err());
    }
}
