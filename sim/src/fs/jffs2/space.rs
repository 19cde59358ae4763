//! Eraseblocks: their books, the lists they are on, and the trigger levels.
//!
//! Mirrors struct jffs2_eraseblock and the lists and sums of struct jffs2_sb_info
//! (fs/jffs2/nodelist.h, jffs2_fs_sb.h) and jffs2_calc_trigger_levels of build.c, Linux 6.1. 2.6.37
//! is the same. There is no erasing_list and no erase_checking_list: erasing is synchronous, and no
//! other code sees a block meanwhile.
//!
//! Invariants:
//! 1. `total` is the sum of all blocks' books. The books of a block that is being erased are zero.
//! 2. A block is on at most one list. The block being written, the one being collected and the one
//!    being erased are on none.
//! 3. Removing a block from a list takes constant time.

use super::layout::{is_dirty, write_blocks, DELETION_BLOCKS};
use super::node::NodeId;
use crate::mtd::{Mtd, NandDriver};
use crate::victim::Candidate;

/// The outcome of a pass of garbage collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// A block was erased, or a node moved.
    Progress,
    /// There is no block to collect, but one is being erased (-EAGAIN).
    Again,
    /// There is no block to collect (-EIO).
    NoBlock,
}

/// Means no block in a list's links.
const NONE: u32 = u32::MAX;

/// The lists of struct jffs2_sb_info, by the kernel's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum List {
    Free,
    Clean,
    Dirty,
    VeryDirty,
    Erasable,
    ErasablePendingWbuf,
    ErasePending,
    EraseComplete,
    BadUsed,
}

const LISTS: usize = 9;

/// The bytes of a block, or of all blocks, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Books {
    pub free_bytes: u32,
    pub used_bytes: u32,
    /// In nodes that a mount has found and not checked yet.
    pub unchecked_bytes: u32,
    pub dirty_bytes: u32,
    pub wasted_bytes: u32,
}

impl Books {
    /// Counts the wasted bytes as dirty.
    pub fn waste_to_dirt(&mut self) {
        self.dirty_bytes += std::mem::take(&mut self.wasted_bytes);
    }
}

/// struct jffs2_eraseblock.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub books: Books,
    pub first_node: Option<NodeId>,
    pub last_node: Option<NodeId>,
    list: Option<List>,
    before: u32,
    after: u32,
    /// bad_count.
    failed_erases: u8,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
    blocks: u32,
}

/// The trigger levels, in blocks and bytes (jffs2_calc_trigger_levels).
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    /// resv_blocks_write: a writer collects until this many blocks are free.
    pub write_blocks: u32,
    /// resv_blocks_deletion: the same for an operation that frees space.
    pub deletion_blocks: u32,
    /// resv_blocks_gctrigger: below this many free blocks the collector thread works.
    pub trigger_blocks: u32,
    /// resv_blocks_gcmerge: the collector merges neighbours while more than this many are free.
    pub merge_blocks: u32,
    /// resv_blocks_gcbad.
    pub bad_blocks: u32,
    /// vdirty_blocks_gctrigger: this many very dirty blocks are work for the thread, too.
    pub very_dirty_blocks: u32,
    /// nospc_dirty_size: with fewer dirty bytes collecting is pointless.
    pub no_space_dirty_bytes: u32,
}

impl Levels {
    fn new(blocks: u32, block_bytes: u32, marks_obsolete: bool) -> Levels {
        let flash_bytes = u64::from(blocks) * u64::from(block_bytes);
        let deletion_blocks = DELETION_BLOCKS;
        let write_blocks = write_blocks(blocks, block_bytes);
        let no_space = u64::from(block_bytes) + flash_bytes / 100;
        Levels {
            write_blocks,
            deletion_blocks,
            trigger_blocks: write_blocks + 1,
            merge_blocks: deletion_blocks + 1,
            bad_blocks: 0,
            very_dirty_blocks: (write_blocks + 1) * if marks_obsolete { 10 } else { 1 },
            no_space_dirty_bytes: u32::try_from(no_space).expect("a partition below 4 GiB"),
        }
    }
}

/// All blocks.
#[derive(Clone, Debug)]
pub struct Space {
    blocks: Vec<Block>,
    ends: [Ends; LISTS],
    block_bytes: u32,
    /// jffs2_can_mark_obsolete: dirty blocks cost a mount nothing more.
    marks_obsolete: bool,
    pub levels: Levels,
    pub total: Books,
    /// erasing_size: bytes of blocks whose erase has begun and that are not free yet.
    pub erasing_bytes: u32,
    /// nr_erasing_blocks: blocks on their way from the erase_pending_list to the free_list.
    pub erasing_blocks: u32,
}

