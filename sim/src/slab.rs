//! Things that stay where they are: each has a key until it is removed, and the next one takes its place.
//!
//! The first of them lie together; the others in pieces of memory that never move, so that what there is room for is little more
//! than what there is.
//!
//! Invariant: a key that is free is in `free` once.

use std::num::NonZeroU32;

/// So many lie together: most file systems have no more, and are looked through fastest.
const FIRST: usize = 2048;
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
    first: Vec<T>,
    /// All but the last are full.
    pieces: Vec<Vec<T>>,
    free: Vec<Key>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { first: Vec::new(), pieces: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds something, where something was removed last if there is such a place.
    pub fn add(&mut self, item: T) -> Key {
        if let Some(key) = self.free.pop() {
            *self.get_mut(key) = item;
            return key;
        }
        let count = self.places() + 1;
        if count <= FIRST {
            self.first.push(item);
        } else {
            if count % PIECE == 1 {
                self.pieces.push(Vec::with_capacity(PIECE));
            }
            self.pieces.last_mut().expect("there is one").push(item);
        }
        let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
        Key(count.expect("fewer than 2^32 things"))
    }

    fn places(&self) -> usize {
        let last = self.pieces.last().map_or(PIECE, Vec::len);
        self.first.len() + self.pieces.len() * PIECE + last - PIECE
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places() - self.free.len()
    }

    /// Nobody asks for it any more.
    pub fn remove(&mut self, key: Key) {
        self.free.push(key);
    }

    /// What is there.
    #[inline]
    pub fn get(&self, key: Key) -> &T {
        match key.index().checked_sub(FIRST) {
            None => &self.first[key.index()],
            Some(index) => &self.pieces[index / PIECE][index % PIECE],
        }
    }

    /// The same, to change.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> &mut T {
        match key.index().checked_sub(FIRST) {
            None => &mut self.first[key.index()],
            Some(index) => &mut self.pieces[index / PIECE][index % PIECE],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_good_until_it_is_removed_and_its_place_is_used_again() {
        let mut slab = Slab::default();
        let count = FIRST + 2 * PIECE;
        let keys: Vec<Key> = (0..count).map(|item| slab.add(item)).collect();
        for &key in keys.iter().step_by(2) {
            slab.remove(key);
        }
        assert_eq!(slab.len(), count / 2);
        let again: Vec<Key> = (0..count / 2).map(|item| slab.add(count + item)).collect();
        assert_eq!((slab.len(), slab.pieces.len()), (count, 2), "no more room than before");
        assert!(again.iter().enumerate().all(|(item, &key)| *slab.get(key) == count + item));
        assert!((1..count).step_by(2).all(|item| *slab.get(keys[item]) == item));
    }
}
