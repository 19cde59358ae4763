//! Attaching a partition: ubiformat, the scan, and the volumes.
//!
//! volumes.rs makes them.
//!
//! Mirrors what ubiformat writes, and of drivers/mtd/ubi of Linux 6.1: attach.c (scan_all,
//! scan_peb, ubi_add_to_av, ubi_compare_lebs), vtbl.c (ubi_read_volume_table,
//! ubi_update_layout_vol), eba.c (ubi_eba_init), wl.c (ubi_wl_init) and build.c
//! (ubi_detach_mtd_dev). An unmapped LEB whose block was not erased yet is mapped again
//! after an attach, as ubi_leb_unmap documents.
//!
//! Left out: a volume table that was torn while it was created.

use super::fastmap::{fastmap_blocks, fastmap_lebs, Found};
use super::fastmap_wl::Fastmap;
use super::io::Seen;
use super::scanned::Scanned;
use super::volumes::{other_ranges, Volumes};
use super::wl::{WearLevelling, CHANGE_BLOCKS, LEVELLING_BLOCKS, WORK_BLOCKS};
use super::{align, Block, Header, Holds, Leb, Ubi, HEADER_BYTES, UNMAPPED};
use crate::errno::{FsError, Result};
use crate::flash::{Flash, Torn};
use crate::ledger::SpaceTable;
use crate::mtd::{Mtd, NandDriver, TornAt};
use crate::profile::KernelFacts;
use crate::sched::{Sched, Task};
use crate::units::Ns;
use std::ops::Range;

/// Copies of the volume table (UBI_LAYOUT_VOLUME_EBS).
pub(super) const LAYOUT_LEBS: u32 = 2;
/// UBI_MAX_VOLUMES.
pub const VOLUMES_MAX: u32 = 128;
/// UBI_VTBL_RECORD_SIZE.
pub const VOLUME_RECORD_BYTES: u32 = 172;
/// CONFIG_MTD_UBI_BEB_LIMIT: expected bad blocks per 1024.
const BAD_PER_1024: u32 = 20;

/// get_bad_peb_limit: depends on the size of the whole chip, because all its bad blocks may be in
/// this partition.
fn bad_block_reserve(chip_blocks: u32) -> u32 {
    let limit = (u64::from(chip_blocks) * u64::from(BAD_PER_1024) / 1024) as u32;
    let covered = u64::from(limit) * 1024 / u64::from(BAD_PER_1024);
    limit + u32::from(covered < u64::from(chip_blocks))
}

/// Blocks of a partition that do not belong to the volume. Blocks that are already bad count
/// towards the reserve (`beb_rsvd_level`).
pub fn overhead_blocks<D: NandDriver>(mtd: &Mtd<D>, volumes: &Volumes) -> u32 {
    let reserve = bad_block_reserve(mtd.flash().profile().blocks);
    let of_fastmap = if volumes.fastmap { fastmap_blocks(mtd.blocks(), leb_bytes(mtd)) } else { 0 };
    LAYOUT_LEBS + WORK_BLOCKS + of_fastmap + reserve.max(mtd.bad_blocks())
}

/// The offset of the data in a block: after both headers, at a page.
pub(super) fn data_start<D: NandDriver>(mtd: &Mtd<D>) -> u32 {
    align(align(HEADER_BYTES, mtd.subpage_bytes()) + HEADER_BYTES, mtd.page_bytes())
}

/// The size of a LEB on a partition.
pub fn leb_bytes<D: NandDriver>(mtd: &Mtd<D>) -> u32 {
    mtd.block_bytes() - data_start(mtd)
}

/// The error of an attach that cannot read the partition.
fn not_readable(error: FsError) -> FsError {
    match error {
        FsError::Unreadable(_) => FsError::NotModelled("an attach of UBI that cannot read a block"),
        other => other,
    }
}

/// What a kernel without fastmap keeps of a partition for volumes.
pub(super) struct Reserved {
    /// Good blocks that volumes and replacements of bad ones can have.
    pub left: u32,
    /// Those that replace bad ones, as long as volumes leave them (`beb_rsvd_level`).
    pub replacements: u32,
}

