//! JFFS2's layout on flash is the kernel's, and so are its read operations.

use crate::support;
use sim::content::Contents;
use sim::flash::{Chip, Flash, FlashOp, Kind, Traced};
use sim::fs::jffs2::{Jffs2, Options};
use sim::fs::{FlashFs, FsError, Grabbed, Ino, Name, PageCache, PageWrite, ROOT};
use sim::mtd::{Mtd, RawNand};
use sim::run::FsKind;
use sim::units::Ns;
use std::ops::Range;

type Fs = Jffs2<RawNand<Traced<Chip>>>;

fn options(summary: bool) -> Options {
    Options { summary, ..support::kernel("6.1").jffs2 }
}

fn fresh(board: &str, summary: bool) -> (Fs, Ns) {
    let board = support::board(board);
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    Jffs2::format(mtd, Ns::ZERO, options(summary), support::facts()).expect("it fits")
}

/// Creates an empty file of that name.
fn created<F: FlashFs>(fs: &mut F, now: Ns, name: &str) -> (Ino, Ns) {
    fs.create(now, Name { directory: ROOT, name }, &mut support::NoPages).expect("space")
}

/// Writes these bytes, which lie in one page, at the end of a file.
fn append<F: FlashFs>(fs: &mut F, now: Ns, ino: Ino, bytes: Range<u32>) -> Result<Ns, FsError> {
    let (page, from, file_bytes) = (bytes.start / 4096, bytes.start % 4096, u64::from(bytes.end));
    let to = from + bytes.len() as u32;
    let write = PageWrite { ino, page, from, to, file_bytes, cached: true };
    fs.write_page(now, write, &mut support::NoPages)
}

/// Appends all of these bytes of a file, so many at a time.
fn append_all(fs: &mut Fs, now: Ns, ino: Ino, bytes: Range<u32>, at_a_time: u32) -> Ns {
    bytes
        .step_by(at_a_time as usize)
        .fold(now, |now, at| append(fs, now, ino, at..at + at_a_time).expect("space"))
}

/// The flash operations of reading one page.
fn read_ops(fs: &mut Fs, ino: Ino, page: u32) -> Vec<FlashOp> {
    fs.mtd_mut().flash_mut().start_recording();
    fs.read_page(Ns::ZERO, ino, page, &mut support::NoPages).expect("readable");
    fs.mtd_mut().flash_mut().take_record()
}

/// A node of a whole page takes 68 + 4096 bytes. Inode (68) and dirent (40 + 8) come first, so the
/// first data node starts at 116: header and data share its first flash page, and the node ends in
/// the third.
#[test]
fn the_first_page_is_header_then_data_over_three_flash_pages() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, now) = created(&mut fs, now, "file.bin");
    append_all(&mut fs, now, ino, 0..4096, 4096);
    let ops = read_ops(&mut fs, ino, 0);
    let first = 398 * 64; // a new mount begins with the last block but one
    let places: Vec<_> = ops.iter().map(|op| (op.page.0 - first, op.column, op.length)).collect();
    assert_eq!(places, [(0, 0, 256), (0, 0, 2048), (1, 0, 2048), (2, 0, 256)]);
}

/// Thirty-one nodes of 4,164 bytes fill 129,084 bytes of a block after the 116 of inode and dirent.
/// The next write is split, with the summary's 18 bytes a node kept free.
#[test]
fn a_page_is_split_where_its_block_ends() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, now) = created(&mut fs, now, "file.bin");
    append_all(&mut fs, now, ino, 0..33 * 4096, 4096);
    let whole = |page| read_ops(&mut fs.clone(), ino, page).len();
    assert_eq!(whole(30), 4);
    assert_eq!(whole(31), 5, "two headers and two pieces, one of them over two pages");
    let ops = read_ops(&mut fs, ino, 31);
    assert!(ops.iter().any(|op| op.page.0 / 64 == 397), "the second piece is in the next block");
}

