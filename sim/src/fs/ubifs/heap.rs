//! The categories of LEBs: three heaps and four lists.
//!
//! Mirrors the part of fs/ubifs/lprops.c of Linux 6.1 that categorises LEBs (ubifs_add_to_cat,
//! ubifs_remove_from_cat, change_category, add_to_lpt_heap, adjust_lpt_heap). A heap holds at most
//! 256 LEBs, the one with the highest value on top. Lists are last in, first out.
//!
//! Approximate: which LEB falls out of a full heap depends on memory addresses in the kernel.
//!
//! Invariant: a LEB is in the heap or list of its `category`, and in no other.

use super::properties::{Category, Properties};

/// LPT_HEAP_SZ.
const HEAP_LEBS_MAX: usize = 256;
/// No LEB.
const NONE: u32 = u32::MAX;

/// Heaps and lists of slots, which index the table of properties.
#[derive(Clone, Debug)]
pub(super) struct Categories {
    heaps: [Vec<u32>; 3],
    lists: [u32; 4],
    /// Each LEB's position in a heap, or its neighbours in a list.
    links: Vec<[u32; 2]>,
    /// `freeable_cnt`, `in_a_category_cnt`.
    pub freeable: u32,
    pub members: u32,
}

impl Categories {
    /// Categories without LEBs, for a main area of `lebs`.
    pub fn new(lebs: u32) -> Categories {
        Categories {
            heaps: [Vec::new(), Vec::new(), Vec::new()],
            lists: [NONE; 4],
            links: vec![[NONE; 2]; lebs as usize],
            freeable: 0,
            members: 0,
        }
    }

    /// A heap, the top first.
    pub fn heap(&self, category: Category) -> &[u32] {
        category.heap().map_or(&[], |heap| &self.heaps[heap])
    }

    /// Whether a heap is full.
    pub fn is_full(&self, category: Category) -> bool {
        self.heap(category).len() >= HEAP_LEBS_MAX
    }

    /// The head of a list.
    pub fn first(&self, category: Category) -> Option<u32> {
        let head = self.lists[category.list()?];
        (head != NONE).then_some(head)
    }

