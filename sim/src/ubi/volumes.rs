//! The volumes of a UBI device, as they are made: sizes, images, and which one the program has.
//!
//! Mirrors drivers/mtd/ubi of Linux 6.1: vmt.c (ubi_create_volume), upd.c (ubi_start_update,
//! ubi_more_update_data) and vtbl.c (ubi_change_vtbl_record). agent/fs/layout.c makes the same
//! volumes in the same order on a real kernel.
//!
//! block.rs reads the other volumes. Left out: writing them after they were made, static volumes'
//! checks when they are opened, removing and resizing a volume.
//!
//! Invariant: LEBs of the other volumes are numbered one after the other, in the order of volumes.

use super::{Leb, Ubi, LAYOUT_LEBS};
use crate::causes::{Cause, Causes};
use crate::errno::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;
use serde::Deserialize;
use std::ops::Range;

/// A volume: its size, and how much an update writes to it before the program begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// Rounded up to whole LEBs; 0 for all that is left.
    pub bytes: u64,
    /// The fewest LEBs that it has.
    pub lebs_min: u32,
    /// The image that a volume update writes; 0 for none.
    pub image_bytes: u64,
}

/// The volumes of a device, in the order in which they are made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volumes {
    /// At least one.
    pub volumes: Vec<Volume>,
    /// The one whose LEBs the file system has.
    pub program: usize,
    /// Whether the kernel has fastmaps and writes one when it first can (`fm_autoconvert`).
    #[serde(default)]
    pub fastmap: bool,
}

impl Default for Volumes {
    /// One volume over the whole device.
    fn default() -> Volumes {
        Volumes { volumes: vec![Volume::default()], program: 0, fastmap: false }
    }
}

impl Volumes {
    /// The LEBs of each volume, of so many that are there. Fails where these are too few.
    pub(super) fn lebs(&self, mut left: u32, leb_bytes: u32) -> Result<Vec<u32>> {
        let mut found = Vec::new();
        for (number, volume) in self.volumes.iter().enumerate() {
            let wanted = match volume.bytes {
                0 => u64::from(left),
                bytes => bytes.div_ceil(u64::from(leb_bytes)).max(u64::from(volume.lebs_min)),
            };
            let lebs = u32::try_from(wanted).ok().filter(|lebs| *lebs <= left);
            let Some(lebs) = lebs else {
                return Err(FsError::too_small(format!(
                    "volume {number} of UBI takes {wanted} LEBs; {left} of the partition are left"
                )));
            };
            left -= lebs;
            found.push(lebs);
        }
        Ok(found)
    }

    /// The LEBs of the program's volume. See `lebs`.
    pub fn program_lebs(&self, left: u32, leb_bytes: u32) -> Result<u32> {
        Ok(self.lebs(left, leb_bytes)?[self.program])
    }
}

/// The LEBs of each volume among those of all but the program's.
pub(super) fn other_ranges(sizes: &[u32], program: usize) -> Vec<Range<u32>> {
    let mut first = 0;
    let of_volume = |(number, lebs): (usize, &u32)| {
        let begin = first;
        first += if number == program { 0 } else { *lebs };
        begin..first
    };
    sizes.iter().enumerate().map(of_volume).collect()
}

impl<D: NandDriver> Ubi<D> {
    /// Makes every volume and writes its image, if it has one.
    pub(super) fn make_volumes(
        &mut self,
        mut now: Ns,
        volumes: &Volumes,
        sizes: &[u32],
    ) -> Result<Ns> {
        let mut first = 0;
        for (number, (volume, lebs)) in volumes.volumes.iter().zip(sizes).enumerate() {
            now = self.change_volume_table(now)?;
            if self.fastmap.is_some() {
                now = self.update_fastmap(now)?; // ubi_volume_notify
            }
            if number == volumes.program {
                continue;
            }
            if volume.image_bytes > 0 {
                now = self.update_volume(now, first, volume.image_bytes)?;
            }
            first += lebs;
        }
        Ok(now)
    }

    /// ubi_change_vtbl_record: both copies of the table are written again.
    pub(super) fn change_volume_table(&mut self, mut now: Ns) -> Result<Ns> {
        for copy in 0..LAYOUT_LEBS {
            now = self.change_leb(now, Leb::Layout(copy), self.table_bytes())?;
        }
        Ok(now)
    }

    /// UBI_IOCVOLUP of a volume that is empty: the marker is set, the LEBs are written, the marker
    /// is cleared.
    fn update_volume(&mut self, now: Ns, first: u32, image_bytes: u64) -> Result<Ns> {
        let now = self.change_volume_table(now)?;
        let mut now = self.flush_works(now)?;
        let mut left = image_bytes;
        for leb in first.. {
            if left == 0 {
                break;
            }
            let length = left.min(u64::from(self.leb_bytes)) as u32;
            left -= u64::from(length);
            let written = super::align(length, self.mtd.page_bytes());
            let causes = Causes::of(Cause::Metadata, written);
            let leb = Leb::Other(leb);
            now = self.lock_leb(now, leb)?;
            let outcome = self.write_new(now, leb, None, (0, written, &causes));
            now = self.end_write(outcome)?;
        }
        let now = self.flush_works(now)?;
        self.change_volume_table(now)
    }
}
