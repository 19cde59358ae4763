//! The journal: the nodes that each change writes, their order, and their index entries.
//!
//! Mirrors fs/ubifs/journal.c of Linux 6.1: make_reservation with reserve_space, and
//! ubifs_jnl_update, ubifs_jnl_write_data, ubifs_jnl_write_inode, ubifs_jnl_delete_inode,
//! ubifs_jnl_rename and ubifs_jnl_truncate.
//!
//! ubifs_add_bud_to_log may request a background commit. Here that commit starts when the writer
//! releases the commit lock, which is when the first node of the new bud is in the index.
//! Approximate: the commit then runs to its end at once, instead of beside the writer.
//!
//! Left out: names with equal hashes.

use super::gc::Collected;
use super::geometry::{
    align, BASE_HEAD, DATA_HEAD, DATA_HEADER_BYTES, DENT_BYTES, INODE_BYTES, TRUNCATION_BYTES,
};
use super::key::{hash_of, Key, Place};
use super::log::CommitState;
use super::properties::{Change, TAKEN};
use super::stored::What;
use super::tnc::accept_if_right;
use super::Ubifs;
use crate::compress::work::Work;
use crate::compress::UbifsData;
use crate::content::Contents;
use crate::fs::{FsError, Ino, Name, PageCache, Rename, Result, PAGE_BYTES};
use crate::mtd::NandDriver;
use crate::ops::name_len;
use crate::units::Ns;

/// The outcome of reserve_space.
enum Reserved {
    Yes,
    /// -EAGAIN: a commit has to come first.
    AfterCommit,
    NoSpace,
}

/// What a truncation leaves of the last block.
#[derive(Clone, Copy, Debug)]
struct LastBlock {
    key: Key,
    node_bytes: u32,
    bytes: u32,
}

/// An entry that is added or removed, with its inode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update<'a> {
    /// The directory and the name; for an attribute, its host inode and its name.
    pub at: Name<'a>,
    pub inum: u32,
    pub is_deletion: bool,
    /// It is an extended attribute.
    pub is_attribute: bool,
}

impl<'a> Update<'a> {
    /// A directory entry that is added.
    pub fn entry(at: Name<'a>, inum: u32) -> Update<'a> {
        Update { at, inum, is_deletion: false, is_attribute: false }
    }
}

/// The size of a directory entry's node.
pub(super) fn dent_bytes(name: &str) -> u32 {
    DENT_BYTES + name_len(name) as u32 + 1
}

impl<D: NandDriver> Ubifs<D> {
    /// make_reservation.
    fn reserve(&mut self, now: Ns, head: usize, bytes: u32) -> Result<Ns> {
        let mut now = now;
        let mut failed = 0;
        loop {
            self.check_writable(now)?;
            let (reserved, later) = self.reserve_space(now, head, bytes)?;
            now = later;
            match reserved {
                Reserved::Yes => return Ok(now),
                Reserved::NoSpace if failed == 2 => return Err(FsError::NoSpace(now)),
                Reserved::NoSpace => failed += 1,
                Reserved::AfterCommit => {}
            }
            now = self.commit(now)?;
        }
    }

    /// reserve_space: switches to another LEB if this one is full. Garbage collection may have to
    /// free one.
    fn reserve_space(&mut self, now: Ns, head: usize, bytes: u32) -> Result<(Reserved, Ns)> {
        let mut now = now;
        for _ in 0..=2 {
            let state = &self.journal.heads[head];
            let used = state.offset + state.used;
            if state.leb.is_some() && self.geometry.leb_bytes - used >= bytes {
                return Ok((Reserved::Yes, now));
            }
            let squeeze = head == BASE_HEAD;
            let index_lebs = self.budget.index_lebs_min();
            let found = self.lpt.find_free_space(&mut self.ubi, now, bytes, squeeze, index_lebs)?;
            now = found.1;
            if let Some((leb, offset)) = found.0 {
                return self.switch_head(now, head, leb, offset);
            }
            let (collected, later) = self.garbage_collect(now, false)?;
            now = later;
            match collected {
                Collected::Leb(leb) => return self.switch_head(now, head, leb, 0),
                Collected::Again => return Ok((Reserved::AfterCommit, now)),
                Collected::NoSpace => {}
            }
        }
        Ok((Reserved::NoSpace, now))
    }

