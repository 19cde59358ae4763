//! Files as a file system has them: inodes, names, and where their data is in the file read.
//!
//! Left out: the values of extended attributes. A path longer than the kernel's `PATH_MAX` is left
//! out and named, so that folders within folders need no more memory than the file is long.

use crate::problems::Problems;
use crate::unpack::Packing;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// PATH_MAX.
const PATH_BYTES_MAX: usize = 4096;
/// Bytes of all paths together.
const PATHS_BYTES_MAX: usize = 64 << 20;

/// S_IFMT of a mode, and its values.
const KINDS: [(u32, Kind); 7] = [
    (0o100_000, Kind::File),
    (0o040_000, Kind::Folder),
    (0o120_000, Kind::Link),
    (0o060_000, Kind::Block),
    (0o020_000, Kind::Char),
    (0o010_000, Kind::Pipe),
    (0o140_000, Kind::Socket),
];

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A block device.
    Block,
    /// A character device.
    Char,
    /// A FIFO.
    Pipe,
    /// A socket.
    Socket,
}

impl Kind {
    /// The kind that a mode has; none if there is none such.
    pub fn of_mode(mode: u32) -> Option<Kind> {
        KINDS.iter().find(|(bits, _)| *bits == mode & 0o170_000).map(|(_, kind)| *kind)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::File => "file",
            Kind::Folder => "folder",
            Kind::Link => "link",
            Kind::Block => "block",
            Kind::Char => "char",
            Kind::Pipe => "pipe",
            Kind::Socket => "socket",
        }
    }
}

/// Data of a file in one node.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Where it is in the file.
    pub at: u64,
    /// Its bytes there.
    pub bytes: u32,
    /// Where it is in what was read.
    pub start: usize,
    /// Its bytes there.
    pub stored: u32,
    /// How they are compressed.
    pub packing: Packing,
}

/// An inode.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    /// Kind and permissions.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its size.
    pub bytes: u64,
    /// Names that it has, as the file system says.
    pub links: u32,
    /// When it was changed last, in seconds.
    pub mtime_s: i64,
    /// Of a symbolic link.
    pub target: Vec<u8>,
    /// Major and minor number of a device.
    pub device: Option<(u32, u32)>,
    /// Extended attributes.
    pub xattrs: u32,
    /// Whether its data is encrypted.
    pub encrypted: bool,
    /// Its data in the order in which it was written: a later piece lies over an earlier one.
    pub pieces: Vec<Piece>,
}

impl Inode {
    /// Bytes of its data as they are stored.
    pub fn stored_bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.stored)).sum()
    }

    /// Compressors of its data.
    pub fn packings(&self) -> BTreeSet<Packing> {
        self.pieces.iter().map(|piece| piece.packing).collect()
    }
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The name.
    pub name: Vec<u8>,
    /// Its inode.
    pub inode: u32,
}

/// A path and its inode.
#[derive(Clone, Debug)]
pub struct File {
    /// The path from the root, without a slash in front.
    pub path: Vec<u8>,
    /// Its inode.
    pub inode: u32,
}

/// The files of a file system.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Paths, a folder before what is in it.
    pub files: Vec<File>,
    /// Inodes, those without a name too.
    pub inodes: BTreeMap<u32, Inode>,
}

/// Sums over the files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// Regular files, each name counted.
    pub files: u64,
    /// Directories, without the root.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Devices, FIFOs and sockets.
    pub others: u64,
    /// Inodes without a name.
    pub unnamed: u64,
    /// Bytes of the regular files, each inode counted once.
    pub bytes: u64,
    /// Bytes of their data as stored.
    pub stored_bytes: u64,
    /// Nodes of data by compressor.
    pub nodes: BTreeMap<String, u64>,
}

impl Tree {
    /// Follows the names from the root.
    pub fn new(
        inodes: BTreeMap<u32, Inode>,
        root: u32,
        names: &BTreeMap<u32, Vec<Name>>,
        problems: &mut Problems,
    ) -> Tree {
        let mut tree = Tree { files: Vec::new(), inodes };
        let mut seen = BTreeSet::from([root]);
        let mut folders = vec![(root, Vec::new())];
        let mut room = PATHS_BYTES_MAX;
        while let Some((folder, path)) = folders.pop() {
            let mut entries: Vec<&Name> = names.get(&folder).into_iter().flatten().collect();
            entries.sort();
            let mut within = Vec::new();
            for entry in entries {
                let shown = || {
                    let (path, name) = (lossy(&path), lossy(&entry.name));
                    format!("{path}{}{name}", if path.is_empty() { "" } else { "/" })
                };
                let wrong_name = matches!(&entry.name[..], b"" | b"." | b"..")
                    || entry.name.iter().any(|byte| matches!(byte, b'/' | 0));
                if wrong_name {
                    problems.add(format!("{}: no name that a file can have", shown()));
                    continue;
                }
                let bytes = path.len() + 1 + entry.name.len();
                if bytes > PATH_BYTES_MAX || bytes > room {
                    problems.add("a path is too long, it is left out");
                    continue;
                }
                room -= bytes;
                let Some(inode) = tree.inodes.get(&entry.inode) else {
                    problems.add(format!("{}: inode {} is missing", shown(), entry.inode));
                    continue;
                };
                let mut whole = path.clone();
                if !whole.is_empty() {
                    whole.push(b'/');
                }
                whole.extend_from_slice(&entry.name);
                if Kind::of_mode(inode.mode) == Some(Kind::Folder) {
                    if !seen.insert(entry.inode) {
                        problems.add(format!("{}: a folder with two names", shown()));
                        continue;
                    }
                    within.push((entry.inode, whole.clone()));
                }
                tree.files.push(File { path: whole, inode: entry.inode });
            }
            within.reverse();
            folders.append(&mut within);
        }
        tree.files.sort_by(|one, other| one.path.cmp(&other.path));
        tree
    }

    /// Sums over the files.
    pub fn sums(&self, root: u32) -> Sums {
        let mut sums = Sums::default();
        let mut counted = BTreeSet::from([root]);
        for file in &self.files {
            let Some(inode) = self.inodes.get(&file.inode) else { continue };
            let kind = Kind::of_mode(inode.mode);
            match kind {
                Some(Kind::File) => sums.files += 1,
                Some(Kind::Folder) => sums.folders += 1,
                Some(Kind::Link) => sums.links += 1,
                _ => sums.others += 1,
            }
            if !counted.insert(file.inode) || kind != Some(Kind::File) {
                continue;
            }
            sums.bytes = sums.bytes.saturating_add(inode.bytes);
            sums.stored_bytes += inode.stored_bytes();
            for piece in &inode.pieces {
                *sums.nodes.entry(piece.packing.name()).or_default() += 1;
            }
        }
        sums.unnamed = self.inodes.keys().filter(|number| !counted.contains(number)).count() as u64;
        sums
    }
}

/// A name for a message: at most 80 characters of it.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned()
}

/// new_decode_dev of the kernel.
pub fn device(number: u32) -> (u32, u32) {
    ((number & 0x000f_ff00) >> 8, (number & 0xff) | ((number >> 12) & 0x000f_ff00))
}
