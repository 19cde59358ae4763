//! Disks on a partition: mtdblock's block in memory, and a disk of one's own.

use crate::support;
use sim::block::{Bio, BioOp, BlockDevice, BlockFile, MtdBlock, SECTOR_BYTES};
use sim::causes::{Cause, Causes};
use sim::errno::{FsError, EIO};
use sim::flash::{Chip, Done};
use sim::mtd::{Mtd, NandDriver, Partition, RawNand};
use sim::ops::operations;
use sim::units::{BlockNo, Ns};

/// Bytes and pages of a block of the emulated board.
const BLOCK: u64 = 131_072;
const PAGES: u64 = 64;
/// Reads, programs and erases.
type Spent = [u64; 3];
const NOTHING: Spent = [0, 0, 0];
const FILL: Spent = [PAGES, 0, 0];
const WRITE_BACK: Spent = [0, PAGES, 1];
const BOTH: Spent = [PAGES, PAGES, 1];

fn mtd() -> Mtd<RawNand<Chip>> {
    let board = support::board("emulated");
    Mtd::new(Chip::new(board.chip), &board)
}

fn mtdblock() -> Partition<BlockFile<MtdBlock<RawNand<Chip>>>> {
    Partition::new(BlockFile::new(MtdBlock::new(mtd())))
}

/// Runs lines: the result of each, and the flash operations that it took.
fn try_run<B: BlockDevice>(
    disk: &mut Partition<BlockFile<B>>,
    lines: &str,
) -> Result<Vec<(i64, Spent)>, FsError> {
    let text = format!("flashbed-ops 1\n{lines}");
    let mut now = Ns::ZERO;
    let run = |line: Result<(usize, sim::ops::Operation<'_>), _>| {
        let before = disk.mtd().counts();
        let (result, later) = disk.call(now, &line.expect("an operation").1)?;
        now = later;
        let after = disk.mtd().counts();
        let programs = after.programs - before.programs;
        Ok((result, [after.reads - before.reads, programs, after.erases - before.erases]))
    };
    operations(&text).expect("operations").map(run).collect()
}

/// The flash operations of each line.
fn spent<B: BlockDevice>(disk: &mut Partition<BlockFile<B>>, lines: &str) -> Vec<Spent> {
    try_run(disk, lines).expect("modelled").iter().map(|&(_, spent)| spent).collect()
}

#[test]
fn a_block_is_read_once_and_written_back_once_for_all_of_its_sectors() {
    let lines = "open 0 partition rw,direct\nwrite 0 0 512 1 0\nwrite 0 130560 512 1 0\n\
                 read 0 0 131072\nfsync 0\nfsync 0\n";
    let expected = [NOTHING, FILL, NOTHING, NOTHING, WRITE_BACK, NOTHING];
    assert_eq!(spent(&mut mtdblock(), lines), expected);
}

#[test]
fn another_block_that_is_written_takes_its_place_and_one_that_is_read_does_not() {
    let lines = "open 0 partition rw,direct\nwrite 0 0 512 1 0\nread 0 131072 1024\n\
                 write 0 512 512 1 0\nwrite 0 131072 512 1 0\nread 0 0 512\n";
    let read = |sectors| [sectors, 0, 0]; // ECC in software remembers no page
    assert_eq!(spent(&mut mtdblock(), lines), [NOTHING, FILL, read(2), NOTHING, BOTH, read(1)]);
}

#[test]
fn a_sync_leaves_the_block_in_memory_and_the_last_close_does_not() {
    let lines = "open 0 partition rw,direct\nopen 1 partition ro,direct\nwrite 0 0 512 1 0\n\
                 sync\ndrop_caches\nclose 0\nread 1 0 512\nclose 1\nopen 0 partition ro,direct\n\
                 close 0\n";
    let in_memory = [NOTHING; 4];
    let expected = [&[NOTHING, NOTHING, FILL][..], &in_memory, &[WRITE_BACK, NOTHING, NOTHING]];
    assert_eq!(spent(&mut mtdblock(), lines), expected.concat());
}

#[test]
fn a_write_over_a_whole_block_reads_it_first_all_the_same() {
    let lines = "open 0 partition rw,direct,dsync\nwrite 0 0 130560 1 0\n\
                 open 1 partition wo,direct\nwrite 1 0 262144 1 0\nclose 0\nclose 1\n";
    let expected = [NOTHING, BOTH, NOTHING, [2 * PAGES, PAGES, 1], NOTHING, WRITE_BACK];
    assert_eq!(spent(&mut mtdblock(), lines), expected);
}

