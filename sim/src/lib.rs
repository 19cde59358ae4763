//! The simulated raw NAND storage stack: operations go in, times and flash operations come out.
//!
//! This page is a tour. It has a heading for each module of the crate, in the order in which data
//! passes: first the layers that a write passes on its way to the chip, then what the layers share.
//! A module uses only modules further down on this page (`tests/tidy` checks that).
//!
//! A call into a lower layer takes the time and returns a later one; no layer owns a clock. The
//! crate reads no clock, file or environment and is deterministic: the same arguments give the same
//! result to the bit on every machine.
//!
//! # `run`: a case from operations to rows
//!
//! [`run::run_cases`] prepares a stack once, clones it for each case, runs the operations and
//! returns [`run::Measured`]. `machine.rs` has the program's clock. `stack.rs` has the trait of a
//! stack that answers a program's calls: the VFS over a file system, or the file of a device.
//! `laboratory.rs` has what the machine does to the chip from outside, `parts.rs` the file systems
//! and their mount options, `policies.rs` what decides in the kernel's place. `results.rs` has the
//! rows, [`run::survey`] what a power cut left, and [`run::parallel`] runs many cases on several
//! threads.
//!
//! # `squashfs`: a read-only image
//!
//! [`squashfs::Squashfs`] mounts an image that was decompressed by its reader, and reads its files
//! whole. [`run::boot`] puts it on a volume of UBI.
//!
//! # `vfs`: open files, page cache, write-back
//!
//! [`vfs::Vfs`] turns system calls into pages. `filemap.rs` and [`vfs::readahead`] read,
//! `inodes.rs` knows what is cached and dirty, `flusher.rs`, `wb_workfn.rs` and `writeback.rs`
//! write back, [`vfs::reclaim`] frees memory. The VFS is generic over the file system. A policy
//! that implements [`vfs::readahead::ReadAhead`] can choose the windows, one that implements
//! [`vfs::reclaim::Reclaim`] the pages that leave a full cache.
//!
//! # `fs`: JFFS2, YAFFS2, UBIFS
//!
//! A file system implements [`fs::FlashFs`] and [`fs::Features`] for the VFS, [`fs::Scheduled`] for
//! the scheduler, and [`fs::Observed`] for the laboratory. It uses the VFS through
//! [`fs::PageCache`]. [`fs::jffs2`] and [`fs::yaffs2`] are on MTD, [`fs::ubifs`] is on UBI. Their
//! files are named after the kernel's and mirror the same functions. `tasks.rs` schedules tasks
//! where the VFS and a file system meet.
//!
//! # `block`: disks on a partition
//!
//! [`block::BlockDevice`] is a disk of sectors, [`block::MtdBlock`] the one of mtdblock,
//! [`block::Ftl`] that of a controller. A program uses a disk through [`block::BlockFile`], with
//! O_DIRECT.
//!
//! # `ubi`: logical erase blocks
//!
//! [`ubi::Ubi`] maps the logical blocks of one volume to physical ones, levels their wear, and has
//! the thread that erases blocks.
//!
//! # `mtd`: the partition, and what drives its chip
//!
//! [`mtd::Mtd`] turns offsets of the partition into pages. A [`mtd::NandDriver`] turns those into
//! commands of the chip, and adds the cost of ECC and driver; [`mtd::RawNand`] is the one of raw
//! NAND. A program uses the partition itself as a [`mtd::Device`], the one file of a
//! [`mtd::Partition`]; [`mtd::MtdChar`] is MTD's own.
//!
//! # `victim`: which block is collected next
//!
//! A policy that implements [`victim::Victim`] chooses the blocks that a file system or a
//! translation layer collects.
//!
//! # `flash`: the chip and its decorators
//!
//! [`flash::Flash`] is the lowest interface. [`flash::Chip`] keeps the rules of NAND and the chip's
//! time. [`flash::Traced`], [`flash::Faulty`] and [`flash::PowerCut`] are decorators: they record
//! operations, fail some of them, and cut the power.
//!
//! # `sched`: tasks and time
//!
//! [`sched::Sched`] decides which task has the processor: the program, the flusher, or a thread of
//! UBI or a file system. Tasks wait on a [`sched::Mutex`]; [`sched::Ticks`] says when timers
//! expire.
//!
//! # `ops`: the text of a program
//!
//! [`ops::operations`] reads a flashbed-ops file line by line (docs/reference/operations.md).
//!
//! # `profile`: boards and kernels
//!
//! [`profile::BoardProfile`] has chip, partition, ECC, memory and the prices of software, as in
//! boards/.
//!
//! # `compress`: compressed sizes, and the compressors' work
//!
//! Each compressor returns the length that the kernel's compressor gives for the same bytes.
//! [`compress::work`] prices its work.
//!
//! # `content`: the content of files
//!
//! [`content::Contents`] knows which write each byte of a file comes from. Bytes are generated only
//! when a compressor needs them.
//!
//! # `collections`: containers
//!
//! Vectors in pieces, slabs, and sorted lists whose searches begin at a guess.
//!
//! # `causes`: why bytes are programmed
//!
//! [`causes::Causes`] adds bytes up by cause: data, metadata, padding, collection, wear levelling.
//!
//! # `waits`: what a call waits for
//!
//! [`waits::Meter`] divides a call's time by cause: write-back, read-ahead, commit, collection,
//! wear levelling, erase.
//!
//! # `ledger`: where the bytes of a partition are
//!
//! [`ledger::SpaceTable`] has a row for each part of a partition that is kept for something.
//!
//! # `errno`: how calls end
//!
//! [`errno::FsError`] is the error of every layer, [`errno::Outcome`] the result of a system call.
//!
//! # `stop`: ending a run early
//!
//! [`stop::Stop`] is checked between operations, and within them wherever the power may be gone.
//! [`stop::misbehaved`] ends a case whose policy is wrong.
//!
//! # `units`: newtypes
//!
//! [`units::Ns`], [`units::PageNo`] and [`units::BlockNo`].

pub mod block;
pub mod causes;
mod collections;
pub mod compress;
pub mod content;
pub mod errno;
pub mod flash;
pub mod fs;
pub mod ledger;
pub mod mtd;
pub mod ops;
pub mod profile;
pub mod run;
pub mod sched;
pub mod squashfs;
pub mod stop;
pub mod ubi;
pub mod units;
pub mod vfs;
pub mod victim;
pub mod waits;
