//! Another choice of the block that a garbage collector takes.
//!
//! Each file system finds the blocks that its collector could take now, in its own order, and asks
//! for one of them. When it collects, how much of a block, and where to is still its own.

use crate::stop::misbehaved;
use crate::units::Ns;
use core::fmt::Debug;
use dyn_clone::DynClone;

/// A block that a collector could take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The number by which the file system knows it: a block of the partition, for UBIFS a LEB.
    pub block: u32,
    /// Bytes that are of use. The collector has to move them.
    pub live_bytes: u32,
    /// Bytes that were written and are of no use any more.
    pub dirty_bytes: u32,
    /// Bytes that were not written since the block was erased.
    pub free_bytes: u32,
    /// The erase count of the block; none for a LEB without a block. No file system here knows it.
    pub erases: Option<u32>,
    /// When the block was begun, as a count of blocks, if the file system keeps it (YAFFS2).
    pub sequence: Option<u32>,
    /// The kernel's list or category that it is on.
    pub list: &'static str,
}

/// Why a collector looks for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A call waits for space.
    Space,
    /// A call writes, and there is space left (YAFFS2's passive collection).
    Write,
    /// A background thread has time.
    Idle,
}

/// A policy of garbage collection: which block is collected next.
///
/// A file system without one does as its kernel code does (jffs2_find_gc_block,
/// yaffs_find_gc_block, ubifs_find_dirty_leb). Blocks that are taken for another reason than their
/// content are not asked for: one with bit errors, one that is due for a refresh, an empty LEB.
///
/// # Examples
///
/// The block with the most bytes to free:
///
/// ```
/// use sim::units::Ns;
/// use sim::victim::{Candidate, Victim, Why};
/// #[derive(Clone, Debug)]
/// struct Dirtiest;
///
/// impl Victim for Dirtiest {
///     fn choose(&mut self, _: Ns, _: Why, blocks: &[Candidate]) -> Option<Candidate> {
///         blocks.iter().copied().max_by_key(|block| block.dirty_bytes)
///     }
/// }
/// ```
pub trait Victim: DynClone + Debug + Send + Sync {
    /// Chooses one of `blocks`, of which there is at least one. None collects nothing now. A call
    /// that waits for space then fails as it does without any block: with ENOSPC, on JFFS2 with
    /// EIO.
    fn choose(&mut self, now: Ns, why: Why, blocks: &[Candidate]) -> Option<Candidate>;
}

/// The block with the least to move; of equal ones the one that was erased least.
#[derive(Clone, Copy, Debug)]
pub struct Greedy;

impl Victim for Greedy {
    fn choose(&mut self, _: Ns, _: Why, blocks: &[Candidate]) -> Option<Candidate> {
        let dirty = blocks.iter().filter(|block| block.dirty_bytes > 0);
        dirty.min_by_key(|block| (block.live_bytes, block.erases, block.block)).copied()
    }
}

/// Of the blocks with something to free, the one that was erased least; of equal ones the one with
/// the least to move.
#[derive(Clone, Copy, Debug)]
pub struct LeastWorn;

impl Victim for LeastWorn {
    fn choose(&mut self, _: Ns, _: Why, blocks: &[Candidate]) -> Option<Candidate> {
        let dirty = blocks.iter().filter(|block| block.dirty_bytes > 0);
        dirty.min_by_key(|block| (block.erases, block.live_bytes, block.block)).copied()
    }
}

dyn_clone::clone_trait_object!(Victim);

/// Asks a policy for one of `blocks`; none without a policy, or if there is no block.
pub(crate) fn chosen(
    victim: Option<&mut (dyn Victim + 'static)>,
    now: Ns,
    why: Why,
    blocks: &[Candidate],
) -> Option<u32> {
    let victim = victim.filter(|_| !blocks.is_empty())?;
    let block = victim.choose(now, why, blocks)?.block;
    if blocks.iter().all(|one| one.block != block) {
        misbehaved(format!("{victim:?}: chose block {block}, which is no candidate"));
    }
    Some(block)
}
