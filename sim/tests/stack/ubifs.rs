//! UBIFS on the emulated board, seen in its flash operations: they are those that follow from the
//! kernel's code.

use crate::support;
use sim::flash::{Chip, Flash, FlashOp, Kind, Traced};
use sim::fs::ubifs::Ubifs;
use sim::fs::{FlashFs, FsError, Ino, Name, PageWrite, Scheduled, PAGE_BYTES, ROOT};
use sim::mtd::{Mtd, RawNand};
use sim::profile::BoardProfile;
use sim::units::Ns;

const SECOND: u64 = 1_000_000_000;

/// An operation of the chip: kind, page, column, bytes.
type Seen = (char, u32, u32, u32);

fn seen_of(op: &FlashOp) -> Seen {
    match op.kind {
        Kind::Read => ('R', op.page.0, op.column, op.length),
        Kind::Program => ('P', op.page.0, op.column, op.length),
        Kind::Erase => ('E', op.page.0, 0, 0),
    }
}

type Fs = Ubifs<RawNand<Traced<Chip>>>;

fn fresh(board: &BoardProfile) -> Result<(Fs, Ns), FsError> {
    let mut flash = Traced::new(Chip::new(board.chip));
    flash.start_recording();
    Ubifs::format(Mtd::new(flash, board), Ns::ZERO, support::kernel("6.1").ubifs, support::facts())
}

fn page_write(ino: Ino, page: u32, file_bytes: u64) -> PageWrite {
    PageWrite { ino, page, from: 0, to: PAGE_BYTES, file_bytes, cached: false }
}

/// Writes whole pages into the page cache and writes them back in the given order.
fn write_pages(fs: &mut Fs, now: Ns, ino: Ino, pages: &[u32]) -> Ns {
    let bytes = |page: u32| u64::from(page) * u64::from(PAGE_BYTES);
    let mut now = now;
    let mut size = 0;
    for &page in pages {
        now = fs
            .write_begin(now, page_write(ino, page, size), &mut support::NoPages)
            .expect("room for a page");
        size = size.max(bytes(page + 1));
    }
    for &page in pages {
        now = fs
            .write_page(now, page_write(ino, page, size), &mut support::NoPages)
            .expect("it was budgeted");
    }
    now
}

fn settle(fs: &mut Fs, now: Ns) -> Ns {
    let mut now = now;
    while let Some(due) = fs.next_due() {
        now = fs.run_due(now.max(due), &mut support::NoPages).expect("background work");
    }
    now
}

