//! Extended attributes: each has an entry, and an inode whose node holds the value.
//!
//! Mirrors fs/ubifs/xattr.c (ubifs_xattr_set, create_xattr, change_xattr, ubifs_xattr_get,
//! ubifs_listxattr, ubifs_xattr_remove), journal.c (ubifs_jnl_change_xattr, ubifs_jnl_delete_xattr)
//! and ubifs_tnc_remove_ino of tnc.c, Linux 6.1. An attribute's inode stays in memory after it was
//! created or read. Left out, and refused: names with equal hashes, and more attributes of an inode
//! than fit into a LEB (ubifs_purge_xattrs).
//!
//! Invariant: `Inode::attributes` are the attribute entries that the index has for the inode.

use super::budget::Request;
use super::geometry::{align, INODE_BYTES};
use super::inode::{self, Inode, Kind};
use super::journal::{dent_bytes, Update};
use super::key::{hash_of, Key};
use super::stored::What;
use super::tnc::Leaf;
use super::Ubifs;
use crate::errno::{ENODATA, ENOSPC, ERANGE};
use crate::fs::{FsError, Ino, Name, PageCache, Result};
use crate::mtd::NandDriver;
use crate::ops::name_len;
use crate::units::Ns;

/// UBIFS_MAX_INO_DATA.
const VALUE_BYTES_MAX: u32 = 4096;
/// XATTR_LIST_MAX.
const NAMES_BYTES_MAX: u32 = 65536;

impl<D: NandDriver> Ubifs<D> {
    /// Walks the attribute entries of an inode as ubifs_tnc_next_ent does, and passes on each
    /// value's inode.
    pub(super) fn each_attribute(
        &mut self,
        now: Ns,
        host: u32,
        mut visit: impl FnMut(&mut Self, Ns, u32) -> Result<Ns>,
    ) -> Result<Ns> {
        let first = Key::first_xent(host);
        let (mut next, mut now) = self.tnc.next_entry(&mut self.ubi, now, first)?;
        while let Some(leaf) = next {
            let key = self.tnc.key(leaf);
            now = self.read_name(now, leaf)?;
            let value = self.value_of(host, leaf);
            now = visit(self, now, value)?;
            (next, now) = self.tnc.entry_after(&mut self.ubi, now, key)?;
        }
        Ok(now)
    }

    /// The inode that an attribute's entry refers to. After a power cut the entry's node has it.
    fn value_of(&self, host: u32, leaf: Leaf) -> u32 {
        let hash = self.tnc.key(leaf).hash();
        let known = self.inodes.get(&host).and_then(|host| host.attributes.get(&hash));
        let stored = || match self.what(self.tnc.place(leaf)) {
            What::Entry { target: Some(inum), .. } => *inum,
            _ => unreachable!("a leaf with an attribute's key is its entry"),
        };
        known.map_or_else(stored, |attribute| attribute.inum)
    }

    /// ubifs_tnc_remove_ino: removes the attributes and their inodes first.
    pub(super) fn remove_inode(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        let first = Key::first_xent(inum);
        let (mut next, mut now) = self.tnc.next_entry(&mut self.ubi, now, first)?;
        while let Some(leaf) = next {
            let (key, value) = (self.tnc.key(leaf), self.value_of(inum, leaf));
            now = self.read_name(now, leaf)?;
            now = self.remove_name(now, key)?;
            now = self.remove_all_of(now, value)?;
            (next, now) = self.tnc.entry_after(&mut self.ubi, now, key)?;
        }
        self.remove_all_of(now, inum)
    }

    fn remove_all_of(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        let (first, last) = (Key::inode(inum), Key::last_of(inum));
        self.tnc.remove_range(&mut self.ubi, &mut self.lpt, now, first, last)
    }

    /// ubifs_tnc_lookup_nm of an attribute: returns the inode of its value and loads it.
    fn find_attribute(&mut self, now: Ns, host: Ino, name: &str) -> Result<(Option<u32>, Ns)> {
        let hash = hash_of(name);
        let (leaf, now) = self.tnc.lookup(&mut self.ubi, now, Key::xent(host.0, hash))?;
        let Some(leaf) = leaf else { return Ok((None, now)) };
        let now = self.read_name(now, leaf)?;
        let known = &self.inodes[&host.0].attributes[&hash];
        if *known.name != *name {
            return Err(FsError::NotModelled("an extended attribute whose hash is taken"));
        }
        let inum = known.inum;
        Ok((Some(inum), self.iget_attribute(now, inum)?))
    }

    /// iget_xattr.
    pub(super) fn iget_attribute(&mut self, now: Ns, inum: u32) -> Result<Ns> {
        match std::mem::replace(&mut self.inode(inum).in_memory, true) {
            true => Ok(now),
            false => self.read_inode(now, inum),
        }
    }

    /// ubifs_xattr_set.
    pub(super) fn set_attribute_value(
        &mut self,
        now: Ns,
        host: Ino,
        name: &str,
        bytes: u32,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        if bytes > VALUE_BYTES_MAX {
            return Err(FsError::Errno(ERANGE, now));
        }
        match self.find_attribute(now, host, name)? {
            (Some(inum), now) => self.change_value(now, host, inum, bytes, pages),
            (None, now) => self.create_attribute(now, host, name, bytes, pages),
        }
    }

