//! Mounting: from the checkpoint, or else by scanning every block, the newest first.
//!
//! Mirrors yaffs_guts_initialise and yaffs_strip_deleted_objs of yaffs_guts.c,
//! yaffs2_scan_backwards and yaffs2_scan_chunk of yaffs_yaffs2.c, yaffs_summary_read of
//! yaffs_summary.c, and of kernel/yaffs2/nand.c query_block and the check for a foreign file
//! system. The newest chunks come first, so of two chunks for the same part of a file the second is
//! deleted.
//!
//! Invariant: after a mount every programmed chunk is either in use or deleted.

use super::blocks::{Blocks, State};
use super::checkptrw;
use super::gc::Gc;
use super::kind::Kind;
use super::nand::{Ecc, Header, Tags, SUMMARY};
use super::object::Objects;
use super::{Chunk, Yaffs2, DELETED, LOST_AND_FOUND, ROOT_OBJECT, UNLINKED};
use crate::content::Contents;
use crate::flash::Torn;
use crate::fs::{Found, FsError, Ino, Result, ROOT};
use crate::mtd::{NandDriver, TornAt};
use crate::units::Ns;
use std::collections::VecDeque;

/// YAFFS_LOWEST_SEQUENCE_NUMBER.
const SEQUENCE_MIN: u32 = 0x1000;

impl<D: NandDriver> Yaffs2<D> {
    /// Empties memory before a mount.
    fn forget_everything(&mut self) {
        self.blocks = Blocks::new(self.mtd.blocks());
        self.in_use.fill(0);
        self.objects = Objects::new();
        self.cache = Default::default();
        (self.tnodes, self.erased_blocks, self.free_chunks) = (0, 0, 0);
        (self.alloc_block, self.alloc_page, self.alloc_finder) = (None, 0, 0);
        (self.checkpoint_blocks, self.is_checkpointed) = (0, false);
        self.gc = Gc::after_mount();
        self.summary_from = 0;
        self.create_initial_directories();
    }

    /// yaffs_guts_initialise and the rest of fill_super.
    pub(super) fn mount(&mut self, now: Ns) -> Result<Ns> {
        self.forget_everything();
        let (restored, mut now) = self.restore_checkpoint(now)?;
        if !restored {
            self.saved = None;
            self.forget_everything();
            now = self.scan_backwards(now)?;
        }
        now = self.strip_deleted(now)?;
        let costs = self.mtd.costs();
        now += costs.yaffs2_mount_ns + costs.yaffs2_object_ns * u64::from(self.objects.count);
        if !self.is_checkpointed && self.checkpoint_blocks > 0 {
            now = self.invalidate_checkpoint(now)?;
        }
        if !self.is_checkpointed {
            now = self.check_for_foreign_fs(now)?;
        }
        self.is_dirty = !self.is_checkpointed;
        self.iget(ROOT_OBJECT);
        self.start_thread(now)
    }

    /// yfs_nand_foreign: if no block is YAFFS2's, reads the first page of every block.
    fn check_for_foreign_fs(&mut self, mut now: Ns) -> Result<Ns> {
        let ours = |number: u32| self.on_flash.sequence(number) > 0;
        if (1..=self.blocks.last()).any(ours) {
            return Ok(now);
        }
        for block in 0..self.mtd.blocks() {
            if !self.mtd.is_bad(block) {
                let start = u64::from(block) * u64::from(self.mtd.block_bytes());
                let page_bytes = self.mtd.page_bytes();
                now = self.mtd.read(now, start, page_bytes)?;
                now += Ns::from_ps(page_bytes.into(), self.mtd.costs().yaffs2_erased_byte_ps);
                self.might_resched_locked(now);
            }
        }
        Ok(now)
    }

