//! The file systems, behind the interface that the VFS uses. Each mirrors the kernel's file system
//! of the same name. What it leaves out is listed at the head of its module and in docs/.
//!
//! A call takes the time and returns the time at which it is over. No data bytes are stored: a node
//! knows which bytes it covers, not their values.

pub mod jffs2;
pub mod tasks;
pub mod timed;
pub mod ubifs;
pub mod yaffs2;

use crate::errno::EOPNOTSUPP;
pub use crate::errno::{FsError, Result};
pub use tasks::Scheduled;
pub use timed::Timed;

use crate::content::Contents;
use crate::flash::Torn;
use crate::ledger::SpaceTable;
use crate::mtd::{Mtd, NandDriver};
use crate::units::Ns;
use crate::victim::Victim;

/// An inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ino(pub u32);

/// The root directory; the interface of every file system numbers it 1.
pub const ROOT: Ino = Ino(1);

/// The page cache's page, 4 KiB on every board that is modelled (PAGE_SIZE).
pub const PAGE_BYTES: u32 = 4096;

/// A write to one page of the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageWrite {
    /// The file.
    pub ino: Ino,
    /// Its page.
    pub page: u32,
    /// The first byte of the page that is written.
    pub from: u32,
    /// The byte after the last one written.
    pub to: u32,
    /// The file's size: before the write in write_begin, after it in write_page.
    pub file_bytes: u64,
    /// Whether the page was already cached and up to date.
    pub cached: bool,
}

impl PageWrite {
    /// A write of the whole page, up to the end of the file.
    pub fn whole(ino: Ino, page: u32, file_bytes: u64) -> PageWrite {
        let start = u64::from(page) * u64::from(PAGE_BYTES);
        let to = (file_bytes - start).min(u64::from(PAGE_BYTES)) as u32;
        PageWrite { ino, page, from: 0, to, file_bytes, cached: true }
    }
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// The directory.
    pub directory: Ino,
    /// The last component of the path.
    pub name: &'a str,
}

/// A rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename<'a> {
    /// The inode that is renamed.
    pub ino: Ino,
    /// Its old name.
    pub old: Name<'a>,
    /// Its new name.
    pub new: Name<'a>,
    /// The inode that `new` referred to before, if any.
    pub replaced: Option<Ino>,
}

/// A change of an inode other than of its size (struct iattr). The values are not kept, because
/// nothing in the model depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// chmod.
    Mode,
    /// chown.
    Owner,
    /// utimensat: sets both times to now.
    Times,
}

/// The state of a page that a file system wants to fill besides the requested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grabbed {
    /// It is locked by read-ahead.
    Locked,
    /// It is up to date.
    Uptodate,
    /// It is empty and can be filled.
    Empty,
}

