//! Items with stable keys: an item keeps its key until it is removed, and a later item reuses the
//! key.
//!
//! Invariant: a free key is in `free` once.

use crate::collections::pieces::Pieces;
use std::num::NonZeroU32;

/// The key of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(NonZeroU32);

impl Key {
    /// The key as a number, never 0.
    #[inline]
    pub fn number(self) -> u32 {
        self.0.get()
    }

    /// The key of a number; none for 0.
    #[inline]
    pub fn from_number(number: u32) -> Option<Key> {
        NonZeroU32::new(number).map(Key)
    }

    #[inline]
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The items.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    places: Pieces<T>,
    free: Vec<Key>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { places: Pieces::default(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Adds an item, at the most recently freed key if there is one.
    pub fn add(&mut self, item: T) -> Key
    where
        T: Clone,
    {
        if let Some(key) = self.free.pop() {
            *self.get_mut(key) = item;
            return key;
        }
        let count = self.places.push(item) + 1;
        let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
        Key(count.expect("fewer than 2^32 things"))
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Removes an item.
    pub fn remove(&mut self, key: Key) {
        self.free.push(key);
    }

    /// The item of a key.
    #[inline]
    pub fn get(&self, key: Key) -> &T {
        &self.places[key.index()]
    }

    /// The item of a key, to change.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> &mut T {
        &mut self.places[key.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_good_until_it_is_removed_and_its_place_is_used_again() {
        let mut slab = Slab::default();
        let count = 1000;
        let keys: Vec<Key> = (0..count).map(|item| slab.add(item)).collect();
        for &key in keys.iter().step_by(2) {
            slab.remove(key);
        }
        assert_eq!(slab.len(), count / 2);
        let again: Vec<Key> = (0..count / 2).map(|item| slab.add(count + item)).collect();
        assert_eq!((slab.len(), slab.places.len()), (count, count), "no more room than before");
        assert!(again.iter().enumerate().all(|(item, &key)| *slab.get(key) == count + item));
        assert!((1..count).step_by(2).all(|item| *slab.get(keys[item]) == item));
    }
}
