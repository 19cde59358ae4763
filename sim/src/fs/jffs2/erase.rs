//! Erasing: a block that holds nothing good any more becomes free again.
//!
//! Mirrors fs/jffs2/erase.c of Linux 6.1 (jffs2_erase_pending_blocks, jffs2_erase_block,
//! jffs2_block_check_erase, jffs2_mark_erased_block, jffs2_erase_failed) and what of wbuf.c it needs
//! (jffs2_write_nand_badblock); 2.6.37 is the same. Every page of an erased block is read, whatever
//! is found there, before its cleanmarker is written.
//!
//! Invariant: a block on its way is counted in `erasing_blocks` until it is free or bad.

use super::layout::CLEANMARKER_BYTES;
use super::nodelist::{Node, Role};
use super::space::{Books, List};
use super::Jffs2;
use crate::chip::{Failed, Fault, Flash};
use crate::fs::{PageCache, Result, PAGE_BYTES};
use crate::units::Ns;

/// MAX_ERASE_FAILURES.
const ERASE_FAILURES_MAX: u8 = 2;

impl<F: Flash> Jffs2<F> {
    /// jffs2_erase_pending_blocks: at most `count` blocks become free; returns how many did.
    /// `pages` where no lock is held, so that the collector's thread may do a pass meanwhile.
    pub(super) fn erase_pending_blocks(
        &mut self,
        mut now: Ns,
        count: u32,
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<(u32, Ns)> {
        let mut done = 0;
        while done < count {
            if let Some(block) = self.space.pop_front(List::EraseComplete) {
                let pages = pages.as_mut().map(|pages| &mut **pages as &mut dyn PageCache);
                now = self.mark_erased_block(now, block, 0, pages)?;
                done += 1;
            } else if let Some(block) = self.space.pop_front(List::ErasePending) {
                now = self.erase_block(now, block)?;
                if self.is_interrupted(now, None) {
                    done += 1;
                    break;
                }
            } else {
                break;
            }
        }
        Ok((done, now))
    }

    /// jffs2_erase_block.
    fn erase_block(&mut self, now: Ns, number: u32) -> Result<Ns> {
        self.space.erasing_bytes += self.block_bytes;
        self.forget_nodes(number);
        self.space.change(number, |books| *books = Books::default());
        let now = match self.mtd.erase(now, number) {
            Err(Failed { at, fault: Fault::EraseFailed }) => return self.erase_failed(at, number),
            done => done?,
        };
        self.space.push_back(List::EraseComplete, number);
        self.trigger_collector(now);
        Ok(now)
    }

    /// jffs2_erase_failed: the block is tried once more, and then it is bad.
    fn erase_failed(&mut self, now: Ns, number: u32) -> Result<Ns> {
        let block_bytes = self.block_bytes;
        self.space.erasing_bytes -= block_bytes;
        if self.space.count_failed_erase(number) < ERASE_FAILURES_MAX {
            self.space.change(number, |books| books.dirty_bytes = block_bytes);
            self.space.push_front(List::ErasePending, number);
            return Ok(now);
        }
        self.space.erasing_blocks -= 1;
        match self.mtd.mark_bad(now, number) {
            Ok(at) | Err(Failed { at, fault: Fault::ProgramFailed }) => Ok(at),
            Err(failed) => Err(failed.into()),
        }
    }

    /// jffs2_free_jeb_node_refs.
    fn forget_nodes(&mut self, number: u32) {
        let mut next = self.space.block(number).first_node;
        while let Some(id) = next {
            let Node { ino, role, next_in_block, .. } = *self.nodes.get(id);
            next = next_in_block;
            if !matches!(role, Role::Summary | Role::Padding) {
                self.files[ino.0 as usize - 1].nodes.remove(&mut self.nodes, id);
            }
            self.nodes.remove(id);
        }
        self.space.forget_nodes(number);
    }

    /// jffs2_mark_erased_block: looked at page by page (of the CPU), from `offset` on if that was interrupted before;
    /// marked, and free.
    pub(super) fn mark_erased_block(
        &mut self,
        mut now: Ns,
        number: u32,
        offset: u32,
        mut pages: Option<&mut dyn PageCache>,
    ) -> Result<Ns> {
        let start = u64::from(number) * u64::from(self.block_bytes);
        let mut offset = offset;
        while offset < self.block_bytes {
            let bytes = PAGE_BYTES.min(self.block_bytes - offset);
            now = match self.mtd.read(now, start + u64::from(offset), bytes) {
                Ok(at) if self.mtd.is_unclean() => return self.erase_failed(at, number),
                Err(Failed { at, fault: Fault::Uncorrectable }) => {
                    return self.erase_failed(at, number);
                }
                read => read?,
            };
            offset += bytes;
            if self.is_interrupted(now, Some((number, offset))) {
                return Ok(now);
            }
            if let Some(pages) = pages.as_mut() {
                now = self.let_collector_run(now, &mut **pages)?;
            }
        }
        now = match self.mtd.write_oob(now, start, CLEANMARKER_BYTES) {
            Err(Failed { at, fault: Fault::ProgramFailed }) => {
                return self.erase_failed(at, number)
            }
            done => done?,
        };
        let block_bytes = self.block_bytes;
        self.space.change(number, |books| books.free_bytes = block_bytes);
        self.space.erasing_bytes -= block_bytes;
        self.space.push_back(List::Free, number);
        self.space.erasing_blocks -= 1;
        Ok(now)
    }
}
