//! Numbers in the order in which they arrived: each once, and any of them found, counted from the
//! newest, or removed in logarithmic time.
//!
//! Invariants:
//! 1. `places[number]` is the index at which `line` has the number; all other indices are empty.
//! 2. `taken` is a Fenwick tree over `line`: node `n` counts the numbers at the `lowest_bit(n)`
//!    indices that end at `n - 1`.
//! 3. Less than half of `line` is empty, but for `SPARE` indices.

use std::collections::BTreeMap;

/// Empty indices that are no reason to close the gaps.
const SPARE: usize = 32;

/// The numbers, the newest last.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    line: Vec<Option<u32>>,
    taken: Vec<u32>,
    places: BTreeMap<u32, u32>,
}

impl Arrivals {
    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether a number is there.
    pub fn contains(&self, number: u32) -> bool {
        self.places.contains_key(&number)
    }

    /// All numbers, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.line.iter().filter_map(|&number| number)
    }

    /// All numbers, the lowest first.
    pub fn in_order(&self) -> impl Iterator<Item = u32> + '_ {
        self.places.keys().copied()
    }

    /// The newest number.
    pub fn last(&self) -> Option<u32> {
        self.iter().next_back()
    }

    /// How many numbers are newer than one that is there.
    pub fn newer(&self, number: u32) -> usize {
        let mut node = self.places[&number] as usize + 1;
        let mut up_to = 0;
        while node > 0 {
            up_to += self.taken[node - 1] as usize;
            node -= lowest_bit(node);
        }
        self.len() - up_to
    }

    /// Adds a number as the newest, unless it is there.
    pub fn push(&mut self, number: u32) {
        let place = self.line.len() as u32;
        if self.places.contains_key(&number) {
            return;
        }
        self.places.insert(number, place);
        self.append(number);
    }

    fn append(&mut self, number: u32) {
        self.line.push(Some(number));
        let node = self.line.len();
        let mut count = 1;
        let mut below = node - 1;
        while below > node - lowest_bit(node) {
            count += self.taken[below - 1];
            below -= lowest_bit(below);
        }
        self.taken.push(count);
    }

    /// Removes a number; returns whether it was there.
    pub fn remove(&mut self, number: u32) -> bool {
        let Some(place) = self.places.remove(&number) else { return false };
        self.line[place as usize] = None;
        let mut node = place as usize + 1;
        while node <= self.line.len() {
            self.taken[node - 1] -= 1;
            node += lowest_bit(node);
        }
        while self.line.last() == Some(&None) {
            self.line.pop();
            self.taken.pop();
        }
        if self.line.len() > 2 * self.len() + SPARE {
            self.close_gaps();
        }
        true
    }

    fn close_gaps(&mut self) {
        let numbers = Vec::from_iter(self.iter());
        self.line.clear();
        self.taken.clear();
        for number in numbers {
            self.places.insert(number, self.line.len() as u32);
            self.append(number);
        }
    }

    /// Removes the newest number.
    pub fn pop(&mut self) -> Option<u32> {
        let number = self.last()?;
        self.remove(number);
        Some(number)
    }
}

/// The indices that a node of the tree counts.
fn lowest_bit(node: usize) -> usize {
    node & node.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list that is searched from its beginning says the same.
    #[test]
    fn it_is_a_list_of_numbers_whatever_comes_and_goes() {
        let (mut arrivals, mut list) = (Arrivals::default(), Vec::<u32>::new());
        let mut state = 1_u64;
        for grows in [3, 1, 3, 0] {
            for _ in 0..1_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (number, chance) = ((state >> 33) as u32 % 500, (state >> 60) as u32 % 4);
                if chance < grows {
                    if !list.contains(&number) {
                        list.push(number);
                    }
                    arrivals.push(number);
                } else if chance == 3 {
                    assert_eq!(arrivals.pop(), list.pop());
                } else {
                    assert_eq!(arrivals.remove(number), list.contains(&number));
                    list.retain(|&other| other != number);
                }
                assert!(arrivals.iter().eq(list.iter().copied()));
                assert!(arrivals.line.len() <= 2 * list.len() + SPARE);
                for (newer, &number) in list.iter().rev().enumerate() {
                    assert_eq!(arrivals.newer(number), newer);
                }
            }
        }
        assert_eq!((arrivals.len(), arrivals.last()), (list.len(), list.last().copied()));
        list.sort_unstable();
        assert!(arrivals.in_order().eq(list));
    }
}
