//! UBI: headers of blocks, the table of volumes, and which block has which LEB.
//!
//! Mirrors what attach.c, vtbl.c and fastmap.c of drivers/mtd/ubi read. All blocks are scanned, as
//! without fastmap. Of two blocks of a LEB the newer counts, unless it is a copy that was not
//! finished. Left out: the mapping that a fastmap has, which the scan gives as well.

use crate::bytes::{crc32, is_blank, part, Fields};
use crate::flat::Flat;
use crate::problems::Problems;
use serde::Serialize;
use sim::ubi::{HEADER_BYTES, VOLUMES_MAX, VOLUME_RECORD_BYTES};
use std::collections::BTreeMap;
use std::ops::Range;

const EC_MAGIC: u32 = 0x5542_4923;
const VID_MAGIC: u32 = 0x5542_4921;
/// UBI_LAYOUT_VOLUME_ID, which is UBI_INTERNAL_VOL_START.
pub const LAYOUT_VOLUME: u32 = 0x7fff_efff;
/// UBI_FM_SB_VOLUME_ID and UBI_FM_DATA_VOLUME_ID.
const FASTMAP_VOLUME: u32 = LAYOUT_VOLUME + 1;
const FASTMAP_DATA_VOLUME: u32 = LAYOUT_VOLUME + 2;
const FASTMAP_MAGIC: u32 = 0x7b11_d69f;
const FASTMAP_BLOCKS_MAX: u32 = 32;
/// Bytes of a header.
pub const HEADER: usize = HEADER_BYTES as usize;
/// Bytes of a record of the table of volumes.
pub const RECORD: usize = VOLUME_RECORD_BYTES as usize;
/// Sizes of blocks that chips have.
const SHIFTS: Range<u32> = 12..24;
/// Classes of a histogram.
const CLASSES: u64 = 8;

/// A UBI device.
#[derive(Clone, Debug, Serialize)]
pub struct Ubi {
    /// Bytes of a physical block.
    pub peb_bytes: u64,
    /// Its smallest write, as far as the headers say.
    pub min_io_bytes: u32,
    /// Where the volume header is in a block.
    pub vid_offset: u32,
    /// Where the data is.
    pub data_offset: u32,
    /// Bytes of a logical block.
    pub leb_bytes: u64,
    /// The number that blocks of one image share.
    pub image_sequence: u32,
    /// Blocks by what they hold.
    pub pebs: Pebs,
    /// How often blocks were erased; none if no header says.
    pub erases: Option<Erases>,
    /// The fastmap, if there is one.
    pub fastmap: Option<Fastmap>,
    /// The volumes.
    pub volumes: Vec<Volume>,
}

/// Physical blocks by what they hold.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Pebs {
    /// All of them.
    pub all: u32,
    /// Of the table of volumes, of fastmap, and of volumes.
    pub used: u32,
    /// With an erase counter and nothing else.
    pub free: u32,
    /// With an older copy of a LEB, or of no volume: to be erased.
    pub stale: u32,
    /// Blank: never formatted, or a bad block that nanddump filled up.
    pub blank: u32,
    /// Marked bad in the OOB.
    pub bad: u32,
    /// With a header that is broken.
    pub corrupted: u32,
}

/// Erase counters.
#[derive(Clone, Debug, Serialize)]
pub struct Erases {
    /// The smallest.
    pub min: u64,
    /// Their mean, in thousandths.
    pub mean_milli: u64,
    /// The largest.
    pub max: u64,
    /// How many blocks are in each class.
    pub histogram: Vec<Class>,
}

/// Blocks with erase counters from `from` to `to`, both included.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Class {
    /// The smallest counter.
    pub from: u64,
    /// The largest.
    pub to: u64,
    /// How many blocks.
    pub pebs: u64,
}

/// A fastmap.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Fastmap {
    /// The block of its superblock.
    pub peb: u32,
    /// Its format.
    pub version: u8,
    /// The blocks it takes.
    pub pebs: u32,
    /// When it was written.
    pub sequence: u64,
    /// Whether its check sum is right.
    pub valid: bool,
}

