//! overlayfs: the program's folder is a layer over a read-only root and a folder of its volume.
//!
//! Mirrors fs/overlayfs of Linux 6.1: super.c (ovl_make_workdir, ovl_workdir_create,
//! ovl_check_rename_whiteout), dir.c (ovl_rename) and namei.c (ovl_lookup), with the mount's
//! default options. agent/fs/layout.c mounts the same. Calls go through to the upper file system. A
//! directory moved to the layer's root is marked as hiding none below it, and a lookup reads the
//! attributes that overlayfs keeps with an inode. Where the read-only root holds files, lower.rs
//! reads them and copy_up.rs changes them.
//!
//! Left out: O_TMPFILE; power cuts. Overlayfs' own processor time is a price for each kind of call
//! (run/stack.rs).
//!
//! Invariant: the layer's directories are in `Vfs::inodes`, and no path of the program names them.

use super::lower::{Lower, RootFs};
use super::namei::Tree;
use super::Vfs;
use crate::errno::{ignore_errno, FsError, Result, EINVAL, EOPNOTSUPP};
use crate::fs::{Attribute, FlashFs, Ino, Name, Rename, ROOT};
use crate::profile::SoftwareCosts;
use crate::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The volume of a read-only root, its file system, and its files by their paths.
pub type FilesBelow<'a> = (usize, Box<dyn RootFs>, &'a Tree);

/// What is refused of a power cut.
pub(super) const CUT: &str = "a power cut below a layer of overlayfs";
/// What is refused of O_TMPFILE, which overlayfs has since 6.3.
pub(super) const TMPFILE: &str = "O_TMPFILE on a layer of overlayfs";

// OVL_XATTR_* of overlayfs.h.
const OPAQUE: &str = "trusted.overlay.opaque";
const REDIRECT: &str = "trusted.overlay.redirect";
pub(super) const ORIGIN: &str = "trusted.overlay.origin";
const METACOPY: &str = "trusted.overlay.metacopy";
const PROTATTR: &str = "trusted.overlay.protattr";
pub(super) const IMPURE: &str = "trusted.overlay.impure";
/// A value is a letter, `y` or `0`.
pub(super) const VALUE_BYTES: u32 = 1;
const UPPER: &str = "upper";
const WORK: &str = "work";

/// The directories of the layer on the program's volume.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// `upperdir`: what the program's root shows.
    pub upper: Ino,
    /// `workdir`, and the directory that each mount makes in it.
    base: Ino,
    pub work: Option<Ino>,
    /// Directories that are marked as hiding none below them.
    opaque: BTreeSet<Ino>,
    /// Directories that are marked as having something copied up.
    pub impure: BTreeSet<Ino>,
    /// The read-only root, where it holds files.
    pub lower: Option<Lower>,
    /// White-outs by their paths, and whether the volume has a dentry of each.
    whiteouts: BTreeMap<String, (Ino, bool)>,
    /// The white-out in the work folder whose names are given away, and its name there.
    pub spare: Option<(String, Ino)>,
    /// Names that were taken in work folders so far.
    temps: u32,
}

impl Layer {
    /// A name in the work folder (ovl_lookup_temp).
    pub fn next_temp(&mut self) -> String {
        self.temps += 1;
        format!("#{:x}", self.temps - 1)
    }

    /// Dentries of the volume are gone.
    pub fn forget_dentries(&mut self) {
        self.whiteouts.values_mut().for_each(|(_, is_cached)| *is_cached = false);
    }

    /// The inodes that the mount holds.
    pub fn held(&self) -> impl Iterator<Item = Ino> + '_ {
        [self.upper, self.base].into_iter().chain(self.work)
    }
}

impl<S: FlashFs> Vfs<S> {
    /// Makes the layer's directories on a new file system, and mounts it over a root.
    pub fn new_layer(&mut self, now: Ns, root: Option<FilesBelow<'_>>) -> Result<Ns> {
        let (lower, now) = match root {
            Some((volume, root, tree)) => {
                let (lower, now) = self.new_lower(now, (volume, root), tree)?;
                (Some(lower), now)
            }
            None => (None, now),
        };
        let (upper, now) = self.make_directory(now, ROOT, UPPER)?;
        let (base, now) = self.make_directory(now, ROOT, WORK)?;
        self.layer = Some(Layer {
            upper,
            base,
            work: None,
            opaque: BTreeSet::new(),
            impure: BTreeSet::new(),
            lower,
            whiteouts: BTreeMap::new(),
            spare: None,
            temps: 0,
        });
        self.mount_layer(now)
    }

    fn make_directory(&mut self, now: Ns, directory: Ino, name: &str) -> Result<(Ino, Ns)> {
        let (ino, later) = self.fs.mkdir(now, Name { directory, name }, &mut self.inodes)?;
        self.inodes.add(now, ino, true);
        Ok((ino, later))
    }

