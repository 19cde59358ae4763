//! What a device's flash held: the nodes of a dump, or of an image for nandwrite, and their mount.
//!
//! The simulated flash stores no bytes, so nodes come as a reader of images has found them. They
//! are put onto an erased chip as agent/fs/format.c and dump.c put the bytes: on NAND every block
//! gets a clean marker in its OOB, on NOR those behind the dump get one; then each page that is not
//! erased is programmed. The mount that follows is that of build.rs, and makes of the nodes what
//! the kernel makes of them.
//!
//! Left out: extended attributes, and what a node of a device, a FIFO or a socket does when it is
//! opened.
//!
//! Invariant: the nodes of a block follow each other without a gap; what is none is padding.

use super::inode::File;
use super::node::{Entry, Node, Role};
use super::{Jffs2, Options};
use crate::compress::Jffs2Compressor;
use crate::content::Contents;
use crate::fs::{FsError, Ino, Result};
use crate::mtd::{Mtd, NandDriver};
use crate::profile::KernelFacts;
use crate::units::Ns;

/// The kernel counts inodes from 1; the simulator has room for each number up to the highest.
pub const INODES_MAX: u32 = 1 << 22;

/// A JFFS2 as it was found.
#[derive(Clone, Debug, Default)]
pub struct Dumped {
    /// Erase blocks that it fills.
    pub blocks: u32,
    /// Those marked bad.
    pub bad_blocks: Vec<u32>,
    /// Its programmed bytes: offset and length, whole pages on NAND.
    pub programmed: Vec<(u32, u32)>,
    /// Its nodes, by offset.
    pub nodes: Vec<Found>,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where it is.
    pub flash_offset: u32,
    /// What it is.
    pub what: What,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum What {
    /// A part of an inode.
    Inode(Part),
    /// A name; without an inode it removes the name.
    Entry {
        /// The directory's inode.
        directory: u32,
        /// The node's version.
        version: u32,
        /// The name, encoded as in operations.
        name: String,
        /// The inode.
        ino: Option<u32>,
        /// Whether it is a directory.
        is_directory: bool,
    },
    /// The clean marker at the start of a block.
    CleanMarker,
    /// The summary of a block.
    Summary {
        /// Its bytes.
        bytes: u32,
        /// Whether its sums are wrong: the mount reads it, and then the block.
        is_damaged: bool,
    },
    /// So many bytes that are of no use: padding, an obsolete or a broken node, or none at all.
    Padding(u32),
}

/// What an inode is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file, a FIFO or a socket.
    File,
    /// A directory.
    Directory,
    /// A symbolic link to a target, encoded as in operations.
    Link(String),
    /// A block or character device.
    Device,
}

/// An inode node (struct jffs2_raw_inode) and its data.
#[derive(Clone, Debug)]
pub struct Part {
    /// The inode.
    pub ino: u32,
    /// The node's version.
    pub version: u32,
    /// What the inode is.
    pub kind: Kind,
    /// Its size (`isize`).
    pub size_bytes: u32,
    /// Where in the file the data are.
    pub file_offset: u32,
    /// How many there are (`dsize`).
    pub file_bytes: u32,
    /// How many are stored (`csize`).
    pub data_bytes: u16,
    /// What packed them.
    pub packed_by: Option<Jffs2Compressor>,
    /// Whether the sum of the data is wrong.
    pub is_damaged: bool,
    /// The data of a regular file as they are in it; none of a hole.
    pub data: Vec<u8>,
}

impl Part {
    fn role(&self, lzo: Jffs2Compressor) -> Role {
        match (self.file_bytes, self.data_bytes) {
            (0, _) => Role::Metadata,
            (file_bytes, 0) => Role::Hole { file_bytes },
            (file_bytes, data_bytes) => Role::Data {
                data_bytes,
                file_bytes: u16::try_from(file_bytes).expect("checked by the reader"),
                packed_by: match self.packed_by {
                    Some(Jffs2Compressor::Lzo) => Some(lzo),
                    other => other,
                },
            },
        }
    }
}

