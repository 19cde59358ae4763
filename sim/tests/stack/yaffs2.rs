//! YAFFS2 writes and reads chunks as its Linux port does.

use crate::support;
use sim::flash::{Chip, Flash, Kind, Traced};
use sim::fs::yaffs2::Yaffs2;
use sim::fs::{FlashFs, FsError, Ino, Name, PageWrite, ROOT};
use sim::mtd::{Mtd, RawNand};
use sim::profile::{BoardProfile, SoftwareCosts};
use sim::units::Ns;

fn fresh() -> (Yaffs2<RawNand<Traced<Chip>>>, Ns) {
    fresh_on(&support::board("omap3evm"))
}

fn fresh_on(board: &BoardProfile) -> (Yaffs2<RawNand<Traced<Chip>>>, Ns) {
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), board);
    Yaffs2::format(mtd, Ns::ZERO, support::kernel("2.6.37").kernel, false).expect("it fits")
}

/// A new file system in which only this costs something.
fn fresh_with(price: impl Fn(&mut SoftwareCosts)) -> (Yaffs2<RawNand<Traced<Chip>>>, Ns) {
    let mut board = support::board("omap3evm");
    board.software = support::free_software();
    price(&mut board.software);
    fresh_on(&board)
}

fn write_page(fs: &mut Yaffs2<RawNand<Traced<Chip>>>, now: Ns, ino: Ino, page: u32) -> Ns {
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
    fs.mtd_mut().flash_mut().start_recording();
    fs.read_page(now, ino, 1, &mut support::NoPages).expect("readable");
    let record = fs.mtd_mut().flash_mut().take_record();
    let places: Vec<_> = record.iter().map(|op| (op.page.0, op.column, op.length)).collect();
    assert_eq!(places, [(3, 0, 2048), (4, 0, 2048)], "the object header is page 0");
}

