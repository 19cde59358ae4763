//! A vector in pieces of memory that never move: it has room for little more than what is in it, and to grow it copies
//! nothing.
//!
//! Invariant: all pieces but the last are full.

use core::ops::{Index, IndexMut};

/// Things of a piece.
const PIECE: usize = 256;

/// The vector.
#[derive(Clone, Debug)]
pub struct Pieces<T>(Vec<Vec<T>>);

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces(Vec::new())
    }
}

impl<T> Pieces<T> {
    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PIECE + last.len())
    }

    /// Adds something at the end, and says where that is.
    pub fn push(&mut self, item: T) -> usize {
        let at = self.len();
        if at % PIECE == 0 {
            self.0.push(Vec::new());
        }
        let last = self.0.last_mut().expect("there is one");
        // A clone has no room left.
        last.reserve_exact(PIECE - last.len());
        last.push(item);
        at
    }

    /// What is there, if anything.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        self.0.get(at / PIECE)?.get(at % PIECE)
    }

    /// All of them, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }
}

impl<T> Index<usize> for Pieces<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.0[at / PIECE][at % PIECE]
    }
}

impl<T> IndexMut<usize> for Pieces<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.0[at / PIECE][at % PIECE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_vector_with_room_for_a_piece_more_at_most() {
        let (mut pieces, mut vector) = (Pieces::default(), Vec::new());
        for item in 0..3 * PIECE + 5 {
            assert_eq!((pieces.len(), pieces.get(item)), (item, None));
            assert_eq!(pieces.push(item), item);
            vector.push(item);
        }
        let mut cloned = pieces.clone();
        cloned.push(vector.len());
        for pieces in [&pieces, &cloned] {
            assert!(pieces.0.iter().all(|piece| piece.capacity() == PIECE));
            assert!(vector.iter().all(|&at| pieces[at] == at && pieces.get(at) == Some(&at)));
        }
        pieces.iter_mut().for_each(|item| *item *= 2);
        pieces[PIECE] = 0;
        assert_eq!(
            (pieces[PIECE - 1], pieces[PIECE], pieces.len()),
            (2 * (PIECE - 1), 0, vector.len())
        );
    }
}
