//! Compressed sizes of LZO1X-1: lib/lzo/lzo1x_compress.c since 3.9 (bitstream version 0, "lzo"; not
//! "lzo-rle"), for up to 4,096 bytes.
//!
//! The search tries positions in order, in steps that grow with the distance from the last match.
//! Each hash of 4 bytes has one earlier position. Only sizes are computed. Left out: behaviour
//! beyond 16 KiB (far matches, the second pass over long input), because a page is shorter.

use super::work::LzoWork;
use super::PAGE_BYTES_MAX;

const HASH_BITS: u32 = 13;
/// No match begins in the last bytes.
const TAIL_BYTES: usize = 20;
/// Shorter input is stored as literals.
const SEARCHED_BYTES_MIN: usize = 32;
/// No match begins in the first bytes.
const HEAD_BYTES: usize = 4;
const MATCH_BYTES_MIN: usize = 4;
/// A match up to this length (M2) takes two bytes if its offset is small enough.
const M2_BYTES_MAX: usize = 8;
pub(super) const M2_OFFSET_MAX: usize = 0x800;
/// Other matches (M3) take three bytes, and more if they are longer than this.
const M3_BYTES_MAX: usize = 33;
/// Literals at the beginning that one byte can count.
const FIRST_LITERALS_MAX: usize = 238;
pub(super) const END_MARKER_BYTES: usize = 3;

/// The work on so many random bytes, which contain no match.
pub(super) fn work_on_random(bytes: usize) -> LzoWork {
    let searched = SEARCHED_IN_RANDOM[bytes].into();
    LzoWork { searched, literal_bytes: bytes as u32, ..LzoWork::default() }
}

/// Positions searched in so many bytes without a match, by the steps of `Lzo::size`.
static SEARCHED_IN_RANDOM: [u16; PAGE_BYTES_MAX + 1] = {
    let mut table = [0; PAGE_BYTES_MAX + 1];
    let mut bytes = SEARCHED_BYTES_MIN;
    let (mut at, mut searched) = (HEAD_BYTES + 1, 0);
    while bytes <= PAGE_BYTES_MAX {
        while at < bytes - TAIL_BYTES {
            searched += 1;
            at += 1 + (at >> 5);
        }
        table[bytes] = searched;
        bytes += 1;
    }
    table
};

/// The dictionary: the last position of each hash.
pub(super) struct Lzo {
    last: Vec<u16>,
    work: LzoWork,
}

impl Lzo {
    pub(super) fn new() -> Lzo {
        Lzo { last: vec![0; 1 << HASH_BITS], work: LzoWork::default() }
    }

    /// The work of the last compression.
    pub(super) fn work(&self) -> LzoWork {
        self.work
    }

    /// The compressed size, which may exceed the input's.
    pub(super) fn size(&mut self, data: &[u8]) -> usize {
        assert!(data.len() <= PAGE_BYTES_MAX);
        self.work = LzoWork { literal_bytes: data.len() as u32, ..LzoWork::default() };
        if data.len() < SEARCHED_BYTES_MIN {
            return tail_size(data.len(), true) + END_MARKER_BYTES;
        }
        self.last.fill(0);
        let end = data.len() - TAIL_BYTES;
        let (mut size, mut at, mut literals_at) = (0, HEAD_BYTES, 0);
        loop {
            at += 1 + ((at - literals_at) >> 5);
            // Right after a match the next position is searched without a step.
            while at < end {
                let Some(from) = self.candidate(data, at) else { break };
                let length = match_bytes(data, from, at, end);
                size += literals_size(at - literals_at) + match_size(length, at - from);
                self.work.matches += 1;
                self.work.matched_bytes += length as u32;
                self.work.literal_bytes -= length as u32;
                at += length;
                literals_at = at;
            }
            if at >= end {
                break;
            }
        }
        size + tail_size(data.len() - literals_at, size == 0) + END_MARKER_BYTES
    }

    /// The last position with the same hash, if its four bytes are the same. Enters `at` in its
    /// place.
    #[inline]
    fn candidate(&mut self, data: &[u8], at: usize) -> Option<usize> {
        self.work.searched += 1;
        let value = four_bytes(data, at);
        let hash = value.wrapping_mul(0x1824_429d) >> (32 - HASH_BITS);
        let from = usize::from(core::mem::replace(&mut self.last[hash as usize], at as u16));
        (four_bytes(data, from) == value).then_some(from)
    }
}

#[inline]
fn four_bytes(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

/// The length of the match. Its end is checked only every eight bytes, so it may reach into the
/// tail.
fn match_bytes(data: &[u8], from: usize, at: usize, end: usize) -> usize {
    let mut length = MATCH_BYTES_MIN;
    loop {
        let alike = data[from + length..].iter().zip(&data[at + length..]).take(8);
        let count = alike.take_while(|(one, other)| one == other).count();
        length += count;
        if count < 8 || at + length >= end {
            return length;
        }
    }
}

/// The size of literals between matches. The match before them encodes up to three.
pub(super) fn literals_size(count: usize) -> usize {
    match count {
        0..=3 => count,
        4..=18 => 1 + count,
        _ => 2 + (count - 19) / 255 + count,
    }
}

pub(super) fn tail_size(count: usize, nothing_before: bool) -> usize {
    if nothing_before && count > 0 && count <= FIRST_LITERALS_MAX {
        1 + count
    } else {
        literals_size(count)
    }
}

pub(super) fn match_size(length: usize, offset: usize) -> usize {
    if length <= M2_BYTES_MAX && offset <= M2_OFFSET_MAX {
        2
    } else if length <= M3_BYTES_MAX {
        3
    } else {
        4 + (length - M3_BYTES_MAX - 1) / 255
    }
}
