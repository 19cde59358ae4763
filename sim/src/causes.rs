//! Causes of programmed bytes: the program's data, and what the stack adds to it.
//!
//! Every programmed byte has exactly one cause, so the causes add up to what the driver programmed.
//! The driver counts bytes as metadata unless its caller knows better. A write-buffer keeps the
//! causes of the parts of its nodes, in order ([`Held`]). Left out: the OOB of a page, and the ones
//! with which a driver pads a partial page, which change no cell.
//!
//! Invariant: [`Held`] gives exactly the requested number of bytes; bytes that it does not have
//! are padding.

use std::collections::VecDeque;

/// The cause of programmed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The program's data, as stored.
    Data,
    /// Node headers, inodes, names, the index, logs, summaries, clean markers, UBI's headers.
    Metadata,
    /// The rest of a page that had to be written before it was full.
    Padding,
    /// Moved by garbage collection.
    Collection,
    /// Moved by UBI's thread, for wear levelling or after bit flips.
    WearLevelling,
}

const CAUSES: usize = 5;

/// Bytes by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes([u64; CAUSES]);

impl Causes {
    /// `bytes` of one cause.
    pub fn of(cause: Cause, bytes: u32) -> Causes {
        let mut causes = Causes::default();
        causes.0[cause as usize] = u64::from(bytes);
        causes
    }

    /// The bytes of a cause.
    pub fn bytes(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// The bytes of all causes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds other bytes to these.
    pub fn add(&mut self, more: Causes) {
        self.0.iter_mut().zip(more.0).for_each(|(bytes, more)| *bytes += more);
    }

    /// Takes so many bytes away, of the first causes that have any.
    pub fn take(&mut self, bytes: u32) -> Causes {
        let mut left = u64::from(bytes);
        Causes(std::array::from_fn(|cause| {
            let taken = left.min(self.0[cause]);
            (left, self.0[cause]) = (left - taken, self.0[cause] - taken);
            taken
        }))
    }

    /// The bytes added since an earlier reading.
    pub fn since(&self, earlier: &Causes) -> Causes {
        Causes(std::array::from_fn(|cause| self.0[cause] - earlier.0[cause]))
    }
}

/// The causes of a write-buffer's bytes that are not programmed yet, first in, first out.
#[derive(Clone, Debug, Default)]
pub struct Held(VecDeque<(Cause, u32)>);

impl Held {
    /// Adds the next bytes of a node.
    pub fn push(&mut self, cause: Cause, bytes: u32) {
        match self.0.back_mut() {
            Some((last, held)) if *last == cause => *held += bytes,
            _ if bytes > 0 => self.0.push_back((cause, bytes)),
            _ => {}
        }
    }

    /// Takes the causes of the next `bytes` that are programmed.
    pub fn take(&mut self, bytes: u32) -> Causes {
        let mut causes = Causes::default();
        let mut left = bytes;
        while left > 0 {
            let Some((cause, held)) = self.0.front_mut() else {
                causes.0[Cause::Padding as usize] += u64::from(left);
                break;
            };
            let taken = left.min(*held);
            causes.0[*cause as usize] += u64::from(taken);
            (left, *held) = (left - taken, *held - taken);
            if *held == 0 {
                self.0.pop_front();
            }
        }
        causes
    }
}
