//! Compressed sizes of the kernel's zstd (lib/zstd of Linux 5.16 to 6.1, which is zstd 1.4.10) at
//! level 3, as the crypto API's "zstd" uses it: matches by two hashes ("dfast"), one block of up to
//! 4,096 bytes in a frame of its own.
//!
//! The current library finds other matches and distributes bits differently. An eighth of generated
//! pages get another size from it. Mirrors zstd_double_fast.c, zstd_compress_literals.c and
//! zstd_compress_sequences.c; [`fse`] and [`literals`] are the entropy coders.
//!
//! Left out: the compressed bytes, dictionaries, dependence on an earlier block, input under 128
//! bytes (UBIFS does not compress it).

mod fse;
mod literals;

use super::work::{LiteralsWork, ZstdWork};
use super::PAGE_BYTES_MAX;
use fse::Code;

const BYTES_MIN: usize = 128;
/// A hash has as many bits as a position, the long one has one more
/// (`ZSTD_adjustCParams_internal`).
const POSITION_BITS_MAX: u32 = 12;
const MATCH_BYTES_MIN: usize = 3;
const HASH_READ_BYTES: usize = 8;
/// The step grows by one byte for every 256 literals since the last match.
const SEARCH_STRENGTH: usize = 8;
/// Offsets 1 to 3 refer to recently used offsets.
const REPEAT_OFFSETS: usize = 3;
const FIRST_OFFSET: usize = 1;
const MAGIC_AND_DESCRIPTOR_BYTES: usize = 5;
const BLOCK_HEADER_BYTES: usize = 3;

/// The minimum that a block or its literals have to save to stay compressed (`ZSTD_minGain`).
fn gain_min(bytes: usize) -> usize {
    (bytes >> 6) + 2
}

/// The work on random bytes, which contain no match. For a whole page no code is built, except for
/// one page in a thousand.
pub(super) fn work_on_random(bytes: &[u8]) -> ZstdWork {
    let searched = SEARCHED_IN_RANDOM[bytes.len()].into();
    let literals = if bytes.len() < PAGE_BYTES_MAX {
        literals::work(bytes)
    } else {
        LiteralsWork { counted: bytes.len() as u32, ..LiteralsWork::default() }
    };
    ZstdWork { searched, literals, ..ZstdWork::default() }
}

/// Positions searched in so many bytes without a match, by the steps of `search`.
static SEARCHED_IN_RANDOM: [u16; PAGE_BYTES_MAX + 1] = {
    let mut table = [0; PAGE_BYTES_MAX + 1];
    let (mut bytes, mut at, mut searched) = (HASH_READ_BYTES, 1, 0);
    while bytes <= PAGE_BYTES_MAX {
        while at < bytes - HASH_READ_BYTES {
            searched += 1;
            at += (at >> SEARCH_STRENGTH) + 1;
        }
        table[bytes] = searched;
        bytes += 1;
    }
    table
};

struct Sequence {
    literals: usize,
    /// 1 for the last offset used, or the offset plus 3.
    offset_value: usize,
    match_bytes: usize,
}

/// The last position of each hash of eight and of five bytes, and the sequences found with them. 0
/// means none: the first position is never matched.
pub(super) struct Zstd {
    long: Vec<u16>,
    short: Vec<u16>,
    position_bits: u32,
    sequences: Vec<Sequence>,
    literals: Vec<u8>,
    searched: u32,
}

impl Zstd {
    pub(super) fn new() -> Zstd {
        Zstd {
            long: vec![0; 2 << POSITION_BITS_MAX],
            short: vec![0; 1 << POSITION_BITS_MAX],
            position_bits: POSITION_BITS_MAX,
            sequences: Vec::with_capacity(PAGE_BYTES_MAX / MATCH_BYTES_MIN),
            literals: Vec::with_capacity(PAGE_BYTES_MAX),
            searched: 0,
        }
    }

    /// The size of a frame, which may exceed the input's.
    pub(super) fn size(&mut self, data: &[u8]) -> usize {
        assert!((BYTES_MIN..=PAGE_BYTES_MAX).contains(&data.len()));
        let content_size_bytes = if data.len() < 256 { 1 } else { 2 };
        let header = MAGIC_AND_DESCRIPTOR_BYTES + content_size_bytes + BLOCK_HEADER_BYTES;
        self.search(data);
        let block = self.block_size().filter(|size| *size < data.len() - gain_min(data.len()));
        header + block.unwrap_or(data.len())
    }

    /// The work of the last call of `size`.
    pub(super) fn work(&self) -> ZstdWork {
        let matched = self.sequences.iter().map(|sequence| sequence.match_bytes as u32).sum();
        ZstdWork {
            searched: self.searched,
            sequences: self.sequences.len() as u32,
            matched_bytes: matched,
            literals: literals::work(&self.literals),
            is_coded: !self.sequences.is_empty(),
        }
    }

