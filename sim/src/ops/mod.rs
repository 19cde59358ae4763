//! Operations: the text of docs/operations.md (`flashbed-ops 1`), read and checked.
//!
//! One of three readers; agent/base/ops.c and python/flashbed/formats/operations.py accept and
//! refuse the same files with the same line and code, and a test holds them to it.
//!
//! Invariants:
//! 1. A line's grammar is checked (line.rs) before its slots and repetition.
//! 2. Every slot that is used is open.

mod line;

use core::fmt::{self, Write};
use line::{is_printable_or_line_feed, parse_line, Word};
use thiserror::Error;

/// So much of what is wrong with a line is shown.
const DETAIL_CHARS_MAX: usize = 120;
const HEADER: &str = "flashbed-ops 1";
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

/// One operation; field names as in docs/operations.md.
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
    /// Code of docs/operations.md.
    pub code: &'static str,
    /// For a person.
    pub detail: String,
}

/// A code and its detail; boxed, because what is returned for every field should fit registers.
type Refusal = Box<(&'static str, String)>;
type Parsed<T> = Result<T, Refusal>;

#[cold]
fn refuse(code: &'static str, detail: impl Into<String>) -> Refusal {
    let mut detail = detail.into();
    if let Some((end, _)) = detail.char_indices().nth(DETAIL_CHARS_MAX) {
        detail.truncate(end);
    }
    Box::new((code, detail))
}

/// Reads a file: (line, operation) pairs, or the first bad line.
pub fn parse(text: &str) -> Result<Vec<(usize, Operation<'_>)>, OperationError> {
    operations(text)?.collect()
}

/// Reads a file one operation after another, up to the first bad line.
pub fn operations(text: &str) -> Result<Operations<'_>, OperationError> {
    let (header, rest) = next_line(text);
    if header != HEADER {
        let detail = format!("the first line is not '{HEADER}'");
        return Err(OperationError { line: 1, code: "bad-header", detail });
    }
    // Looked at once as a whole, which the compiler turns into wide comparisons; a bad byte sends
    // every line to its own check.
    let printable = text.bytes().fold(true, |all, byte| all & is_printable_or_line_feed(byte));
    Ok(Operations { rest, line: 1, printable, state: State::default() })
}

/// The operations of a file with their lines; nothing of it is kept but what is open.
#[derive(Debug)]
pub struct Operations<'a> {
    rest: &'a str,
    line: usize,
    printable: bool,
    state: State<'a>,
}

impl<'a> Operations<'a> {
    /// Bytes of the file that are not read yet.
    pub fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    fn read(&mut self, line: &'a str) -> Parsed<Option<Operation<'a>>> {
        let operation = parse_line(line, self.printable)?;
        operation.iter().try_for_each(|operation| self.state.check(operation))?;
        Ok(operation)
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<(usize, Operation<'a>), OperationError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let (line, after) = next_line(self.rest);
            self.line += 1;
            self.rest = after;
            match self.read(line) {
                Ok(None) => {}
                Ok(Some(operation)) => return Some(Ok((self.line, operation))),
                Err(refusal) => {
                    self.rest = "";
                    let (code, detail) = *refusal;
                    return Some(Err(OperationError { line: self.line, code, detail }));
                }
            }
        }
        None
    }
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
#[derive(Debug, Default)]
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
