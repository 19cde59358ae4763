//! Reading an inode: read its nodes and build its fragment tree.
//!
//! Mirrors fs/jffs2/readinode.c of Linux 6.1 (jffs2_get_inode_nodes, jffs2_add_tn_to_tree,
//! jffs2_build_inode_fragtree, check_node_data, jffs2_do_read_inode_internal,
//! jffs2_do_crccheck_inode). Nodes are read in the reverse of the order in which they were written
//! or scanned. Of overlapping nodes the higher version is valid. The data of a node that a mount
//! has found are read to their end only if no other node covers it. Left out: special files.
//!
//! Invariant: a node that has been read is no longer `Unchecked`.

use super::fragments::Fragments;
use super::inode::InodeState;
use super::layout::{MIN_HEADER_BYTES, RAW_DIRENT_BYTES, RAW_INODE_BYTES};
use super::node::{Node, NodeId, Role, State};
use super::nodelist::InodeNodes;
use super::rbtree::{Place, RbTree, Side};
use super::Jffs2;
use crate::fs::{Ino, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// struct jffs2_tmp_dnode_info.
#[derive(Clone, Copy, Debug)]
struct Found {
    node: NodeId,
    version: u32,
    start: u32,
    end: u32,
    /// A node at a lower offset reaches into this one.
    overlapped: bool,
}

/// struct jffs2_readinode_info.
#[derive(Debug, Default)]
struct Reading {
    tree: RbTree<Found>,
    metadata: Option<NodeId>,
    latest: Option<NodeId>,
}

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_do_read_inode_internal: reads every valid node from its start to the end of a flash
    /// page, and the rest of a name beyond that page. Then it reads the header of the latest
    /// version, and unless this is only a check the target of a symbolic link.
    pub(super) fn read_inode(&mut self, now: Ns, ino: Ino, is_check: bool) -> Result<Ns> {
        let now = self.read_nodes(now, ino, is_check)?;
        self.write_marks(now)
    }

    fn read_nodes(&mut self, now: Ns, ino: Ino, is_check: bool) -> Result<Ns> {
        let mut reading = Reading::default();
        let mut now = now;
        let mut next = self.file(ino).nodes.last();
        while let Some(id) = next {
            next = InodeNodes::before(&self.nodes, id);
            if self.nodes.get(id).state != State::Obsolete {
                now = self.read_head(now, id, &mut reading)?;
            }
        }
        now = self.build_fragments(now, ino, &mut reading)?;
        match reading.metadata {
            Some(metadata) if reading.latest == Some(metadata) => {
                self.file_mut(ino).metadata = Some(metadata);
            }
            Some(metadata) => self.mark_obsolete(now, metadata),
            None => {}
        }
        let Some(latest) = reading.latest else { return Ok(now) };
        let Node { flash_offset, size_bytes, role, .. } = self.nodes.get(latest);
        let now = self.flash_read(now, flash_offset, RAW_INODE_BYTES)?;
        if self.file(ino).has_one_node() {
            self.nodes.set_fragments(latest, 0);
            let file = self.file_mut(ino);
            (file.fragments, file.metadata) = (Fragments::default(), Some(latest));
            file.size_bytes = size_bytes;
            if is_check || file.is_device {
                return Ok(now);
            }
            return self.flash_read(now, flash_offset + RAW_INODE_BYTES, role.parts()[1]);
        }
        let mut size_bytes = size_bytes;
        if !self.file(ino).is_directory {
            let fragments = &mut self.files[ino.0 as usize - 1].fragments;
            let gone = fragments.truncate(&mut self.nodes, size_bytes);
            // mkfs.jffs2 writes the whole size into each node, and the last may be broken.
            size_bytes = size_bytes.min(fragments.end().unwrap_or(0));
            gone.into_iter().for_each(|gone| self.mark_obsolete(now, gone));
        }
        self.file_mut(ino).size_bytes = size_bytes;
        Ok(now)
    }

    /// One iteration of jffs2_get_inode_nodes.
    fn read_head(&mut self, now: Ns, id: NodeId, reading: &mut Reading) -> Result<Ns> {
        let page_bytes = self.medium.unit_bytes;
        let Node { flash_offset: at, role, ino, version, .. } = self.nodes.get(id);
        let read = (at + MIN_HEADER_BYTES).next_multiple_of(page_bytes) - at;
        let now = self.flash_read(now + self.mtd.costs().jffs2_node_ns, at, read)?;
        let more = match role {
            Role::Dirent { name_bytes, .. } => {
                (RAW_DIRENT_BYTES + u32::from(name_bytes)).saturating_sub(read)
            }
            _ if read < RAW_INODE_BYTES => {
                (at + RAW_INODE_BYTES).next_multiple_of(page_bytes) - at - read
            }
            _ => 0,
        };
        let now = if more > 0 { self.flash_read(now, at + read, more)? } else { now };
        let file = self.file_mut(ino);
        file.highest_version = file.highest_version.max(version);
        match role {
            Role::Dirent { .. } => {
                let state = self.nodes.get(id).dirent_state();
                self.mark_checked(id, state);
                self.add_entry(now, id);
                Ok(now)
            }
            Role::Hole { .. } | Role::Metadata => {
                self.mark_checked(id, State::Normal);
                self.add_found(now, id, reading)
            }
            _ if self.is_seen_damaged(id, read + more) => {
                self.mark_obsolete(now, id);
                Ok(now)
            }
            _ => self.add_found(now, id, reading),
        }
    }

    /// Whether a node's data lie within the bytes already read and are wrong.
    fn is_seen_damaged(&self, id: NodeId, read: u32) -> bool {
        let Node { role, is_damaged, .. } = self.nodes.get(id);
        let Role::Data { data_bytes, .. } = role else { return false };
        is_damaged && RAW_INODE_BYTES + u32::from(data_bytes) <= read
    }

    /// Marks a valid node that a mount has found as checked.
    pub(super) fn mark_checked(&mut self, id: NodeId, state: State) {
        if self.nodes.get(id).state != State::Unchecked {
            return;
        }
        let node = self.nodes.set_state(id, state);
        let (number, bytes) = (self.block_of(node.flash_offset), node.total_bytes());
        self.space.change(number, |books| {
            books.unchecked_bytes -= bytes;
            books.used_bytes += bytes;
        });
    }

    /// check_tn_node: reads and checks the data beyond the flash page in which they begin. Returns
    /// whether the node is valid, and marks it obsolete if it is not.
    fn check_data(&mut self, now: Ns, id: NodeId) -> Result<(bool, Ns)> {
        let Node { flash_offset, role, state, is_damaged, .. } = self.nodes.get(id);
        let (State::Unchecked, Role::Data { data_bytes, .. }) = (state, role) else {
            return Ok((true, now));
        };
        let data_bytes = u32::from(data_bytes);
        let data = flash_offset + RAW_INODE_BYTES;
        let seen = data.next_multiple_of(self.medium.unit_bytes) - data;
        let mut now = now;
        if seen < data_bytes {
            let left = data_bytes - seen;
            now = self.flash_read(now, data + seen, left)?;
            now += Ns::from_ps(u64::from(left), self.mtd.costs().jffs2_byte_ps);
        }
        if is_damaged {
            self.mark_obsolete(now, id);
        } else {
            self.mark_checked(id, State::Pristine);
        }
        Ok((!is_damaged, now))
    }

    /// jffs2_add_tn_to_tree.
    fn add_found(&mut self, mut now: Ns, id: NodeId, reading: &mut Reading) -> Result<Ns> {
        let node = self.nodes.get(id);
        let new = Found {
            node: id,
            version: node.version,
            start: node.file_offset,
            end: node.file_end(),
            overlapped: false,
        };
        if new.start == new.end {
            self.add_metadata(now, id, reading);
            return Ok(now);
        }
        let tree = &mut reading.tree;
        let mut at = first_relevant(tree, new.start);
        while let Some(place) = at {
            let this = *tree.get(place);
            if this.start > new.end {
                break;
            }
            let covered = this.start >= new.start && this.end <= new.end;
            let covers = this.start <= new.start && this.end >= new.end;
            if this.version == new.version || this.version > new.version && covers {
                let (good, later) = self.check_data(now, this.node)?;
                now = later;
                if good {
                    self.mark_obsolete(now, id);
                    return Ok(now);
                }
                if this.version == new.version {
                    *tree.get_mut(place) = Found { overlapped: this.overlapped, ..new };
                    return Ok(now);
                }
                tree.erase(place);
                break;
            }
            if this.version < new.version && covered {
                let (good, later) = self.check_data(now, id)?;
                now = later;
                if !good {
                    return Ok(now);
                }
                at = self.kill_covered(now, tree, place, &new);
                continue;
            }
            at = tree.next(place);
        }
        insert(tree, new);
        Ok(now)
    }

    /// Keeps a node without data only if it is the latest of its kind.
    fn add_metadata(&mut self, now: Ns, id: NodeId, reading: &mut Reading) {
        let version = self.nodes.get(id).version;
        match reading.metadata {
            Some(old) if self.nodes.get(old).version >= version => self.mark_obsolete(now, id),
            old => {
                reading.metadata = Some(id);
                if let Some(old) = old {
                    self.mark_obsolete(now, old);
                }
            }
        }
    }

    /// Removes the nodes from `first` on that `new` covers. Returns the next one.
    fn kill_covered(
        &mut self,
        now: Ns,
        tree: &mut RbTree<Found>,
        first: Place,
        new: &Found,
    ) -> Option<Place> {
        let mut at = Some(first);
        while let Some(place) = at.filter(|&place| tree.get(place).end <= new.end) {
            at = tree.next(place);
            let this = *tree.get(place);
            if this.version < new.version {
                tree.erase(place);
                self.mark_obsolete(now, this.node);
            }
        }
        at
    }

    /// jffs2_build_inode_fragtree: works from the end of the file down, and adds overlapping nodes
    /// in the order of their versions.
    fn build_fragments(&mut self, mut now: Ns, ino: Ino, reading: &mut Reading) -> Result<Ns> {
        reading.latest = reading.metadata;
        let mut highest = reading.metadata.map_or(0, |id| self.nodes.get(id).version);
        let mut together: Vec<Found> = Vec::new();
        let mut at = reading.tree.last();
        while let Some(place) = at {
            at = reading.tree.previous(place);
            let found = *reading.tree.get(place);
            together.push(found);
            if found.overlapped && at.is_some() {
                continue;
            }
            together.sort_by_key(|found| found.version);
            for found in together.drain(..) {
                let (good, later) = self.check_data(now, found.node)?;
                now = later;
                if !good {
                    continue;
                }
                if found.version > highest {
                    highest = found.version;
                    reading.latest = Some(found.node);
                }
                now = self.add_fragment(now, ino, found.node)?;
            }
        }
        Ok(now)
    }

    /// jffs2_do_crccheck_inode: reads the inode and drops it again.
    pub(super) fn check_inode(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let now = self.read_inode(now, ino, true)?;
        self.forget_inode(ino);
        Ok(now)
    }

    /// The beginning of jffs2_garbage_collect_pass: while there are unchecked nodes, a pass only
    /// checks the next inode that has some. Inodes come in the order of the hash table's chains.
    pub(super) fn next_unchecked(&mut self) -> Option<Ino> {
        let chains = self.hash_chains();
        let at = self.check_ino;
        let wanted = |&&ino: &&u32| self.files[ino as usize - 1].state == InodeState::Unchecked;
        let inos: Vec<u32> = (1..=self.files.len() as u32).collect();
        let in_chain = |ino: u32| (ino % chains, ino);
        let next = inos.iter().filter(wanted).filter(|&&ino| {
            let file = &self.files[ino as usize - 1];
            let first_chain = ino % chains == at % chains;
            let ahead = if first_chain { ino >= at } else { ino % chains > at % chains };
            ahead && file.links > 0 && !file.nodes.is_empty()
        });
        let next = next.copied().min_by_key(|&ino| in_chain(ino))?;
        self.check_ino = next + chains;
        Some(Ino(next))
    }

    /// calculate_inocache_hashsize.
    pub(super) fn hash_chains(&self) -> u32 {
        let mib = u32::try_from(self.mtd.size_bytes() >> 20).expect("a partition below 4 GiB");
        ((mib * 2) & !0x3f).clamp(128, 1024)
    }
}

