//! Policies that decide in the kernel's place, and the names of those that are built in.

use crate::vfs::readahead::{ReadAhead, Requested, Single};
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

    /// The built-in policy of collection of this name.
    pub fn victim_named(name: &str) -> Option<Box<dyn Victim>> {
        match name {
            "greedy" => Some(Box::new(Greedy)),
            "least-worn" => Some(Box::new(LeastWorn)),
            _ => None,
        }
    }
}

static OF_KERNELS: Policies = Policies { read_ahead: None, victim: None };