    /// ovl_fill_super after a mount of the volume; nothing without a layer.
    pub fn mount_layer(&mut self, mut now: Ns) -> Result<Ns> {
        let Some(Layer { upper, base, work, .. }) = self.layer else { return Ok(now) };
        let spare = self.layer.as_mut().and_then(|layer| layer.spare.take());
        for (ino, name) in [(upper, UPPER), (base, WORK)] {
            now = self.fs.lookup(now, Name { directory: ROOT, name }, Some(ino))?;
        }
        let at = Name { directory: base, name: WORK };
        now = self.fs.lookup(now, at, work)?;
        if let Some(old) = work {
            now = self.empty_work(now, at, old, spare)?;
            now = self.fs.rmdir(now, at, old, &mut self.inodes)?;
            now = self.drop_name(now, old)?;
        }
        let (work, later) = self.make_directory(now, base, WORK)?;
        self.layer.as_mut().expect("a layer").work = Some(work);
        now = self.fs.set_attribute(later, work, Attribute::Mode, &mut self.inodes)?;
        now = self.fs.read_dir(now, base, &mut self.inodes)?;
        now = self.try_tmpfile(now, work)?;
        now = self.try_whiteout(now, work)?;
        now = self.fs.set_xattr(now, work, OPAQUE, VALUE_BYTES, &mut self.inodes)?;
        now = self.fs.remove_xattr(now, work, OPAQUE, &mut self.inodes)?;
        let read = self.fs.get_xattr(now, upper, IMPURE).map(|(_, later)| later); // ovl_get_root
        ignore_errno(read, now)
    }

    /// ovl_workdir_cleanup: removes what is left of white-outs.
    fn empty_work(
        &mut self,
        now: Ns,
        at: Name<'_>,
        work: Ino,
        spare: Option<(String, Ino)>,
    ) -> Result<Ns> {
        let Some((name, ino)) = spare else { return Ok(now) };
        let now = self.fs.check_dir_empty(now, work, &[at])?;
        let now = self.fs.read_dir(now, work, &mut self.inodes)?;
        let name = Name { directory: work, name: &name };
        let now = self.fs.lookup(now, name, Some(ino))?;
        let now = self.fs.unlink(now, name, ino, &mut self.inodes)?;
        self.drop_name(now, ino)
    }

    /// The inode loses a name, and is evicted if that was its last.
    pub(super) fn drop_name(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let index = self.inodes.index_of(ino);
        self.inodes[index].names -= 1;
        self.put_inode(now, index)
    }

    /// ovl_do_tmpfile: whether the volume's file system has them.
    fn try_tmpfile(&mut self, now: Ns, work: Ino) -> Result<Ns> {
        let (ino, later) = match self.fs.tmpfile(now, work, &mut self.inodes) {
            Err(FsError::Errno(EOPNOTSUPP, at)) => return Ok(at),
            made => made?,
        };
        let index = self.inodes.add(now, ino, false);
        self.inodes.mark_dirty(later, index);
        self.drop_name(later, ino)
    }

    /// ovl_check_rename_whiteout: moves a file and leaves a white-out, then removes both.
    fn try_whiteout(&mut self, now: Ns, work: Ino) -> Result<Ns> {
        let layer = self.layer.as_mut().expect("a layer");
        let temps = [layer.next_temp(), layer.next_temp()];
        let [old, new] = [0, 1].map(|at| Name { directory: work, name: &temps[at] });
        let (file, later) = self.fs.create(now, old, &mut self.inodes)?;
        self.inodes.add(now, file, false);
        let now = self.fs.lookup(later, new, None)?;
        let rename = Rename { ino: file, old, new, replaced: None };
        let (whiteout, later) = match self.fs.rename_whiteout(now, rename, &mut self.inodes) {
            Err(FsError::Errno(EINVAL, at)) => {
                let now = self.fs.unlink(at, old, file, &mut self.inodes)?;
                return self.drop_name(now, file);
            }
            renamed => renamed?,
        };
        self.inodes.add(now, whiteout, false);
        let now = self.fs.lookup(later, old, Some(whiteout))?;
        let now = self.fs.unlink(now, old, whiteout, &mut self.inodes)?;
        let now = self.drop_name(now, whiteout)?;
        let now = self.fs.unlink(now, new, file, &mut self.inodes)?;
        self.drop_name(now, file)
    }

    /// ovl_lookup of a name that was found: the attributes of its upper inode are read.
    pub(super) fn look_up_layer(&mut self, mut now: Ns, index: usize) -> Result<Ns> {
        if self.layer.is_none() {
            return Ok(now);
        }
        now += self.costs.overlay_lookup_ns;
        now = self.read_layers_attributes(now, index, true)?;
        self.read_layers_attributes(now, index, false)
    }

