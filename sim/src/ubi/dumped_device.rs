//! A dump of a device, or an image by ubinize: what its headers say, on the chip and attached.
//!
//! Mirrors what agent/fs/dump.c and format.c do before a real kernel attaches: every block is
//! erased, gets the pages of the dump, and behind its end a new erase-counter header. Of
//! drivers/mtd/ubi of Linux 6.1 it mirrors autoresize of build.c; attach.rs has the attach, which
//! resolves two blocks of one LEB.
//!
//! Left out, and refused: a kernel with fastmap, headers elsewhere than this chip's driver puts
//! them, a volume header that is broken with data behind it (add_corrupted).
//!
//! Invariant: a block's header is taken over as the scan would read it, whatever it says.

use super::attach::{data_start, leb_bytes, Reserved, LAYOUT_LEBS};
use super::volumes::other_ranges;
use super::{align, Block, Header, Holds, Leb, Ubi, HEADER_BYTES};
use crate::errno::{FsError, Result};
use crate::mtd::{Mtd, NandDriver};
use crate::profile::KernelFacts;
use crate::units::Ns;

/// The erase-counter header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpedCounter {
    /// There is none.
    Missing,
    /// Its sum is wrong.
    Torn,
    /// How often the block was erased.
    Whole(u32),
}

/// Whose LEB a block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpedLeb {
    /// A copy of the table of volumes.
    Layout(u32),
    /// A LEB of a volume, by its place in [`Dumped::volumes`].
    Volume(usize, u32),
    /// What an attach deletes: a fastmap's, of a volume that is gone, or past a volume's end.
    Deleted,
}

/// The volume header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpedHolds {
    /// There is none.
    Nothing,
    /// Its sum is wrong.
    Torn,
    /// It is whole.
    Leb {
        /// What it says the block has.
        leb: DumpedLeb,
        /// `sqnum`.
        sequence: u64,
        /// Of a copy (`copy_flag`) the bytes of its data, and whether their sum is right.
        copied: Option<(u32, bool)>,
    },
}

/// A block of a dump.
#[derive(Clone, Copy, Debug)]
pub struct DumpedBlock {
    /// Its erase-counter header.
    pub counter: DumpedCounter,
    /// Its volume header.
    pub holds: DumpedHolds,
    /// The end of its last page that is not blank.
    pub programmed_bytes: u32,
    /// It is marked bad.
    pub is_bad: bool,
}

/// A volume of the table.
#[derive(Clone, Copy, Debug)]
pub struct DumpedVolume {
    /// `reserved_pebs`.
    pub lebs: u32,
    /// UBI_VTBL_AUTORESIZE_FLG: the first attach gives it all blocks that are left.
    pub autoresize: bool,
}

/// What a dump says.
#[derive(Clone, Debug)]
pub struct Dumped {
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Where the volume header is (`vid_hdr_offset`).
    pub header_bytes: u32,
    /// Where the data is (`leb_start`).
    pub leb_start: u32,
    /// Its blocks, the first of the partition first.
    pub blocks: Vec<DumpedBlock>,
    /// Its volumes, in the order of their numbers.
    pub volumes: Vec<DumpedVolume>,
    /// The one that the program has.
    pub program: usize,
}

impl Dumped {
    /// How often a block of the partition was erased, as far as the dump says.
    pub fn erases(&self, block: u32) -> Option<u32> {
        match self.blocks.get(block as usize)?.counter {
            DumpedCounter::Whole(erases) => Some(erases),
            DumpedCounter::Missing | DumpedCounter::Torn => None,
        }
    }

    /// The blocks of the partition that it marks bad.
    pub fn bad_blocks(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.blocks).filter(|(_, block)| block.is_bad).map(|(number, _)| number)
    }

    /// What of it is not modelled on this partition, or does not fit.
    fn check<D: NandDriver>(&self, mtd: &Mtd<D>) -> Result<()> {
        let header_bytes = align(HEADER_BYTES, mtd.subpage_bytes());
        if self.block_bytes != mtd.block_bytes() {
            return Err(FsError::too_small(format!(
                "the dump has blocks of {} bytes, this chip of {}",
                self.block_bytes,
                mtd.block_bytes()
            )));
        }
        if self.blocks.len() as u64 > u64::from(mtd.blocks()) {
            return Err(FsError::too_small(format!(
                "the dump has {} blocks, this partition {}",
                self.blocks.len(),
                mtd.blocks()
            )));
        }
        if (self.header_bytes, self.leb_start) != (header_bytes, data_start(mtd)) {
            return Err(FsError::NotModelled("a UBI whose headers this chip has elsewhere"));
        }
        let is_corrupted = |block: &DumpedBlock| {
            let is_torn = matches!(block.counter, DumpedCounter::Whole(_))
                && block.holds == DumpedHolds::Torn;
            is_torn && block.programmed_bytes > self.leb_start
        };
        if self.blocks.iter().any(is_corrupted) {
            return Err(FsError::NotModelled("a block of UBI whose volume header is broken"));
        }
        Ok(())
    }

    /// The LEBs of each volume. The one that grows gets what is left.
    fn sizes<D: NandDriver>(&self, mtd: &Mtd<D>) -> Result<Vec<u32>> {
        let mut sizes: Vec<u32> = self.volumes.iter().map(|volume| volume.lebs).collect();
        let taken: u64 = sizes.iter().map(|&lebs| u64::from(lebs)).sum();
        let Reserved { left, replacements } = Reserved::of(mtd);
        let Some(spare) = u64::from(left).checked_sub(taken) else {
            return Err(FsError::too_small(format!(
                "the volumes of the dump take {taken} LEBs; this partition has {left}"
            )));
        };
        let available = spare.saturating_sub(u64::from(replacements)) as u32;
        if let Some(at) = self.volumes.iter().position(|volume| volume.autoresize) {
            sizes[at] += available;
        }
        Ok(sizes)
    }
}