/// A volume.
#[derive(Clone, Debug, Serialize)]
pub struct Volume {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// `static` or `dynamic`.
    pub kind: &'static str,
    /// Blocks reserved for it.
    pub lebs: u32,
    /// Bytes of a LEB that it can use.
    pub usable_leb_bytes: u64,
    /// Its alignment.
    pub alignment: u32,
    /// Whether it takes all free blocks when it is attached first.
    pub autoresize: bool,
    /// Whether an update of it was not finished.
    pub upd_marker: bool,
    /// LEBs that have a block.
    pub mapped_lebs: u32,
    /// Bytes of data: those of a static volume, or of the mapped LEBs of a dynamic one.
    pub data_bytes: u64,
    /// The data of each LEB in the file.
    #[serde(skip)]
    pub map: BTreeMap<u32, usize>,
}

/// A volume header.
#[derive(Clone, Copy, Debug)]
struct Vid {
    peb: u32,
    is_static: bool,
    is_copy: bool,
    volume: u32,
    leb: u32,
    data_bytes: u32,
    used_lebs: u32,
    data_crc: u32,
    sequence: u64,
}

/// An erase-counter header; none if there is none that is whole.
pub fn erase_header(bytes: &[u8]) -> Option<Fields<'_>> {
    let head = Fields::big(part(bytes, 0, HEADER));
    let whole = head.u32(0) == EC_MAGIC
        && head.u8(4) == 1
        && crc32(u32::MAX, head.part(0, 60)) == head.u32(60);
    whole.then_some(head)
}

/// A volume header; an error says what is wrong with it.
pub fn volume_header(bytes: &[u8]) -> Result<Fields<'_>, String> {
    let head = Fields::big(part(bytes, 0, HEADER));
    if head.u32(0) != VID_MAGIC {
        return Err(format!("magic 0x{:08x}, not 0x{VID_MAGIC:08x}", head.u32(0)));
    }
    sum(head)?;
    Ok(head)
}

fn sum(head: Fields<'_>) -> Result<(), String> {
    let (found, said) = (crc32(u32::MAX, head.part(0, 60)), head.u32(60));
    if found != said {
        return Err(format!("CRC 0x{found:08x}, not 0x{said:08x}"));
    }
    Ok(())
}

/// How many headers and records of volumes are whole, under the best size of a block.
pub fn score(bytes: &[u8]) -> i64 {
    let Some(size) = block_bytes(bytes) else { return 0 };
    let mut points = 0;
    for block in bytes.chunks(size) {
        let Some(head) = erase_header(block) else { continue };
        points += 1;
        let (vid, data) = (head.u32(16) as usize, head.u32(20) as usize);
        if let Ok(header) = volume_header(part(block, vid, HEADER)) {
            let is_table = header.u32(8) == LAYOUT_VOLUME;
            points += 2 + 8 * i64::from(is_table && records(part(block, data, size)).is_ok());
        }
    }
    // More than the same bytes score as anything else that lies in a volume.
    points << 32
}

/// The largest size of a block at whose multiples nearly all that is not blank is a header, and
/// which has most of these.
fn block_bytes(bytes: &[u8]) -> Option<usize> {
    let mut best = None;
    for size in SHIFTS.map(|shift| 1_usize << shift) {
        let (mut headers, mut others) = (0, 0);
        for block in bytes.chunks(size) {
            let begin = part(block, 0, HEADER);
            if erase_header(begin).is_some() {
                headers += 1;
            } else if !is_blank(begin) {
                others += 1;
            }
        }
        let sensible = headers > 0 && others * 4 <= headers;
        if sensible && best.is_none_or(|(most, _)| headers >= most) {
            best = Some((headers, size));
        }
    }
    best.map(|(_, size)| size)
}

/// A record of the table of volumes.
fn record(bytes: &[u8]) -> Result<Fields<'_>, String> {
    let fields = Fields::big(bytes);
    let (found, said) = (crc32(u32::MAX, fields.part(0, RECORD - 4)), fields.u32(RECORD - 4));
    if bytes.len() < RECORD || found != said {
        return Err(format!("CRC 0x{found:08x}, not 0x{said:08x}"));
    }
    Ok(fields)
}