/// What a file system may ask of the page cache and inodes above it.
///
/// # Examples
///
/// A page cache that holds nothing, for a file system without a VFS above it:
///
/// ```
/// use sim::{content::Contents, fs::{Grabbed, Ino, PageCache}, units::Ns};
/// struct NoPages(Contents);
///
/// impl PageCache for NoPages {
///     fn read_cache_page(&mut self, _: Ino, _page: u32) -> bool { true }
///     fn grab_page(&mut self, _: Ino, _page: u32) -> Grabbed { Grabbed::Empty }
///     fn clear_uptodate(&mut self, _: Ino, _page: u32) {}
///     fn find_page(&self, _: Ino, _page: u32) -> Option<bool> { None }
///     fn clear_dirty(&mut self, _: Ino, _page: u32) {}
///     fn truncate_setsize(&mut self, _: Ino, _bytes: u64) {}
///     fn mark_inode_dirty(&mut self, _: Ns, _: Ino, _size: bool) {}
///     fn contents(&self, _: Ino) -> &Contents { &self.0 }
/// }
/// ```
pub trait PageCache {
    /// read_cache_page: adds the page to the cache. Returns whether it was missing or not up to
    /// date, so that the file system has to read it.
    fn read_cache_page(&mut self, ino: Ino, page: u32) -> bool;
    /// pagecache_get_page with FGP_LOCK, FGP_ACCESSED, FGP_CREAT and FGP_NOWAIT: adds the page to
    /// the cache and marks it accessed, unless it is locked.
    fn grab_page(&mut self, ino: Ino, page: u32) -> Grabbed;
    /// The page of a write that failed stays in the cache, up to date or not. (Here a cache has no
    /// pages past the end of a file.)
    fn keep_page(&mut self, _ino: Ino, _page: u32, _is_uptodate: bool) {}
    /// SetPageError of a cached page: its content could not be read.
    fn clear_uptodate(&mut self, ino: Ino, page: u32);
    /// find_get_page: whether the page is cached and, if so, whether it is dirty.
    fn find_page(&self, ino: Ino, page: u32) -> Option<bool>;
    /// clear_page_dirty_for_io: the dirty page is about to be written.
    fn clear_dirty(&mut self, ino: Ino, page: u32);
    /// truncate_setsize: sets the file's size and drops the pages beyond it, dirty or not.
    fn truncate_setsize(&mut self, ino: Ino, size_bytes: u64);
    /// i_size_write: the file grows; its pages need no check.
    fn i_size_write(&mut self, ino: Ino, size_bytes: u64) {
        self.truncate_setsize(ino, size_bytes);
    }
    /// mark_inode_dirty; `size` is set if fdatasync has to write it, too (I_DIRTY_DATASYNC).
    fn mark_inode_dirty(&mut self, now: Ns, ino: Ino, size: bool);
    /// The queueing part of writeback_inodes_sb_nr; returns whether there is anything to write.
    fn queue_writeback(&mut self, _pages: i64) -> bool {
        false
    }
    /// sync_inodes_sb: the program has queued this work for the flusher, and waits.
    fn queue_sync(&mut self) {}
    /// Whether the program waits for the flusher.
    fn is_flusher_awaited(&self) -> bool {
        false
    }
    /// Whether the flusher has nothing left to do but to sleep.
    fn is_flusher_done(&self) -> bool {
        true
    }
    /// The flusher's next step; the flusher has the processor.
    fn next_writeback(&mut self, _now: Ns) -> Writeback {
        Writeback::Sleep
    }
    /// The flusher has done its step; returns when it was over. An error is reported by the next
    /// fsync.
    fn written(&mut self, _now: Ns, _step: Writeback, done: Result<Ns>) -> Result<Ns> {
        done
    }
    /// The file's bytes as the program sees them: from the page cache where it has the page, else
    /// from flash.
    fn contents(&self, ino: Ino) -> &Contents;
}

/// A step of the flusher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writeback {
    /// Writes a page, which is no longer dirty.
    Page(PageWrite),
    /// Writes an inode itself.
    Inode(Ino),
    /// Wakes the waiting program (finish_writeback_work).
    Wake,
    /// Sleeps: there is nothing left to write.
    Sleep,
}

/// A file or directory found by a mount after a power cut, or of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The directory of its name.
    pub directory: Ino,
    /// Its name there.
    pub name: String,
    /// Its inode.
    pub ino: Ino,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// The target of a symbolic link.
    pub target: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// Its bytes.
    pub contents: Contents,
}

