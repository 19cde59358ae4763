//! The Huffman codes of a deflate block, as lib/zlib_deflate/deftree.c builds them: a block's kind
//! and its size in bits.
//!
//! The choice among codes of equal cost matters, because the code lengths are part of the block.
//! The heap's order and the shortening of too long codes are therefore the kernel's. Only code
//! lengths are computed, not the codes.

use super::PAGE_BYTES_MAX;

const END_OF_BLOCK: usize = 256;
const LITERAL_CODES: usize = 286;
const DISTANCE_CODES: usize = 30;
const LENGTH_CODES: usize = 19;
const CODE_BITS_MAX: usize = 15;
const LENGTH_CODE_BITS_MAX: usize = 7;
const NODES_MAX: usize = 2 * LITERAL_CODES + 1;
const MATCH_BYTES_MIN: usize = 3;
/// Bits for a block's kind and the last-block flag.
const BLOCK_TYPE_BITS: u32 = 3;
/// The end-of-block code in the fixed code.
pub(super) const FIXED_END_BITS: u32 = 7;
const FIXED_DISTANCE_BITS: u32 = 5;

/// The order in which the lengths of the length code are sent. Zeros at its end are left out.
const LENGTH_ORDER: [usize; LENGTH_CODES] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const REPEAT_3_TO_6: usize = 16;
const ZEROS_3_TO_10: usize = 17;
const ZEROS_11_TO_138: usize = 18;

fn literal_extra_bits(code: usize) -> u32 {
    match code {
        265..=284 => (code as u32 - 261) / 4,
        _ => 0,
    }
}

fn distance_extra_bits(code: usize) -> u32 {
    (code as u32 / 2).saturating_sub(1)
}

fn length_extra_bits(code: usize) -> u32 {
    match code {
        REPEAT_3_TO_6 => 2,
        ZEROS_3_TO_10 => 3,
        ZEROS_11_TO_138 => 7,
        _ => 0,
    }
}

fn fixed_literal_bits(code: usize) -> u32 {
    match code {
        144..=255 => 9,
        256..=279 => 7,
        _ => 8,
    }
}

/// The code of a match length, from 3 to 258 bytes.
fn literal_code(match_bytes: usize) -> usize {
    match match_bytes - MATCH_BYTES_MIN {
        255 => 285,
        short @ 0..8 => 257 + short,
        more => {
            let extra = more.ilog2() as usize - 2;
            257 + 4 * extra + (more >> extra)
        }
    }
}

/// The code of a match distance.
fn distance_code(distance: usize) -> usize {
    match distance - 1 {
        near @ 0..4 => near,
        far => {
            let extra = far.ilog2() as usize - 1;
            2 * extra + (far >> extra)
        }
    }
}

/// The bits of a block in the shortest form, found by [`Codes::finish`].
pub(super) enum BlockBits {
    /// Stored: copied after the block's type.
    Stored,
    /// Coded: type, trees if there are any, data and end; and the length of the end-of-block code.
    Coded { bits: u32, end_bits: u32 },
}

/// The content of the current block, and memory for building its codes.
pub(super) struct Codes {
    literals: Tree<NODES_MAX>,
    distances: Tree<{ 2 * DISTANCE_CODES + 1 }>,
    lengths: Tree<{ 2 * LENGTH_CODES + 1 }>,
    heap: Heap,
    /// Literals and matches of the current block.
    counted: u32,
    /// The work since [`Codes::take_work`]: blocks, leaves of trees, coded literals and matches.
    work: CodesWork,
}

/// The work of building and using codes.
#[derive(Clone, Copy, Default)]
pub(super) struct CodesWork {
    pub blocks: u32,
    pub symbols: u32,
    pub coded: u32,
}

impl Codes {
    pub(super) fn new() -> Codes {
        let mut codes = Codes {
            literals: Tree::new(),
            distances: Tree::new(),
            lengths: Tree::new(),
            heap: Heap { nodes: [0; NODES_MAX], len: 0, keys: [0; NODES_MAX] },
            counted: 0,
            work: CodesWork::default(),
        };
        codes.begin();
        codes
    }

