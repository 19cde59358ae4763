//! The free blocks, ordered by erase count and number.
//!
//! While all blocks are about equally worn, UBI takes the block at the *root* of its red-black tree
//! of free blocks (drivers/mtd/ubi/wl.c find_mean_wl_entry). Which block that is depends on the
//! tree's history. This tree therefore does what the kernel's lib/rbtree.c does: the successor of a
//! deleted node with two children takes its place and colour.
//!
//! Invariants:
//! 1. In order of (erases, block), left to right.
//! 2. The root is black, a red node has black children, and every path down has the same number of
//!    black nodes.

/// CONFIG_MTD_UBI_WL_THRESHOLD.
pub(super) const THRESHOLD: u32 = 4096;
/// WL_FREE_MAX_DIFF.
pub(super) const FREE_MAX_DIFF: u32 = 2 * THRESHOLD;

/// No block. Also the black leaf below every other.
const NONE: u32 = u32::MAX;
const LEFT: usize = 0;
const RIGHT: usize = 1;

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    children: [u32; 2],
    erases: u32,
    red: bool,
}

/// A red-black tree of blocks; its nodes are indexed by block number.
#[derive(Clone, Debug)]
pub struct FreeBlocks {
    nodes: Vec<Node>,
    root: u32,
    count: u32,
}

impl FreeBlocks {
    /// An empty tree for blocks `0..blocks`.
    pub fn new(blocks: u32) -> FreeBlocks {
        let node = Node { parent: NONE, children: [NONE; 2], erases: 0, red: false };
        FreeBlocks { nodes: vec![node; blocks as usize], root: NONE, count: 0 }
    }

    /// Whether no block is free.
    pub fn is_empty(&self) -> bool {
        self.root == NONE
    }

    /// How many are free (`free_count`).
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Takes a block for data (find_mean_wl_entry): the root. If the erase counts differ by more
    /// than `max_difference`, a block with `WL_FREE_MAX_DIFF / 2` more erases than the least worn
    /// one. A root below `held_back` is left, and the block after it is taken
    /// (may_reserve_for_fm).
    pub fn take(&mut self, max_difference: u32, held_back: u32) -> Option<u32> {
        let (first, last) = (self.end(LEFT)?, self.end(RIGHT)?);
        let apart = self.erases(last) - self.erases(first);
        let block = if apart >= max_difference {
            self.closest(max_difference / 2)?
        } else if self.root < held_back {
            self.next(self.root)?
        } else {
            self.root
        };
        self.remove(block);
        Some(block)
    }

    /// Takes the least worn of the blocks below `end` (find_anchor_wl_entry).
    pub fn take_below(&mut self, end: u32) -> Option<u32> {
        let block = self.in_order().find(|&block| block < end)?;
        self.remove(block);
        Some(block)
    }