/// The seam between the VFS and a file system: what each has to do. What one may do is
/// [`Features`], what the scheduler asks [`Scheduled`], what the laboratory asks [`Observed`].
///
/// # Examples
///
/// A file system whose pages are pages of the flash, and nothing else is on it:
///
/// ```
/// # use sim::{mtd::{Mtd, NandDriver}, sched::{Sched, Task}, units::Ns};
/// # use sim::fs::{Features, FlashFs, Ino, Name, Observed, PageCache, PageWrite, Rename, Result};
/// # use sim::fs::Scheduled;
/// #[derive(Clone)]
/// struct Plain<D> { mtd: Mtd<D>, sched: Sched, next: u32 }
///
/// impl<D: NandDriver> FlashFs for Plain<D> {
///     type Driver = D;
///     fn create(&mut self, now: Ns, _: Name<'_>, _: &mut dyn PageCache) -> Result<(Ino, Ns)> {
///         self.next += 1;
///         Ok((Ino(self.next), now))
///     }
///     fn read_page(&mut self, now: Ns, _: Ino, page: u32, _: &mut dyn PageCache) -> Result<Ns> {
///         Ok(self.mtd.read(now, u64::from(page) * 4096, 4096)?)
///     }
///     fn write_page(&mut self, now: Ns, at: PageWrite, _: &mut dyn PageCache) -> Result<Ns> {
///         Ok(self.mtd.write(now, u64::from(at.page) * 4096, 4096)?)
///     }
///     // The others have nothing to do.
/// #   fn mkdir(&mut self, now: Ns, at: Name<'_>, p: &mut dyn PageCache) -> Result<(Ino, Ns)> {
/// #       self.create(now, at, p)
/// #   }
/// #   fn lookup(&mut self, now: Ns, _: Name<'_>, _: Option<Ino>) -> Result<Ns> { Ok(now) }
/// #   fn writes_back(&self) -> bool { false }
/// #   fn unlink(&mut self, now: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
/// #       Ok(now)
/// #   }
/// #   fn rmdir(&mut self, now: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
/// #       Ok(now)
/// #   }
/// #   fn rename(&mut self, now: Ns, _: Rename<'_>, _: &mut dyn PageCache) -> Result<Ns> {
/// #       Ok(now)
/// #   }
/// #   fn truncate(&mut self, now: Ns, _: Ino, _: u64, _: &mut dyn PageCache) -> Result<Ns> {
/// #       Ok(now)
/// #   }
/// #   fn evict(&mut self, now: Ns, _: Ino, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
/// #   fn remount(&mut self, now: Ns) -> Result<Ns> { Ok(now) }
/// #   fn inodes_in_memory(&self) -> u64 { 0 }
/// #   fn write_begin(&mut self, now: Ns, _: PageWrite, _: &mut dyn PageCache) -> Result<Ns> {
/// #       Ok(now)
/// #   }
/// #   fn write_inode(&mut self, now: Ns, _: Ino, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
/// #   fn fsync(&mut self, now: Ns, _: Ino, _: bool, _: &mut dyn PageCache) -> Result<Ns> {
/// #       Ok(now)
/// #   }
/// #   fn sync(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
/// #   fn drop_caches(&mut self, now: Ns, _: &[Ino]) -> Result<Ns> { Ok(now) }
/// #   fn mtd(&self) -> &Mtd<D> { &self.mtd }
/// #   fn mtd_mut(&mut self) -> &mut Mtd<D> { &mut self.mtd }
/// #   fn max_file_bytes(&self) -> u64 { self.mtd.size_bytes() }
/// }
/// // It has no links and attributes, and the laboratory cannot cut its power.
/// impl<D> Features for Plain<D> {}
/// impl<D> Observed for Plain<D> {}
/// # impl<D: NandDriver> Scheduled for Plain<D> {
/// #   fn sched(&mut self) -> &mut Sched { &mut self.sched }
/// #   fn next_due(&self) -> Option<Ns> { None }
/// #   fn run_due(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
/// #   fn run_thread(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
/// #   fn resched(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
/// #   fn set_caller(&mut self, task: Option<Task>) -> Option<Task> { task }
/// # }
/// ```
pub trait FlashFs: Scheduled + Features + Observed + Clone {
    /// What drives the chip that it lives on.
    type Driver: NandDriver;
    /// Creates a file and leaves its inode in memory.
    fn create(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)>;
    /// Creates a directory.
    fn mkdir(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)>;
    /// i_op->lookup of a name without a dentry: brings the inode `found` into memory unless it is
    /// there (iget). `found` is none if the name does not exist.
    fn lookup(&mut self, now: Ns, at: Name<'_>, found: Option<Ino>) -> Result<Ns>;
    /// read_folio: fills one page, which the VFS adds to the page cache. It may fill other pages,
    /// too.
    fn read_page(&mut self, now: Ns, ino: Ino, page: u32, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Whether written pages stay dirty in the page cache until write-back (UBIFS), or go to the
    /// file system within the write (JFFS2, YAFFS2).
    fn writes_back(&self) -> bool;
    /// i_op->unlink: removes the name. The inode exists until `evict`.
    fn unlink(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns>;
    /// i_op->rmdir of an empty directory; `evict` follows.
    fn rmdir(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns>;
    /// i_op->rename. `evict` follows for the replaced inode once it is not open.
    fn rename(&mut self, now: Ns, rename: Rename<'_>, pages: &mut dyn PageCache) -> Result<Ns>;
    /// i_op->setattr with a size, smaller, larger or the same. The file system calls
    /// `PageCache::truncate_setsize` where its kernel code does.
    fn truncate(
        &mut self,
        now: Ns,
        ino: Ino,
        size_bytes: u64,
        pages: &mut dyn PageCache,
    ) -> Result<Ns>;
    /// s_op->evict_inode of an inode without a name that is no longer open.
    fn evict(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns>;
    /// s_type->kill_sb: the start of an unmount, before the VFS writes anything back.
    fn kill_sb(&mut self, now: Ns, _pages: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }
    /// Unmounts and mounts what is on the flash. Before, the VFS has written back and synced
    /// everything and evicted every inode. Afterwards only the root's inode is in memory.
    fn remount(&mut self, now: Ns) -> Result<Ns>;
    /// write_begin for a page about to be written: budgets it, fills holes, reads the part that is
    /// kept.
    fn write_begin(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Writes the bytes into the file system: write_end for a file system that writes through,
    /// writepage for one that writes back.
    fn write_page(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns>;
    /// s_op->write_inode: writes the inode after its dirty pages; does nothing for a clean one.
    fn write_inode(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns>;
    /// fsync, after the VFS has written back the file's dirty pages. `inode_too` is false for an
    /// fdatasync that does not need the inode (I_DIRTY_DATASYNC is not set).
    fn fsync(
        &mut self,
        now: Ns,
        ino: Ino,
        inode_too: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns>;
    /// sync_fs, after the VFS has written back every dirty page and inode.
    fn sync(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// drop_caches: evicts every inode that the VFS does not keep, and what the file system's
    /// shrinker frees. `kept` are the inodes of open files, of their directories, and dirty ones.
    fn drop_caches(&mut self, now: Ns, kept: &[Ino]) -> Result<Ns>;
    /// Inodes of files and directories in memory, without the root.
    fn inodes_in_memory(&self) -> u64;
    /// The driver below.
    fn mtd(&self) -> &Mtd<Self::Driver>;
    /// The driver below, to be changed.
    fn mtd_mut(&mut self) -> &mut Mtd<Self::Driver>;
    /// s_maxbytes: a larger file fails with EFBIG.
    fn max_file_bytes(&self) -> u64;
}

/// Calls that not every file system has. A file system without one keeps the default: what the
/// kernel returns, or a refusal by name where the model leaves something out.
///
/// # Examples
///
/// A file system that lists directories, and has no links and attributes:
///
/// ```
/// use sim::fs::{Features, Ino, PageCache, Result};
/// use sim::units::Ns;
/// struct Listing;
///
/// impl Features for Listing {
///     fn read_dir(&mut self, now: Ns, _: Ino, _: &mut dyn PageCache) -> Result<Ns> { Ok(now) }
/// }
/// assert!(Listing.get_xattr(Ns::ZERO, Ino(2), "user.a").is_err());
/// ```
pub trait Features {
    /// i_op->rmdir or rename up to where it finds that a directory is not empty. `names` are those
    /// that the call was given.
    fn check_dir_empty(&mut self, now: Ns, _ino: Ino, _names: &[Name<'_>]) -> Result<Ns> {
        Ok(now)
    }
    /// i_op->link: one more name of a file, or the first one of a file made by `tmpfile`.
    fn link(
        &mut self,
        _now: Ns,
        _at: Name<'_>,
        _ino: Ino,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        Err(FsError::NotModelled("link on this file system"))
    }
    /// i_op->symlink: a symbolic link, whose inode stays in memory.
    fn symlink(
        &mut self,
        _now: Ns,
        _at: Name<'_>,
        _target: &str,
        _pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        Err(FsError::NotModelled("symlink on this file system"))
    }
    /// i_op->get_link: reads the target of a symbolic link whose inode is in memory.
    fn get_link(&mut self, now: Ns, _ino: Ino) -> Result<Ns> {
        Ok(now)
    }
    /// i_op->rename with RENAME_WHITEOUT: leaves a white-out under the old name, whose inode it
    /// returns.
    fn rename_whiteout(
        &mut self,
        _now: Ns,
        _rename: Rename<'_>,
        _pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        Err(FsError::NotModelled("white-outs on this file system"))
    }
    /// i_op->rename with RENAME_EXCHANGE: `replaced` gets the old name.
    fn exchange(
        &mut self,
        _now: Ns,
        _rename: Rename<'_>,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        Err(FsError::NotModelled("exchanged names on this file system"))
    }
    /// i_op->mknod of a white-out: a device without a number.
    fn whiteout(
        &mut self,
        _now: Ns,
        _at: Name<'_>,
        _pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        Err(FsError::NotModelled("white-outs on this file system"))
    }
    /// The block device of another volume of the same UBI device reads so many bytes.
    fn read_volume(&mut self, _now: Ns, _volume: usize, _at: u64, _bytes: u32) -> Result<Ns> {
        Err(FsError::NotModelled("a read-only root beside this file system"))
    }
    /// i_op->tmpfile: creates a file without a name, which does not appear in the directory.
    fn tmpfile(
        &mut self,
        now: Ns,
        _directory: Ino,
        _pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        Err(FsError::Errno(EOPNOTSUPP, now))
    }
    /// i_op->setattr without a size.
    fn set_attribute(
        &mut self,
        _now: Ns,
        _ino: Ino,
        _what: Attribute,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        Err(FsError::NotModelled("attributes on this file system"))
    }
    /// f_op->iterate_shared to the end: reads every entry of a directory.
    fn read_dir(&mut self, _now: Ns, _ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("readdir on this file system"))
    }
    /// The price of a name that `read_dir` returns.
    fn listed_ns(&self) -> Ns {
        Ns(0)
    }
    /// A directory in the root that every mount has, and empties.
    fn lost_and_found(&self) -> Option<(&'static str, Ino)> {
        None
    }
    /// xattr_handler->set of `user.`: sets an extended attribute of so many bytes, new or not.
    fn set_xattr(
        &mut self,
        now: Ns,
        _ino: Ino,
        _name: &str,
        _bytes: u32,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        Err(FsError::Errno(EOPNOTSUPP, now))
    }
    /// xattr_handler->get: the size of the attribute in bytes.
    fn get_xattr(&mut self, now: Ns, _ino: Ino, _name: &str) -> Result<(u32, Ns)> {
        Err(FsError::Errno(EOPNOTSUPP, now))
    }
    /// i_op->listxattr: the bytes of all names, each with a NUL.
    fn list_xattr(&mut self, now: Ns, _ino: Ino) -> Result<(u32, Ns)> {
        Ok((0, now))
    }
    /// xattr_handler->set without a value: removes the attribute.
    fn remove_xattr(
        &mut self,
        now: Ns,
        _ino: Ino,
        _name: &str,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        Err(FsError::Errno(EOPNOTSUPP, now))
    }
    /// Whether a write that fails is reported by the file's next fsync, too (mapping_set_error of
    /// write_end).
    fn write_end_sets_error(&self) -> bool {
        false
    }
    /// f_op->mmap: whether a file that is open for writing may have shared mappings.
    fn maps_shared_writable(&self) -> bool {
        true
    }
    /// vm_ops->page_mkwrite of a mapped page, besides what the VFS does to page and inode.
    /// `new_time` is set if the inode's time is of an earlier second.
    fn page_mkwrite(
        &mut self,
        _now: Ns,
        _ino: Ino,
        _page: u32,
        _new_time: bool,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        Err(FsError::NotModelled("writes through mappings on this file system"))
    }
    /// I_FREEING: an inode without a name is no longer open and will be evicted. No task can get it
    /// any more.
    fn begin_evict(&mut self, _now: Ns, _ino: Ino) {}
    /// The time of an inode that is about to be written is of an earlier second and has to change.
    fn update_time(&mut self, now: Ns, _ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }
    /// These pages of a file will be written in this order. The file system may look them up all at
    /// once, which changes only the simulator's speed.
    fn expect_writes(&self, _ino: Ino, _pages: &[u32]) {}
    /// f_op->flush: a descriptor is closed.
    fn flush(&mut self, now: Ns, _ino: Ino) -> Result<Ns> {
        Ok(now)
    }
}

/// What the laboratory asks of a file system, and does to one.
///
/// # Examples
///
/// A collector whose choices are recorded and replayed:
///
/// ```
/// use sim::fs::Observed;
/// struct Collector { recorded: Vec<u16>, made: Vec<u16> }
///
/// impl Observed for Collector {
///     fn replay_choices(&mut self, recorded: &[u16]) {
///         self.recorded = recorded.iter().rev().copied().collect();
///     }
///     fn choices(&self) -> &[u16] {
///         &self.made
///     }
/// }
/// let mut collector = Collector { recorded: Vec::new(), made: Vec::new() };
/// collector.replay_choices(&[5, 127]);
/// assert_eq!(collector.recorded.pop(), Some(5));
/// assert!(collector.choices().is_empty());
/// ```
pub trait Observed {
    /// The power returns after [`FsError::PowerLost`]. Memory is empty, and what was being
    /// programmed or erased (`torn`) is neither old nor new. Mounts what is left on the flash, and
    /// returns the tree, each directory before its content. Afterwards only the root's inode is in
    /// memory.
    fn power_up(&mut self, _now: Ns, _torn: Option<Torn>) -> Result<(Vec<Found>, Ns)> {
        Err(FsError::NotModelled("a power cut on this file system"))
    }
    /// What the mount of a dump has found, in the same order; only once.
    fn take_found(&mut self) -> Vec<Found> {
        Vec::new()
    }
    /// statfs, and where the rest of the partition is; none if the model does not know.
    fn space(&self) -> Option<SpaceTable> {
        None
    }
    /// Bytes that an unprivileged program may still write (f_bavail), as [`Observed::space`] says.
    fn free_bytes(&self) -> Option<u64> {
        self.space().map(|table| table.left_bytes().max(0) as u64)
    }
    /// Adds to each block of the partition the bytes in it that are still of use; blocks that the
    /// file system keeps no account of count as a whole. Says whether the model knows.
    fn live_bytes(&self, _blocks: &mut [u32]) -> bool {
        false
    }
    /// Makes a policy choose the blocks to collect. Returns whether the file system can.
    fn set_victim(&mut self, _victim: Box<dyn Victim>) -> bool {
        false
    }
    /// How long calls have taken so far, where a decorator adds them up ([`Timed`]).
    fn time_in_calls(&self) -> Ns {
        Ns::ZERO
    }
    /// UBI's own processor time so far; without UBI there is none.
    fn time_in_ubi(&self) -> Ns {
        Ns::ZERO
    }
    /// Replays a kernel's recorded choices in order. They come before any choice of the model.
    ///
    /// JFFS2 takes the tick's number modulo 128 to pick the block that it collects next. A kernel
    /// that began some microseconds later would choose differently.
    fn replay_choices(&mut self, _recorded: &[u16]) {}
    /// The choices made since then, replayed or not.
    fn choices(&self) -> &[u16] {
        &[]
    }
}
