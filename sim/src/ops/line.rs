//! One line of an operations file: its word and its fields.
//!
//! Invariant: a line's grammar is checked from left to right.

use super::{refuse, Advice, Flags, Operation, Parsed, ADVICE, SLOTS};

const LINE_BYTES_MAX: usize = 4096;
const PATH_BYTES_MAX: usize = 1023;
const NAME_BYTES_MAX: usize = 255;
const LENGTH_MAX: u64 = 1 << 30;
/// Eleven days.
const PAUSE_NS_MAX: u64 = 1_000_000_000_000_000;
const STEPS_MAX: u64 = 1_000_000_000_000;

/// Words and fields of a line: more than any operation takes.
const FIELDS_MAX: usize = 7;

pub(super) fn is_printable_or_line_feed(byte: u8) -> bool {
    (0x20..=0x7e).contains(&byte) || byte == b'\n'
}

pub(super) fn parse_line(line: &str, printable: bool) -> Parsed<Option<Operation<'_>>> {
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
    let Some((kind, wanted)) = parse_word(word) else {
        return Err(refuse("unknown-operation", format!("'{word}'")));
    };
    if matches!(kind, Word::SqlOpen | Word::Sql) {
        return parse_sql(kind, line, wanted).map(Some);
    }
    if count != wanted + 1 {
        return Err(refuse("wrong-arguments", format!("{word} takes {wanted}")));
    }
    parse_fields(kind, &fields).map(Some)
}

/// The line cut at every space; the last field holds whatever is too much. The line is ASCII.
#[inline]
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

/// The operations by name, in the order of [`NAMES`](super::NAMES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Mkdir,
    Open,
    Close,
    Read,
    Write,
    Fsync,
    Fdatasync,
    Truncate,
    Fadvise,
    Erase,
    Unlink,
    Rmdir,
    Rename,
    Sync,
    DropCaches,
    Remount,
    Pause,
    Compute,
    SqlOpen,
    Sql,
    SqlClose,
    Prepared,
    Mark,
}

/// An operation's name, and how many fields it takes.
fn parse_word(word: &str) -> Option<(Word, usize)> {
    Some(match word {
        "read" => (Word::Read, 3),
        "write" => (Word::Write, 5),
        "mkdir" => (Word::Mkdir, 1),
        "open" => (Word::Open, 3),
        "close" => (Word::Close, 1),
        "fsync" => (Word::Fsync, 1),
        "fdatasync" => (Word::Fdatasync, 1),
        "truncate" => (Word::Truncate, 2),
        "fadvise" => (Word::Fadvise, 4),
        "erase" => (Word::Erase, 3),
        "unlink" => (Word::Unlink, 1),
        "rmdir" => (Word::Rmdir, 1),
        "rename" => (Word::Rename, 2),
        "sync" => (Word::Sync, 0),
        "drop_caches" => (Word::DropCaches, 0),
        "remount" => (Word::Remount, 0),
        "pause" => (Word::Pause, 1),
        "compute" => (Word::Compute, 1),
        "sql_open" => (Word::SqlOpen, 4),
        "sql" => (Word::Sql, 2),
        "sql_close" => (Word::SqlClose, 1),
        "prepared" => (Word::Prepared, 0),
        "mark" => (Word::Mark, 0),
        _ => return None,
    })
}

/// Operations whose last field is a statement: the rest of the line, which may hold spaces.
fn parse_sql(word: Word, line: &str, wanted: usize) -> Parsed<Operation<'_>> {
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
    let path = parse_path(f[1])?;
    if word == Word::Sql {
        return Ok(Operation::Sql { path, statement: parse_statement(statement)? });
    }
    let (seed, usage) = (parse_number(f[2])?, f[3]);
    if !matches!(usage, "fsync" | "fdatasync" | "fsync,prepared" | "fdatasync,prepared") {
        return Err(refuse("bad-flags", format!("'{usage}' is no use of a database")));
    }
    Ok(Operation::SqlOpen { path, seed, usage, settings: parse_statement(statement)? })
}

/// A backslash begins `\\`, `\|`, or `\x` and two digits.
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

