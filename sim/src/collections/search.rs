//! Search in a sorted list, beginning at an estimate of the position.
//!
//! In a file that was written page by page, an extent's index is about proportional to its offset.
//! A search from there touches one or two cache lines. A binary search of a long list touches one
//! at each step.
//!
//! Invariant: the guess affects only the time, never the result.

/// Like `partition_point`: the number of items in `list` that are `before`, all at its head. The
/// search begins at `part / whole` of the list and widens from there.
#[inline]
pub fn partition_point_near<T>(
    list: &[T],
    (part, whole): (u64, u64),
    before: impl Fn(&T) -> bool,
) -> usize {
    let Some(last) = list.len().checked_sub(1) else { return 0 };
    let guess = part.saturating_mul(list.len() as u64) / whole.max(1);
    let (mut at, mut step) = (guess.min(last as u64) as usize, 1);
    let (low, high) = if before(&list[at]) {
        while at + step <= last && before(&list[at + step]) {
            (at, step) = (at + step, step * 2);
        }
        (at + 1, list.len().min(at + step))
    } else {
        while at >= step && !before(&list[at - step]) {
            (at, step) = (at - step, step * 2);
        }
        ((at + 1).saturating_sub(step), at)
    };
    low + list[low..high].partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::partition_point_near;
    use std::cell::Cell;

    #[test]
    fn finds_what_halving_finds_from_wherever_it_begins() {
        for length in 0..40_u64 {
            let list: Vec<u64> = (0..length).map(|n| n * n).collect();
            for wanted in 0..=length * length {
                let before = |&n: &u64| n < wanted;
                for part in [0, wanted, length * length / 2, u64::MAX] {
                    let found = partition_point_near(&list, (part, length * length), before);
                    assert_eq!(found, list.partition_point(before), "{wanted} in {length}");
                }
            }
        }
    }

    #[test]
    fn steps_do_not_grow_with_a_list_of_equal_pieces() {
        for length in [1_000_u64, 1_000_000] {
            let list: Vec<u64> = (0..length).collect();
            let looked = Cell::new(0);
            for wanted in (0..length).step_by(97) {
                looked.set(0);
                let found = partition_point_near(&list, (wanted, length), |&n| {
                    looked.set(looked.get() + 1);
                    n < wanted
                });
                assert_eq!(found as u64, wanted);
                assert!(looked.get() <= 6, "{} of {length} looked at for {wanted}", looked.get());
            }
        }
    }
}
