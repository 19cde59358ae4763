//! Compressed sizes of LZO1X-1 before 3.9: lib/lzo/lzo1x_compress.c of 2.6.37 (LZO 2.02), for up to
//! 4,096 bytes.
//!
//! Every position is searched, and matches of three bytes count. The kernel keeps two earlier
//! positions for hashes of four bytes. Only sizes are computed. Left out: behaviour beyond 16 KiB,
//! because a page is shorter; and the kernel's dictionary is not cleared, so an earlier page in the
//! same memory may yield an extra candidate.

use super::lzo::{literals_size, match_size, tail_size, END_MARKER_BYTES, M2_OFFSET_MAX};
use super::work::LzoWork;
use super::PAGE_BYTES_MAX;

const POSITIONS: usize = 1 << 14;
/// No match begins in the last bytes. Input up to this length has none.
const TAIL_BYTES: usize = 13;
/// No match begins in the first bytes.
const HEAD_BYTES: usize = 4;
const MATCH_BYTES_MIN: usize = 3;
/// No position.
const NONE: u16 = u16::MAX;

/// The work on so many random bytes, in which every position is searched without a match.
pub(super) fn work_on_random(bytes: usize) -> LzoWork {
    let searched = bytes.saturating_sub(HEAD_BYTES + TAIL_BYTES) as u32;
    LzoWork { searched, literal_bytes: bytes as u32, ..LzoWork::default() }
}

/// The dictionary: the last position of each hash.
pub(super) struct Lzo202 {
    last: Vec<u16>,
    work: LzoWork,
}

impl Lzo202 {
    pub(super) fn new() -> Lzo202 {
        Lzo202 { last: vec![NONE; POSITIONS], work: LzoWork::default() }
    }

    /// The work of the last compression.
    pub(super) fn work(&self) -> LzoWork {
        self.work
    }

    /// The compressed size, which may exceed the input's.
    pub(super) fn size(&mut self, data: &[u8]) -> usize {
        assert!(data.len() <= PAGE_BYTES_MAX);
        self.work = LzoWork { literal_bytes: data.len() as u32, ..LzoWork::default() };
        if data.len() <= TAIL_BYTES {
            return tail_size(data.len(), true) + END_MARKER_BYTES;
        }
        self.last.fill(NONE);
        let end = data.len() - TAIL_BYTES;
        let (mut size, mut at, mut literals_at) = (0, HEAD_BYTES, 0);
        while at < end || at == HEAD_BYTES {
            self.work.searched += 1;
            let Some(from) = self.candidate(data, at) else {
                at += 1;
                continue;
            };
            let same = data[from..].iter().zip(&data[at..]).take_while(|(one, other)| one == other);
            let length = same.count();
            self.work.matches += 1;
            self.work.matched_bytes += length as u32;
            self.work.literal_bytes -= length as u32;
            size += literals_size(at - literals_at) + match_size(length, at - from);
            at += length;
            literals_at = at;
        }
        size + tail_size(data.len() - literals_at, size == 0) + END_MARKER_BYTES
    }

    /// The earlier position of one of the two hashes, if three bytes there are the same. Enters
    /// `at` in the slot examined last.
    fn candidate(&mut self, data: &[u8], at: usize) -> Option<usize> {
        let first = hash(data, at);
        // Three equal bytes suffice at a small offset; otherwise a fourth has to be equal.
        let second = (first & 0x7ff) ^ ((POSITIONS / 2) | 0x1f);
        let worth = |slot: usize| {
            let from = usize::from(self.last[slot]);
            let known = self.last[slot] != NONE;
            known.then_some(from).map(|from| {
                at - from <= M2_OFFSET_MAX
                    || data[from + MATCH_BYTES_MIN] == data[at + MATCH_BYTES_MIN]
            })
        };
        // The second slot is examined only if the first has a candidate that is too far away.
        let (slot, tried) = match worth(first) {
            None => (first, false),
            Some(true) => (first, true),
            Some(false) => (second, worth(second) == Some(true)),
        };
        let from = usize::from(core::mem::replace(&mut self.last[slot], at as u16));
        let same =
            |from: usize| data[from..from + MATCH_BYTES_MIN] == data[at..at + MATCH_BYTES_MIN];
        (tried && same(from)).then_some(from)
    }
}

/// The hash of the four bytes at a position.
fn hash(data: &[u8], at: usize) -> usize {
    let byte = |index: usize| usize::from(data[at + index]);
    let mixed = ((((byte(3) << 6 ^ byte(2)) << 5) ^ byte(1)) << 5) ^ byte(0);
    (mixed.wrapping_mul(0x21) >> 5) % POSITIONS
}