fn parse_fields<'a>(word: Word, f: &[&'a str; FIELDS_MAX]) -> Parsed<Operation<'a>> {
    Ok(match word {
        Word::Read => {
            let slot = parse_slot(f[1])?;
            let (offset, length) = parse_range(f[2], f[3])?;
            Operation::Read { slot, offset, length }
        }
        Word::Erase => {
            let slot = parse_slot(f[1])?;
            let (offset, length) = parse_range(f[2], f[3])?;
            Operation::Erase { slot, offset, length }
        }
        Word::Write => {
            let slot = parse_slot(f[1])?;
            let (offset, length) = parse_range(f[2], f[3])?;
            let seed = parse_number(f[4])?;
            let compressibility = parse_below(f[5], 100, "compressibility")? as u8;
            Operation::Write { slot, offset, length, seed, compressibility }
        }
        Word::Mkdir => Operation::Mkdir { path: parse_path(f[1])? },
        Word::Open => Operation::Open {
            slot: parse_slot(f[1])?,
            path: parse_path(f[2])?,
            flags: parse_flags(f[3])?,
        },
        Word::Close => Operation::Close { slot: parse_slot(f[1])? },
        Word::Fsync => Operation::Fsync { slot: parse_slot(f[1])? },
        Word::Fdatasync => Operation::Fdatasync { slot: parse_slot(f[1])? },
        Word::Truncate => {
            Operation::Truncate { slot: parse_slot(f[1])?, length: parse_number(f[2])? }
        }
        Word::Fadvise => {
            let slot = parse_slot(f[1])?;
            let offset = parse_number(f[2])?;
            let length = parse_number(f[3])?;
            check_end(offset, length)?;
            Operation::Fadvise { slot, offset, length, advice: parse_advice(f[4])? }
        }
        Word::Unlink => Operation::Unlink { path: parse_path(f[1])? },
        Word::Rmdir => Operation::Rmdir { path: parse_path(f[1])? },
        Word::Rename => Operation::Rename { old: parse_path(f[1])?, new: parse_path(f[2])? },
        Word::Sync => Operation::Sync,
        Word::DropCaches => Operation::DropCaches,
        Word::Remount => Operation::Remount,
        Word::Pause => Operation::Pause { ns: parse_below(f[1], PAUSE_NS_MAX, "pause")? },
        Word::Compute => Operation::Compute { steps: parse_below(f[1], STEPS_MAX, "compute")? },
        Word::Prepared => Operation::Prepared,
        Word::Mark => Operation::Mark,
        Word::SqlClose => Operation::SqlClose { path: parse_path(f[1])? },
        Word::SqlOpen | Word::Sql => unreachable!("their fields are cut differently"),
    })
}

#[inline]
fn parse_number(field: &str) -> Parsed<u64> {
    let mut number: u64 = 0;
    let mut good = !field.is_empty() && field.len() <= 19;
    good &= field.len() == 1 || !field.starts_with('0');
    for byte in field.bytes() {
        let digit = byte.wrapping_sub(b'0');
        good &= digit <= 9;
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    if !good || number > i64::MAX as u64 {
        return Err(refuse("bad-number", format!("'{field}' is not a number from 0 to 2^63 - 1")));
    }
    Ok(number)
}

#[inline]
fn parse_below(field: &str, max: u64, what: &str) -> Parsed<u64> {
    let number = parse_number(field)?;
    if number > max {
        return Err(refuse("bad-number", format!("{what} {number} is above {max}")));
    }
    Ok(number)
}

#[inline]
fn parse_slot(field: &str) -> Parsed<usize> {
    Ok(parse_below(field, SLOTS as u64 - 1, "slot")? as usize)
}

#[inline]
fn parse_range(offset: &str, length: &str) -> Parsed<(u64, u64)> {
    let offset = parse_number(offset)?;
    let length = parse_below(length, LENGTH_MAX, "length")?;
    if length == 0 {
        return Err(refuse("bad-number", "length 0"));
    }
    check_end(offset, length)?;
    Ok((offset, length))
}

#[inline]
fn check_end(offset: u64, length: u64) -> Parsed<()> {
    if offset + length > i64::MAX as u64 {
        return Err(refuse("bad-number", format!("{offset} + {length} is above 2^63 - 1")));
    }
    Ok(())
}

fn parse_path(field: &str) -> Parsed<&str> {
    let good = |name: &str| {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        (1..=NAME_BYTES_MAX).contains(&name.len())
            && name != "."
            && name != ".."
            && name.bytes().all(allowed)
    };
    if field.len() > PATH_BYTES_MAX || !field.split('/').all(good) {
        return Err(refuse("bad-path", format!("'{field}'")));
    }
    Ok(field)
}

fn parse_flags(field: &str) -> Parsed<Flags> {
    let bad = || refuse("bad-flags", format!("'{field}'"));
    let mut words = field.split(',');
    let mut flags = Flags::default();
    match words.next() {
        Some("ro") => flags.read = true,
        Some("wo") => flags.write = true,
        Some("rw") => (flags.read, flags.write) = (true, true),
        _ => return Err(bad()),
    }
    for word in words {
        let flag = match word {
            "create" => &mut flags.create,
            "excl" => &mut flags.excl,
            "trunc" => &mut flags.trunc,
            "append" => &mut flags.append,
            "sync" => &mut flags.sync,
            "dsync" => &mut flags.dsync,
            "direct" => &mut flags.direct,
            _ => return Err(bad()),
        };
        if core::mem::replace(flag, true) {
            return Err(bad());
        }
    }
    Ok(flags)
}

fn parse_advice(field: &str) -> Parsed<Advice> {
    let found = ADVICE.iter().find(|(name, _)| *name == field);
    found.map(|&(_, advice)| advice).ok_or_else(|| refuse("bad-advice", format!("'{field}'")))
}
