//! Operations: the text of docs/formats.md (`flashbed-ops 1`), read and checked.
//!
//! One of three readers; agent/ops.c and python/flashbed/operations.py accept and refuse the same
//! files with the same line and code, and a test holds them to it.
//!
//! Invariants:
//! 1. A line's grammar is checked from left to right before its slots and repetition.
//! 2. Every slot that is used is open.

use core::fmt::{self, Write};
use thiserror::Error;

const HEADER: &str = "flashbed-ops 1";
const LINE_BYTES_MAX: usize = 4096;
const PATH_BYTES_MAX: usize = 1023;
const NAME_BYTES_MAX: usize = 255;
const LENGTH_MAX: u64 = 1 << 30;
/// Slots a program has.
pub const SLOTS: usize = 64;

/// Flags of `open`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Flags {
    pub read: bool,
    pub write: bool,
    pub create: bool,
    pub excl: bool,
    pub trunc: bool,
    pub append: bool,
    pub sync: bool,
    pub dsync: bool,
    pub direct: bool,
}

/// Advice of `fadvise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Advice {
    Normal,
    Random,
    Sequential,
    WillNeed,
    DontNeed,
    NoReuse,
}

const ADVICE: [(&str, Advice); 6] = [
    ("normal", Advice::Normal),
    ("random", Advice::Random),
    ("sequential", Advice::Sequential),
    ("willneed", Advice::WillNeed),
    ("dontneed", Advice::DontNeed),
    ("noreuse", Advice::NoReuse),
];

