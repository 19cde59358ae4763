//! The parts that a run can have: the one place that tells file systems apart.
//!
//! A file system and its mount options come as text, for example `ubifs,bulk_read`. A new file
//! system is a folder in fs/ and its rows here; a disk has its rows in [`Disk`]. What is done with
//! a stack, whatever it is made of, is an [`OnStack`].

use super::laboratory::Laboratory;
use super::{Dump, KernelProfile};
use crate::block::{BlockDevice, BlockFile, Disk, WithDisk};
use crate::errno::FsError;
use crate::fs::jffs2::Jffs2;
use crate::fs::ubifs::Ubifs;
use crate::fs::yaffs2::Yaffs2;
use crate::fs::FlashFs;
use crate::mtd::{Access, Device, Mtd, MtdChar, NandDriver};
use crate::sched::TIMER_SLACK;
use crate::units::Ns;
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
    Disk(Disk),
}

/// Their names, as in boards/parts/file_systems.toml; those of disks are in [`Disk::ROWS`].
const ROWS: [(&str, FsKind); 5] = [
    ("jffs2", FsKind::Jffs2),
    ("yaffs2", FsKind::Yaffs2),
    ("ubifs", FsKind::Ubifs),
    ("mtd", FsKind::Mtd(Access::Device)),
    ("mtd-driver", FsKind::Mtd(Access::Driver)),
];

/// All names and what they stand for.
fn rows() -> impl Iterator<Item = (&'static str, FsKind)> {
    let disks = Disk::ROWS.into_iter().map(|(name, disk)| (name, FsKind::Disk(disk)));
    ROWS.into_iter().chain(disks)
}

impl FsKind {
    /// Whether formatting erases each block of the partition once, as ubiformat does.
    pub(super) fn is_erased_before(self) -> bool {
        self == FsKind::Ubifs
    }
}

/// Mount options; by default none. `compr=` is not among them, because it changes the
/// [`KernelProfile`](super::KernelProfile).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MountOptions {
    /// UBIFS reads whole runs of nodes ahead (fs/ubifs/file.c, ubifs_do_bulk_read).
    pub bulk_read: bool,
    /// YAFFS2 has no short-op cache (n_caches of its core is 0).
    pub no_cache: bool,
    /// `inband-tags` of YAFFS2: a chunk's tags are in its page.
    pub inband_tags: bool,
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
    #[error("no file system '{0}': {known}", known = names())]
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
        let row = rows().find(|(known, _)| *known == name);
        row.map(|(_, kind)| kind).ok_or_else(|| MountError::NoFileSystem(name.to_owned()))
    }
}

/// The names in a sentence.
pub(super) fn names() -> String {
    let names: Vec<&str> = rows().map(|(name, _)| name).collect();
    let (last, others) = names.split_last().expect("rows");
    format!("{} or {last}", others.join(", "))
}

impl FromStr for Mount {
    type Err = MountError;

    /// Parses what the agent is given: a file system, then its options after commas.
    fn from_str(text: &str) -> Result<Mount, MountError> {
        let mut words = text.split(',');
        let name = words.next().unwrap_or_default();
        let mut mount = Mount::from(name.parse::<FsKind>()?);
        for option in words {
            let (fs, refused) = (name.to_owned(), option.to_owned());
            let refused = MountError::NotModelled { fs, option: refused };
            match (mount.fs, option) {
                (FsKind::Ubifs, "bulk_read") => mount.options.bulk_read = true,
                (FsKind::Yaffs2, "no-cache") => mount.options.no_cache = true,
                (FsKind::Yaffs2, "inband-tags") => mount.options.inband_tags = true,
                (FsKind::Disk(disk), _) => {
                    mount.fs = FsKind::Disk(disk.with(option).ok_or(refused)?);
                }
                _ => return Err(refused),
            }
        }
        Ok(mount)
    }
}