/// Reads a UBI device; none if the bytes are none.
pub fn read(
    flat: &Flat,
    peb_bytes: Option<usize>,
    problems: &mut Problems,
) -> Result<Option<Ubi>, String> {
    let bytes = &flat.bytes;
    let Some(size) = peb_bytes.filter(|_| looks_like(bytes)).or_else(|| block_bytes(bytes)) else {
        return match looks_like(bytes) {
            true => Err("PEB 0: erase-counter header: its CRC is wrong, and no other block has \
                         one"
            .to_owned()),
            false => Ok(None),
        };
    };
    let mut scan = Scan::new(flat, size);
    for (peb, block) in (0..).zip(bytes.chunks(size)) {
        scan.block(peb, block, problems);
    }
    if scan.data_offset == 0 {
        return Err("no erase-counter header is whole".to_owned());
    }
    scan.device(problems).map(Some)
}

fn looks_like(bytes: &[u8]) -> bool {
    Fields::big(bytes).u32(0) == EC_MAGIC
}

/// What the scan knows.
struct Scan<'a> {
    flat: &'a Flat,
    size: usize,
    vid_offset: u32,
    data_offset: u32,
    image_sequence: u32,
    counters: Vec<u64>,
    pebs: Pebs,
    lebs: BTreeMap<(u32, u32), Vid>,
}

impl<'a> Scan<'a> {
    fn new(flat: &'a Flat, size: usize) -> Scan<'a> {
        Scan {
            flat,
            size,
            vid_offset: 0,
            data_offset: 0,
            image_sequence: 0,
            counters: Vec::new(),
            pebs: Pebs::default(),
            lebs: BTreeMap::new(),
        }
    }

    fn data(&self, peb: u32) -> &'a [u8] {
        let start = peb as usize * self.size;
        part(part(&self.flat.bytes, start, self.size), self.data_offset as usize, self.size)
    }

    /// scan_peb.
    fn block(&mut self, peb: u32, block: &[u8], problems: &mut Problems) {
        self.pebs.all += 1;
        if self.flat.is_bad(peb as usize * self.size, self.size) {
            self.pebs.bad += 1;
            return;
        }
        let Some(head) = erase_header(block) else {
            if is_blank(block) {
                self.pebs.blank += 1;
            } else {
                self.pebs.corrupted += 1;
                let begin = Fields::big(part(block, 0, HEADER));
                let why = match begin.u32(0) {
                    EC_MAGIC => sum(begin).err().unwrap_or_else(|| "its version".to_owned()),
                    magic => format!("magic 0x{magic:08x}, not 0x{EC_MAGIC:08x}"),
                };
                problems.add(format!("PEB {peb}: erase-counter header: {why}"));
            }
            return;
        };
        let offsets = (head.u32(16), head.u32(20));
        if self.data_offset == 0 {
            let (vid, data) = (offsets.0 as usize, offsets.1 as usize);
            if vid < HEADER || data < vid + HEADER || data >= self.size {
                self.pebs.corrupted += 1;
                problems.add(format!(
                    "PEB {peb}: erase-counter header: volume header at {vid} and data at {data} \
                     of {} bytes",
                    self.size
                ));
                return;
            }
            (self.vid_offset, self.data_offset) = offsets;
            self.image_sequence = head.u32(24);
        } else if offsets != (self.vid_offset, self.data_offset) {
            self.pebs.corrupted += 1;
            problems.add(format!(
                "PEB {peb}: erase-counter header: volume header at {} and data at {}, elsewhere \
                 at {} and {}",
                offsets.0, offsets.1, self.vid_offset, self.data_offset
            ));
            return;
        }
        let sequence = head.u32(24);
        if sequence != self.image_sequence && sequence != 0 && self.image_sequence != 0 {
            problems.add(format!(
                "PEB {peb}: image sequence {sequence}, elsewhere {}",
                self.image_sequence
            ));
        }
        self.counters.push(head.u64(8));
        self.volume_block(peb, block, problems);
    }

    /// The part of scan_peb after the erase counter.
    fn volume_block(&mut self, peb: u32, block: &[u8], problems: &mut Problems) {
        let header = part(block, self.vid_offset as usize, HEADER);
        if is_blank(header) {
            if is_blank(part(block, self.data_offset as usize, self.size)) {
                self.pebs.free += 1;
            } else {
                self.pebs.corrupted += 1;
                problems.add(format!("PEB {peb}: data without a volume header"));
            }
            return;
        }
        let head = match volume_header(header) {
            Ok(head) => head,
            Err(why) => {
                self.pebs.corrupted += 1;
                problems.add(format!("PEB {peb}: volume header: {why}"));
                return;
            }
        };
        let vid = Vid {
            peb,
            is_static: head.u8(5) == 2,
            is_copy: head.u8(6) != 0,
            volume: head.u32(8),
            leb: head.u32(12),
            data_bytes: head.u32(20),
            used_lebs: head.u32(24),
            data_crc: head.u32(32),
            sequence: head.u64(40),
        };
        self.add(vid, problems);
    }

