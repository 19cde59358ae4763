//! Objects: numbered, in directories, each with a header that is written again at every change.
//!
//! Mirrors from yaffs_guts.c the objects (yaffs_new_obj, yaffs_new_obj_id, yaffs_add_obj_to_dir,
//! yaffs_update_oh, yaffs_create_obj, yaffs_unlink_worker, yaffs_del_obj, yaffs_rename_obj,
//! yaffs_find_by_name) and kernel/yaffs2/names.c and inode.c. aliases.rs has links.
//!
//! An object that loses its name moves to a hidden directory, and is deleted when its inode is
//! evicted. The background thread writes headers of directories later. children.rs finds names.
//! Left out: special files, extended attributes, names that differ in case only.
//!
//! Invariants:
//! 1. An object is among its parent's children exactly once.
//! 2. A freed object whose inode is in memory (`deferred`) has no parent and no header.

use super::children::{Children, InMemory, SHORT_NAME_BYTES};
use super::kind::Kind;
use super::nand::{Header, Payload, Tags, OBJECT_BITS};
use super::tnode::Tree;
use super::{Chunk, Yaffs2, DELETED, LOST_AND_FOUND, ROOT_OBJECT, UNLINKED};
use crate::collections::arrivals::Arrivals;
use crate::errno::EPERM;
use crate::fs::{FsError, Ino, Name, Rename, Result};
use crate::mtd::NandDriver;
use crate::ops::name_len;
use crate::units::Ns;
use std::collections::BTreeMap;

/// YAFFS_NOBJECT_BUCKETS.
pub(super) const BUCKETS: u32 = 256;
/// YAFFS_LOSTNFOUND_NAME.
pub(super) const LOST_AND_FOUND_NAME: &str = "lost%2Bfound";

/// struct yaffs_obj.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub kind: Kind,
    /// It needs no header: root, lost+found and the two hidden directories.
    pub is_fake: bool,
    pub parent: u32,
    /// 0 if none was written.
    pub header_chunk: Chunk,
    pub name: String,
    /// The name is only in the header, which has not been read yet.
    pub is_lazy: bool,
    pub is_dirty: bool,
    /// A scan has found its newest header.
    pub is_valid: bool,
    /// Another object will take its name.
    pub is_shadowed: bool,
    /// my_inode.
    pub has_inode: bool,
    pub is_deferred: bool,
    pub size_bytes: u64,
    /// A scan ignores data from this offset on.
    pub shrink_bytes: u64,
    pub scanned_bytes: u64,
    pub data_chunks: u32,
    pub tree: Tree,
}

impl Object {
    /// Whether it is in a visible directory.
    pub fn is_named(&self) -> bool {
        ![0, UNLINKED, DELETED].contains(&self.parent)
    }

    #[inline]
    pub fn is_directory(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Whether it is a file. Only files have data chunks and tnodes.
    #[inline]
    pub fn is_file(&self) -> bool {
        self.kind == Kind::File
    }

    fn new(kind: Kind) -> Object {
        Object {
            kind,
            is_fake: false,
            parent: 0,
            header_chunk: 0,
            name: String::new(),
            is_lazy: false,
            is_dirty: false,
            is_valid: false,
            is_shadowed: false,
            has_inode: false,
            is_deferred: false,
            size_bytes: 0,
            shrink_bytes: u64::MAX,
            scanned_bytes: 0,
            data_chunks: 0,
            tree: Tree::new(),
        }
    }
}

/// All objects, by number and in hash buckets.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    list: Vec<Option<Box<Object>>>,
    pub buckets: Vec<Arrivals>,
    bucket_finder: u32,
    /// Of each bucket a number below which none is free; `BUCKETS` times this, and the bucket.
    free_from: Vec<u32>,
    pub count: u32,
    /// Inodes in the order in which they were read.
    pub inodes: Arrivals,
    /// Directories with a pending header.
    pub dirty_directories: Arrivals,
    /// What is in each directory.
    children: BTreeMap<u32, Children>,
    /// Hard links to each object that has some.
    other_names: BTreeMap<u32, Arrivals>,
}

