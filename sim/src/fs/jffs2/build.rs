//! Mounting: scan the flash, count links, and drop inodes without a name.
//!
//! Mirrors fs/jffs2/build.c (jffs2_do_mount_fs, jffs2_build_filesystem), jffs2_do_fill_super of
//! fs.c and jffs2_put_super of super.c, Linux 6.1. Left out: directories with two names. Only a
//! rename whose second entry was lost leaves one behind, and both names then stay.
//!
//! Invariant: after a mount every inode that has a name is `Unchecked` and has nothing but its list
//! of nodes. The root alone is in memory.

use super::inode::InodeState;
use super::node::{NodeId, Role};
use super::nodelist::InodeNodes;
use super::Jffs2;
use crate::content::Contents;
use crate::flash::Torn;
use crate::fs::{Found, Ino, Result, ROOT};
use crate::mtd::{NandDriver, TornAt};
use crate::units::Ns;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

impl<D: NandDriver> Jffs2<D> {
    /// jffs2_put_super, then jffs2_do_fill_super from what is on flash.
    pub(super) fn unmount_and_mount(&mut self, now: Ns) -> Result<Ns> {
        let now = self.flush_wbuf(now)?;
        self.mount(now, None)
    }

    /// Mounts after a power cut. What was only in memory is lost, and the page that was being
    /// programmed cannot be read. Returns every name with the inode it refers to.
    pub(super) fn mount_after_power_cut(
        &mut self,
        now: Ns,
        torn: Option<Torn>,
    ) -> Result<(Vec<Found>, Ns)> {
        self.forget_tasks();
        let torn = match self.mtd.power_on(torn) {
            Some(TornAt::Program { offset, cells }) if cells.column < self.mtd.page_bytes() => {
                Some(u32::try_from(offset).expect("a partition below 4 GiB"))
            }
            _ => None,
        };
        let now = self.mount(now, torn)?;
        Ok((self.clone().tree(now)?, now))
    }

    /// Every name, from the root down. Reads every inode into memory, so it is meant for a copy of
    /// the file system.
    pub(super) fn tree(&mut self, now: Ns) -> Result<Vec<Found>> {
        let mut tree = Vec::new();
        let mut directories = VecDeque::from([ROOT]);
        let mut seen = BTreeSet::from([ROOT]);
        while let Some(directory) = directories.pop_front() {
            for id in self.file(directory).entries.clone().into_values() {
                let Role::Dirent { entry, .. } = self.nodes.get(id).role else { continue };
                let entry = self.names.entry(entry);
                let Some(ino) = entry.ino else { continue };
                self.iget(now, ino)?;
                if entry.is_directory && seen.insert(ino) {
                    directories.push_back(ino);
                }
                tree.push(Found {
                    directory,
                    name: self.names.name(entry.name).to_owned(),
                    ino,
                    is_directory: entry.is_directory,
                    target: self.file(ino).target.as_deref().map(str::to_owned),
                    size_bytes: u64::from(self.file(ino).size_bytes),
                    contents: self.stored_contents(ino),
                });
            }
        }
        Ok(tree)
    }

    /// The contents that a file's nodes hold; the file is in memory.
    fn stored_contents(&self, ino: Ino) -> Contents {
        let mut contents = Contents::default();
        let Some(stored) = &self.stored else { return contents };
        for fragment in self.file(ino).fragments.overlapping(0, u32::MAX) {
            let version = fragment.node.map(|id| self.nodes.get(id).version);
            if let Some(bytes) = version.and_then(|version| stored.get(&(ino, version))) {
                contents.copy_from(bytes, fragment.offset.into(), fragment.end().into());
            }
        }
        contents
    }

    /// jffs2_do_fill_super, with `torn` the page that the power cut interrupted.
    pub(super) fn mount(&mut self, now: Ns, torn: Option<u32>) -> Result<Ns> {
        self.xattrs.check_mount()?;
        let now = self.scan_medium(now, torn)?;
        self.is_building = true;
        self.count_links(now);
        for index in self.in_chains() {
            if self.files[index].links == 0 {
                self.remove_unlinked(now, index);
            }
        }
        for file in &mut self.files {
            file.entries = BTreeMap::new();
        }
        let now = self.verify_references(now)?;
        self.is_building = false;
        self.rotate_lists();
        let now = self.read_inode(now + self.mtd.costs().jffs2_inode_ns, ROOT, false)?;
        self.file_mut(ROOT).state = InodeState::Present;
        self.start_collector(now)
    }

    /// Inodes in the order of for_each_inode: the hash table's chains one after another.
    fn in_chains(&self) -> Vec<usize> {
        let chains = self.hash_chains();
        let mut indices: Vec<usize> = (0..self.files.len()).collect();
        indices.sort_by_key(|&index| (index as u32 + 1) % chains);
        indices
    }

    fn named(&self, id: NodeId) -> Option<Ino> {
        match self.nodes.get(id).role {
            Role::Dirent { entry, .. } => self.names.entry(entry).ino,
            _ => None,
        }
    }

    /// jffs2_build_inode_pass1: counts the links of each inode. An entry of a missing inode becomes
    /// obsolete.
    fn count_links(&mut self, now: Ns) {
        for index in self.in_chains() {
            let entries: Vec<NodeId> = self.files[index].entries.values().copied().collect();
            for id in entries {
                let Some(child) = self.named(id) else { continue };
                match self.files.get_mut(child.0 as usize - 1) {
                    Some(file) if !file.nodes.is_empty() => file.links += 1,
                    _ => self.mark_obsolete(now, id),
                }
            }
        }
    }

    /// jffs2_build_remove_unlinked_inode, also for inodes that had their only name in this
    /// directory.
    fn remove_unlinked(&mut self, now: Ns, index: usize) {
        let mut dead = vec![index];
        while let Some(index) = dead.pop() {
            let mut next = self.files[index].nodes.last();
            while let Some(id) = next {
                self.obsolete_once(now, id);
                next = InodeNodes::before(&self.nodes, id);
            }
            for id in std::mem::take(&mut self.files[index].entries).into_values() {
                let Some(child) = self.named(id).map(|ino| ino.0 as usize - 1) else { continue };
                let Some(file) = self.files.get_mut(child).filter(|file| file.links > 0) else {
                    continue;
                };
                file.links -= 1;
                if file.links == 0 {
                    dead.push(child);
                }
            }
        }
    }
}
