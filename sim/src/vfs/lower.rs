//! The read-only root below a layer: its names, its files' pages, and what is looked up where.
//!
//! Mirrors fs/overlayfs of Linux 6.1: namei.c (ovl_lookup, ovl_lower_positive) and readdir.c
//! (ovl_dir_read_merged). squashfs/layer.rs is its `RootFs`. Every name of the root is in
//! `Vfs::names` from the mount on, with an inode that is `LOWER` until it is copied up
//! (copy_up.rs).
//!
//! Left out: extended attributes of the root, reclaim of its pages, a list that is kept while its
//! directory stays open.

use super::inode::{Inode, LOWER};
use super::namei::{Left, Tree, What};
use super::readahead::{KernelReadAhead, ReadAheadState, Window};
use super::Vfs;
use crate::errno::{FsError, Result};
use crate::fs::{FlashFs, Ino, Name};
use crate::units::Ns;
use crate::vfs::FileCache;
use dyn_clone::DynClone;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// VM_READAHEAD_PAGES: the window of a block device's files.
pub const ROOT_WINDOW_PAGES: u32 = 32;

/// Reads so many bytes of the root's device, at a time and an offset.
pub type ReadDevice<'a> = dyn FnMut(Ns, u64, u32) -> Result<Ns> + 'a;

/// A file of the root that is read: its pages, and the state of its read-ahead.
pub struct Reading<'a> {
    /// Its inode.
    pub inode: u32,
    /// Its pages.
    pub cache: &'a mut FileCache,
    /// The state of its read-ahead.
    pub ahead: &'a mut ReadAheadState,
    /// The kernel's read-ahead.
    pub kernel: &'a KernelReadAhead,
}

/// What is read of it.
#[derive(Clone, Copy, Debug)]
pub enum Wanted {
    /// A page, as read(2) needs it, and how many pages the call still wants.
    Page(u32, u32),
    /// A window of read-ahead.
    Window(Window),
    /// A page that read-ahead did not bring.
    Folio(u32),
}

