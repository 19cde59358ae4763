//! One line of an operations file: its word and its fields.
//!
//! Invariant: a line's grammar is checked from left to right.

use super::calls::parse_new_fields;
use super::fields::{check_end, parse_advice, parse_below, parse_flags, parse_number, parse_path};
use super::fields::{parse_range, parse_slot};
use super::fill::{parse_data, parse_fill, Fill};
use super::grammar::{parse_new_word, parse_word, Word, FIELDS_MAX};
use super::{refuse, Operation, Parsed, Version};

const LINE_BYTES_MAX: usize = 4096;
/// The longest pause, eleven days.
const PAUSE_NS_MAX: u64 = 1_000_000_000_000_000;
const STEPS_MAX: u64 = 1_000_000_000_000;

pub(super) fn is_printable_or_line_feed(byte: u8) -> bool {
    (0x20..=0x7e).contains(&byte) || byte == b'\n'
}

pub(super) fn parse_line<const NEW: bool>(
    line: &str,
    printable: bool,
) -> Parsed<Option<Operation<'_>>> {
    let version = if NEW { Version::Two } else { Version::One };
    if line.len() > LINE_BYTES_MAX {
        let detail = format!("{} bytes, at most {LINE_BYTES_MAX}", line.len());
        return Err(refuse("line-too-long", detail));
    }
    let bad = |byte: &u8| !is_printable_or_line_feed(*byte);
    if let Some(byte) = (!printable).then(|| line.bytes().find(bad)).flatten() {
        return Err(refuse("bad-character", format!("byte 0x{byte:02x}")));
    }
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (fields, count) = split_fields(line);
    let word = fields[0];
    let new = || parse_new_word(word).filter(|_| version == Version::Two);
    let Some((kind, wanted)) = parse_word(word).or_else(new) else {
        return Err(refuse("unknown-operation", format!("'{word}'")));
    };
    if matches!(kind, Word::SqlOpen | Word::Sql) {
        return parse_sql(kind, line, wanted, version).map(Some);
    }
    if count != wanted + 1 {
        return Err(refuse("wrong-arguments", format!("{word} takes {wanted}")));
    }
    if NEW && kind == Word::Data {
        return parse_data(fields[1]).map(|()| None);
    }
    parse_fields::<NEW>(kind, &fields).map(Some)
}

/// Splits the ASCII line at every space. The last field holds any excess.
#[inline(always)]
fn split_fields(line: &str) -> ([&str; FIELDS_MAX], usize) {
    let mut fields = [""; FIELDS_MAX];
    let mut rest = line;
    let mut count = 0;
    while count < FIELDS_MAX - 1 {
        let Some(at) = rest.as_bytes().iter().position(|&byte| byte == b' ') else { break };
        (fields[count], rest) = (&rest[..at], &rest[at + 1..]);
        count += 1;
    }
    fields[count] = rest;
    (fields, count + 1)
}

/// Parses an operation whose last field is an SQL statement: the rest of the line, which may
/// contain spaces.
fn parse_sql(word: Word, line: &str, wanted: usize, version: Version) -> Parsed<Operation<'_>> {
    let mut f = [""; FIELDS_MAX];
    let mut count = 0;
    for (field, text) in f.iter_mut().zip(line.splitn(wanted + 1, ' ')) {
        *field = text;
        count += 1;
    }
    let statement = f[wanted];
    if count != wanted + 1 || statement.is_empty() {
        return Err(refuse("wrong-arguments", format!("{} takes {wanted} fields", f[0])));
    }
    let path = parse_path(f[1], version)?;
    if word == Word::Sql {
        return Ok(Operation::Sql { path, statement: parse_statement(statement)? });
    }
    let (seed, usage) = (parse_number(f[2])?, f[3]);
    if !matches!(usage, "fsync" | "fdatasync" | "fsync,prepared" | "fdatasync,prepared") {
        return Err(refuse("bad-flags", format!("'{usage}' is no use of a database")));
    }
    Ok(Operation::SqlOpen { path, seed, usage, settings: parse_statement(statement)? })
}

