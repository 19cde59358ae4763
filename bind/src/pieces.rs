//! Compressed sizes of written data, piece by piece: alone, and after the bytes before it in its
//! page.
//!
//! A write is cut at the boundaries of 4,096 bytes of its file. The pages that were written last
//! are kept, so that a piece can be compressed after the bytes before it. Pieces that were written
//! one behind the other add up to the size of their page: what one could not say, because a size is
//! at least 0 and at most the piece's length, the next one says. zstd, which only UBIFS uses,
//! leaves less than 128 bytes as they are.

use crate::bug;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sim::compress::{Compressors, UbifsCompressor, PAGE_BYTES_MAX, UBIFS_BYTES_MIN};
use std::collections::{BTreeMap, VecDeque};
use std::panic::resume_unwind;

const PAGES_KEPT: usize = 4096;
const KNOWN: usize = 8192;
const KINDS: [UbifsCompressor; 3] =
    [UbifsCompressor::Lzo, UbifsCompressor::Zlib, UbifsCompressor::Zstd];

type Sizes = [usize; 3];

/// A piece after the bytes that precede it in its page.
struct Piece {
    worker: usize,
    page: (u64, u64),
    /// Whether it begins where the piece before it in its page ended.
    follows: bool,
    head: usize,
    bytes: Vec<u8>,
}

/// The compressors of one thread, and a cache of sizes.
struct Worker {
    compressors: Compressors,
    known: Vec<Option<(u128, Sizes)>>,
    /// The sum of the sizes in context of each page's pieces so far.
    said: BTreeMap<(u64, u64), Sizes>,
}

/// A page as it was written last.
#[derive(Default)]
struct Page {
    bytes: Vec<u8>,
    end: usize,
}

fn hash_of(bytes: &[u8]) -> u128 {
    let mut low = 0x9e37_79b9_7f4a_7c15_u64 ^ bytes.len() as u64;
    let mut high = 0xc2b2_ae3d_27d4_eb4f_u64;
    for word in bytes.chunks(8) {
        let mut eight = [0; 8];
        eight[..word.len()].copy_from_slice(word);
        let value = u64::from_le_bytes(eight);
        low = (low ^ value).wrapping_mul(0xff51_afd7_ed55_8ccd);
        low ^= low >> 32;
        high = (high.rotate_left(29) ^ value).wrapping_mul(0x9fb2_1c65_1e98_df25);
        high ^= high >> 31;
    }
    (u128::from(high) << 64) | u128::from(low)
}

impl Worker {
    fn new() -> Worker {
        Worker { compressors: Compressors::new(), known: vec![None; KNOWN], said: BTreeMap::new() }
    }

    fn sizes(&mut self, bytes: &[u8]) -> Sizes {
        let hash = hash_of(bytes);
        let place = (hash % KNOWN as u128) as usize;
        if let Some((known, sizes)) = self.known[place] {
            if known == hash {
                return sizes;
            }
        }
        let sizes = KINDS.map(|kind| match kind {
            UbifsCompressor::Zstd if bytes.len() < UBIFS_BYTES_MIN as usize => bytes.len(),
            _ => self.compressors.size(kind, bytes).unwrap_or(bytes.len()),
        });
        self.known[place] = Some((hash, sizes));
        sizes
    }

    /// The sizes alone and in context for each compressor, 16 bits each, the low byte first.
    fn numbers(&mut self, piece: &Piece) -> [u8; 12] {
        let own = &piece.bytes[piece.head..];
        let alone = self.sizes(own).map(|size| size.min(own.len()));
        let before = match self.said.get(&piece.page) {
            _ if piece.head == 0 => [0; 3],
            Some(&said) if piece.follows => said,
            _ => self.sizes(&piece.bytes[..piece.head]),
        };
        let both = if piece.head == 0 { alone } else { self.sizes(&piece.bytes) };
        let context: Sizes =
            core::array::from_fn(|kind| both[kind].saturating_sub(before[kind]).min(own.len()));
        if piece.bytes.len() < PAGE_BYTES_MAX {
            self.said.insert(piece.page, core::array::from_fn(|kind| before[kind] + context[kind]));
        }
        let mut numbers = [0; 12];
        for (place, (one, other)) in alone.into_iter().zip(context).enumerate() {
            let at = place * 4;
            numbers[at..at + 2].copy_from_slice(&(one as u16).to_le_bytes());
            numbers[at + 2..at + 4].copy_from_slice(&(other as u16).to_le_bytes());
        }
        numbers
    }
}