    /// Begins a block.
    pub(super) fn begin(&mut self) {
        self.literals.frequency[..LITERAL_CODES].fill(0);
        self.distances.frequency[..DISTANCE_CODES].fill(0);
        self.lengths.frequency[..LENGTH_CODES].fill(0);
        self.literals.frequency[END_OF_BLOCK] = 1;
        self.counted = 0;
    }

    /// The work since the last call.
    pub(super) fn take_work(&mut self) -> CodesWork {
        core::mem::take(&mut self.work)
    }

    #[inline]
    pub(super) fn literal(&mut self, byte: u8) {
        self.counted += 1;
        self.literals.frequency[usize::from(byte)] += 1;
    }

    #[inline]
    pub(super) fn repeat(&mut self, match_bytes: usize, distance: usize) {
        self.counted += 1;
        self.literals.frequency[literal_code(match_bytes)] += 1;
        self.distances.frequency[distance_code(distance)] += 1;
    }

    /// Ends the block (`zlib_tr_flush_block`). `stored_bytes` are its input bytes, if they are
    /// still in the window.
    pub(super) fn finish(&mut self, stored_bytes: Option<usize>) -> BlockBits {
        let Codes { literals, distances, lengths, heap, work, counted } = self;
        let mut cost = Cost::default();
        literals.build::<LITERAL_CODES>(heap, CODE_BITS_MAX, literal_extra_bits, &mut cost);
        cost.fixed += literals.fixed_bits::<LITERAL_CODES>(fixed_literal_bits, literal_extra_bits);
        distances.build::<DISTANCE_CODES>(heap, CODE_BITS_MAX, distance_extra_bits, &mut cost);
        let of_distance = |_| FIXED_DISTANCE_BITS;
        cost.fixed += distances.fixed_bits::<DISTANCE_CODES>(of_distance, distance_extra_bits);
        literals.count_lengths(lengths);
        distances.count_lengths(lengths);
        lengths.build::<LENGTH_CODES>(heap, LENGTH_CODE_BITS_MAX, length_extra_bits, &mut cost);
        let last = LENGTH_ORDER.iter().rposition(|&code| lengths.bits[code] != 0);
        work.blocks += 1;
        work.symbols += literals.leaves + distances.leaves + lengths.leaves;
        cost.own += 3 * (last.unwrap_or(0).max(3) as i32 + 1) + 5 + 5 + 4;

        let bytes = |bits: i32| (bits as usize + BLOCK_TYPE_BITS as usize).div_ceil(8);
        let shortest = bytes(cost.own).min(bytes(cost.fixed));
        let end_bits = u32::from(literals.bits[END_OF_BLOCK]);
        let block = if stored_bytes.is_some_and(|stored| stored + 4 <= shortest) {
            BlockBits::Stored
        } else if bytes(cost.fixed) == shortest {
            let bits = cost.fixed as u32 + BLOCK_TYPE_BITS;
            BlockBits::Coded { bits, end_bits: FIXED_END_BITS }
        } else {
            BlockBits::Coded { bits: cost.own as u32 + BLOCK_TYPE_BITS, end_bits }
        };
        if let BlockBits::Coded { .. } = block {
            work.coded += *counted;
        }
        self.begin();
        block
    }
}

/// The bits of a block with its own codes and with the fixed ones. Temporarily negative: unused
/// forced codes are subtracted before they are counted.
#[derive(Default)]
struct Cost {
    own: i32,
    fixed: i32,
}

struct Tree<const NODES: usize> {
    frequency: [u16; NODES],
    parent: [u16; NODES],
    bits: [u16; NODES],
    code_max: usize,
    /// Symbols that have a code.
    leaves: u32,
    /// Codes that were added to reach the minimum of two, and are not used.
    forced: [Option<usize>; 2],
}

