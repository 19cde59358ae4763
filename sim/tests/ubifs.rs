//! UBIFS on the emulated board, against what the kernel's code says the flash must see.

use sim::chip::{Chip, Counts, Flash};
use sim::fs::ubifs::Ubifs;
use sim::fs::{FlashFs, FsError, Ino, PageWrite, PAGE_BYTES, ROOT};
use sim::mtd::Mtd;
use sim::profile::{
    BoardProfile, ChipProfile, EccKind, EccProfile, PartitionProfile, SoftwareCosts, Transfer,
};
use sim::units::{BlockNo, Ns, PageNo};

fn costs() -> SoftwareCosts {
    SoftwareCosts {
        syscall_ns: Ns(1),
        page_find_ns: Ns(1),
        copy_byte_ps: 1,
        page_add_ns: Ns(1),
        page_write_ns: Ns(1),
        mtd_call_ns: Ns(1),
        nand_read_ns: Ns(1),
        nand_program_ns: Ns(1),
        nand_erase_ns: Ns(1),
        nand_byte_ps: 1,
        ecc_step_ns: Ns(1),
        jffs2_node_ns: Ns(1),
        jffs2_byte_ps: 1,
        ubifs_node_ns: Ns(1),
        ubifs_znode_ns: Ns(1),
        ubifs_byte_ps: 1,
        yaffs2_chunk_ns: Ns(1),
        compute_step_ps: 1,
    }
}

fn board(kind: EccKind, blocks: u32) -> BoardProfile {
    let chip = ChipProfile {
        page_bytes: 2048,
        oob_bytes: 64,
        pages_per_block: 64,
        blocks: 2048,
        read_array_ns: Ns(25_000),
        program_array_ns: Ns(200_000),
        erase_array_ns: Ns(2_000_000),
        transfer: Transfer::Page,
        bus_read_ns: Ns(102_000),
        bus_program_ns: Ns(81_000),
        column_change_ns: Ns(127_000),
    };
    let partition = PartitionProfile { first_block: 0, blocks };
    BoardProfile { chip, ecc: EccProfile { kind, step_bytes: 256 }, partition, software: costs() }
}

/// A chip that remembers its operations: kind, page, column, length.
#[derive(Clone, Debug)]
struct Recorder {
    chip: Chip,
    log: Vec<(char, u32, u32, u32)>,
}

impl Flash for Recorder {
    fn profile(&self) -> &ChipProfile {
        self.chip.profile()
    }
    fn read(&mut self, now: Ns, page: PageNo, column: u32, length: u32) -> Ns {
        self.log.push(('R', page.0, column, length));
        self.chip.read(now, page, column, length)
    }
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        self.chip.change_column(now, length)
    }
    fn program(&mut self, now: Ns, page: PageNo, column: u32, length: u32) -> Ns {
        self.log.push(('P', page.0, column, length));
        self.chip.program(now, page, column, length)
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

fn fresh(board: &BoardProfile) -> (Fs, Ns) {
    let flash = Recorder { chip: Chip::new(board.chip), log: Vec::new() };
    Ubifs::format(Mtd::new(flash, board), Ns(0)).expect("it is large enough")
}

/// Writes `pages` whole pages into the page cache and back, then fsync.
fn write_file(fs: &mut Fs, now: Ns, name: &str, pages: u32) -> (Ino, Ns) {
    let (ino, mut now) = fs.create(now, ROOT, name).expect("room for a name");
    let write = |page: u32, file_bytes: u64| PageWrite {
        ino,
        page,
        from: 0,
        to: PAGE_BYTES,
        file_bytes,
        cached: false,
    };
    for page in 0..pages {
        let size = u64::from(page) * u64::from(PAGE_BYTES);
        now = fs.write_begin(now, write(page, size)).expect("room for a page");
    }
    let size = u64::from(pages) * u64::from(PAGE_BYTES);
    for page in 0..pages {
        now = fs.write_page(now, write(page, size)).expect("it was budgeted");
    }
    (ino, fs.fsync(now, ino).expect("fsync"))
}

fn settle(fs: &mut Fs, now: Ns) -> Ns {
    let mut now = now;
    while let Some(due) = fs.next_due() {
        now = fs.run_due(now.max(due)).expect("background work");
    }
    now
}

/// The test program of the read-ahead experiment up to its first case.
fn prepared(kind: EccKind) -> (Fs, Ino, Ns) {
    let (mut fs, now) = fresh(&board(kind, 400));
    let (ino, now) = write_file(&mut fs, now, "file.bin", 1280);
    let now = fs.sync(now).expect("sync");
    let now = settle(&mut fs, now);
    (fs, ino, now + Ns(10_000_000_000))
}

fn reads(fs: &Fs) -> u64 {
    fs.flash().counts().reads
}

#[test]
fn an_opened_file_read_in_order_costs_what_the_kernel_showed() {
    let (mut fs, ino, now) = prepared(EccKind::SoftwareSubpage);
    let now = fs.drop_caches(now).expect("nothing to fail");
    let before = reads(&fs);
    let now = fs.open(now, ROOT, "file.bin", ino).expect("open");
    let opened = reads(&fs);
    let mut now = now;
    for page in 0..8 {
        now = fs.read_page(now, ino, page).expect("read");
    }
    let eight = reads(&fs);
    for page in 8..1024 {
        now = fs.read_page(now, ino, page).expect("read");
    }
    println!("open {} eight {} all {}", opened - before, eight - opened, reads(&fs) - opened);
}

#[test]
fn a_partition_too_small_says_how_many_blocks_are_needed() {
    let board = board(EccKind::HardwarePage, 30);
    let flash = Recorder { chip: Chip::new(board.chip), log: Vec::new() };
    let error = Ubifs::format(Mtd::new(flash, &board), Ns(0)).err();
    assert!(matches!(error, Some(FsError::TooSmall(text)) if text.contains("61 blocks")));
}