    fn switch_head(
        &mut self,
        now: Ns,
        head: usize,
        leb: u32,
        offset: u32,
    ) -> Result<(Reserved, Ns)> {
        let now = self.sync_head(now, head)?;
        match self.add_bud(now, head, leb, offset)? {
            Some(now) => {
                self.seek_head(head, leb, offset);
                Ok((Reserved::Yes, now))
            }
            None => Ok((Reserved::AfterCommit, self.return_leb(now, leb)?)),
        }
    }

    /// ubifs_return_leb.
    pub(super) fn return_leb(&mut self, now: Ns, leb: u32) -> Result<Ns> {
        self.lpt.change(&mut self.ubi, now, leb, Change { clear: TAKEN, ..Change::default() })
    }

    /// finish_reservation: releases the commit lock, so a requested commit begins.
    pub(super) fn finish_reservation(&mut self, now: Ns) -> Result<Ns> {
        if self.journal.commit_state == CommitState::Resting {
            return Ok(now);
        }
        self.commit(now)
    }

    /// ubifs_add_dirt.
    pub(super) fn add_dirt(&mut self, now: Ns, leb: u32, bytes: u32) -> Result<Ns> {
        let change = Change { more_dirty: align(bytes, 8), ..Change::default() };
        self.lpt.change(&mut self.ubi, now, leb, change)
    }

    /// make_reservation and write_head of a group of nodes in the base head; returns their places.
    /// A data node unpacks to so many bytes.
    pub(super) fn write_group(
        &mut self,
        now: Ns,
        nodes: &[(Key, u32)],
        data_bytes: u32,
        inums: &[u32],
    ) -> Result<(Vec<Place>, Ns)> {
        let bytes = nodes.iter().map(|&(_, bytes)| align(bytes, 8)).sum();
        let now = self.reserve(now, BASE_HEAD, bytes)?;
        let group = self.next_place(BASE_HEAD, bytes);
        let now = self.append(now, BASE_HEAD, bytes)?;
        let mut offset = group.offset;
        let mut places = Vec::with_capacity(nodes.len());
        for (number, &(key, bytes)) in nodes.iter().enumerate() {
            let place = Place { leb: group.leb, offset, bytes };
            self.written.add(place, key, if key.is_data() { data_bytes } else { 0 });
            if key.is_inode() {
                self.store_inode(place, key.inum(), number + 1 < nodes.len());
            }
            places.push(place);
            offset += align(bytes, 8);
        }
        for &inum in inums {
            self.journal.heads[BASE_HEAD].add_inode(inum);
        }
        Ok((places, now))
    }

    /// Records a directory entry, which is first or second in its group.
    pub(super) fn store_entry(&mut self, place: Place, name: &str, target: Option<u32>) {
        self.store(place, true, || What::Entry { name: name.to_owned(), target });
    }

    /// Records a block of a file: its node holds what the page cache holds now.
    fn store_block(&mut self, place: Place, key: Key, bytes: u32, pages: &dyn PageCache) {
        let start = u64::from(key.block()) * u64::from(PAGE_BYTES);
        self.store(place, false, || {
            let mut block = Contents::new();
            block.copy_from(pages.contents(Ino(key.inum())), start, start + u64::from(bytes));
            What::Data(block)
        });
    }

    pub(super) fn add_leaf(&mut self, now: Ns, key: Key, place: Place) -> Result<Ns> {
        self.tnc.add(&mut self.ubi, &mut self.lpt, now, key, place, 0)
    }

    /// resolve_collision: reads the entry of a leaf with the key of a name, to compare the names.
    pub(super) fn read_name(&mut self, now: Ns, leaf: super::tnc::Leaf) -> Result<Ns> {
        if self.tnc.cache(leaf) {
            return Ok(now);
        }
        let place = self.tnc.place(leaf);
        let read = self.read_node(now, place, self.ubi.costs().ubifs_inode_ns);
        read.or_else(|error| accept_if_right(&self.ubi, place, error))
    }