impl<const NODES: usize> Tree<NODES> {
    fn new() -> Self {
        Tree {
            frequency: [0; NODES],
            parent: [0; NODES],
            bits: [0; NODES],
            code_max: 0,
            leaves: 0,
            forced: [None; 2],
        }
    }

    /// Builds the code lengths of `CODES` symbols (`build_tree`); returns the bits of all data with
    /// them.
    fn build<const CODES: usize>(
        &mut self,
        heap: &mut Heap,
        bits_max: usize,
        extra_bits: impl Fn(usize) -> u32,
        cost: &mut Cost,
    ) {
        self.collect::<CODES>(heap, cost);
        let by_frequency = self.join(heap, CODES);
        self.measure(&heap.nodes[by_frequency..], bits_max);
        for code in 0..=self.code_max {
            let bits = u32::from(self.bits[code]);
            if bits > 0 {
                cost.own += (u32::from(self.frequency[code]) * (bits + extra_bits(code))) as i32;
            }
        }
    }

    /// Puts the symbols that occur onto the heap, at least two.
    fn collect<const CODES: usize>(&mut self, heap: &mut Heap, cost: &mut Cost) {
        heap.len = 0;
        self.bits[..CODES].fill(0);
        self.forced = [None; 2];
        let mut code_max = None;
        for code in 0..CODES {
            if self.frequency[code] > 0 {
                heap.push_unordered(code, self.frequency[code]);
                code_max = Some(code);
            }
        }
        while heap.len < 2 {
            let code = match code_max {
                None => 0,
                Some(code) if code < 2 => code + 1,
                Some(_) => 0,
            };
            code_max = Some(code_max.map_or(code, |max: usize| max.max(code)));
            self.frequency[code] = 1;
            self.forced[heap.len] = Some(code);
            heap.push_unordered(code, 1);
            cost.own -= 1;
        }
        self.leaves = heap.len as u32;
        self.code_max = code_max.expect("two codes are on the heap");
    }

    /// Joins the two rarest nodes until one is left. Returns where the nodes begin in `heap.nodes`,
    /// the most frequent first.
    fn join(&mut self, heap: &mut Heap, codes: usize) -> usize {
        for at in (1..=heap.len / 2).rev() {
            heap.sift_down(at);
        }
        let mut sorted = NODES_MAX;
        let mut node = codes;
        while heap.len >= 2 {
            let rarest = heap.pop();
            let next = heap.nodes[1];
            sorted -= 2;
            heap.nodes[sorted + 1] = rarest;
            heap.nodes[sorted] = next;
            let (one, other) = (usize::from(rarest), usize::from(next));
            heap.join(node, one, other);
            self.parent[one] = node as u16;
            self.parent[other] = node as u16;
            heap.nodes[1] = node as u16;
            heap.sift_down(1);
            node += 1;
        }
        sorted -= 1;
        heap.nodes[sorted] = heap.nodes[1];
        sorted
    }

    /// Computes each code's length (`gen_bitlen`) from the root down.
    fn measure(&mut self, nodes: &[u16], bits_max: usize) {
        let mut count = [0_u16; CODE_BITS_MAX + 1];
        let mut too_long = 0;
        self.bits[usize::from(nodes[0])] = 0;
        for &node in &nodes[1..] {
            let node = usize::from(node);
            let mut bits = usize::from(self.bits[usize::from(self.parent[node])]) + 1;
            if bits > bits_max {
                bits = bits_max;
                too_long += 1;
            }
            self.bits[node] = bits as u16;
            if node <= self.code_max {
                count[bits] += 1;
            }
        }
        if too_long > 0 {
            self.shorten(nodes, bits_max, &mut count, too_long);
        }
    }

