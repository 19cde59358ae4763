//! Block devices on MTD: the seam between the block layer and what makes a partition a disk.
//!
//! A [`BlockDevice`] is a disk of 512-byte sectors, given one [`Bio`] at a time. mtdblock.rs is
//! drivers/mtd/mtdblock.c, ftl.rs a controller's translation layer. fops.rs is the way of a
//! program's request to it, with O_DIRECT (docs/models/mtdblock.md). A new disk is a file here and
//! its rows in [`Disk`]. Left out: the page cache of a block device, I/O schedulers, and more than
//! one bio at a time.

mod fops;
mod ftl;
mod ftl_scan;
mod mtdblock;

pub use fops::BlockFile;
pub use ftl::{Ftl, FtlOptions};
pub use mtdblock::MtdBlock;

use crate::content::Source;
use crate::flash::{Done, Failed, Fault};
use crate::mtd::{Mtd, NandDriver, TornAt};
use crate::units::Ns;
use crate::victim::Victim;

/// A translation layer of which nothing is said: 2^30 bytes of cells are sold as 10^9.
const USUAL_FTL: FtlOptions = FtlOptions { spare_permille: 69, map_pages: 0 };

/// The disks that a run can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Disk {
    MtdBlock,
    Ftl(FtlOptions),
}

impl Disk {
    /// Their names, as in boards/parts/file_systems.toml.
    pub const ROWS: [(&'static str, Disk); 2] =
        [("mtdblock", Disk::MtdBlock), ("ftl", Disk::Ftl(USUAL_FTL))];

    /// The disk with an option; none if it has no such option.
    pub fn with(self, option: &str) -> Option<Disk> {
        let (key, value) = option.split_once('=')?;
        let value = value.parse().ok()?;
        match (self, key, value) {
            (Disk::Ftl(other), "spare_permille", spare_permille @ 1..=900) => {
                Some(Disk::Ftl(FtlOptions { spare_permille, ..other }))
            }
            (Disk::Ftl(other), "map_pages", map_pages @ 1..) => {
                Some(Disk::Ftl(FtlOptions { map_pages, ..other }))
            }
            _ => None,
        }
    }

    /// Puts the disk on a partition, and does `then` with it.
    pub fn on<D: NandDriver, T: WithDisk<D>>(self, mtd: Mtd<D>, then: T) -> T::Output {
        match self {
            Disk::MtdBlock => then.disk(MtdBlock::new(mtd)),
            Disk::Ftl(options) => then.disk(Ftl::new(mtd, options)),
        }
    }
}

/// What is done with a disk, whatever it is.
pub trait WithDisk<D: NandDriver> {
    /// What that gives.
    type Output;
    /// Does it.
    fn disk<B: BlockDevice<Driver = D>>(self, disk: B) -> Self::Output;
}

/// Bytes of a sector, in which the block layer counts (SECTOR_SIZE).
pub const SECTOR_BYTES: u32 = 512;
/// Sectors of a page of memory.
const PAGE_SECTORS: u32 = 4096 / SECTOR_BYTES;

/// What a bio does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BioOp {
    Read,
    Write,
}

/// Consecutive sectors, and their place in memory (`struct bio`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// What is done with them.
    pub op: BioOp,
    /// The first sector.
    pub sector: u64,
    /// How many there are.
    pub sectors: u32,
    /// How many sectors of the first page of memory belong to an earlier bio.
    pub skipped: u32,
}

impl Bio {
    /// Its parts in the pages of memory, one each: a first sector and how many.
    pub fn segments(self) -> impl Iterator<Item = (u64, u32)> {
        let end = self.sector + u64::from(self.sectors);
        let mut sector = self.sector;
        let mut room = PAGE_SECTORS - self.skipped;
        core::iter::from_fn(move || {
            let sectors = room.min((end - sector) as u32);
            let segment = (sector, sectors);
            (sector, room) = (sector + u64::from(sectors), PAGE_SECTORS);
            (sectors > 0).then_some(segment)
        })
    }
}

/// Parts of a request, each tried whatever became of those before it.
struct Tried {
    now: Ns,
    fault: Option<Fault>,
}

impl Tried {
    fn new(now: Ns) -> Tried {
        Tried { now, fault: None }
    }

    /// A part is over. Returns whether it succeeded; an error if there is no power for others.
    fn add(&mut self, part: Done) -> Result<bool, Failed> {
        match part {
            Ok(now) => self.now = now,
            Err(failed) if failed.fault == Fault::PowerLost => return Err(failed),
            Err(Failed { at, fault }) => (self.now, self.fault) = (at, Some(fault)),
        }
        Ok(part.is_ok())
    }

    /// All parts are over.
    fn end(self) -> Done {
        self.fault.map_or(Ok(self.now), |fault| Err(Failed { at: self.now, fault }))
    }
}

/// A disk on a partition.
///
/// # Examples
///
/// A disk that can only be read, and that keeps nothing:
///
/// ```
/// use sim::block::{Bio, BioOp, BlockDevice, SECTOR_BYTES};
/// use sim::flash::{Done, Failed, Fault};
/// use sim::mtd::{Mtd, NandDriver};
/// use sim::units::Ns;
/// #[derive(Clone)]
/// struct ReadOnly<D>(Mtd<D>);
///
/// impl<D: NandDriver> BlockDevice for ReadOnly<D> {
///     type Driver = D;
///     fn mtd(&self) -> &Mtd<D> { &self.0 }
///     fn mtd_mut(&mut self) -> &mut Mtd<D> { &mut self.0 }
///     fn submit(&mut self, now: Ns, bio: Bio) -> Done {
///         match bio.op {
///             BioOp::Read => {
///                 let offset = bio.sector * u64::from(SECTOR_BYTES);
///                 self.0.read(now, offset, bio.sectors * SECTOR_BYTES)
///             }
///             BioOp::Write => Err(Failed { at: now, fault: Fault::ProgramFailed }),
///         }
///     }
/// }
/// ```
pub trait BlockDevice: Clone {
    /// What drives the chip at the bottom.
    type Driver: NandDriver;
    /// The partition below.
    fn mtd(&self) -> &Mtd<Self::Driver>;
    /// The partition below, for changes that the laboratory makes.
    fn mtd_mut(&mut self) -> &mut Mtd<Self::Driver>;
    /// Its size (`set_capacity`).
    fn sectors(&self) -> u64 {
        self.mtd().size_bytes() / u64::from(SECTOR_BYTES)
    }
    /// Reads or writes sectors. An error is that of the whole bio, after all of it was tried.
    fn submit(&mut self, now: Ns, bio: Bio) -> Done;
    /// Writes what it keeps in memory (REQ_OP_FLUSH). A disk without a write cache keeps nothing.
    fn flush(&mut self, now: Ns) -> Done {
        Ok(now)
    }
    /// Makes another policy choose the blocks that it collects. Returns false if it collects none.
    fn set_victim(&mut self, _victim: Box<dyn Victim>) -> bool {
        false
    }
    /// What the next writes write, for a survey after a power cut.
    fn will_write(&mut self, _source: Option<Source>) {}
    /// Forgets what is in memory, and finds on the flash what is needed, after an operation was
    /// interrupted or not. None if it is not modelled.
    fn attach(&mut self, _now: Ns, _torn: Option<TornAt>) -> Option<Done> {
        None
    }
    /// What wrote a sector; none for zeros.
    fn source_of(&self, _sector: u64) -> Option<Source> {
        None
    }
    /// The last descriptor is closed (`release` of its `block_device_operations`). No caller is
    /// told of a failure.
    fn release(&mut self, now: Ns) -> Done {
        Ok(now)
    }
}
