//! JFFS2 lies on flash where the kernel would put it, and is read with the kernel's operations.

mod support;

use sim::chip::{Chip, Flash, Kind};
use sim::fs::jffs2::{Jffs2, Options};
use sim::fs::{FlashFs, FsError, Ino, PageWrite, ROOT};
use sim::mtd::Mtd;
use sim::run::FsKind;
use sim::trace::{FlashOp, Traced};
use sim::units::Ns;

type Fs = Jffs2<Traced<Chip>>;

fn fresh(board: &str, summary: bool) -> (Fs, Ns) {
    let board = support::board(board);
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    Jffs2::format(mtd, Ns::ZERO, Options { summary }).expect("it fits")
}

fn append_pages(fs: &mut Fs, mut now: Ns, ino: Ino, pages: std::ops::Range<u32>) -> Ns {
    for page in pages {
        let (file_bytes, to) = (u64::from(page) * 4096, 4096);
        let write = PageWrite { ino, page, from: 0, to, file_bytes, cached: false };
        now = fs.write_begin(now, write).expect("space");
        let write = PageWrite { file_bytes: file_bytes + 4096, ..write };
        now = fs.write_page(now, write).expect("space");
    }
    now
}

/// Flash operations of reading one page.
fn read_ops(fs: &mut Fs, ino: Ino, page: u32) -> Vec<FlashOp> {
    fs.flash_mut().start_recording();
    fs.read_page(Ns::ZERO, ino, page).expect("readable");
    fs.flash_mut().take_record()
}

/// A node of a whole page takes 68 + 4096 bytes. Inode (68) and dirent (40 + 8) come first, so the
/// first data node starts at 116: header and data share its first flash page, and the node ends in
/// the third.
#[test]
fn the_first_page_is_header_then_data_over_three_flash_pages() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, now) = fs.create(now, ROOT, "file.bin").expect("space");
    append_pages(&mut fs, now, ino, 0..1);
    let ops = read_ops(&mut fs, ino, 0);
    let first = 398 * 64; // a fresh mount begins with the last block but one
    let places: Vec<_> = ops.iter().map(|op| (op.page.0 - first, op.column, op.length)).collect();
    assert_eq!(places, [(0, 0, 256), (0, 0, 2048), (1, 0, 2048), (2, 0, 256)]);
}

/// Thirty-one nodes of 4,164 bytes fill 129,084 bytes of a block after the 116 of inode and dirent; what is left
/// is split, with the summary's 18 bytes a node kept free.
#[test]
fn a_page_is_split_where_its_block_ends() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, now) = fs.create(now, ROOT, "file.bin").expect("space");
    append_pages(&mut fs, now, ino, 0..33);
    let whole = |page| read_ops(&mut fs.clone(), ino, page).len();
    assert_eq!(whole(30), 4);
    assert_eq!(whole(31), 5, "two headers and two pieces, one of them over two pages");
    let ops = read_ops(&mut fs, ino, 31);
    assert!(ops.iter().any(|op| op.page.0 / 64 == 397), "the second piece is in the next block");
}

#[test]
fn a_sequential_read_costs_2_03_flash_reads_a_page_with_a_page_buffer_and_4_07_without() {
    let prepare = support::written_file(5 << 20);
    let pages: Vec<u64> = (0..1280).collect();
    let body = support::page_reads(&pages);
    let reads = |board: &str, kernel: &str| {
        let (board, kernel) = (support::board(board), support::kernel(kernel));
        support::run(&board, &kernel, FsKind::Jffs2, &prepare, 0, &body).flash_reads
    };
    assert_eq!(reads("omap3evm", "2.6.37") * 100 / 1280, 203);
    assert_eq!(reads("emulated", "6.1") * 100 / 1280, 407);
}

#[test]
fn fsync_moves_nodes_rather_than_pad_the_write_buffer() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, now) = fs.create(now, ROOT, "file.bin").expect("space");
    let now = append_pages(&mut fs, now, ino, 0..40);
    let before = read_ops(&mut fs, ino, 0)[0].page;
    fs.flash_mut().start_recording();
    fs.fsync(now, ino).expect("space");
    let kinds: Vec<_> = fs.flash_mut().take_record().iter().map(|op| op.kind).collect();
    assert!(kinds.contains(&Kind::Read) && kinds.contains(&Kind::Program));
    let after = read_ops(&mut fs, ino, 0)[0].page;
    assert!(after != before, "the first page's node moved from {before:?}");
}

#[test]
fn opening_an_evicted_file_reads_every_node_of_it() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, now) = fs.create(now, ROOT, "file.bin").expect("space");
    let now = append_pages(&mut fs, now, ino, 0..40);
    let before = fs.flash().counts().reads;
    fs.open(now, ROOT, "file.bin", ino).expect("readable");
    assert_eq!(fs.flash().counts().reads, before, "it is in memory");
    fs.drop_caches(now).expect("clean");
    fs.open(now, ROOT, "file.bin", ino).expect("readable");
    let reads = fs.flash().counts().reads - before;
    assert!((42..=45).contains(&reads), "{reads} reads for 40 pages in 41 nodes");
}

#[test]
fn a_full_partition_says_so_and_a_small_one_is_refused() {
    let mut board = support::board("emulated");
    board.partition.blocks = 16;
    let mtd = Mtd::new(Chip::new(board.chip), &board);
    let (mut fs, now) = Jffs2::format(mtd, Ns::ZERO, Options { summary: true }).expect("it fits");
    let (ino, mut now) = fs.create(now, ROOT, "file.bin").expect("space");
    let full = (0..).find_map(|page| {
        let file_bytes = u64::from(page) * 4096 + 4096;
        let write = PageWrite { ino, page, from: 0, to: 4096, file_bytes, cached: true };
        match fs.write_page(now, write) {
            Ok(later) => {
                now = later;
                None
            }
            Err(error) => Some((page, error)),
        }
    });
    let (pages, error) = full.expect("the partition ends");
    assert_eq!(error, FsError::NoSpace);
    assert!((12 * 31..13 * 32).contains(&pages), "{pages} pages in 16 blocks less three");
    board.partition.blocks = 3;
    let mtd = Mtd::new(Chip::new(board.chip), &board);
    let refused = Jffs2::format(mtd, Ns::ZERO, Options { summary: true });
    assert!(matches!(refused, Err(FsError::TooSmall(_))));
}