    /// create_xattr.
    fn create_attribute(
        &mut self,
        now: Ns,
        host: Ino,
        name: &str,
        bytes: u32,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        // ubifs_xattr_max_cnt: the inodes of all attributes have to fit into half a LEB.
        let room = self.geometry.leb_bytes / 2 / INODE_BYTES;
        let names = self.names_bytes(host) + name_len(name) as u32 + 1;
        if self.inodes[&host.0].attributes.len() as u32 >= room {
            return Err(FsError::NotModelled("as many extended attributes as a LEB takes"));
        }
        if names > NAMES_BYTES_MAX {
            return Err(FsError::Errno(ENOSPC, now));
        }
        let request = Request {
            new_inode: true,
            new_dent: true,
            new_bytes: u64::from(align(bytes, 8)),
            ..self.inodes[&host.0].request()
        };
        let now = self.budget_space(now, &request, pages)?;
        let mut inode = Inode::new(Kind::Attribute);
        (inode.size_bytes, inode.data_bytes) = (bytes.into(), bytes);
        let inum = self.add_inode(inode);
        let attribute = inode::Attribute { name: name.into(), inum };
        self.inode(host.0).attributes.insert(hash_of(name), attribute);
        let at = Name { directory: host, name };
        let now =
            self.jnl_update(now, &Update { is_attribute: true, ..Update::entry(at, inum) })?;
        self.release_budget(&request);
        Ok(now)
    }

    /// change_xattr, ubifs_jnl_change_xattr: writes the host inode, then the value.
    fn change_value(
        &mut self,
        now: Ns,
        host: Ino,
        inum: u32,
        bytes: u32,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let of_host = self.inodes[&host.0].request();
        let more_bytes = of_host.more_bytes + u64::from(align(bytes, 8));
        let request = Request { dirtied_inodes: 2, more_bytes, ..of_host };
        let now = self.budget_space(now, &request, pages)?;
        let inode = self.inode(inum);
        (inode.size_bytes, inode.data_bytes) = (bytes.into(), bytes);
        let node_of = |inum: u32| (Key::inode(inum), self.inodes[&inum].node_bytes());
        let nodes = [node_of(host.0), node_of(inum)];
        let (places, mut now) = self.write_group(now, &nodes, 0, &[host.0, inum])?;
        for (&(key, _), place) in nodes.iter().zip(places) {
            now = self.add_leaf(now, key, place)?;
        }
        self.host_is_written(now, host, &request)
    }

    /// Releases the budget after the host inode was written together with its attribute.
    fn host_is_written(&mut self, now: Ns, host: Ino, request: &Request) -> Result<Ns> {
        let now = self.finish_reservation(now)?;
        let inode = self.inode(host.0);
        inode.synced_bytes = inode.size_bytes;
        self.mark_inode_clean(host.0);
        self.release_budget(request);
        Ok(now)
    }

    /// ubifs_xattr_get.
    pub(super) fn attribute_bytes(&mut self, now: Ns, host: Ino, name: &str) -> Result<(u32, Ns)> {
        match self.find_attribute(now, host, name)? {
            (Some(inum), now) => Ok((self.inode(inum).data_bytes, now)),
            (None, now) => Err(FsError::Errno(ENODATA, now)),
        }
    }

    /// `xattr_names + xattr_cnt`.
    fn names_bytes(&self, host: Ino) -> u32 {
        let names = self.inodes[&host.0].attributes.values();
        names.map(|attribute| name_len(&attribute.name) as u32 + 1).sum()
    }

    /// ubifs_listxattr.
    pub(super) fn list_attributes(&mut self, now: Ns, host: Ino) -> Result<(u32, Ns)> {
        let now = self.each_attribute(now, host.0, |_, now, _| Ok(now))?;
        Ok((self.names_bytes(host), now))
    }

    /// ubifs_xattr_remove, remove_xattr, ubifs_jnl_delete_xattr.
    pub(super) fn remove_attribute(
        &mut self,
        now: Ns,
        host: Ino,
        name: &str,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        let (found, now) = self.find_attribute(now, host, name)?;
        let inum = found.ok_or(FsError::Errno(ENODATA, now))?;
        let of_host = self.inodes[&host.0].request();
        let request = Request { dirtied_inodes: 2, mod_dent: true, ..of_host };
        let now = self.budget_space(now, &request, pages)?;
        self.inode(inum).links = 0;
        let hash = hash_of(name);
        let entry = Key::xent(host.0, hash);
        let host_bytes = self.inodes[&host.0].node_bytes();
        let nodes = [
            (entry, dent_bytes(name)),
            (Key::inode(inum), INODE_BYTES),
            (Key::inode(host.0), host_bytes),
        ];
        let (places, now) = self.write_group(now, &nodes, 0, &[host.0])?;
        self.store_entry(places[0], name, None);
        let now = self.remove_name(now, entry)?;
        let now = self.add_dirt(now, places[0].leb, places[0].bytes)?;
        let now = self.remove_all_of(now, inum)?;
        let now = self.add_dirt(now, places[1].leb, INODE_BYTES)?;
        let now = self.add_leaf(now, Key::inode(host.0), places[2])?;
        self.inode(host.0).attributes.remove(&hash);
        self.inodes.remove(&inum);
        self.host_is_written(now, host, &request)
    }
}
