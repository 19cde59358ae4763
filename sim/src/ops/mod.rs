//! Operations: the text of docs/reference/operations.md (`flashbed-ops 1` and `2`), read and
//! checked.
//!
//! This is one of three readers. agent/base/ops.c and python/flashbed/program/operations.py accept
//! and refuse the same files with the same line and code, and a test compares them.
//!
//! Invariants:
//! 1. A line's grammar is checked (line.rs, and calls.rs for version 2) before its slots, tasks and
//!    repetition (state.rs).
//! 2. Every slot and mapping that is used is open.
//! 3. A file's header sets its version. Version 1 has no operation or field of version 2.

mod calls;
mod fields;
mod fill;
mod grammar;
mod line;
mod names;
mod state;
mod text;

pub use fill::{data_bytes, pieces, Fill};
pub use grammar::{COPY, NAMES, PAUSE, READ, SEND, STORE, WRITE};
pub use names::{name_byte_at, name_bytes, name_len, name_text, path_text};
pub use text::canonical;

use fill::data_len;
use grammar::Word;
use line::{is_printable_or_line_feed, parse_line};
use state::State;
use thiserror::Error;

/// The most characters of a bad line that an error shows.
const DETAIL_CHARS_MAX: usize = 120;
/// Slots, mappings and tasks that a program may have.
pub const SLOTS: usize = 1024;
/// Slots allocated at first, enough for most programs.
pub const SLOTS_AT_FIRST: usize = 64;
const PAGE_BYTES: u64 = 4096;

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `flashbed-ops 1`
    One,
    /// `flashbed-ops 2`
    Two,
}

impl Version {
    const fn header(self) -> &'static str {
        match self {
            Version::One => "flashbed-ops 1",
            Version::Two => "flashbed-ops 2",
        }
    }

    const fn slots(self) -> usize {
        match self {
            Version::One => SLOTS_AT_FIRST,
            Version::Two => SLOTS,
        }
    }
}

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
    pub directory: bool,
    pub nofollow: bool,
    pub tmpfile: bool,
}

/// What `fallocate` does to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Fallocation {
    Allocate,
    Keep,
    Punch,
    Zero,
    Collapse,
    Insert,
}

const FALLOCATE: [(&str, Fallocation); 6] = [
    ("allocate", Fallocation::Allocate),
    ("keep", Fallocation::Keep),
    ("punch", Fallocation::Punch),
    ("zero", Fallocation::Zero),
    ("collapse", Fallocation::Collapse),
    ("insert", Fallocation::Insert),
];

/// Flags of `sync_range`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct RangeFlags {
    pub wait_before: bool,
    pub write: bool,
    pub wait_after: bool,
}

/// What `flock` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Locking {
    Shared,
    Exclusive,
    Unlock,
}

const FLOCK: [(&str, Locking); 3] =
    [("shared", Locking::Shared), ("exclusive", Locking::Exclusive), ("unlock", Locking::Unlock)];

/// How `mmap` maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapped {
    /// Shared, for reading.
    Read,
    /// Shared, for reading and writing.
    ReadWrite,
    /// Private.
    Private,
}

const MAP: [(&str, Mapped); 3] =
    [("ro", Mapped::Read), ("rw", Mapped::ReadWrite), ("private", Mapped::Private)];

/// Whether `msync` waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Msync {
    Sync,
    Async,
}

const MSYNC: [(&str, Msync); 2] = [("sync", Msync::Sync), ("async", Msync::Async)];

