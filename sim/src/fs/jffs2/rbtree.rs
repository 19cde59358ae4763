//! A red-black tree with the same shape as the kernel's.
//!
//! Mirrors lib/rbtree.c of Linux 6.1 (rb_insert_color, rb_erase, rb_next_postorder). The shape
//! matters twice. JFFS2's search for overlapping nodes stops at a leaf or beside it, so the shape
//! decides which nodes a mount reads. And a deleted file's nodes become obsolete from the leaves of
//! its tree up. Left out: augmented and cached trees.
//!
//! Invariants: those of a red-black tree.

use crate::collections::slab::{Key, Slab};

/// Identifies an entry until it is erased.
pub type Place = Key;

/// The two children of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The entries before it.
    Left,
    /// The entries after it.
    Right,
}

use Side::{Left, Right};

impl Side {
    fn other(self) -> Side {
        match self {
            Left => Right,
            Right => Left,
        }
    }
}

#[derive(Clone, Debug)]
struct Slot<T> {
    entry: T,
    /// The parent's number, with the colour (1 for red) in the lowest bit (`__rb_parent_color`).
    parent_color: u32,
    children: [Option<Place>; 2],
}

/// The tree.
#[derive(Clone, Debug)]
pub struct RbTree<T> {
    slots: Slab<Slot<T>>,
    root: Option<Place>,
}

impl<T> Default for RbTree<T> {
    fn default() -> Self {
        RbTree { slots: Slab::default(), root: None }
    }
}

impl<T: Clone> RbTree<T> {
    /// The root, where a search begins.
    pub fn root(&self) -> Option<Place> {
        self.root
    }

    /// The entry of a place.
    pub fn get(&self, at: Place) -> &T {
        &self.slots.get(at).entry
    }

    /// The entry of a place, to change.
    pub fn get_mut(&mut self, at: Place) -> &mut T {
        &mut self.slots.get_mut(at).entry
    }

    fn slot(&mut self, at: Place) -> &mut Slot<T> {
        self.slots.get_mut(at)
    }

    /// The child of a place.
    pub fn child(&self, at: Place, side: Side) -> Option<Place> {
        self.slots.get(at).children[side as usize]
    }

    fn parent(&self, at: Place) -> Option<Place> {
        Place::from_number(self.slots.get(at).parent_color >> 1)
    }

    fn set_parent(&mut self, at: Place, parent: Option<Place>) {
        let color = &mut self.slot(at).parent_color;
        *color = parent.map_or(0, Place::number) << 1 | *color & 1;
    }

    fn set_red(&mut self, at: Place, is_red: bool) {
        let color = &mut self.slot(at).parent_color;
        *color = *color & !1 | u32::from(is_red);
    }

    fn is_red(&self, at: Option<Place>) -> bool {
        at.is_some_and(|at| self.slots.get(at).parent_color & 1 == 1)
    }

    fn side_of(&self, parent: Place, child: Option<Place>) -> Side {
        if self.child(parent, Left) == child {
            Left
        } else {
            Right
        }
    }

    /// rb_last.
    pub fn last(&self) -> Option<Place> {
        self.root.map(|root| self.outermost(root, Right))
    }

    fn outermost(&self, mut at: Place, side: Side) -> Place {
        while let Some(next) = self.child(at, side) {
            at = next;
        }
        at
    }

    /// rb_next.
    pub fn next(&self, at: Place) -> Option<Place> {
        self.neighbour(at, Right)
    }

    /// rb_prev.
    pub fn previous(&self, at: Place) -> Option<Place> {
        self.neighbour(at, Left)
    }

    fn neighbour(&self, mut at: Place, side: Side) -> Option<Place> {
        if let Some(child) = self.child(at, side) {
            return Some(self.outermost(child, side.other()));
        }
        while let Some(parent) = self.parent(at) {
            if self.child(parent, side) != Some(at) {
                return Some(parent);
            }
            at = parent;
        }
        None
    }

    /// rbtree_postorder_for_each_entry: every place after those below it.
    pub fn postorder(&self) -> Vec<Place> {
        let mut order = Vec::new();
        let mut left: Vec<Place> = self.root.into_iter().collect();
        while let Some(at) = left.pop() {
            order.push(at);
            left.extend([Left, Right].into_iter().filter_map(|side| self.child(at, side)));
        }
        order.reverse();
        order
    }

