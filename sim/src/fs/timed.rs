//! A decorator that adds up how long a file system is called for, for runs that record layers.
//!
//! A file system never calls the VFS for something that takes time, so that what passes in a call
//! is the file system's, its threads' and that of the layers below. Calls that fail count until
//! the error is known.

use super::{
    Attribute, Features, FlashFs, Found, Ino, Name, Observed, PageCache, PageWrite, Rename, Result,
    Scheduled,
};
use crate::flash::Torn;
use crate::ledger::SpaceTable;
use crate::mtd::Mtd;
use crate::sched::{Sched, Task};
use crate::units::Ns;
use crate::victim::Victim;
use crate::waits::{over, Over};

/// A file system with a clock around each call.
#[derive(Clone, Debug)]
pub struct Timed<S> {
    fs: S,
    time: Ns,
}

impl<S> Timed<S> {
    /// A file system that was not called yet.
    pub fn new(fs: S) -> Timed<S> {
        Timed { fs, time: Ns::ZERO }
    }

    /// A call that began at `began`.
    fn took<T: Over>(&mut self, began: Ns, done: Result<T>) -> Result<T> {
        self.time += over(&done, began) - began;
        done
    }
}

impl<S: FlashFs> Scheduled for Timed<S> {
    fn sched(&mut self) -> &mut Sched {
        self.fs.sched()
    }

    fn next_due(&self) -> Option<Ns> {
        self.fs.next_due()
    }

    fn next_due_earliest(&self) -> Option<Ns> {
        self.fs.next_due_earliest()
    }

    fn run_due(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.run_due(now, pages);
        self.took(now, done)
    }

    fn run_thread(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.run_thread(now, pages);
        self.took(now, done)
    }