/// Pages and page buffer of 4 KiB: a node of 4,164 bytes ends in its second page, in which the next
/// node begins. 62 nodes end at 116 + 62 * 4164 = 258,284; 3,860 bytes are left, less the summary
/// of inode, dirent, 63 nodes and its frame (18 + 24 + 8 + 63 * 18 + 40 = 1,224): 2,636 for a
/// header and 2,568 bytes of page 62.
#[test]
fn on_4_kib_pages_a_block_takes_62_pages_and_part_of_the_next() {
    let (mut fs, now) = fresh("emulated-4k", true);
    let (ino, now) = created(&mut fs, now, "file.bin");
    append_all(&mut fs, now, ino, 0..65 * 4096, 4096);
    let mut reads = |page| -> Vec<(u32, u32, u32, u32)> {
        let ops = read_ops(&mut fs, ino, page);
        ops.iter().map(|op| (op.page.0 / 64, op.page.0 % 64, op.column, op.length)).collect()
    };
    assert_eq!(reads(0), [(198, 0, 0, 4096), (198, 1, 0, 4096)]);
    assert_eq!(reads(1), [(198, 2, 0, 4096)], "it begins where the buffer stands");
    assert_eq!(reads(61), [(198, 62, 0, 4096), (198, 63, 0, 4096)]);
    assert_eq!(reads(62), [(197, 0, 0, 4096)], "its first piece is on the page in the buffer");
    assert_eq!(reads(60), [(198, 61, 0, 4096), (198, 62, 0, 4096)]);
    assert_eq!(reads(62), [(198, 63, 0, 4096), (197, 0, 0, 4096)]);
}

/// 512-byte pages, blocks of 16 KiB: three nodes end at 116 + 3 * 4164 = 12,608. Of the remaining
/// 3,776 bytes the summary reserves 18 + 32 + 4 * 18 + 40 = 162, padded to 164, so 3,612 hold 3,544
/// bytes of page 3.
#[test]
fn on_512_byte_pages_a_block_takes_three_pages_and_part_of_the_next() {
    let board = support::small_pages();
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    let (mut fs, now) =
        Jffs2::format(mtd, Ns::ZERO, options(true), support::facts()).expect("it fits");
    let (ino, now) = created(&mut fs, now, "file.bin");
    append_all(&mut fs, now, ino, 0..5 * 4096, 4096);
    let ops = read_ops(&mut fs, ino, 3);
    let pages: Vec<_> = ops.iter().map(|op| (op.page.0 / 32, op.page.0 % 32)).collect();
    let first = (24..=31).map(|page| (398, page)); // 12,608 to 16,220 in pages of 512
    let second = (0..=1).map(|page| (397, page)); // a header and 552 bytes
    assert_eq!(pages, first.chain(second).collect::<Vec<_>>());
}

/// The blocks that reading a page touches.
fn blocks_of(fs: &mut Fs, ino: Ino, page: u32) -> Vec<u32> {
    let block_pages = fs.mtd().flash().profile().pages_per_block;
    let ops = read_ops(fs, ino, page);
    let mut blocks: Vec<u32> = ops.iter().map(|op| op.page.0 / block_pages).collect();
    blocks.dedup();
    blocks
}

/// A block of 512 KiB, written a byte at a time: when nodes of 72 bytes and 18 bytes of summary
/// each would meet, the summary is over 64 KiB, and jffs2_sum_write_data gives it up. Nodes then
/// continue until 196 bytes do not fit. Byte 4,095 writes its whole page again: 116 + 4,164 + 7,220
/// * 72 is 168 short of the block.
#[test]
fn a_summary_of_more_than_64_kib_is_not_written() {
    let mut board = support::board("emulated-4k");
    board.chip.pages_per_block = 128;
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    let (mut fs, now) =
        Jffs2::format(mtd, Ns::ZERO, options(true), support::facts()).expect("it fits");
    let (ino, now) = created(&mut fs, now, "file.bin");
    let now = append_all(&mut fs, now, ino, 0..7221, 1);
    assert_eq!(blocks_of(&mut fs, ino, 1), [198]);
    append_all(&mut fs, now, ino, 7221..7222, 1);
    assert_eq!(blocks_of(&mut fs, ino, 1), [198, 197]);
}