    /// yaffs2_scan_backwards.
    fn scan_backwards(&mut self, mut now: Ns) -> Result<Ns> {
        self.sequence = SEQUENCE_MIN;
        let mut order = Vec::new();
        for number in 1..=self.blocks.last() {
            if self.mtd.is_bad(number - 1) {
                self.blocks.get_mut(number).state = State::Dead;
                continue;
            }
            let first = number * self.pages_per_block;
            now = self.read_tags_quietly(now, first)?;
            let block = self.blocks.get_mut(number);
            block.sequence = self.on_flash.sequence(number);
            block.state = match block.sequence {
                checkptrw::SEQUENCE => State::Checkpoint,
                _ if self.on_flash.is_erased(first) => State::Empty,
                _ => State::NeedsScan,
            };
            match block.state {
                State::Checkpoint => self.checkpoint_blocks += 1,
                State::Empty => {
                    self.erased_blocks += 1;
                    self.free_chunks += i64::from(self.pages_per_block);
                }
                _ if block.sequence >= SEQUENCE_MIN => order.push((block.sequence, number)),
                _ => {} // torn by a power cut
            }
            self.sequence = self.sequence.max(order.last().map_or(0, |&(sequence, _)| sequence));
        }
        order.sort_unstable();
        for (_, number) in order.into_iter().rev() {
            now = self.scan_block(now, number)?;
        }
        self.skip_rest_of_block();
        let mut names = self.scanned_names.split_off(0);
        names.retain(|&number| self.objects.get(number).is_some());
        self.fix_links(names);
        Ok(now)
    }

    fn scan_block(&mut self, now: Ns, number: u32) -> Result<Ns> {
        let (has_summary, mut now) = self.read_summary(now, number)?;
        let pages = if has_summary { self.chunks_per_summary } else { self.pages_per_block };
        let mut found = false;
        for page in (0..pages).rev() {
            let state = self.blocks.get(number).state;
            if !matches!(state, State::NeedsScan | State::Allocating) {
                break;
            }
            now = self.scan_chunk(now, (number, page), &mut found, has_summary)?;
        }
        let block = self.blocks.get_mut(number);
        if block.state == State::NeedsScan {
            block.state = State::Full;
        }
        if block.pages_in_use == 0 && !block.has_shrink_header && block.state == State::Full {
            now = self.block_became_dirty(now, number)?;
        }
        Ok(now)
    }

    /// yaffs_summary_read.
    fn read_summary(&mut self, mut now: Ns, number: u32) -> Result<(bool, Ns)> {
        for page in self.chunks_per_summary..self.pages_per_block {
            let chunk = number * self.pages_per_block + page;
            let (ecc, later) = self.read_chunk(now, chunk)?;
            now = later;
            let wanted = page - self.chunks_per_summary + 1;
            let is_it = |tags: Tags| tags.object == SUMMARY && tags.chunk == wanted;
            if ecc == Ecc::Unfixed || !self.on_flash.tags(chunk).is_some_and(is_it) {
                return Ok((false, now));
            }
            self.set_in_use(chunk, true);
            self.blocks.get_mut(number).pages_in_use += 1;
        }
        let is_whole = self.on_flash.summary(number).is_some();
        self.blocks.get_mut(number).has_summary = is_whole;
        Ok((is_whole, now))
    }

    /// yaffs2_scan_chunk.
    fn scan_chunk(
        &mut self,
        mut now: Ns,
        (number, page): (u32, u32),
        found: &mut bool,
        has_summary: bool,
    ) -> Result<Ns> {
        let chunk = number * self.pages_per_block + page;
        let tags = self.on_flash.tags(chunk);
        let summary = self.on_flash.summary(number).filter(|_| has_summary);
        if tags.is_none() || summary.is_none_or(|summary| page < summary.from) {
            now = self.read_tags_quietly(now, chunk)?;
        }
        match tags.filter(|tags| tags.object != SUMMARY) {
            None => {
                if self.on_flash.is_erased(chunk) && !*found {
                    self.found_erased(number, page);
                }
                self.free_chunks += 1;
                Ok(now)
            }
            Some(tags) => {
                *found = true;
                self.set_in_use(chunk, true);
                self.blocks.get_mut(number).pages_in_use += 1;
                match tags.chunk {
                    0 => self.scan_header(now, tags.object, chunk),
                    _ => self.scan_data(now, tags, chunk),
                }
            }
        }
    }

