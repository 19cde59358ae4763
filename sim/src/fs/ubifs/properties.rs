//! The properties of a LEB, its category, and changes to them.
//!
//! Mirrors struct ubifs_lprops, struct ubifs_lp_stats and the LPROPS_ flags of fs/ubifs/ubifs.h
//! (Linux 6.1).

/// LPROPS_TAKEN: in use, not to be allocated.
pub const TAKEN: u8 = 1;
/// LPROPS_INDEX: holds index nodes.
pub const INDEX: u8 = 2;

/// The properties of a LEB (`struct ubifs_lprops`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Properties {
    pub free: u32,
    pub dirty: u32,
    pub flags: u8,
    pub category: Category,
}

/// A change to a LEB's properties; `None` leaves the value (LPROPS_NC).
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    pub free: Option<u32>,
    pub dirty: Option<u32>,
    /// Added to the dirty bytes.
    pub more_dirty: u32,
    pub set: u8,
    pub clear: u8,
}

/// Sums over the main area (`ubifs_lp_stats`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// LEBs without a node.
    pub empty_lebs: u32,
    /// Those of them that are in use.
    pub taken_empty_lebs: u32,
    /// LEBs of the index.
    pub index_lebs: u32,
    /// Bytes of nodes, without the index.
    pub used_bytes: u64,
    /// Bytes too few for a node (`total_dead`).
    pub dead_bytes: u64,
    /// Bytes that may be too few for a node (`total_dark`).
    pub dark_bytes: u64,
}

impl Totals {
    /// Replaces one LEB's share in the counts of LEBs.
    #[inline]
    pub fn replace_lebs(&mut self, old: &Totals, new: &Totals) {
        let lebs = |total: &mut u32, old, new| *total = *total + new - old;
        lebs(&mut self.empty_lebs, old.empty_lebs, new.empty_lebs);
        lebs(&mut self.taken_empty_lebs, old.taken_empty_lebs, new.taken_empty_lebs);
        lebs(&mut self.index_lebs, old.index_lebs, new.index_lebs);
    }

    /// Replaces one LEB's share in the sums of bytes.
    #[inline]
    pub fn replace_bytes(&mut self, old: &Totals, new: &Totals) {
        let bytes = |total: &mut u64, old, new| *total = *total + new - old;
        bytes(&mut self.used_bytes, old.used_bytes, new.used_bytes);
        bytes(&mut self.dead_bytes, old.dead_bytes, new.dead_bytes);
        bytes(&mut self.dark_bytes, old.dark_bytes, new.dark_bytes);
    }
}

/// The category of a LEB (LPROPS_EMPTY and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    /// Its LPT node is not in memory.
    Unknown,
    Dirty,
    DirtyIndex,
    Free,
    Uncategorized,
    Empty,
    Freeable,
    FreeableIndex,
}

impl Category {
    /// Its name in the kernel, after LPROPS_.
    pub fn name(self) -> &'static str {
        match self {
            Category::Unknown => "unknown",
            Category::Dirty => "dirty",
            Category::DirtyIndex => "dirty_idx",
            Category::Free => "free",
            Category::Uncategorized => "uncat",
            Category::Empty => "empty",
            Category::Freeable => "freeable",
            Category::FreeableIndex => "frdi_idx",
        }
    }

    pub fn heap(self) -> Option<usize> {
        match self {
            Category::Dirty => Some(0),
            Category::DirtyIndex => Some(1),
            Category::Free => Some(2),
            _ => None,
        }
    }

    pub fn list(self) -> Option<usize> {
        match self {
            Category::Uncategorized => Some(0),
            Category::Empty => Some(1),
            Category::Freeable => Some(2),
            Category::FreeableIndex => Some(3),
            _ => None,
        }
    }

    /// get_heap_comp_val.
    pub fn value(self, lp: &Properties) -> u32 {
        match self {
            Category::Free => lp.free,
            Category::DirtyIndex => lp.free + lp.dirty,
            _ => lp.dirty,
        }
    }
}