/// A file of `pages` pages after fsync, sync, and all background work that follows.
fn prepared(board: &str, pages: u32) -> (Fs, Ino, Ns) {
    let (mut fs, now) = fresh(&support::board(board)).expect("it is large enough");
    let (ino, now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("room for a name");
    let pages: Vec<u32> = (0..pages).collect();
    let now = write_pages(&mut fs, now, ino, &pages);
    let now = fs.fsync(now, ino, true, &mut support::NoPages).expect("fsync");
    let now = fs.sync(now, &mut support::NoPages).expect("sync");
    let now = settle(&mut fs, now);
    (fs, ino, now)
}

/// The chip's operations while `work` runs.
fn seen(fs: &mut Fs, now: Ns, work: impl FnOnce(&mut Fs, Ns) -> Ns) -> (Vec<Seen>, Ns) {
    fs.mtd_mut().flash_mut().start_recording();
    let now = work(fs, now);
    (fs.mtd_mut().flash_mut().take_record().iter().map(seen_of).collect(), now)
}

fn read_pages(fs: &mut Fs, now: Ns, ino: Ino, pages: impl IntoIterator<Item = u32>) -> Ns {
    pages
        .into_iter()
        .fold(now, |now, page| fs.read_page(now, ino, page, &mut support::NoPages).expect("read"))
}

/// The real kernel, open included: 31 flash reads for 8 requests in order, 3,233 for 1,024.
#[test]
fn reading_in_order_costs_the_flash_reads_the_kernel_showed() {
    let (mut fs, ino, now) = prepared("emulated", 1280);
    let now = fs.drop_caches(now, &[]).expect("drop");
    let before = fs.mtd().flash().counts().reads;
    let now = fs.lookup(now, Name { directory: ROOT, name: "file.bin" }, Some(ino)).expect("open");
    let now = read_pages(&mut fs, now, ino, 0..8);
    assert_eq!(fs.mtd().flash().counts().reads - before, 31);
    read_pages(&mut fs, now, ino, 8..1024);
    assert_eq!(fs.mtd().flash().counts().reads - before, 3233);
}

#[test]
fn opening_reads_the_index_path_the_name_and_the_inode() {
    let (mut fs, ino, now) = prepared("emulated", 1280);
    let open = |fs: &mut Fs, now| {
        fs.lookup(now, Name { directory: ROOT, name: "file.bin" }, Some(ino)).expect("open")
    };
    let (name, now) = seen(&mut fs, now, open);
    assert_eq!(name.len(), 1, "index and inode are still in memory");
    let (none, now) = seen(&mut fs, now, open);
    assert_eq!(none, [], "and now the name is");
    let now = fs.drop_caches(now, &[]).expect("drop");
    let (log, _) = seen(&mut fs, now, |fs, now| {
        fs.lookup(now, Name { directory: ROOT, name: "file.bin" }, Some(ino)).expect("open")
    });
    assert_eq!(log.len(), 6, "four index nodes, the name and the inode: {log:?}");
}

#[test]
fn a_data_node_is_read_where_the_journal_put_it() {
    let (mut fs, ino, now) = prepared("emulated", 31);
    let mut start = None;
    let mut now = now;
    for page in 0..31 {
        let (log, later) = seen(&mut fs, now, |fs, now| {
            fs.read_page(now, ino, page, &mut support::NoPages).expect(".")
        });
        now = later;
        let first = *start.get_or_insert(log[0].1);
        let (node, end) = (2048 + page * 4144, 2048 + (page + 1) * 4144);
        assert_eq!(log[0].1 - first, node / 2048 - 1, "page {page} begins there");
        assert_eq!(log[0].2, node % 2048 / 256 * 256, "at its ECC step");
        let last = log[log.len() - 1];
        assert_eq!((last.1 - first + 1) * 2048 + last.2 + last.3, end.div_ceil(256) * 256);
    }
}

/// Pages of 4 KiB, both headers a page: a data node begins at 8192 + 4144 * n of its block, and its
/// second page stays in the driver's buffer for the next one. 61 nodes fill a LEB of 62 pages.
#[test]
fn on_4_kib_pages_a_node_in_order_costs_one_flash_read() {
    let (mut fs, ino, now) = prepared("emulated-4k", 62);
    let now = read_pages(&mut fs, now, ino, 0..62); // the index is in memory then
    let mut first = None;
    let mut now = now;
    for page in 0..61 {
        let (log, later) = seen(&mut fs, now, |fs, now| {
            fs.read_page(now, ino, page, &mut support::NoPages).expect(".")
        });
        now = later;
        let (begin, end) = (8192 + page * 4144, 8192 + (page + 1) * 4144 - 1);
        let block = log[0].1 / 64;
        assert_eq!(*first.get_or_insert(block), block, "page {page} is in the first LEB");
        let begins = u32::from(page == 0);
        let pages: Vec<Seen> = (begin / 4096 + 1 - begins..=end / 4096)
            .map(|in_block| ('R', block * 64 + in_block, 0, 4096))
            .collect();
        assert_eq!(log, pages, "page {page}");
    }
    let (log, _) = seen(&mut fs, now, |fs, now| {
        fs.read_page(now, ino, 61, &mut support::NoPages).expect("read")
    });
    assert_ne!(Some(log[0].1 / 64), first);
    assert_eq!((log[0].1 % 64, log.len()), (2, 2), "the next LEB begins after its headers");
}

/// 200 blocks of a chip of 1,024: format writes each header, attach reads both of each block and
/// the volume table twice, and so on, a page at a time: 8192 + 24576 bytes for headers and table.
#[test]
fn on_4_kib_pages_ubi_writes_a_page_for_each_header() {
    let (mut fs, _) = fresh(&support::board("emulated-4k")).expect("large enough");
    let log: Vec<Seen> = fs.mtd_mut().flash_mut().take_record().iter().map(seen_of).collect();
    let format: Vec<Seen> = log.iter().take(2 * (1 + 8) + 2).copied().collect();
    let mut wanted = Vec::new();
    for block in 0..2 {
        wanted.push(('E', block * 64, 0, 0));
        wanted.extend((0..8).map(|page| ('P', block * 64 + page, 0, 4096)));
    }
    wanted.extend([('E', 128, 0, 0), ('P', 128, 0, 4096)]);
    assert_eq!(format, wanted);
    let attach: Vec<Seen> = log.iter().skip(200 + 2 * 8 + 198).take(400).copied().collect();
    let headers = (0..200).flat_map(|block| [0, 1].map(|page| ('R', block * 64 + page, 0, 4096)));
    assert_eq!(attach, headers.collect::<Vec<_>>());
}

/// 512-byte pages: headers share a page, both programs transfer the whole page, data begins at the
/// next.
#[test]
fn on_512_byte_pages_both_headers_are_programs_of_the_first_page() {
    let (mut fs, now) = fresh(&support::small_pages()).expect("large enough");
    let (ino, now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("room");
    let (log, _) = seen(&mut fs, now, |fs, now| write_pages(fs, now, ino, &[0]));
    let header = log.iter().position(|op| op.1 % 32 == 0).expect("a LEB is mapped");
    assert_eq!((log[header].0, log[header].2, log[header].3), ('P', 0, 512));
    let data = log.iter().filter(|op| op.1 / 32 == log[header].1 / 32).count();
    assert_eq!(data, 1 + 4144 / 512, "whole pages; the rest waits in the write-buffer");
}

#[test]
fn an_index_in_memory_costs_no_flash_read() {
    let (mut fs, ino, now) = prepared("emulated", 200);
    let now = read_pages(&mut fs, now, ino, 0..200);
    let (log, _) = seen(&mut fs, now, |fs, now| read_pages(fs, now, ino, [7, 7]));
    assert_eq!(log.len(), 6, "the node twice, three flash pages each, and nothing else");
}

#[test]
fn whole_page_ecc_moves_the_data_to_the_third_page() {
    let (mut fs, ino, now) = prepared("omap3evm", 1);
    let now = fs.drop_caches(now, &[]).expect("drop");
    let now = fs.lookup(now, Name { directory: ROOT, name: "file.bin" }, Some(ino)).expect("open");
    let (log, _) = seen(&mut fs, now, |fs, now| {
        fs.read_page(now, ino, 0, &mut support::NoPages).expect("read")
    });
    let pages: Vec<u32> = log.iter().map(|read| read.1 % 64).collect();
    assert_eq!(pages, [2, 3, 4]);
}

/// The program sleeps when the timers expire, and the threads that they wake run.
fn run_idle(fs: &mut impl FlashFs, now: Ns) -> Ns {
    let mut now = fs.begin_sleep(now).expect("asleep");
    now = fs.run_due(now, &mut support::NoPages).expect("timer");
    while fs.sched().current().is_some() {
        now = fs.run_thread(now, &mut support::NoPages).expect("thread");
    }
    now
}

#[test]
fn a_write_buffer_goes_out_five_seconds_after_the_last_node() {
    let (mut fs, now) = fresh(&support::board("emulated")).expect("large enough");
    let (_, now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("room");
    let due = fs.next_due().expect("a timer");
    let earliest = fs.next_due_earliest().expect("the same timer");
    assert!(earliest > now && earliest.0 <= now.0 + 5 * SECOND);
    assert_eq!(due.0, earliest.0 + SECOND / 2, "what the kernel allows itself");
    let (log, _) = seen(&mut fs, due, run_idle);
    assert_eq!(log.len(), 1, "one page, padded: {log:?}");
    assert_eq!(log[0].0, 'P');
    assert_eq!(fs.next_due(), None);
}

/// The kernel lets a timer expire half a second late, together with those that are due by then.
#[test]
fn write_buffers_filled_within_half_a_second_go_out_together() {
    let programs = |apart_ns: u64| {
        let (mut fs, ino, now) = prepared("emulated", 2);
        let now =
            fs.write_page(now, page_write(ino, 0, 8192), &mut support::NoPages).expect("room");
        fs.create(
            now + Ns(apart_ns),
            Name { directory: ROOT, name: "other.bin" },
            &mut support::NoPages,
        )
        .expect("room");
        let due = fs.next_due().expect("a timer");
        let (log, _) = seen(&mut fs, due, run_idle);
        (log.len(), fs.next_due().is_some())
    };
    assert_eq!(programs(SECOND / 10), (2, false));
    assert_eq!(programs(SECOND), (1, true));
}

#[test]
fn nothing_to_commit_touches_no_flash() {
    let (mut fs, _, now) = prepared("emulated", 100);
    // The LEBs that the first commit freed changed the LEB properties once more.
    let now = fs.sync(now, &mut support::NoPages).expect("sync");
    let now = settle(&mut fs, now);
    let (log, _) = seen(&mut fs, now, |fs, now| fs.sync(now, &mut support::NoPages).expect("sync"));
    assert_eq!(log, []);
}

#[test]
fn pages_written_in_any_order_are_all_found() {
    let (mut fs, now) = fresh(&support::board("emulated")).expect("large enough");
    let (one, now) =
        fs.create(now, Name { directory: ROOT, name: "one" }, &mut support::NoPages).expect("room");
    let (two, now) =
        fs.create(now, Name { directory: ROOT, name: "two" }, &mut support::NoPages).expect("room");
    let mut now = now;
    let scattered: Vec<u32> = (0..500).map(|n| n * 173 % 500).collect();
    for chunk in scattered.chunks(50) {
        now = write_pages(&mut fs, now, one, chunk);
        now = write_pages(&mut fs, now, two, chunk);
        now = fs.sync(now, &mut support::NoPages).expect("sync");
    }
    now = settle(&mut fs, now);
    now = read_pages(&mut fs, now, one, 0..500);
    now = read_pages(&mut fs, now, two, 0..500);
    let mut nodes = Vec::new();
    for ino in [one, two] {
        for page in 0..500 {
            let (log, _) = seen(&mut fs, now, |fs, now| read_pages(fs, now, ino, [page]));
            let bytes: u32 = log.iter().map(|read| read.3).sum();
            assert!((4144..=4144 + 512).contains(&bytes), "one node, page {page}: {log:?}");
            nodes.push((log[0].1, log[0].2));
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes.len(), 1000, "every page has a node of its own");
}

#[test]
fn a_full_volume_says_so_before_anything_is_lost() {
    let (mut fs, now) = fresh(&support::board("emulated")).expect("large enough");
    let (ino, mut now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("room");
    let mut written = 0;
    let mut page = 0;
    let error = loop {
        let size = u64::from(page) * u64::from(PAGE_BYTES);
        match fs.write_begin(now, page_write(ino, page, size), &mut support::NoPages) {
            Ok(later) => now = later,
            Err(error) => break error,
        }
        page += 1;
        if page % 100 == 0 {
            let size = size + u64::from(PAGE_BYTES);
            for page in written..page {
                now = fs
                    .write_page(now, page_write(ino, page, size), &mut support::NoPages)
                    .expect("it was budgeted");
            }
            written = page;
            now = settle(&mut fs, now);
        }
    };
    let size = u64::from(page) * u64::from(PAGE_BYTES);
    for page in written..page {
        now = fs
            .write_page(now, page_write(ino, page, size), &mut support::NoPages)
            .expect("it was budgeted");
    }
    assert!(matches!(error, FsError::NoSpace(_)));
    assert!(page > 8000, "of some 44 MiB only {page} pages could be used");
    let now = fs.sync(now, &mut support::NoPages).expect("sync");
    read_pages(&mut fs, now, ino, 0..page);
}

#[test]
fn a_clone_goes_on_as_the_original_does() {
    let (mut fs, ino, now) = prepared("emulated", 300);
    let mut copy = fs.clone();
    let run = |fs: &mut Fs| {
        let now = fs.drop_caches(now, &[]).expect("drop");
        let now =
            fs.lookup(now, Name { directory: ROOT, name: "file.bin" }, Some(ino)).expect("open");
        let now = read_pages(fs, now, ino, [250, 3, 77]);
        write_pages(fs, now, ino, &[300, 301])
    };
    let (first, first_end) = seen(&mut fs, now, |fs, _| run(fs));
    let (second, second_end) = seen(&mut copy, now, |fs, _| run(fs));
    assert_eq!((first, first_end), (second, second_end));
}

#[test]
fn a_partition_too_small_says_how_many_blocks_are_needed() {
    let mut board = support::board("emulated");
    board.partition.blocks = 30;
    match fresh(&board) {
        Err(FsError::TooSmall(text)) => assert!(text.contains("at least 61 blocks"), "{text}"),
        other => panic!("{:?}", other.map(|(_, now)| now)),
    }
    board.partition.blocks = 61;
    let (mut fs, now) = fresh(&board).expect("the least");
    let (_, now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("room");
    fs.sync(now, &mut support::NoPages).expect("sync");
}

/// An unmount commits and writes both master nodes. The mount reads both headers of every block,
/// and finds all that was written without a further write.
#[test]
fn what_was_written_is_there_after_a_remount() {
    let (mut fs, ino, now) = prepared("emulated", 100);
    let now = fs.sync(now, &mut support::NoPages).expect("sync");
    let (log, now) = seen(&mut fs, now, |fs, now| fs.remount(now).expect("remount"));
    let headers = log.iter().filter(|op| op.0 == 'R' && op.1 % 64 == 0).count();
    assert_eq!(headers, 2 * 400, "both headers of each block are in its first page");
    let (log, _) = seen(&mut fs, now, |fs, now| {
        let at = Name { directory: ROOT, name: "file.bin" };
        let now = fs.lookup(now, at, Some(ino)).expect("open");
        read_pages(fs, now, ino, 0..100)
    });
    let programs = log.iter().filter(|op| op.0 == 'P').count();
    assert!(log.len() > 3 * 100 && programs <= 2, "nothing is written but headers: {programs}");
}
