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
    Unlink { path: &'a str },
    Rmdir { path: &'a str },
    Rename { old: &'a str, new: &'a str },
    Sync,
    DropCaches,
    Pause { ns: u64 },
    Compute { steps: u64 },
    Sql { path: &'a str, statement: &'a str },
    Prepared,
    Mark,
}

/// Names by `Operation::code`.
pub const NAMES: [&str; 19] = [
    "mkdir",
    "open",
    "close",
    "read",
    "write",
    "fsync",
    "fdatasync",
    "truncate",
    "fadvise",
    "unlink",
    "rmdir",
    "rename",
    "sync",
    "drop_caches",
    "pause",
    "compute",
    "sql",
    "prepared",
    "mark",
];

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

type Parsed<T> = Result<T, (&'static str, String)>;

/// Reads a file: (line, operation) pairs, or the first bad line.
pub fn parse(text: &str) -> Result<Vec<(usize, Operation<'_>)>, OperationError> {
    let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n');
    let header = lines.next().unwrap_or("");
    if header != HEADER {
        let detail = format!("the first line is not '{HEADER}'");
        return Err(OperationError { line: 1, code: "bad-header", detail });
    }
    let mut operations = Vec::new();
    let mut state = State::default();
    for (index, line) in lines.enumerate() {
        let line_number = index + 2;
        let parsed = parse_line(line).and_then(|operation| {
            operation.map_or(Ok(None), |op| state.check(&op).map(|()| Some(op)))
        });
        match parsed {
            Ok(Some(operation)) => operations.push((line_number, operation)),
            Ok(None) => {}
            Err((code, detail)) => {
                return Err(OperationError { line: line_number, code, detail });
            }
        }
    }
    Ok(operations)
}

/// What a file has opened and marked so far.
#[derive(Default)]
struct State {
    open: u64,
    prepared: bool,
    mark: bool,
}

impl State {
    fn check(&mut self, operation: &Operation<'_>) -> Parsed<()> {
        match *operation {
            Operation::Open { slot, .. } => {
                if self.open & (1 << slot) != 0 {
                    return Err(("slot-open", format!("slot {slot} is open already")));
                }
                self.open |= 1 << slot;
            }
            Operation::Prepared => {
                if self.prepared || self.mark {
                    return Err(("repeated", "prepared may come once, before mark".into()));
                }
                if self.open != 0 {
                    let slot = self.open.trailing_zeros();
                    return Err(("slot-open", format!("slot {slot} is open at prepared")));
                }
                self.prepared = true;
            }
            Operation::Mark => {
                if self.mark {
                    return Err(("repeated", "mark may come once".into()));
                }
                self.mark = true;
            }
            ref other => {
                if let Some(slot) = other.slot() {
                    if self.open & (1 << slot) == 0 {
                        return Err(("slot-closed", format!("slot {slot} is not open")));
                    }
                    if matches!(other, Operation::Close { .. }) {
                        self.open &= !(1 << slot);
                    }
                }
            }
        }
        Ok(())
    }
}

fn parse_line(line: &str) -> Parsed<Option<Operation<'_>>> {
    if line.len() > LINE_BYTES_MAX {
        return Err(("line-too-long", format!("{} bytes, at most {LINE_BYTES_MAX}", line.len())));
    }
    if let Some(byte) = line.bytes().find(|byte| !(0x20..=0x7e).contains(byte)) {
        return Err(("bad-character", format!("byte 0x{byte:02x}")));
    }
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (word, rest) = line.split_once(' ').map_or((line, None), |(word, rest)| (word, Some(rest)));
    let Some(code) = NAMES.iter().position(|&name| name == word) else {
        return Err(("unknown-operation", format!("'{word}'")));
    };
    if word == "sql" {
        return parse_sql(rest).map(Some);
    }
    let mut fields = [""; 5];
    let mut count = 0;
    for field in rest.into_iter().flat_map(|rest| rest.split(' ')) {
        if count == fields.len() {
            count += 1;
            break;
        }
        fields[count] = field;
        count += 1;
    }
    let wanted = [1, 3, 1, 3, 5, 1, 1, 2, 4, 1, 1, 2, 0, 0, 1, 1, 2, 0, 0][code];
    if count != wanted || fields[..count].contains(&"") {
        return Err(("wrong-arguments", format!("{word} takes {wanted}")));
    }
    parse_fields(word, &fields).map(Some)
}

fn parse_sql(rest: Option<&str>) -> Parsed<Operation<'_>> {
    match rest.and_then(|rest| rest.split_once(' ')) {
        Some((path, statement)) if !path.is_empty() && !statement.is_empty() => {
            Ok(Operation::Sql { path: parse_path(path)?, statement })
        }
        _ => Err(("wrong-arguments", "sql takes a path and a statement".into())),
    }
}