/// Checks a statement: a backslash begins `\\`, `\|`, or `\x` and two digits.
fn parse_statement(text: &str) -> Parsed<&str> {
    let bytes = text.as_bytes();
    let digit = |at: usize| matches!(bytes.get(at), Some(b'0'..=b'9' | b'a'..=b'f'));
    let mut at = 0;
    while at < bytes.len() {
        at += match (bytes[at], bytes.get(at + 1)) {
            (b'\\', Some(b'\\' | b'|')) => 2,
            (b'\\', Some(b'x')) if digit(at + 2) && digit(at + 3) => 4,
            (b'\\', _) => return Err(refuse("bad-statement", "a \\ that means nothing")),
            _ => 1,
        };
    }
    Ok(text)
}

fn parse_fields<'a, const NEW: bool>(
    word: Word,
    f: &[&'a str; FIELDS_MAX],
) -> Parsed<Operation<'a>> {
    let version = if NEW { Version::Two } else { Version::One };
    Ok(match word {
        Word::Read => {
            let slot = parse_slot(f[1], version)?;
            let (offset, length) = parse_range(f[2], f[3])?;
            Operation::Read { slot, offset, length }
        }
        Word::Erase => {
            let slot = parse_slot(f[1], version)?;
            let (offset, length) = parse_range(f[2], f[3])?;
            Operation::Erase { slot, offset, length }
        }
        Word::Write => {
            let slot = parse_slot(f[1], version)?;
            let (offset, length) = parse_range(f[2], f[3])?;
            let seed = parse_number(f[4])?;
            let fill = match version {
                Version::One => Fill::Even(parse_below(f[5], 100, "compressibility")? as u8),
                Version::Two => parse_fill(f[5], offset, length, seed)?,
            };
            Operation::Write { slot, offset, length, seed, fill }
        }
        Word::Mkdir => Operation::Mkdir { path: parse_path(f[1], version)? },
        Word::Open => Operation::Open {
            slot: parse_slot(f[1], version)?,
            path: parse_path(f[2], version)?,
            flags: parse_flags(f[3], version)?,
        },
        Word::Close => Operation::Close { slot: parse_slot(f[1], version)? },
        Word::Fsync => Operation::Fsync { slot: parse_slot(f[1], version)? },
        Word::Fdatasync => Operation::Fdatasync { slot: parse_slot(f[1], version)? },
        Word::Truncate => {
            Operation::Truncate { slot: parse_slot(f[1], version)?, length: parse_number(f[2])? }
        }
        Word::Fadvise => {
            let slot = parse_slot(f[1], version)?;
            let offset = parse_number(f[2])?;
            let length = parse_number(f[3])?;
            check_end(offset, length)?;
            Operation::Fadvise { slot, offset, length, advice: parse_advice(f[4])? }
        }
        Word::Unlink => Operation::Unlink { path: parse_path(f[1], version)? },
        Word::Rmdir => Operation::Rmdir { path: parse_path(f[1], version)? },
        Word::Rename => {
            Operation::Rename { old: parse_path(f[1], version)?, new: parse_path(f[2], version)? }
        }
        Word::Sync => Operation::Sync,
        Word::DropCaches => Operation::DropCaches,
        Word::Remount => Operation::Remount,
        Word::Pause => Operation::Pause { ns: parse_below(f[1], PAUSE_NS_MAX, "pause")? },
        Word::Compute => Operation::Compute { steps: parse_below(f[1], STEPS_MAX, "compute")? },
        Word::Prepared => Operation::Prepared,
        Word::Mark => Operation::Mark,
        Word::SqlClose => Operation::SqlClose { path: parse_path(f[1], version)? },
        Word::SqlOpen | Word::Sql => unreachable!("their fields are cut differently"),
        _ if NEW => return parse_new_fields(word, f),
        _ => unreachable!("a word of version 2"),
    })
}
