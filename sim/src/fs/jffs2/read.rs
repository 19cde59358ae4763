//! File data, read.
//!
//! Mirrors fs/jffs2/read.c of Linux 6.1 (jffs2_read_inode_range, jffs2_read_dnode) and jffs2_flash_read of wbuf.c.

use super::layout::RAW_INODE_BYTES;
use super::nodelist::Role;
use super::Jffs2;
use crate::chip::Flash;
use crate::fs::{Ino, Result};
use crate::units::Ns;

impl<F: Flash> Jffs2<F> {
    /// jffs2_flash_read: always from flash; what is in the write buffer is laid over it afterwards.
    #[inline]
    pub(super) fn flash_read(&mut self, now: Ns, offset: u32, bytes: u32) -> Result<Ns> {
        Ok(self.mtd.read(now, u64::from(offset), bytes)?)
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
        for fragment in fragments.overlapping(offset, offset + bytes) {
            let Some(id) = fragment.node else { continue };
            let node = self.nodes.get(id);
            let at = u64::from(node.flash_offset);
            let costs = *self.mtd.costs();
            now = self.mtd.read(now + costs.jffs2_node_ns, at, RAW_INODE_BYTES)?;
            if let Role::Data { data_bytes, .. } = node.role {
                let data_bytes = u32::from(data_bytes);
                now = self.mtd.read(now, at + u64::from(RAW_INODE_BYTES), data_bytes)?;
                now += Ns::from_ps(u64::from(data_bytes), costs.jffs2_byte_ps);
            }
        }
        Ok(now)
    }
}