    /// All of them, from the least worn on.
    pub fn in_order(&self) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.end(LEFT), |&block| self.next(block))
    }

    /// rb_next.
    fn next(&self, block: u32) -> Option<u32> {
        let mut at = self.child(block, RIGHT);
        if at != NONE {
            while self.child(at, LEFT) != NONE {
                at = self.child(at, LEFT);
            }
            return Some(at);
        }
        at = block;
        while self.parent(at) != NONE && self.child(self.parent(at), RIGHT) == at {
            at = self.parent(at);
        }
        Some(self.parent(at)).filter(|&parent| parent != NONE)
    }

    /// Takes a worn block (get_peb_for_wl).
    pub fn take_worn(&mut self, difference: u32) -> Option<u32> {
        let block = self.closest(difference)?;
        self.remove(block);
        Some(block)
    }

    /// find_wl_entry: the last block with less than `difference` erases more than the first.
    pub fn closest(&self, difference: u32) -> Option<u32> {
        let mut found = self.end(LEFT)?;
        let most = self.erases(found) + difference;
        let mut at = self.root;
        while at != NONE {
            let below = self.erases(at) < most;
            if below {
                found = at;
            }
            at = self.child(at, usize::from(below));
        }
        Some(found)
    }

    /// rb_first and rb_last.
    fn end(&self, side: usize) -> Option<u32> {
        let mut at = Some(self.root).filter(|&root| root != NONE)?;
        while self.child(at, side) != NONE {
            at = self.child(at, side);
        }
        Some(at)
    }

    fn erases(&self, block: u32) -> u32 {
        self.nodes[block as usize].erases
    }

    /// Adds a block that is not in the tree.
    pub fn insert(&mut self, block: u32, erases: u32) {
        self.count += 1;
        let (mut parent, mut side, mut at) = (NONE, LEFT, self.root);
        while at != NONE {
            let node = &self.nodes[at as usize];
            side = usize::from((erases, block) > (node.erases, at));
            (parent, at) = (at, node.children[side]);
        }
        self.nodes[block as usize] = Node { parent, children: [NONE; 2], erases, red: true };
        if parent == NONE {
            self.root = block;
        } else {
            self.nodes[parent as usize].children[side] = block;
        }
        self.balance_inserted(block);
    }

    fn is_red(&self, block: u32) -> bool {
        block != NONE && self.nodes[block as usize].red
    }

    fn set_red(&mut self, block: u32, red: bool) {
        if block != NONE {
            self.nodes[block as usize].red = red;
        }
    }

    fn parent(&self, block: u32) -> u32 {
        self.nodes[block as usize].parent
    }

    fn child(&self, block: u32, side: usize) -> u32 {
        self.nodes[block as usize].children[side]
    }

    /// Puts `new`, or nothing, into the place of `old`.
    fn replace(&mut self, old: u32, new: u32) {
        let parent = self.parent(old);
        if parent == NONE {
            self.root = new;
        } else {
            let side = usize::from(self.child(parent, RIGHT) == old);
            self.nodes[parent as usize].children[side] = new;
        }
        if new != NONE {
            self.nodes[new as usize].parent = parent;
        }
    }

    /// Rotates `block` down to `side`; its child on the other side takes its place.
    fn rotate(&mut self, block: u32, side: usize) {
        let up = self.child(block, 1 - side);
        let inner = self.child(up, side);
        self.nodes[block as usize].children[1 - side] = inner;
        if inner != NONE {
            self.nodes[inner as usize].parent = block;
        }
        self.replace(block, up);
        self.nodes[up as usize].children[side] = block;
        self.nodes[block as usize].parent = up;
    }

    fn balance_inserted(&mut self, block: u32) {
        let mut at = block;
        while self.parent(at) != NONE && self.is_red(self.parent(at)) {
            let mut parent = self.parent(at);
            let grandparent = self.parent(parent);
            let side = usize::from(self.child(grandparent, RIGHT) == parent);
            let uncle = self.child(grandparent, 1 - side);
            self.set_red(grandparent, true);
            if self.is_red(uncle) {
                self.set_red(parent, false);
                self.set_red(uncle, false);
                at = grandparent;
                continue;
            }
            if self.child(parent, 1 - side) == at {
                self.rotate(parent, side);
                parent = at;
            }
            self.set_red(parent, false);
            self.rotate(grandparent, 1 - side);
            break;
        }
        self.set_red(self.root, false);
    }

    fn remove(&mut self, block: u32) {
        self.count -= 1;
        let [left, right] = self.nodes[block as usize].children;
        let lost_red;
        let hole;
        let hole_parent;
        if left == NONE || right == NONE {
            lost_red = self.is_red(block);
            hole = if left == NONE { right } else { left };
            hole_parent = self.parent(block);
            self.replace(block, hole);
        } else {
            let mut next = right;
            while self.child(next, LEFT) != NONE {
                next = self.child(next, LEFT);
            }
            lost_red = self.is_red(next);
            hole = self.child(next, RIGHT);
            if next == right {
                hole_parent = next;
            } else {
                hole_parent = self.parent(next);
                self.replace(next, hole);
                self.adopt(next, RIGHT, right);
            }
            self.replace(block, next);
            self.adopt(next, LEFT, left);
            let red = self.is_red(block);
            self.set_red(next, red);
        }
        if !lost_red {
            self.balance_removed(hole, hole_parent);
        }
    }

    fn adopt(&mut self, parent: u32, side: usize, child: u32) {
        self.nodes[parent as usize].children[side] = child;
        self.nodes[child as usize].parent = parent;
    }

    /// Rebalances: `at`, possibly nothing, below `parent` has one black node too few.
    fn balance_removed(&mut self, at: u32, parent: u32) {
        let (mut at, mut parent) = (at, parent);
        while parent != NONE && !self.is_red(at) {
            let side = usize::from(self.child(parent, LEFT) != at);
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.set_red(sibling, false);
                self.set_red(parent, true);
                self.rotate(parent, side);
                sibling = self.child(parent, 1 - side);
            }
            let (near, far) = (self.child(sibling, side), self.child(sibling, 1 - side));
            if !self.is_red(near) && !self.is_red(far) {
                self.set_red(sibling, true);
                (at, parent) = (parent, self.parent(parent));
                continue;
            }
            if !self.is_red(far) {
                self.set_red(near, false);
                self.set_red(sibling, true);
                self.rotate(sibling, 1 - side);
                sibling = self.child(parent, 1 - side);
            }
            let red = self.is_red(parent);
            self.set_red(sibling, red);
            self.set_red(parent, false);
            self.set_red(self.child(sibling, 1 - side), false);
            self.rotate(parent, side);
            return;
        }
        self.set_red(at, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of black nodes on every path below `block`; panics if an invariant is broken.
    fn blacks(tree: &FreeBlocks, block: u32, out: &mut Vec<(u32, u32)>) -> u32 {
        if block == NONE {
            return 0;
        }
        let node = tree.nodes[block as usize];
        for child in node.children {
            assert!(!(node.red && tree.is_red(child)), "two reds in a row at {block}");
            assert!(child == NONE || tree.parent(child) == block);
        }
        let left = blacks(tree, node.children[LEFT], out);
        out.push((node.erases, block));
        let right = blacks(tree, node.children[RIGHT], out);
        assert_eq!(left, right, "unbalanced at {block}");
        left + u32::from(!node.red)
    }

    #[test]
    fn it_stays_a_red_black_tree() {
        let mut tree = FreeBlocks::new(300);
        (0..300).for_each(|block| tree.insert(block, 0));
        let mut free = 300;
        for round in 0..2000u32 {
            let taken = (round * 7919 % 11).min(free);
            let blocks: Vec<u32> = (0..taken).filter_map(|_| tree.take(8192, 0)).collect();
            free -= taken;
            for &block in blocks.iter().skip((round % 3) as usize) {
                tree.insert(block, round % 5);
                free += 1;
            }
            if round % 50 == 49 {
                let missing: Vec<u32> = {
                    let mut order = Vec::new();
                    blacks(&tree, tree.root, &mut order);
                    (0..300).filter(|&b| order.iter().all(|&(_, other)| other != b)).collect()
                };
                missing.iter().for_each(|&block| tree.insert(block, 1));
                free += missing.len() as u32;
            }
            let mut order = Vec::new();
            blacks(&tree, tree.root, &mut order);
            assert!(order.is_sorted() && order.len() == free as usize);
        }
    }

    #[test]
    fn blocks_in_order_make_the_tree_every_textbook_draws() {
        let mut tree = FreeBlocks::new(8);
        (0..8).for_each(|block| tree.insert(block, 0));
        assert_eq!(tree.take(8192, 0), Some(3));
        assert_eq!(tree.take(8192, 0), Some(4), "its successor took its place");
    }
}