    /// Handles an erased page: nothing was written after it, so the block may be the one being
    /// written.
    fn found_erased(&mut self, number: u32, page: u32) {
        let newest = self.sequence;
        let block = self.blocks.get_mut(number);
        if page == 0 {
            block.state = State::Empty;
            self.erased_blocks += 1;
        } else if block.sequence == newest {
            block.state = State::Allocating;
            (self.alloc_block, self.alloc_page) = (Some(number), page);
            self.alloc_finder = number;
        }
    }

    fn scan_data(&mut self, now: Ns, tags: Tags, chunk: Chunk) -> Result<Ns> {
        if self.objects.get(tags.object).is_none() {
            self.new_object(tags.object, Kind::File);
        }
        let start = u64::from(tags.chunk - 1) * u64::from(self.chunk_bytes);
        let file = self.object_mut(tags.object);
        if !file.is_file() || start >= file.shrink_bytes || file.tree.get(tags.chunk) != 0 {
            return self.delete_chunk(now, chunk);
        }
        let end = start + u64::from(tags.bytes);
        if !file.is_valid && file.scanned_bytes < end {
            (file.scanned_bytes, file.size_bytes) = (end, end);
        }
        self.put_chunk_in_file(tags.object, tags.chunk, chunk);
        Ok(now)
    }

    fn scan_header(&mut self, mut now: Ns, number: u32, chunk: Chunk) -> Result<Ns> {
        let header = self.on_flash.headers[&chunk].clone();
        if self.objects.get(number).is_none() {
            self.new_object(number, header.kind.clone());
        }
        let is_special = number == ROOT_OBJECT || number == LOST_AND_FOUND;
        let is_valid = self.object(number).is_valid;
        let is_read = header.shadows > 0 || (!is_valid && is_special);
        if is_read {
            now = self.read_chunk(now, chunk)?.1;
        }
        if is_valid {
            self.scan_old_header(number, chunk, &header);
            return self.delete_chunk(now, chunk);
        }
        if let Kind::Name(_) = header.kind {
            self.scanned_names.push(number);
        }
        let object = self.object_mut(number);
        (object.is_valid, object.header_chunk) = (true, chunk);
        object.is_lazy = !is_read;
        if !is_special {
            self.scan_new_header(number, chunk, header);
        }
        Ok(now)
    }

    /// Applies a header that a newer one replaced. Only its truncation counts.
    fn scan_old_header(&mut self, number: u32, chunk: Chunk, header: &Header) {
        let file = self.object_mut(number);
        if !file.is_file() || header.kind != Kind::File {
            return;
        }
        let is_gone = header.parent == DELETED || header.parent == UNLINKED;
        if is_gone || header.is_shrink {
            let size = if is_gone { 0 } else { header.size_bytes };
            file.shrink_bytes = file.shrink_bytes.min(size);
            self.blocks.get_mut(chunk / self.pages_per_block).has_shrink_header = true;
        }
    }

    fn scan_new_header(&mut self, number: u32, chunk: Chunk, header: Header) {
        if header.shadows > 0 && self.objects.get(header.shadows).is_none() {
            self.new_object(header.shadows, Kind::File);
            self.add_to_directory(UNLINKED, header.shadows);
            let shadowed = self.object_mut(header.shadows);
            (shadowed.is_shadowed, shadowed.is_valid, shadowed.shrink_bytes) = (true, true, 0);
        }
        let parent = match header.parent {
            parent if self.objects.get(parent).is_none() => {
                self.new_object(parent, Kind::Directory);
                parent
            }
            parent if self.object(parent).is_directory() => parent,
            _ => LOST_AND_FOUND,
        };
        self.name_in_directory(number, (parent, &header.name));
        if header.is_shrink {
            self.blocks.get_mut(chunk / self.pages_per_block).has_shrink_header = true;
        }
        let object = self.object_mut(number);
        if !object.is_file() {
            return;
        }
        if object.scanned_bytes < header.size_bytes {
            (object.size_bytes, object.scanned_bytes) = (header.size_bytes, header.size_bytes);
        }
        object.shrink_bytes = object.shrink_bytes.min(header.size_bytes);
    }

