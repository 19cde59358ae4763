//! A sorted list in pieces: an insertion or removal moves only the items of its piece.
//!
//! A search looks in the starts of the pieces and then in one piece, each from an estimate
//! (search.rs). It touches one or two cache lines however long the list is.
//!
//! Invariants:
//! 1. No piece is empty, none has more than `PIECE_MOST` items, and no two neighbours would
//!    together fit into half a piece.
//! 2. `starts` has the start of each piece's first item.

use crate::collections::search::partition_point_near;

/// The most items of a piece. Moving half of them costs about as much as a cache miss.
const PIECE_MOST: usize = 64;
/// Appending fills a piece up to this, which leaves space for later insertions.
const PIECE_FILLED: usize = 48;
/// The step by which a piece grows. Doubling would leave half of it unused.
const PIECE_GROWTH: usize = 8;

/// An item with a place in a sorted list.
pub trait Start {
    /// Its start, which is unique in a list.
    fn start(&self) -> u64;
}

/// The position of an item. It is valid until an insertion or removal before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    piece: usize,
    index: usize,
}

/// The sorted list.
#[derive(Clone, Debug)]
pub struct Sorted<T> {
    pieces: Vec<Vec<T>>,
    starts: Vec<u64>,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Sorted { pieces: Vec::new(), starts: Vec::new() }
    }
}

impl<T: Start> Sorted<T> {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    /// The item at a position.
    #[inline]
    pub fn get(&self, at: Position) -> &T {
        &self.pieces[at.piece][at.index]
    }

    /// Changes an item, which stays between its neighbours.
    pub fn change(&mut self, at: Position, change: impl FnOnce(&mut T)) {
        let item = &mut self.pieces[at.piece][at.index];
        change(item);
        if at.index == 0 {
            self.starts[at.piece] = item.start();
        }
    }

    /// The last item that starts at or before `start`.
    #[inline]
    pub fn last_up_to(&self, start: u64) -> Option<Position> {
        let whole = *self.starts.last()?;
        let behind = partition_point_near(&self.starts, (start, whole), |&first| first <= start);
        let piece = behind.checked_sub(1)?;
        let (first, list) = (self.starts[piece], &self.pieces[piece]);
        let end = self.starts.get(behind).copied();
        let end = end.unwrap_or_else(|| list.last().expect("not empty").start() + 1);
        let part = (start - first, end - first);
        let index = partition_point_near(list, part, |item| item.start() <= start) - 1;
        Some(Position { piece, index })
    }

    /// The last item.
    #[inline]
    pub fn last(&self) -> Option<Position> {
        let piece = self.pieces.len().checked_sub(1)?;
        Some(Position { piece, index: self.pieces[piece].len() - 1 })
    }

    /// The item after another, or the first.
    #[inline]
    pub fn after(&self, at: Option<Position>) -> Option<Position> {
        let next =
            at.map_or(Position { piece: 0, index: 0 }, |at| Position { index: at.index + 1, ..at });
        if next.index < self.pieces.get(next.piece)?.len() {
            return Some(next);
        }
        let piece = next.piece + 1;
        (piece < self.pieces.len()).then_some(Position { piece, index: 0 })
    }

    /// The item before another.
    pub fn before(&self, at: Position) -> Option<Position> {
        if let Some(index) = at.index.checked_sub(1) {
            return Some(Position { index, ..at });
        }
        let piece = at.piece.checked_sub(1)?;
        Some(Position { piece, index: self.pieces[piece].len() - 1 })
    }

    /// All items after one, or all.
    #[inline]
    pub fn iter_after(&self, at: Option<Position>) -> impl Iterator<Item = &T> {
        let (piece, index) = at.map_or((0, 0), |at| (at.piece, at.index + 1));
        let (this, rest) = match self.pieces.get(piece..) {
            Some([this, rest @ ..]) => (&this[index..], rest),
            _ => (&[][..], &[][..]),
        };
        this.iter().chain(rest.iter().flatten())
    }

    /// One item and all before it, downward.
    pub fn iter_down(&self, from: Option<Position>) -> impl Iterator<Item = &T> {
        std::iter::successors(from, |&at| self.before(at)).map(|at| self.get(at))
    }

    /// Inserts an item after another, or first; returns its position.
    pub fn insert_after(&mut self, at: Option<Position>, item: T) -> Position {
        let mut to =
            at.map_or(Position { piece: 0, index: 0 }, |at| Position { index: at.index + 1, ..at });
        let count = self.pieces.get(to.piece).map(Vec::len);
        let is_end = to.piece + 1 >= self.pieces.len() && to.index == count.unwrap_or(0);
        if is_end && count.is_none_or(|count| count >= PIECE_FILLED) {
            to = Position { piece: self.pieces.len(), index: 0 };
            self.pieces.push(Vec::new());
            self.starts.push(item.start());
        } else if count == Some(PIECE_MOST) {
            to = self.split(to);
        }
        let list = &mut self.pieces[to.piece];
        if list.len() == list.capacity() {
            list.reserve_exact(PIECE_GROWTH);
        }
        if to.index == 0 {
            self.starts[to.piece] = item.start();
        }
        list.insert(to.index, item);
        to
    }

    /// Splits a full piece; returns the new position of an item in it.
    fn split(&mut self, at: Position) -> Position {
        let list = &mut self.pieces[at.piece];
        let behind = list.split_off(PIECE_MOST / 2);
        list.shrink_to_fit();
        self.starts.insert(at.piece + 1, behind[0].start());
        self.pieces.insert(at.piece + 1, behind);
        match at.index.checked_sub(PIECE_MOST / 2) {
            Some(index) if index > 0 => Position { piece: at.piece + 1, index },
            _ => at,
        }
    }