    /// Literals, then sequences (`ZSTD_entropyCompressSequences`); none if it cannot be coded.
    fn block_size(&self) -> Option<usize> {
        let literals = literals::section_bytes(&self.literals);
        let count = self.sequences.len();
        let head = literals + if count < 128 { 1 } else { 2 };
        if count == 0 {
            return Some(head);
        }
        let sequences = self.sequences.iter();
        let codes = |code: fn(&Sequence) -> Code| sequences.clone().map(code).collect::<Vec<_>>();
        let streams = [
            fse::Stream::new(
                &fse::LITERAL_LENGTHS,
                codes(|s| fse::literal_length_code(s.literals)),
            )?,
            fse::Stream::new(&fse::OFFSETS, codes(|s| fse::offset_code(s.offset_value)))?,
            fse::Stream::new(
                &fse::MATCH_LENGTHS,
                codes(|s| fse::match_length_code(s.match_bytes - MATCH_BYTES_MIN)),
            )?,
        ];
        let tables: usize = streams.iter().map(|stream| stream.table_bytes).sum();
        let bits: usize = streams.iter().map(|stream| stream.bits).sum();
        let bit_bytes = (bits + 1).div_ceil(8);
        // Old decoders fail on a table that ends less than four bytes before the end.
        if let Some(last) = streams.iter().rposition(|stream| stream.has_own_table) {
            let behind: usize = streams[last..].iter().map(|stream| stream.table_bytes).sum();
            if behind + bit_bytes < 4 {
                return None;
            }
        }
        Some(head + 1 + tables + bit_bytes)
    }

    /// `ZSTD_compressBlock_doubleFast`: fills `sequences` and `literals`.
    fn search(&mut self, data: &[u8]) {
        self.sequences.clear();
        self.literals.clear();
        self.searched = 0;
        self.long.fill(0);
        self.short.fill(0);
        self.position_bits = (data.len() - 1).ilog2() + 1;
        let limit = data.len() - HASH_READ_BYTES;
        let mut offsets = [FIRST_OFFSET, 0];
        let (mut at, mut anchor) = (1, 0);
        while at < limit {
            let begin = at;
            self.searched += 1;
            let Some(found) = self.find(data, at, anchor, &mut offsets) else {
                at += ((at - anchor) >> SEARCH_STRENGTH) + 1;
                continue;
            };
            self.store(data, anchor, found);
            at = found.at + found.bytes;
            anchor = at;
            if at <= limit {
                self.insert_long(data, begin + 2);
                self.insert_long(data, at - 2);
                self.insert_short(data, begin + 2);
                self.insert_short(data, at - 1);
                at = self.repeat(data, at, limit, &mut offsets);
                anchor = at;
            }
        }
        self.literals.extend_from_slice(&data[anchor..]);
    }

    /// The match at a position or the next one: at the last offset, by the long hash, by the short
    /// one.
    fn find(
        &mut self,
        data: &[u8],
        at: usize,
        anchor: usize,
        offsets: &mut [usize; 2],
    ) -> Option<Found> {
        let long = self.insert_long(data, at);
        let short = self.insert_short(data, at);
        let next = at + 1;
        if offsets[0] > 0 && alike(data, next - offsets[0], next, 4) {
            let bytes = common_bytes(data, next - offsets[0], next);
            return Some(Found { at: next, bytes, offset_value: 1 });
        }
        let (at, from) = if let Some(from) = long.filter(|from| alike(data, *from, at, 8)) {
            (at, from)
        } else {
            let from = short.filter(|from| alike(data, *from, at, 4))?;
            match self.insert_long(data, next).filter(|from| alike(data, *from, next, 8)) {
                Some(long) => (next, long),
                None => (at, from),
            }
        };
        *offsets = [at - from, offsets[0]];
        let ahead = common_bytes(data, from, at);
        let room = (at - anchor).min(from);
        let back = (1..=room).take_while(|n| data[at - n] == data[from - n]).count();
        let offset_value = at - from + REPEAT_OFFSETS;
        Some(Found { at: at - back, bytes: ahead + back, offset_value })
    }

    /// Matches right after another, at the offset before the last; returns where they end.
    fn repeat(
        &mut self,
        data: &[u8],
        mut at: usize,
        limit: usize,
        offsets: &mut [usize; 2],
    ) -> usize {
        while at <= limit && offsets[1] > 0 && alike(data, at - offsets[1], at, 4) {
            let bytes = common_bytes(data, at - offsets[1], at);
            offsets.swap(0, 1);
            self.insert_short(data, at);
            self.insert_long(data, at);
            self.store(data, at, Found { at, bytes, offset_value: 1 });
            at += bytes;
        }
        at
    }

    fn store(&mut self, data: &[u8], anchor: usize, found: Found) {
        self.literals.extend_from_slice(&data[anchor..found.at]);
        let Found { at, bytes: match_bytes, offset_value } = found;
        self.sequences.push(Sequence { literals: at - anchor, offset_value, match_bytes });
    }

    fn insert_long(&mut self, data: &[u8], at: usize) -> Option<usize> {
        let hash = eight_bytes(data, at).wrapping_mul(0xcf1b_bcdc_b7a5_6463);
        exchange(&mut self.long[(hash >> (63 - self.position_bits)) as usize], at)
    }

    fn insert_short(&mut self, data: &[u8], at: usize) -> Option<usize> {
        let hash = (eight_bytes(data, at) << (64 - 40)).wrapping_mul(889_523_592_379);
        exchange(&mut self.short[(hash >> (64 - self.position_bits)) as usize], at)
    }
}

#[derive(Clone, Copy)]
struct Found {
    at: usize,
    bytes: usize,
    offset_value: usize,
}

fn exchange(entry: &mut u16, at: usize) -> Option<usize> {
    let last = core::mem::replace(entry, at as u16);
    (last > 0).then_some(usize::from(last))
}

fn eight_bytes(data: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes"))
}

fn alike(data: &[u8], from: usize, at: usize, bytes: usize) -> bool {
    data[from..from + bytes] == data[at..at + bytes]
}

fn common_bytes(data: &[u8], from: usize, at: usize) -> usize {
    data[from..].iter().zip(&data[at..]).take_while(|(one, other)| one == other).count()
}
