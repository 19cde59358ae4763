//! Policies that decide in the kernel's place.

use crate::fs::Victim;
use crate::vfs::readahead::ReadAhead;

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
}

static OF_KERNELS: Policies = Policies { read_ahead: None, victim: None };
