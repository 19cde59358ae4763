//! A vector in pieces of memory that never move. It allocates little more than it holds, and copies
//! nothing to grow.

use core::ops::{Index, IndexMut};

/// Items in a piece.
const PIECE: usize = 128;

/// The vector.
#[derive(Clone, Debug)]
pub struct Pieces<T> {
    /// Unused items of the last piece are copies of a used one.
    pieces: Vec<Box<[T; PIECE]>>,
    len: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces { pieces: Vec::new(), len: 0 }
    }
}

impl<T> Pieces<T> {
    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds an item at the end; returns its index.
    pub fn push(&mut self, item: T) -> usize
    where
        T: Clone,
    {
        let at = self.len;
        self.len += 1;
        if at % PIECE == 0 {
            let piece: Result<Box<[T; PIECE]>, _> = vec![item; PIECE].try_into();
            self.pieces.push(piece.ok().expect("so many"));
        } else {
            self[at] = item;
        }
        at
    }

    /// The item at an index, if there is one.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        (at < self.len).then(|| &self[at])
    }

    /// All items, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.pieces.iter_mut().flat_map(|piece| piece.iter_mut()).take(self.len)
    }
}

impl<T> Index<usize> for Pieces<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.pieces[at / PIECE][at % PIECE]
    }
}

impl<T> IndexMut<usize> for Pieces<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.pieces[at / PIECE][at % PIECE]
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
            assert_eq!(pieces.pieces.len(), pieces.len().div_ceil(PIECE));
            assert!(vector.iter().all(|&at| pieces[at] == at && pieces.get(at) == Some(&at)));
        }
        let changed = pieces.iter_mut().map(|item| *item *= 2).count();
        assert_eq!(changed, pieces.len());
        pieces[PIECE] = 0;
        assert_eq!(
            (pieces[PIECE - 1], pieces[PIECE], pieces.len()),
            (2 * (PIECE - 1), 0, vector.len())
        );
    }
}
