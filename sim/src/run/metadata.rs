//! Operations of version 2 of the format, on a mounted file system.

use crate::content::{Source, Written};
use crate::errno::{FsError, Outcome};
use crate::fs::{Attribute, FlashFs};
use crate::ops::{self, Fill, Linked, Mapped, Msync, Operation};
use crate::units::Ns;
use crate::vfs::{Sharing, Vfs};

/// Runs one, or refuses it by name if it is not modelled.
pub fn call<S: FlashFs>(vfs: &mut Vfs<S>, now: Ns, operation: &Operation<'_>) -> Outcome {
    match *operation {
        Operation::Stat { path } => vfs.stat(now, path),
        Operation::ReadDir { slot } => vfs.read_dir(now, slot),
        Operation::Link { old: Linked::Path(old), new } => vfs.link(now, old, new),
        Operation::Link { old: Linked::Slot(slot), new } => vfs.link_slot(now, slot, new),
        Operation::Symlink { target, path } => vfs.symlink(now, target, path),
        Operation::ReadLink { path } => vfs.read_link(now, path),
        Operation::Chmod { path, .. } => vfs.set_attribute(now, path, Attribute::Mode),
        Operation::Chown { path, .. } => vfs.set_attribute(now, path, Attribute::Owner),
        Operation::Utimens { path } => vfs.set_attribute(now, path, Attribute::Times),
        Operation::SetXattr { path, name, length, .. } => vfs.set_xattr(now, path, name, length),
        Operation::GetXattr { path, name } => vfs.get_xattr(now, path, name),
        Operation::ListXattr { path } => vfs.list_xattr(now, path),
        Operation::RemoveXattr { path, name } => vfs.remove_xattr(now, path, name),
        Operation::Mmap { mapping, slot, offset, length, how } => {
            let how = match how {
                Mapped::Read => Sharing::ReadOnly,
                Mapped::ReadWrite => Sharing::ReadWrite,
                Mapped::Private => Sharing::Private,
            };
            vfs.mmap(now, mapping, slot, (offset, length), how)
        }
        Operation::Touch { mapping, offset, length } => vfs.touch(now, mapping, offset, length),
        Operation::Store { mapping, offset, length, seed, fill: Fill::Even(compressibility) } => {
            vfs.store(now, mapping, offset, length, Source { seed, compressibility })
        }
        Operation::Store { mapping, offset, length, seed, fill } => {
            let bytes = written(vfs.mapped_offset(mapping) + offset, seed, fill);
            vfs.store_bytes(now, mapping, (offset, length), bytes)
        }
        Operation::Msync { mapping, offset, length, how } => {
            vfs.msync(now, mapping, offset, length, how == Msync::Sync)
        }
        Operation::Munmap { mapping } => vfs.munmap(now, mapping),
        ref other => Err(FsError::NotModelled(ops::NAMES[other.code()])),
    }
}

/// The bytes of a FILL that is not uniform.
pub fn written(offset: u64, seed: u64, fill: Fill<'_>) -> Written {
    match fill {
        Fill::Data(lines) => Written::Bytes { offset, bytes: ops::data_bytes(lines) },
        Fill::Pieces(text) => Written::Pieces { offset, seed, pieces: ops::pieces(text).collect() },
        Fill::Even(_) => unreachable!("which a source generates"),
    }
}
