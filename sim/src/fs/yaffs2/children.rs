//! The objects in a directory, and at which of them a search for a name stops.
//!
//! yaffs_find_by_name goes through the directory's list from its newest object on. Most objects
//! cost it one comparison of name sums. It reads the header of an object whose details are not
//! loaded, and of one whose name has the sum that it looks for and is too long for memory. This
//! module finds those, and the object of the name, without going through the list.
//!
//! Invariant: `by_name` and `unread` hold exactly the objects of `all` to which they apply.

use crate::collections::arrivals::Arrivals;
use crate::ops::{name_bytes, name_len};
use std::collections::BTreeSet;

/// YAFFS_SHORT_NAME_LENGTH: a longer name is only in the header.
pub(super) const SHORT_NAME_BYTES: usize = 15;

/// What a search in memory compares of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum InMemory {
    /// The whole name: objects with other ones are passed.
    Short([u8; SHORT_NAME_BYTES]),
    /// The sum of a name that is in the header.
    Sum(u16),
}

impl InMemory {
    pub fn of(name: &str) -> InMemory {
        if name_len(name) > SHORT_NAME_BYTES {
            return InMemory::Sum(name_sum(name));
        }
        let mut short = [0; SHORT_NAME_BYTES];
        for (to, byte) in short.iter_mut().zip(name_bytes(name)) {
            *to = byte;
        }
        InMemory::Short(short)
    }
}

/// yaffs_calc_name_sum.
fn name_sum(name: &str) -> u16 {
    let terms = (1u16..).zip(name_bytes(name).take(126));
    terms.fold(0, |sum, (place, byte)| sum.wrapping_add(u16::from(byte & 0x1f).wrapping_mul(place)))
}

/// The children, the newest last; the core's lists have the newest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Children {
    pub all: Arrivals,
    by_name: BTreeSet<(InMemory, u32)>,
    /// Those whose header will be read when a search meets them.
    unread: Arrivals,
}

impl Children {
    pub fn add(&mut self, number: u32, name: InMemory, is_unread: bool) {
        self.all.push(number);
        self.by_name.insert((name, number));
        if is_unread {
            self.unread.push(number);
        }
    }

    pub fn remove(&mut self, number: u32, name: InMemory) {
        self.all.remove(number);
        self.by_name.remove(&(name, number));
        self.unread.remove(number);
    }

    pub fn set_read(&mut self, number: u32) {
        self.unread.remove(number);
    }

    /// The objects that a search for a name does not pass, the newest last, each with the number
    /// of objects before it. Those whose header was not read are not among them.
    pub fn named_like(&self, name: &str) -> Vec<(usize, u32)> {
        let with = |key| self.by_name.range((key, 0)..=(key, u32::MAX)).map(|&(_, number)| number);
        let short = Some(InMemory::of(name)).filter(|key| matches!(key, InMemory::Short(_)));
        let numbers = short.into_iter().flat_map(with).chain(with(InMemory::Sum(name_sum(name))));
        let mut found = Vec::from_iter(numbers.map(|number| (self.all.newer(number), number)));
        found.sort_unstable_by(|one, other| other.cmp(one));
        found
    }

    /// The newest object whose header was not read, with the number of objects before it.
    pub fn first_unread(&self) -> Option<(usize, u32)> {
        self.unread.last().map(|number| (self.all.newer(number), number))
    }
}
