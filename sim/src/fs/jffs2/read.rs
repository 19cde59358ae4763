//! Reading file data.
//!
//! Mirrors fs/jffs2/read.c of Linux 6.1 (jffs2_read_inode_range, jffs2_read_dnode) and
//! jffs2_flash_read of wbuf.c.

use super::call::Call;
use super::layout::RAW_INODE_BYTES;
use super::node::{NodeId, Role};
use super::tasks::reborrow;
use super::Jffs2;
use crate::flash::{Failed, Fault};
use crate::fs::{FsError, Ino, PageCache, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// Offset of data_crc in a node's header, the only field that node_crc does not cover.
const DATA_CRC_OFFSET: u32 = 60;
const DATA_CRC_BYTES: u32 = 4;

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_flash_read: always reads the flash, then overlays the write buffer's bytes. Returns
    /// whether the bytes are as they were written.
    #[inline(always)] // twice for each node that is read
    fn read_flash(
        &mut self,
        now: Ns,
        (offset, bytes): (u32, u32),
        pages: Option<&mut dyn PageCache>,
    ) -> Result<(bool, Ns)> {
        match self.call_with(now, Call::Read { offset, bytes }, pages)? {
            Ok(at) => Ok((true, at)),
            Err(Failed { at, fault: Fault::Uncorrectable }) => {
                let end = match self.wbuf.start {
                    Some(start) if start >= offset => start.min(offset + bytes),
                    _ => offset + bytes,
                };
                let is_wrong = end > offset && self.mtd.is_wrong(offset.into(), end - offset);
                Ok((!is_wrong, at))
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// jffs2_flash_read of metadata.
    pub(super) fn flash_read(&mut self, now: Ns, offset: u32, bytes: u32) -> Result<Ns> {
        match self.read_flash(now, (offset, bytes), None)? {
            (true, now) => Ok(now),
            (false, _) => {
                Err(FsError::NotModelled("JFFS2 that finds wrong bits in a node it has to know"))
            }
        }
    }

    /// jffs2_read_inode_range: reads the node of every fragment, once for each fragment. The caller
    /// holds f->sem, so the fragments cannot change meanwhile.
    #[inline]
    pub(super) fn read_range(
        &mut self,
        now: Ns,
        ino: Ino,
        (offset, bytes): (u32, u32),
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        let fragments = std::mem::take(&mut self.file_mut(ino).fragments);
        let overlapping = fragments.overlapping(offset, offset + bytes);
        let read = overlapping.into_iter().try_fold(now, |now, fragment| {
            fragment.node.map_or(Ok(now), |id| self.read_node(now, id, reborrow(&mut pages)))
        });
        self.file_mut(ino).fragments = fragments;
        read
    }

    /// jffs2_read_dnode.
    #[inline]
    pub(super) fn read_node(
        &mut self,
        now: Ns,
        id: NodeId,
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        let node = self.nodes.get(id);
        let (at, role, file_bytes) = (node.flash_offset, node.role, node.file_bytes());
        let costs = *self.mtd.costs();
        let (is_header_right, mut now) = self.read_flash(
            now + costs.jffs2_node_ns,
            (at, RAW_INODE_BYTES),
            reborrow(&mut pages),
        )?;
        let is_checksum_wrong =
            !is_header_right && self.mtd.is_wrong(u64::from(at + DATA_CRC_OFFSET), DATA_CRC_BYTES);
        if !is_header_right && !is_checksum_wrong {
            return Err(FsError::Io(now));
        }
        if let Role::Data { data_bytes, packed_by, .. } = role {
            let data_bytes = u32::from(data_bytes);
            let (is_right, later) =
                self.read_flash(now, (at + RAW_INODE_BYTES, data_bytes), pages)?;
            now = later + Ns::from_ps(u64::from(data_bytes), costs.jffs2_byte_ps);
            if !is_right || is_checksum_wrong {
                return Err(FsError::Io(now));
            }
            if let Some(compressor) = packed_by {
                let packing = compressor.packing();
                let priced = costs.compressors.unpacking(packing, data_bytes, file_bytes);
                now += self.mtd.charge(priced);
            }
        }
        Ok(now)
    }
}