    /// yaffs_strip_deleted_objs and yaffs_empty_l_n_f.
    fn strip_deleted(&mut self, mut now: Ns) -> Result<Ns> {
        for directory in [UNLINKED, DELETED, LOST_AND_FOUND] {
            let mut doomed = Vec::from_iter(self.objects.children(directory).rev());
            let own = doomed.len();
            let mut at = 0;
            while let Some(&number) = doomed.get(at) {
                doomed.extend(self.objects.children(number).rev());
                at += 1;
            }
            // The content of a directory is deleted before the directory.
            let has_names = |&number: &_| self.objects.has_other_names(number);
            if directory == LOST_AND_FOUND && doomed.iter().any(has_names) {
                return Err(FsError::NotModelled("YAFFS2 that deletes a file of several names"));
            }
            let (own, below) = doomed.split_at(own);
            for &number in below.iter().rev().chain(own) {
                now = self.delete_object(now, number)?;
            }
        }
        Ok(now)
    }

    /// put_super, then fill_super from what is on the flash.
    pub(super) fn unmount_and_mount(&mut self, now: Ns) -> Result<Ns> {
        let now = self.stop_thread(now)?;
        let now = self.locked(now, |fs, now| fs.flush_rest(now, true))?;
        self.mount(now)
    }

    /// Mounts after a power cut. Returns every name with the object it refers to.
    pub(super) fn mount_after_power_cut(
        &mut self,
        now: Ns,
        torn: Option<Torn>,
    ) -> Result<(Vec<Found>, Ns)> {
        match self.mtd.power_on(torn) {
            Some(TornAt::Program { offset, .. }) => {
                let page = offset / u64::from(self.mtd.page_bytes());
                self.on_flash.tear(page as u32 + self.pages_per_block);
            }
            Some(TornAt::Erase { block }) => {
                self.on_flash.clear(block + 1);
                self.on_flash.tear((block + 1) * self.pages_per_block);
            }
            None => {}
        }
        self.forget_tasks();
        let now = self.mount(now)?;
        Ok((self.tree(), now))
    }

    fn tree(&self) -> Vec<Found> {
        let mut tree = Vec::new();
        let mut directories = VecDeque::from([ROOT]);
        while let Some(directory) = directories.pop_front() {
            for number in self.objects.children(directory.0) {
                if number == LOST_AND_FOUND {
                    continue;
                }
                let name = self.object(number).name.clone();
                let number = self.equivalent(number);
                let object = self.object(number);
                if object.is_directory() {
                    directories.push_back(Ino(number));
                }
                let target = match &object.kind {
                    Kind::Link(target) => Some(target.to_string()),
                    _ => None,
                };
                tree.push(Found {
                    directory,
                    name,
                    ino: Ino(number),
                    is_directory: object.is_directory(),
                    target,
                    size_bytes: object.size_bytes,
                    contents: self.contents_of(number),
                });
            }
        }
        tree
    }

    fn contents_of(&self, number: u32) -> Contents {
        let object = self.object(number);
        let mut contents = Contents::new();
        for (piece, chunk) in object.tree.chunks() {
            let start = u64::from(piece - 1) * u64::from(self.chunk_bytes);
            let end = start + u64::from(self.chunk_bytes);
            if let Some(stored) = self.on_flash.contents.get(&chunk) {
                contents.copy_from(stored, start, end.min(object.size_bytes).max(start));
            }
        }
        contents
    }
}