    /// ubi_add_to_av and ubi_compare_lebs.
    fn add(&mut self, vid: Vid, problems: &mut Problems) {
        let at = (vid.volume, vid.leb);
        let Some(known) = self.lebs.get(&at).copied() else {
            self.pebs.used += 1;
            self.lebs.insert(at, vid);
            return;
        };
        self.pebs.stale += 1;
        if known.sequence == vid.sequence && known.sequence != 0 {
            problems.add(format!(
                "PEB {}: LEB {} of volume {} has the sequence number {} of PEB {}",
                vid.peb, vid.leb, vid.volume, vid.sequence, known.peb
            ));
        }
        let (older, newer) =
            if known.sequence <= vid.sequence { (known, vid) } else { (vid, known) };
        let finished = !newer.is_copy || {
            let data = part(self.data(newer.peb), 0, newer.data_bytes as usize);
            crc32(u32::MAX, data) == newer.data_crc
        };
        self.lebs.insert(at, if finished { newer } else { older });
    }

    fn device(mut self, problems: &mut Problems) -> Result<Ubi, String> {
        let table = self.table(problems)?;
        let leb_bytes = (self.size - self.data_offset as usize) as u64;
        let mut volumes = Vec::new();
        for (id, fields) in table {
            volumes.push(self.volume(id, fields, leb_bytes, problems));
        }
        let known: Vec<u32> = volumes.iter().map(|volume: &Volume| volume.id).collect();
        let of_none = self
            .lebs
            .keys()
            .filter(|(volume, _)| *volume < LAYOUT_VOLUME && known.binary_search(volume).is_err());
        let of_none = of_none.count() as u32;
        self.pebs.used -= of_none;
        self.pebs.stale += of_none;
        Ok(Ubi {
            peb_bytes: self.size as u64,
            min_io_bytes: self.min_io_bytes(),
            vid_offset: self.vid_offset,
            data_offset: self.data_offset,
            leb_bytes,
            image_sequence: self.image_sequence,
            pebs: self.pebs,
            erases: erases(&self.counters),
            fastmap: self.fastmap(),
            volumes,
        })
    }

    /// A page: data starts at one, after a header in the first page, or in a page before.
    fn min_io_bytes(&self) -> u32 {
        if let Some(pages) = self.flat.pages {
            return pages.page_bytes as u32;
        }
        match self.data_offset - self.vid_offset {
            same if same == self.vid_offset => same,
            _ => 1 << self.data_offset.trailing_zeros(),
        }
    }

    /// ubi_read_volume_table: the first copy that is whole.
    fn table(&self, problems: &mut Problems) -> Result<Vec<(u32, Fields<'a>)>, String> {
        let mut first = None;
        for copy in 0..2 {
            let Some(vid) = self.lebs.get(&(LAYOUT_VOLUME, copy)) else {
                let missing = format!("copy {copy} of the table of volumes is missing");
                problems.add(missing.clone());
                first.get_or_insert(missing);
                continue;
            };
            match records(self.data(vid.peb)) {
                Ok(table) => return Ok(table),
                Err(why) => {
                    let line = format!("PEB {}: table of volumes: {why}", vid.peb);
                    problems.add(line.clone());
                    first = Some(line);
                }
            }
        }
        Err(first.unwrap_or_else(|| "no table of volumes".to_owned()))
    }

