//! A read image as the simulator begins with it: the headers of UBI, block by block.
//!
//! ubi.rs says what an attach makes of the headers; here they are handed on as they are, because
//! the simulated attach resolves them itself. Left out, and refused: tables of volumes that the
//! kernel would repair, and a volume that UBIFS does not mount.

use crate::bytes::{crc32, is_blank, part};
use crate::lebs::{Lebs, Places};
use crate::ubi::{erase_header, is_table, volume_header};
use crate::ubi::{Ubi, Volume, HEADER, LAYOUT_VOLUME, RECORD};
use crate::{ubifs, Content, Image};
use sim::ubi::{Dumped, DumpedBlock, DumpedCounter, DumpedHolds, DumpedLeb, DumpedVolume};

/// UBI_MAX_ERASECOUNTER.
const ERASES_MAX: u64 = 0x7fff_ffff;

/// What the simulator needs of an image with a UBIFS on a volume.
pub fn dumped_ubi(
    image: &Image,
    volume: Option<&str>,
) -> Result<(Dumped, sim::fs::ubifs::Dumped), String> {
    let ubi = image.ubi.as_ref().ok_or("the dump has no UBI")?;
    let program = program(image, ubi, volume)?;
    let found = &ubi.volumes[program];
    if found.kind != "dynamic" || found.upd_marker || found.usable_leb_bytes != ubi.leb_bytes {
        return Err("a UBIFS on a volume that is static, aligned or half updated is not modelled"
            .to_owned());
    }
    let dumped = of_ubi(image, ubi, program)?;
    let size = found.usable_leb_bytes as usize;
    let lebs = Lebs::new(&image.flat.bytes, Places::Volume(&found.map), size);
    Ok((dumped, ubifs::dumped(lebs, found.lebs)?))
}

/// The program's volume.
fn program(image: &Image, ubi: &Ubi, volume: Option<&str>) -> Result<usize, String> {
    let is_ubifs = |at: &usize| {
        matches!(image.parts.get(*at).map(|part| &part.content), Some(Content::Ubifs(_)))
    };
    let is_named = |at: &usize| volume.is_none_or(|name| ubi.volumes[*at].name == name);
    let mut found = (0..ubi.volumes.len()).filter(is_named).filter(is_ubifs);
    match (found.next(), found.next(), volume) {
        (Some(program), None, _) => Ok(program),
        (_, _, Some(name)) => Err(format!("the dump has no volume {name} with a UBIFS")),
        (None, _, None) => Err("the dump has no volume with a UBIFS".to_owned()),
        (_, _, None) => Err("several volumes of the dump have a UBIFS".to_owned()),
    }
}

fn of_ubi(image: &Image, ubi: &Ubi, program: usize) -> Result<Dumped, String> {
    let small = |bytes: u64| u32::try_from(bytes).map_err(|_| format!("blocks of {bytes} bytes"));
    let block_bytes = small(ubi.peb_bytes)?;
    let mut blocks = Vec::new();
    let mut tables: [Option<(u64, &[u8])>; 2] = [None, None];
    for (number, bytes) in (0..).zip(image.flat.bytes.chunks(block_bytes as usize)) {
        let is_bad = image.flat.is_bad(number * block_bytes as usize, block_bytes as usize);
        let block = of_block(ubi, bytes, is_bad)?;
        if let DumpedHolds::Leb { leb: DumpedLeb::Layout(copy), sequence, copied } = block.holds {
            let known = tables.get_mut(copy as usize).ok_or("a third table of volumes")?;
            let is_whole = copied.is_none_or(|(_, whole)| whole);
            if is_whole && known.is_none_or(|(newest, _)| sequence >= newest) {
                *known = Some((sequence, part(bytes, ubi.data_offset as usize, bytes.len())));
            }
        }
        blocks.push(block);
    }
    let bytes = (ubi.leb_bytes as usize / RECORD).min(128) * RECORD;
    let [Some((_, one)), Some((_, other))] = tables else {
        return Err("a UBI with one table of volumes is not modelled".to_owned());
    };
    if part(one, 0, bytes) != part(other, 0, bytes) || !is_table(one) {
        return Err("a UBI whose tables of volumes differ is not modelled".to_owned());
    }
    let volume = |found: &Volume| DumpedVolume { lebs: found.lebs, autoresize: found.autoresize };
    Ok(Dumped {
        block_bytes,
        header_bytes: ubi.vid_offset,
        leb_start: ubi.data_offset,
        blocks,
        volumes: ubi.volumes.iter().map(volume).collect(),
        program,
    })
}

/// The end of the last page that is not blank.
fn programmed_bytes(bytes: &[u8], page: usize) -> u32 {
    let programmed = bytes.chunks(page).rposition(|page| !is_blank(page));
    programmed.map_or(0, |last| ((last + 1) * page) as u32)
}

fn of_block(ubi: &Ubi, bytes: &[u8], is_bad: bool) -> Result<DumpedBlock, String> {
    let programmed_bytes = programmed_bytes(bytes, ubi.min_io_bytes.max(1) as usize);
    let missing = DumpedBlock {
        counter: DumpedCounter::Missing,
        holds: DumpedHolds::Nothing,
        programmed_bytes,
        is_bad,
    };
    let header = part(bytes, 0, HEADER);
    if is_bad || is_blank(header) {
        return Ok(missing);
    }
    let counter = match erase_header(header) {
        Some(head) if head.u64(8) > ERASES_MAX => return Err("an erase counter too high".into()),
        Some(head) => DumpedCounter::Whole(head.u64(8) as u32),
        None => DumpedCounter::Torn,
    };
    Ok(DumpedBlock { counter, holds: holds(ubi, bytes), ..missing })
}

fn holds(ubi: &Ubi, bytes: &[u8]) -> DumpedHolds {
    let header = part(bytes, ubi.vid_offset as usize, HEADER);
    if is_blank(header) {
        return DumpedHolds::Nothing;
    }
    let Ok(head) = volume_header(header) else { return DumpedHolds::Torn };
    let (volume, number) = (head.u32(8), head.u32(12));
    let at = ubi.volumes.iter().position(|known| known.id == volume);
    let leb = match at {
        _ if volume == LAYOUT_VOLUME => DumpedLeb::Layout(number),
        Some(at) if number < ubi.volumes[at].lebs => DumpedLeb::Volume(at, number),
        _ => DumpedLeb::Deleted,
    };
    let length = head.u32(20);
    let data = part(bytes, ubi.data_offset as usize, length as usize);
    let whole = crc32(u32::MAX, data) == head.u32(32) && data.len() == length as usize;
    let copied = (head.u8(6) != 0).then_some((length, whole));
    DumpedHolds::Leb { leb, sequence: head.u64(40), copied }
}