    /// Inserts an entry between two neighbours; `before` is none for the first entry and `after`
    /// for the last.
    pub fn insert_between(
        &mut self,
        before: Option<Place>,
        after: Option<Place>,
        entry: T,
    ) -> Place {
        let parent = match (before, after) {
            (Some(before), _) if self.child(before, Right).is_none() => Some((before, Right)),
            (_, after) => after.map(|after| (after, Left)),
        };
        self.insert(parent, entry)
    }

    /// rb_link_node and rb_insert_color: adds a leaf on a side of `parent`, which is none for the
    /// first entry.
    pub fn insert(&mut self, parent: Option<(Place, Side)>, entry: T) -> Place {
        let above = parent.map(|(place, _)| place);
        let parent_color = above.map_or(0, Place::number) << 1 | 1;
        let slot = Slot { entry, parent_color, children: [None; 2] };
        let at = self.slots.add(slot);
        match parent {
            Some((parent, side)) => self.slot(parent).children[side as usize] = Some(at),
            None => self.root = Some(at),
        }
        self.insert_color(at);
        at
    }

    fn insert_color(&mut self, mut at: Place) {
        while let Some(parent) = self.parent(at).filter(|&parent| self.is_red(Some(parent))) {
            let grand = self.parent(parent).expect("a red place has a parent");
            let side = self.side_of(grand, Some(parent));
            let uncle = self.child(grand, side.other());
            if let Some(uncle) = uncle.filter(|&uncle| self.is_red(Some(uncle))) {
                self.set_red(parent, false);
                self.set_red(uncle, false);
                self.set_red(grand, true);
                at = grand;
                continue;
            }
            let mut top = parent;
            if self.child(parent, side.other()) == Some(at) {
                self.rotate(parent, side);
                top = at;
            }
            self.set_red(top, false);
            self.set_red(grand, true);
            self.rotate(grand, side.other());
            return;
        }
        if self.parent(at).is_none() {
            self.set_red(at, false);
        }
    }

    /// Rotates: the child on the other side takes the place of `at`, which moves down on `side`.
    fn rotate(&mut self, at: Place, side: Side) {
        let up = self.child(at, side.other()).expect("a child to rotate");
        let across = self.child(up, side);
        self.slot(at).children[side.other() as usize] = across;
        if let Some(across) = across {
            self.set_parent(across, Some(at));
        }
        self.put_in_place(at, Some(up));
        self.slot(up).children[side as usize] = Some(at);
        self.set_parent(at, Some(up));
    }

    /// Makes the parent of `old` refer to `new` instead.
    fn put_in_place(&mut self, old: Place, new: Option<Place>) {
        let parent = self.parent(old);
        match parent {
            Some(parent) => {
                let side = self.side_of(parent, Some(old));
                self.slot(parent).children[side as usize] = new;
            }
            None => self.root = new,
        }
        if let Some(new) = new {
            self.set_parent(new, parent);
        }
    }

    /// rb_erase.
    pub fn erase(&mut self, at: Place) {
        let (left, right) = (self.child(at, Left), self.child(at, Right));
        let (hole, child, was_red) = match (left, right) {
            (Some(left), Some(right)) => self.erase_inner(at, left, right),
            (child, None) | (None, child) => {
                let hole = self.parent(at).map(|parent| (parent, self.side_of(parent, Some(at))));
                self.put_in_place(at, child);
                (hole, child, self.is_red(Some(at)))
            }
        };
        self.slots.remove(at);
        if was_red {
            return;
        }
        match child {
            Some(child) => self.set_red(child, false),
            None => self.erase_color(hole),
        }
    }

