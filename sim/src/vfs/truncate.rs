//! Dropping pages at a truncation or deletion, and the cost of looking for them.
//!
//! Mirrors mm/truncate.c (truncate_inode_pages_range, truncate_inode_pages_final) and xas_find of
//! lib/xarray.c, Linux 6.1. The kernel takes pages out of the file's array in batches. Afterwards
//! it searches the array to its end twice more, slot by slot. The array has 64 slots a node, and no
//! more levels than its last page needs (xas_shrink).
//!
//! Left out: gaps between cached pages.
//!
//! Invariant: a file without cached pages costs nothing (mapping_empty).

use super::cache::FileCache;
use super::Vfs;
use crate::errno::FsError;
use crate::fs::FlashFs;
use crate::units::Ns;

/// PAGEVEC_SIZE of 6.1, on which the cost of a slot was measured.
const BATCH: u64 = 15;
/// XA_CHUNK_SHIFT.
const SHIFT: u32 = 6;

/// The work of dropping pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Truncated {
    /// Pages dropped.
    pub pages: u64,
    /// Empty slots passed.
    pub slots: u64,
}

impl Truncated {
    /// The work of dropping the pages from `first` on.
    pub fn from(cache: &FileCache, first: u32) -> Truncated {
        let Some(last) = cache.last_below(u32::MAX) else { return Truncated::default() };
        let pages = cache.cached_from(first);
        let left = cache.last_below(first);
        let behind = if pages > 0 { last + 1 } else { first };
        // A partial batch has reached the end of the array; then find_lock_entries and
        // find_get_entries each reach it once more.
        let of_batch = if pages % BATCH > 0 { slots_passed(Some(last), last) } else { 0 };
        let slots = of_batch + slots_passed(left, behind) + slots_passed(left, first);
        Truncated { pages, slots }
    }
}

/// Slots after that of page `from` that xas_find passes up to the end of an array whose last page
/// is `last`.
fn slots_passed(last: Option<u32>, from: u32) -> u64 {
    let (Some(mut last), mut from) = (last, from) else { return 0 };
    let mut passed = 0;
    while last > 0 {
        let (slot, node) = (from & ((1 << SHIFT) - 1), from >> SHIFT);
        if node == last >> SHIFT {
            passed += u64::from((1 << SHIFT) - 1 - slot);
        } else if last >> SHIFT == 0 {
            return 0; // beyond the size of the array
        }
        (last, from) = (last >> SHIFT, node);
    }
    passed
}

impl<S: FlashFs> Vfs<S> {
    /// truncate_inode_pages_range: calls cond_resched() after each batch.
    pub(super) fn truncate_inode_pages(
        &mut self,
        mut now: Ns,
        gone: Truncated,
    ) -> Result<Ns, FsError> {
        let mut pages = gone.pages;
        while pages > 0 {
            let batch = pages.min(self.inodes.facts.folio_batch as u64);
            now = self.resched(now + self.costs.page_drop_ns * batch)?;
            pages -= batch;
        }
        Ok(now + Ns::from_ps(gone.slots, self.costs.page_slot_ps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(pages: u32) -> FileCache {
        let mut cache = FileCache::new(pages.max(1));
        (0..pages).for_each(|page| cache.insert(page));
        cache
    }

    #[test]
    fn nothing_is_passed_where_nothing_is_cached() {
        assert_eq!(Truncated::from(&cached(0), 0), Truncated::default());
        assert_eq!(Truncated::from(&cached(1), 0), Truncated { pages: 1, slots: 0 });
    }

    /// 256 pages are four nodes and a root.
    #[test]
    fn the_end_is_met_three_times() {
        let root = 63 - 3;
        let one = Truncated::from(&cached(256), 255);
        assert_eq!(one, Truncated { pages: 1, slots: root + (63 - 4) + root });
        let two = Truncated::from(&cached(256), 254);
        assert_eq!(two, Truncated { pages: 2, slots: root + (63 - 4) + (root + 1) });
        let none = Truncated::from(&cached(256), 256);
        assert_eq!(none, Truncated { pages: 0, slots: 2 * (63 - 4) });
        assert_eq!(Truncated::from(&cached(15), 0), Truncated { pages: 15, slots: 0 });
        assert_eq!(Truncated::from(&cached(256), 0), Truncated { pages: 256, slots: root });
    }

    #[test]
    fn an_array_has_no_more_levels_than_it_needs() {
        assert_eq!(slots_passed(Some(63), 64), 0);
        assert_eq!(slots_passed(Some(62), 63), 0);
        assert_eq!(slots_passed(Some(10), 11), 52);
        assert_eq!(slots_passed(Some(64), 65), (63 - 1) + (63 - 1));
        assert_eq!(slots_passed(Some(5000), 5000), (63 - 8) + (63 - 14) + (63 - 1));
    }
}