    /// The attributes that are read before the root is asked, and those after.
    pub(super) fn read_layers_attributes(
        &mut self,
        mut now: Ns,
        index: usize,
        is_before: bool,
    ) -> Result<Ns> {
        let super::Inode { ino, is_directory, lower, .. } = self.inodes[index];
        let names: &[&str] = match (is_directory, is_before) {
            (true, true) if self.is_opaque(index) => &[OPAQUE],
            (true, true) => &[OPAQUE, REDIRECT],
            (true, false) if lower.is_some() => &[ORIGIN, PROTATTR, IMPURE],
            (true, false) => &[PROTATTR, IMPURE],
            // Of an origin the size is asked first.
            (false, true) if lower.is_some() => &[METACOPY, ORIGIN, ORIGIN],
            (false, true) => &[METACOPY, ORIGIN],
            (false, false) => &[PROTATTR],
        };
        for name in names {
            let read = self.fs.get_xattr(now, ino, name).map(|(_, later)| later);
            now = ignore_errno(read, now)?;
        }
        Ok(now)
    }

    /// Whether a directory hides that of the root.
    pub(super) fn is_opaque(&self, index: usize) -> bool {
        let ino = self.inodes[index].ino;
        self.layer.as_ref().is_some_and(|layer| layer.opaque.contains(&ino))
    }

    /// The white-out at a path, and whether the volume has its dentry.
    pub(super) fn whiteout_at(&self, path: &str) -> Option<(Ino, bool)> {
        self.layer.as_ref()?.whiteouts.get(path).copied()
    }

    /// A white-out's dentry is there from now on. Returns whether the path has one.
    pub(super) fn note_whiteout(&mut self, path: &str) -> bool {
        let layer = self.layer.as_mut().expect("a layer");
        layer.whiteouts.get_mut(path).map(|(_, is_cached)| *is_cached = true).is_some()
    }

    /// The white-outs in a directory, in the order of their names.
    pub(super) fn whiteouts_in(&self, directory: &str) -> Vec<(String, Ino)> {
        let layer = self.layer.as_ref().expect("a layer");
        let below = format!("{directory}/");
        let all = layer
            .whiteouts
            .iter()
            .filter(|(path, _)| path.strip_prefix(&below).is_some_and(|name| !name.contains('/')));
        all.map(|(path, &(ino, _))| (path.clone(), ino)).collect()
    }

    pub(super) fn add_whiteout(&mut self, path: &str, ino: Ino) {
        let layer = self.layer.as_mut().expect("a layer");
        layer.whiteouts.insert(path.to_owned(), (ino, true));
    }

    pub(super) fn forget_whiteout(&mut self, path: &str) {
        self.layer.as_mut().expect("a layer").whiteouts.remove(path);
    }

    /// ovl_lookup of a name of the root that the layer does not have: it is looked up there first.
    pub fn miss_layer(&mut self, now: Ns, name: &str) -> Result<Ns> {
        match self.layer {
            Some(_) => Ok(self.lookup(now, None, name)?.1),
            None => Ok(now),
        }
    }

    /// ovl_set_opaque of a directory that a rename moves to the layer's root. A new one is not
    /// marked (ovl_allow_offline_changes).
    pub(super) fn set_opaque(&mut self, now: Ns, directory: Option<usize>, ino: Ino) -> Result<Ns> {
        match self.layer.is_some() && directory.is_none() {
            true => self.mark_opaque(now, ino),
            false => Ok(now),
        }
    }

    /// The same of a directory that is moved into one that is merged.
    pub(super) fn mark_opaque(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        let layer = self.layer.as_mut().expect("a layer");
        match layer.opaque.insert(ino) {
            true => self.fs.set_xattr(now, ino, OPAQUE, VALUE_BYTES, &mut self.inodes),
            false => Ok(now),
        }
    }

    /// The prices of overlayfs, where the program's folder is a layer.
    pub fn layer_costs(&self) -> Option<&SoftwareCosts> {
        self.layer.as_ref().map(|_| &self.costs)
    }

    /// ovl_create_or_link's own time, of a name that an open creates.
    pub(super) fn layer_create_ns(&self) -> Ns {
        self.layer_costs().map_or(Ns::ZERO, |costs| costs.overlay_create_ns)
    }

    /// Fails where there is a layer: that part of overlayfs is left out.
    pub(super) fn refuse_layer(&self, what: &'static str) -> Result<()> {
        match self.layer {
            Some(_) => Err(FsError::NotModelled(what)),
            None => Ok(()),
        }
    }
}
