//! A log-structured file system that knows SQLite's files: `cargo run --release --example
//! database_log [-- PREPARE.ops BODY.ops]`.
//!
//! The log is written in records of one page of a database, packed into pages of the flash; what
//! collection moves goes to a log of its own. A commit record ends what `fsync` makes durable, and
//! a mount after a power cut goes back to the last one. So an old page stays until the next commit,
//! and a rollback journal says nothing that the log does not know: in `Knows::Journals` a file
//! NAME-journal stays in memory, and the commit is its end, when SQLite unlinks or truncates it.
//!
//! Left out: WAL mode, a journal of several databases, PERSIST mode (whose journal never ends), the
//! checkpoint that would shorten a mount.
//!
//! Invariants:
//! 1. `stored` and `changed` point at records whose block was not erased since they were appended.
//! 2. `live[block]` is the sum of the records in the block that either of them points at.

#[path = "../tests/support/mod.rs"]
mod support;

use sim::causes::{Cause, Held};
use sim::content::Contents;
use sim::flash::{Chip, Faulty, PowerCut, Torn, Traced};
use sim::fs::{
    Features, FlashFs, Found, FsError, Ino, Name, Observed, PageCache, PageWrite, Rename, Result,
    Scheduled, PAGE_BYTES, ROOT,
};
use sim::mtd::{Mtd, NandDriver};
use sim::run::{run_cases, run_cases_on_own, CaseInput, FsKind, Measured, Setting};
use sim::sched::{Sched, Task};
use sim::units::Ns;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A page of a database, as SQLite's 1 KiB in the papers.
const UNIT_BYTES: u32 = 1024;
const UNITS: u32 = PAGE_BYTES / UNIT_BYTES;
/// Inode, unit, length, version, checksum.
const HEADER_BYTES: u32 = 24;
/// A name, a size and the times.
const INODE_BYTES: u32 = 104;
const COMMIT_BYTES: u32 = 24;
/// Blocks that are kept for collection.
const RESERVE: usize = 3;

/// What the file system knows of the files on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knows {
    Nothing,
    Journals,
}

/// A unit of a file, or the file's inode.
type Key = (Ino, Option<u32>);

#[derive(Clone, Copy, Debug)]
struct Place {
    at: u64,
    bytes: u32,
}

/// Where a log is written.
#[derive(Clone, Debug, Default)]
struct Head {
    block: Option<u32>,
    appended: u32,
    programmed: u32,
    causes: Held,
}

/// The logs: of what programs write, and of what collection moves.
const HOT: usize = 0;
const COLD: usize = 1;

#[derive(Clone, Debug)]
struct Log<D> {
    mtd: Mtd<D>,
    knows: Knows,
    heads: [Head; 2],
    free: BTreeSet<u32>,
    live: Vec<u32>,
    /// As of the last commit.
    stored: BTreeMap<Key, Place>,
    /// Since then; none for what was deleted.
    changed: BTreeMap<Key, Option<Place>>,
    journals: BTreeSet<Ino>,
    /// Journals that have content: a transaction is open.
    open: BTreeSet<Ino>,
    /// Names and sizes now, and whole files as of the last commit.
    tree: BTreeMap<Ino, Found>,
    durable: BTreeMap<Ino, Found>,
    inodes: u32,
    sched: Sched,
    caller: Option<Task>,
}

impl<D: NandDriver> Log<D> {
    fn format(mtd: Mtd<D>, knows: Knows) -> Result<(Log<D>, Ns)> {
        let sched = Sched::new(mtd.costs().sched_clock_ns, &support::facts());
        let blocks = mtd.blocks();
        let free = (0..blocks).filter(|&block| !mtd.is_bad(block)).collect();
        let log = Log {
            mtd,
            knows,
            heads: Default::default(),
            free,
            live: vec![0; blocks as usize],
            stored: BTreeMap::new(),
            changed: BTreeMap::new(),
            journals: BTreeSet::new(),
            open: BTreeSet::new(),
            tree: BTreeMap::new(),
            durable: BTreeMap::new(),
            inodes: ROOT.0,
            sched,
            caller: Some(Task::Program),
        };
        Ok((log, Ns::ZERO))
    }

