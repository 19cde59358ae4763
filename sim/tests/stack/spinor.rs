//! SPI-NOR and its driver, held against cycles counted by hand, and JFFS2's form for it.

use crate::support;
use sim::causes::{Cause, Causes};
use sim::flash::{Chip, FlashOp, Kind, Traced};
use sim::fs::jffs2::{Jffs2, Options};
use sim::fs::{FlashFs, Ino, Name, PageWrite, ROOT};
use sim::mtd::{Driven, Mtd};
use sim::profile::{BoardProfile, EccKind, NorBus};
use sim::units::Ns;

/// 20 ns a cycle: every figure below is whole.
const CYCLE: u64 = 20;
const PROGRAM: u64 = 700_000;
const ERASE: u64 = 150_000_000;
const POLL: u64 = 16 * CYCLE;
const OPCODE: u64 = 8 * CYCLE;
/// The mark of a free block, a node without data, and an entry of a name of four bytes.
const MARKER: u32 = 12;
const INODE: u32 = 68;
const ENTRY: u32 = 44;
const BLOCK: u32 = 65_536;
/// The scan puts each free block before the ones before it, and the list is rotated by one.
const FIRST: u32 = 62;

type Fs = Jffs2<Driven<Traced<Chip>>>;

/// A W25Q128JV on four lines.
fn board() -> BoardProfile {
    let mut board = support::board("emulated");
    board.software = support::free_software();
    (board.chip.page_bytes, board.chip.oob_bytes) = (256, 0);
    (board.chip.pages_per_block, board.chip.blocks) = (256, 256);
    board.chip.read_array_ns = Ns::ZERO;
    board.chip.program_array_ns = Ns(PROGRAM);
    board.chip.erase_array_ns = Ns(ERASE);
    (board.ecc.kind, board.ecc.step_bytes, board.ecc.strength_bits) = (EccKind::NoEcc, 256, 0);
    (board.partition.first_block, board.partition.blocks) = (0, 64);
    board.chip.nor = Some(NorBus {
        clock_hz: 1_000_000_000 / CYCLE,
        read_lines: 4,
        read_dummy_cycles: 6,
        address_bytes: 3,
        program_first_byte_ns: None,
        program_next_byte_ns: None,
        op_ns: Ns::ZERO,
    });
    board.check().expect("a chip");
    board
}

fn mtd(board: &BoardProfile) -> Mtd<Driven<Traced<Chip>>> {
    Mtd::with_driver(Driven::new(Traced::new(Chip::new(board.chip)), board), board)
}

/// With a write enable before, and polls after.
fn program(bytes: u64) -> u64 {
    OPCODE + (32 + bytes * 8) * CYCLE + PROGRAM.div_ceil(POLL) * POLL
}

#[test]
fn a_read_of_any_length_is_one_command() {
    let mut mtd = mtd(&board());
    let read = |bytes: u64| Ns((8 + 6 + 6 + bytes * 2) * CYCLE);
    assert_eq!(mtd.read(Ns::ZERO, 200, 12).expect("read"), read(12));
    assert_eq!(mtd.read(Ns::ZERO, 200, 70_000).expect("read"), read(70_000));
    assert_eq!((mtd.counts().reads, mtd.counts().busy), (2, read(12) + read(70_000)));
}

#[test]
fn a_write_is_cut_at_the_ends_of_pages_and_may_be_repeated() {
    let mut mtd = mtd(&board());
    let causes = Causes::of(Cause::Data, 300);
    let took = Ns(program(56) + program(244));
    assert_eq!(mtd.write_for(Ns::ZERO, 200, 300, &causes).expect("written"), took);
    assert_eq!(mtd.write_for(Ns::ZERO, 200, 300, &causes).expect("again"), took);
    assert_eq!((mtd.counts().programs, mtd.programmed_bytes(0)), (4, 500));
    mtd.write(Ns::ZERO, 16, 12).expect("before all others");
    assert_eq!(mtd.programmed_bytes(0), 500);
}

#[test]
fn an_erase_disables_writing_at_its_end() {
    let mut mtd = mtd(&board());
    let took = OPCODE + 32 * CYCLE + ERASE.div_ceil(POLL) * POLL + OPCODE;
    assert_eq!(mtd.erase(Ns::ZERO, 3).expect("erased"), Ns(took));
    assert_eq!((mtd.counts().erases, mtd.counts().busy), (1, Ns(took)));
}