impl Objects {
    pub fn new() -> Objects {
        Objects {
            list: Vec::new(),
            buckets: vec![Arrivals::default(); BUCKETS as usize],
            bucket_finder: 0,
            free_from: vec![1; BUCKETS as usize],
            count: 0,
            inodes: Arrivals::default(),
            dirty_directories: Arrivals::default(),
            children: BTreeMap::new(),
            other_names: BTreeMap::new(),
        }
    }

    #[inline]
    pub fn get(&self, number: u32) -> Option<&Object> {
        let object = self.list.get(number as usize).and_then(Option::as_deref);
        object.filter(|object| !object.is_deferred)
    }

    /// yaffs_find_nice_bucket and yaffs_new_obj_id.
    fn new_number(&mut self) -> u32 {
        let mut lowest = usize::MAX;
        let mut bucket = 0;
        for _ in 0..10 {
            if lowest <= 4 {
                break;
            }
            self.bucket_finder = (self.bucket_finder + 1) % BUCKETS;
            let count = self.buckets[self.bucket_finder as usize].len();
            if count < lowest {
                (lowest, bucket) = (count, self.bucket_finder);
            }
        }
        let turn = &mut self.free_from[bucket as usize];
        while self.list.get((bucket + *turn * BUCKETS) as usize).is_some_and(Option::is_some) {
            *turn += 1;
        }
        bucket + *turn * BUCKETS
    }

    fn insert(&mut self, number: u32, object: Object) {
        if self.list.len() <= number as usize {
            self.list.resize_with(number as usize + 1, || None);
        }
        self.list[number as usize] = Some(Box::new(object));
        self.buckets[(number % BUCKETS) as usize].push(number);
        self.count += 1;
    }

    fn remove(&mut self, number: u32) {
        self.list[number as usize] = None;
        let bucket = (number % BUCKETS) as usize;
        self.buckets[bucket].remove(number);
        self.free_from[bucket] = self.free_from[bucket].min((number / BUCKETS).max(1));
        self.count -= 1;
    }

    /// What is in a directory, the newest last.
    pub fn children(&self, directory: u32) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.children.get(&directory).into_iter().flat_map(|children| children.all.iter())
    }

    /// What is in a directory, the lowest number first.
    pub fn children_in_order(&self, directory: u32) -> Vec<u32> {
        self.children.get(&directory).map_or(Vec::new(), |all| all.all.in_order().collect())
    }

    /// Whether an object has hard links.
    pub fn has_other_names(&self, number: u32) -> bool {
        self.other_names.contains_key(&number)
    }

    /// Adds a hard link to an object, as its newest.
    pub fn add_other_name(&mut self, of: u32, number: u32) {
        self.other_names.entry(of).or_default().push(number);
    }

    /// yaffs_del_link: removes a hard link from those of its object.
    pub fn forget_other_name(&mut self, of: u32, number: u32) {
        if let Some(names) = self.other_names.get_mut(&of) {
            names.remove(number);
            if names.is_empty() {
                self.other_names.remove(&of);
            }
        }
    }

    fn newest_other_name(&self, number: u32) -> Option<u32> {
        self.other_names.get(&number).and_then(Arrivals::last)
    }
}

impl<D: NandDriver> Yaffs2<D> {
    #[inline]
    pub(super) fn object(&self, number: u32) -> &Object {
        self.objects.list[number as usize].as_deref().expect("an object of this file system")
    }

    #[inline]
    pub(super) fn object_mut(&mut self, number: u32) -> &mut Object {
        self.objects.list[number as usize].as_deref_mut().expect("an object of this file system")
    }

    /// yaffs_create_initial_dir.
    pub(super) fn create_initial_directories(&mut self) {
        for number in [UNLINKED, DELETED, ROOT_OBJECT, LOST_AND_FOUND] {
            self.new_object(number, Kind::Directory);
            let object = self.object_mut(number);
            (object.is_fake, object.is_valid) = (true, false);
        }
        self.object_mut(LOST_AND_FOUND).name = LOST_AND_FOUND_NAME.to_owned();
        self.add_to_directory(ROOT_OBJECT, LOST_AND_FOUND);
    }

