//! The nodes of a JFFS2 for the simulator to begin with (sim::fs::jffs2::dumped).
//!
//! Mirrors which nodes a scan keeps (fs/jffs2/scan.c): what has a wrong sum in its head is of no
//! use, wrong data are found when the inode is read. What the simulator does not mount is an error.
//!
//! Invariant: the nodes of a block leave no gap up to what is erased at its end.

use super::medium::{scan, Kind, Met, Node};
use super::{packing, DATA};
use crate::bytes::is_blank;
use crate::tree::Kind as FileKind;
use crate::unpack::{unpack, Packing};
use crate::Image;
use sim::compress::Jffs2Compressor;
use sim::fs::jffs2::dumped::{self, Dumped, Found, Part, What, INODES_MAX};
use sim::fs::jffs2::layout::{pad, CLEANMARKER_NODE_BYTES, RAW_DIRENT_BYTES, RAW_INODE_BYTES};
use sim::ops::{name_text, path_text};

/// JFFS2_COMPAT_MASK of a node's type, and the kinds that a kernel may delete.
const COMPATIBLE: u16 = 0xc000;
/// DT_DIR.
const FOLDER: u8 = 4;

/// The chip that the bytes are for.
#[derive(Clone, Copy, Debug)]
pub struct Chip {
    /// Bytes of an erase block.
    pub block_bytes: usize,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Whether it is NOR, which programs single bytes and has clean markers in its blocks.
    pub is_nor: bool,
}

/// What an image of JFFS2 puts onto a chip.
pub fn dumped(image: &Image, chip: Chip) -> Result<Dumped, String> {
    let bytes = &image.flat.bytes;
    if bytes.len() >= u32::MAX as usize || chip.block_bytes == 0 || chip.page_bytes == 0 {
        return Err(format!("{} bytes: too many for JFFS2", bytes.len()));
    }
    let mut found =
        Dumped { blocks: bytes.len().div_ceil(chip.block_bytes) as u32, ..Dumped::default() };
    for start in (0..bytes.len()).step_by(chip.block_bytes) {
        let end = (start + chip.block_bytes).min(bytes.len());
        if image.flat.is_bad(start, chip.block_bytes) {
            found.bad_blocks.push((start / chip.block_bytes) as u32);
            continue;
        }
        program(bytes, (start, end), chip, &mut found.programmed);
        let mut block = Block { bytes, start, end, at: start, is_nor: chip.is_nor, nodes: vec![] };
        block.read()?;
        found.nodes.append(&mut block.nodes);
    }
    Ok(found)
}

/// The parts of a block that are not erased.
fn program(bytes: &[u8], (start, end): (usize, usize), chip: Chip, found: &mut Vec<(u32, u32)>) {
    let block = &bytes[start..end];
    if chip.is_nor {
        let used = block.iter().rposition(|byte| *byte != 0xff).map_or(0, |last| last + 1);
        if used > 0 {
            found.push((start as u32, used.next_multiple_of(4) as u32));
        }
        return;
    }
    for (number, page) in block.chunks(chip.page_bytes).enumerate() {
        if is_blank(page) {
            continue;
        }
        let at = (start + number * chip.page_bytes) as u32;
        match found.last_mut() {
            Some((from, length)) if *from + *length == at && at as usize != start => {
                *length += chip.page_bytes as u32;
            }
            _ => found.push((at, chip.page_bytes as u32)),
        }
    }
}

/// A block that is read.
struct Block<'a> {
    bytes: &'a [u8],
    start: usize,
    end: usize,
    /// The end of the nodes so far.
    at: usize,
    is_nor: bool,
    nodes: Vec<Found>,
}

