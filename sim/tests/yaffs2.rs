//! YAFFS2 writes and reads chunks as its Linux port does.

mod support;

use sim::chip::{Chip, Flash, Kind};
use sim::fs::yaffs2::Yaffs2;
use sim::fs::{FlashFs, FsError, Ino, Name, PageWrite, ROOT};
use sim::mtd::Mtd;
use sim::trace::Traced;
use sim::units::Ns;

fn fresh() -> (Yaffs2<Traced<Chip>>, Ns) {
    let board = support::board("omap3evm");
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    Yaffs2::format(mtd, Ns::ZERO, 128).expect("it fits")
}

fn write_page(fs: &mut Yaffs2<Traced<Chip>>, now: Ns, ino: Ino, page: u32) -> Ns {
    let file_bytes = u64::from(page + 1) * 4096;
    let write = PageWrite { ino, page, from: 0, to: 4096, file_bytes, cached: true };
    fs.write_page(now, write, &mut support::NoPages).expect("space")
}

#[test]
fn a_page_is_two_chunks_each_read_whole_with_its_tags() {
    let (mut fs, now) = fresh();
    let (ino, mut now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    for page in 0..4 {
        now = write_page(&mut fs, now, ino, page);
    }
    fs.fsync(now, ino, true, &mut support::NoPages).expect("space");
    fs.flash_mut().start_recording();
    fs.read_page(now, ino, 1, &mut support::NoPages).expect("readable");
    let record = fs.flash_mut().take_record();
    let places: Vec<_> = record.iter().map(|op| (op.page.0, op.column, op.length)).collect();
    assert_eq!(places, [(3, 0, 2048), (4, 0, 2048)], "the object header is page 0");
}

/// Ten chunks are five pages: the sixth page finds the cache full of dirty chunks.
#[test]
fn the_short_op_cache_holds_ten_chunks_and_goes_out_whole() {
    let (mut fs, now) = fresh();
    let (ino, mut now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    let programs = |fs: &Yaffs2<Traced<Chip>>| fs.flash().counts().programs;
    let created = programs(&fs);
    for page in 0..5 {
        now = write_page(&mut fs, now, ino, page);
    }
    assert_eq!(programs(&fs), created, "all in the cache");
    write_page(&mut fs, now, ino, 5);
    assert_eq!(programs(&fs), created + 10);
}

#[test]
fn a_page_in_the_short_op_cache_is_read_without_the_flash() {
    let (mut fs, now) = fresh();
    let (ino, now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    let now = write_page(&mut fs, now, ino, 0);
    let before = fs.flash().counts();
    fs.read_page(now, ino, 0, &mut support::NoPages).expect("readable");
    assert_eq!(fs.flash().counts(), before);
}

#[test]
fn the_last_chunk_of_a_block_is_its_summary_and_the_first_is_checked_to_be_erased() {
    let (mut fs, now) = fresh();
    let (ino, mut now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    fs.flash_mut().start_recording();
    for page in 0..64 {
        now = write_page(&mut fs, now, ino, page);
    }
    fs.fsync(now, ino, true, &mut support::NoPages).expect("space");
    let record = fs.flash_mut().take_record();
    let programs: Vec<u32> =
        record.iter().filter(|op| op.kind == Kind::Program).map(|op| op.page.0).collect();
    assert_eq!(
        programs,
        (1..=132).collect::<Vec<u32>>(),
        "128 chunks with two summaries between them, the header at the end, and the root's by the thread"
    );
    let checked: Vec<u32> =
        record.iter().filter(|op| op.kind == Kind::Read).map(|op| op.page.0).collect();
    assert_eq!(
        checked,
        [64, 64, 128, 128, 0],
        "before and after, then the header that was replaced"
    );
}

#[test]
fn a_partition_without_room_for_the_reserve_is_refused() {
    let mut board = support::board("omap3evm");
    board.partition.blocks = 6;
    let mtd = Mtd::new(Chip::new(board.chip), &board);
    assert!(matches!(Yaffs2::format(mtd, Ns::ZERO, 128), Err(FsError::TooSmall(_))));
}