    /// yaffs_new_obj: puts the object into lost+found, if that exists.
    pub(super) fn new_object(&mut self, number: u32, kind: Kind) {
        self.tnodes += u32::from(kind == Kind::File);
        self.objects.insert(number, Object::new(kind));
        if self.objects.get(LOST_AND_FOUND).is_some() && number != LOST_AND_FOUND {
            self.add_to_directory(LOST_AND_FOUND, number);
        }
    }

    /// yaffs_remove_obj_from_dir.
    pub(super) fn remove_from_directory(&mut self, number: u32) {
        let object = self.object_mut(number);
        let (parent, name) = (std::mem::take(&mut object.parent), InMemory::of(&object.name));
        if let Some(children) = self.objects.children.get_mut(&parent) {
            children.remove(number, name);
        }
    }

    /// yaffs_add_obj_to_dir.
    pub(super) fn add_to_directory(&mut self, directory: u32, number: u32) {
        self.remove_from_directory(number);
        let object = self.object_mut(number);
        object.parent = directory;
        let (name, is_lazy) = (InMemory::of(&object.name), object.is_lazy);
        self.objects.children.entry(directory).or_default().add(number, name, is_lazy);
    }

    /// yaffs_set_obj_name, and yaffs_add_obj_to_dir.
    pub(super) fn name_in_directory(&mut self, number: u32, (directory, name): (u32, &str)) {
        self.remove_from_directory(number);
        self.object_mut(number).name = name.to_owned();
        self.add_to_directory(directory, number);
    }

    /// yaffs_free_obj: deferred if the inode is in memory.
    fn free_object(&mut self, number: u32) {
        if self.object(number).has_inode {
            self.object_mut(number).is_deferred = true;
        } else {
            self.objects.remove(number);
        }
    }

    /// yaffs_check_obj_details_loaded.
    pub(super) fn load_details(&mut self, now: Ns, number: u32) -> Result<Ns> {
        let object = self.object_mut(number);
        if !object.is_lazy || object.header_chunk == 0 {
            return Ok(now);
        }
        object.is_lazy = false;
        let (chunk, parent) = (object.header_chunk, object.parent);
        if let Some(children) = self.objects.children.get_mut(&parent) {
            children.set_read(number);
        }
        Ok(self.read_chunk(now, chunk)?.1)
    }

    /// yaffs_find_by_name: on its way it reads headers that have not been read, and the header of
    /// each name too long for memory.
    pub(super) fn find_by_name(&mut self, mut now: Ns, at: Name<'_>) -> Result<(Option<u32>, Ns)> {
        let directory = at.directory.0;
        let Some(children) = self.objects.children.get(&directory) else { return Ok((None, now)) };
        let price = self.mtd.costs().yaffs2_entry_ns;
        let entries = |count: usize| price * count as u64;
        let mut named = children.named_like(at.name);
        let mut passed = 0;
        loop {
            let children = &self.objects.children[&directory];
            let unread = children.first_unread();
            let Some((newer, number)) = named.last().copied().into_iter().chain(unread).min()
            else {
                return Ok((None, now + entries(children.all.len() - passed)));
            };
            now = self.load_details(now + entries(newer + 1 - passed), number)?;
            passed = newer + 1;
            if named.last().is_none_or(|&(_, other)| other != number) {
                continue;
            }
            named.pop();
            let object = self.object(number);
            let (is_it, chunk) = (object.name == at.name, object.header_chunk);
            if name_len(&object.name) > SHORT_NAME_BYTES && chunk != 0 {
                now = self.read_chunk(now, chunk)?.1;
            }
            if is_it {
                return Ok((Some(number), now));
            }
        }
    }

    /// yfs_iget: returns whether the object had no inode.
    pub(super) fn iget(&mut self, number: u32) -> bool {
        let object = self.object_mut(number);
        let is_new = !std::mem::replace(&mut object.has_inode, true);
        if is_new {
            self.objects.inodes.push(number);
        }
        is_new
    }

    /// The end of yfs_evict_inode.
    pub(super) fn put_inode(&mut self, number: u32) {
        self.objects.inodes.remove(number);
        let object = self.object_mut(number);
        object.has_inode = false;
        if object.is_deferred {
            self.objects.remove(number);
        }
    }

