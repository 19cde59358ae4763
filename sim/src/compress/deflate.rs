//! Compressed sizes of the kernel's zlib (lib/zlib_deflate/deflate.c, derived from zlib 1.1), for
//! up to 4,096 bytes.
//!
//! It has two users. JFFS2 uses level 3 in pieces, each flushed (compr_zlib.c). The crypto API's
//! "deflate" uses level 6 and a window of 2 KiB in one call. Current zlib gives other sizes:
//! between two pieces it enters the last two positions of the first into its hashes, and its
//! partial flush ends with one empty block where this one may write two.
//!
//! Left out: the compressed bytes; behaviour of longer input only (blocks that end by themselves).

use super::huffman::{BlockBits, Codes, CodesWork, FIXED_END_BITS};
use super::work::DeflateWork;
use super::PAGE_BYTES_MAX;
use crate::content::Source;
use std::sync::OnceLock;

const MATCH_BYTES_MIN: usize = 3;
const MATCH_BYTES_MAX: usize = 258;
const LOOKAHEAD_MIN: usize = MATCH_BYTES_MAX + MATCH_BYTES_MIN + 1;
const HASH_BITS: u32 = 15;
const HEADER_BYTES: usize = 2;
const TRAILER_BYTES: usize = 4;
const STORED_HEADER_BYTES: usize = 4;
/// The size of an empty block with the fixed code.
const EMPTY_BLOCK_BITS: u32 = 3 + FIXED_END_BITS;
/// Bytes that JFFS2 reserves for the end of the stream (`STREAM_END_SPACE`).
const STREAM_END_BYTES: usize = 12;

/// The search effort: a line of `configuration_table`, and the window.
struct Effort {
    /// After a match of this length the search for a better one is a quarter as long.
    good_bytes: usize,
    /// Level 3: the bytes of a longer match are not entered into the hashes. Level 6: after a
    /// longer match no better one is searched for.
    lazy_bytes: usize,
    nice_bytes: usize,
    chain: usize,
    window_bytes: usize,
}

const LEVEL_3: Effort =
    Effort { good_bytes: 4, lazy_bytes: 6, nice_bytes: 32, chain: 32, window_bytes: 32 << 10 };
const LEVEL_6_2_KIB: Effort =
    Effort { good_bytes: 8, lazy_bytes: 16, nice_bytes: 128, chain: 128, window_bytes: 2 << 10 };

impl Effort {
    fn distance_max(&self) -> usize {
        self.window_bytes - LOOKAHEAD_MIN
    }
}

#[derive(Clone, Copy)]
struct Match {
    bytes: usize,
    start: usize,
}

const NO_MATCH: Match = Match { bytes: MATCH_BYTES_MIN - 1, start: 0 };

/// The last position of each hash, and the one before each position.
pub(super) struct Deflate {
    /// 0 means none: the first position is never matched.
    head: Vec<u16>,
    previous: Vec<u16>,
    codes: Codes,
    work: DeflateWork,
}

/// The work on random bytes hardly depends on their values, so one sample of each length stands for
/// all.
static OF_RANDOM: RandomWork = RandomWork {
    jffs2: [const { OnceLock::new() }; PAGE_BYTES_MAX + 1],
    crypto: [const { OnceLock::new() }; PAGE_BYTES_MAX + 1],
};

struct RandomWork {
    jffs2: [OnceLock<DeflateWork>; PAGE_BYTES_MAX + 1],
    crypto: [OnceLock<DeflateWork>; PAGE_BYTES_MAX + 1],
}

fn drawn(bytes: usize) -> Vec<u8> {
    let mut drawn = vec![0; bytes];
    Source { seed: 0, compressibility: 0 }.fill(0, &mut drawn);
    drawn
}

/// The work of JFFS2's zlib on random bytes with so much room; none if it is not tried.
pub(super) fn jffs2_work_on_random(room: usize) -> Option<DeflateWork> {
    let work = || Deflate::new().jffs2(&drawn(room), room).1.unwrap_or_default();
    (room > STREAM_END_BYTES).then(|| *OF_RANDOM.jffs2[room].get_or_init(work))
}

/// The work of the crypto API's deflate on so many random bytes.
pub(super) fn crypto_work_on_random(bytes: usize) -> DeflateWork {
    let work = || {
        let mut deflate = Deflate::new();
        deflate.crypto(&drawn(bytes));
        deflate.work()
    };
    *OF_RANDOM.crypto[bytes].get_or_init(work)
}

impl Deflate {
    pub(super) fn new() -> Deflate {
        let (head, previous) = (vec![0; 1 << HASH_BITS], vec![0; PAGE_BYTES_MAX]);
        Deflate { head, previous, codes: Codes::new(), work: DeflateWork::default() }
    }