fn parse_fields<'a>(word: &str, f: &[&'a str; 5]) -> Parsed<Operation<'a>> {
    Ok(match word {
        "mkdir" => Operation::Mkdir { path: parse_path(f[0])? },
        "open" => Operation::Open {
            slot: parse_slot(f[0])?,
            path: parse_path(f[1])?,
            flags: parse_flags(f[2])?,
        },
        "close" => Operation::Close { slot: parse_slot(f[0])? },
        "read" => {
            let slot = parse_slot(f[0])?;
            let (offset, length) = parse_range(f[1], f[2])?;
            Operation::Read { slot, offset, length }
        }
        "write" => {
            let slot = parse_slot(f[0])?;
            let (offset, length) = parse_range(f[1], f[2])?;
            let seed = parse_number(f[3])?;
            let compressibility = parse_below(f[4], 100, "compressibility")? as u8;
            Operation::Write { slot, offset, length, seed, compressibility }
        }
        "fsync" => Operation::Fsync { slot: parse_slot(f[0])? },
        "fdatasync" => Operation::Fdatasync { slot: parse_slot(f[0])? },
        "truncate" => Operation::Truncate { slot: parse_slot(f[0])?, length: parse_number(f[1])? },
        "fadvise" => {
            let slot = parse_slot(f[0])?;
            let offset = parse_number(f[1])?;
            let length = parse_number(f[2])?;
            check_end(offset, length)?;
            Operation::Fadvise { slot, offset, length, advice: parse_advice(f[3])? }
        }
        "unlink" => Operation::Unlink { path: parse_path(f[0])? },
        "rmdir" => Operation::Rmdir { path: parse_path(f[0])? },
        "rename" => Operation::Rename { old: parse_path(f[0])?, new: parse_path(f[1])? },
        "sync" => Operation::Sync,
        "drop_caches" => Operation::DropCaches,
        "pause" => Operation::Pause { ns: parse_number(f[0])? },
        "compute" => Operation::Compute { steps: parse_number(f[0])? },
        "prepared" => Operation::Prepared,
        "mark" => Operation::Mark,
        _ => unreachable!("the word was looked up"),
    })
}

fn parse_number(field: &str) -> Parsed<u64> {
    let bad = || ("bad-number", format!("'{field}' is not a number from 0 to 2^63 - 1"));
    let digits = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || field.len() > 1 && field.starts_with('0') {
        return Err(bad());
    }
    field.parse().ok().filter(|&number| number <= i64::MAX as u64).ok_or_else(bad)
}

fn parse_below(field: &str, max: u64, what: &str) -> Parsed<u64> {
    let number = parse_number(field)?;
    if number > max {
        return Err(("bad-number", format!("{what} {number} is above {max}")));
    }
    Ok(number)
}

fn parse_slot(field: &str) -> Parsed<usize> {
    Ok(parse_below(field, SLOTS as u64 - 1, "slot")? as usize)
}

fn parse_range(offset: &str, length: &str) -> Parsed<(u64, u64)> {
    let offset = parse_number(offset)?;
    let length = parse_below(length, LENGTH_MAX, "length")?;
    if length == 0 {
        return Err(("bad-number", "length 0".into()));
    }
    check_end(offset, length)?;
    Ok((offset, length))
}

fn check_end(offset: u64, length: u64) -> Parsed<()> {
    if offset + length > i64::MAX as u64 {
        return Err(("bad-number", format!("{offset} + {length} is above 2^63 - 1")));
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
        return Err(("bad-path", format!("'{field}'")));
    }
    Ok(field)
}

fn parse_flags(field: &str) -> Parsed<Flags> {
    let bad = || ("bad-flags", format!("'{field}'"));
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
    found.map(|&(_, advice)| advice).ok_or_else(|| ("bad-advice", format!("'{field}'")))
}

impl Operation<'_> {
    /// Index of the operation's name in [`NAMES`].
    pub fn code(&self) -> usize {
        match self {
            Operation::Mkdir { .. } => 0,
            Operation::Open { .. } => 1,
            Operation::Close { .. } => 2,
            Operation::Read { .. } => 3,
            Operation::Write { .. } => 4,
            Operation::Fsync { .. } => 5,
            Operation::Fdatasync { .. } => 6,
            Operation::Truncate { .. } => 7,
            Operation::Fadvise { .. } => 8,
            Operation::Unlink { .. } => 9,
            Operation::Rmdir { .. } => 10,
            Operation::Rename { .. } => 11,
            Operation::Sync => 12,
            Operation::DropCaches => 13,
            Operation::Pause { .. } => 14,
            Operation::Compute { .. } => 15,
            Operation::Sql { .. } => 16,
            Operation::Prepared => 17,
            Operation::Mark => 18,
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
            | Operation::Fadvise { slot, .. } => Some(slot),
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
            Operation::Read { slot, offset, length } => write!(out, " {slot} {offset} {length}"),
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
            Operation::Sql { path, statement } => write!(out, " {path} {statement}"),
            Operation::Sync | Operation::DropCaches | Operation::Prepared | Operation::Mark => {
                Ok(())
            }
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
