//! The file systems, behind the seam the VFS sees. Each mirrors the kernel's of the same name; what
//! it leaves out is said at its head and in docs/.
//!
//! A call takes the time and returns the time at which it is over. Data bytes do not exist: a node
//! knows what it covers, not what it holds.

pub mod jffs2;
pub mod tasks;
pub mod ubifs;
pub mod yaffs2;

pub use crate::errno::{FsError, Result};

use crate::causes::Causes;
use crate::content::Contents;
use crate::flash::Flash;
use crate::mtd::Mtd;
use crate::sched::{Sched, Task};
use crate::units::Ns;

/// An inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ino(pub u32);

/// The root directory; every file system here numbers it 1 to the outside.
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
    /// First byte of the page that is written.
    pub from: u32,
    /// The byte after the last.
    pub to: u32,
    /// Size of the file: before the write in write_begin, with it in write_page.
    pub file_bytes: u64,
    /// Whether the page was in the page cache and up to date already.
    pub cached: bool,
}

impl PageWrite {
    /// All that a cached page has of a file.
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

/// A name that becomes another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename<'a> {
    /// What is named so.
    pub ino: Ino,
    /// By this name no longer.
    pub old: Name<'a>,
    /// But by this one.
    pub new: Name<'a>,
    /// What `new` named before, if anything.
    pub replaced: Option<Ino>,
}

/// How a file system finds a page that it would fill besides the one it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grabbed {
    /// It waits for its turn in a window of read-ahead.
    Locked,
    /// It holds what it should.
    Uptodate,
    /// It is to be filled.
    Empty,
}

/// What a file system may ask of the page cache and the inodes above it.
pub trait PageCache {
    /// read_cache_page: the page is in the cache from now on. Says whether it was not, so that the
    /// file system has to read it.
    fn read_cache_page(&mut self, ino: Ino, page: u32) -> bool;
    /// pagecache_get_page with FGP_LOCK, FGP_ACCESSED, FGP_CREAT and FGP_NOWAIT: the page is in the
    /// cache from now on and counts as used, unless it is locked.
    fn grab_page(&mut self, ino: Ino, page: u32) -> Grabbed;
    /// SetPageError of a page of the cache: what it should hold could not be read.
    fn clear_uptodate(&mut self, ino: Ino, page: u32);
    /// find_get_page: whether the page is cached and, if so, whether it is dirty.
    fn find_page(&self, ino: Ino, page: u32) -> Option<bool>;
    /// clear_page_dirty_for_io: the page, which is dirty, is about to be written.
    fn clear_dirty(&mut self, ino: Ino, page: u32);
    /// truncate_setsize: the file has another size; pages beyond it are gone, dirty or not.
    fn truncate_setsize(&mut self, ino: Ino, size_bytes: u64);
    /// i_size_write: the file is longer, and nobody looks at its pages.
    fn i_size_write(&mut self, ino: Ino, size_bytes: u64) {
        self.truncate_setsize(ino, size_bytes);
    }
    /// mark_inode_dirty; `size` if fdatasync has to write it too (I_DIRTY_DATASYNC).
    fn mark_inode_dirty(&mut self, now: Ns, ino: Ino, size: bool);
    /// writeback_inodes_sb_nr as far as queueing it: whether there is anything to write.
    fn queue_writeback(&mut self, _pages: i64) -> bool {
        false
    }
    /// Whether the program waits for the flusher.
    fn is_flusher_awaited(&self) -> bool {
        false
    }
    /// The flusher has the processor: what it does next.
    fn next_writeback(&mut self, _now: Ns) -> Writeback {
        Writeback::Sleep
    }
    /// It has done that; returns when it was over. Nobody is told an error but by the next fsync.
    fn written(&mut self, _now: Ns, _step: Writeback, done: Result<Ns>) -> Result<Ns> {
        done
    }
    /// What the program has in the file: the page cache where it has a page, the flash elsewhere.
    fn contents(&self, ino: Ino) -> &Contents;
}