impl Reserved {
    pub fn of<D: NandDriver>(mtd: &Mtd<D>) -> Reserved {
        let bad = mtd.bad_blocks();
        let wanted = bad_block_reserve(mtd.flash().profile().blocks);
        Reserved {
            left: (mtd.blocks() - bad).saturating_sub(LAYOUT_LEBS + WORK_BLOCKS),
            replacements: wanted.saturating_sub(bad),
        }
    }
}

impl<D: NandDriver> Ubi<D> {
    /// A device of volumes of these sizes, before its attach.
    pub(super) fn new(
        mtd: Mtd<D>,
        facts: KernelFacts,
        sizes: &[u32],
        program: usize,
        blocks: Vec<Block>,
    ) -> Ubi<D> {
        let lebs = sizes[program];
        let others = sizes.iter().sum::<u32>() - lebs;
        Ubi {
            leb_bytes: leb_bytes(&mtd),
            header_bytes: align(HEADER_BYTES, mtd.subpage_bytes()),
            leb_start: data_start(&mtd),
            map: vec![UNMAPPED; lebs as usize],
            others: vec![UNMAPPED; others as usize],
            other_volumes: other_ranges(sizes, program),
            layout: [UNMAPPED; LAYOUT_LEBS as usize],
            sequence: 0,
            wl: WearLevelling::new(blocks.len() as u32),
            blocks,
            sched: Sched::new(mtd.costs().sched_clock_ns, &facts),
            facts,
            foreground: Some(Task::Program),
            locked: None,
            is_working: false,
            is_yielding: false,
            has_buffer: false,
            chip_released: false,
            thread_waits: false,
            is_resizing: false,
            is_read_only: false,
            has_refused: false,
            reserve: 0,
            own_time: Ns::ZERO,
            fastmap: None,
            mtd,
        }
    }

    /// Erases the partition and writes an erase-counter header to every block (ubiformat). At
    /// `now`, when that is long over, attaches it and makes its volumes (ubiattach, ubimkvol,
    /// ubiupdatevol).
    pub fn attach_formatted(
        mtd: Mtd<D>,
        now: Ns,
        facts: KernelFacts,
        volumes: &Volumes,
    ) -> Result<(Ubi<D>, Ns)> {
        let blocks = mtd.blocks();
        let overhead = overhead_blocks(&mtd, volumes);
        if blocks <= overhead {
            return Err(FsError::too_small(format!(
                "UBI keeps {overhead} blocks of this partition for itself; it has {blocks}"
            )));
        }
        let sizes = volumes.lebs(blocks - overhead, leb_bytes(&mtd))?;
        let used = |block| Block {
            erases: mtd.block_erases(block),
            header: Header::Missing,
            holds: Holds::Nothing,
            written_bytes: 0,
        };
        let formatted = (0..blocks).map(used).collect();
        let mut ubi = Ubi::new(mtd, facts, &sizes, volumes.program, formatted);
        ubi.fastmap = volumes
            .fastmap
            .then(|| Fastmap::new(blocks, fastmap_lebs(blocks, leb_bytes(&ubi.mtd))));
        let mut good = 0;
        for block in 0..blocks {
            if !ubi.mtd.is_bad(block) {
                ubi.format_block(now, block, good)?;
                good += 1;
            }
        }
        let now = ubi.attach(now)?;
        let now = ubi.make_volumes(now, volumes, &sizes)?;
        Ok((ubi, now))
    }

    /// ubiformat of one block: erases it and writes a header with the erase count. The first two
    /// good blocks get an empty volume table.
    fn format_block(&mut self, now: Ns, block: u32, good: u32) -> Result<Ns> {
        let now = self.mtd.erase(now, block)?;
        if good >= LAYOUT_LEBS {
            return self.write_erase_header(now, block);
        }
        let length = self.leb_start + self.table_bytes();
        let state = &mut self.blocks[block as usize];
        state.header = Header::Whole;
        let leb = Leb::Layout(good);
        state.holds = Holds::Leb { leb, sequence: 0, copied_bytes: None };
        Ok(self.mtd.write(now, self.address(block, 0), length)?)
    }