#[test]
fn a_short_program_takes_less_where_the_part_says_so() {
    let mut board = board();
    let nor = board.chip.nor.as_mut().expect("on NOR");
    nor.program_first_byte_ns = Some(Ns(30_000));
    nor.program_next_byte_ns = Some(Ns(2_500));
    let mut mtd = mtd(&board);
    let array = 30_000 + 11 * 2_500_u64;
    let took = OPCODE + (32 + 12 * 8) * CYCLE + array.div_ceil(POLL) * POLL;
    assert_eq!(mtd.write(Ns::ZERO, 0, 12).expect("written"), Ns(took));
    let array = 30_000 + 255 * 2_500_u64;
    let whole = OPCODE + (32 + 256 * 8) * CYCLE + array.div_ceil(POLL) * POLL;
    assert_eq!(mtd.write(Ns::ZERO, 256, 256).expect("written"), Ns(whole));
}

fn fresh(summary: bool) -> (Fs, Ns) {
    let options = Options { summary, ..support::kernel("6.1").jffs2 };
    Jffs2::format(mtd(&board()), Ns::ZERO, options, support::facts()).expect("it fits")
}

fn name(name: &str) -> Name<'_> {
    Name { directory: ROOT, name }
}

/// Kind, offset and length of the operations of a call.
fn ops(fs: &mut Fs, call: impl FnOnce(&mut Fs)) -> Vec<(Kind, u32, u32)> {
    fs.mtd_mut().flash_mut().start_recording();
    call(fs);
    let record = fs.mtd_mut().flash_mut().take_record();
    record.iter().map(|op: &FlashOp| (op.kind, op.page.0 * 256 + op.column, op.length)).collect()
}

fn create(fs: &mut Fs, now: Ns) -> Ino {
    fs.create(now, name("file"), &mut support::NoPages).expect("space").0
}

#[test]
fn nodes_begin_behind_the_marker_and_are_written_at_once() {
    let (mut fs, now) = fresh(true);
    let first = FIRST * BLOCK;
    let written = ops(&mut fs, |fs| {
        create(fs, now);
    });
    let at = first + MARKER;
    let entry = at + INODE;
    assert_eq!(
        written,
        [
            (Kind::Program, at, INODE),
            (Kind::Program, entry, ENTRY - 4),
            (Kind::Program, entry + ENTRY - 4, 4),
        ]
    );
    let nothing = ops(&mut fs, |fs| {
        fs.fsync(now, Ino(2), true, &mut support::NoPages).expect("nothing to write");
        fs.sync(now, &mut support::NoPages).expect("nothing to write");
    });
    assert_eq!(nothing, []);
}

#[test]
fn a_kernel_without_summaries_marks_what_is_obsolete() {
    let (mut fs, now) = fresh(false);
    let first = FIRST * BLOCK;
    let written = ops(&mut fs, |fs| {
        create(fs, now);
    });
    let mark = |at: u32| [(Kind::Read, at, 12), (Kind::Program, at, 12)];
    assert_eq!(written[..2], mark(first), "the marker of the block");
    let entry = first + MARKER + INODE;
    let removed = ops(&mut fs, |fs| {
        fs.unlink(now, name("file"), Ino(2), &mut support::NoPages).expect("removed");
    });
    assert_eq!(removed, mark(entry), "the name has no deletion dirent");
    let evicted = ops(&mut fs, |fs| {
        fs.evict(now, Ino(2), &mut support::NoPages).expect("evicted");
    });
    assert_eq!(evicted, mark(first + MARKER));
}

#[test]
fn a_mount_reads_the_end_and_the_start_of_a_block_and_then_4_kib_at_a_time() {
    let (mut fs, now) = fresh(true);
    let ino = create(&mut fs, now);
    let page = |page| PageWrite {
        ino,
        page,
        from: 0,
        to: 4096,
        file_bytes: u64::from(page + 1) * 4096,
        cached: true,
    };
    for number in 0..2 {
        fs.write_page(now, page(number), &mut support::NoPages).expect("space");
    }
    let read = ops(&mut fs, |fs| {
        fs.remount(now).expect("mounted");
    });
    let of_block = |block: u32| {
        let of = move |&&(_, at, _): &&(Kind, u32, u32)| at / BLOCK == block;
        read.iter().filter(of).map(|&(_, at, bytes)| (at % BLOCK, bytes)).collect::<Vec<_>>()
    };
    assert_eq!(of_block(5), [(BLOCK - 8, 8), (0, 256)], "a free one");
    let written = of_block(FIRST);
    assert_eq!(written[..2], [(BLOCK - 8, 8), (0, 256)]);
    assert!(written[2..].iter().take(14).all(|&(_, bytes)| bytes <= 4096), "{written:?}");
    assert_eq!(fs.mtd().counts().erases, 0);
}
