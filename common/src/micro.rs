//! The operations of `micro-read` and `micro-write`: one file, read or written in order or at
//! random (read-ahead paper, 3.1.1).
//!
//! What the two measure stands in `python/flashbed/plan/workloads/`, which makes its cases here.

use crate::draws::Draws;
use crate::layout::{line, settled, written_file, HEADER};
use std::collections::BTreeMap;
use std::fmt;

const FILE: &str = "file.bin";
/// Request size of the preparation.
const WRITE_BYTES: u64 = 4096;
/// The file's bytes do not depend on the case's seed, so all seeds share one preparation.
const CONTENT_SEED: u64 = 1;
/// A page of memory.
const PAGE_BYTES: u64 = 4096;

/// Where requests begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// One after the other.
    Sequential,
    /// At a random multiple of `step` bytes; `once` draws none twice.
    Random { step: u64, once: bool },
}

/// Requests to one file.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    /// How many.
    pub count: u64,
    /// Length of each.
    pub bytes: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// Of the random offsets.
    pub seed: u64,
}

/// Why there are no such requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// They have no bytes.
    Empty,
    /// Their pattern is none of the workload.
    Pattern(&'static str),
    /// One of so many bytes is longer than the file.
    Large(u64),
    /// So many, of so many bytes each, pass the end of a file of so many bytes.
    PastEnd(u64, u64, u64),
    /// There are fewer places than draws.
    Places,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Empty => write!(f, "requests of no bytes"),
            Unfit::Pattern(known) => write!(f, "{known}"),
            Unfit::Large(bytes) => {
                write!(f, "a request of {bytes} bytes does not fit the file: make it larger")
            }
            Unfit::PastEnd(count, bytes, file_bytes) => write!(
                f,
                "{count} requests of {bytes} bytes pass the end of a file of {file_bytes} bytes: \
                 make the file larger, or the requests fewer or random"
            ),
            Unfit::Places => write!(f, "the file does not have as many places to read"),
        }
    }
}

/// What a program does to the file besides its reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Between<'a> {
    /// Sleep between two reads.
    pub pause_ns: u64,
    /// The advice of `fadvise` for the whole file.
    pub advice: Option<&'a str>,
}

/// The preparation of reads and of random writes: the file is written in order.
#[must_use]
pub fn prepare(file_bytes: u64, settle_ns: u64) -> String {
    let file = written_file(FILE, file_bytes, WRITE_BYTES, CONTENT_SEED);
    settled([HEADER, &file].concat(), settle_ns)
}

/// The reads of `micro-read`.
///
/// # Errors
///
/// The pattern is none of its own, or the requests do not fit the file.
pub fn reads(pattern: &str, of: Requests, between: Between<'_>) -> Result<String, Unfit> {
    let order = match pattern {
        "sequential" => Order::Sequential,
        "random" => Order::Random { step: of.bytes, once: false },
        "random-once" => Order::Random { step: of.bytes, once: true },
        "random-page" => Order::Random { step: PAGE_BYTES, once: false },
        "random-byte" => Order::Random { step: 1, once: false },
        _ => return Err(Unfit::Pattern("micro-read has no such pattern")),
    };
    let offsets = of.offsets(order)?;
    let mut text = format!("{HEADER}drop_caches\nopen 0 {FILE} ro\n");
    if let Some(advice) = between.advice {
        line(&mut text, format_args!("fadvise 0 0 0 {advice}"));
    }
    text.push_str("mark\n");
    for (number, offset) in offsets.enumerate() {
        if between.pause_ns > 0 && number > 0 {
            line(&mut text, format_args!("pause {}", between.pause_ns));
        }
        line(&mut text, format_args!("read 0 {offset} {}", of.bytes));
    }
    Ok(text)
}

/// Preparation and body of `micro-write`.
///
/// # Errors
///
/// The pattern is none of its own, or the requests do not fit the file.
pub fn writes(pattern: &str, of: Requests, settle_ns: u64) -> Result<(String, String), Unfit> {
    let (order, flags) = match pattern {
        "sequential" => (Order::Sequential, "rw,create"),
        "random" => (Order::Random { step: of.bytes, once: false }, "rw"),
        _ => return Err(Unfit::Pattern("micro-write has the patterns sequential and random")),
    };
    let offsets = of.offsets(order)?;
    let mut text = format!("{HEADER}open 0 {FILE} {flags}\nmark\n");
    for offset in offsets {
        line(&mut text, format_args!("write 0 {offset} {} {} 0", of.bytes, CONTENT_SEED + 1));
    }
    let is_new = order == Order::Sequential;
    let before = if is_new {
        settled(HEADER.to_owned(), settle_ns)
    } else {
        prepare(of.file_bytes, settle_ns)
    };
    Ok((before, text))
}

impl Requests {
    /// Where each begins, in bytes.
    fn offsets(self, order: Order) -> Result<impl Iterator<Item = u64>, Unfit> {
        let Requests { count, bytes, file_bytes, seed } = self;
        if bytes == 0 {
            return Err(Unfit::Empty);
        }
        if file_bytes < bytes {
            return Err(Unfit::Large(bytes));
        }
        let is_past = count.saturating_mul(bytes) > file_bytes;
        match order {
            Order::Sequential if is_past => return Err(Unfit::PastEnd(count, bytes, file_bytes)),
            Order::Random { once: true, .. } if is_past => return Err(Unfit::Places),
            _ => {}
        }
        let mut draws = Draws::new(seed);
        let mut moved = BTreeMap::new();
        Ok((0..count).map(move |number| match order {
            Order::Sequential => number * bytes,
            Order::Random { step, once: false } => {
                draws.below((file_bytes - bytes) / step + 1) * step
            }
            Order::Random { step, once: true } => {
                // A place that was drawn gets the last one's number: it is not drawn again.
                let last = (file_bytes - bytes) / step - number;
                let at = draws.below(last + 1);
                let place = moved.get(&at).copied().unwrap_or(at);
                let instead = moved.get(&last).copied().unwrap_or(last);
                moved.insert(at, instead);
                place * step
            }
        }))
    }
}