    /// Removes the item after another, or the first. Updates `at`, because the position before it
    /// may change.
    pub fn remove_after(&mut self, at: &mut Option<Position>) -> Option<T> {
        let gone = self.after(*at)?;
        let list = &mut self.pieces[gone.piece];
        let item = list.remove(gone.index);
        match list.first() {
            None => {
                self.pieces.remove(gone.piece);
                self.starts.remove(gone.piece);
            }
            Some(first) => self.starts[gone.piece] = first.start(),
        }
        self.join(gone.piece, at);
        if let Some(before) = gone.piece.checked_sub(1) {
            self.join(before, at);
        }
        Some(item)
    }

    /// Merges a piece with the next one if both fit into half a piece.
    fn join(&mut self, piece: usize, at: &mut Option<Position>) {
        let Some([this, next, ..]) = self.pieces.get(piece..) else { return };
        let before = this.len();
        if before + next.len() > PIECE_MOST / 2 {
            return;
        }
        let next = self.pieces.remove(piece + 1);
        self.starts.remove(piece + 1);
        self.pieces[piece].reserve_exact(next.len());
        self.pieces[piece].extend(next);
        if let Some(at) = at.as_mut().filter(|at| at.piece == piece + 1) {
            *at = Position { piece, index: before + at.index };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    impl Start for u64 {
        fn start(&self) -> u64 {
            *self
        }
    }

    fn check(sorted: &Sorted<u64>, list: &[u64]) {
        assert!(sorted.iter_after(None).eq(list));
        assert!(sorted.iter_down(sorted.last()).eq(list.iter().rev()));
        assert_eq!(sorted.starts.len(), sorted.pieces.len());
        for (start, piece) in sorted.starts.iter().zip(&sorted.pieces) {
            assert_eq!(Some(start), piece.first());
            assert!(piece.len() <= PIECE_MOST);
        }
        for two in sorted.pieces.windows(2) {
            assert!(two[0].len() + two[1].len() > PIECE_MOST / 2, "pieces that are one");
        }
    }

    /// A deterministic sequence of pseudo-random numbers.
    fn numbers() -> impl FnMut(u64) -> u64 {
        let mut state = 1_u64;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        }
    }

    #[test]
    fn it_is_a_sorted_list_whatever_comes_and_goes() {
        let (mut number, mut sorted, mut list) = (numbers(), Sorted::default(), Vec::new());
        for grows in [3, 1, 3, 1, 2, 0] {
            for _ in 0..2_000 {
                let start = number(10_000);
                let up_to = list.partition_point(|&other| other <= start);
                let mut at = sorted.last_up_to(start);
                assert_eq!(at.map(|at| *sorted.get(at)), up_to.checked_sub(1).map(|at| list[at]));
                if number(4) >= grows {
                    let gone = sorted.remove_after(&mut at);
                    assert_eq!(gone, (up_to < list.len()).then(|| list.remove(up_to)));
                } else if up_to == 0 || list[up_to - 1] != start {
                    list.insert(up_to, start);
                    at = Some(sorted.insert_after(at, start));
                    assert_eq!(at.map(|at| *sorted.get(at)), Some(start));
                }
                let next = sorted.after(at).map(|next| *sorted.get(next));
                assert_eq!(next, list.iter().copied().find(|&other| other > start));
                check(&sorted, &list);
            }
        }
    }

    /// An item that counts how often it is read.
    struct Counting<'a>(u64, &'a Cell<u32>);

    impl Start for Counting<'_> {
        fn start(&self) -> u64 {
            self.1.set(self.1.get() + 1);
            self.0
        }
    }

    #[test]
    fn looks_of_a_search_do_not_grow_with_a_list_in_which_a_few_were_split() {
        for length in [1_000_u64, 1_000_000] {
            let (looks, mut number, mut sorted) = (Cell::new(0), numbers(), Sorted::default());
            for n in 0..length {
                sorted.insert_after(sorted.last(), Counting(8 * n, &looks));
            }
            for _ in 0..length / 30 {
                let start = 8 * number(length) + 4;
                let at = sorted.last_up_to(start);
                if at.is_some_and(|at| sorted.get(at).0 != start) {
                    sorted.insert_after(at, Counting(start, &looks));
                }
            }
            for _ in 0..10_000 {
                let wanted = number(8 * length);
                looks.set(0);
                let found = sorted.last_up_to(wanted).map(|at| sorted.get(at).0);
                assert!(found.is_some_and(|start| start <= wanted && start + 8 > wanted));
                assert!(looks.get() <= 10, "{} of {length} looked at", looks.get());
            }
        }
    }

    #[test]
    fn taking_away_from_the_front_or_emptying_leaves_no_small_pieces() {
        let mut sorted = Sorted::default();
        let mut at = None;
        for start in 0..1_000 {
            at = Some(sorted.insert_after(at, start));
        }
        let mut list: Vec<u64> = (0..1_000).collect();
        check(&sorted, &list);
        for kept in (0..1_000).step_by(10) {
            let mut at = sorted.last_up_to(kept);
            for _ in 0..9 {
                sorted.remove_after(&mut at);
            }
            list.retain(|&start| start <= kept || start > kept + 9);
            check(&sorted, &list);
        }
        while sorted.remove_after(&mut None).is_some() {}
        assert!(sorted.pieces.is_empty() && sorted.last().is_none());
    }
}