    fn run_work(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Option<Ns>> {
        let done = self.fs.run_work(now, pages)?;
        self.took(now, Ok(done.unwrap_or(now)))?;
        Ok(done)
    }

    fn resched(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.resched(now, pages);
        self.took(now, done)
    }

    fn set_caller(&mut self, task: Option<Task>) -> Option<Task> {
        self.fs.set_caller(task)
    }

    fn call_sleep(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Option<(Ns, Ns)>> {
        let done = self.fs.call_sleep(now, pages)?;
        self.took(now, Ok(done.map_or(now, |(_, over)| over)))?;
        Ok(done)
    }

    fn begin_sleep(&mut self, now: Ns) -> Result<Ns> {
        let done = self.fs.begin_sleep(now);
        self.took(now, done)
    }

    fn wake_program(&mut self, now: Ns, rang: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.wake_program(now, rang, pages);
        self.took(now, done)
    }

    fn call_rcu(&mut self, now: Ns) {
        self.fs.call_rcu(now);
    }
}

impl<S: FlashFs> FlashFs for Timed<S> {
    type Driver = S::Driver;

    fn create(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        let done = self.fs.create(now, at, pages);
        self.took(now, done)
    }

    fn mkdir(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        let done = self.fs.mkdir(now, at, pages);
        self.took(now, done)
    }

    fn lookup(&mut self, now: Ns, at: Name<'_>, found: Option<Ino>) -> Result<Ns> {
        let done = self.fs.lookup(now, at, found);
        self.took(now, done)
    }

    fn read_page(&mut self, now: Ns, ino: Ino, page: u32, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.read_page(now, ino, page, pages);
        self.took(now, done)
    }

    fn writes_back(&self) -> bool {
        self.fs.writes_back()
    }

    fn unlink(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.unlink(now, at, ino, pages);
        self.took(now, done)
    }

    fn rmdir(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.rmdir(now, at, ino, pages);
        self.took(now, done)
    }

    fn rename(&mut self, now: Ns, rename: Rename<'_>, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.rename(now, rename, pages);
        self.took(now, done)
    }

    fn truncate(
        &mut self,
        now: Ns,
        ino: Ino,
        size_bytes: u64,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let done = self.fs.truncate(now, ino, size_bytes, pages);
        self.took(now, done)
    }

    fn evict(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.evict(now, ino, pages);
        self.took(now, done)
    }

    fn kill_sb(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.kill_sb(now, pages);
        self.took(now, done)
    }

    fn remount(&mut self, now: Ns) -> Result<Ns> {
        let done = self.fs.remount(now);
        self.took(now, done)
    }

    fn write_begin(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.write_begin(now, write, pages);
        self.took(now, done)
    }

    fn write_page(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.write_page(now, write, pages);
        self.took(now, done)
    }

    fn write_inode(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.write_inode(now, ino, pages);
        self.took(now, done)
    }

    fn fsync(
        &mut self,
        now: Ns,
        ino: Ino,
        inode_too: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let done = self.fs.fsync(now, ino, inode_too, pages);
        self.took(now, done)
    }

    fn sync(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.sync(now, pages);
        self.took(now, done)
    }

    fn drop_caches(&mut self, now: Ns, kept: &[Ino]) -> Result<Ns> {
        let done = self.fs.drop_caches(now, kept);
        self.took(now, done)
    }

    fn inodes_in_memory(&self) -> u64 {
        self.fs.inodes_in_memory()
    }

    fn mtd(&self) -> &Mtd<S::Driver> {
        self.fs.mtd()
    }

    fn mtd_mut(&mut self) -> &mut Mtd<S::Driver> {
        self.fs.mtd_mut()
    }

    fn max_file_bytes(&self) -> u64 {
        self.fs.max_file_bytes()
    }
}

impl<S: FlashFs> Features for Timed<S> {
    fn expect_writes(&self, ino: Ino, pages: &[u32]) {
        self.fs.expect_writes(ino, pages);
    }

    fn check_dir_empty(&mut self, now: Ns, ino: Ino, names: &[Name<'_>]) -> Result<Ns> {
        let done = self.fs.check_dir_empty(now, ino, names);
        self.took(now, done)
    }

    fn link(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.link(now, at, ino, pages);
        self.took(now, done)
    }

    fn symlink(
        &mut self,
        now: Ns,
        at: Name<'_>,
        target: &str,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        let done = self.fs.symlink(now, at, target, pages);
        self.took(now, done)
    }

    fn get_link(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let done = self.fs.get_link(now, ino);
        self.took(now, done)
    }

    fn rename_whiteout(
        &mut self,
        now: Ns,
        rename: Rename<'_>,
        pages: &mut dyn PageCache,
    ) -> Result<(Ino, Ns)> {
        let done = self.fs.rename_whiteout(now, rename, pages);
        self.took(now, done)
    }

    fn exchange(&mut self, now: Ns, rename: Rename<'_>, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.exchange(now, rename, pages);
        self.took(now, done)
    }

    fn whiteout(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        let done = self.fs.whiteout(now, at, pages);
        self.took(now, done)
    }

    fn read_volume(&mut self, now: Ns, volume: usize, at: u64, bytes: u32) -> Result<Ns> {
        let done = self.fs.read_volume(now, volume, at, bytes);
        self.took(now, done)
    }

    fn tmpfile(&mut self, now: Ns, above: Ino, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        let done = self.fs.tmpfile(now, above, pages);
        self.took(now, done)
    }

    fn set_attribute(
        &mut self,
        now: Ns,
        ino: Ino,
        what: Attribute,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let done = self.fs.set_attribute(now, ino, what, pages);
        self.took(now, done)
    }

    fn read_dir(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.read_dir(now, ino, pages);
        self.took(now, done)
    }

    fn listed_ns(&self) -> Ns {
        self.fs.listed_ns()
    }

    fn lost_and_found(&self) -> Option<(&'static str, Ino)> {
        self.fs.lost_and_found()
    }

    fn set_xattr(
        &mut self,
        now: Ns,
        ino: Ino,
        name: &str,
        bytes: u32,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let done = self.fs.set_xattr(now, ino, name, bytes, pages);
        self.took(now, done)
    }

    fn get_xattr(&mut self, now: Ns, ino: Ino, name: &str) -> Result<(u32, Ns)> {
        let done = self.fs.get_xattr(now, ino, name);
        self.took(now, done)
    }

    fn list_xattr(&mut self, now: Ns, ino: Ino) -> Result<(u32, Ns)> {
        let done = self.fs.list_xattr(now, ino);
        self.took(now, done)
    }

    fn remove_xattr(
        &mut self,
        now: Ns,
        ino: Ino,
        name: &str,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let done = self.fs.remove_xattr(now, ino, name, pages);
        self.took(now, done)
    }

    fn write_end_sets_error(&self) -> bool {
        self.fs.write_end_sets_error()
    }

    fn maps_shared_writable(&self) -> bool {
        self.fs.maps_shared_writable()
    }

    fn page_mkwrite(
        &mut self,
        now: Ns,
        ino: Ino,
        page: u32,
        new_time: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let done = self.fs.page_mkwrite(now, ino, page, new_time, pages);
        self.took(now, done)
    }

    fn begin_evict(&mut self, now: Ns, ino: Ino) {
        self.fs.begin_evict(now, ino);
    }

    fn update_time(&mut self, now: Ns, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        let done = self.fs.update_time(now, ino, pages);
        self.took(now, done)
    }

    fn flush(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let done = self.fs.flush(now, ino);
        self.took(now, done)
    }
}

impl<S: FlashFs> Observed for Timed<S> {
    fn time_in_calls(&self) -> Ns {
        self.time
    }

    fn time_in_ubi(&self) -> Ns {
        self.fs.time_in_ubi()
    }

    fn power_up(&mut self, now: Ns, torn: Option<Torn>) -> Result<(Vec<Found>, Ns)> {
        let done = self.fs.power_up(now, torn);
        self.took(now, done)
    }

    fn take_found(&mut self) -> Vec<Found> {
        self.fs.take_found()
    }

    fn space(&self) -> Option<SpaceTable> {
        self.fs.space()
    }

    fn live_bytes(&self, blocks: &mut [u32]) -> bool {
        self.fs.live_bytes(blocks)
    }

    fn set_victim(&mut self, victim: Box<dyn Victim>) -> bool {
        self.fs.set_victim(victim)
    }

    fn replay_choices(&mut self, recorded: &[u16]) {
        self.fs.replay_choices(recorded);
    }

    fn choices(&self) -> &[u16] {
        self.fs.choices()
    }
}