    /// A list from its head.
    pub fn list(&self, category: Category) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(category), |&at| {
            Some(self.links[at as usize][1]).filter(|&next| next != NONE)
        })
    }

    /// ubifs_add_to_cat.
    pub fn enter(&mut self, lebs: &mut [Properties], slot: u32, category: Category) {
        self.members += 1;
        let category = match category.heap() {
            Some(heap) if !self.push(lebs, slot, category, heap) => Category::Uncategorized,
            _ => category,
        };
        lebs[slot as usize].category = category;
        if let Some(list) = category.list() {
            self.link(slot, list);
        }
        self.freeable += u32::from(category == Category::Freeable);
    }

    /// ubifs_remove_from_cat.
    pub fn leave(&mut self, lebs: &[Properties], slot: u32) {
        let category = lebs[slot as usize].category;
        self.members -= 1;
        self.freeable -= u32::from(category == Category::Freeable);
        if let Some(heap) = category.heap() {
            let at = self.links[slot as usize][0];
            let last = self.heaps[heap].pop().expect("it holds this one");
            if last != slot {
                self.put(heap, at, last);
                self.adjust(lebs, last, category);
            }
        } else if let Some(list) = category.list() {
            let [prev, next] = self.links[slot as usize];
            match prev {
                NONE => self.lists[list] = next,
                prev => self.links[prev as usize][1] = next,
            }
            if next != NONE {
                self.links[next as usize][0] = prev;
            }
        }
    }

    fn link(&mut self, slot: u32, list: usize) {
        let next = std::mem::replace(&mut self.lists[list], slot);
        self.links[slot as usize] = [NONE, next];
        if next != NONE {
            self.links[next as usize][0] = slot;
        }
    }

    fn put(&mut self, heap: usize, at: u32, slot: u32) {
        self.heaps[heap][at as usize] = slot;
        self.links[slot as usize][0] = at;
    }

    /// add_to_lpt_heap: a full heap drops a LEB of its lowest row, or does not take this one.
    fn push(
        &mut self,
        lebs: &mut [Properties],
        slot: u32,
        category: Category,
        heap: usize,
    ) -> bool {
        let count = self.heaps[heap].len();
        if count < HEAP_LEBS_MAX {
            self.heaps[heap].push(slot);
            self.put(heap, count as u32, slot);
            self.move_up(lebs, slot, category, heap);
            return true;
        }
        let row = HEAP_LEBS_MAX as u32 / 2 - 1;
        let at = (slot.wrapping_mul(3) & row) + row;
        let other = self.heaps[heap][at as usize];
        let value = |slot: u32| category.value(&lebs[slot as usize]);
        if value(slot) <= value(other) {
            return false;
        }
        lebs[other as usize].category = Category::Uncategorized;
        self.link(other, 0);
        self.put(heap, at, slot);
        self.move_up(lebs, slot, category, heap);
        true
    }

    /// move_up_lpt_heap; returns whether the LEB moved.
    fn move_up(&mut self, lebs: &[Properties], slot: u32, category: Category, heap: usize) -> bool {
        let value = category.value(&lebs[slot as usize]);
        let mut at = self.links[slot as usize][0];
        let first = at;
        while at > 0 {
            let parent = (at - 1) / 2;
            let above = self.heaps[heap][parent as usize];
            if category.value(&lebs[above as usize]) >= value {
                break;
            }
            self.put(heap, at, above);
            self.put(heap, parent, slot);
            at = parent;
        }
        at != first
    }

    /// adjust_lpt_heap: moves a LEB up or down after its value changed; does nothing for a LEB on
    /// no heap.
    #[inline]
    pub fn adjust(&mut self, lebs: &[Properties], slot: u32, category: Category) {
        if let Some(heap) = category.heap() {
            self.do_adjust(lebs, slot, category, heap);
        }
    }

    fn do_adjust(&mut self, lebs: &[Properties], slot: u32, category: Category, heap: usize) {
        if self.move_up(lebs, slot, category, heap) {
            return;
        }
        let value = |slot: u32| category.value(&lebs[slot as usize]);
        let own = value(slot);
        let mut at = self.links[slot as usize][0];
        loop {
            let members = &self.heaps[heap];
            let child = |side: u32| members.get((at * 2 + side) as usize).map(|&c| value(c));
            let side = match (child(1), child(2)) {
                (Some(left), Some(right)) if own < left && right > left => 2,
                (Some(left), _) if own < left => 1,
                (Some(_), Some(right)) if own < right => 2,
                _ => return,
            };
            let down = at * 2 + side;
            let below = members[down as usize];
            self.put(heap, at, below);
            self.put(heap, down, slot);
            at = down;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filed(values: &[u32]) -> (Categories, Vec<Properties>) {
        let mut categories = Categories::new(values.len() as u32);
        let category = Category::Unknown;
        let mut lebs: Vec<Properties> = (values.iter())
            .map(|&free| Properties { free, dirty: 0, flags: 0, category })
            .collect();
        for slot in 0..values.len() as u32 {
            categories.enter(&mut lebs, slot, Category::Free);
        }
        (categories, lebs)
    }

    fn is_heap(categories: &Categories, lebs: &[Properties]) -> bool {
        let heap = categories.heap(Category::Free);
        (1..heap.len())
            .all(|at| lebs[heap[(at - 1) / 2] as usize].free >= lebs[heap[at] as usize].free)
    }

    #[test]
    fn the_one_with_most_room_is_on_top_whatever_changes() {
        let values: Vec<u32> = (0..100).map(|n| n * 7919 % 101).collect();
        let (mut categories, mut lebs) = filed(&values);
        assert!(is_heap(&categories, &lebs));
        for slot in (0..100).step_by(3) {
            lebs[slot as usize].free = slot * 31 % 97;
            categories.adjust(&lebs, slot, Category::Free);
            assert!(is_heap(&categories, &lebs));
        }
        for slot in (0..100).step_by(2) {
            categories.leave(&lebs, slot);
            assert!(is_heap(&categories, &lebs));
        }
        assert_eq!((categories.heap(Category::Free).len(), categories.members), (50, 50));
    }

    #[test]
    fn a_full_heap_gives_up_one_that_has_less() {
        let (mut categories, mut lebs) = filed(&[5; 256]);
        lebs.push(Properties { free: 9, ..lebs[0] });
        categories.links.push([NONE; 2]);
        categories.enter(&mut lebs, 256, Category::Free);
        assert_eq!(categories.heap(Category::Free)[0], 256);
        let out: Vec<u32> = categories.list(Category::Uncategorized).collect();
        assert_eq!((out.len(), lebs[out[0] as usize].category), (1, Category::Uncategorized));
    }

    #[test]
    fn lists_are_last_in_first_out() {
        let (mut categories, mut lebs) = filed(&[1; 4]);
        for slot in 0..4 {
            categories.leave(&lebs, slot);
            categories.enter(&mut lebs, slot, Category::Freeable);
        }
        assert!(categories.list(Category::Freeable).eq([3, 2, 1, 0]));
        categories.leave(&lebs, 2);
        assert!(categories.list(Category::Freeable).eq([3, 1, 0]));
        assert_eq!(categories.freeable, 3);
    }
}