/// 512-byte pages, 178 nodes of 72 bytes: they end at 12,932 and need 18 + 32 + 178 * 18 + 40 =
/// 3,294 bytes of summary. A sync pads them to 13,312, and the remaining 3,072 hold 40 nodes
/// without a summary.
#[test]
fn a_sync_that_leaves_no_room_for_the_summary_leaves_it_to_the_nodes() {
    let board = support::small_pages();
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    let (mut fs, now) =
        Jffs2::format(mtd, Ns::ZERO, options(true), support::facts()).expect("it fits");
    let (ino, now) = created(&mut fs, now, "file.bin");
    let now = append_all(&mut fs, now, ino, 0..178 * 4, 4);
    let now = fs.sync(now, &mut support::NoPages).expect("sync");
    let now = append_all(&mut fs, now, ino, 178 * 4..218 * 4, 4);
    assert_eq!(blocks_of(&mut fs, ino, 0), [398]);
    append_all(&mut fs, now, ino, 218 * 4..219 * 4, 4);
    assert_eq!(blocks_of(&mut fs, ino, 0), [398, 397]);
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
    let (ino, now) = created(&mut fs, now, "file.bin");
    let now = append_all(&mut fs, now, ino, 0..40 * 4096, 4096);
    let before = read_ops(&mut fs, ino, 0)[0].page;
    fs.mtd_mut().flash_mut().start_recording();
    fs.fsync(now, ino, true, &mut support::NoPages).expect("space");
    let kinds: Vec<_> = fs.mtd_mut().flash_mut().take_record().iter().map(|op| op.kind).collect();
    assert!(kinds.contains(&Kind::Read) && kinds.contains(&Kind::Program));
    let after = read_ops(&mut fs, ino, 0)[0].page;
    assert!(after != before, "the first page's node moved from {before:?}");
}

/// Pages that the buffer filled are read back as they are programmed; a vector's whole pages, which
/// bypass it, are not.
#[test]
fn a_kernel_that_verifies_reads_back_what_the_write_buffer_wrote() {
    let board = support::board("emulated");
    let operations = |wbuf_verify: bool| {
        let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
        let options = Options { wbuf_verify, ..options(true) };
        let (mut fs, now) =
            Jffs2::format(mtd, Ns::ZERO, options, support::facts()).expect("it fits");
        let (ino, now) = created(&mut fs, now, "file.bin");
        fs.mtd_mut().flash_mut().start_recording();
        append_all(&mut fs, now, ino, 0..16 * 1024, 1024);
        fs.mtd_mut().flash_mut().take_record()
    };
    let of = |kind: Kind, operations: &[FlashOp]| -> Vec<u32> {
        operations.iter().filter(|op| op.kind == kind).map(|op| op.page.0).collect()
    };
    let (plain, verified) = (operations(false), operations(true));
    assert!(of(Kind::Read, &plain).is_empty());
    let programmed = of(Kind::Program, &verified);
    assert_eq!(programmed, of(Kind::Program, &plain));
    let read = of(Kind::Read, &verified);
    assert!(read.len() * 2 > programmed.len() && read.iter().all(|page| programmed.contains(page)));
    for pair in verified.windows(2).filter(|pair| pair[1].kind == Kind::Read) {
        assert_eq!((pair[0].kind, pair[0].page), (Kind::Program, pair[1].page));
    }
}

/// A page cache that has every page.
struct AllPages;

impl PageCache for AllPages {
    fn read_cache_page(&mut self, _ino: Ino, _page: u32) -> bool {
        false
    }

    fn grab_page(&mut self, _ino: Ino, _page: u32) -> Grabbed {
        Grabbed::Uptodate
    }

    fn clear_uptodate(&mut self, _ino: Ino, _page: u32) {}

    fn find_page(&self, _ino: Ino, _page: u32) -> Option<bool> {
        Some(false)
    }

    fn clear_dirty(&mut self, _ino: Ino, _page: u32) {}

    fn truncate_setsize(&mut self, _ino: Ino, _size_bytes: u64) {}

    fn mark_inode_dirty(&mut self, _now: Ns, _ino: Ino, _size: bool) {}

    fn contents(&self, _ino: Ino) -> &Contents {
        support::random()
    }
}

/// The flash operations of an fsync after a file was created.
fn fsync_ops(fs: &mut Fs, now: Ns, pages: &mut dyn PageCache) -> Vec<FlashOp> {
    let (new, now) = created(fs, now, "new");
    fs.mtd_mut().flash_mut().start_recording();
    fs.fsync(now, new, true, pages).expect("space");
    fs.mtd_mut().flash_mut().take_record()
}