    /// ubifs_tnc_add_nm.
    pub(super) fn add_name(&mut self, now: Ns, key: Key, place: Place) -> Result<Ns> {
        let (tnc, ubi, lpt) = (&mut self.tnc, &mut self.ubi, &mut self.lpt);
        let (leaf, exact, now) = tnc.lookup_dirty(ubi, lpt, now, key)?;
        if !exact {
            tnc.insert_leaf(leaf, key, place);
            return Ok(now);
        }
        let now = self.read_name(now, leaf)?;
        self.tnc.set_place(&mut self.ubi, &mut self.lpt, now, leaf, place, 0)
    }

    /// ubifs_tnc_remove_nm.
    pub(super) fn remove_name(&mut self, now: Ns, key: Key) -> Result<Ns> {
        let (tnc, ubi, lpt) = (&mut self.tnc, &mut self.ubi, &mut self.lpt);
        let (leaf, exact, now) = tnc.lookup_dirty(ubi, lpt, now, key)?;
        if !exact {
            return Ok(now); // the key of an unnamed file's deletion entry
        }
        let now = self.read_name(now, leaf)?;
        self.tnc.delete(&mut self.ubi, &mut self.lpt, now, leaf)
    }

    /// mark_inode_clean.
    pub(super) fn mark_inode_clean(&mut self, inum: u32) {
        if std::mem::take(&mut self.inode(inum).dirty) {
            let request = self.inode(inum).request();
            self.release_budget(&request);
        }
    }

    /// ubifs_add_orphan, for the inode and those of its extended attributes, and `del_cmtno`.
    fn add_orphan(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        self.orphans.add(inum);
        let now = self.each_attribute(now, inum, |fs, now, attribute| {
            fs.orphans.add_child(inum, attribute);
            Ok(now)
        })?;
        self.inode(inum).deleted_in = self.commits;
        Ok(now)
    }

    /// ubifs_jnl_update: writes an entry, its inode, and the directory or host inode.
    pub(super) fn jnl_update(&mut self, now: Ns, update: &Update<'_>) -> Result<Ns> {
        let Update { at, inum, is_deletion, is_attribute } = *update;
        let directory = at.directory.0;
        let dent = match is_attribute {
            true => Key::xent(directory, hash_of(at.name)),
            false => Key::dent(directory, at.name),
        };
        let inodes = [Key::inode(inum), Key::inode(directory)];
        let node_bytes = [inum, directory].map(|inum| self.inodes[&inum].node_bytes());
        let nodes =
            [(dent, dent_bytes(at.name)), (inodes[0], node_bytes[0]), (inodes[1], node_bytes[1])];
        let bytes = nodes.iter().map(|&(_, bytes)| align(bytes, 8)).sum();
        let mut now = self.reserve(now, BASE_HEAD, bytes)?;
        if is_deletion && self.inodes[&inum].links == 0 {
            now = self.add_orphan(now, inum)?;
        }
        let (places, mut now) = self.write_group(now, &nodes, 0, &[inum, directory])?;
        self.store_entry(places[0], at.name, (!is_deletion).then_some(inum));
        if is_attribute {
            now = self.sync_head(now, BASE_HEAD)?; // the attribute's inode has S_SYNC
        }
        if is_deletion {
            now = self.remove_name(now, dent)?;
            now = self.add_dirt(now, places[0].leb, places[0].bytes)?;
        } else {
            now = self.add_name(now, dent, places[0])?;
        }
        now = self.add_leaf(now, inodes[0], places[1])?;
        now = self.add_leaf(now, inodes[1], places[2])?;
        now = self.finish_reservation(now)?;
        let inode = self.inode(inum);
        inode.synced_bytes = inode.size_bytes;
        if is_attribute {
            let host = self.inode(directory);
            host.synced_bytes = host.size_bytes;
        }
        self.mark_inode_clean(inum);
        self.mark_inode_clean(directory);
        Ok(now)
    }

    /// ubifs_jnl_write_data: writes bytes of a block; compressed, the node holds fewer.
    pub(super) fn jnl_write_data(
        &mut self,
        now: Ns,
        inum: u32,
        block: u32,
        bytes: u32,
        data: UbifsData,
        pages: &dyn PageCache,
    ) -> Result<Ns> {
        let priced = self.ubi.costs().ubifs_write_ns(&data);
        let now = now + self.ubi.charge(priced);
        let node_bytes = DATA_HEADER_BYTES + data.node_bytes as u32;
        let now = self.reserve(now, DATA_HEAD, node_bytes)?;
        let place = self.next_place(DATA_HEAD, node_bytes);
        let now = self.append(now, DATA_HEAD, node_bytes)?;
        let key = Key::data(inum, block);
        self.written.add(place, key, bytes);
        self.store_block(place, key, bytes, pages);
        self.journal.heads[DATA_HEAD].add_inode(inum);
        let now = self.tnc.add(&mut self.ubi, &mut self.lpt, now, key, place, bytes)?;
        self.finish_reservation(now)
    }

