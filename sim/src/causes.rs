//! Why bytes are programmed: what a program wrote, and what the stack adds to it.
//!
//! Every byte that is programmed has one cause, so the causes add up to what the driver programmed.
//! The driver puts it down as metadata unless whoever asked for the program knows better. A
//! write-buffer knows what the parts of its nodes are, and hands them on in the order in which they
//! came ([`Held`]). Left out: the OOB that goes with a page, and what a driver pads a part of a
//! page with, which changes no cell.
//!
//! Invariant: [`Held`] gives exactly as many bytes as it is asked for; what it does not have is
//! padding.

use std::collections::VecDeque;

/// What bytes are programmed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// What a program wrote, as it is stored.
    Data,
    /// Node headers, inodes, names, the index, logs, summaries, clean markers, UBI's headers.
    Metadata,
    /// The rest of a page that could not wait.
    Padding,
    /// Garbage collection moved it.
    Collection,
    /// UBI's thread moved it, for wear or after bit flips.
    WearLevelling,
}

const CAUSES: usize = 5;

/// Bytes by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes([u64; CAUSES]);

impl Causes {
    /// So many bytes of one cause.
    pub fn of(cause: Cause, bytes: u32) -> Causes {
        let mut causes = Causes::default();
        causes.0[cause as usize] = u64::from(bytes);
        causes
    }

    /// The bytes of a cause.
    pub fn bytes(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// The bytes of all.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// These and those.
    pub fn add(&mut self, more: Causes) {
        self.0.iter_mut().zip(more.0).for_each(|(bytes, more)| *bytes += more);
    }

    /// What has come since an earlier reading.
    pub fn since(&self, earlier: &Causes) -> Causes {
        Causes(std::array::from_fn(|cause| self.0[cause] - earlier.0[cause]))
    }
}

/// What a write-buffer was given and has not programmed yet, first in, first out.
#[derive(Clone, Debug, Default)]
pub struct Held(VecDeque<(Cause, u32)>);

impl Held {
    /// Takes the next bytes of a node.
    pub fn push(&mut self, cause: Cause, bytes: u32) {
        match self.0.back_mut() {
            Some((last, held)) if *last == cause => *held += bytes,
            _ if bytes > 0 => self.0.push_back((cause, bytes)),
            _ => {}
        }
    }

    /// Gives what `bytes` that are programmed now are.
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