    fn block_of(&self, at: u64) -> usize {
        (at / u64::from(self.mtd.block_bytes())) as usize
    }

    /// Programs the pages of a log that are full, or with padding the last one, too.
    fn program(&mut self, mut now: Ns, log: usize, pad: bool) -> Result<Ns> {
        let page_bytes = self.mtd.page_bytes();
        let block_bytes = u64::from(self.mtd.block_bytes());
        let head = &mut self.heads[log];
        let Some(block) = head.block else { return Ok(now) };
        let rest = head.appended % page_bytes;
        if pad && rest > 0 {
            head.causes.push(Cause::Padding, page_bytes - rest);
            head.appended += page_bytes - rest;
        }
        while head.appended - head.programmed >= page_bytes {
            let offset = u64::from(block) * block_bytes + u64::from(head.programmed);
            let causes = head.causes.take(page_bytes);
            now = self.mtd.write_for(now, offset, page_bytes, &causes)?;
            head.programmed += page_bytes;
        }
        Ok(now)
    }

    /// Appends a record to a log; returns where it is.
    fn append(&mut self, mut now: Ns, log: usize, bytes: u32, why: Cause) -> Result<(Place, Ns)> {
        let fits = |head: &Head| head.appended + bytes <= self.mtd.block_bytes();
        if self.heads[log].block.is_none() || !fits(&self.heads[log]) {
            now = self.program(now, log, true)?;
            let block = self.free.pop_first().ok_or(FsError::NoSpace(now))?;
            self.heads[log] = Head { block: Some(block), ..Head::default() };
        }
        let head = &mut self.heads[log];
        let block = u64::from(head.block.expect("just taken"));
        let at = block * u64::from(self.mtd.block_bytes()) + u64::from(head.appended);
        head.appended += bytes;
        head.causes.push(why, bytes);
        Ok((Place { at, bytes }, self.program(now, log, false)?))
    }

    /// What a file's unit is now, committed or not.
    fn find(&self, key: Key) -> Option<Place> {
        match self.changed.get(&key) {
            Some(&changed) => changed,
            None => self.stored.get(&key).copied(),
        }
    }

    fn is_dead(&mut self, place: Place) {
        let block = self.block_of(place.at);
        self.live[block] -= place.bytes;
    }

    fn change(&mut self, key: Key, to: Option<Place>) {
        if let Some(place) = to {
            let block = self.block_of(place.at);
            self.live[block] += place.bytes;
        }
        if let Some(Some(before)) = self.changed.insert(key, to) {
            self.is_dead(before);
        }
    }

    fn put(&mut self, now: Ns, key: Key, bytes: u32, why: Cause) -> Result<Ns> {
        let now = self.make_room(now)?;
        let (place, now) = self.append(now, HOT, bytes, why)?;
        self.change(key, Some(place));
        Ok(now)
    }

    fn put_inode(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        if self.is_in_memory(ino) {
            return Ok(now);
        }
        self.put(now, (ino, None), HEADER_BYTES + INODE_BYTES, Cause::Metadata)
    }

    fn is_in_memory(&self, ino: Ino) -> bool {
        self.knows == Knows::Journals && self.journals.contains(&ino)
    }

    /// Everything so far is durable: what it replaced may go.
    fn commit(&mut self, mut now: Ns, pages: &dyn PageCache) -> Result<Ns> {
        if self.changed.is_empty() {
            return Ok(now);
        }
        (_, now) = self.append(now, HOT, COMMIT_BYTES, Cause::Metadata)?;
        now = self.program(now, HOT, true)?;
        for (key, place) in std::mem::take(&mut self.changed) {
            let before = match place {
                Some(place) => self.stored.insert(key, place),
                None => self.stored.remove(&key),
            };
            if let Some(before) = before {
                self.is_dead(before);
            }
        }
        if self.mtd.can_lose_power() {
            let kept = self.tree.values().filter(|file| !self.is_in_memory(file.ino)).cloned();
            let with_bytes =
                kept.map(|file| Found { contents: pages.contents(file.ino).clone(), ..file });
            self.durable = with_bytes.map(|file| (file.ino, file)).collect();
        }
        Ok(now)
    }

