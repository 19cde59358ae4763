//! Images made here: what is read of them, and that none of them makes it panic.

use super::format::{Metadata, Superblock};
use super::{Below, Squashfs, Stored, NO_TABLE};
use crate::errno::{FsError, Result, ENOENT};
use crate::units::Ns;

/// Notes requests.
#[derive(Default)]
struct Noted(Vec<(u64, u32)>);

impl Below for Noted {
    fn read(&mut self, now: Ns, at: u64, bytes: u32) -> Result<Ns> {
        self.0.push((at, bytes));
        Ok(now)
    }
}

const INODES: u64 = 1024;
const DIRECTORIES: u64 = 2048;
const IDS: u64 = 3072;

/// A root without entries.
fn empty_root() -> Stored {
    let mut inode = vec![0; 32];
    (inode[0], inode[12], inode[24]) = (1, 1, 3);
    let block = |at: u64, bytes: Vec<u8>| (at, Metadata { next: at + 2 + 100, bytes });
    Stored {
        last_fragment: None,
        superblock: Superblock {
            inodes: 1,
            block_log: 12,
            ids: 1,
            bytes: 8192,
            id_table: 4096,
            xattr_table: NO_TABLE,
            inode_table: INODES,
            directory_table: DIRECTORIES,
            lookup_table: NO_TABLE,
            ..Superblock::default()
        },
        metadata: [block(INODES, inode), block(IDS, vec![0; 4])].into(),
        ids: vec![IDS],
        fragments: Vec::new(),
    }
}

#[test]
fn a_mount_reads_superblock_ids_and_the_roots_inode() {
    let mut noted = Noted::default();
    let (mut mounted, now) =
        Squashfs::mount(empty_root(), None, &mut noted, Ns::ZERO).expect("whole");
    let table = [(0, 1024), (4096, 1024)];
    let metadata = [(1024, 1024), (1024, 1024), (3072, 1024), (3072, 1024)];
    assert_eq!(noted.0, [&table[..], &metadata].concat());
    noted.0.clear();
    let (found, _) = mounted.walk(&mut noted, now, "a/b").expect("no entries");
    assert_eq!((found, noted.0.len()), (Err(ENOENT), 0), "there is nothing to read in it");
}

#[test]
fn a_root_whose_inode_is_missing_is_an_error() {
    let mut stored = empty_root();
    stored.metadata.remove(&INODES);
    let failed = Squashfs::mount(stored, None, &mut Noted::default(), Ns(5)).expect_err("broken");
    assert_eq!(failed, FsError::Io(Ns(5)));
}

#[test]
fn any_bytes_of_metadata_are_read_or_refused() {
    let mut drawn = 1_u64;
    let mut draw = || {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (drawn >> 33) as u8
    };
    for _ in 0..3000 {
        let mut stored = empty_root();
        let bytes = (0..300).map(|_| if draw() < 160 { 0 } else { draw() % 16 }).collect();
        stored.metadata.insert(DIRECTORIES, Metadata { next: DIRECTORIES + 102, bytes });
        let inode = stored.metadata.get_mut(&INODES).expect("there");
        for at in 12..32 {
            inode.bytes[at] ^= if draw() < 40 { draw() } else { 0 };
        }
        let mut noted = Noted::default();
        if let Ok((mut mounted, now)) = Squashfs::mount(stored, None, &mut noted, Ns::ZERO) {
            let _ = mounted.walk(&mut noted, now, "\u{1}/..");
            let _ = mounted.list(&mut noted, mounted.root());
        }
    }
}