/// What is done with a stack.
pub(super) trait OnStack<D: NandDriver<Flash: Laboratory>> {
    /// What that gives.
    type Output;
    /// Does it on a new file system, which could perhaps not be made.
    fn file_system<S: FlashFs<Driver = D>>(self, made: Result<(S, Ns), FsError>) -> Self::Output;
    /// Does it on a device of the partition itself.
    fn device<B: Device<Driver = D>>(self, device: B) -> Self::Output;
}

/// Makes what `mount` names on an erased partition, and does `then` on it.
pub(super) fn on_stack<D: NandDriver<Flash: Laboratory>, T: OnStack<D>>(
    mtd: Mtd<D>,
    mount: Mount,
    kernel: &KernelProfile,
    then: T,
) -> T::Output {
    let facts = kernel.kernel;
    if let Some(dump) = &kernel.dump {
        return on_dump(mtd, mount, (kernel, dump), then);
    }
    match mount.fs {
        FsKind::Jffs2 => {
            then.file_system(Jffs2::format(mtd, Ns::ZERO, kernel.jffs2.clone(), facts))
        }
        FsKind::Yaffs2 => {
            let made = Yaffs2::format(mtd, Ns::ZERO, facts, mount.options.inband_tags);
            let no_cache = mount.options.no_cache;
            then.file_system(made.map(|(fs, now)| (fs.without_cache(no_cache), now)))
        }
        FsKind::Ubifs => {
            // The agent formats, sleeps to a phase and attaches: UBI's thread has its first turns
            // between the same ticks.
            let options = (kernel.ubifs, facts);
            let made = Ubifs::format_volume(mtd, TIMER_SLACK, options, &kernel.volumes);
            let bulk_read = mount.options.bulk_read;
            then.file_system(made.map(|(fs, now)| (fs.with_bulk_read(bulk_read), now)))
        }
        FsKind::Mtd(access) => then.device(MtdChar::new(mtd, access)),
        FsKind::Disk(disk) => disk.on(mtd, OnFile(then)),
    }
}

/// The same on what a device's flash held.
fn on_dump<D: NandDriver<Flash: Laboratory>, T: OnStack<D>>(
    mtd: Mtd<D>,
    mount: Mount,
    (kernel, dump): (&KernelProfile, &Dump),
    then: T,
) -> T::Output {
    match (mount.fs, dump) {
        (FsKind::Jffs2, Dump::Jffs2(dumped)) => {
            let facts = (kernel.jffs2.clone(), kernel.kernel);
            // As the agent does: it has slept since it wrote the dump.
            let put = Jffs2::put(mtd, facts, dumped);
            then.file_system(put.and_then(|fs| fs.mount_found(TIMER_SLACK)))
        }
        (FsKind::Ubifs, Dump::Ubifs(_)) if kernel.volumes.fastmap => {
            then.file_system(Err::<(Ubifs<D>, Ns), _>(FsError::NotModelled(
                "a dump of UBI on a kernel with fastmap",
            )))
        }
        (FsKind::Ubifs, Dump::Ubifs(dumped)) => {
            let (ubi, ubifs) = &**dumped;
            let made = Ubifs::mount_dumped(mtd, TIMER_SLACK, kernel.kernel, ubi, ubifs);
            let bulk_read = mount.options.bulk_read;
            then.file_system(made.map(|(fs, now)| (fs.with_bulk_read(bulk_read), now)))
        }
        _ => then.file_system(Err::<(Jffs2<D>, Ns), _>(FsError::NotModelled(
            "a dump of another file system",
        ))),
    }
}

/// Does it on a disk through its file, the device's node.
struct OnFile<T>(T);

impl<D: NandDriver<Flash: Laboratory>, T: OnStack<D>> WithDisk<D> for OnFile<T> {
    type Output = T::Output;

    fn disk<B: BlockDevice<Driver = D>>(self, disk: B) -> T::Output {
        self.0.device(BlockFile::new(disk))
    }
}
