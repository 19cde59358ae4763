//! The simulated raw NAND storage stack: operations go in, times and flash operations come out.
//!
//! This page is a tour. It has a heading for each module of the crate, in the order in which data
//! passes: first the layers that a write goes through on its way to the chip, then what the layers
//! share. A module uses only modules that stand further down on this page (`tests/tidy` holds
//! that).
//!
//! Calls go down with the time and come back with a later one; no layer owns a clock. The crate
//! reads no clock, file or environment and depends on no chance: the same arguments give the same
//! result to the bit on every machine.
//!
//! # `run`: a case from operations to rows
//!
//! [`run::run_cases`] prepares a stack once, clones it for each case, runs the operations and
//! returns [`run::Measured`]. `machine.rs` holds the program's point in time. `stack.rs` is the
//! seam to what answers a program's calls: the VFS over a file system, or MTD's character device.
//! `laboratory.rs` is what the machine does to the chip from outside, `mount_options.rs` how a file
//! system is mounted. `results.rs` has the rows, [`run::survey`] what a power cut left, and
//! [`run::parallel`] shares many cases out to threads.
//!
//! # `vfs`: open files, page cache, write-back
//!
//! [`vfs::Vfs`] turns system calls into pages. `filemap.rs` and [`vfs::readahead`] read,
//! `inodes.rs` knows what is cached and dirty, `flusher.rs`, `wb_workfn.rs` and `writeback.rs`
//! write back, `reclaim.rs` frees memory. The VFS is generic over the file system.
//!
//! # `fs`: JFFS2, YAFFS2, UBIFS
//!
//! [`fs::FlashFs`] is what the VFS asks of a file system, [`fs::Scheduled`] what the scheduler asks
//! of one, and [`fs::PageCache`] what a file system asks of the VFS. [`fs::jffs2`] and
//! [`fs::yaffs2`] stand on MTD, [`fs::ubifs`] stands on UBI. Their files are named after the
//! kernel's and mirror the same functions. `tasks.rs` decides which task goes on where the VFS and
//! a file system meet.
//!
//! # `ubi`: logical erase blocks
//!
//! [`ubi::Ubi`] maps the logical blocks of one volume to physical ones, levels their wear and has
//! the thread that erases.
//!
//! # `mtd`: the NAND driver
//!
//! [`mtd::Mtd`] turns offsets of the partition into commands of the chip, and adds what ECC and the
//! driver cost. [`mtd::MtdChar`] gives a program the partition itself.
//!
//! # `flash`: the chip, and what is put around it
//!
//! [`flash::Flash`] is the lowest seam. [`flash::Chip`] keeps the rules of NAND and the chip's
//! time. [`flash::Traced`], [`flash::Faulty`] and [`flash::PowerCut`] are decorators: they record
//! operations, fail some of them, and cut the power.
//!
//! # `sched`: tasks and time
//!
//! [`sched::Sched`] decides which task has the processor: the program, the flusher, or a thread of
//! UBI or a file system. Tasks wait on a [`sched::Mutex`]; [`sched::Ticks`] says when timers
//! expire.
//!
//! # `ops`: the text that a program is written in
//!
//! [`ops::operations`] reads a flashbed-ops file line by line (docs/operations.md).
//!
//! # `profile`: what is known of a board
//!
//! [`profile::BoardProfile`] holds chip, partition, ECC, memory and the prices of software, as
//! boards/ has them.
//!
//! # `compress`: sizes that compressors give, and their work
//!
//! Each compressor gives the length that the kernel's gives of the same bytes. [`compress::work`]
//! prices what it did.
//!
//! # `content`: what files hold
//!
//! [`content::Contents`] knows from which write each byte of a file is; bytes are generated only
//! when a compressor asks.
//!
//! # `collections`: containers
//!
//! Vectors in pieces, slabs, and sorted lists whose searches begin near the end.
//!
//! # `causes`: why bytes are programmed
//!
//! [`causes::Causes`] adds bytes up by cause: data, metadata, padding, collection, wear levelling.
//!
//! # `errno`: how calls end
//!
//! [`errno::FsError`] is the error of every layer, [`errno::Outcome`] what a system call returns.
//!
//! # `stop`: a caller that gives up
//!
//! [`stop::Stop`] is looked at between operations, and within them wherever the power may be gone.
//!
//! # `units`: newtypes
//!
//! [`units::Ns`], [`units::PageNo`] and [`units::BlockNo`].

pub mod causes;
mod collections;
pub mod compress;
pub mod content;
pub mod errno;
pub mod flash;
pub mod fs;
pub mod mtd;
pub mod ops;
pub mod profile;
pub mod run;
pub mod sched;
pub mod stop;
pub mod ubi;
pub mod units;
pub mod vfs;