    /// The work of the last compression.
    pub(super) fn work(&mut self) -> DeflateWork {
        let CodesWork { blocks, symbols, coded } = self.codes.take_work();
        DeflateWork { blocks, symbols, coded, ..self.work }
    }

    fn reset(&mut self) {
        self.head.fill(0);
        self.codes.begin();
        self.codes.take_work();
        self.work = DeflateWork::default();
    }

    /// `jffs2_zlib_compress`: returns bytes consumed and produced, and the work if it was tried.
    pub(super) fn jffs2(
        &mut self,
        data: &[u8],
        room: usize,
    ) -> (Option<(usize, usize)>, Option<DeflateWork>) {
        if room <= STREAM_END_BYTES {
            return (None, None);
        }
        let sizes = self.jffs2_sizes(data, room);
        (sizes, Some(self.work()))
    }

    /// Bytes consumed and produced, if that saves space and fits into `room`.
    ///
    /// Each piece is as long as the remaining room, as if it were incompressible. A whole page with
    /// room for a page is therefore two pieces: all but 12 bytes, and those 12.
    fn jffs2_sizes(&mut self, data: &[u8], room: usize) -> Option<(usize, usize)> {
        assert!(data.len() <= PAGE_BYTES_MAX);
        let space = room.checked_sub(STREAM_END_BYTES).filter(|space| *space > 0)?;
        self.reset();
        let mut stream = Stream { pending: HEADER_BYTES, ..Stream::default() };
        let mut taken = 0;
        while stream.given < space && taken < data.len() {
            stream.space = space - stream.given;
            let piece = stream.space.min(data.len() - taken);
            if !stream.flush() {
                continue;
            }
            self.search_greedily(&LEVEL_3, &data[..taken + piece], taken);
            taken += piece;
            stream.block(self.codes.finish(Some(piece)), piece);
            if stream.flush() {
                stream.align();
                stream.flush();
            }
        }
        stream.space += STREAM_END_BYTES;
        if !stream.flush() {
            return None;
        }
        stream.block(self.codes.finish(Some(0)), 0);
        stream.wind_up();
        if !stream.flush() {
            return None;
        }
        stream.pending += TRAILER_BYTES;
        stream.flush();
        (stream.pending == 0 && stream.given < taken).then_some((taken, stream.given))
    }

    /// The size of raw deflate, which may exceed the input's (crypto/deflate.c).
    pub(super) fn crypto(&mut self, data: &[u8]) -> usize {
        assert!(data.len() <= PAGE_BYTES_MAX);
        self.reset();
        let window_moved = self.search_lazily(&LEVEL_6_2_KIB, data);
        let mut stream = Stream::default();
        let stored = (!window_moved).then_some(data.len());
        stream.block(self.codes.finish(stored), data.len());
        stream.wind_up();
        stream.pending
    }

    /// Enters a position into the hashes; returns the previous one.
    #[inline]
    fn insert(&mut self, data: &[u8], at: usize) -> usize {
        let [one, two, three] = [data[at], data[at + 1], data[at + 2]].map(usize::from);
        self.work.inserted += 1;
        let hash = (one << 10 ^ two << 5 ^ three) & ((1 << HASH_BITS) - 1);
        let last = core::mem::replace(&mut self.head[hash], at as u16);
        self.previous[at] = last;
        usize::from(last)
    }

    /// The first of the longest matches that are longer than `best` (`longest_match`).
    fn longest(
        &mut self,
        effort: &Effort,
        data: &[u8],
        at: usize,
        head: usize,
        best: usize,
    ) -> Match {
        let rest = &data[at..];
        let nice = effort.nice_bytes.min(rest.len());
        let limit = at.saturating_sub(effort.distance_max());
        let mut chain = effort.chain;
        if best >= effort.good_bytes {
            chain >>= 2;
        }
        let mut found = Match { bytes: best, start: 0 };
        let mut from = head;
        while found.bytes < rest.len() {
            self.work.candidates += 1;
            if data[from + found.bytes] == rest[found.bytes] && data[from..from + 2] == rest[..2] {
                let bytes = common_bytes(&data[from..], &rest[..rest.len().min(MATCH_BYTES_MAX)]);
                self.work.compared_bytes += bytes as u32;
                if bytes > found.bytes {
                    found = Match { bytes, start: from };
                    if bytes >= nice {
                        break;
                    }
                }
            }
            from = usize::from(self.previous[from]);
            chain -= 1;
            if from <= limit || chain == 0 {
                break;
            }
        }
        Match { bytes: found.bytes.min(rest.len()), ..found }
    }