/// Measures one write after another.
#[pyclass]
pub struct PieceSizer {
    pages: BTreeMap<(u64, u64), Page>,
    written: VecDeque<(u64, u64)>,
    workers: Vec<Worker>,
}

impl PieceSizer {
    /// Writes a piece into its page; returns the page up to the piece's end.
    fn written(&mut self, file: u64, at: u64, data: &[u8]) -> Piece {
        let (page, head) = (at / PAGE_BYTES_MAX as u64, (at % PAGE_BYTES_MAX as u64) as usize);
        let end = head + data.len();
        if !self.pages.contains_key(&(file, page)) {
            self.written.push_back((file, page));
            if self.written.len() > PAGES_KEPT {
                if let Some(oldest) = self.written.pop_front() {
                    self.pages.remove(&oldest);
                }
            }
        }
        let found = self.pages.entry((file, page)).or_default();
        if found.bytes.len() < end {
            found.bytes.resize(end, 0);
        }
        found.bytes[head..end].copy_from_slice(data);
        let follows = found.end == head;
        found.end = end;
        let worker = (file.wrapping_add(page) % self.workers.len() as u64) as usize;
        Piece { worker, page: (file, page), follows, head, bytes: found.bytes[..end].to_vec() }
    }

    fn pieces(&mut self, data: &[u8], writes: &[(u64, u64, usize)]) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut from = 0_usize;
        for &(file, at, length) in writes {
            let end = from.checked_add(length).filter(|&end| end <= data.len())?;
            at.checked_add(length as u64)?;
            let mut at = at;
            while from < end {
                let left = PAGE_BYTES_MAX - (at % PAGE_BYTES_MAX as u64) as usize;
                let count = left.min(end - from);
                pieces.push(self.written(file, at, &data[from..from + count]));
                from += count;
                at += count as u64;
            }
        }
        (from == data.len()).then_some(pieces)
    }

    fn measured(&mut self, pieces: &[Piece]) -> Vec<u8> {
        let mut numbers = vec![0; pieces.len() * 12];
        let parts: Vec<Vec<(usize, [u8; 12])>> = std::thread::scope(|scope| {
            let started: Vec<_> = self
                .workers
                .iter_mut()
                .enumerate()
                .map(|(own, worker)| {
                    scope.spawn(move || {
                        let mine = pieces.iter().enumerate().filter(|(_, p)| p.worker == own);
                        mine.map(|(index, piece)| (index, worker.numbers(piece))).collect()
                    })
                })
                .collect();
            started
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        for worker in &mut self.workers {
            worker.said.retain(|page, _| self.pages.contains_key(page));
        }
        for (index, twelve) in parts.into_iter().flatten() {
            numbers[index * 12..index * 12 + 12].copy_from_slice(&twelve);
        }
        numbers
    }
}

#[pymethods]
impl PieceSizer {
    #[new]
    fn new(threads: usize) -> PieceSizer {
        PieceSizer {
            pages: BTreeMap::new(),
            written: VecDeque::new(),
            workers: (0..threads.max(1)).map(|_| Worker::new()).collect(),
        }
    }

    fn sizes<'py>(
        &mut self,
        py: Python<'py>,
        data: &[u8],
        writes: Vec<(u64, u64, usize)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let numbers = py.detach(|| {
            bug::caught(|| {
                let pieces = self.pieces(data, &writes)?;
                Some(self.measured(&pieces))
            })
        })?;
        let numbers = numbers.ok_or_else(|| PyValueError::new_err("writes are not the data"))?;
        Ok(PyBytes::new(py, &numbers))
    }
}
