//! Extended attributes: a node for name and value, and one for each inode that has them.
//!
//! Mirrors fs/jffs2/xattr.c of Linux 6.1 (do_jffs2_setxattr, save_xattr_datum, save_xattr_ref,
//! jffs2_garbage_collect_xattr_datum, _ref, jffs2_verify_xattr, verify_xattr_ref). A value that
//! several inodes have is stored once. What is removed stays on flash until the collector comes to
//! it.
//!
//! Left out, and refused: attributes of programs (`user.`), and those that a mount finds on an
//! inode. Values are not kept: two of the same name and length are equal, as overlayfs' are.
//!
//! Invariant: `nodes` of a reference are those on flash, the newest last.

use super::layout::{pad, Summary, RAW_XATTR_BYTES, RAW_XREF_BYTES};
use super::node::{Node, NodeId, Role, State};
use super::nodemgmt::Priority;
use super::{Jffs2, Xattr};
use crate::causes::Cause;
use crate::errno::{ENODATA, EOPNOTSUPP};
use crate::fs::{FsError, Ino, PageCache, Result};
use crate::mtd::NandDriver;
use crate::ops::name_len;
use crate::units::Ns;

/// XATTR_TRUSTED_PREFIX, which is stored as a number.
const TRUSTED_PREFIX: &str = "trusted.";
/// XATTR_USER_PREFIX.
const USER_PREFIX: &str = "user.";

/// The attributes of a file system.
#[derive(Clone, Debug, Default)]
pub(super) struct Xattrs {
    data: Vec<Datum>,
    references: Vec<Reference>,
}

/// struct jffs2_xattr_datum; dead once no inode has it.
#[derive(Clone, Debug)]
struct Datum {
    name: Box<str>,
    bytes: u32,
    inodes: u32,
    node: NodeId,
}

/// struct jffs2_xattr_ref.
#[derive(Clone, Debug)]
struct Reference {
    ino: Ino,
    datum: usize,
    is_dead: bool,
    nodes: Vec<NodeId>,
}

impl Xattrs {
    fn live(&self, ino: Ino, name: &str) -> Option<usize> {
        let named = |one: &Reference| *self.data[one.datum].name == *name;
        self.references.iter().position(|one| one.ino == ino && !one.is_dead && named(one))
    }

    /// delete_xattr_ref, which writes nothing.
    fn kill(&mut self, index: usize) {
        self.references[index].is_dead = true;
        self.data[self.references[index].datum].inodes -= 1;
    }

    /// jffs2_xattr_delete_inode.
    pub fn delete_inode(&mut self, ino: Ino) {
        for index in 0..self.references.len() {
            if self.references[index].ino == ino && !self.references[index].is_dead {
                self.kill(index);
            }
        }
    }

    /// The block of a node was erased.
    pub fn forget_node(&mut self, id: NodeId) {
        self.references.iter_mut().for_each(|one| one.nodes.retain(|&node| node != id));
    }

    /// Refuses attributes that a mount would have to load.
    pub fn check_mount(&self) -> Result<()> {
        match self.references.iter().any(|one| !one.is_dead) {
            true => Err(FsError::NotModelled("extended attributes that a mount of JFFS2 finds")),
            false => Ok(()),
        }
    }
}

/// A name as it is stored, without its prefix.
fn stored(name: &str) -> &str {
    let of = |prefix| name.strip_prefix(prefix);
    of(TRUSTED_PREFIX).or_else(|| of(USER_PREFIX)).unwrap_or(name)
}

impl<D: NandDriver> Jffs2<D> {
    /// The answer about an extended attribute of an inode that has none. Without
    /// CONFIG_JFFS2_FS_XATTR no handler takes the call. Where the configuration is not known,
    /// Kconfig's default holds.
    fn no_xattr(&self, now: Ns) -> FsError {
        let is_on = self.options.xattr == Xattr::On;
        FsError::Errno(if is_on { ENODATA } else { EOPNOTSUPP }, now)
    }

    /// do_jffs2_getxattr: the attributes of an inode are in memory with it.
    pub(super) fn xattr_bytes(&self, now: Ns, ino: Ino, name: &str) -> Result<(u32, Ns)> {
        match self.xattrs.live(ino, name) {
            Some(index) => Ok((self.xattrs.data[self.xattrs.references[index].datum].bytes, now)),
            None => Err(self.no_xattr(now)),
        }
    }

    /// do_jffs2_setxattr with a value.
    pub(super) fn write_xattr(
        &mut self,
        now: Ns,
        ino: Ino,
        (name, bytes): (&str, u32),
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        if self.options.xattr == Xattr::Off {
            return Err(self.no_xattr(now));
        }
        if self.options.xattr == Xattr::Unknown || !name.starts_with(TRUSTED_PREFIX) {
            return Err(FsError::NotModelled("an extended attribute that is set on JFFS2"));
        }
        let payload = name_len(stored(name)) as u32 + 1 + bytes;
        let min = RAW_XATTR_BYTES + payload;
        let (_, now) = self.reserve_space(now, min, Priority::Normal, Summary::Xattr, pages)?;
        let (datum, now) = self.find_or_write_datum(now, name, bytes, payload)?;
        let now = self.complete_reservation(now)?;
        let (min, summary) = (RAW_XREF_BYTES, Summary::Xref);
        let (_, now) = self.reserve_space(now, min, Priority::Normal, summary, pages)?;
        let before = self.xattrs.live(ino, name);
        let (node, now) = self.write_attribute(now, Role::Xref, Cause::Metadata)?;
        let nodes = vec![node];
        self.xattrs.references.push(Reference { ino, datum, is_dead: false, nodes });
        self.xattrs.data[datum].inodes += 1;
        before.into_iter().for_each(|index| self.xattrs.kill(index));
        self.complete_reservation(now)
    }