/// 2,032 bytes a chunk: a page of the page cache is parts of three, and the cache keeps the last.
#[test]
fn with_tags_in_the_pages_a_page_is_parts_of_three_chunks() {
    let board = support::board("omap3evm");
    let mtd = Mtd::new(Traced::new(Chip::new(board.chip)), &board);
    let made = Yaffs2::format(mtd, Ns::ZERO, support::kernel("2.6.37").kernel, true);
    let (mut fs, now) = made.expect("it fits");
    let (ino, mut now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    for page in 0..8 {
        now = write_page(&mut fs, now, ino, page);
    }
    now = fs.fsync(now, ino, true, &mut support::NoPages).expect("space");
    fs.mtd_mut().flash_mut().start_recording();
    for page in 0..2 {
        now = fs.read_page(now, ino, page, &mut support::NoPages).expect("readable");
    }
    let record = fs.mtd_mut().flash_mut().take_record();
    let places: Vec<_> = record.iter().map(|op| (op.page.0, op.column, op.length)).collect();
    let whole = |page| (page, 0, 2048);
    assert_eq!(places, [1, 2, 3, 4, 5].map(whole), "the third chunk is read once");
}

/// Ten chunks are five pages: the sixth page finds the cache full of dirty chunks.
#[test]
fn the_short_op_cache_holds_ten_chunks_and_goes_out_whole() {
    let (mut fs, now) = fresh();
    let (ino, mut now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    let programs = |fs: &Yaffs2<RawNand<Traced<Chip>>>| fs.mtd().flash().counts().programs;
    let created = programs(&fs);
    for page in 0..5 {
        now = write_page(&mut fs, now, ino, page);
    }
    assert_eq!(programs(&fs), created, "all in the cache");
    write_page(&mut fs, now, ino, 5);
    assert_eq!(programs(&fs), created + 10);
}

/// A part of a chunk that is written again reads the chunk and writes it elsewhere.
#[test]
fn without_a_short_op_cache_each_write_goes_to_the_flash() {
    let (fs, now) = fresh();
    let mut fs = fs.without_cache(true);
    let (ino, mut now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    let before = fs.mtd().flash().counts();
    for from in [0, 512, 1024] {
        let (to, file_bytes) = (from + 512, u64::from(from + 512));
        let write = PageWrite { ino, page: 0, from, to, file_bytes, cached: true };
        now = fs.write_page(now, write, &mut support::NoPages).expect("space");
    }
    let after = fs.mtd().flash().counts();
    assert_eq!((after.programs - before.programs, after.reads - before.reads), (3, 2));
}

#[test]
fn a_page_in_the_short_op_cache_is_read_without_the_flash() {
    let (mut fs, now) = fresh();
    let (ino, now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    let now = write_page(&mut fs, now, ino, 0);
    let before = fs.mtd().flash().counts();
    fs.read_page(now, ino, 0, &mut support::NoPages).expect("readable");
    assert_eq!(fs.mtd().flash().counts(), before);
}

#[test]
fn the_last_chunk_of_a_block_is_its_summary_and_the_first_is_checked_to_be_erased() {
    let (mut fs, now) = fresh();
    let (ino, mut now) = fs
        .create(now, Name { directory: ROOT, name: "file.bin" }, &mut support::NoPages)
        .expect("space");
    fs.mtd_mut().flash_mut().start_recording();
    for page in 0..64 {
        now = write_page(&mut fs, now, ino, page);
    }
    fs.fsync(now, ino, true, &mut support::NoPages).expect("space");
    let record = fs.mtd_mut().flash_mut().take_record();
    let programs: Vec<u32> =
        record.iter().filter(|op| op.kind == Kind::Program).map(|op| op.page.0).collect();
    assert_eq!(
        programs,
        (1..=132).collect::<Vec<u32>>(),
        "128 chunks with two summaries between them, the header at the end, and the root's by the \
         thread"
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
    assert!(matches!(
        Yaffs2::format(mtd, Ns::ZERO, support::kernel("2.6.37").kernel, false),
        Err(FsError::TooSmall(_))
    ));
}

fn make(fs: &mut Yaffs2<RawNand<Traced<Chip>>>, now: Ns, name: &str) -> Ns {
    fs.create(now, Name { directory: ROOT, name }, &mut support::NoPages).expect("space").1
}

/// The newest first, lost+found last.
#[test]
fn a_name_is_looked_for_entry_by_entry() {
    let (mut fs, mut now) = fresh_with(|costs| costs.yaffs2_entry_ns = Ns(1000));
    for name in ["one", "two", "three"] {
        now = make(&mut fs, now, name);
    }
    for (name, passed) in [("three", 1), ("one", 3), ("none", 4)] {
        let end = fs.lookup(now, Name { directory: ROOT, name }, None).expect("no flash");
        assert_eq!(end - now, Ns(1000 * passed), "{name}");
    }
}

#[test]
fn a_mount_is_paid_for_by_the_object_and_a_fresh_one_by_the_byte_of_a_page() {
    let remount = |price: fn(&mut SoftwareCosts)| {
        let (mut fs, fresh_at) = fresh_with(price);
        let now = ["one", "two", "three"]
            .into_iter()
            .fold(fresh_at, |now, name| make(&mut fs, now, name));
        (fresh_at, fs.remount(now).expect("readable") - now)
    };
    let (fresh_at, free) = remount(|_| {});
    let (_, mount) = remount(|costs| costs.yaffs2_mount_ns = Ns(1_000_000));
    assert_eq!(mount - free, Ns(1_000_000));
    // The root, lost+found and the two hidden directories as well.
    let (_, objects) = remount(|costs| costs.yaffs2_object_ns = Ns(1000));
    assert_eq!(objects - free, Ns(7000));
    let (looked_at, by_checkpoint) = remount(|costs| costs.yaffs2_erased_byte_ps = 1000);
    let board = support::board("omap3evm");
    let bytes = u64::from(board.partition.blocks * board.chip.page_bytes);
    assert_eq!((looked_at - fresh_at, by_checkpoint), (Ns(bytes), free));
}

/// Each lookup went through a copy of the directory: 200,000 files and 70,000 links took minutes.
#[test]
fn a_name_among_many_is_found_after_as_many_entries_as_the_core_passes() {
    const FILES: u64 = 20_000;
    let (mut fs, mut now) = fresh_with(|costs| costs.yaffs2_entry_ns = Ns(1));
    let name_of = |number: u64| format!("file-{number}");
    for number in 0..FILES {
        now = make(&mut fs, now, &name_of(number));
    }
    for number in (0..FILES).step_by(7) {
        let at = Name { directory: ROOT, name: &name_of(number) };
        let end = fs.lookup(now, at, None).expect("no flash");
        assert_eq!(end - now, Ns(FILES - number), "file {number}");
    }
}

/// A name of more than 15 bytes is in the header only. Its sum weighs each byte by its place, so
/// that "CA" and "AB" are alike at the beginning.
#[test]
fn headers_of_long_names_with_the_sum_looked_for_are_read_newest_first() {
    let (mut fs, mut now) = fresh_with(|_| {});
    for name in ["CA-of-some-more-bytes", "other-of-more-bytes", "AB-of-some-more-bytes", "last"] {
        now = make(&mut fs, now, name);
    }
    for (name, wanted) in [("AB-of-some-more-bytes", 1), ("last", 0), ("CA-of-some-more-bytes", 2)]
    {
        let before = fs.mtd().flash().counts().reads;
        now = fs.lookup(now, Name { directory: ROOT, name }, None).expect("readable");
        assert_eq!(fs.mtd().flash().counts().reads - before, wanted, "{name}");
    }
}
