//! A caller stops the run within an operation: the chip runs no further operation, and no page is
//! added.

use crate::support;
use sim::content::Source;
use sim::errno::FsError;
use sim::flash::{Block, Chip, Counts, Done, Flash, Moves, Span, WrongBits};
use sim::fs::jffs2::Jffs2;
use sim::fs::ubifs::Ubifs;
use sim::fs::yaffs2::Yaffs2;
use sim::fs::FlashFs;
use sim::mtd::{Access, Mtd, MtdChar, Partition, RawNand};
use sim::ops::{Fill, Flags, Operation};
use sim::profile::{BoardProfile, ChipProfile};
use sim::sched::Task;
use sim::stop::Stop;
use sim::units::{BlockNo, Ns, PageNo};
use sim::vfs::Vfs;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

const FAR: u64 = u64::MAX;
const FILE_BYTES: u64 = 4 << 20;

/// A chip in one of whose operations the caller stops.
#[derive(Clone)]
struct Fuse {
    chip: Chip,
    stop: Stop,
    left: Arc<AtomicU64>,
}

impl Fuse {
    fn burn(&self) {
        assert!(!self.stop.is_thrown(), "an operation after the caller stopped");
        if self.left.fetch_sub(1, Relaxed) == 1 {
            self.stop.throw();
        }
    }
}

impl Flash for Fuse {
    fn profile(&self) -> &ChipProfile {
        self.chip.profile()
    }
    fn read(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves) -> Done {
        self.burn();
        self.chip.read(now, task, page, moves)
    }
    fn read_next(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, time: Ns) -> Done {
        self.burn();
        self.chip.read_next(now, task, page, moves, time)
    }
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        self.chip.change_column(now, length)
    }
    fn command(&mut self, now: Ns, time: Ns) -> Ns {
        self.chip.command(now, time)
    }
    fn program(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, cells: Span) -> Done {
        self.burn();
        self.chip.program(now, task, page, moves, cells)
    }
    fn erase(&mut self, now: Ns, task: Task, block: BlockNo) -> Done {
        self.burn();
        self.chip.erase(now, task, block)
    }
    fn counts(&self) -> Counts {
        self.chip.counts()
    }
    fn block(&self, block: BlockNo) -> &Block {
        self.chip.block(block)
    }
    fn wrong_bits(&self) -> Option<&WrongBits> {
        self.chip.wrong_bits()
    }
}

/// The caller's side: the switch, and the number of chip operations until it is thrown.
struct Caller {
    stop: Stop,
    left: Arc<AtomicU64>,
}

fn fused(board: &BoardProfile) -> (Mtd<RawNand<Fuse>>, Caller) {
    let caller = Caller { stop: Stop::default(), left: Arc::new(AtomicU64::new(FAR)) };
    let fuse = Fuse {
        chip: Chip::new(board.chip),
        stop: caller.stop.clone(),
        left: Arc::clone(&caller.left),
    };
    let mut mtd = Mtd::new(fuse, board);
    mtd.obey(caller.stop.clone());
    (mtd, caller)
}