    /// Takes what UBI keeps of the partition, and leaves the volume's LEBs.
    pub fn account(&self, table: &mut SpaceTable) {
        let (block_bytes, bad) = (self.mtd.block_bytes(), self.mtd.bad_blocks());
        let reserve = bad_block_reserve(self.mtd.flash().profile().blocks).saturating_sub(bad);
        for (name, blocks) in [
            ("bad blocks", bad),
            ("bad-block reserve", reserve),
            ("layout volume", LAYOUT_LEBS),
            ("wear levelling", LEVELLING_BLOCKS),
            ("atomic LEB change", CHANGE_BLOCKS),
        ] {
            table.take_units("ubi", name, blocks, block_bytes);
        }
        if self.fastmap.is_some() {
            table.take_units("ubi", "fastmap", self.fastmap_blocks(), block_bytes);
        }
        if !self.others.is_empty() {
            table.take_units("ubi", "other volumes", self.others.len() as u32, block_bytes);
        }
        table.take("ubi", "headers", i64::from(self.lebs()) * i64::from(self.leb_start));
        table.tell("lebs", u64::from(self.lebs()));
        table.tell("leb_bytes", u64::from(self.leb_bytes));
        table.tell("page_bytes", u64::from(self.page_bytes()));
        table.tell("subpage_bytes", u64::from(self.mtd.subpage_bytes()));
        table.tell("bad_block_reserve", u64::from(reserve));
    }

    /// The blocks that UBI keeps for fastmaps.
    fn fastmap_blocks(&self) -> u32 {
        let blocks = self.blocks.len() as u32;
        self.fastmap.as_ref().map_or(0, |_| fastmap_blocks(blocks, self.leb_bytes))
    }

    /// `vtbl_size`: as many records as fit into a LEB (ubi_read_volume_table).
    pub(super) fn table_bytes(&self) -> u32 {
        let slots = (self.leb_bytes / VOLUME_RECORD_BYTES).min(VOLUMES_MAX);
        align(slots * VOLUME_RECORD_BYTES, self.mtd.page_bytes())
    }

    /// ubi_detach_mtd_dev.
    pub fn detach(&mut self, now: Ns) -> Result<Ns> {
        let now = if self.fastmap.is_some() { self.update_fastmap(now)? } else { now };
        self.stop_thread(now)
    }

    /// ubi_attach_mtd_dev.
    pub fn attach_again(&mut self, now: Ns) -> Result<Ns> {
        self.attach(now + self.mtd.costs().ubi_attach_ns)
    }

    /// Reboots the machine and attaches.
    pub fn power_up(&mut self, now: Ns, torn: Option<Torn>) -> Result<Ns> {
        self.sched = Sched::new(self.mtd.costs().sched_clock_ns, &self.facts);
        self.foreground = Some(Task::Program);
        (self.locked, self.is_working) = (None, false);
        (self.has_buffer, self.chip_released) = (false, false);
        let torn = self.mtd.power_on(torn);
        for number in 0..self.blocks.len() as u32 {
            // A write that was in progress may not have happened.
            let end = self.mtd.programmed_bytes(number);
            self.blocks[number as usize].written_bytes = end.saturating_sub(self.leb_start);
        }
        if let Some(TornAt::Program { offset, .. }) = torn {
            let size = u64::from(self.mtd.block_bytes());
            let (number, at) = ((offset / size) as usize, (offset % size) as u32);
            self.blocks[number].written_bytes = at.saturating_sub(self.leb_start);
        }
        self.attach(now)
    }

    /// Bytes of a LEB up to the end of what was written; torn pages do not count.
    pub fn readable_bytes(&self, leb: u32) -> u32 {
        match self.map[leb as usize] {
            UNMAPPED => 0,
            block => self.blocks[block as usize].written_bytes,
        }
    }

    /// What a LEB has behind an offset is torn.
    pub fn forget_behind(&mut self, leb: u32, end: u32) {
        if let Some(block) = self.map.get(leb as usize).filter(|&&block| block != UNMAPPED) {
            let written = &mut self.blocks[*block as usize].written_bytes;
            *written = end.min(*written);
        }
    }