/// A step of the flusher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writeback {
    /// A page, which is no longer dirty.
    Page(PageWrite),
    /// An inode itself.
    Inode(Ino),
    /// The program no longer waits (finish_writeback_work).
    Wake,
    /// There is nothing left to do.
    Sleep,
}

/// A file or directory that a mount after a power cut has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where its name is.
    pub directory: Ino,
    /// Its name there.
    pub name: String,
    /// Its inode.
    pub ino: Ino,
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Its size.
    pub size_bytes: u64,
    /// Its bytes.
    pub contents: Contents,
}

/// The seam between the VFS and a file system.
pub trait FlashFs: Clone {
    /// The chip it lives on.
    type Flash: Flash;
    /// Creates a file and leaves its inode in memory.
    fn create(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)>;
    /// Creates a directory.
    fn mkdir(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)>;
    /// i_op->lookup of a name that the VFS has no entry of: `found` is the inode it names, which is
    /// brought into memory (iget) unless it is there, or none where there is no such name.
    fn lookup(&mut self, now: Ns, at: Name<'_>, found: Option<Ino>) -> Result<Ns>;
    /// read_folio: fills one page of the page cache, which the VFS adds, and others at will.
    fn read_page(&mut self, now: Ns, ino: Ino, page: u32, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Whether written pages stay dirty in the page cache until write-back (UBIFS), or go to the
    /// file system within the write (JFFS2, YAFFS2).
    fn writes_back(&self) -> bool;
    /// i_op->unlink: the name is gone. The inode lives on until `evict`.
    fn unlink(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns>;
    /// i_op->rmdir of an empty directory; `evict` follows.
    fn rmdir(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns>;
    /// What it costs to find out that a directory is not empty, which keeps it from being removed.
    fn check_dir_empty(&mut self, now: Ns, _ino: Ino) -> Result<Ns> {
        Ok(now)
    }
    /// i_op->rename. `evict` follows for what was replaced when nobody has it open.
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
    /// I_FREEING: an inode without a name that nobody has open any more is about to be evicted, and
    /// can be had by nobody.
    fn begin_evict(&mut self, _now: Ns, _ino: Ino) {}
    /// s_op->evict_inode of an inode without a name that nobody has open any more.
    fn evict(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns>;
    /// Unmounts, after the VFS has written back and synced everything and evicted every inode, and
    /// mounts what is on the flash. The root's inode is in memory afterwards, no other.
    fn remount(&mut self, now: Ns) -> Result<Ns>;
    /// Inodes of files and directories, but the root, that are in memory.
    fn inodes_in_memory(&self) -> u64;
    /// The power comes back after [`FsError::PowerLost`]: whatever was in memory is gone, what was
    /// being programmed or erased is neither old nor new, and what is left on the flash is mounted.
    /// Returns the tree, every directory before what is in it. The root's inode is in memory
    /// afterwards, no other.
    fn power_up(&mut self, now: Ns) -> Result<(Vec<Found>, Ns)>;
    /// The time in an inode that is about to be written to is no longer that of this second.
    fn update_time(&mut self, now: Ns, _ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }
    /// write_begin for a page about to be written: budgeting, holes, reading what is kept.
    fn write_begin(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns>;
    /// These pages of a file are about to be written, in this order: the file system may look where
    /// they are all at once, which changes nothing but how long the simulator takes.
    fn expect_writes(&self, _ino: Ino, _pages: &[u32]) {}
    /// Puts the bytes into the file system: write_end where it writes through, writepage where it
    /// writes back.
    fn write_page(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns>;
    /// s_op->write_inode: the inode itself, after its dirty pages; nothing where it is clean.
    fn write_inode(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns>;
    /// fsync, after the VFS has written back the file's dirty pages; `inode_too` is false for an
    /// fdatasync that can do without the inode (I_DIRTY_DATASYNC is not set).
    fn fsync(
        &mut self,
        now: Ns,
        ino: Ino,
        inode_too: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns>;
    /// f_op->flush: a descriptor is closed.
    fn flush(&mut self, now: Ns, _ino: Ino) -> Result<Ns> {
        Ok(now)
    }
    /// sync_fs, after the VFS has written back every dirty page and inode.
    fn sync(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// drop_caches: evicts every inode that the VFS does not keep (`kept`: of open files, of the
    /// directories they are in, and dirty ones), and whatever the file system has in a shrinker.
    fn drop_caches(&mut self, now: Ns, kept: &[Ino]) -> Result<Ns>;
    /// When a timer of the file system ends next, if one is set.
    fn next_due(&self) -> Option<Ns>;
    /// From when on it would be done, if something else wakes the processor up
    /// (hrtimer_start_range_ns).
    fn next_due_earliest(&self) -> Option<Ns> {
        self.next_due()
    }
    /// Does what a timer is for that has ended at `now`; returns when it is over.
    fn run_due(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns>;
    /// The driver below.
    fn mtd(&self) -> &Mtd<Self::Flash>;
    /// The driver below, to tell an observer of its chip something.
    fn mtd_mut(&mut self) -> &mut Mtd<Self::Flash>;
    /// The chip below.
    fn flash(&self) -> &Self::Flash {
        self.mtd().flash()
    }
    /// What was programmed, and why.
    fn causes(&self) -> &Causes {
        self.mtd().causes()
    }
    /// The chip below, to tell an observer something.
    fn flash_mut(&mut self) -> &mut Self::Flash {
        self.mtd_mut().flash_mut()
    }
    /// The driver's page buffer is empty, as it is when a case begins.
    fn forget_page_buffer(&mut self) {
        self.mtd_mut().forget_page_buffer();
    }
    /// What a kernel chose from now on where the file system chooses pseudo-randomly; nothing where
    /// it does not.
    fn replay_dice(&mut self, _throws: &[u16]) {}
    /// What it has chosen since.
    fn thrown_dice(&self) -> &[u16] {
        &[]
    }
    /// The machine's scheduler.
    fn sched(&mut self) -> &mut Sched;
    /// Whose calls follow, if anybody's; returns whose they were.
    fn set_caller(&mut self, task: Option<Task>) -> Option<Task> {
        self.flash_mut().set_task(task.unwrap_or(Task::Background));
        Some(Task::Program)
    }
    /// A thread of the file system has the processor and does what it does until it may have to
    /// make way.
    fn run_thread(&mut self, now: Ns, _pages: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }
    /// The program's next call is one to sleep, for which it needs no lock: when it makes it, and
    /// when the thread that had the processor before is done. None of a file system whose threads
    /// go on a step at a time.
    fn call_sleep(&mut self, _now: Ns, _pages: &mut dyn PageCache) -> Result<Option<(Ns, Ns)>> {
        Ok(None)
    }
    /// The program sleeps until something is due.
    fn begin_sleep(&mut self, now: Ns) -> Result<Ns> {
        self.sched().sleep(now);
        self.set_caller(None);
        Ok(now)
    }
    /// The program goes on, whose timer has rung at `rang`, perhaps while a thread was at work
    /// until `now`.
    fn wake_program(&mut self, now: Ns, rang: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.set_caller(Some(Task::Program));
        self.sched().wake(rang, Task::Program);
        self.resched(now, pages)
    }
    /// Something of the VFS is to be freed later (call_rcu): an open file, an inode, a name.
    fn call_rcu(&mut self, _now: Ns) {}
    /// Whoever waits for the processor takes it from the program, if the scheduler would
    /// (cond_resched).
    fn resched(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        tasks::resched(self, now, pages)
    }
    /// s_maxbytes: no file grows beyond (EFBIG).
    fn max_file_bytes(&self) -> u64;
    /// statfs: bytes that a program without privileges may still write (f_bavail), or none where
    /// the model does not say.
    fn free_bytes(&self) -> Option<u64>;
}
