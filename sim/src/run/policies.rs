//! Policies that decide in the kernel's place, and the names of those that are built in.

use crate::vfs::readahead::{ReadAhead, Requested, Single};
use crate::vfs::reclaim::{CleanFirst, LeastRecent, Reclaim, SecondChance};
use crate::victim::{Greedy, LeastWorn, Victim};

/// What decides in a run. Where a policy is none, the kernel's own decides.
///
/// # Examples
///
/// The kernel's own everywhere:
///
/// ```
/// use sim::run::Policies;
/// assert!(Policies::KERNELS.victim.is_none() && Policies::KERNELS.read_ahead.is_none());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Which pages are read ahead.
    pub read_ahead: Option<Box<dyn ReadAhead>>,
    /// Which pages leave a full page cache.
    pub reclaim: Option<Box<dyn Reclaim>>,
    /// Which block a garbage collector takes.
    pub victim: Option<Box<dyn Victim>>,
}

impl Policies {
    /// Those of the kernel.
    pub const KERNELS: &'static Policies = &OF_KERNELS;

    /// The policies of read-ahead that are built in: name, and what it does.
    pub const READ_AHEADS: &'static [(&'static str, &'static str)] = &[
        ("none", "Reads each missing page alone"),
        ("requested", "Reads the pages that the call wants, and no others"),
    ];
    /// The policies of reclaim that are built in.
    pub const RECLAIMS: &'static [(&'static str, &'static str)] = &[
        ("lru", "Frees the page whose last read or write is the oldest"),
        ("clean-first", "Frees the oldest clean page; a dirty one if there is none"),
        ("cflru", "As clean-first, but looks for a clean page in the oldest quarter only"),
        ("lru-wsr", "As lru, but keeps a dirty page once if it was used since"),
    ];
    /// The policies of collection that are built in.
    pub const VICTIMS: &'static [(&'static str, &'static str)] = &[
        ("greedy", "Takes the block with the least to move"),
        ("least-worn", "Takes the block that was erased least"),
    ];

    /// The built-in policy of read-ahead of this name.
    pub fn read_ahead_named(name: &str) -> Option<Box<dyn ReadAhead>> {
        match name {
            "none" => Some(Box::new(Single)),
            "requested" => Some(Box::new(Requested)),
            _ => None,
        }
    }

    /// The built-in policy of reclaim of this name.
    pub fn reclaim_named(name: &str) -> Option<Box<dyn Reclaim>> {
        match name {
            "lru" => Some(Box::new(LeastRecent)),
            "clean-first" => Some(Box::new(CleanFirst { window_divisor: 1 })),
            "cflru" => Some(Box::new(CleanFirst { window_divisor: 4 })),
            "lru-wsr" => Some(Box::new(SecondChance::default())),
            _ => None,
        }
    }

    /// The built-in policy of collection of this name.
    pub fn victim_named(name: &str) -> Option<Box<dyn Victim>> {
        match name {
            "greedy" => Some(Box::new(Greedy)),
            "least-worn" => Some(Box::new(LeastWorn)),
            _ => None,
        }
    }
}

static OF_KERNELS: Policies = Policies { read_ahead: None, reclaim: None, victim: None };