    /// Whether a LEB has a programmed page at or after an offset.
    pub fn is_used_behind(&self, leb: u32, offset: u32) -> bool {
        match self.map[leb as usize] {
            UNMAPPED => false,
            block => self.mtd.programmed_bytes(block) > self.leb_start + offset,
        }
    }

    /// ubi_attach_mtd_dev.
    fn attach(&mut self, now: Ns) -> Result<Ns> {
        self.map.fill(UNMAPPED);
        self.others.fill(UNMAPPED);
        self.layout.fill(UNMAPPED);
        self.wl = WearLevelling::new(self.blocks.len() as u32);
        self.forget_fastmap();
        let (mut scanned, mut now) = self.scan(now)?;
        for copy in 0..LAYOUT_LEBS {
            if let Some(&block) = scanned.volumes.get(&Leb::Layout(copy)) {
                let (seen, later) = self.read_all(now, block, self.table_bytes())?;
                if seen == Seen::BitFlips {
                    scanned.scrub.insert(block);
                }
                now = later;
            }
        }
        now = self.take_over(now, &scanned)?;
        self.ensure_levelling(now);
        if self.looks_for_fastmap() {
            self.ensure_anchor(now);
        }
        self.reserve = self.reserve_there();
        if std::mem::take(&mut self.is_resizing) {
            now = self.change_volume_table(now)?; // autoresize
        }
        self.enable_thread(now)
    }

    /// The first half of ubi_attach: by a fastmap, or by a scan.
    fn scan(&mut self, mut now: Ns) -> Result<(Scanned, Ns)> {
        let mut scanned = Scanned::default();
        let mut blocks = 0..self.blocks.len() as u32;
        if self.looks_for_fastmap() {
            now = self.scan_blocks(now, self.anchors(), &mut scanned)?;
            let (found, later) = self.scan_fastmap(now, &scanned)?;
            now = later;
            match found {
                Found::Whole(attached) => return Ok((attached, now)),
                Found::Nothing => blocks.start = self.anchors().end,
                Found::Bad => scanned = Scanned::default(),
            }
        }
        now = self.scan_blocks(now, blocks, &mut scanned)?;
        self.guess_erases();
        Ok((scanned, now))
    }

    fn scan_blocks(
        &mut self,
        mut now: Ns,
        blocks: Range<u32>,
        scanned: &mut Scanned,
    ) -> Result<Ns> {
        for block in blocks {
            if !self.mtd.is_bad(block) {
                now = self.scan_block(now, block, scanned)?;
            }
        }
        Ok(now)
    }

    /// ubi_io_read of the first bytes of a block's data.
    fn read_all(&mut self, now: Ns, block: u32, bytes: u32) -> Result<(Seen, Ns)> {
        self.io_read(now, block, self.leb_start, bytes).map_err(not_readable)
    }

    /// Gives blocks without a header the mean erase count of the others (`mean_ec`).
    fn guess_erases(&mut self) {
        let known = self.blocks.iter().filter(|block| block.header == Header::Whole);
        let count = known.clone().count() as u64;
        let sum: u64 = known.map(|block| u64::from(block.erases)).sum();
        let mean = sum.checked_div(count).unwrap_or(0);
        for block in &mut self.blocks {
            if block.header != Header::Whole {
                block.erases = mean as u32;
            }
        }
    }

    /// The reserve for bad blocks gets as many as there are (ubi_eba_init).
    fn reserve_there(&self) -> u32 {
        let wanted = bad_block_reserve(self.mtd.flash().profile().blocks);
        let bad = self.mtd.bad_blocks();
        let left = self.mtd.blocks() - bad - LAYOUT_LEBS - WORK_BLOCKS - self.fastmap_blocks();
        let volumes = (self.map.len() + self.others.len()) as u32;
        wanted.saturating_sub(bad).min(left.saturating_sub(volumes))
    }

