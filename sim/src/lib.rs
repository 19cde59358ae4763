//! The simulated raw NAND storage stack, layer by layer in the order data passes:
//!
//! ops (what a program asks for) -> vfs (page cache, read-ahead, write-back) -> [`fs`] (jffs2,
//! yaffs2, ubifs on ubi) -> [`mtd`] (the driver)
//! -> [`flash`].
//!
//! Calls go down with the time and come back with a later one; nothing here reads a clock, a file
//! or the environment, and nothing depends on chance: the same arguments give the same result to
//! the bit on every machine.

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
pub mod ubi;
pub mod units;
pub mod vfs;
