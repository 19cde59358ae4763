//! What an object is.
//!
//! Mirrors enum yaffs_obj_type and union yaffs_obj_var of yaffs_guts.h. Left out: special files.

/// The type of an object, with what its header says besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    /// A symbolic link, and where it leads.
    Link(Box<str>),
    /// Another name of an object (equiv_id).
    Name(u32),
}