    /// yaffs_update_oh: returns whether there was space.
    pub(super) fn update_header(
        &mut self,
        now: Ns,
        number: u32,
        name: Option<&str>,
        is_shrink: bool,
        shadows: u32,
    ) -> Result<(bool, Ns)> {
        if self.object(number).is_fake && number != ROOT_OBJECT {
            return Ok((true, now));
        }
        self.write_header(now, number, name, is_shrink, shadows)
    }

    /// The rest of yaffs_update_oh, which `force` runs for every object.
    pub(super) fn write_header(
        &mut self,
        now: Ns,
        number: u32,
        name: Option<&str>,
        is_shrink: bool,
        shadows: u32,
    ) -> Result<(bool, Ns)> {
        let now = self.check_gc(now, false)?;
        let mut now = self.load_details(now, number)?;
        let old = self.object(number).header_chunk;
        if old != 0 {
            now = self.read_chunk(now, old)?.1;
        }
        now += self.mtd.costs().yaffs2_header_ns;
        let header = self.header_of(number, name, is_shrink, shadows);
        let what = (Tags { object: number, chunk: 0, bytes: 0 }, Payload::Header(header));
        let (new, now) = self.write_new_chunk(now, what, self.metadata(), old != 0)?;
        let Some(new) = new else { return Ok((false, now)) };
        self.object_mut(number).header_chunk = new;
        let now = self.delete_chunk(now, old)?;
        if !self.cache.is_dirty(number) {
            self.object_mut(number).is_dirty = false;
        }
        if is_shrink {
            self.blocks.get_mut(new / self.pages_per_block).has_shrink_header = true;
        }
        Ok((true, now))
    }

    fn header_of(&self, number: u32, name: Option<&str>, is_shrink: bool, shadows: u32) -> Header {
        let object = self.object(number);
        Header {
            kind: object.kind.clone(),
            parent: object.parent,
            name: name.unwrap_or(&object.name).to_owned(),
            size_bytes: if ![UNLINKED, DELETED].contains(&object.parent) {
                object.size_bytes
            } else {
                0
            },
            is_shrink,
            shadows,
        }
    }

    /// yaffs_update_parent with deferred directory updates.
    pub(super) fn update_parent(&mut self, directory: u32) {
        if directory == 0 {
            return;
        }
        self.object_mut(directory).is_dirty = true;
        self.objects.dirty_directories.push(directory);
    }

    /// yaffs_update_dirty_dirs.
    pub(super) fn update_dirty_directories(&mut self, mut now: Ns) -> Result<Ns> {
        while let Some(number) = self.objects.dirty_directories.pop() {
            if self.object(number).is_dirty {
                now = self.update_header(now, number, None, false, 0)?.1;
            }
        }
        Ok(now)
    }

    /// make of kernel/yaffs2/names.c.
    pub(super) fn make(&mut self, now: Ns, at: Name<'_>, kind: Kind) -> Result<(Ino, Ns)> {
        let mut number = 0;
        let now = self.locked(now, |fs, now| {
            let (made, now) = fs.create_object(now, at, kind)?;
            number = made;
            fs.iget(number);
            Ok(now)
        })?;
        Ok((Ino(number), now))
    }

    /// yaffs_create_obj.
    pub(super) fn create_object(&mut self, now: Ns, at: Name<'_>, kind: Kind) -> Result<(u32, Ns)> {
        let (_, now) = self.find_by_name(now, at)?;
        let number = self.objects.new_number();
        if number >> OBJECT_BITS != 0 {
            return Err(FsError::NotModelled("more than 262,000 files and folders on yaffs2"));
        }
        if let Kind::Name(of) = kind {
            self.objects.add_other_name(of, number);
        }
        self.new_object(number, kind);
        let object = self.object_mut(number);
        (object.is_valid, object.is_dirty) = (true, true);
        self.name_in_directory(number, (at.directory.0, at.name));
        let (written, now) = self.update_header(now, number, Some(at.name), false, 0)?;
        if !written {
            let now = self.delete_object(now, number)?;
            return Err(FsError::NoSpace(now));
        }
        self.update_parent(at.directory.0);
        Ok((number, now))
    }

    /// yaffs_change_obj_name.
    pub(super) fn change_name(
        &mut self,
        now: Ns,
        number: u32,
        (directory, name): (u32, &str),
        shadows: u32,
    ) -> Result<(bool, Ns)> {
        self.object_mut(number).is_dirty = true;
        self.name_in_directory(number, (directory, name));
        self.update_header(now, number, Some(name), directory == DELETED, shadows)
    }

