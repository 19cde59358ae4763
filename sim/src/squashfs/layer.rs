//! squashfs below a layer of overlayfs: what the layer asks of it, call by call.
//!
//! Mirrors fs/squashfs/dir.c (squashfs_readdir) of Linux 6.1, and what leaves memory when caches
//! are dropped. The layer keeps each file's pages.

use super::file::Open;
use super::format::What;
use super::lookup::INVENTED;
use super::{Below, Inode, Io, Squashfs, Stored};
use crate::errno::{FsError, Result};
use crate::ops::{name_bytes, name_text};
use crate::profile::SquashfsCosts;
use crate::units::Ns;
use crate::vfs::{ReadDevice, Reading, RootFs, Wanted};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A squashfs below a layer.
#[derive(Clone, Debug)]
pub struct LayersRoot {
    stored: Arc<Stored>,
    costs: Option<SquashfsCosts>,
    mounted: Squashfs,
}

/// The device of a root.
struct Called<'a, 'b>(&'a mut ReadDevice<'b>);

impl Below for Called<'_, '_> {
    fn read(&mut self, now: Ns, at: u64, bytes: u32) -> Result<Ns> {
        (self.0)(now, at, bytes)
    }
}

/// A device that takes no time.
struct AtOnce;

impl Below for AtOnce {
    fn read(&mut self, now: Ns, _at: u64, _bytes: u32) -> Result<Ns> {
        Ok(now)
    }
}

impl LayersRoot {
    /// The root of an image, which fails if that is broken.
    pub fn new(stored: &Arc<Stored>, costs: Option<SquashfsCosts>) -> Result<LayersRoot> {
        let own = (**stored).clone();
        let (mounted, _) = Squashfs::mount(own, costs.as_ref(), &mut AtOnce, Ns::ZERO)?;
        Ok(LayersRoot { stored: Arc::clone(stored), costs, mounted })
    }

    fn io<'a>(&self, below: &'a mut dyn Below, now: Ns) -> Io<'a> {
        Io { below, now, prices: self.mounted.prices }
    }
}

impl RootFs for LayersRoot {
    fn mount(&mut self, device: &mut ReadDevice<'_>, now: Ns) -> Result<Ns> {
        let (stored, costs) = ((*self.stored).clone(), self.costs.as_ref());
        let (mounted, now) = Squashfs::mount(stored, costs, &mut Called(device), now)?;
        self.mounted = mounted;
        Ok(now)
    }

    fn paths(&self) -> Result<BTreeMap<String, u32>> {
        self.mounted.clone().paths()
    }

    fn root(&self) -> u32 {
        self.mounted.root()
    }

    fn look_up(
        &mut self,
        device: &mut ReadDevice<'_>,
        now: Ns,
        directory: u32,
        name: &str,
    ) -> Result<(Option<u32>, Ns)> {
        let below = &mut Called(device);
        let mut io = self.io(below, now);
        let bytes: Vec<u8> = name_bytes(name).collect();
        let found = self.mounted.lookup(&mut io, directory, (name, &bytes))?;
        Ok((found, io.now))
    }

    fn get_link(&mut self, device: &mut ReadDevice<'_>, now: Ns, inode: u32) -> Result<Ns> {
        let below = &mut Called(device);
        let io = self.io(below, now);
        self.mounted.get_link(io, inode)
    }

    fn read_dir(&mut self, device: &mut ReadDevice<'_>, now: Ns, directory: u32) -> Result<Ns> {
        let below = &mut Called(device);
        let io = self.io(below, now);
        self.mounted.read_dir(io, directory)
    }

    fn read_file(
        &mut self,
        device: &mut ReadDevice<'_>,
        now: Ns,
        of: Reading<'_>,
        wanted: Wanted,
    ) -> Result<Ns> {
        let below = &mut Called(device);
        let io = self.io(below, now);
        self.mounted.read_file(io, of, wanted)
    }

    fn keep(&mut self, kept: &BTreeSet<u32>) {
        self.mounted.keep(kept);
    }
}

impl Squashfs {
    /// squashfs_get_link.
    fn get_link(&mut self, mut io: Io<'_>, inode: u32) -> Result<Ns> {
        let Some(&Inode { what: What::Link { bytes, target }, .. }) = self.inodes.get(&inode)
        else {
            return io.broken();
        };
        self.read_link(&mut io, inode, target, bytes)?;
        Ok(io.now)
    }

    /// squashfs_readdir to the end, and once more from there.
    fn read_dir(&mut self, mut io: Io<'_>, directory: u32) -> Result<Ns> {
        let Some(&Inode { what: What::Directory { entries, bytes, index, indexes }, .. }) =
            self.inodes.get(&directory)
        else {
            return io.broken();
        };
        self.each_entry(&mut io, (entries, INVENTED, bytes), &mut |_| true)?;
        let last = self.last_in_index(&mut io, (entries, index, indexes))?;
        self.each_entry(&mut io, (last.0, last.1, bytes), &mut |_| true)?;
        Ok(io.now)
    }

    /// Reads a part of a file.
    fn read_file(&mut self, mut io: Io<'_>, of: Reading<'_>, wanted: Wanted) -> Result<Ns> {
        let Some(&Inode { what: What::File { bytes, fragment, .. }, .. }) =
            self.inodes.get(&of.inode)
        else {
            return Err(FsError::Io(io.now));
        };
        let cache = core::mem::take(of.cache);
        let (inode, ahead, kernel) = (of.inode, *of.ahead, *of.kernel);
        let mut open = Open { inode, bytes, fragment, cache, ahead, kernel, added: 0 };
        let read = match wanted {
            Wanted::Page(page, wanted) => self.get_page(&mut io, &mut open, page, wanted),
            Wanted::Window(window) => self.fill(&mut io, &mut open, window),
            Wanted::Folio(page) => {
                if !open.cache.contains(page) {
                    open.add_empty(page);
                }
                self.read_folio(&mut io, &mut open, page)
            }
        };
        (*of.cache, *of.ahead) = (open.cache, open.ahead);
        read.map(|()| io.now)
    }

    /// Caches are dropped: these inodes stay, and so does the root's.
    fn keep(&mut self, kept: &BTreeSet<u32>) {
        let stays = |inode: u32| inode == self.root || kept.contains(&inode);
        self.inodes.retain(|&inode, _| stays(inode));
        self.targets.clear();
        self.dentries.retain(|_, found| found.is_some_and(stays));
    }

    /// Every path below the root, as operations write it, and its inode, for a reader that does not
    /// count requests.
    fn paths(&mut self) -> Result<BTreeMap<String, u32>> {
        let mut found = BTreeMap::new();
        let mut left = vec![(String::new(), self.root)];
        while let Some((above, directory)) = left.pop() {
            for entry in self.list(&mut AtOnce, directory)? {
                let path = format!("{above}{}", name_text(&entry.name));
                if let Some(Inode { what: What::Directory { .. }, .. }) =
                    self.inodes.get(&entry.inode)
                {
                    left.push((format!("{path}/"), entry.inode));
                }
                found.insert(path, entry.inode);
            }
        }
        Ok(found)
    }
}
