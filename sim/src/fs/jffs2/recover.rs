//! Recovering the write buffer when its page cannot be programmed.
//!
//! Mirrors fs/jffs2/wbuf.c of Linux 6.1 (jffs2_block_refile, jffs2_wbuf_recover). The block is put
//! on the bad_used_list, and its nodes are collected like any others. Nodes with a part in the lost
//! page are written again elsewhere. Their parts that were already on flash are read back.
//!
//! Left out, and refused: a program that fails during the recovery, and a lack of space for it.
//!
//! Invariant: afterwards every valid node lies whole on flash or in the write buffer.

use super::layout::Summary;
use super::node::{NodeId, Role, State};
use super::space::List;
use super::Jffs2;
use crate::causes::{Cause, Causes, Held};
use crate::flash::{Failed, Fault};
use crate::fs::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_block_refile: takes a block in which a program failed out of use for writing.
    pub(super) fn refile_bad(&mut self, now: Ns, number: u32) {
        if self.next_block == Some(number) {
            self.next_block = None;
        } else {
            self.space.remove(number);
        }
        if self.space.block(number).first_node.is_some() {
            self.space.push_front(List::BadUsed, number);
        } else {
            self.space.await_erase_first(number);
            self.trigger_collector(now);
        }
        self.link_wasted(number, self.space.block(number).books.free_bytes);
    }

    /// jffs2_wbuf_recover.
    pub(super) fn recover_wbuf(&mut self, now: Ns) -> Result<Ns> {
        let lost = self.wbuf.start.expect("a buffer that was flushed lies somewhere");
        let number = self.block_of(lost);
        self.refile_bad(now, number);
        let Some(first) = self.first_lost_node(number, lost) else {
            self.wbuf.bytes = 0;
            self.wbuf.held = Held::default();
            return Ok(now);
        };
        let last = self.space.block(number).last_node.expect("what was wasted just now");
        let start = self.nodes.get(first).flash_offset;
        let bytes = self.nodes.get(last).flash_offset - start;
        let now = if start < lost { self.read_back(now, start, lost - start)? } else { now };
        let now = self.rewrite_lost(now, bytes)?;
        self.move_nodes(first, last);
        if self.space.block(number).first_node == Some(first) {
            self.space.remove(number);
            self.space.await_erase_first(number);
            self.trigger_collector(now);
        }
        Ok(now)
    }

    /// The first valid node of a block that is not whole on flash.
    fn first_lost_node(&self, number: u32, lost: u32) -> Option<NodeId> {
        let mut next = self.space.block(number).first_node;
        while let Some(id) = next {
            let node = self.nodes.get(id);
            next = node.next_in_block;
            let is_before = next.is_some_and(|next| self.nodes.get(next).flash_offset <= lost);
            if node.state != State::Obsolete && !is_before {
                return Some(id);
            }
        }
        None
    }

    /// mtd_read of the part that is on flash. Wrong bits stay wrong.
    fn read_back(&mut self, now: Ns, offset: u32, bytes: u32) -> Result<Ns> {
        match self.mtd.read(now, offset.into(), bytes) {
            Err(Failed { at, fault: Fault::Uncorrectable })
                if self.mtd.is_wrong(offset.into(), bytes) =>
            {
                let _ = at;
                Err(FsError::NotModelled("JFFS2 that recovers a node with wrong bits"))
            }
            Ok(at) | Err(Failed { at, fault: Fault::Uncorrectable }) => Ok(at),
            Err(failed) => Err(failed.into()),
        }
    }

    /// Writes whole pages of the lost nodes at once; the rest goes into the buffer.
    fn rewrite_lost(&mut self, now: Ns, bytes: u32) -> Result<Ns> {
        let reserved = self.reserve_space_gc(now, bytes, Summary::Unwanted);
        let (_, mut now) = reserved.map_err(|error| match error {
            FsError::NoSpace(_) => FsError::NotModelled("JFFS2 without space for what it recovers"),
            other => other,
        })?;
        self.has_summary = false;
        let to = self.write_offset(self.next_block.expect("space was reserved"));
        let whole = self.mtd.whole_pages(bytes);
        if whole > 0 {
            let causes = Causes::of(Cause::Collection, whole);
            now = match self.mtd.write_for(now, to.into(), whole, &causes) {
                Err(Failed { fault: Fault::ProgramFailed, .. }) => {
                    return Err(FsError::NotModelled(
                        "a program that fails while JFFS2 recovers from another",
                    ));
                }
                other => other?,
            };
            let (is_right, later) = self.verify_write(now, to)?;
            if !is_right {
                return Err(FsError::NotModelled(
                    "JFFS2 that reads wrong bits of what it recovers",
                ));
            }
            now = later;
        }
        (self.wbuf.start, self.wbuf.bytes) = (Some(to + whole), bytes - whole);
        self.wbuf.held = Held::default();
        self.wbuf.held.push(Cause::Collection, self.wbuf.bytes);
        Ok(now)
    }

    /// Sets the new offsets of the nodes from `first` up to `last`.
    fn move_nodes(&mut self, first: NodeId, last: NodeId) {
        let block = self.next_block.expect("space was reserved");
        let mut next = Some(first);
        while let Some(id) = next.filter(|&id| id != last) {
            let node = self.nodes.get(id);
            let total_bytes = node.total_bytes();
            next = node.next_in_block;
            let new = self.link_node(block, node);
            if !node.role.is_bare() {
                let nodes = &mut self.files[node.ino.0 as usize - 1].nodes;
                nodes.remove(&mut self.nodes, id);
                self.nodes.change(new, |node| node.in_inode = Default::default());
                self.files[node.ino.0 as usize - 1].nodes.push(&mut self.nodes, new);
            }
            if node.state != State::Obsolete {
                self.replace_reference(id, new);
                self.space.change(self.block_of(node.flash_offset), |books| {
                    books.used_bytes -= total_bytes;
                    books.dirty_bytes += total_bytes;
                });
            }
            self.nodes.change(id, |old| {
                (old.role, old.state) = (Role::Padding { total_bytes }, State::Obsolete);
            });
        }
    }
}