    /// ubi_wl_init and ubi_eba_init.
    fn take_over(&mut self, now: Ns, scanned: &Scanned) -> Result<Ns> {
        (self.is_read_only, self.has_refused) = (false, false);
        self.reserve = 0;
        for &block in scanned.torn.iter().rev().chain(&scanned.erase) {
            self.wl.add_erase(block);
        }
        for &block in &scanned.free {
            self.wl.add_free(block, self.blocks[block as usize].erases);
        }
        for (&leb, &block) in &scanned.volumes {
            let scrub = scanned.scrub.contains(&block);
            self.wl.add_used(block, self.blocks[block as usize].erases, scrub);
            *self.place_mut(leb) = block;
        }
        match self.fastmap {
            Some(_) => self.drop_old_fastmaps(now, scanned),
            None => Ok(now),
        }
    }

    /// scan_peb.
    fn scan_block(&mut self, now: Ns, block: u32, scanned: &mut Scanned) -> Result<Ns> {
        let Block { header, holds, written_bytes, .. } = self.blocks[block as usize];
        let (first, now) = self.scan_header(now, block, 0)?;
        if header == Header::Missing {
            let list = if first { &mut scanned.torn } else { &mut scanned.erase };
            list.push(block);
            return Ok(now);
        }
        let (second, now) = self.scan_header(now, block, self.header_bytes)?;
        let flips = first || second;
        scanned.has_torn_header |= holds == Holds::Torn;
        match (holds, header) {
            (Holds::Nothing, Header::Whole) if !flips => scanned.free.push(block),
            (Holds::Torn, Header::Whole) => {
                // check_corruption: a torn volume header has no data after it.
                assert_eq!(written_bytes, 0, "data behind a torn header");
                scanned.torn.push(block);
                return Ok(self.read_all(now, block, self.leb_bytes)?.1);
            }
            (Holds::Nothing | Holds::Torn, _) => scanned.torn.push(block),
            (Holds::Leb { leb: Leb::Fastmap(_), .. }, _) if self.fastmap.is_some() => {
                scanned.fastmap.push(block);
            }
            // UBI_COMPAT_DELETE: a kernel without fastmap erases it.
            (Holds::Leb { leb: Leb::Fastmap(_), .. }, _) => scanned.torn.push(block),
            (Holds::Leb { leb, .. }, _) => {
                if flips {
                    scanned.scrub.insert(block);
                }
                return self.add_to_volume(now, block, leb, scanned);
            }
        }
        Ok(now)
    }

    /// Returns whether bit errors of a header were corrected.
    fn scan_header(&mut self, now: Ns, block: u32, offset: u32) -> Result<(bool, Ns)> {
        match self.read_header(now, block, offset)? {
            (Seen::Damaged, now) => Err(not_readable(FsError::Unreadable(now))),
            (seen, now) => Ok((seen == Seen::BitFlips, now)),
        }
    }

    /// ubi_add_to_av and ubi_compare_lebs: of two blocks with the same LEB the newer one counts,
    /// unless it is an unfinished copy.
    pub(super) fn add_to_volume(
        &mut self,
        now: Ns,
        block: u32,
        leb: Leb,
        scanned: &mut Scanned,
    ) -> Result<Ns> {
        let Some(&other) = scanned.volumes.get(&leb) else {
            scanned.volumes.insert(leb, block);
            return Ok(now);
        };
        let (older, newer) = if self.sequence_of(block) > self.sequence_of(other) {
            (other, block)
        } else {
            (block, other)
        };
        let Block { holds, written_bytes, .. } = self.blocks[newer as usize];
        let Holds::Leb { copied_bytes: Some(bytes), .. } = holds else {
            scanned.volumes.insert(leb, newer);
            scanned.erase.push(older);
            return Ok(now);
        };
        let mut now = now;
        if newer == other {
            now = self.scan_header(now, newer, self.header_bytes)?.1;
        }
        let (seen, now) = self.read_all(now, newer, bytes)?;
        if seen == Seen::BitFlips {
            scanned.scrub.insert(newer);
        }
        if written_bytes >= bytes {
            scanned.volumes.insert(leb, newer);
            scanned.erase.push(older);
        } else {
            scanned.volumes.insert(leb, older);
            scanned.torn.push(newer);
        }
        Ok(now)
    }

    fn sequence_of(&self, block: u32) -> u64 {
        match self.blocks[block as usize].holds {
            Holds::Leb { sequence, .. } => sequence,
            Holds::Nothing | Holds::Torn => 0,
        }
    }
}