/// One operation; field names as in docs/formats.md.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation<'a> {
    Mkdir { path: &'a str },
    Open { slot: usize, path: &'a str, flags: Flags },
    Close { slot: usize },
    Read { slot: usize, offset: u64, length: u64 },
    Write { slot: usize, offset: u64, length: u64, seed: u64, compressibility: u8 },
    Fsync { slot: usize },
    Fdatasync { slot: usize },
    Truncate { slot: usize, length: u64 },
    Fadvise { slot: usize, offset: u64, length: u64, advice: Advice },
    Erase { slot: usize, offset: u64, length: u64 },
    Unlink { path: &'a str },
    Rmdir { path: &'a str },
    Rename { old: &'a str, new: &'a str },
    Sync,
    DropCaches,
    Remount,
    Pause { ns: u64 },
    Compute { steps: u64 },
    SqlOpen { path: &'a str, seed: u64, usage: &'a str, settings: &'a str },
    Sql { path: &'a str, statement: &'a str },
    SqlClose { path: &'a str },
    Prepared,
    Mark,
}

/// Names by `Operation::code`.
pub const NAMES: [&str; 23] = [
    "mkdir",
    "open",
    "close",
    "read",
    "write",
    "fsync",
    "fdatasync",
    "truncate",
    "fadvise",
    "erase",
    "unlink",
    "rmdir",
    "rename",
    "sync",
    "drop_caches",
    "remount",
    "pause",
    "compute",
    "sql_open",
    "sql",
    "sql_close",
    "prepared",
    "mark",
];

/// `Operation::code` of a read.
pub const READ: usize = Word::Read as usize;
/// `Operation::code` of a write.
pub const WRITE: usize = Word::Write as usize;
/// `Operation::code` of a pause.
pub const PAUSE: usize = Word::Pause as usize;

/// The first bad line, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {code}: {detail}")]
pub struct OperationError {
    /// Line, from 1.
    pub line: usize,
    /// Code of docs/formats.md.
    pub code: &'static str,
    /// For a person.
    pub detail: String,
}

/// A code and its detail; boxed, because what is returned for every field should fit registers.
type Refusal = Box<(&'static str, String)>;
type Parsed<T> = Result<T, Refusal>;

#[cold]
fn refuse(code: &'static str, detail: impl Into<String>) -> Refusal {
    Box::new((code, detail.into()))
}

/// Reads a file: (line, operation) pairs, or the first bad line.
pub fn parse(text: &str) -> Result<Vec<(usize, Operation<'_>)>, OperationError> {
    let (header, mut rest) = next_line(text);
    if header != HEADER {
        let detail = format!("the first line is not '{HEADER}'");
        return Err(OperationError { line: 1, code: "bad-header", detail });
    }
    // Looked at once as a whole, which the compiler turns into wide comparisons; a bad byte sends
    // every line to its own check.
    let printable = text.bytes().fold(true, |all, byte| all & is_printable_or_line_feed(byte));
    let mut operations = Vec::with_capacity(text.len() / 16);
    let mut state = State::default();
    let mut line_number = 1;
    while !rest.is_empty() {
        let (line, after) = next_line(rest);
        line_number += 1;
        rest = after;
        let at = |refusal: Refusal| {
            let (code, detail) = *refusal;
            OperationError { line: line_number, code, detail }
        };
        if let Some(operation) = parse_line(line, printable).map_err(at)? {
            state.check(&operation).map_err(at)?;
            operations.push((line_number, operation));
        }
    }
    Ok(operations)
}

/// The text before the first line feed, and what follows it.
#[inline]
fn next_line(text: &str) -> (&str, &str) {
    match memchr::memchr(b'\n', text.as_bytes()) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, ""),
    }
}

/// What a file has opened and marked so far.
#[derive(Default)]
struct State<'a> {
    open: u64,
    database: Option<&'a str>,
    prepared: bool,
    mark: bool,
}

impl<'a> State<'a> {
    fn check(&mut self, operation: &Operation<'a>) -> Parsed<()> {
        match *operation {
            Operation::Open { slot, .. } => {
                if self.open & (1 << slot) != 0 {
                    return Err(refuse("slot-open", format!("slot {slot} is open already")));
                }
                self.open |= 1 << slot;
            }
            Operation::SqlOpen { path, .. } => {
                if let Some(open) = self.database.replace(path) {
                    return Err(refuse("slot-open", format!("database {open} is open already")));
                }
            }
            Operation::Sql { path, .. } | Operation::SqlClose { path } => {
                if self.database != Some(path) {
                    return Err(refuse("slot-closed", format!("database {path} is not open")));
                }
                if matches!(operation, Operation::SqlClose { .. }) {
                    self.database = None;
                }
            }
            Operation::Remount => self.all_closed("remount")?,
            Operation::Prepared => {
                self.all_closed("prepared")?;
                if self.prepared || self.mark {
                    return Err(refuse("repeated", "prepared may come once, before mark"));
                }
                self.prepared = true;
            }
            Operation::Mark => {
                if self.mark {
                    return Err(refuse("repeated", "mark may come once"));
                }
                self.mark = true;
            }
            ref other => {
                if let Some(slot) = other.slot() {
                    if self.open & (1 << slot) == 0 {
                        return Err(refuse("slot-closed", format!("slot {slot} is not open")));
                    }
                    if matches!(other, Operation::Close { .. }) {
                        self.open &= !(1 << slot);
                    }
                }
            }
        }
        Ok(())
    }

    fn all_closed(&self, at: &str) -> Parsed<()> {
        if self.open != 0 {
            let slot = self.open.trailing_zeros();
            return Err(refuse("slot-open", format!("slot {slot} is open at {at}")));
        }
        if let Some(path) = self.database {
            return Err(refuse("slot-open", format!("database {path} is open at {at}")));
        }
        Ok(())
    }
}

/// Words and fields of a line: more than any operation takes.
const FIELDS_MAX: usize = 7;

fn is_printable_or_line_feed(byte: u8) -> bool {
    (0x20..=0x7e).contains(&byte) || byte == b'\n'
}

fn parse_line(line: &str, printable: bool) -> Parsed<Option<Operation<'_>>> {
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

/// The operations by name, in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
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
        Word::Pause => Operation::Pause { ns: parse_number(f[1])? },
        Word::Compute => Operation::Compute { steps: parse_number(f[1])? },
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

impl Operation<'_> {
    /// Index of the operation's name in [`NAMES`].
    pub fn code(&self) -> usize {
        self.word() as usize
    }

    fn word(&self) -> Word {
        match self {
            Operation::Mkdir { .. } => Word::Mkdir,
            Operation::Open { .. } => Word::Open,
            Operation::Close { .. } => Word::Close,
            Operation::Read { .. } => Word::Read,
            Operation::Write { .. } => Word::Write,
            Operation::Fsync { .. } => Word::Fsync,
            Operation::Fdatasync { .. } => Word::Fdatasync,
            Operation::Truncate { .. } => Word::Truncate,
            Operation::Fadvise { .. } => Word::Fadvise,
            Operation::Erase { .. } => Word::Erase,
            Operation::Unlink { .. } => Word::Unlink,
            Operation::Rmdir { .. } => Word::Rmdir,
            Operation::Rename { .. } => Word::Rename,
            Operation::Sync => Word::Sync,
            Operation::DropCaches => Word::DropCaches,
            Operation::Remount => Word::Remount,
            Operation::Pause { .. } => Word::Pause,
            Operation::Compute { .. } => Word::Compute,
            Operation::SqlOpen { .. } => Word::SqlOpen,
            Operation::Sql { .. } => Word::Sql,
            Operation::SqlClose { .. } => Word::SqlClose,
            Operation::Prepared => Word::Prepared,
            Operation::Mark => Word::Mark,
        }
    }

    /// The slot it uses, if it uses one.
    pub fn slot(&self) -> Option<usize> {
        match *self {
            Operation::Open { slot, .. }
            | Operation::Close { slot }
            | Operation::Read { slot, .. }
            | Operation::Write { slot, .. }
            | Operation::Fsync { slot }
            | Operation::Fdatasync { slot }
            | Operation::Truncate { slot, .. }
            | Operation::Fadvise { slot, .. }
            | Operation::Erase { slot, .. } => Some(slot),
            _ => None,
        }
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match (self.read, self.write) {
            (true, true) => "rw",
            (true, false) => "ro",
            _ => "wo",
        })?;
        let named = [
            (self.create, ",create"),
            (self.excl, ",excl"),
            (self.trunc, ",trunc"),
            (self.append, ",append"),
            (self.sync, ",sync"),
            (self.dsync, ",dsync"),
            (self.direct, ",direct"),
        ];
        named.iter().filter(|(set, _)| *set).try_for_each(|(_, name)| out.write_str(name))
    }
}

impl fmt::Display for Operation<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(NAMES[self.code()])?;
        match self {
            Operation::Mkdir { path } | Operation::Unlink { path } | Operation::Rmdir { path } => {
                write!(out, " {path}")
            }
            Operation::Open { slot, path, flags } => write!(out, " {slot} {path} {flags}"),
            Operation::Close { slot }
            | Operation::Fsync { slot }
            | Operation::Fdatasync { slot } => write!(out, " {slot}"),
            Operation::Read { slot, offset, length }
            | Operation::Erase { slot, offset, length } => {
                write!(out, " {slot} {offset} {length}")
            }
            Operation::Write { slot, offset, length, seed, compressibility } => {
                write!(out, " {slot} {offset} {length} {seed} {compressibility}")
            }
            Operation::Truncate { slot, length } => write!(out, " {slot} {length}"),
            Operation::Fadvise { slot, offset, length, advice } => {
                let name = ADVICE.iter().find(|(_, a)| a == advice).map_or("", |(name, _)| name);
                write!(out, " {slot} {offset} {length} {name}")
            }
            Operation::Rename { old, new } => write!(out, " {old} {new}"),
            Operation::Pause { ns } => write!(out, " {ns}"),
            Operation::Compute { steps } => write!(out, " {steps}"),
            Operation::SqlOpen { path, seed, usage, settings } => {
                write!(out, " {path} {seed} {usage} {settings}")
            }
            Operation::Sql { path, statement } => write!(out, " {path} {statement}"),
            Operation::SqlClose { path } => write!(out, " {path}"),
            Operation::Sync
            | Operation::DropCaches
            | Operation::Remount
            | Operation::Prepared
            | Operation::Mark => Ok(()),
        }
    }
}

/// The canonical text of a file: header and operations, no comments or empty lines, flags in order.
pub fn canonical(operations: &[(usize, Operation<'_>)]) -> String {
    let mut text = format!("{HEADER}\n");
    for (_, operation) in operations {
        writeln!(text, "{operation}").expect("a String takes everything");
    }
    text
}