#[test]
fn what_the_program_did_not_write_is_counted_as_moved() {
    let mut disk = mtdblock();
    let lines = "open 0 partition rw,direct\nwrite 0 0 1024 1 0\nwrite 0 512 1024 1 0\nfsync 0\n";
    spent(&mut disk, lines);
    let causes = disk.mtd().causes();
    assert_eq!(causes.bytes(Cause::Data), 1536);
    assert_eq!(causes.bytes(Cause::Collection), BLOCK - 1536);
    assert_eq!(causes.total(), BLOCK);
}

/// The story: write_cached_data empties the cache after -EIO, so that a bad block is not written
/// again and again.
#[test]
fn a_block_that_cannot_be_written_back_is_lost_and_reported_once() {
    let board = support::board("emulated");
    let bad = BlockNo(board.partition.first_block + 1);
    let mtd = Mtd::new(Chip::with_bad_blocks(board.chip, [bad]), &board);
    let mut disk = Partition::new(BlockFile::new(MtdBlock::new(mtd)));
    // 16 sectors before the bad block, 16 in it, 1 in the next.
    let lines = "open 0 partition rw,direct\nwrite 0 122880 16384 1 0\nfsync 0\nfsync 0\n\
                 write 0 131072 512 1 0\nwrite 0 262144 512 1 0\nwrite 0 131072 512 1 0\nclose 0\n";
    let run = try_run(&mut disk, lines).expect("modelled");
    let results: Vec<i64> = run.iter().map(|&(result, _)| result).collect();
    assert_eq!(results, [0, 16_384, EIO, 0, 512, EIO, 512, 0]);
}

#[test]
fn what_is_not_modelled_is_refused_by_name() {
    for (lines, what) in [
        ("open 0 partition rw\n", "a block device without O_DIRECT"),
        ("open 0 partition rw,direct\nread 0 0 1049088\n", "a direct request of more than 1 MiB"),
        (
            "open 0 partition rw,direct,sync\nwrite 0 0 131072 1 0\n",
            "a synchronous direct write of more than 255 sectors",
        ),
        ("open 0 partition rw,direct\nfadvise 0 0 0 willneed\n", "fadvise"),
    ] {
        let refused = try_run(&mut mtdblock(), lines).expect_err(what);
        assert_eq!(refused.not_modelled(), Some(what));
    }
}

#[test]
fn a_bio_is_cut_where_pages_of_memory_end() {
    let bio = |sectors, skipped| Bio { op: BioOp::Read, sector: 100, sectors, skipped };
    let segments = |bio: Bio| bio.segments().collect::<Vec<_>>();
    assert_eq!(segments(bio(17, 0)), [(100, 8), (108, 8), (116, 1)]);
    assert_eq!(segments(bio(17, 7)), [(100, 1), (101, 8), (109, 8)]);
    assert_eq!(segments(bio(1, 7)), [(100, 1)]);
}

/// A translation layer: each sector that is written takes the next page. It collects nothing, so a
/// partition is full when it was written once.
#[derive(Clone)]
struct Log<D> {
    mtd: Mtd<D>,
    places: Vec<Option<u64>>,
    next: u64,
}

impl<D: NandDriver> BlockDevice for Log<D> {
    type Driver = D;

    fn mtd(&self) -> &Mtd<D> {
        &self.mtd
    }

    fn mtd_mut(&mut self) -> &mut Mtd<D> {
        &mut self.mtd
    }

    fn sectors(&self) -> u64 {
        self.places.len() as u64
    }

    fn submit(&mut self, mut now: Ns, bio: Bio) -> Done {
        let page = self.mtd.page_bytes();
        for sector in bio.sector..bio.sector + u64::from(bio.sectors) {
            let place = &mut self.places[sector as usize];
            now = match (bio.op, *place) {
                (BioOp::Read, None) => now,
                (BioOp::Read, Some(at)) => self.mtd.read(now, at, SECTOR_BYTES)?,
                (BioOp::Write, _) => {
                    *place = Some(self.next);
                    self.next += u64::from(page);
                    let mut causes = Causes::of(Cause::Data, SECTOR_BYTES);
                    causes.add(Causes::of(Cause::Padding, page - SECTOR_BYTES));
                    self.mtd.write_for(now, self.next - u64::from(page), page, &causes)?
                }
            };
        }
        Ok(now)
    }
}

#[test]
fn a_disk_of_ones_own_answers_programs() {
    let log = Log { mtd: mtd(), places: vec![None; 1000], next: 0 };
    let lines = "open 0 partition rw,direct\nread 0 0 512000\nwrite 0 1024 2048 1 0\n\
                 write 0 1024 2048 2 0\nread 0 512 4096\nfsync 0\nclose 0\n";
    let written = [0, 4, 0];
    let expected = [NOTHING, NOTHING, written, written, [4, 0, 0], NOTHING, NOTHING];
    assert_eq!(spent(&mut Partition::new(BlockFile::new(log)), lines), expected);
}