    /// fsync and sync: inside a transaction they promise nothing that its end does not.
    fn sync_all(&mut self, now: Ns, pages: &dyn PageCache) -> Result<Ns> {
        if self.open.is_empty() {
            self.commit(now, pages)
        } else {
            Ok(now)
        }
    }

    fn end_of_journal(&mut self, now: Ns, ino: Ino, pages: &dyn PageCache) -> Result<Ns> {
        if self.open.remove(&ino) && self.open.is_empty() {
            return self.commit(now, pages);
        }
        Ok(now)
    }

    /// Collects until there is room for a record.
    fn make_room(&mut self, mut now: Ns) -> Result<Ns> {
        while self.free.len() < RESERVE {
            let heads = [self.heads[HOT].block, self.heads[COLD].block];
            let full = (0..self.mtd.blocks()).filter(|block| {
                !self.free.contains(block)
                    && !heads.contains(&Some(*block))
                    && !self.mtd.is_bad(*block)
            });
            let victim = full.min_by_key(|&block| self.live[block as usize]);
            let victim = victim.ok_or(FsError::NoSpace(now))?;
            if self.live[victim as usize] + self.mtd.page_bytes() > self.mtd.block_bytes() {
                return Err(FsError::NoSpace(now));
            }
            now = self.collect(now, victim)?;
        }
        Ok(now)
    }

    fn collect(&mut self, mut now: Ns, victim: u32) -> Result<Ns> {
        let is_there = |place: &Place| self.block_of(place.at) == victim as usize;
        let stored = self.stored.iter().filter(|(_, place)| is_there(place));
        let stored: Vec<_> = stored.map(|(&key, &place)| (key, place, true)).collect();
        let changed = self.changed.iter().filter_map(|(&key, &place)| Some((key, place?, false)));
        let changed: Vec<_> = changed.filter(|(_, place, _)| is_there(place)).collect();
        for (key, place, is_stored) in stored.into_iter().chain(changed) {
            now = self.mtd.read(now, place.at, place.bytes)?;
            let moved;
            (moved, now) = self.append(now, COLD, place.bytes, Cause::Collection)?;
            let block = self.block_of(moved.at);
            self.live[block] += moved.bytes;
            self.is_dead(place);
            match is_stored {
                true => self.stored.insert(key, moved).map(|_| ()),
                false => self.changed.insert(key, Some(moved)).map(|_| ()),
            };
        }
        now = self.program(now, COLD, true)?;
        // What was appended after the last commit may stand in for what is erased.
        now = self.program(now, HOT, true)?;
        now = self.mtd.erase(now, victim)?;
        self.free.insert(victim);
        Ok(now)
    }

    /// Whether a record is still in memory, because its page of the flash is not full.
    fn is_buffered(&self, place: Place) -> bool {
        let block = self.block_of(place.at) as u32;
        let inside = (place.at % u64::from(self.mtd.block_bytes())) as u32;
        let of = self.heads.iter().find(|head| head.block == Some(block));
        of.is_some_and(|head| inside + place.bytes > head.programmed)
    }

    fn file(&mut self, ino: Ino) -> &mut Found {
        self.tree.get_mut(&ino).expect("it was created")
    }

    fn scan(&mut self, mut now: Ns) -> Result<Ns> {
        let page_bytes = self.mtd.page_bytes();
        for block in 0..self.mtd.blocks() {
            let offset = u64::from(block) * u64::from(self.mtd.block_bytes());
            for inside in (0..self.mtd.programmed_bytes(block)).step_by(page_bytes as usize) {
                let read = self.mtd.read(now, offset + u64::from(inside), page_bytes);
                // What a power cut tore is no record.
                now = match read.map_err(FsError::from) {
                    Err(FsError::Io(at)) => at,
                    other => other?,
                };
            }
        }
        Ok(now)
    }

    fn forget(&mut self, ino: Ino, from: Option<u32>) {
        let is_of = |&&(of, unit): &&Key| of == ino && unit >= from;
        let keys: BTreeSet<Key> =
            self.stored.keys().chain(self.changed.keys()).filter(is_of).copied().collect();
        keys.into_iter().for_each(|key| self.change(key, None));
    }
}