type Step<S> = (&'static str, fn(&mut Vfs<S>, Ns) -> Result<(i64, Ns), FsError>);

/// Operations that do much, after a file of 4 MiB that is not in the cache.
fn steps<S: FlashFs>() -> Vec<Step<S>> {
    vec![
        ("write", |vfs, now| vfs.write(now, 0, 0, 1 << 30, Source { seed: 2, compressibility: 0 })),
        ("read", |vfs, now| vfs.read(now, 0, 0, FILE_BYTES)),
        ("remount", |vfs, now| {
            let (_, now) = vfs.close(now, 0)?;
            vfs.remount(now)
        }),
        ("fsync", |vfs, now| {
            let source = Source { seed: 3, compressibility: 0 };
            let (_, now) = vfs.write(now, 0, 0, FILE_BYTES / 2, source)?;
            vfs.fsync(now, 0, false)
        }),
    ]
}

fn stops<S: FlashFs>(board: &BoardProfile, made: impl Fn() -> (S, Ns, Caller)) {
    for (name, step) in steps::<S>() {
        for left in [1, 5, 20] {
            let (fs, now, caller) = made();
            let readahead = support::kernel("6.1").readahead;
            let (costs, memory) = (board.software, board.memory);
            let mut vfs = Vfs::new(fs, readahead, costs, memory, support::facts(), 1);
            let flags = Flags { read: true, write: true, create: true, ..Flags::default() };
            let source = Source { seed: 1, compressibility: 0 };
            let (_, now) = vfs.open(now, 0, "f", flags).expect("open");
            let (_, now) = vfs.write(now, 0, 0, FILE_BYTES, source).expect("a file");
            let (_, now) = vfs.fsync(now, 0, false).expect("on flash");
            let (_, now) = vfs.drop_caches(now).expect("gone from the cache");
            caller.left.store(left, Relaxed);
            let ended = step(&mut vfs, now);
            assert!(matches!(ended, Err(FsError::PowerLost(_))), "{name}, {left}: {ended:?}");
            assert!(caller.stop.is_thrown());
        }
    }
}

#[test]
fn jffs2_stops_within_an_operation() {
    let board = support::board("emulated");
    stops(&board, || {
        let (mtd, caller) = fused(&board);
        let jffs2 = support::kernel("6.1").jffs2;
        let (fs, now) = Jffs2::format(mtd, Ns::ZERO, jffs2, support::facts()).expect("jffs2");
        (fs, now, caller)
    });
}

#[test]
fn yaffs2_stops_within_an_operation() {
    let board = support::board("emulated");
    stops(&board, || {
        let (mtd, caller) = fused(&board);
        let (fs, now) = Yaffs2::format(mtd, Ns::ZERO, support::facts(), false).expect("yaffs2");
        (fs, now, caller)
    });
}

#[test]
fn ubifs_stops_within_an_operation() {
    let board = support::board("emulated");
    stops(&board, || {
        let (mtd, caller) = fused(&board);
        let ubifs = support::kernel("6.1").ubifs;
        let (fs, now) = Ubifs::format(mtd, Ns::ZERO, ubifs, support::facts()).expect("ubifs");
        (fs, now, caller)
    });
}

#[test]
fn a_partition_stops_within_an_operation() {
    let board = support::board("emulated");
    let flags = Flags { read: true, write: true, ..Flags::default() };
    let length = u64::from(board.partition.blocks) * 131_072;
    for operation in [
        Operation::Read { slot: 0, offset: 0, length },
        Operation::Write { slot: 0, offset: 0, length, seed: 1, fill: Fill::Even(0) },
        Operation::Erase { slot: 0, offset: 0, length },
    ] {
        let (mtd, caller) = fused(&board);
        let mut device = Partition::new(MtdChar::new(mtd, Access::Device));
        let open = Operation::Open { slot: 0, path: "partition", flags };
        let (_, now) = device.call(Ns::ZERO, &open).expect("open");
        caller.left.store(7, Relaxed);
        let ended = device.call(now, &operation);
        assert!(matches!(ended, Err(FsError::PowerLost(_))), "{operation:?}: {ended:?}");
    }
}

/// UBIFS adds pages to the cache without an operation of the chip.
#[test]
fn no_page_is_added_after_the_caller_stopped() {
    let board = support::board("emulated");
    let (mtd, caller) = fused(&board);
    let (fs, now) = Ubifs::format(mtd, Ns::ZERO, support::kernel("6.1").ubifs, support::facts())
        .expect("ubifs");
    let readahead = support::kernel("6.1").readahead;
    let mut vfs = Vfs::new(fs, readahead, board.software, board.memory, support::facts(), 1);
    let flags = Flags { write: true, create: true, ..Flags::default() };
    let (_, now) = vfs.open(now, 0, "f", flags).expect("open");
    caller.stop.throw();
    let ended = vfs.write(now, 0, 0, 1 << 20, Source { seed: 1, compressibility: 0 });
    assert!(matches!(ended, Err(FsError::PowerLost(_))), "{ended:?}");
    assert_eq!(vfs.cache_adds, 0);
}