    fn volume(
        &self,
        id: u32,
        fields: Fields<'_>,
        leb_bytes: u64,
        problems: &mut Problems,
    ) -> Volume {
        let name = fields.part(16, usize::from(fields.u16(14)).min(127));
        let name = String::from_utf8_lossy(name).into_owned();
        let usable = leb_bytes.saturating_sub(u64::from(fields.u32(8)));
        let is_static = fields.u8(12) == 2;
        let mut map = BTreeMap::new();
        let (mut data_bytes, mut used_lebs) = (0, 0);
        for (&(_, leb), vid) in self.lebs.range((id, 0)..=(id, u32::MAX)) {
            if leb >= fields.u32(0) {
                problems.add(format!(
                    "PEB {}: LEB {leb} of volume {id}, which has {}",
                    vid.peb,
                    fields.u32(0)
                ));
                continue;
            }
            if vid.is_static != is_static {
                problems.add(format!("PEB {}: its kind is not that of volume {id}", vid.peb));
            }
            map.insert(leb, vid.peb as usize * self.size + self.data_offset as usize);
            used_lebs = vid.used_lebs;
            data_bytes += if is_static { u64::from(vid.data_bytes) } else { usable };
            if is_static {
                let data = part(self.data(vid.peb), 0, vid.data_bytes as usize);
                if crc32(u32::MAX, data) != vid.data_crc {
                    problems.add(format!(
                        "PEB {}: data of LEB {leb} of the static volume {id}: its CRC is wrong",
                        vid.peb
                    ));
                }
            }
        }
        if is_static && fields.u8(13) == 0 && map.len() as u32 != used_lebs {
            problems.add(format!(
                "static volume {id}: {} of its {used_lebs} LEBs are there",
                map.len()
            ));
        }
        Volume {
            id,
            name,
            kind: if is_static { "static" } else { "dynamic" },
            lebs: fields.u32(0),
            usable_leb_bytes: usable,
            alignment: fields.u32(4),
            autoresize: fields.u8(144) & 1 != 0,
            upd_marker: fields.u8(13) != 0,
            mapped_lebs: map.len() as u32,
            data_bytes,
            map,
        }
    }

    /// ubi_scan_fastmap, as far as its superblock and its sum.
    fn fastmap(&self) -> Option<Fastmap> {
        let (_, vid) = self.lebs.range((FASTMAP_VOLUME, 0)..=(FASTMAP_VOLUME, u32::MAX)).next()?;
        let data = self.data(vid.peb);
        let head = Fields::big(data);
        let pebs = head.u32(12);
        let mut whole = head.u32(0) == FASTMAP_MAGIC && (1..=FASTMAP_BLOCKS_MAX).contains(&pebs);
        if whole {
            // The sum is made while its own field is 0.
            let mut crc = crc32(u32::MAX, part(data, 0, 8));
            crc = crc32(crc, &[0; 4]);
            crc = crc32(crc, part(data, 12, data.len()));
            for block in 1..pebs as usize {
                let peb = head.u32(16 + 4 * block);
                crc = crc32(crc, self.data(peb));
                whole &= self.lebs.contains_key(&(FASTMAP_DATA_VOLUME, block as u32));
            }
            whole &= crc == head.u32(8);
        }
        Some(Fastmap {
            peb: vid.peb,
            version: head.u8(4),
            pebs,
            sequence: vid.sequence,
            valid: whole,
        })
    }
}

/// Whether every record of a table is whole.
pub fn is_table(data: &[u8]) -> bool {
    records(data).is_ok()
}

/// The records of a table that are of a volume.
fn records(data: &[u8]) -> Result<Vec<(u32, Fields<'_>)>, String> {
    let count = (data.len() / RECORD).min(VOLUMES_MAX as usize);
    let mut found = Vec::new();
    for (id, bytes) in (0..).zip(data.chunks_exact(RECORD).take(count)) {
        let fields = record(bytes).map_err(|why| format!("record {id}: {why}"))?;
        if fields.u32(0) != 0 {
            found.push((id, fields));
        }
    }
    Ok(found)
}

fn erases(counters: &[u64]) -> Option<Erases> {
    let (min, max) = (*counters.iter().min()?, *counters.iter().max()?);
    let sum: u128 = counters.iter().map(|counter| u128::from(*counter)).sum();
    let width = (max - min) / CLASSES + 1;
    let mut histogram: Vec<Class> = Vec::new();
    let mut from = min;
    while histogram.len() < CLASSES as usize && from <= max {
        let to = from.saturating_add(width - 1).min(max);
        histogram.push(Class { from, to, pebs: 0 });
        if to == u64::MAX {
            break;
        }
        from = to + 1;
    }
    for counter in counters {
        let class = ((counter - min) / width) as usize;
        if let Some(class) = histogram.get_mut(class) {
            class.pebs += 1;
        }
    }
    let mean = sum * 1000 / counters.len() as u128;
    let mean_milli = u64::try_from(mean).unwrap_or(u64::MAX);
    Some(Erases { min, mean_milli, max, histogram })
}