    /// Moves codes down until none is too long, then assigns lengths again, the longest to the
    /// rarest.
    fn shorten(&mut self, nodes: &[u16], bits_max: usize, count: &mut [u16], mut too_long: i32) {
        while too_long > 0 {
            let bits = (0..bits_max).rev().find(|&bits| count[bits] > 0).expect("a shorter code");
            count[bits] -= 1;
            count[bits + 1] += 2;
            count[bits_max] -= 1;
            too_long -= 2;
        }
        let leaves = nodes.iter().rev().map(|&node| usize::from(node));
        let mut leaves = leaves.filter(|&node| node <= self.code_max);
        for bits in (1..=bits_max).rev() {
            for _ in 0..count[bits] {
                self.bits[leaves.next().expect("a leaf for each length")] = bits as u16;
            }
        }
    }

    /// The bits of the data with the fixed code.
    fn fixed_bits<const CODES: usize>(
        &self,
        bits: impl Fn(usize) -> u32,
        extra_bits: impl Fn(usize) -> u32,
    ) -> i32 {
        let used = (0..CODES).filter(|code| !self.forced.contains(&Some(*code)));
        used.map(|code| u32::from(self.frequency[code]) * (bits(code) + extra_bits(code)))
            .sum::<u32>() as i32
    }

    /// Counts the symbols that encode the lengths (`scan_tree`).
    fn count_lengths(&self, lengths: &mut Tree<{ 2 * LENGTH_CODES + 1 }>) {
        let frequency = &mut lengths.frequency;
        let mut before = None;
        let mut at = 0;
        while at <= self.code_max {
            let bits = usize::from(self.bits[at]);
            let longest = match bits {
                0 => 138,
                _ if before == Some(bits) => 6,
                _ => 7,
            };
            let run = self.bits[at..=self.code_max].iter().take(longest);
            let run = run.take_while(|&&other| usize::from(other) == bits).count();
            match (bits, run) {
                (0, 3..=10) => frequency[ZEROS_3_TO_10] += 1,
                (0, 11..) => frequency[ZEROS_11_TO_138] += 1,
                (1.., 3..) if before == Some(bits) => frequency[REPEAT_3_TO_6] += 1,
                (1.., 4..) => {
                    frequency[bits] += 1;
                    frequency[REPEAT_3_TO_6] += 1;
                }
                _ => frequency[bits] += run as u16,
            }
            before = Some(bits);
            at += run;
        }
    }
}

/// A heap of nodes by frequency, the rarest at 1; of equally frequent nodes the less deep comes
/// first. The nodes taken off are stored behind it.
struct Heap {
    nodes: [u16; NODES_MAX],
    len: usize,
    /// Of each node: its frequency times 256, plus its depth.
    keys: [u32; NODES_MAX],
}

impl Heap {
    fn push_unordered(&mut self, code: usize, frequency: u16) {
        self.len += 1;
        self.nodes[self.len] = code as u16;
        self.keys[code] = u32::from(frequency) << 8;
    }

    fn join(&mut self, node: usize, one: usize, other: usize) {
        let (one, other) = (self.keys[one], self.keys[other]);
        let depth = (one & 0xff).max(other & 0xff) + 1;
        self.keys[node] = ((one >> 8) + (other >> 8)) << 8 | depth;
    }

    fn pop(&mut self) -> u16 {
        let rarest = self.nodes[1];
        self.nodes[1] = self.nodes[self.len];
        self.len -= 1;
        self.sift_down(1);
        rarest
    }

    fn key(&self, at: usize) -> u32 {
        self.keys[usize::from(self.nodes[at])]
    }

    fn sift_down(&mut self, mut at: usize) {
        let node = self.nodes[at];
        let key = self.key(at);
        loop {
            let mut child = 2 * at;
            if child > self.len {
                break;
            }
            if child < self.len && self.key(child + 1) <= self.key(child) {
                child += 1;
            }
            if key <= self.key(child) {
                break;
            }
            self.nodes[at] = self.nodes[child];
            at = child;
        }
        self.nodes[at] = node;
    }
}

const _: () = assert!(PAGE_BYTES_MAX < u16::MAX as usize, "frequencies are 16 bits");