impl<D: NandDriver> FlashFs for Log<D> {
    type Driver = D;

    fn create(&mut self, now: Ns, at: Name<'_>, _: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.inodes += 1;
        let ino = Ino(self.inodes);
        let (directory, name) = (at.directory, at.name.to_owned());
        let contents = Contents::default();
        let file = Found {
            directory,
            name,
            ino,
            is_directory: false,
            target: None,
            size_bytes: 0,
            contents,
        };
        self.tree.insert(ino, file);
        if at.name.ends_with("-journal") {
            self.journals.insert(ino);
        }
        Ok((ino, self.put_inode(now, ino)?))
    }

    fn mkdir(&mut self, now: Ns, at: Name<'_>, pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        let (ino, now) = self.create(now, at, pages)?;
        self.file(ino).is_directory = true;
        Ok((ino, now))
    }

    fn lookup(&mut self, now: Ns, _: Name<'_>, _: Option<Ino>) -> Result<Ns> {
        Ok(now)
    }

    fn read_page(&mut self, mut now: Ns, ino: Ino, page: u32, _: &mut dyn PageCache) -> Result<Ns> {
        let units = page * UNITS..(page + 1) * UNITS;
        let places: Vec<Place> = units.filter_map(|unit| self.find((ino, Some(unit)))).collect();
        for place in places {
            if !self.is_buffered(place) {
                now = self.mtd.read(now, place.at, place.bytes)?;
            }
        }
        Ok(now)
    }

    fn writes_back(&self) -> bool {
        false
    }

    fn write_begin(&mut self, now: Ns, at: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        if at.cached || at.from % UNIT_BYTES == 0 && at.to % UNIT_BYTES == 0 {
            return Ok(now);
        }
        self.read_page(now, at.ino, at.page, pages)
    }

    fn write_page(&mut self, mut now: Ns, at: PageWrite, _: &mut dyn PageCache) -> Result<Ns> {
        self.file(at.ino).size_bytes = at.file_bytes;
        if self.is_in_memory(at.ino) {
            self.open.insert(at.ino);
            return Ok(now);
        }
        for unit in at.from / UNIT_BYTES..at.to.div_ceil(UNIT_BYTES) {
            let key = (at.ino, Some(at.page * UNITS + unit));
            now = self.put(now, key, HEADER_BYTES + UNIT_BYTES, Cause::Data)?;
        }
        Ok(now)
    }

    fn truncate(&mut self, now: Ns, ino: Ino, to: u64, pages: &mut dyn PageCache) -> Result<Ns> {
        pages.truncate_setsize(ino, to);
        self.file(ino).size_bytes = to;
        if self.is_in_memory(ino) {
            return if to == 0 { self.end_of_journal(now, ino, pages) } else { Ok(now) };
        }
        self.forget(ino, Some(to.div_ceil(u64::from(UNIT_BYTES)) as u32));
        self.put_inode(now, ino)
    }

    fn evict(&mut self, now: Ns, ino: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        self.forget(ino, None);
        self.journals.remove(&ino);
        Ok(now)
    }

    fn unlink(&mut self, now: Ns, _: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.tree.remove(&ino);
        if self.is_in_memory(ino) {
            return self.end_of_journal(now, ino, pages);
        }
        self.change((ino, None), None);
        Ok(self.append(now, HOT, HEADER_BYTES, Cause::Metadata)?.1)
    }

    fn rmdir(&mut self, now: Ns, at: Name<'_>, ino: Ino, pages: &mut dyn PageCache) -> Result<Ns> {
        self.unlink(now, at, ino, pages)
    }

    fn rename(&mut self, now: Ns, at: Rename<'_>, _: &mut dyn PageCache) -> Result<Ns> {
        let file = self.file(at.ino);
        (file.directory, file.name) = (at.new.directory, at.new.name.to_owned());
        if let Some(replaced) = at.replaced {
            self.tree.remove(&replaced);
        }
        self.put_inode(now, at.ino)
    }