    /// yaffs_generic_obj_del.
    pub(super) fn delete_generic(&mut self, mut now: Ns, number: u32) -> Result<Ns> {
        self.cache.forget_all(number);
        if self.object(number).parent != DELETED {
            now = self.change_name(now, number, (DELETED, "deleted"), 0)?.1;
        }
        self.remove_from_directory(number);
        let chunk = std::mem::take(&mut self.object_mut(number).header_chunk);
        now = self.delete_chunk(now, chunk)?;
        self.free_object(number);
        Ok(now)
    }

    /// yaffs_del_obj.
    pub(super) fn delete_object(&mut self, mut now: Ns, number: u32) -> Result<Ns> {
        match self.object(number).kind {
            Kind::Directory => {
                self.objects.dirty_directories.remove(number);
            }
            Kind::File => {
                now = self.resize(now, number, 0)?;
                self.tnodes -= self.object(number).tree.tnodes();
            }
            Kind::Name(of) => self.objects.forget_other_name(of, number),
            Kind::Link(_) => {}
        }
        self.delete_generic(now, number)
    }

    /// yaffs_unlink_worker of a hard link, or of an object whose inode is in memory.
    fn unlink_object(&mut self, now: Ns, number: u32) -> Result<(bool, Ns)> {
        self.update_parent(self.object(number).parent);
        if let Kind::Name(_) = self.object(number).kind {
            return Ok((true, self.delete_object(now, number)?));
        }
        match self.objects.newest_other_name(number) {
            Some(other) => {
                self.objects.forget_other_name(number, other);
                self.take_name(now, number, other)
            }
            None => self.change_name(now, number, (UNLINKED, "unlinked"), 0),
        }
    }

    /// remove and rename of kernel/yaffs2/names.c up to full_directory(). Neither touches
    /// lost+found (unlink_allowed, rename_allowed).
    pub(super) fn find_changeable(&mut self, mut now: Ns, names: &[Name<'_>]) -> Result<Ns> {
        let mut is_allowed = true;
        for &name in names {
            let (named, later) = self.find_by_name(now, name)?;
            is_allowed &= named.is_none_or(|number| !self.object(number).is_fake);
            now = later;
        }
        if is_allowed {
            Ok(now)
        } else {
            Err(FsError::Errno(EPERM, now))
        }
    }

    /// remove of kernel/yaffs2/names.c, of a file or an empty directory.
    pub(super) fn remove(&mut self, now: Ns, at: Name<'_>) -> Result<Ns> {
        let now = self.find_changeable(now, &[at])?;
        let (named, now) = self.find_by_name(now, at)?;
        match self.unlink_object(now, named.expect("a name that the VFS knows"))? {
            (true, now) => Ok(now),
            (false, now) => Err(FsError::NoSpace(now)),
        }
    }

    /// rename of kernel/yaffs2/names.c. The object first shadows the one it replaces, which then
    /// loses its name.
    pub(super) fn do_rename(&mut self, now: Ns, rename: Rename<'_>) -> Result<Ns> {
        // Both the glue and the core look the names up.
        let now = self.find_changeable(now, &[rename.old, rename.new])?;
        let (named, now) = self.find_by_name(now, rename.old)?;
        let (replaced, mut now) = self.find_by_name(now, rename.new)?;
        let number = named.expect("a name that the VFS knows");
        let to = (rename.new.directory.0, rename.new.name);
        if let Some(replaced) = replaced {
            self.gc.is_disabled = true;
            now = self.find_by_name(now, rename.new)?.1;
            now = self.change_name(now, number, to, replaced)?.1;
            self.object_mut(replaced).is_shadowed = true;
            now = self.unlink_object(now, replaced)?.1;
            self.gc.is_disabled = false;
        }
        now = self.find_by_name(now, rename.new)?.1;
        let (written, now) = self.change_name(now, number, to, 0)?;
        self.update_parent(rename.old.directory.0);
        self.update_parent(to.0);
        if written {
            Ok(now)
        } else {
            Err(FsError::NoSpace(now))
        }
    }
}
