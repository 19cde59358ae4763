//! The type of an object.
//!
//! Mirrors enum yaffs_obj_type and union yaffs_obj_var of yaffs_guts.h. Left out: special files.

/// The type of an object, with what its header holds for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    /// A symbolic link to this target.
    Link(Box<str>),
    /// A hard link to an object (equiv_id).
    Name(u32),
}