    fn write_inode(&mut self, now: Ns, ino: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        self.put_inode(now, ino)
    }

    fn fsync(&mut self, now: Ns, ino: Ino, inode: bool, pages: &mut dyn PageCache) -> Result<Ns> {
        let now = if inode && !self.changed.is_empty() { self.put_inode(now, ino)? } else { now };
        self.sync_all(now, pages)
    }

    fn sync(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        self.sync_all(now, pages)
    }

    fn drop_caches(&mut self, now: Ns, _: &[Ino]) -> Result<Ns> {
        Ok(now)
    }

    /// Reads the headers of all records: every page of a block that is in use.
    fn remount(&mut self, now: Ns) -> Result<Ns> {
        self.scan(now)
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

impl<D: NandDriver> Observed for Log<D> {
    fn power_up(&mut self, now: Ns, _: Option<Torn>) -> Result<(Vec<Found>, Ns)> {
        for place in std::mem::take(&mut self.changed).into_values().flatten() {
            self.is_dead(place);
        }
        self.heads = Default::default();
        (self.journals, self.open) = Default::default();
        self.tree.clone_from(&self.durable);
        let now = self.scan(now)?;
        Ok((self.tree.values().cloned().collect(), now))
    }
}

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

/// Of the partition.
const BLOCKS: u32 = 256;
/// A database of so many pages of 1 KiB, as SQLite prepares it.
const PAGES: u64 = 400;

fn prepared() -> String {
    let mut text = String::from("flashbed-ops 1\nopen 0 main.db rw,create\n");
    for page in 0..PAGES {
        writeln!(text, "write 0 {} 1024 1 0", page * 1024).expect("a String");
    }
    text + "fsync 0\nclose 0\nsync\nprepared\n"
}

/// Updates of one record each, as SQLite commits them with a rollback journal: the old pages go to
/// the journal, then page 1 and the record's change, then the journal ends. Bytes that a commit
/// writes have its number as seed, from 2.
fn updates(commits: u64) -> String {
    let mut text = String::from("flashbed-ops 1\nopen 0 main.db rw\nmark\n");
    for commit in 2..commits + 2 {
        let page = 1 + commit * 7919 % (PAGES - 1);
        text += "open 1 main.db-journal rw,create\n";
        writeln!(text, "write 1 0 512 {commit} 0").expect("a String");
        for record in 0..2 {
            writeln!(text, "write 1 {} 1032 {commit} 0", 512 + record * 1032).expect("a String");
        }
        writeln!(text, "fsync 1\nwrite 1 0 12 {commit} 0\nfsync 1").expect("a String");
        writeln!(text, "write 0 0 1024 {commit} 0").expect("a String");
        writeln!(text, "write 0 {} 1024 {commit} 0\nfsync 0", page * 1024).expect("a String");
        text += "close 1\nunlink main.db-journal\n";
    }
    text
}

#[derive(Clone, Copy, Debug)]
enum On {
    Fs(FsKind),
    Log(Knows),
}

/// Runs a program on one of the file systems that are there, or on the log, with so many blocks.
fn run(on: On, blocks: u32, (prepare, body): (&str, &str), cuts: &[u64]) -> Measured {
    let (mut board, kernel) = (support::board("emulated"), support::kernel("6.1"));
    board.partition.blocks = blocks;
    let fs = if let On::Fs(fs) = on { fs } else { FsKind::Jffs2 };
    let setting = support::setting(&board, &kernel, fs, prepare);
    let setting = Setting { recorded: support::TRACED, ..setting };
    let case = CaseInput { read_ahead_kib: 0, body, cuts, gc_choices: &[] };
    let On::Log(knows) = on else {
        return run_cases(&setting, &[case]).remove(0).expect("it runs");
    };
    let chip = PowerCut::new(Chip::new(board.chip));
    let faulty = Faulty::new(chip, Default::default(), board.ecc.step_bytes);
    let mut mtd = Mtd::new(Traced::new(faulty), &board);
    mtd.expect_power_cuts();
    run_cases_on_own(&setting, &[case], Log::format(mtd, knows)).remove(0).expect("it runs")
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let (prepare, body) = match given.as_slice() {
        [] => (prepared(), updates(1000)),
        [prepare, body] => (read(prepare), read(body)),
        _ => panic!("database_log [PREPARE.ops BODY.ops]"),
    };
    println!("{:<20} {:>8} {:>8} {:>8}", "", "writes", "erases", "time");
    let systems = [
        ("jffs2", On::Fs(FsKind::Jffs2)),
        ("yaffs2", On::Fs(FsKind::Yaffs2)),
        ("ubifs", On::Fs(FsKind::Ubifs)),
        ("log", On::Log(Knows::Nothing)),
        ("log, knows journals", On::Log(Knows::Journals)),
    ];
    for (name, on) in systems {
        let measured = run(on, BLOCKS, (&prepare, &body), &[]);
        let (writes, erases) = (measured.flash_programs, measured.flash_erases);
        let time_ms = measured.time.0 / 1_000_000;
        println!("{name:<20} {writes:>8} {erases:>8} {time_ms:>5} ms");
    }
}

fn read(path: &str) -> String {
    #[allow(clippy::disallowed_methods, clippy::disallowed_types)]
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::run::survey::{Held as Bytes, SurveyedFile};

    /// The last commit of which a database holds all; none if its pages are of several.
    fn whole_commit(files: &[SurveyedFile], commits: u64) -> Option<u64> {
        let database = files.iter().find(|file| file.path.trim_start_matches('/') == "main.db")?;
        let mut found = vec![0; PAGES as usize];
        for run in &database.runs {
            let Bytes::Generated(source) = run.held else { return None };
            let pages = run.offset_bytes / 1024..(run.offset_bytes + run.length_bytes) / 1024;
            pages.for_each(|page| found[page as usize] = source.seed);
        }
        let last = found[0];
        let mut expected = vec![1; PAGES as usize];
        for commit in 2..=last.min(commits + 1) {
            expected[0] = commit;
            expected[(1 + commit * 7919 % (PAGES - 1)) as usize] = commit;
        }
        (found == expected).then_some(last)
    }

    /// Cuts the power in changes of `commits` updates.
    fn check_cuts(blocks: u32, commits: u64, cuts: impl Fn(u64) -> Vec<u64>) -> Measured {
        let (prepare, body) = (prepared(), updates(commits));
        let whole = run(On::Log(Knows::Journals), blocks, (&prepare, &body), &[]);
        let cuts = cuts(whole.flash_programs + whole.flash_erases);
        let measured = run(On::Log(Knows::Journals), blocks, (&prepare, &body), &cuts);
        assert_eq!(measured.surveys.len(), cuts.len());
        for survey in &measured.surveys {
            let ended = whole.requests.iter().filter(|request| {
                sim::ops::NAMES[request.op] == "unlink" && request.changes < survey.change
            });
            let ended = 1 + ended.count() as u64;
            let found = whole_commit(&survey.files, commits);
            assert!(
                found.is_some_and(|found| found == ended || found == ended + 1),
                "cut in change {}: {ended} commits ended, found {found:?}",
                survey.change
            );
            assert_eq!(survey.probe_result, Some(0));
        }
        whole
    }

    #[test]
    fn every_commit_that_ended_survives_a_power_cut() {
        check_cuts(BLOCKS, 40, |changes| (1..=changes).collect());
    }

    #[test]
    fn commits_survive_power_cuts_while_blocks_are_collected() {
        let whole = check_cuts(24, 900, |changes| (changes - 60..=changes).collect());
        assert!(whole.flash_erases > 0);
    }

    #[test]
    fn it_writes_less_than_the_three() {
        let (prepare, body) = (prepared(), updates(1000));
        let writes = |on| run(on, BLOCKS, (&prepare, &body), &[]).flash_programs;
        let log = writes(On::Log(Knows::Journals));
        for fs in [FsKind::Jffs2, FsKind::Yaffs2, FsKind::Ubifs] {
            assert!(2 * log < writes(On::Fs(fs)), "{fs:?}");
        }
        assert!(log < writes(On::Log(Knows::Nothing)));
    }
}
