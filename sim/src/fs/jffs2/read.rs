//! File data, read.
//!
//! Mirrors fs/jffs2/read.c of Linux 6.1 (jffs2_read_inode_range, jffs2_read_dnode) and jffs2_flash_read of wbuf.c.

use super::layout::RAW_INODE_BYTES;
use super::nodelist::Role;
use super::wbuf::WriteBuffer;
use super::Jffs2;
use crate::chip::{Failed, Fault, Flash};
use crate::fs::{FsError, Ino, Result};
use crate::mtd::Mtd;
use crate::units::Ns;

/// data_crc of a node's header, the only field that node_crc says nothing of.
const DATA_CRC_OFFSET: u32 = 60;
const DATA_CRC_BYTES: u32 = 4;

/// jffs2_flash_read: always from flash; what is in the write buffer is laid over it afterwards. Says whether it was
/// read as it was written.
#[inline]
fn read_flash<F: Flash>(
    mtd: &mut Mtd<F>,
    wbuf: &WriteBuffer,
    now: Ns,
    offset: u32,
    bytes: u32,
) -> Result<(bool, Ns)> {
    match mtd.read(now, u64::from(offset), bytes) {
        Ok(at) => Ok((true, at)),
        Err(Failed { at, fault: Fault::Uncorrectable }) => {
            let end = match wbuf.start {
                Some(start) if start >= offset => start.min(offset + bytes),
                _ => offset + bytes,
            };
            let is_wrong = end > offset && mtd.is_wrong(offset.into(), end - offset);
            Ok((!is_wrong, at))
        }
        Err(failed) => Err(failed.into()),
    }
}

impl<F: Flash> Jffs2<F> {
    /// jffs2_flash_read of what tells which nodes there are.
    pub(super) fn flash_read(&mut self, now: Ns, offset: u32, bytes: u32) -> Result<Ns> {
        match read_flash(&mut self.mtd, &self.wbuf, now, offset, bytes)? {
            (true, now) => Ok(now),
            (false, _) => {
                Err(FsError::NotModelled("JFFS2 that finds wrong bits in a node it has to know"))
            }
        }
    }

    /// jffs2_read_inode_range: the node of every fragment, each as often as it has fragments there.
    #[inline]
    pub(super) fn read_range(
        &mut self,
        mut now: Ns,
        ino: Ino,
        offset: u32,
        bytes: u32,
    ) -> Result<Ns> {
        let fragments = &self.files[ino.0 as usize - 1].fragments;
        let (mtd, wbuf) = (&mut self.mtd, &self.wbuf);
        for fragment in fragments.overlapping(offset, offset + bytes) {
            let Some(id) = fragment.node else { continue };
            let node = self.nodes.get(id);
            let (at, role) = (node.flash_offset, node.role);
            let costs = *mtd.costs();
            let (is_header_right, later) =
                read_flash(mtd, wbuf, now + costs.jffs2_node_ns, at, RAW_INODE_BYTES)?;
            now = later;
            let is_checksum_wrong =
                !is_header_right && mtd.is_wrong(u64::from(at + DATA_CRC_OFFSET), DATA_CRC_BYTES);
            if !is_header_right && !is_checksum_wrong {
                return Err(FsError::Io(now));
            }
            if let Role::Data { data_bytes } = role {
                let data = at + RAW_INODE_BYTES;
                let (is_right, later) = read_flash(mtd, wbuf, now, data, data_bytes)?;
                now = later + Ns::from_ps(u64::from(data_bytes), costs.jffs2_byte_ps);
                if !is_right || is_checksum_wrong {
                    return Err(FsError::Io(now));
                }
            }
        }
        Ok(now)
    }
}
