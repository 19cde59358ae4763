//! A file system and its mount options as text, for example `ubifs,bulk_read`.

use crate::mtd::Access;
use core::str::FromStr;
use thiserror::Error;

/// The file system; or none, for the partition itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum FsKind {
    Jffs2,
    Yaffs2,
    Ubifs,
    Mtd(Access),
}

/// Mount options; by default none. `compr=` is not among them, because it changes the
/// [`KernelProfile`](super::KernelProfile).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MountOptions {
    /// UBIFS reads whole runs of nodes ahead (fs/ubifs/file.c, ubifs_do_bulk_read).
    pub bulk_read: bool,
}

/// A file system and its options.
///
/// ```
/// use sim::run::{FsKind, Mount};
/// let mount: Mount = "ubifs,bulk_read".parse().expect("modelled");
/// assert!(mount.fs == FsKind::Ubifs && mount.options.bulk_read);
/// let refused = "jffs2,bulk_read".parse::<Mount>().expect_err("of UBIFS only");
/// assert_eq!(refused.to_string(), "mount option 'bulk_read' of jffs2 is not modelled");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mount {
    /// The file system.
    pub fs: FsKind,
    /// Its mount options.
    pub options: MountOptions,
}

/// Why a mount is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MountError {
    /// There is no such file system.
    #[error("no file system '{0}': jffs2, yaffs2, ubifs, mtd or mtd-driver")]
    NoFileSystem(String),
    /// The file system is modelled without this option.
    #[error("mount option '{option}' of {fs} is not modelled")]
    NotModelled {
        /// The file system.
        fs: String,
        /// The option as given.
        option: String,
    },
}

impl From<FsKind> for Mount {
    fn from(fs: FsKind) -> Mount {
        Mount { fs, options: MountOptions::default() }
    }
}

impl FromStr for FsKind {
    type Err = MountError;

    fn from_str(name: &str) -> Result<FsKind, MountError> {
        match name {
            "jffs2" => Ok(FsKind::Jffs2),
            "yaffs2" => Ok(FsKind::Yaffs2),
            "ubifs" => Ok(FsKind::Ubifs),
            "mtd" => Ok(FsKind::Mtd(Access::Device)),
            "mtd-driver" => Ok(FsKind::Mtd(Access::Driver)),
            other => Err(MountError::NoFileSystem(other.to_owned())),
        }
    }
}

impl FromStr for Mount {
    type Err = MountError;

    /// Parses what the agent is given: a file system, then its options after commas.
    fn from_str(text: &str) -> Result<Mount, MountError> {
        let mut words = text.split(',');
        let name = words.next().unwrap_or_default();
        let mut mount = Mount::from(name.parse::<FsKind>()?);
        for option in words {
            match (mount.fs, option) {
                (FsKind::Ubifs, "bulk_read") => mount.options.bulk_read = true,
                _ => {
                    let (fs, option) = (name.to_owned(), option.to_owned());
                    return Err(MountError::NotModelled { fs, option });
                }
            }
        }
        Ok(mount)
    }
}