/// A read-only file system below a layer. Inodes have the numbers that its image gives them.
///
/// # Examples
///
/// An empty root, whose mount reads a sector:
///
/// ```
/// # use sim::{errno::FsError, units::Ns, vfs::{ReadDevice, Reading, RootFs, Wanted}};
/// # use std::collections::{BTreeMap, BTreeSet};
/// # type Result<T> = core::result::Result<T, FsError>;
/// #[derive(Clone, Debug)]
/// struct Empty;
///
/// impl RootFs for Empty {
///     fn mount(&mut self, device: &mut ReadDevice<'_>, now: Ns) -> Result<Ns> {
///         device(now, 0, 512)
///     }
///     fn root(&self) -> u32 { 1 }
///     fn paths(&self) -> Result<BTreeMap<String, u32>> { Ok(BTreeMap::new()) }
///     // The others have nothing to do.
/// #   fn look_up(
/// #       &mut self, _: &mut ReadDevice<'_>, now: Ns, _: u32, _: &str,
/// #   ) -> Result<(Option<u32>, Ns)> { Ok((None, now)) }
/// #   fn get_link(&mut self, _: &mut ReadDevice<'_>, now: Ns, _: u32) -> Result<Ns> { Ok(now) }
/// #   fn read_dir(&mut self, _: &mut ReadDevice<'_>, now: Ns, _: u32) -> Result<Ns> { Ok(now) }
/// #   fn read_file(
/// #       &mut self, _: &mut ReadDevice<'_>, now: Ns, _: Reading<'_>, _: Wanted,
/// #   ) -> Result<Ns> { Ok(now) }
/// #   fn keep(&mut self, _: &BTreeSet<u32>) {}
/// }
/// ```
pub trait RootFs: DynClone + Debug {
    /// Mounts it, with nothing in memory.
    fn mount(&mut self, device: &mut ReadDevice<'_>, now: Ns) -> Result<Ns>;
    /// Every path, as operations write it, and its inode. It takes no time.
    fn paths(&self) -> Result<BTreeMap<String, u32>>;
    /// The root's inode.
    fn root(&self) -> u32;
    /// i_op->lookup, where no dentry has the answer.
    fn look_up(
        &mut self,
        device: &mut ReadDevice<'_>,
        now: Ns,
        directory: u32,
        name: &str,
    ) -> Result<(Option<u32>, Ns)>;
    /// i_op->get_link.
    fn get_link(&mut self, device: &mut ReadDevice<'_>, now: Ns, inode: u32) -> Result<Ns>;
    /// f_op->iterate_shared to the end, and once more from there.
    fn read_dir(&mut self, device: &mut ReadDevice<'_>, now: Ns, directory: u32) -> Result<Ns>;
    /// Reads a part of a file.
    fn read_file(
        &mut self,
        device: &mut ReadDevice<'_>,
        now: Ns,
        of: Reading<'_>,
        wanted: Wanted,
    ) -> Result<Ns>;
    /// Caches are dropped: these inodes stay, and so does the root's.
    fn keep(&mut self, kept: &BTreeSet<u32>);
}

dyn_clone::clone_trait_object!(RootFs);

/// The root's volume and file system.
#[derive(Clone, Debug)]
pub(super) struct Lower {
    volume: usize,
    fs: Box<dyn RootFs>,
}

impl<S: FlashFs> Vfs<S> {
    /// Mounts the root, whose files are known by their paths.
    pub(super) fn new_lower(
        &mut self,
        now: Ns,
        (volume, mut root): (usize, Box<dyn RootFs>),
        tree: &Tree,
    ) -> Result<(Lower, Ns)> {
        let numbers = root.paths()?;
        self.written = tree.written; // numbers of writes are unique
        for (path, Left { what, .. }) in &tree.files {
            let Some(&number) = numbers.get(path) else { return Err(FsError::Io(now)) };
            let is_directory = *what == What::Folder;
            let above = path.rsplit_once('/').map(|(above, _)| self.names.paths[above]);
            let index = self.add_inode(now, path, Ino(LOWER | number), is_directory);
            let inode = &mut self.inodes[index];
            (inode.lower, inode.parent) = (Some(number), above.filter(|_| is_directory));
            (inode.modified_s, inode.cache) = (0, FileCache::new(u32::MAX));
            match what {
                What::Folder => {}
                What::Link(target) => inode.target = Some(target.as_str().into()),
                What::File(bytes, contents) => {
                    (inode.size_bytes, inode.contents) = (*bytes, contents.clone());
                }
            }
        }
        let fs = &mut self.fs;
        let now = root.mount(&mut |now, at, bytes| fs.read_volume(now, volume, at, bytes), now)?;
        Ok((Lower { volume, fs: root }, now))
    }

    /// The root is mounted again.
    pub(super) fn remount_lower(&mut self, now: Ns) -> Result<Ns> {
        match self.has_lower() {
            true => self.on_lower(|root, device| root.mount(device, now)),
            false => Ok(now),
        }
    }

    /// Whether there is a layer over a root that holds files.
    pub(super) fn has_lower(&self) -> bool {
        self.layer.as_ref().is_some_and(|layer| layer.lower.is_some())
    }

    /// The window of a file that is opened now.
    pub(super) fn window_of(&self, index: usize) -> u32 {
        match self.inodes[index].is_lower() {
            true => ROOT_WINDOW_PAGES,
            false => self.read_ahead_pages,
        }
    }

    /// The inode of the root's root.
    pub(super) fn lower_root(&self) -> Option<u32> {
        let lower = self.layer.as_ref()?.lower.as_ref()?;
        Some(lower.fs.root())
    }

    /// Asks the mounted root.
    fn on_lower<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn RootFs, &mut ReadDevice<'_>) -> Result<T>,
    ) -> Result<T> {
        let Vfs { fs, layer, .. } = self;
        let lower = layer.as_mut().and_then(|layer| layer.lower.as_mut()).expect("a root");
        let volume = lower.volume;
        ask(&mut *lower.fs, &mut |now, at, bytes| fs.read_volume(now, volume, at, bytes))
    }

    /// The directory of the layer's volume and that of the root which a directory merges.
    pub(super) fn sides(&self, directory: Option<usize>) -> (Option<Ino>, Option<u32>) {
        match directory {
            None => (Some(self.root_ino()), self.lower_root()),
            Some(index) => {
                let inode = &self.inodes[index];
                ((!inode.is_lower()).then_some(inode.ino), inode.lower)
            }
        }
    }

    /// ovl_lookup of a name without a dentry.
    pub(super) fn look_up_merged(
        &mut self,
        mut now: Ns,
        directory: Option<usize>,
        path: &str,
        found: Option<usize>,
    ) -> Result<Ns> {
        let (upper, lower) = self.sides(directory);
        let name = self.name_in(directory, path).name;
        let above = found.filter(|&index| !self.inodes[index].is_lower());
        let mut is_hidden = above.is_some_and(|index| !self.inodes[index].is_directory);
        now += self.costs.overlay_lookup_ns;
        if let Some(directory) = upper {
            let ino = above.map(|index| self.inodes[index].ino);
            let (ino, is_cached) = match self.whiteout_at(path) {
                Some((whiteout, is_cached)) => (Some(whiteout), is_cached),
                None => (ino, false),
            };
            if !is_cached {
                now = self.fs.lookup(now, Name { directory, name }, ino)?;
            }
            is_hidden |= self.note_whiteout(path);
            if let Some(index) = above {
                now = self.read_layers_attributes(now, index, true)?;
                is_hidden |= self.is_opaque(index);
            }
        }
        if let Some(lower) = lower.filter(|_| !is_hidden) {
            now = self.on_lower(|root, below| root.look_up(below, now, lower, name))?.1;
        }
        match above {
            Some(index) => self.read_layers_attributes(now, index, false),
            None => Ok(now),
        }
    }

    /// ovl_lower_positive: whether the root has the name, which the layer may hide.
    pub(super) fn lower_positive(
        &mut self,
        now: Ns,
        directory: Option<usize>,
        path: &str,
        found: Option<usize>,
    ) -> Result<(bool, Ns)> {
        if found.is_some_and(|index| self.inodes[index].is_lower()) {
            return Ok((true, now));
        }
        let name = self.name_in(directory, path).name;
        let Some(lower) = self.sides(directory).1 else { return Ok((false, now)) };
        let (found, now) = self.on_lower(|root, below| root.look_up(below, now, lower, name))?;
        Ok((found.is_some(), now))
    }

    /// Reads the entries of a directory on both sides.
    pub(super) fn read_merged(&mut self, mut now: Ns, index: usize) -> Result<Ns> {
        let (upper, lower) = self.sides(Some(index));
        if let Some(upper) = upper {
            now = self.fs.read_dir(now, upper, &mut self.inodes)?;
        }
        match lower {
            Some(lower) => self.on_lower(|root, below| root.read_dir(below, now, lower)),
            None => Ok(now),
        }
    }

    /// i_op->get_link on either side.
    pub(super) fn get_link(&mut self, now: Ns, index: usize) -> Result<Ns> {
        let Inode { ino, lower, .. } = self.inodes[index];
        match lower.filter(|_| self.inodes[index].is_lower()) {
            Some(lower) => self.on_lower(|root, below| root.get_link(below, now, lower)),
            None => self.fs.get_link(now, ino),
        }
    }

    /// Reads of a file of the root.
    pub(super) fn read_lower(
        &mut self,
        now: Ns,
        index: usize,
        ahead: &mut ReadAheadState,
        wanted: Wanted,
    ) -> Result<Ns> {
        let Vfs { fs, layer, inodes, kernel, .. } = self;
        let lower = layer.as_mut().and_then(|layer| layer.lower.as_mut()).expect("a root");
        let volume = lower.volume;
        let device = &mut |now, at, bytes| fs.read_volume(now, volume, at, bytes);
        let file = &mut inodes[index];
        let inode = file.lower.expect("a file of the root");
        let of = Reading { inode, cache: &mut file.cache, ahead, kernel };
        lower.fs.read_file(device, now, of, wanted)
    }

    /// page_cache_ra_unbounded of a file on either side, for the mapped file in a slot.
    pub(super) fn fill_mapped(
        &mut self,
        now: Ns,
        index: usize,
        file: usize,
        window: Window,
    ) -> Result<Ns> {
        if !self.inodes[index].is_lower() {
            return self.fill(now, index, window);
        }
        let open = self.slots[file].as_ref().expect("a mapped file is open");
        let mut ahead = open.position.readahead;
        let read = self.read_lower(now, index, &mut ahead, Wanted::Window(window));
        self.slots[file].as_mut().expect("a mapped file is open").position.readahead = ahead;
        read
    }

    /// drop_caches: the root keeps the inodes that are held.
    pub(super) fn drop_lower(&mut self, kept: &[Ino]) {
        let numbers = kept.iter().filter_map(|&ino| self.inodes[self.inodes.find(ino)?].lower);
        let numbers: BTreeSet<u32> = numbers.collect();
        if let Some(lower) = self.layer.as_mut().and_then(|layer| layer.lower.as_mut()) {
            lower.fs.keep(&numbers);
        }
    }
}
