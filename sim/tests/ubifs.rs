//! UBIFS on the emulated board, seen from the flash: what the kernel's code says it must do.

mod support;

use sim::chip::{Chip, Counts, Flash, Moves, Span};
use sim::fs::ubifs::Ubifs;
use sim::fs::{FlashFs, FsError, Ino, PageWrite, PAGE_BYTES, ROOT};
use sim::mtd::Mtd;
use sim::profile::{BoardProfile, ChipProfile};
use sim::units::{BlockNo, Ns, PageNo};

const SECOND: u64 = 1_000_000_000;

/// An operation of the chip: kind, page, column, bytes.
type Seen = (char, u32, u32, u32);

/// A chip that remembers its operations.
#[derive(Clone, Debug)]
struct Recorder {
    chip: Chip,
    log: Vec<Seen>,
}

impl Flash for Recorder {
    fn profile(&self) -> &ChipProfile {
        self.chip.profile()
    }
    fn read(&mut self, now: Ns, page: PageNo, moves: Moves) -> Ns {
        self.log.push(('R', page.0, moves.first.column, moves.first.length));
        self.chip.read(now, page, moves)
    }
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        self.chip.change_column(now, length)
    }
    fn program(&mut self, now: Ns, page: PageNo, moves: Moves, cells: Span) -> Ns {
        self.log.push(('P', page.0, moves.first.column, moves.first.length));
        self.chip.program(now, page, moves, cells)
    }
    fn erase(&mut self, now: Ns, block: BlockNo) -> Ns {
        self.log.push(('E', block.0 * 64, 0, 0));
        self.chip.erase(now, block)
    }
    fn counts(&self) -> Counts {
        self.chip.counts()
    }
    fn block_erases(&self, block: BlockNo) -> u32 {
        self.chip.block_erases(block)
    }
}

type Fs = Ubifs<Recorder>;

fn fresh(board: &BoardProfile) -> Result<(Fs, Ns), FsError> {
    let flash = Recorder { chip: Chip::new(board.chip), log: Vec::new() };
    Ubifs::format(Mtd::new(flash, board), Ns::ZERO)
}

fn page_write(ino: Ino, page: u32, file_bytes: u64) -> PageWrite {
    PageWrite { ino, page, from: 0, to: PAGE_BYTES, file_bytes, cached: false }
}

/// Writes whole pages into the page cache and back, in the order given.
fn write_pages(fs: &mut Fs, now: Ns, ino: Ino, pages: &[u32]) -> Ns {
    let bytes = |page: u32| u64::from(page) * u64::from(PAGE_BYTES);
    let mut now = now;
    let mut size = 0;
    for &page in pages {
        now = fs.write_begin(now, page_write(ino, page, size)).expect("room for a page");
        size = size.max(bytes(page + 1));
    }
    for &page in pages {
        now = fs.write_page(now, page_write(ino, page, size)).expect("it was budgeted");
    }
    now
}

fn settle(fs: &mut Fs, now: Ns) -> Ns {
    let mut now = now;
    while let Some(due) = fs.next_due() {
        now = fs.run_due(now.max(due)).expect("background work");
    }
    now
}

/// A file of `pages` pages, fsync, sync, and all that follows in the background.
fn prepared(board: &str, pages: u32) -> (Fs, Ino, Ns) {
    let (mut fs, now) = fresh(&support::board(board)).expect("it is large enough");
    let (ino, now) = fs.create(now, ROOT, "file.bin").expect("room for a name");
    let pages: Vec<u32> = (0..pages).collect();
    let now = write_pages(&mut fs, now, ino, &pages);
    let now = fs.fsync(now, ino).expect("fsync");
    let now = fs.sync(now).expect("sync");
    let now = settle(&mut fs, now);
    (fs, ino, now)
}

/// What the chip sees while `work` runs.
fn seen(fs: &mut Fs, now: Ns, work: impl FnOnce(&mut Fs, Ns) -> Ns) -> (Vec<Seen>, Ns) {
    fs.flash_mut().log.clear();
    let now = work(fs, now);
    (std::mem::take(&mut fs.flash_mut().log), now)
}

fn read_pages(fs: &mut Fs, now: Ns, ino: Ino, pages: impl IntoIterator<Item = u32>) -> Ns {
    pages.into_iter().fold(now, |now, page| fs.read_page(now, ino, page).expect("read"))
}

/// The real kernel, open included: 31 flash reads for 8 requests in order, 3,233 for 1,024.
#[test]
fn reading_in_order_costs_the_flash_reads_the_kernel_showed() {
    let (mut fs, ino, now) = prepared("emulated", 1280);
    let now = fs.drop_caches(now).expect("drop");
    let before = fs.flash().counts().reads;
    let now = fs.open(now, ROOT, "file.bin", ino).expect("open");
    let now = read_pages(&mut fs, now, ino, 0..8);
    assert_eq!(fs.flash().counts().reads - before, 31);
    read_pages(&mut fs, now, ino, 8..1024);
    assert_eq!(fs.flash().counts().reads - before, 3233);
}