impl Block<'_> {
    fn read(&mut self) -> Result<(), String> {
        for met in scan(self.bytes, self.start, self.end, false) {
            match met {
                Met::Blank(_, to) if to == self.end => {}
                Met::Blank(_, to) | Met::Dirt(_, to) => self.pad_to(to),
                Met::Node(node) => {
                    let what = self.what(node).map_err(|why| self.place(node, &why))?;
                    let end = (node.start + pad(node.bytes) as usize).min(self.end);
                    self.pad_to(node.start);
                    if let Some((what, bytes)) = what {
                        self.nodes.push(Found { flash_offset: self.at as u32, what });
                        self.at += bytes as usize;
                    }
                    self.pad_to(end);
                }
            }
        }
        Ok(())
    }

    fn place(&self, node: Node<'_>, why: &str) -> String {
        format!("byte {}: {why}", node.start)
    }

    /// What lies between the nodes so far and an offset is of no use.
    fn pad_to(&mut self, to: usize) {
        if to > self.at {
            let what = What::Padding((to - self.at) as u32);
            self.nodes.push(Found { flash_offset: self.at as u32, what });
            self.at = to;
        }
    }

    /// What a node is, and its bytes; none if it is of no use.
    fn what(&self, node: Node<'_>) -> Result<Option<(What, u32)>, String> {
        let is_found = match node.kind {
            Kind::Inode => node.check_head().is_ok(),
            Kind::Summary => true,
            _ => node.check().is_ok(),
        };
        if node.obsolete || !is_found {
            return Ok(None);
        }
        match node.kind {
            Kind::Dirent => entry(node).map(Some),
            Kind::Inode => part(node).map(Some),
            Kind::Summary => {
                let (bytes, is_damaged) = (pad(node.bytes), node.check().is_err());
                Ok(Some((What::Summary { bytes, is_damaged }, bytes)))
            }
            Kind::CleanMarker => {
                let is_first = self.is_nor && node.start == self.start;
                let whole = is_first && node.bytes == CLEANMARKER_NODE_BYTES;
                Ok(whole.then_some((What::CleanMarker, CLEANMARKER_NODE_BYTES)))
            }
            Kind::Padding => Ok(None),
            Kind::Xattr | Kind::Xref => Err("extended attributes are not mounted".to_owned()),
            Kind::Other(number) if number & COMPATIBLE == 0 => Ok(None),
            Kind::Other(number) => Err(format!("a node of type 0x{number:04x}")),
        }
    }
}

fn inode_number(number: u32) -> Result<u32, String> {
    match number {
        1..=INODES_MAX => Ok(number),
        _ => Err(format!("inode {number}: from 1 to {INODES_MAX} can be simulated")),
    }
}

fn entry(node: Node<'_>) -> Result<(What, u32), String> {
    let fields = node.fields;
    let name = fields.part(RAW_DIRENT_BYTES as usize, usize::from(fields.u8(28)));
    let ino = fields.u32(20);
    let bytes = pad(RAW_DIRENT_BYTES + name.len() as u32);
    let what = What::Entry {
        directory: inode_number(fields.u32(12))?,
        version: fields.u32(16),
        name: name_text(name),
        ino: if ino == 0 { None } else { Some(inode_number(ino)?) },
        is_directory: fields.u8(29) == FOLDER,
    };
    Ok((what, bytes))
}

fn part(node: Node<'_>) -> Result<(What, u32), String> {
    let fields = node.fields;
    let (stored, file_bytes) = (fields.u32(48), fields.u32(52));
    let data_bytes = u16::try_from(stored).map_err(|_| format!("{stored} bytes of data"))?;
    let file_offset = fields.u32(44);
    let is_too_long = stored > 0 && u16::try_from(file_bytes).is_err();
    if is_too_long || file_offset.checked_add(file_bytes).is_none() {
        return Err(format!("{file_bytes} bytes of a file at {file_offset}"));
    }
    let is_damaged = node.check().is_err();
    let packed = fields.part(DATA, stored as usize);
    let kind = kind(fields.u32(20), packed)?;
    let packing = packing(fields.u8(56));
    let holds = kind == dumped::Kind::File && stored > 0 && file_bytes > 0 && !is_damaged;
    let data = if holds { unpack(packing, packed, file_bytes as usize)? } else { Vec::new() };
    let part = Part {
        ino: inode_number(fields.u32(12))?,
        version: fields.u32(16),
        kind,
        size_bytes: fields.u32(28),
        file_offset,
        file_bytes,
        data_bytes,
        packed_by: match packing {
            Packing::Lzo => Some(Jffs2Compressor::Lzo),
            Packing::Zlib => Some(Jffs2Compressor::Zlib),
            Packing::Rtime => Some(Jffs2Compressor::Rtime),
            _ => None,
        },
        is_damaged,
        data,
    };
    let written = if file_bytes == 0 { 0 } else { stored };
    Ok((What::Inode(part), pad(RAW_INODE_BYTES + written)))
}

fn kind(mode: u32, data: &[u8]) -> Result<dumped::Kind, String> {
    Ok(match FileKind::of_mode(mode).ok_or_else(|| format!("mode 0o{mode:o}"))? {
        FileKind::Folder => dumped::Kind::Directory,
        FileKind::Link => dumped::Kind::Link(path_text(data)),
        FileKind::Block | FileKind::Char => dumped::Kind::Device,
        FileKind::File | FileKind::Pipe | FileKind::Socket => dumped::Kind::File,
    })
}
