//! Things that stay where they are: each has a key until it is removed, and the next one takes its place.
//!
//! They lie in pieces of memory that never move, so that what there is room for is little more than what there is.
//!
//! Invariant: a key that is free is in `free` once.

use std::num::NonZeroU32;

/// Things of a piece.
const PIECE: usize = 512;

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(NonZeroU32);

impl Key {
    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The things.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    /// All but the last are full.
    pieces: Vec<Vec<T>>,
    free: Vec<Key>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { pieces: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds something, where something was removed last if there is such a place.
    pub fn add(&mut self, item: T) -> Key {
        if let Some(key) = self.free.pop() {
            *self.get_mut(key) = item;
            return key;
        }
        if self.pieces.last().is_none_or(|last| last.len() == PIECE) {
            // The first piece grows as it has to: most file systems are small.
            let room = if self.pieces.is_empty() { 0 } else { PIECE };
            self.pieces.push(Vec::with_capacity(room));
        }
        let full = (self.pieces.len() - 1) * PIECE;
        let last = self.pieces.last_mut().expect("one was added");
        last.push(item);
        let count = u32::try_from(full + last.len()).ok().and_then(NonZeroU32::new);
        Key(count.expect("fewer than 2^32 things"))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum::<usize>() - self.free.len()
    }

    /// Nobody asks for it any more.
    pub fn remove(&mut self, key: Key) {
        self.free.push(key);
    }

    /// What is there.
    #[inline]
    pub fn get(&self, key: Key) -> &T {
        &self.pieces[key.index() / PIECE][key.index() % PIECE]
    }

    /// The same, to change.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> &mut T {
        &mut self.pieces[key.index() / PIECE][key.index() % PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_good_until_it_is_removed_and_its_place_is_used_again() {
        let mut slab = Slab::default();
        let keys: Vec<Key> = (0..3 * PIECE).map(|item| slab.add(item)).collect();
        for &key in keys.iter().step_by(2) {
            slab.remove(key);
        }
        assert_eq!(slab.len(), 3 * PIECE / 2);
        let again: Vec<Key> = (0..3 * PIECE / 2).map(|item| slab.add(10 * PIECE + item)).collect();
        assert_eq!(slab.pieces.len(), 3, "no more room than before");
        assert!(again.iter().enumerate().all(|(item, &key)| *slab.get(key) == 10 * PIECE + item));
        assert!((1..3 * PIECE).step_by(2).all(|item| *slab.get(keys[item]) == item));
    }
}