#[test]
fn opening_reads_the_index_path_the_name_and_the_inode() {
    let (mut fs, ino, now) = prepared("emulated", 1280);
    let (none, now) = seen(&mut fs, now, |fs, now| {
        let now = fs.open(now, ROOT, "file.bin", ino).expect("open");
        read_pages(fs, now, ino, 0..0)
    });
    assert_eq!(none, [], "the inode is still in memory");
    let now = fs.drop_caches(now).expect("drop");
    let (log, _) = seen(&mut fs, now, |fs, now| fs.open(now, ROOT, "file.bin", ino).expect("open"));
    assert_eq!(log.len(), 6, "four index nodes, the name and the inode: {log:?}");
}

#[test]
fn a_data_node_is_read_where_the_journal_put_it() {
    let (mut fs, ino, now) = prepared("emulated", 31);
    let mut start = None;
    let mut now = now;
    for page in 0..31 {
        let (log, later) = seen(&mut fs, now, |fs, now| fs.read_page(now, ino, page).expect("."));
        now = later;
        let first = *start.get_or_insert(log[0].1);
        let (node, end) = (2048 + page * 4144, 2048 + (page + 1) * 4144);
        assert_eq!(log[0].1 - first, node / 2048 - 1, "page {page} begins there");
        assert_eq!(log[0].2, node % 2048 / 256 * 256, "at its ECC step");
        let last = log[log.len() - 1];
        assert_eq!((last.1 - first + 1) * 2048 + last.2 + last.3, end.div_ceil(256) * 256);
    }
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
    let now = fs.drop_caches(now).expect("drop");
    let now = fs.open(now, ROOT, "file.bin", ino).expect("open");
    let (log, _) = seen(&mut fs, now, |fs, now| fs.read_page(now, ino, 0).expect("read"));
    let pages: Vec<u32> = log.iter().map(|read| read.1 % 64).collect();
    assert_eq!(pages, [2, 3, 4]);
}

#[test]
fn a_write_buffer_goes_out_five_seconds_after_the_last_node() {
    let (mut fs, now) = fresh(&support::board("emulated")).expect("large enough");
    let (_, now) = fs.create(now, ROOT, "file.bin").expect("room");
    let due = fs.next_due().expect("a timer");
    assert!(due > now && due.0 <= now.0 + 5 * SECOND);
    let (log, _) = seen(&mut fs, due, |fs, now| fs.run_due(now).expect("timer"));
    assert_eq!(log.len(), 1, "one page, padded: {log:?}");
    assert_eq!(log[0].0, 'P');
    assert_eq!(fs.next_due(), None);
}

#[test]
fn nothing_to_commit_touches_no_flash() {
    let (mut fs, _, now) = prepared("emulated", 100);
    // The LEBs the first commit gave back changed the LEB properties once more.
    let now = fs.sync(now).expect("sync");
    let now = settle(&mut fs, now);
    let (log, _) = seen(&mut fs, now, |fs, now| fs.sync(now).expect("sync"));
    assert_eq!(log, []);
}

#[test]
fn pages_written_in_any_order_are_all_found() {
    let (mut fs, now) = fresh(&support::board("emulated")).expect("large enough");
    let (one, now) = fs.create(now, ROOT, "one").expect("room");
    let (two, now) = fs.create(now, ROOT, "two").expect("room");
    let mut now = now;
    let scattered: Vec<u32> = (0..500).map(|n| n * 173 % 500).collect();
    for chunk in scattered.chunks(50) {
        now = write_pages(&mut fs, now, one, chunk);
        now = write_pages(&mut fs, now, two, chunk);
        now = fs.sync(now).expect("sync");
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
    let (ino, mut now) = fs.create(now, ROOT, "file.bin").expect("room");
    let mut written = 0;
    let mut page = 0;
    let error = loop {
        let size = u64::from(page) * u64::from(PAGE_BYTES);
        match fs.write_begin(now, page_write(ino, page, size)) {
            Ok(later) => now = later,
            Err(error) => break error,
        }
        page += 1;
        if page % 100 == 0 {
            let size = size + u64::from(PAGE_BYTES);
            for page in written..page {
                now = fs.write_page(now, page_write(ino, page, size)).expect("it was budgeted");
            }
            written = page;
            now = settle(&mut fs, now);
        }
    };
    let size = u64::from(page) * u64::from(PAGE_BYTES);
    for page in written..page {
        now = fs.write_page(now, page_write(ino, page, size)).expect("it was budgeted");
    }
    assert_eq!(error, FsError::NoSpace);
    assert!(page > 8000, "of some 44 MiB only {page} pages could be used");
    let now = fs.sync(now).expect("sync");
    read_pages(&mut fs, now, ino, 0..page);
}

#[test]
fn a_clone_goes_on_as_the_original_does() {
    let (mut fs, ino, now) = prepared("emulated", 300);
    let mut copy = fs.clone();
    let run = |fs: &mut Fs| {
        let now = fs.drop_caches(now).expect("drop");
        let now = fs.open(now, ROOT, "file.bin", ino).expect("open");
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
    let (_, now) = fs.create(now, ROOT, "file.bin").expect("room");
    fs.sync(now).expect("sync");
}