impl<D: NandDriver> Jffs2<D> {
    /// Puts what was dumped onto the erased partition.
    pub fn put(
        mtd: Mtd<D>,
        (options, facts): (Options, KernelFacts),
        dumped: &Dumped,
    ) -> Result<Self> {
        if dumped.blocks > mtd.blocks() {
            return Err(FsError::too_small(format!(
                "the dump has {} blocks, the partition {}",
                dumped.blocks,
                mtd.blocks()
            )));
        }
        let mut fs = Jffs2::erased(mtd, options, facts)?;
        fs.stored.get_or_insert_default();
        fs.program(dumped)?;
        for (number, found) in (1..).zip(&dumped.nodes) {
            fs.put_node(number, found);
        }
        Ok(fs)
    }

    /// Mounts what was put there, for the first time.
    pub fn mount_found(mut self, now: Ns) -> Result<(Self, Ns)> {
        let now = self.mount(now, None)?;
        self.found = self.clone().tree(now)?;
        let keeps = self.mtd.can_lose_power();
        self.stored = self.stored.filter(|_| keeps);
        Ok((self, now))
    }

    /// Writes clean markers and pages. When these are written does not matter.
    fn program(&mut self, dumped: &Dumped) -> Result<()> {
        let marked = if self.medium.has_wbuf { 0 } else { dumped.blocks };
        let mut now = self.medium.mark_clean(&mut self.mtd, Ns::ZERO, marked)?;
        for &(offset, bytes) in &dumped.programmed {
            if !self.mtd.is_bad(self.block_of(offset)) {
                now = self.mtd.write(now, offset.into(), bytes)?;
            }
        }
        (marked..self.mtd.blocks()).for_each(|block| self.link_marker(block));
        Ok(())
    }

    /// Links a node into its block, where the scan looks for it. `number` identifies its data.
    fn put_node(&mut self, number: u64, found: &Found) {
        let flash_offset = found.flash_offset;
        let (ino, role, version) = match &found.what {
            What::Inode(part) => (part.ino, part.role(self.lzo()), part.version),
            What::Entry { directory, version, name, ino, is_directory } => {
                let (name, ino) = (self.names.intern(name), ino.map(Ino));
                let entry = Entry { name, is_directory: *is_directory, ino };
                (*directory, self.names.add_entry(entry), *version)
            }
            What::CleanMarker => (0, Role::CleanMarker, 0),
            What::Summary { bytes, .. } => (0, Role::Summary { total_bytes: *bytes }, 0),
            What::Padding(total_bytes) => (0, Role::Padding { total_bytes: *total_bytes }, 0),
        };
        let mut node = Node { flash_offset, ..Node::new(Ino(ino), role, version) };
        if !role.is_bare() {
            self.make_ino_cache(Ino(ino));
        }
        node.is_damaged = matches!(found.what, What::Summary { is_damaged: true, .. });
        if let What::Inode(part) = &found.what {
            (node.file_offset, node.size_bytes) = (part.file_offset, part.size_bytes);
            node.is_damaged = part.is_damaged;
            self.know(part);
            if !part.data.is_empty() {
                let data = Contents::of_dump(number, part.file_offset.into(), part.data.clone());
                let stored = self.stored.as_mut().expect("while a dump is mounted");
                stored.insert((Ino(ino), part.version), data);
            }
        }
        let id = self.nodes.push(node);
        self.link(id, &node);
    }

    /// What unpacks LZO in this kernel.
    fn lzo(&self) -> Jffs2Compressor {
        let old = self.options.compressors.contains(&Jffs2Compressor::Lzo202);
        if old {
            Jffs2Compressor::Lzo202
        } else {
            Jffs2Compressor::Lzo
        }
    }

    /// What of an inode does not change from node to node.
    fn know(&mut self, part: &Part) {
        let file: &mut File = self.file_mut(Ino(part.ino));
        match &part.kind {
            Kind::File => {}
            Kind::Directory => file.is_directory = true,
            Kind::Link(target) => file.target = Some(target.as_str().into()),
            Kind::Device => file.is_device = true,
        }
    }
}