    /// Puts the successor of a place with two children into its place. Returns the hole that this
    /// leaves, what fills it, and whether the removed entry was red.
    #[allow(clippy::type_complexity)]
    fn erase_inner(
        &mut self,
        at: Place,
        left: Place,
        right: Place,
    ) -> (Option<(Place, Side)>, Option<Place>, bool) {
        let next = self.outermost(right, Left);
        let child = self.child(next, Right);
        let was_red = self.is_red(Some(next));
        let hole = if next == right {
            (next, Right)
        } else {
            let parent = self.parent(next).expect("below `right`");
            self.slot(parent).children[Left as usize] = child;
            if let Some(child) = child {
                self.set_parent(child, Some(parent));
            }
            self.slot(next).children[Right as usize] = Some(right);
            self.set_parent(right, Some(next));
            (parent, Left)
        };
        self.slot(next).children[Left as usize] = Some(left);
        self.set_parent(left, Some(next));
        let is_red = self.is_red(Some(at));
        self.put_in_place(at, Some(next));
        self.set_red(next, is_red);
        (Some(hole), child, was_red)
    }

    /// ____rb_erase_color: rebalances after a black entry was removed.
    fn erase_color(&mut self, mut hole: Option<(Place, Side)>) {
        while let Some((parent, side)) = hole {
            let mut sibling = self.child(parent, side.other()).expect("a black place is missing");
            if self.is_red(Some(sibling)) {
                self.rotate(parent, side);
                self.set_red(sibling, false);
                self.set_red(parent, true);
                sibling = self.child(parent, side.other()).expect("black below a red one");
            }
            let (near, far) = (self.child(sibling, side), self.child(sibling, side.other()));
            if !self.is_red(far) && !self.is_red(near) {
                self.set_red(sibling, true);
                if self.is_red(Some(parent)) {
                    self.set_red(parent, false);
                    return;
                }
                let above = self.parent(parent);
                hole = above.map(|above| (above, self.side_of(above, Some(parent))));
                continue;
            }
            if !self.is_red(far) {
                self.rotate(sibling, side.other());
                self.set_red(sibling, true);
                sibling = near.expect("red");
                self.set_red(sibling, false);
            }
            let far = self.child(sibling, side.other()).expect("red");
            self.set_red(sibling, self.is_red(Some(parent)));
            self.set_red(parent, false);
            self.set_red(far, false);
            self.rotate(parent, side);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of black places on each way down, or none if the tree is not red-black.
    fn black_height(tree: &RbTree<u32>, at: Option<Place>) -> Option<u32> {
        let Some(at) = at else { return Some(0) };
        let children = [tree.child(at, Left), tree.child(at, Right)];
        if tree.is_red(Some(at)) && children.iter().any(|&child| tree.is_red(child)) {
            return None;
        }
        let heights = children.map(|child| black_height(tree, child));
        let same = heights[0] == heights[1];
        heights[0].filter(|_| same).map(|height| height + u32::from(!tree.is_red(Some(at))))
    }

    fn put(tree: &mut RbTree<u32>, value: u32) {
        let (mut at, mut parent) = (tree.root(), None);
        while let Some(place) = at {
            let side = if value > *tree.get(place) { Right } else { Left };
            parent = Some((place, side));
            at = tree.child(place, side);
        }
        tree.insert(parent, value);
    }

    #[test]
    fn it_stays_red_black_and_in_order_whatever_comes_and_goes() {
        let (mut tree, mut there, mut random) = (RbTree::default(), Vec::new(), 1_u32);
        for _ in 0..3_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if random >> 16 & 3 == 0 && !there.is_empty() {
                let value = there.remove((random >> 18) as usize % there.len());
                let mut at = tree.last();
                while at.is_some_and(|place| *tree.get(place) != value) {
                    at = tree.previous(at.expect("it is there"));
                }
                tree.erase(at.expect("it is there"));
            } else {
                put(&mut tree, random);
                there.push(random);
            }
            assert!(black_height(&tree, tree.root()).is_some());
        }
        there.sort_unstable();
        let order = tree.postorder();
        let at = |place: Option<Place>| order.iter().position(|&other| Some(other) == place);
        for &place in &order {
            let children = [Left, Right].map(|side| at(tree.child(place, side)));
            assert!(children[0].is_none() || children[1].is_none() || children[0] < children[1]);
            assert!(children.iter().flatten().all(|&child| Some(child) < at(Some(place))));
        }
        assert_eq!(order.len(), there.len());
        let (mut at, mut listed) = (tree.last(), Vec::new());
        while let Some(place) = at {
            listed.push(*tree.get(place));
            at = tree.previous(place);
        }
        listed.reverse();
        assert_eq!(listed, there);
    }
}
