//! The bytes that an operation writes: FILL of docs/reference/operations.md.
//!
//! Invariant: a [`Fill`] was checked against its operation's OFFSET and LENGTH.

use super::fields::{parse_below, parse_number};
use super::{refuse, Parsed, PAGE_BYTES};
use crate::content::PieceSizes;

/// The bits of a byte of TEXT, where BITS does not say how many.
const TEXT_BITS: u32 = 6;
/// The most bytes of a `data` line.
const DATA_BYTES_MAX: usize = 3000;

/// The bytes that an operation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill<'a> {
    /// Generated; this percentage of 64-byte lines is zero.
    Even(u8),
    /// Generated page by page, with the sizes of [`pieces`].
    Pieces(&'a str),
    /// Those of the `data` lines in this part of the file, decoded by [`data_bytes`].
    Data(&'a str),
}

impl Fill<'_> {
    /// How many of `length` bytes the program makes one by one: of pieces those before the zeroes,
    /// and none of `data` lines, which it has already.
    pub fn generated_bytes(&self, length: u64) -> u64 {
        match self {
            Fill::Even(_) => length,
            Fill::Pieces(text) => {
                pieces(text).map(|piece| u64::from(piece.common) + u64::from(piece.own)).sum()
            }
            Fill::Data(_) => 0,
        }
    }
}

/// The pieces of a write, in order. The text is already checked.
pub fn pieces(text: &str) -> impl Iterator<Item = PieceSizes> + '_ {
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    text.split(',').flat_map(move |piece| {
        let (sizes, times) = piece.split_once('x').unwrap_or((piece, "1"));
        let [common, own, text, bits, zeroes, runs] = fields(sizes).map(|field| field.map(number));
        let [common, own, text, zeroes, runs] =
            [common, own, text, zeroes, runs].map(Option::unwrap_or_default);
        let bits = bits.unwrap_or(TEXT_BITS);
        let piece = PieceSizes { common, zeroes, own, runs, text, bits };
        core::iter::repeat_n(piece, number(times) as usize)
    })
}

/// COMMON, OWN, TEXT, BITS, ZEROES and RUNS of a piece, as text.
fn fields(sizes: &str) -> [Option<&str>; 6] {
    let cut = |text, at| match str::split_once(text, at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    };
    let (rest, runs) = cut(sizes, 's');
    let (rest, zeroes) = cut(rest, 'z');
    let (rest, bits) = cut(rest, 'b');
    let (rest, text) = cut(rest, 't');
    let (common, own) = cut(rest, '+');
    [Some(common), Some(own.unwrap_or("")), text, bits, zeroes, runs]
}

/// Parses the FILL of `length` bytes at `offset`.
pub(super) fn parse_fill(field: &str, offset: u64, length: u64, seed: u64) -> Parsed<Fill<'_>> {
    if field == "data" {
        if seed != 0 {
            return Err(refuse("bad-fill", format!("data with seed {seed}, which is to be 0")));
        }
        return Ok(Fill::Data(""));
    }
    if !field.contains('+') {
        let bad = |_| refuse("bad-fill", format!("'{field}' is no FILL"));
        return Ok(Fill::Even(parse_below(field, 100, "compressibility").map_err(bad)? as u8));
    }
    check_pieces(field, offset, length)?;
    Ok(Fill::Pieces(field))
}

fn check_pieces(field: &str, offset: u64, length: u64) -> Parsed<()> {
    let bad = |_| refuse("bad-fill", format!("'{field}' are no pieces"));
    let end = offset + length;
    let mut at = offset;
    for piece in field.split(',') {
        let (sizes, times) = match piece.split_once('x') {
            Some((sizes, times)) => (sizes, parse_number(times).map_err(bad)?),
            None => (piece, 1),
        };
        let [common, own, text, bits, zeroes, runs] = fields(sizes)
            .map(|field| field.map(|field| parse_number(field).map_err(bad)).transpose());
        let bytes = common?.unwrap_or(0).saturating_add(own?.unwrap_or(0));
        let text = text?;
        if text.is_some_and(|text| text == 0 || text > bytes) {
            return Err(refuse("bad-fill", format!("'{piece}' has more text than bytes, or none")));
        }
        let bits = bits?;
        if bits.is_some_and(|bits| text.is_none() || !(1..=7).contains(&bits)) {
            return Err(refuse("bad-fill", format!("'{piece}' has no text of 1 to 7 bits")));
        }
        let zeroes = zeroes?;
        if zeroes == Some(0) {
            return Err(refuse("bad-fill", format!("'{piece}' has 0 zeroes")));
        }
        if runs?.is_some_and(|runs| runs == 0 || runs > bytes) {
            return Err(refuse("bad-fill", format!("'{piece}' has more runs than bytes, or none")));
        }
        let bytes = bytes.saturating_add(zeroes.unwrap_or(0));
        if times == 0 || times == 1 && sizes.len() < piece.len() {
            return Err(refuse("bad-fill", format!("'{piece}' is a piece {times} times")));
        }
        for _ in 0..times {
            let stop = end.min((at / PAGE_BYTES + 1) * PAGE_BYTES);
            if at == end || bytes > stop - at {
                return Err(refuse("bad-fill", format!("'{piece}' does not fit")));
            }
            at = stop;
        }
    }
    if at < end {
        return Err(refuse("bad-fill", format!("{} bytes without a piece", end - at)));
    }
    Ok(())
}

fn sextet(character: u8) -> Option<u8> {
    Some(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// How many bytes the checked BASE64 of a `data` line encodes.
pub(super) fn data_len(field: &str) -> usize {
    field.len() / 4 * 3 - field.bytes().rev().take_while(|&character| character == b'=').count()
}

/// Checks the BASE64 of a `data` line.
pub(super) fn parse_data(field: &str) -> Parsed<()> {
    let bad = || refuse("bad-data", format!("'{field}' is no BASE64"));
    let characters = field.trim_end_matches('=').as_bytes();
    let padding = field.len() - characters.len();
    if field.is_empty() || field.len() % 4 != 0 || padding > 2 {
        return Err(bad());
    }
    if !characters.iter().all(|&character| sextet(character).is_some()) {
        return Err(bad());
    }
    // The unused bits of the last character have to be 0.
    let last = characters.last().and_then(|&character| sextet(character)).ok_or_else(bad)?;
    if last % (1 << (2 * padding)) != 0 {
        return Err(bad());
    }
    let bytes = data_len(field);
    if bytes > DATA_BYTES_MAX {
        let detail = format!("{bytes} bytes in a line, at most {DATA_BYTES_MAX}");
        return Err(refuse("bad-data", detail));
    }
    Ok(())
}

/// Decodes the checked `data` lines of a part of a file.
pub fn data_bytes(lines: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines.len() / 4 * 3);
    for field in lines.split('\n').filter_map(|line| line.strip_prefix("data ")) {
        for four in field.as_bytes().chunks(4) {
            let value = |at: usize| u32::from(four.get(at).and_then(|&c| sextet(c)).unwrap_or(0));
            let all = value(0) << 18 | value(1) << 12 | value(2) << 6 | value(3);
            let padding = four.iter().filter(|&&character| character == b'=').count();
            bytes.extend_from_slice(&all.to_be_bytes()[1..4 - padding]);
        }
    }
    bytes
}
