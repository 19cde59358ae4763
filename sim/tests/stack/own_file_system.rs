//! A file system of one's own: this file is all of it.
//!
//! It writes each page to the next place of the partition, and forgets where everything is when
//! the power fails. It collects nothing, so a partition is full when it was written once.

use super::policies::Never;
use crate::support;
use sim::causes::{Cause, Causes};
use sim::errno::ENOSPC;
use sim::flash::{Chip, Traced};
use sim::fs::{
    Features, FlashFs, FsError, Ino, Name, Observed, PageCache, PageWrite, Rename, Result,
    Scheduled, PAGE_BYTES, ROOT,
};
use sim::mtd::{Mtd, NandDriver};
use sim::run::{run_cases_on_own, CaseInput, FsKind, Measured, Policies, RunError, Setting};
use sim::sched::{Sched, Task};
use sim::units::Ns;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Log<D> {
    mtd: Mtd<D>,
    sched: Sched,
    caller: Option<Task>,
    inodes: u32,
    next: u64,
    places: BTreeMap<(Ino, u32), u64>,
}

impl<D: NandDriver> Log<D> {
    fn format(mtd: Mtd<D>) -> Result<(Log<D>, Ns)> {
        let sched = Sched::new(mtd.costs().sched_clock_ns, &support::facts());
        let caller = Some(Task::Program);
        let places = BTreeMap::new();
        Ok((Log { mtd, sched, caller, inodes: ROOT.0, next: 0, places }, Ns::ZERO))
    }
}

impl<D: NandDriver> FlashFs for Log<D> {
    type Driver = D;

    fn create(&mut self, now: Ns, _: Name<'_>, _: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.inodes += 1;
        Ok((Ino(self.inodes), now))
    }

    fn mkdir(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.create(now, at, pages)
    }

    fn lookup(&mut self, now: Ns, _: Name<'_>, _: Option<Ino>) -> Result<Ns> {
        Ok(now)
    }

    fn read_page(&mut self, now: Ns, ino: Ino, page: u32, _: &mut dyn PageCache) -> Result<Ns> {
        match self.places.get(&(ino, page)) {
            Some(&place) => Ok(self.mtd.read(now, place, PAGE_BYTES)?),
            None => Ok(now),
        }
    }

    fn writes_back(&self) -> bool {
        false
    }

    fn write_begin(&mut self, now: Ns, at: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        if self.next + u64::from(PAGE_BYTES) > self.mtd.size_bytes() {
            return Err(FsError::NoSpace(now));
        }
        let is_whole = at.cached || at.to - at.from == PAGE_BYTES;
        if is_whole {
            return Ok(now);
        }
        self.read_page(now, at.ino, at.page, pages)
    }

    fn write_page(&mut self, now: Ns, at: PageWrite, _: &mut dyn PageCache) -> Result<Ns> {
        let place = self.next;
        self.next += u64::from(PAGE_BYTES);
        self.places.insert((at.ino, at.page), place);
        let causes = Causes::of(Cause::Data, PAGE_BYTES);
        Ok(self.mtd.write_for(now, place, PAGE_BYTES, &causes)?)
    }

    fn truncate(&mut self, now: Ns, ino: Ino, to: u64, pages: &mut dyn PageCache) -> Result<Ns> {
        let end = to.div_ceil(u64::from(PAGE_BYTES)) as u32;
        self.places.retain(|&(of, page), _| of != ino || page < end);
        pages.truncate_setsize(ino, to);
        Ok(now)
    }

    fn evict(&mut self, now: Ns, ino: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        self.places.retain(|&(of, _), _| of != ino);
        Ok(now)
    }

    fn unlink(&mut self, now: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn rmdir(&mut self, now: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn rename(&mut self, now: Ns, _: Rename<'_>, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn write_inode(&mut self, now: Ns, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn fsync(&mut self, now: Ns, _: Ino, _: bool, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn sync(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn drop_caches(&mut self, now: Ns, _: &[Ino]) -> Result<Ns> {
        Ok(now)
    }

    fn remount(&mut self, now: Ns) -> Result<Ns> {
        Ok(now)
    }

    fn inodes_in_memory(&self) -> u64 {
        0
    }

    fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    fn max_file_bytes(&self) -> u64 {
        self.mtd.size_bytes()
    }
}

impl<D> Features for Log<D> {}

impl<D> Observed for Log<D> {}

impl<D> Scheduled for Log<D> {
    fn sched(&mut self) -> &mut Sched {
        &mut self.sched
    }

    fn next_due(&self) -> Option<Ns> {
        None
    }

    fn run_due(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn run_thread(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn resched(&mut self, now: Ns, _: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn set_caller(&mut self, task: Option<Task>) -> Option<Task> {
        std::mem::replace(&mut self.caller, task)
    }
}

/// Runs a case on it. What is recorded of the chip is recorded here, too.
fn run(policies: &Policies, body: &str) -> std::result::Result<Measured, RunError> {
    let (board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    let prepare = "flashbed-ops 1\nprepared\n";
    let any = FsKind::Jffs2;
    let setting = support::setting(&board, &kernel, any, prepare);
    let setting = Setting { policies, recorded: support::TRACED, ..setting };
    let case = CaseInput { read_ahead_kib: 128, body, cuts: &[], gc_choices: &[] };
    run_cases_on_own(&setting, &[case], Log::format(mtd)).remove(0)
}

#[test]
fn a_file_system_of_ones_own_runs_programs() {
    let body = "flashbed-ops 1\nmark\nmkdir d\nopen 0 d/f rw,create\nwrite 0 0 10000 1 0\n\
                write 0 4000 200 2 0\nfsync 0\ndrop_caches\nread 0 0 20000\nrename d/f g\n\
                truncate 0 5000\nclose 0\nunlink g\n";
    let measured = run(Policies::KERNELS, body).expect("it runs");
    let results: Vec<i64> = measured.requests.iter().map(|request| request.result).collect();
    assert_eq!(results, [0, 0, 10_000, 200, 0, 0, 10_000, 0, 0, 0, 0]);
    // three pages of 4 KiB, two more for the bytes on both sides of a border, and three read back
    let page_bytes = 2048;
    assert_eq!(measured.flash_programs, (3 + 2) * 4096 / page_bytes);
    assert_eq!(measured.flash_reads, 3 * 4096 / page_bytes);
    assert_eq!(measured.flash.len() as u64, measured.flash_programs + measured.flash_reads);
    assert_eq!(measured.fresh.bytes, None, "it does not say how much is free");
}

#[test]
fn a_file_system_of_ones_own_may_be_full_and_lack_features() {
    let body = "flashbed-ops 1\nmark\nopen 0 f rw,create\nwrite 0 0 100000000 1 0\n";
    let measured = run(Policies::KERNELS, body).expect("it runs");
    assert!(measured.requests[1].result < 100_000_000 || measured.requests[1].result == ENOSPC);
    let linked = "flashbed-ops 2\nmark\nopen 0 f rw,create\nlink f g\n";
    let refused = run(Policies::KERNELS, linked).expect_err("it has no links");
    assert_eq!(refused.not_modelled(), Some("link on this file system"));
    let never = Policies { victim: Some(Box::new(Never)), ..Policies::default() };
    let refused = run(&never, body).expect_err("it collects nothing");
    assert_eq!(refused.not_modelled(), Some("a policy of collection on this file system"));
}
