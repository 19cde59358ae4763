//! The place of each chunk of a file: a tree of tnodes.
//!
//! Mirrors yaffs_find_tnode_0, yaffs_add_find_tnode_0 and yaffs_prune_tree of yaffs_guts.c: a tnode
//! of level 0 has 16 chunks, one of any other level 8 tnodes. Their number decides the length of a
//! checkpoint, so they are counted as in the core.
//!
//! Invariant: the tnode of the first chunks always exists, and so do all above it.

use super::Chunk;

const CHUNKS_PER_TNODE: usize = 16;
const LEVEL0_BITS: u32 = 4;
const INTERNAL_BITS: u32 = 3;

/// The tree. A file's chunks are counted from 1; place 0 is none.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    leaves: Vec<Option<Box<[Chunk; CHUNKS_PER_TNODE]>>>,
    /// The number of children of each tnode from level 1 on, by level.
    children: Vec<Vec<u8>>,
    tnodes: u32,
}

impl Tree {
    /// The tree of an empty file.
    pub fn new() -> Tree {
        Tree { leaves: vec![Some(Box::default())], children: Vec::new(), tnodes: 1 }
    }

    /// The number of tnodes on all levels.
    pub fn tnodes(&self) -> u32 {
        self.tnodes
    }

    /// The number of tnodes on level 0.
    pub fn leaves(&self) -> u32 {
        self.leaves.iter().flatten().count() as u32
    }

    /// The place of a chunk of the file.
    #[inline]
    pub fn get(&self, chunk: u32) -> Chunk {
        let leaf = self.leaves.get((chunk >> LEVEL0_BITS) as usize).and_then(Option::as_ref);
        leaf.map_or(0, |leaf| leaf[chunk as usize % CHUNKS_PER_TNODE])
    }

    /// Sets the place of a chunk. `to` may be none, which still creates the tnode.
    pub fn set(&mut self, chunk: u32, to: Chunk) {
        let index = (chunk >> LEVEL0_BITS) as usize;
        self.add_leaf(index);
        let leaf = self.leaves[index].as_mut().expect("just added");
        leaf[chunk as usize % CHUNKS_PER_TNODE] = to;
    }

    /// Clears the place of a chunk; returns the old place.
    pub fn take(&mut self, chunk: u32) -> Chunk {
        let leaf = self.leaves.get_mut((chunk >> LEVEL0_BITS) as usize).and_then(Option::as_mut);
        leaf.map_or(0, |leaf| std::mem::take(&mut leaf[chunk as usize % CHUNKS_PER_TNODE]))
    }

    /// The chunks in `first..=last` that have a place, the last first. Skips holes, which may be
    /// most of a file.
    pub fn there_from(&self, first: u32, last: u32) -> Vec<u32> {
        let index = |chunk: u32| self.leaves.len().min((chunk >> LEVEL0_BITS) as usize);
        let leaves = index(first)..(index(last) + 1).min(self.leaves.len()).max(index(first));
        let leaves = leaves.rev().filter(|&leaf| self.leaves[leaf].is_some());
        let of_leaf = |leaf: usize| {
            let start = (leaf * CHUNKS_PER_TNODE) as u32;
            (start..start + CHUNKS_PER_TNODE as u32).rev()
        };
        let chunks = leaves.flat_map(of_leaf).filter(|chunk| (first..=last).contains(chunk));
        chunks.filter(|&chunk| self.get(chunk) != 0).collect()
    }

    /// All chunks with a place, as (chunk of the file, chunk on flash).
    pub fn chunks(&self) -> impl Iterator<Item = (u32, Chunk)> + '_ {
        self.leaves.iter().enumerate().flat_map(|(index, leaf)| {
            let first = (index * CHUNKS_PER_TNODE) as u32;
            let places = leaf.iter().flat_map(|leaf| leaf.iter().copied());
            (first..).zip(places).filter(|&(_, chunk)| chunk != 0)
        })
    }

    /// Raises the tree to the needed height and adds the missing tnodes on the path.
    fn add_leaf(&mut self, index: usize) {
        while index >> (INTERNAL_BITS as usize * self.children.len()) > 0 {
            self.children.push(vec![1]);
            self.tnodes += 1;
        }
        if self.leaves.len() <= index {
            self.leaves.resize_with(index + 1, || None);
        }
        if self.leaves[index].is_some() {
            return;
        }
        self.leaves[index] = Some(Box::default());
        self.tnodes += 1;
        let mut above = index;
        for level in &mut self.children {
            above >>= INTERNAL_BITS;
            if level.len() <= above {
                level.resize(above + 1, 0);
            }
            level[above] += 1;
            if level[above] > 1 {
                return;
            }
            self.tnodes += 1;
        }
    }

    fn remove_leaf(&mut self, index: usize) {
        self.leaves[index] = None;
        self.tnodes -= 1;
        let mut above = index;
        for level in &mut self.children {
            above >>= INTERNAL_BITS;
            level[above] -= 1;
            if level[above] > 0 {
                return;
            }
            self.tnodes -= 1;
        }
    }

    /// yaffs_prune_tree: removes tnodes without chunks, except the first leaf's, then levels that
    /// have only that one.
    pub fn prune(&mut self) {
        if self.children.is_empty() {
            return;
        }
        for index in 1..self.leaves.len() {
            let empty =
                self.leaves[index].as_ref().is_some_and(|leaf| leaf.iter().all(|&to| to == 0));
            if empty {
                self.remove_leaf(index);
            }
        }
        let last = self.leaves.iter().rposition(Option::is_some).expect("the first is there");
        self.leaves.truncate(last + 1);
        while last >> (INTERNAL_BITS as usize * self.children.len().saturating_sub(1)) == 0 {
            if self.children.pop().is_none() {
                break;
            }
            self.tnodes -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_grows_and_shrinks_as_the_cores() {
        let mut tree = Tree::new();
        assert_eq!(tree.tnodes(), 1);
        tree.set(1, 77);
        tree.set(15, 78);
        assert_eq!(tree.tnodes(), 1);
        // A second tnode of level 0 needs a tnode of level 1 above both.
        tree.set(16, 79);
        assert_eq!(tree.tnodes(), 3);
        // The ninth needs level 2 and a second tnode of level 1.
        tree.set(8 * 16, 80);
        assert_eq!(tree.tnodes(), 1 + 1 + 1 + 1 + 2);
        assert_eq!(tree.chunks().collect::<Vec<_>>(), [(1, 77), (15, 78), (16, 79), (128, 80)]);
        assert_eq!((tree.take(128), tree.take(128)), (80, 0));
        tree.prune();
        assert_eq!(tree.tnodes(), 3);
        assert_eq!((tree.take(16), tree.take(1), tree.take(15)), (79, 77, 78));
        tree.prune();
        assert_eq!((tree.tnodes(), tree.get(1), tree.leaves()), (1, 0, 1));
    }
}