impl Space {
    /// Erased blocks that are on no list yet.
    pub fn new(blocks: u32, block_bytes: u32, marks_obsolete: bool) -> Space {
        let books = Books { free_bytes: block_bytes, ..Books::default() };
        let block = Block {
            books,
            first_node: None,
            last_node: None,
            list: None,
            before: NONE,
            after: NONE,
            failed_erases: 0,
        };
        let total = Books { free_bytes: blocks.wrapping_mul(block_bytes), ..Books::default() };
        Space {
            blocks: vec![block; blocks as usize],
            ends: [Ends { first: NONE, last: NONE, blocks: 0 }; LISTS],
            block_bytes,
            marks_obsolete,
            levels: Levels::new(blocks, block_bytes, marks_obsolete),
            total,
            erasing_bytes: 0,
            erasing_blocks: 0,
        }
    }

    #[inline]
    pub fn block(&self, number: u32) -> &Block {
        &self.blocks[number as usize]
    }

    /// The first and last node of a block.
    pub fn nodes_of(&mut self, number: u32) -> (&mut Option<NodeId>, &mut Option<NodeId>) {
        let block = &mut self.blocks[number as usize];
        (&mut block.first_node, &mut block.last_node)
    }

    /// Whether a block has books. It has none from before its erase until its cleanmarker is
    /// written.
    pub fn is_counted(&self, number: u32) -> bool {
        self.block(number).books != Books::default()
    }

    /// Resets everything for a mount.
    pub fn forget(&mut self) {
        let blocks = u32::try_from(self.blocks.len()).expect("fewer than 2^32 blocks");
        let mut fresh = Space::new(blocks, self.block_bytes, self.marks_obsolete);
        for (new, old) in fresh.blocks.iter_mut().zip(&self.blocks) {
            *new = Block { list: None, before: NONE, after: NONE, failed_erases: 0, ..*old };
        }
        fresh.total = self.total;
        *self = fresh;
    }

    /// Drops a block's nodes.
    pub fn forget_nodes(&mut self, number: u32) {
        let free_bytes = self.block_bytes;
        self.change(number, |books| *books = Books { free_bytes, ..Books::default() });
        let block = &mut self.blocks[number as usize];
        (block.first_node, block.last_node) = (None, None);
    }

    /// rotate_list: moves the list's head past this many blocks.
    pub fn rotate(&mut self, list: List, by: u32) {
        for _ in 0..by {
            if let Some(first) = self.pop_front(list) {
                self.push_back(list, first);
            }
        }
    }

    /// Changes a block's books and the sums.
    #[inline]
    pub fn change(&mut self, number: u32, change: impl FnOnce(&mut Books)) {
        let books = &mut self.blocks[number as usize].books;
        let before = *books;
        change(books);
        let after = *books;
        let total = &mut self.total;
        let moved = |sum: &mut u32, before: u32, after: u32| {
            *sum = sum.wrapping_add(after.wrapping_sub(before));
        };
        moved(&mut total.free_bytes, before.free_bytes, after.free_bytes);
        moved(&mut total.used_bytes, before.used_bytes, after.used_bytes);
        moved(&mut total.unchecked_bytes, before.unchecked_bytes, after.unchecked_bytes);
        moved(&mut total.dirty_bytes, before.dirty_bytes, after.dirty_bytes);
        moved(&mut total.wasted_bytes, before.wasted_bytes, after.wasted_bytes);
    }

    /// [`Books::waste_to_dirt`] of a block.
    pub fn waste_to_dirt(&mut self, number: u32) {
        self.change(number, Books::waste_to_dirt);
    }

    /// Counts the dirty bytes of a clean block, or of the next one to write, as wasted.
    pub fn dirt_to_waste(&mut self, number: u32) {
        self.change(number, |books| {
            books.wasted_bytes += books.dirty_bytes;
            books.dirty_bytes = 0;
        });
    }

    /// VERYDIRTY (nodelist.h).
    pub fn is_very_dirty(&self, bytes: u32) -> bool {
        bytes >= self.block_bytes / 2
    }

    /// list_add_tail.
    pub fn push_back(&mut self, list: List, number: u32) {
        let ends = &mut self.ends[list as usize];
        let last = std::mem::replace(&mut ends.last, number);
        ends.blocks += 1;
        if last == NONE {
            ends.first = number;
        } else {
            self.blocks[last as usize].after = number;
        }
        self.enter(list, number, last, NONE);
    }

    /// list_add.
    pub fn push_front(&mut self, list: List, number: u32) {
        let ends = &mut self.ends[list as usize];
        let first = std::mem::replace(&mut ends.first, number);
        ends.blocks += 1;
        if first == NONE {
            ends.last = number;
        } else {
            self.blocks[first as usize].before = number;
        }
        self.enter(list, number, NONE, first);
    }

    fn enter(&mut self, list: List, number: u32, before: u32, after: u32) {
        let block = &mut self.blocks[number as usize];
        assert!(block.list.is_none(), "block {number} is on the {:?} list", block.list);
        (block.list, block.before, block.after) = (Some(list), before, after);
    }