    /// ubifs_jnl_write_inode: for an inode without a name it also removes all its keys from the
    /// index.
    pub(super) fn jnl_write_inode(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        let key = Key::inode(inum);
        let inode = self.inode(inum);
        let (is_last, node_bytes) = (inode.links == 0, inode.node_bytes());
        let killed = if is_last { inode.attributes.len() } else { 0 };
        let bytes = killed as u32 * INODE_BYTES + node_bytes;
        let (mut nodes, mut now) = (Vec::with_capacity(killed + 1), now);
        if killed > 0 {
            now = self.reserve(now, BASE_HEAD, bytes)?;
            now = self.each_attribute(now, inum, |fs, now, attribute| {
                let now = fs.iget_attribute(now, attribute)?;
                fs.inode(attribute).links = 0;
                nodes.push((Key::inode(attribute), INODE_BYTES));
                Ok(now)
            })?;
        }
        nodes.push((key, node_bytes));
        let (places, now) = self.write_group(now, &nodes, 0, &[inum])?;
        let now = if is_last {
            let now = self.remove_inode(now, inum)?;
            self.orphans.delete(inum);
            self.add_dirt(now, places[0].leb, bytes)?
        } else {
            self.add_leaf(now, key, places[0])?
        };
        let now = self.finish_reservation(now)?;
        let inode = self.inode(inum);
        inode.synced_bytes = inode.size_bytes;
        Ok(now)
    }

    /// ubifs_jnl_delete_inode: writes no second node if there was no commit since the last name was
    /// removed.
    pub(super) fn jnl_delete_inode(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        let inode = self.inode(inum);
        let has_attributes = !inode.attributes.is_empty();
        if has_attributes || inode.deleted_in != self.commits {
            return self.jnl_write_inode(now, inum);
        }
        let now = self.remove_inode(now, inum)?;
        self.orphans.delete(inum);
        self.finish_reservation(now)
    }

    /// ubifs_jnl_rename: writes the new entry, the old name's deletion entry, the replaced inode,
    /// and the directories.
    pub(super) fn jnl_rename(
        &mut self,
        now: Ns,
        rename: Rename<'_>,
        (behind, is_new): (Option<u32>, bool),
    ) -> Result<Ns> {
        let Rename { old, new, .. } = rename;
        let (moved, replaced) = (rename.ino.0, rename.replaced.map(|replaced| replaced.0));
        let (old_dir, new_dir) = (old.directory.0, new.directory.0);
        let (new_dent, old_dent) = (Key::dent(new_dir, new.name), Key::dent(old_dir, old.name));
        let mut nodes = vec![(new_dent, dent_bytes(new.name)), (old_dent, dent_bytes(old.name))];
        let directories = [Some(old_dir), (new_dir != old_dir).then_some(new_dir)];
        let inodes = replaced.into_iter().chain(behind.filter(|_| is_new));
        let inodes = inodes.chain(directories.into_iter().flatten());
        let inodes: Vec<u32> = inodes.collect();
        let node_of = |&inum: &u32| (Key::inode(inum), self.inodes[&inum].node_bytes());
        nodes.extend(inodes.iter().map(node_of));
        let bytes = nodes.iter().map(|&(_, bytes)| align(bytes, 8)).sum();
        let mut now = self.reserve(now, BASE_HEAD, bytes)?;
        if let Some(replaced) = replaced.filter(|inum| self.inodes[inum].links == 0) {
            now = self.add_orphan(now, replaced)?;
        }
        let (places, now) = self.write_group(now, &nodes, 0, &inodes)?;
        self.store_entry(places[0], new.name, Some(moved));
        self.store_entry(places[1], old.name, behind);
        let mut now = self.add_name(now, new_dent, places[0])?;
        if behind.is_some() {
            now = self.add_name(now, old_dent, places[1])?;
        } else {
            now = self.add_dirt(now, places[1].leb, places[1].bytes)?;
            now = self.remove_name(now, old_dent)?;
        }
        for (&inum, &place) in inodes.iter().zip(&places[2..]) {
            now = self.add_leaf(now, Key::inode(inum), place)?;
        }
        now = self.finish_reservation(now)?;
        if let Some(replaced) = replaced {
            let inode = self.inode(replaced);
            inode.synced_bytes = inode.size_bytes;
        }
        for inum in inodes {
            self.mark_inode_clean(inum);
        }
        Ok(now)
    }