/// jffs2_lookup_tn, and back to the first node that may reach beyond `start`.
fn first_relevant(tree: &mut RbTree<Found>, start: u32) -> Option<Place> {
    let (mut next, mut found) = (tree.root(), None);
    while let Some(place) = next {
        found = Some(place);
        let side = if tree.get(place).start < start { Side::Right } else { Side::Left };
        next = tree.child(place, side);
    }
    let mut at = found?;
    back_up(tree, &mut at);
    Some(at)
}

/// Steps back while a node is overlapped. The first node never is.
fn back_up(tree: &mut RbTree<Found>, at: &mut Place) {
    while tree.get(*at).overlapped {
        match tree.previous(*at) {
            Some(before) => *at = before,
            None => tree.get_mut(*at).overlapped = false,
        }
    }
}

/// The end of jffs2_add_tn_to_tree: inserts by offset, of equal offsets the shortest first, and
/// notes which nodes overlap.
fn insert(tree: &mut RbTree<Found>, new: Found) {
    let (mut next, mut parent) = (tree.root(), None);
    while let Some(place) = next {
        let this = tree.get(place);
        let shorter = new.end - new.start < this.end - this.start;
        let before = new.start < this.start || new.start == this.start && shorter;
        let side = if before { Side::Left } else { Side::Right };
        parent = Some((place, side));
        next = tree.child(place, side);
    }
    let at = tree.insert(parent, new);
    note_overlap_behind(tree, at);
    let mut next = tree.next(at);
    while let Some(place) = next.filter(|&place| tree.get(place).start < new.end) {
        tree.get_mut(place).overlapped = true;
        next = tree.next(place);
    }
}

fn note_overlap_behind(tree: &mut RbTree<Found>, at: Place) {
    let start = tree.get(at).start;
    let mut behind = tree.previous(at);
    while let Some(place) = behind {
        let this = *tree.get(place);
        if this.end > start {
            tree.get_mut(at).overlapped = true;
            return;
        }
        if !this.overlapped {
            return;
        }
        behind = tree.previous(place);
        if behind.is_none() {
            tree.get_mut(place).overlapped = false;
        }
    }
}