/// jffs2_build_inode_fragtree inserts the nodes from the end down, after which only the first and
/// the last are pristine. The others are no longer copied, but written again from their page.
#[test]
fn after_a_file_was_read_in_its_nodes_are_collected_by_way_of_the_page_cache() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, now) = created(&mut fs, now, "file.bin");
    let now = append_all(&mut fs, now, ino, 0..40 * 4096, 4096);
    fsync_ops(&mut fs, now, &mut support::NoPages); // moves the name and page 0
    let reads = |mut fs: Fs, pages: &mut dyn PageCache| -> Vec<(u32, u32)> {
        let ops = fsync_ops(&mut fs, now, pages);
        let reads = ops.iter().filter(|op| op.kind == Kind::Read);
        reads.map(|op| (op.page.0 % 64, op.length)).collect()
    };
    // Page 1's node: 4,164 bytes from byte 116 + 4,164 of the block, which is byte 184 of flash
    // page 2.
    assert_eq!(reads(fs.clone(), &mut support::NoPages), [(2, 2048), (3, 2048), (4, 256)]);
    let now = fs.drop_caches(now, &[]).expect("clean");
    fs.lookup(now, Name { directory: ROOT, name: "file.bin" }, Some(ino)).expect("readable");
    let again = [(2, 256), (2, 2048), (3, 2048), (4, 256)];
    assert_eq!(reads(fs.clone(), &mut support::NoPages), again, "its head, and then its data");
    assert_eq!(reads(fs, &mut AllPages), [], "the page cache has it");
}

/// Two pieces of a page are two adjacent nodes of 68 + 1,000 bytes each in the block being
/// collected; they are merged.
#[test]
fn collecting_a_piece_of_a_page_takes_its_neighbours_along() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, mut now) = created(&mut fs, now, "file.bin");
    for (from, to) in [(0, 1000), (1000, 2000)] {
        now = append(&mut fs, now, ino, from..to).expect("space");
    }
    let (other, now) = created(&mut fs, now, "other.bin");
    let now = append_all(&mut fs, now, other, 0..40 * 4096, 4096);
    let before = read_ops(&mut fs, ino, 0);
    fsync_ops(&mut fs, now, &mut AllPages);
    let after = read_ops(&mut fs, ino, 0);
    assert_ne!(after[0].page.0 / 64, before[0].page.0 / 64, "it was moved");
    let bytes = |ops: &[FlashOp]| ops.iter().map(|op| op.length).sum::<u32>();
    assert!(after.len() < before.len(), "a head less to read");
    assert!((2068..2068 + 4 * 256).contains(&bytes(&after)), "one node: {after:?}");
}

#[test]
fn opening_an_evicted_file_reads_every_node_of_it() {
    let (mut fs, now) = fresh("emulated", true);
    let (ino, now) = created(&mut fs, now, "file.bin");
    let now = append_all(&mut fs, now, ino, 0..40 * 4096, 4096);
    let before = fs.mtd().flash().counts().reads;
    fs.lookup(now, Name { directory: ROOT, name: "file.bin" }, Some(ino)).expect("readable");
    assert_eq!(fs.mtd().flash().counts().reads, before, "it is in memory");
    fs.drop_caches(now, &[]).expect("clean");
    fs.lookup(now, Name { directory: ROOT, name: "file.bin" }, Some(ino)).expect("readable");
    let reads = fs.mtd().flash().counts().reads - before;
    assert!((42..=45).contains(&reads), "{reads} reads for 40 pages in 41 nodes");
}

#[test]
fn a_full_partition_says_so_and_a_small_one_is_refused() {
    let mut board = support::board("emulated");
    board.partition.blocks = 16;
    let mtd = Mtd::new(Chip::new(board.chip), &board);
    let (mut fs, now) =
        Jffs2::format(mtd, Ns::ZERO, options(true), support::facts()).expect("it fits");
    let (ino, mut now) = created(&mut fs, now, "file.bin");
    let full =
        (0..).find_map(|page| match append(&mut fs, now, ino, page * 4096..page * 4096 + 4096) {
            Ok(later) => {
                now = later;
                None
            }
            Err(error) => Some((page, error)),
        });
    let (pages, error) = full.expect("the partition ends");
    assert!(matches!(error, FsError::NoSpace(_)));
    assert!((12 * 31..13 * 32).contains(&pages), "{pages} pages in 16 blocks less three");
    board.partition.blocks = 3;
    let mtd = Mtd::new(Chip::new(board.chip), &board);
    let refused = Jffs2::format(mtd, Ns::ZERO, options(true), support::facts());
    assert!(matches!(refused, Err(FsError::TooSmall(_))));
}