/// The source of `link`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked<'a> {
    /// A file by its path.
    Path(&'a str),
    /// The file of a slot, opened with `tmpfile`.
    Slot(usize),
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

/// One operation. Field names are those of docs/reference/operations.md. Paths are as in the file:
/// bytes of a name may be encoded ([`name_bytes`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation<'a> {
    Mkdir { path: &'a str },
    Open { slot: usize, path: &'a str, flags: Flags },
    Close { slot: usize },
    Read { slot: usize, offset: u64, length: u64 },
    Write { slot: usize, offset: u64, length: u64, seed: u64, fill: Fill<'a> },
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
    Task { task: usize },
    Spawn { task: usize },
    Wait { task: usize },
    Stat { path: &'a str },
    ReadDir { slot: usize },
    Link { old: Linked<'a>, new: &'a str },
    Symlink { target: &'a str, path: &'a str },
    ReadLink { path: &'a str },
    Chmod { path: &'a str, mode: u32 },
    Chown { path: &'a str, user: u32, group: u32 },
    Utimens { path: &'a str },
    SetXattr { path: &'a str, name: &'a str, length: u32, seed: u64, fill: Fill<'a> },
    GetXattr { path: &'a str, name: &'a str },
    ListXattr { path: &'a str },
    RemoveXattr { path: &'a str, name: &'a str },
    Fallocate { slot: usize, offset: u64, length: u64, how: Fallocation },
    Copy { from: usize, from_offset: u64, to: usize, to_offset: u64, length: u64 },
    Send { slot: usize, offset: u64, length: u64 },
    SyncRange { slot: usize, offset: u64, length: u64, flags: RangeFlags },
    SyncFs { slot: usize },
    Flock { slot: usize, how: Locking },
    Mmap { mapping: usize, slot: usize, offset: u64, length: u64, how: Mapped },
    Touch { mapping: usize, offset: u64, length: u64 },
    Store { mapping: usize, offset: u64, length: u64, seed: u64, fill: Fill<'a> },
    Msync { mapping: usize, offset: u64, length: u64, how: Msync },
    Munmap { mapping: usize },
}

/// The first bad line and its error.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {code}: {detail}")]
pub struct OperationError {
    /// Line number, from 1.
    pub line: usize,
    /// The error code of docs/reference/operations.md.
    pub code: &'static str,
    /// An explanation for people.
    pub detail: String,
}

/// An error code and its explanation. Boxed, so that the result of parsing a field fits into
/// registers.
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

/// Reads a file: its (line number, operation) pairs, or the first bad line.
pub fn parse(text: &str) -> Result<Vec<(usize, Operation<'_>)>, OperationError> {
    operations(text)?.collect()
}

/// Reads a file one operation at a time, up to the first bad line.
pub fn operations(text: &str) -> Result<Operations<'_>, OperationError> {
    let (header, rest) = next_line(text);
    let version = [Version::One, Version::Two].into_iter().find(|of| of.header() == header);
    let Some(version) = version else {
        let detail = format!("the first line is not '{}'", Version::One.header());
        return Err(OperationError { line: 1, code: "bad-header", detail });
    };
    // Checks the whole text at once, which the compiler vectorises. If it has a bad byte, every
    // line is checked.
    let printable = text.bytes().fold(true, |all, byte| all & is_printable_or_line_feed(byte));
    Ok(Operations { rest, line: 1, printable, version, state: State::default() })
}

/// An iterator over the operations of a file with their line numbers. It keeps only the state of
/// what is open.
#[derive(Debug)]
pub struct Operations<'a> {
    rest: &'a str,
    line: usize,
    printable: bool,
    version: Version,
    state: State<'a>,
}

impl<'a> Operations<'a> {
    /// Bytes of the file that are not read yet.
    pub fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// The version of the file.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Reads a line, which begins the text `from`.
    fn read(&mut self, line: &'a str, from: &'a str) -> Parsed<Option<Operation<'a>>> {
        if self.version == Version::Two {
            return self.read_new(line, from);
        }
        // Compiled once for each version, so that version 1 does not pay for version 2.
        let operation = parse_line::<false>(line, self.printable)?;
        operation.iter().try_for_each(|operation| self.state.check(operation))?;
        Ok(operation)
    }

    #[inline(never)]
    fn read_new(&mut self, line: &'a str, from: &'a str) -> Parsed<Option<Operation<'a>>> {
        let mut operation = parse_line::<true>(line, self.printable)?;
        if let Some(operation) = &mut operation {
            self.state.take_data(operation, from)?;
            self.state.check_new(operation)?;
        } else if let Some(data) = line.strip_prefix("data ") {
            self.state.add_data(data_len(data), from, self.line)?;
        }
        Ok(operation)
    }

    #[cold]
    fn refused(&mut self, line: usize, (code, detail): (&'static str, String)) -> OperationError {
        self.rest = "";
        OperationError { line, code, detail }
    }
}

impl<'a> Iterator for Operations<'a> {
    type Item = Result<(usize, Operation<'a>), OperationError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let from = self.rest;
            let (line, after) = next_line(from);
            self.line += 1;
            self.rest = after;
            match self.read(line, from) {
                Ok(None) => {}
                Ok(Some(operation)) => return Some(Ok((self.line, operation))),
                Err(refusal) => {
                    self.state.forget_data();
                    return Some(Err(self.refused(self.line, *refusal)));
                }
            }
        }
        let line = self.state.forget_data()?;
        Some(Err(self.refused(line, *refuse("bad-data", "data with no operation after it"))))
    }
}

/// Splits the text at the first line feed.
#[inline]
fn next_line(text: &str) -> (&str, &str) {
    match memchr::memchr(b'\n', text.as_bytes()) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, ""),
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
            Operation::Task { .. } => Word::Task,
            Operation::Spawn { .. } => Word::Spawn,
            Operation::Wait { .. } => Word::Wait,
            Operation::Stat { .. } => Word::Stat,
            Operation::ReadDir { .. } => Word::ReadDir,
            Operation::Link { .. } => Word::Link,
            Operation::Symlink { .. } => Word::Symlink,
            Operation::ReadLink { .. } => Word::ReadLink,
            Operation::Chmod { .. } => Word::Chmod,
            Operation::Chown { .. } => Word::Chown,
            Operation::Utimens { .. } => Word::Utimens,
            Operation::SetXattr { .. } => Word::SetXattr,
            Operation::GetXattr { .. } => Word::GetXattr,
            Operation::ListXattr { .. } => Word::ListXattr,
            Operation::RemoveXattr { .. } => Word::RemoveXattr,
            Operation::Fallocate { .. } => Word::Fallocate,
            Operation::Copy { .. } => Word::Copy,
            Operation::Send { .. } => Word::Send,
            Operation::SyncRange { .. } => Word::SyncRange,
            Operation::SyncFs { .. } => Word::SyncFs,
            Operation::Flock { .. } => Word::Flock,
            Operation::Mmap { .. } => Word::Mmap,
            Operation::Touch { .. } => Word::Touch,
            Operation::Store { .. } => Word::Store,
            Operation::Msync { .. } => Word::Msync,
            Operation::Munmap { .. } => Word::Munmap,
        }
    }

    /// The slot it uses, the first if it uses two.
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
            | Operation::Erase { slot, .. }
            | Operation::ReadDir { slot }
            | Operation::Link { old: Linked::Slot(slot), .. }
            | Operation::Fallocate { slot, .. }
            | Operation::Copy { from: slot, .. }
            | Operation::Send { slot, .. }
            | Operation::SyncRange { slot, .. }
            | Operation::SyncFs { slot }
            | Operation::Flock { slot, .. }
            | Operation::Mmap { slot, .. } => Some(slot),
            _ => None,
        }
    }

    /// The mapping it uses, if it uses one.
    pub fn mapping(&self) -> Option<usize> {
        match *self {
            Operation::Mmap { mapping, .. }
            | Operation::Touch { mapping, .. }
            | Operation::Store { mapping, .. }
            | Operation::Msync { mapping, .. }
            | Operation::Munmap { mapping } => Some(mapping),
            _ => None,
        }
    }

    /// The path it refers to, the first of two; none if it uses a slot or a mapping.
    pub fn path(&self) -> Option<&str> {
        match *self {
            Operation::Mkdir { path }
            | Operation::Open { path, .. }
            | Operation::Unlink { path }
            | Operation::Rmdir { path }
            | Operation::Rename { old: path, .. }
            | Operation::SqlOpen { path, .. }
            | Operation::Sql { path, .. }
            | Operation::SqlClose { path }
            | Operation::Stat { path }
            | Operation::Link { old: Linked::Path(path), .. }
            | Operation::Symlink { path, .. }
            | Operation::ReadLink { path }
            | Operation::Chmod { path, .. }
            | Operation::Chown { path, .. }
            | Operation::Utimens { path }
            | Operation::SetXattr { path, .. }
            | Operation::GetXattr { path, .. }
            | Operation::ListXattr { path }
            | Operation::RemoveXattr { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The source of the bytes that it writes.
    pub fn fill(&self) -> Option<Fill<'_>> {
        match *self {
            Operation::Write { fill, .. }
            | Operation::Store { fill, .. }
            | Operation::SetXattr { fill, .. } => Some(fill),
            _ => None,
        }
    }

    /// Its LENGTH.
    pub fn length(&self) -> Option<u64> {
        match *self {
            Operation::Read { length, .. }
            | Operation::Write { length, .. }
            | Operation::Truncate { length, .. }
            | Operation::Fadvise { length, .. }
            | Operation::Erase { length, .. }
            | Operation::Fallocate { length, .. }
            | Operation::Copy { length, .. }
            | Operation::Send { length, .. }
            | Operation::SyncRange { length, .. }
            | Operation::Mmap { length, .. }
            | Operation::Touch { length, .. }
            | Operation::Store { length, .. }
            | Operation::Msync { length, .. } => Some(length),
            Operation::SetXattr { length, .. } => Some(u64::from(length)),
            _ => None,
        }
    }

    /// The OFFSET of its LENGTH, the first if it has two.
    pub fn offset(&self) -> Option<u64> {
        match *self {
            Operation::Read { offset, .. }
            | Operation::Write { offset, .. }
            | Operation::Fadvise { offset, .. }
            | Operation::Erase { offset, .. }
            | Operation::Fallocate { offset, .. }
            | Operation::Copy { from_offset: offset, .. }
            | Operation::Send { offset, .. }
            | Operation::SyncRange { offset, .. }
            | Operation::Mmap { offset, .. }
            | Operation::Touch { offset, .. }
            | Operation::Store { offset, .. }
            | Operation::Msync { offset, .. } => Some(offset),
            _ => None,
        }
    }
}
