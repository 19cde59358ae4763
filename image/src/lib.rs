//! Readers of flash images, and of dumps of devices in the field: UBI with its volumes, UBIFS,
//! JFFS2, squashfs, and the superblock of EROFS.
//!
//! The bytes are foreign. A reader checks every length and every sum, never panics, and needs
//! memory in proportion to the file. What is broken is one line that says where; what is whole is
//! read nevertheless. `flat.rs` takes the OOB of pages out, `ubi.rs` maps LEBs, `lebs.rs` gives
//! them to `ubifs/`; `jffs2/` reads blocks. `tree.rs` has the files of both, `unpack.rs` their
//! data. Sizes of structures are the simulator's (docs/models/images.md).
//!
//! Left out: YAFFS2, what is in files of squashfs, files of EROFS, and all that writes.

mod bytes;
mod dumped_ubi;
mod flat;
mod jffs2;
mod lebs;
mod problems;
mod readonly;
mod squashfs;
mod tree;
mod ubi;
mod ubifs;
mod unpack;

use crate::bytes::part;
pub use dumped_ubi::dumped_ubi;
use flat::Flat;
pub use flat::Pages;
pub use jffs2::{dumped as dumped_jffs2, Chip, Jffs2};
use lebs::{Lebs, Places};
pub use problems::Problems;
pub use readonly::{Erofs, Squashfs};
use serde::Serialize;
pub use squashfs::stored as stored_squashfs;
pub use tree::{File, Inode, Kind, Piece, Sums, Tree};
pub use ubi::Ubi;
pub use ubifs::Ubifs;
pub use unpack::Packing;

/// What the caller knows of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    /// The pages of the chip; 0 bytes of OOB say that the file has none.
    pub pages: Option<Pages>,
    /// Bytes of an erase block.
    pub block_bytes: Option<usize>,
}

/// What lies on a volume, or is the whole file.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "format", rename_all = "lowercase")]
pub enum Content {
    /// A UBIFS.
    Ubifs(Box<Ubifs>),
    /// A JFFS2.
    Jffs2(Box<Jffs2>),
    /// A squashfs.
    Squashfs(Squashfs),
    /// An EROFS.
    Erofs(Erofs),
    /// Nothing.
    Empty,
    /// Something that is not known, or that is too broken to be read.
    Unknown,
}

/// A volume and what lies on it; a file without UBI has one without a volume.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// The volume's number; none without UBI.
    pub volume: Option<u32>,
    /// What lies on it.
    pub content: Content,
    /// Its files.
    #[serde(skip)]
    pub tree: Tree,
}

/// An image that was read.
#[derive(Clone, Debug)]
pub struct Image {
    flat: Flat,
    /// UBI, if the file is one.
    pub ubi: Option<Ubi>,
    /// What lies on it.
    pub parts: Vec<Part>,
    /// What is wrong in it.
    pub problems: Problems,
}

impl Image {
    /// Reads a file. An error says what it is not.
    pub fn read(file: Vec<u8>, given: Given) -> Result<Image, String> {
        if file.is_empty() {
            return Err("it is empty".to_owned());
        }
        let flat = Flat::new(file, given.pages);
        let mut problems = Problems::default();
        if let Some(ubi) = ubi::read(&flat, given.block_bytes, &mut problems)? {
            let mut parts = Vec::new();
            for volume in &ubi.volumes {
                let mut own = Problems::default();
                parts.push(of_volume(&flat.bytes, volume, &mut own));
                problems.add_all(&format!("volume {} {}", volume.id, volume.name), own);
            }
            return Ok(Image { flat, ubi: Some(ubi), parts, problems });
        }
        let (content, tree) = bare(&flat, given.block_bytes, &mut problems)?;
        let part = Part { volume: None, content, tree };
        Ok(Image { flat, ubi: None, parts: vec![part], problems })
    }

    /// The geometry of pages whose OOB was taken out.
    pub fn pages(&self) -> Option<Pages> {
        self.flat.pages
    }

    /// The bytes of a part of a file; none at all stand for zeros.
    pub fn piece(&self, inode: &Inode, piece: &Piece) -> Result<Vec<u8>, String> {
        if piece.packing == Packing::Zero {
            return Ok(Vec::new());
        }
        let stored = part(&self.flat.bytes, piece.start, piece.stored as usize);
        let done = match inode.encrypted {
            true => Err("it is encrypted".to_owned()),
            false => unpack::unpack(piece.packing, stored, piece.bytes as usize),
        };
        done.map_err(|why| format!("{}: {why}", self.place(piece.start)))
    }

    /// Where something is, for a person.
    fn place(&self, start: usize) -> String {
        match &self.ubi {
            Some(ubi) => {
                let block = ubi.peb_bytes.max(1) as usize;
                format!("PEB {}, byte {}", start / block, start % block)
            }
            None => format!("byte {start}"),
        }
    }
}

/// What lies on a volume; what is wrong with it is a problem.
fn of_volume(bytes: &[u8], volume: &ubi::Volume, problems: &mut Problems) -> Part {
    let size = volume.usable_leb_bytes as usize;
    let lebs = Lebs::new(bytes, Places::Volume(&volume.map), size);
    let first = lebs.leb(0);
    let there = u64::from(volume.lebs) * volume.usable_leb_bytes;
    let mut tree = Tree::default();
    let content = if ubifs::is_here(first) {
        ubifs::read(lebs, Some(volume.lebs), problems).map(|(found, files)| {
            tree = files;
            Content::Ubifs(Box::new(found))
        })
    } else if readonly::is_squashfs(first) {
        let whole = lebs.joined();
        readonly::squashfs(&whole, there, problems).map(Content::Squashfs)
    } else if readonly::is_erofs(first) {
        readonly::erofs(first, there).map(Content::Erofs)
    } else if volume.map.is_empty() {
        Ok(Content::Empty)
    } else {
        Ok(Content::Unknown)
    };
    let content = content.unwrap_or_else(|why| {
        problems.add(why);
        Content::Unknown
    });
    Part { volume: Some(volume.id), content, tree }
}

/// What a file without UBI is.
fn bare(
    flat: &Flat,
    block_bytes: Option<usize>,
    problems: &mut Problems,
) -> Result<(Content, Tree), String> {
    let bytes = &flat.bytes;
    let there = bytes.len() as u64;
    if ubifs::is_here(bytes) {
        let of_ubifs = |why: String| format!("UBIFS: {why}");
        let size = ubifs::leb_bytes(bytes).map_err(of_ubifs)?;
        let lebs = Lebs::new(bytes, Places::Bare, size);
        let (found, tree) = ubifs::read(lebs, None, problems).map_err(of_ubifs)?;
        return Ok((Content::Ubifs(Box::new(found)), tree));
    }
    if readonly::is_squashfs(bytes) {
        let found = readonly::squashfs(bytes, there, problems);
        let found = found.map_err(|why| format!("squashfs: {why}"))?;
        return Ok((Content::Squashfs(found), Tree::default()));
    }
    if readonly::is_erofs(bytes) {
        let found = readonly::erofs(bytes, there).map_err(|why| format!("EROFS: {why}"))?;
        return Ok((Content::Erofs(found), Tree::default()));
    }
    match jffs2::read(flat, block_bytes, problems) {
        Some((found, tree)) => Ok((Content::Jffs2(Box::new(found)), tree)),
        None => Err("no UBI, UBIFS, JFFS2, squashfs or EROFS begins in it".to_owned()),
    }
}