    /// `deflate_fast`: the bytes from `at` on, as one block.
    fn search_greedily(&mut self, effort: &Effort, data: &[u8], mut at: usize) {
        self.work.bytes += (data.len() - at) as u32;
        while at < data.len() {
            self.work.positions += 1;
            let lookahead = data.len() - at;
            let head = if lookahead >= MATCH_BYTES_MIN { self.insert(data, at) } else { 0 };
            let mut found = NO_MATCH;
            if head > 0 {
                found = self.longest(effort, data, at, head, NO_MATCH.bytes);
            }
            if found.bytes < MATCH_BYTES_MIN {
                self.codes.literal(data[at]);
                at += 1;
                continue;
            }
            self.codes.repeat(found.bytes, at - found.start);
            if found.bytes <= effort.lazy_bytes && lookahead - found.bytes >= MATCH_BYTES_MIN {
                for inside in at + 1..at + found.bytes {
                    self.insert(data, inside);
                }
            }
            at += found.bytes;
        }
    }

    /// `deflate_slow`: all bytes, as one block. Returns whether the window moved, so that its
    /// beginning is lost.
    fn search_lazily(&mut self, effort: &Effort, data: &[u8]) -> bool {
        let mut window_moved = false;
        let (mut at, mut found, mut waiting) = (0, NO_MATCH, false);
        self.work.bytes += data.len() as u32;
        while at < data.len() {
            self.work.positions += 1;
            let lookahead = data.len() - at;
            window_moved |=
                lookahead < LOOKAHEAD_MIN && at >= effort.window_bytes + effort.distance_max();
            let gone = if window_moved { effort.window_bytes } else { 0 };
            let head = if lookahead >= MATCH_BYTES_MIN { self.insert(data, at) } else { 0 };
            let before = core::mem::replace(&mut found, NO_MATCH);
            let near = head > gone && at - head <= effort.distance_max();
            if near && before.bytes < effort.lazy_bytes {
                found = self.longest(effort, data, at, head, before.bytes);
            }
            if before.bytes >= MATCH_BYTES_MIN && found.bytes <= before.bytes {
                self.codes.repeat(before.bytes, at - 1 - before.start);
                let end = at - 1 + before.bytes;
                for inside in at + 1..end.min(data.len() - (MATCH_BYTES_MIN - 1)) {
                    self.insert(data, inside);
                }
                at = end;
                found = NO_MATCH;
                waiting = false;
            } else {
                if waiting {
                    self.codes.literal(data[at - 1]);
                }
                waiting = true;
                at += 1;
            }
        }
        if waiting {
            self.codes.literal(data[at - 1]);
        }
        self.work.slides += u32::from(window_moved);
        window_moved
    }
}

#[inline]
fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The stream's counters: the bytes given out, and those in `pending_buf` and its 16-bit buffer.
struct Stream {
    given: usize,
    /// The remaining output space (`avail_out`).
    space: usize,
    pending: usize,
    bits: u32,
    /// The length of the last end-of-block code, for [`Stream::align`].
    end_bits: u32,
}

impl Default for Stream {
    fn default() -> Self {
        Stream { given: 0, space: 0, pending: 0, bits: 0, end_bits: 8 }
    }
}

impl Stream {
    /// Bits leave two bytes at a time, and only if the next ones do not fit.
    fn put(&mut self, bits: u32) {
        let all = self.bits + bits;
        self.bits = if all == 0 { 0 } else { (all - 1) % 16 + 1 };
        self.pending += (all - self.bits) as usize / 8;
    }

    fn block(&mut self, block: BlockBits, stored_bytes: usize) {
        match block {
            BlockBits::Stored => {
                self.put(3);
                self.wind_up();
                self.pending += STORED_HEADER_BYTES + stored_bytes;
                self.end_bits = 8;
            }
            BlockBits::Coded { bits, end_bits } => {
                self.put(bits);
                self.end_bits = end_bits;
            }
        }
    }

    /// Pads the last byte (`bi_windup`).
    fn wind_up(&mut self) {
        self.pending += self.bits.div_ceil(8) as usize;
        self.bits = 0;
    }

    /// The bits that a partial flush appends to a block so that all of it can be decoded
    /// (`zlib_tr_align`).
    fn align(&mut self) {
        self.put_empty_block();
        if 1 + self.end_bits + EMPTY_BLOCK_BITS < 9 + self.bits {
            self.put_empty_block();
        }
        self.end_bits = FIXED_END_BITS;
    }

    fn put_empty_block(&mut self) {
        self.put(EMPTY_BLOCK_BITS);
        self.pending += self.bits as usize / 8;
        self.bits %= 8;
    }

    /// Gives the pending bytes out; returns false if no space is left afterwards.
    fn flush(&mut self) -> bool {
        let bytes = self.pending.min(self.space);
        self.pending -= bytes;
        self.space -= bytes;
        self.given += bytes;
        self.space > 0
    }
}