    /// list_del; does nothing for a block on no list.
    pub fn remove(&mut self, number: u32) {
        let block = &mut self.blocks[number as usize];
        let Some(list) = block.list.take() else { return };
        let (before, after) = (block.before, block.after);
        let ends = &mut self.ends[list as usize];
        ends.blocks -= 1;
        if before == NONE {
            ends.first = after;
        } else {
            self.blocks[before as usize].after = after;
        }
        if after == NONE {
            ends.last = before;
        } else {
            self.blocks[after as usize].before = before;
        }
    }

    /// Takes the first block off a list.
    pub fn pop_front(&mut self, list: List) -> Option<u32> {
        let first = self.first(list)?;
        self.remove(first);
        Some(first)
    }

    /// The first block of a list.
    pub fn first(&self, list: List) -> Option<u32> {
        Some(self.ends[list as usize].first).filter(|&first| first != NONE)
    }

    /// The number of blocks on a list.
    #[inline]
    pub fn len(&self, list: List) -> u32 {
        self.ends[list as usize].blocks
    }

    /// Whether a list is empty.
    #[inline]
    pub fn is_empty(&self, list: List) -> bool {
        self.len(list) == 0
    }

    /// The blocks that the collector could take, with the erase counts of the chip.
    pub fn candidates<D: NandDriver>(&self, mtd: &Mtd<D>) -> Vec<Candidate> {
        let lists = [
            (List::BadUsed, "bad_used"),
            (List::Erasable, "erasable"),
            (List::VeryDirty, "very_dirty"),
            (List::Dirty, "dirty"),
            (List::Clean, "clean"),
        ];
        let on = |(list, name)| {
            let next = |&block: &u32| Some(self.block(block).after).filter(|&next| next != NONE);
            let blocks = std::iter::successors(self.first(list), next);
            blocks.map(move |block| (block, name))
        };
        let candidate = |(block, list)| {
            let books = self.block(block).books;
            Candidate {
                block,
                live_bytes: books.used_bytes + books.unchecked_bytes,
                dirty_bytes: books.dirty_bytes + books.wasted_bytes,
                free_bytes: books.free_bytes,
                erases: Some(mtd.block_erases(block)),
                sequence: None,
                list,
            }
        };
        lists.into_iter().flat_map(on).map(candidate).collect()
    }

    /// Whether a block is on a list.
    pub fn is_on(&self, list: List, number: u32) -> bool {
        self.block(number).list == Some(list)
    }

    /// nr_free_blocks + nr_erasing_blocks.
    #[inline]
    pub fn free_or_erasing_blocks(&self) -> u32 {
        self.len(List::Free) + self.erasing_blocks
    }

    /// Queues a block for erasing.
    pub fn await_erase(&mut self, number: u32) {
        self.push_back(List::ErasePending, number);
        self.erasing_blocks += 1;
    }

    /// Queues a block for erasing before all others.
    pub fn await_erase_first(&mut self, number: u32) {
        self.push_front(List::ErasePending, number);
        self.erasing_blocks += 1;
    }

    /// ++bad_count: counts a failed erase and returns how many there were since the mount.
    pub fn count_failed_erase(&mut self, number: u32) -> u8 {
        let failed = &mut self.blocks[number as usize].failed_erases;
        *failed += 1;
        *failed
    }

    /// Whether a block waits to be erased, or to be checked after its erase.
    #[inline]
    pub fn erases_wait(&self) -> bool {
        !self.is_empty(List::ErasePending) || !self.is_empty(List::EraseComplete)
    }

    /// Dirty bytes that collecting could reclaim. Wraps as the kernel's unsigned sum does: blocks
    /// that wait for their erase are subtracted whole, although their wasted bytes were never
    /// added.
    pub fn collectable_bytes(&self) -> u32 {
        (self.total.dirty_bytes.wrapping_add(self.erasing_bytes))
            .wrapping_sub(self.erasing_blocks.wrapping_mul(self.block_bytes))
    }

    /// jffs2_thread_should_wake.
    pub fn thread_should_wake(&self) -> bool {
        self.erases_wait()
            || self.total.unchecked_bytes > 0
            || (self.free_or_erasing_blocks() < self.levels.trigger_blocks
                && self.collectable_bytes() > self.levels.no_space_dirty_bytes)
            || self.len(List::VeryDirty) >= self.levels.very_dirty_blocks
    }

    /// Files a block that is written no more (jffs2_close_nextblock).
    pub fn file_closed(&mut self, number: u32) {
        let Books { dirty_bytes, wasted_bytes, .. } = self.block(number).books;
        if !is_dirty(wasted_bytes + dirty_bytes) {
            self.push_back(List::Clean, number);
            return;
        }
        self.waste_to_dirt(number);
        let very = self.is_very_dirty(dirty_bytes + wasted_bytes);
        self.push_back(if very { List::VeryDirty } else { List::Dirty }, number);
    }
}
