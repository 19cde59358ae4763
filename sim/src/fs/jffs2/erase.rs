//! Erasing: a block without valid nodes becomes free again.
//!
//! Mirrors fs/jffs2/erase.c of Linux 6.1 (jffs2_erase_pending_blocks, jffs2_erase_block,
//! jffs2_block_check_erase, jffs2_mark_erased_block, jffs2_erase_failed) and what it needs of
//! wbuf.c (jffs2_write_nand_badblock). 2.6.37 is the same. After an erase JFFS2 reads every page of
//! the block, whatever it finds there, and then writes the cleanmarker.
//!
//! Invariant: from the start of its erase until it is free or bad, a block is counted in
//! `erasing_blocks`.

use super::call::Call;
use super::node::{Node, Role};
use super::space::{Books, List};
use super::tasks::reborrow;
use super::Jffs2;
use crate::flash::{Failed, Fault};
use crate::fs::{PageCache, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// MAX_ERASE_FAILURES.
const ERASE_FAILURES_MAX: u8 = 2;

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_erase_pending_blocks of the foreground: erases at most `count` blocks and returns how
    /// many became free. With `pages` the foreground holds no lock, and the collector thread may
    /// run a pass meanwhile.
    pub(super) fn erase_pending_blocks(
        &mut self,
        mut now: Ns,
        count: u32,
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<(u32, Ns)> {
        let mut done = 0;
        while done < count {
            if let Some(block) = self.take_erased() {
                now = self.mark_erased_block(now, block, reborrow(&mut pages))?;
                done += 1;
            } else if let Some(block) = self.begin_erase() {
                now = match self.call_with(now, Call::Erase { block }, reborrow(&mut pages))? {
                    Err(Failed { at, fault: Fault::EraseFailed }) => {
                        self.erase_failed(at, block)?
                    }
                    erased => {
                        // mutex_lock(&c->erase_free_sem)
                        let now = self.might_resched(erased?, reborrow(&mut pages))?;
                        self.erase_succeeded(now, block);
                        now
                    }
                };
                now = self.might_resched(now, reborrow(&mut pages))?;
            } else {
                break;
            }
        }
        Ok((done, now))
    }

    /// Takes a block that is erased and not yet checked.
    pub(super) fn take_erased(&mut self) -> Option<u32> {
        self.space.pop_front(List::EraseComplete)
    }

    /// Takes the next block to erase, and drops its books.
    pub(super) fn begin_erase(&mut self) -> Option<u32> {
        let block = self.space.pop_front(List::ErasePending)?;
        self.space.erasing_bytes += self.block_bytes;
        self.forget_nodes(block);
        self.space.change(block, |books| *books = Books::default());
        Some(block)
    }

    /// jffs2_erase_succeeded.
    pub(super) fn erase_succeeded(&mut self, now: Ns, block: u32) {
        self.space.push_back(List::EraseComplete, block);
        self.trigger_collector(now);
        self.wake_waiter(now);
    }

    /// jffs2_erase_failed: the first failure puts the block back on the list, the next one marks it
    /// bad.
    pub(super) fn erase_failed(&mut self, now: Ns, number: u32) -> Result<Ns> {
        let block_bytes = self.block_bytes;
        self.space.erasing_bytes -= block_bytes;
        if self.space.count_failed_erase(number) < ERASE_FAILURES_MAX {
            self.space.change(number, |books| books.dirty_bytes = block_bytes);
            self.space.push_front(List::ErasePending, number);
            return Ok(now);
        }
        self.space.erasing_blocks -= 1;
        self.wake_waiter(now);
        match self.mtd.mark_bad(now, number) {
            Ok(at) | Err(Failed { at, fault: Fault::ProgramFailed }) => Ok(at),
            Err(failed) => Err(failed.into()),
        }
    }

    /// jffs2_free_jeb_node_refs.
    fn forget_nodes(&mut self, number: u32) {
        let mut next = self.space.block(number).first_node;
        while let Some(id) = next {
            let Node { ino, role, next_in_block, .. } = self.nodes.get(id);
            next = next_in_block;
            if role == Role::Xref {
                self.xattrs.forget_node(id);
            }
            if !role.is_bare() {
                self.files[ino.0 as usize - 1].nodes.remove(&mut self.nodes, id);
            }
            self.nodes.remove(id);
        }
        self.space.forget_nodes(number);
    }

    /// jffs2_mark_erased_block: checks the block page by page, writes its cleanmarker, and files it
    /// as free.
    fn mark_erased_block(
        &mut self,
        mut now: Ns,
        block: u32,
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        let mut offset = 0;
        while offset < self.block_bytes {
            let (bytes, check) = self.check_of(block, offset);
            now = match self.call_with(now, check, reborrow(&mut pages))? {
                Ok(at) if self.mtd.is_unclean() => return self.erase_failed(at, block),
                Err(Failed { at, fault: Fault::Uncorrectable }) => {
                    return self.erase_failed(at, block);
                }
                read => read? + self.erased_check_ns(bytes),
            };
            now = self.might_resched(now, reborrow(&mut pages))?;
            offset += bytes;
        }
        now = match self.call_with(now, Call::WriteMarker { block }, reborrow(&mut pages))? {
            Err(Failed { at, fault: Fault::ProgramFailed }) => {
                return self.erase_failed(at, block);
            }
            done => self.might_resched(done?, pages)?, // mutex_lock(&c->erase_free_sem)
        };
        self.mark_free(now, block);
        Ok(now)
    }

    /// Processor time to check that these bytes are 0xff (jffs2_block_check_erase).
    pub(super) fn erased_check_ns(&self, bytes: u32) -> Ns {
        Ns::from_ps(bytes.into(), self.mtd.costs().jffs2_erased_byte_ps)
    }

    /// The end of jffs2_mark_erased_block: the block is free.
    pub(super) fn mark_free(&mut self, now: Ns, block: u32) {
        let block_bytes = self.block_bytes;
        self.space.change(block, |books| books.free_bytes = block_bytes);
        self.space.erasing_bytes -= block_bytes;
        self.link_marker(block);
        self.space.push_back(List::Free, block);
        self.space.erasing_blocks -= 1;
        self.wake_waiter(now);
    }
}