    /// truncate_data_node, and the lookup of its node in ubifs_jnl_truncate: the last block's new
    /// node, or none if it does not change.
    fn truncate_data_node(
        &mut self,
        now: Ns,
        ino: Ino,
        new_bytes: u64,
        pages: &dyn PageCache,
    ) -> Result<(Option<LastBlock>, Ns)> {
        let rest = (new_bytes % u64::from(PAGE_BYTES)) as u32;
        if rest == 0 {
            return Ok((None, now));
        }
        let key = Key::data(ino.0, (new_bytes / u64::from(PAGE_BYTES)) as u32);
        let (leaf, now) = self.tnc.lookup(&mut self.ubi, now, key)?;
        let Some(leaf) = leaf else { return Ok((None, now)) };
        let (place, unpacked) = (self.tnc.place(leaf), self.tnc.data_bytes(leaf));
        let now = self.read_checked(now, place, self.ubi.costs().ubifs_node_ns)?;
        if unpacked <= rest {
            return Ok((None, now));
        }
        let was_compressed = place.bytes != DATA_HEADER_BYTES + unpacked;
        let start = new_bytes - u64::from(rest);
        let (data, now) = match was_compressed {
            true => {
                let now = now + self.unpacking_cost(place, unpacked);
                (self.compress(ino, start, new_bytes, pages), now)
            }
            false => (UbifsData { node_bytes: rest as usize, work: Work::default() }, now),
        };
        let priced = self.ubi.costs().ubifs_write_ns(&data);
        let now = now + self.ubi.charge(priced);
        let node_bytes = DATA_HEADER_BYTES + data.node_bytes as u32;
        Ok((Some(LastBlock { key, node_bytes, bytes: rest }), now))
    }

    /// ubifs_jnl_truncate: writes the inode, a truncation node and the remainder of the last block.
    pub(super) fn jnl_truncate(
        &mut self,
        now: Ns,
        ino: Ino,
        old_bytes: u64,
        new_bytes: u64,
        pages: &dyn PageCache,
    ) -> Result<Ns> {
        let inum = ino.0;
        let (last, now) = self.truncate_data_node(now, ino, new_bytes, pages)?;
        let key = Key::inode(inum);
        let mut nodes = vec![(key, INODE_BYTES), (Key::truncation(inum), TRUNCATION_BYTES)];
        nodes.extend(last.map(|block| (block.key, block.node_bytes)));
        let data_bytes = last.map_or(0, |block| block.bytes);
        let (places, mut now) = self.write_group(now, &nodes, data_bytes, &[inum])?;
        self.store(places[1], last.is_some(), || What::Truncation { old_bytes, new_bytes });
        if let Some(LastBlock { key, bytes, .. }) = last {
            self.store_block(places[2], key, bytes, pages);
            now = self.tnc.add(&mut self.ubi, &mut self.lpt, now, key, places[2], bytes)?;
        }
        now = self.add_leaf(now, key, places[0])?;
        now = self.add_dirt(now, places[1].leb, TRUNCATION_BYTES)?;
        let page_bytes = u64::from(PAGE_BYTES);
        let first = Key::data(inum, new_bytes.div_ceil(page_bytes) as u32);
        let end = Key::data(inum, old_bytes.div_ceil(page_bytes) as u32 - 1);
        now = self.tnc.remove_range(&mut self.ubi, &mut self.lpt, now, first, end)?;
        now = self.finish_reservation(now)?;
        let inode = self.inode(inum);
        inode.synced_bytes = inode.size_bytes;
        self.mark_inode_clean(inum);
        Ok(now)
    }
}