    /// create_xattr_datum.
    fn find_or_write_datum(
        &mut self,
        now: Ns,
        name: &str,
        bytes: u32,
        payload: u32,
    ) -> Result<(usize, Ns)> {
        let same = |one: &Datum| one.inodes > 0 && *one.name == *name && one.bytes == bytes;
        if let Some(index) = self.xattrs.data.iter().position(same) {
            return Ok((index, now));
        }
        let role = Role::Xattr { payload_bytes: payload };
        let (node, now) = self.write_attribute(now, role, Cause::Metadata)?;
        self.xattrs.data.push(Datum { name: name.into(), bytes, inodes: 0, node });
        Ok((self.xattrs.data.len() - 1, now))
    }

    /// do_jffs2_setxattr without a value. It reserves space before it looks for the attribute.
    pub(super) fn delete_xattr(
        &mut self,
        now: Ns,
        ino: Ino,
        name: &str,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        if self.options.xattr != Xattr::On {
            return Err(self.no_xattr(now));
        }
        let bytes = RAW_XATTR_BYTES + name_len(stored(name)) as u32 + 1;
        let (_, now) = self.reserve_space(now, bytes, Priority::Normal, Summary::Xattr, pages)?;
        let Some(index) = self.xattrs.live(ino, name) else {
            let now = self.complete_reservation(now)?;
            return Err(self.no_xattr(now));
        };
        let (node, now) = self.write_attribute(now, Role::Xref, Cause::Metadata)?;
        self.xattrs.references[index].nodes.push(node);
        self.xattrs.kill(index);
        self.complete_reservation(now)
    }

    /// save_xattr_datum and save_xattr_ref, in reserved space.
    fn write_attribute(&mut self, now: Ns, role: Role, cause: Cause) -> Result<(NodeId, Ns)> {
        let to = self.write_offset(self.next_block.expect("space was reserved"));
        let [header, payload] = role.parts().map(|bytes| [(cause, bytes)]);
        let now = match role {
            Role::Xref => self.flash_write(now, to, &[&header], None)?,
            _ => self.flash_write(now, to, &[&header, &payload], None)?,
        };
        let summary = if role == Role::Xref { Summary::Xref } else { Summary::Xattr };
        self.add_node(now, Node::new(Ino(0), role, 0), summary)
    }

    /// jffs2_garbage_collect_xattr_datum and jffs2_garbage_collect_xattr_ref: what is still valid
    /// is written again.
    pub(super) fn collect_attribute(&mut self, mut now: Ns, id: NodeId) -> Result<Ns> {
        let role = self.nodes.get(id).role;
        let bytes = pad(role.parts().iter().sum());
        let datum = self.xattrs.data.iter().position(|one| one.node == id && one.inodes > 0);
        let is_valid = |one: &Reference| {
            one.nodes.last() == Some(&id) && !(one.is_dead && one.nodes.len() == 1)
        };
        let reference = self.xattrs.references.iter().position(is_valid);
        if datum.is_some() || reference.is_some() {
            let summary = if datum.is_some() { Summary::Xattr } else { Summary::Xref };
            let (_, later) = self.reserve_space_gc(now, bytes, summary)?;
            let (new, later) = self.write_attribute(later, role, Cause::Collection)?;
            now = later;
            datum.into_iter().for_each(|index| self.xattrs.data[index].node = new);
            let newest = reference.map(|index| &mut self.xattrs.references[index].nodes);
            newest.into_iter().for_each(|nodes| nodes.push(new));
        }
        self.mark_obsolete(now, id);
        Ok(now)
    }

    /// verify_xattr_ref of jffs2_build_xattr_subsystem: reads the references that a summary listed.
    pub(super) fn verify_references(&mut self, now: Ns) -> Result<Ns> {
        self.verify_attributes(now, true)
    }

    /// jffs2_verify_xattr, before a pass of the collector checks an inode.
    pub(super) fn verify_data(&mut self, now: Ns) -> Result<Ns> {
        self.verify_attributes(now, false)
    }

    fn verify_attributes(&mut self, mut now: Ns, references: bool) -> Result<Ns> {
        if self.xattrs.data.is_empty() {
            return Ok(now);
        }
        for number in 0..self.mtd.blocks() {
            for id in self.nodes_in(number) {
                let Node { role, state, flash_offset, .. } = self.nodes.get(id);
                let [header, _] = role.parts();
                let is_wanted = match role {
                    Role::Xref => references,
                    Role::Xattr { .. } => !references,
                    _ => false,
                };
                if is_wanted && state == State::Unchecked {
                    now = self.flash_read(now, flash_offset, header)?;
                    self.mark_checked(id, State::Pristine);
                }
            }
        }
        Ok(now)
    }
}