impl DumpedBlock {
    fn written_bytes(&self, leb_start: u32) -> u32 {
        let written = self.programmed_bytes.saturating_sub(leb_start);
        match self.holds {
            // The attach reads a copy's data, and sees that it was not finished.
            DumpedHolds::Leb { copied: Some((bytes, false)), .. } => {
                written.min(bytes.saturating_sub(1))
            }
            _ => written,
        }
    }

    fn holds(&self, others: &[std::ops::Range<u32>], program: usize) -> Holds {
        match self.holds {
            DumpedHolds::Nothing => Holds::Nothing,
            DumpedHolds::Torn => Holds::Torn,
            DumpedHolds::Leb { leb, sequence, copied } => Holds::Leb {
                leb: match leb {
                    DumpedLeb::Layout(copy) if copy < LAYOUT_LEBS => Leb::Layout(copy),
                    DumpedLeb::Volume(volume, leb) if volume == program => Leb::Data(leb),
                    DumpedLeb::Volume(volume, leb) => Leb::Other(others[volume].start + leb),
                    DumpedLeb::Layout(_) | DumpedLeb::Deleted => Leb::Fastmap(0),
                },
                sequence,
                copied_bytes: copied.map(|(bytes, _)| bytes),
            },
        }
    }
}

impl<D: NandDriver> Ubi<D> {
    /// Puts a dump onto the partition, and headers behind its end. It is not attached yet.
    pub fn put(mtd: Mtd<D>, facts: KernelFacts, dumped: &Dumped) -> Result<Ubi<D>> {
        dumped.check(&mtd)?;
        let sizes = dumped.sizes(&mtd)?;
        let others = other_ranges(&sizes, dumped.program);
        let block = |number: u32| {
            let Some(known) = dumped.blocks.get(number as usize) else {
                return Block {
                    erases: mtd.block_erases(number),
                    header: Header::Missing,
                    holds: Holds::Nothing,
                    written_bytes: 0,
                };
            };
            let (erases, header) = match known.counter {
                DumpedCounter::Missing => (0, Header::Missing),
                DumpedCounter::Torn => (0, Header::Torn),
                DumpedCounter::Whole(erases) => (erases, Header::Whole),
            };
            let holds = known.holds(&others, dumped.program);
            Block { erases, header, holds, written_bytes: known.written_bytes(dumped.leb_start) }
        };
        let blocks: Vec<Block> = (0..mtd.blocks()).map(block).collect();
        let sequence = |block: &Block| match block.holds {
            Holds::Leb { sequence, .. } => sequence,
            Holds::Nothing | Holds::Torn => 0,
        };
        let sequence = blocks.iter().map(sequence).max().unwrap_or(0);
        debug_assert_eq!(leb_bytes(&mtd), mtd.block_bytes() - dumped.leb_start);
        let mut ubi = Ubi::new(mtd, facts, &sizes, dumped.program, blocks);
        ubi.sequence = sequence;
        ubi.is_resizing = dumped.volumes.iter().any(|volume| volume.autoresize);
        for number in 0..ubi.mtd.blocks() {
            if !ubi.mtd.is_bad(number) {
                ubi.put_block_of(number, dumped.blocks.get(number as usize))?;
            }
        }
        Ok(ubi)
    }

    /// Erases a block and writes its pages; one behind the dump gets an erase-counter header.
    fn put_block_of(&mut self, number: u32, block: Option<&DumpedBlock>) -> Result<Ns> {
        let now = self.mtd.erase(Ns::ZERO, number)?;
        match block {
            Some(DumpedBlock { programmed_bytes: 0, .. }) => Ok(now),
            Some(block) => {
                Ok(self.mtd.write(now, self.address(number, 0), block.programmed_bytes)?)
            }
            None => self.write_erase_header(now, number),
        }
    }
}
