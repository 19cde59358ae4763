//! Copying up, white-outs, and the calls that change a name of a layer over files.
//!
//! Mirrors fs/overlayfs of Linux 6.1: copy_up.c (ovl_copy_up_flags, ovl_copy_up_tmpfile,
//! ovl_copy_up_workdir, ovl_copy_up_file, ovl_copy_up_metadata) and dir.c (ovl_whiteout,
//! ovl_create_over_whiteout, ovl_do_remove, ovl_rename), with the mount's default options: no
//! index, no redirect_dir, no metacopy. Data go through a pipe of 16 pages (fs/splice.c).
//!
//! Left out, and refused by name: a folder moved over one of the root, a link in the place of a
//! white-out, a full volume while copying, files that are mapped while they are copied up. Copying
//! takes no processor time of its own.

use super::inode::Inode;
use super::namei::Names;
use super::overlay::{IMPURE, ORIGIN, VALUE_BYTES};
use super::readahead::ReadAheadState;
use super::walk::Walked;
use super::{Bytes, Vfs, Wanted, ROOT_WINDOW_PAGES};
use crate::content::{Contents, Source};
use crate::errno::{errno, FsError, Outcome, Result, ENOTEMPTY, EXDEV};
use crate::fs::{Attribute, FlashFs, Ino, Name, PageCache, Rename, PAGE_BYTES};
use crate::units::Ns;

/// struct ovl_fb with a file handle of squashfs: its inode's number and generation.
const ORIGIN_BYTES: u32 = 21 + 8;
/// PIPE_DEF_BUFFERS pages.
const PIPE_BYTES: u64 = 16 * PAGE_BYTES as u64;
/// OVL_COPY_UP_CHUNK_SIZE.
const CHUNK_BYTES: u64 = 1 << 20;

const FULL: FsError = FsError::NotModelled("a volume that is full while a file is copied up");
const MAPPED: FsError = FsError::NotModelled("copying up a file that is mapped");
const OVER_FOLDER: FsError = FsError::NotModelled("a folder moved over one of the root");
const LINK: FsError = FsError::NotModelled("a link in the place of a removed file of the root");

/// A name in a directory of the program's: the directory and the whole path.
type At<'a> = (Option<usize>, &'a str);

impl<S: FlashFs> Vfs<S> {
    /// ovl_copy_up_flags of a path that exists: the inode is on the layer's volume afterwards.
    /// `keeps_data` is false where the file is truncated as it is opened.
    pub(super) fn copy_up(&mut self, now: Ns, path: &str, keeps_data: bool) -> Result<(usize, Ns)> {
        let Some(&index) = self.names.paths.get(path) else {
            return Ok((self.root(now), now)); // "."
        };
        if !self.inodes[index].is_lower() {
            return Ok((index, now));
        }
        let (above, now) = self.copy_up_above(now, path)?;
        let at = self.name_in(above, path);
        let now = self.set_impure(now, at.directory)?;
        let is_file = !self.inodes[index].is_directory && self.inodes[index].target.is_none();
        let (new, now) = match is_file {
            true => self.copy_up_file(now, index, at, keeps_data)?,
            false => self.copy_up_in_work(now, index, at)?,
        };
        let now = self.fs.set_attribute(now, at.directory, Attribute::Times, &mut self.inodes)?;
        self.replace_lower(path, index, new)?;
        Ok((new, now))
    }

    /// The directory of a path, copied up.
    pub(super) fn copy_up_above(&mut self, now: Ns, path: &str) -> Result<(Option<usize>, Ns)> {
        match path.rsplit_once('/') {
            Some((above, _)) => {
                let (index, now) = self.copy_up(now, above, true)?;
                Ok((Some(index), now))
            }
            None => Ok((None, now)),
        }
    }

    /// ovl_set_impure.
    fn set_impure(&mut self, now: Ns, directory: Ino) -> Result<Ns> {
        let layer = self.layer.as_mut().expect("a layer");
        match layer.impure.insert(directory) {
            true => self.fs.set_xattr(now, directory, IMPURE, VALUE_BYTES, &mut self.inodes),
            false => Ok(now),
        }
    }

    /// ovl_copy_up_tmpfile.
    fn copy_up_file(
        &mut self,
        now: Ns,
        index: usize,
        at: Name<'_>,
        keeps_data: bool,
    ) -> Result<(usize, Ns)> {
        let bytes = if keeps_data { self.inodes[index].size_bytes } else { 0 };
        let (ino, now) = self.fs.tmpfile(now, self.work_folder(), &mut self.inodes)?;
        let new = self.inodes.add(now, ino, false);
        self.inodes[new].names = 0;
        self.inodes.mark_dirty(now, new); // d_tmpfile
        let mut now = now;
        if bytes > 0 {
            now = self.copy_data(now, index, new, bytes)?;
            let (error, later) = self.sync_range(now, new, 0, u64::MAX, false)?;
            now = if error < 0 { return Err(FULL) } else { later };
        }
        now = self.copy_metadata(now, new, Some(bytes), true)?;
        now = self.fs.lookup(now, at, None)?;
        now = self.fs.link(now, at, ino, &mut self.inodes)?;
        self.inodes[new].names = 1;
        self.file_free(now);
        Ok((new, now))
    }

    /// ovl_copy_up_workdir of a directory or a symbolic link.
    fn copy_up_in_work(&mut self, now: Ns, index: usize, at: Name<'_>) -> Result<(usize, Ns)> {
        let target = self.inodes[index].target.clone();
        let now = if target.is_some() { self.get_link(now, index)? } else { now };
        let (temp, now) = self.look_up_temp(now)?;
        let old = Name { directory: self.work_folder(), name: &temp };
        let ((ino, now), is_directory) = match &target {
            None => (self.fs.mkdir(now, old, &mut self.inodes)?, true),
            Some(target) => (self.fs.symlink(now, old, target, &mut self.inodes)?, false),
        };
        let new = self.inodes.add(now, ino, is_directory);
        let now = self.copy_metadata(now, new, None, is_directory)?;
        let now = self.fs.lookup(now, at, None)?;
        let rename = Rename { ino, old, new: at, replaced: None };
        let now = self.fs.rename(now, rename, &mut self.inodes)?;
        Ok((new, now))
    }

    /// ovl_copy_up_metadata; `has_mode` is false for a symbolic link.
    fn copy_metadata(
        &mut self,
        now: Ns,
        new: usize,
        bytes: Option<u64>,
        has_mode: bool,
    ) -> Result<Ns> {
        let ino = self.inodes[new].ino;
        let mut now = self.fs.set_xattr(now, ino, ORIGIN, ORIGIN_BYTES, &mut self.inodes)?;
        if let Some(bytes) = bytes {
            now = self.fs.truncate(now, ino, bytes, &mut self.inodes)?;
            self.inodes.truncated = Default::default();
        }
        let mode = has_mode.then_some(Attribute::Mode);
        for what in mode.into_iter().chain([Attribute::Owner, Attribute::Times]) {
            now = self.fs.set_attribute(now, ino, what, &mut self.inodes)?;
        }
        self.inodes[new].modified_s = 0; // the root's times
        Ok(now)
    }

    /// ovl_copy_up_file, without its fsync.
    fn copy_data(&mut self, mut now: Ns, from: usize, to: usize, bytes: u64) -> Result<Ns> {
        let mut ahead = ReadAheadState::new(ROOT_WINDOW_PAGES);
        let mut copied = Contents::new();
        copied.copy_from(&self.inodes[from].contents, 0, bytes);
        let page_bytes = u64::from(PAGE_BYTES);
        let mut at = 0;
        while at < bytes {
            let chunk = bytes.min(at + CHUNK_BYTES);
            let end = chunk.min(at + PIPE_BYTES);
            let last = end.div_ceil(page_bytes) as u32;
            for page in (at / page_bytes) as u32..last {
                let wanted = Wanted::Page(page, last - page);
                now = self.read_lower(now, from, &mut ahead, wanted)?;
                let next = end.min((u64::from(page) + 1) * page_bytes);
                ahead.previous_page = (next / page_bytes) as i64;
            }
            now = self.update_time(now, to)?;
            self.copied = Some(copied);
            let written = self.write_copied(now, to, at..end);
            copied = self.copied.take().unwrap_or_default();
            now = written?;
            at = end;
        }
        Ok(now)
    }

    /// generic_perform_write of what is in the pipe.
    fn write_copied(&mut self, mut now: Ns, to: usize, bytes: std::ops::Range<u64>) -> Result<Ns> {
        let mut at = bytes.start;
        while at < bytes.end {
            let next = bytes.end.min((at / u64::from(PAGE_BYTES) + 1) * u64::from(PAGE_BYTES));
            let page = Bytes { at, to: next, source: Source::of_write(0), offset: at };
            now = match self.write_one(now, to, page) {
                Err(FsError::NoSpace(_)) => return Err(FULL),
                written => written?,
            };
            at = next;
            if at < bytes.end {
                now = self.resched(now)?;
            }
        }
        Ok(now)
    }

    /// ovl_inode_update: open files and directories continue with the new inode.
    fn replace_lower(&mut self, path: &str, old: usize, new: usize) -> Result<()> {
        if self.mappings.iter().flatten().any(|mapping| mapping.inode == old) {
            return Err(MAPPED);
        }
        let Inode { lower, parent, .. } = self.inodes[old];
        let target = self.inodes[old].target.take();
        let inode = &mut self.inodes[new];
        (inode.lower, inode.parent, inode.target) = (lower, parent, target);
        for inode in self.inodes.iter_mut().filter(|inode| inode.parent == Some(old)) {
            inode.parent = Some(new);
        }
        let ahead = ReadAheadState::new(self.read_ahead_pages);
        for open in self.slots.iter_mut().flatten() {
            if open.inode == old {
                open.inode = new;
                open.position.readahead = ahead;
            }
            if open.directory == Some(old) {
                open.directory = Some(new);
            }
        }
        self.names.paths.insert(path.to_owned(), new);
        self.inodes.evict(old);
        Ok(())
    }

    fn work_folder(&self) -> Ino {
        self.layer.as_ref().and_then(|layer| layer.work).expect("a mounted layer")
    }

    /// ovl_lookup_temp.
    fn look_up_temp(&mut self, now: Ns) -> Result<(String, Ns)> {
        let directory = self.work_folder();
        let temp = self.layer.as_mut().expect("a layer").next_temp();
        let now = self.fs.lookup(now, Name { directory, name: &temp }, None)?;
        Ok((temp, now))
    }

    /// ovl_whiteout: one more name of the white-out that is kept in the work folder.
    fn new_whiteout(&mut self, now: Ns) -> Result<(String, Ino, Ns)> {
        let directory = self.work_folder();
        let (ino, now) = match self.layer.as_ref().and_then(|layer| layer.spare.clone()) {
            Some((_, ino)) => (ino, now),
            None => {
                let (temp, now) = self.look_up_temp(now)?;
                let at = Name { directory, name: &temp };
                let (ino, later) = self.fs.whiteout(now, at, &mut self.inodes)?;
                self.inodes.add(now, ino, false);
                self.layer.as_mut().expect("a layer").spare = Some((temp, ino));
                (ino, later)
            }
        };
        let (temp, now) = self.look_up_temp(now)?;
        let now = self.fs.link(now, Name { directory, name: &temp }, ino, &mut self.inodes)?;
        let index = self.inodes.index_of(ino);
        self.inodes[index].names += 1;
        Ok((temp, ino, now))
    }

    /// A name is created: its directory is copied up, and a white-out there is replaced
    /// (ovl_create_over_whiteout).
    pub(super) fn create_in_layer(
        &mut self,
        now: Ns,
        at: At<'_>,
        is_directory: bool,
        make: impl FnOnce(&mut S, Ns, Name<'_>, &mut dyn PageCache) -> Result<(Ino, Ns)>,
    ) -> Result<(Ino, Ns)> {
        let (ino, now) = self.create_upper(now, at, is_directory, make)?;
        Ok((ino, self.revert_creds(now)?))
    }

    /// The end of ovl_create_or_link, which frees the credentials it took. ovl_instantiate before
    /// it may sleep.
    pub(super) fn revert_creds(&mut self, now: Ns) -> Result<Ns> {
        if self.layer.is_none() {
            return Ok(now);
        }
        let now = self.resched(now)?;
        self.fs.call_rcu(now); // put_cred_rcu
        Ok(now)
    }

    fn create_upper(
        &mut self,
        now: Ns,
        (directory, path): At<'_>,
        is_directory: bool,
        make: impl FnOnce(&mut S, Ns, Name<'_>, &mut dyn PageCache) -> Result<(Ino, Ns)>,
    ) -> Result<(Ino, Ns)> {
        if !self.has_lower() {
            let at = self.name_in(directory, path);
            return make(&mut self.fs, now, at, &mut self.inodes);
        }
        let (directory, now) = self.copy_up_above(now, path)?;
        let at = self.name_in(directory, path);
        let Some((whiteout, _)) = self.whiteout_at(path) else {
            let now = self.fs.lookup(now, at, None)?;
            return make(&mut self.fs, now, at, &mut self.inodes);
        };
        let (temp, now) = self.look_up_temp(now)?;
        let old = Name { directory: self.work_folder(), name: &temp };
        let (ino, mut now) = make(&mut self.fs, now, old, &mut self.inodes)?;
        self.inodes.add(now, ino, is_directory);
        let rename = Rename { ino, old, new: at, replaced: Some(whiteout) };
        self.forget_whiteout(path);
        if is_directory {
            now = self.mark_opaque(now, ino)?;
            now = self.fs.exchange(now, rename, &mut self.inodes)?;
            now = self.fs.unlink(now, old, whiteout, &mut self.inodes)?; // ovl_cleanup
        } else {
            now = self.fs.rename(now, rename, &mut self.inodes)?;
        }
        Ok((ino, self.drop_name(now, whiteout)?))
    }

    /// A link cannot replace a white-out here.
    pub(super) fn refuse_whiteout(&self, path: &str) -> Result<()> {
        match self.whiteout_at(path) {
            Some(_) => Err(LINK),
            None => Ok(()),
        }
    }

    /// ovl_do_remove; the checks of the VFS were made.
    pub(super) fn remove_from_layer(
        &mut self,
        now: Ns,
        walked: &Walked<'_>,
        index: usize,
    ) -> Outcome {
        let (path, is_directory) = (&*walked.path, self.inodes[index].is_directory);
        let (positive, mut now) = self.lower_positive(now, walked.directory, path, Some(index))?;
        let is_upper = !self.inodes[index].is_lower();
        if is_directory {
            let is_pure = self.inodes[index].lower.is_none() && !positive;
            if self.has_entries(path) {
                let at = self.name_in(walked.directory, path);
                let ino = self.inodes[index].ino;
                return Ok((
                    ENOTEMPTY,
                    match is_pure {
                        true => self.fs.check_dir_empty(now, ino, &[at])?,
                        false => self.read_merged(now, index)?,
                    },
                ));
            }
            if !is_pure {
                now = self.read_merged(now, index)?;
            }
        }
        let (above, mut now) = self.copy_up_above(now, path)?;
        if is_directory && is_upper && positive {
            now = self.remove_merged(now, self.name_in(above, path), path, index)?;
            self.drop_dentry(path);
            return Ok((0, self.drop_name(now, self.inodes[index].ino)?));
        }
        let (at, ino) = (self.name_in(above, path), self.inodes[index].ino);
        let removed = match positive {
            true => self.put_whiteout(now, at, path, is_upper.then_some(ino)),
            false if is_directory => self.fs.rmdir(now, at, ino, &mut self.inodes),
            false => self.fs.unlink(now, at, ino, &mut self.inodes),
        };
        let now = match removed {
            Ok(later) => later,
            Err(error) => return errno(error, now),
        };
        self.drop_dentry(path);
        self.inodes[index].names -= 1;
        Ok((0, self.put_inode(now, index)?))
    }

    /// ovl_cleanup_and_whiteout in the place of nothing or of a file.
    fn put_whiteout(
        &mut self,
        mut now: Ns,
        at: Name<'_>,
        path: &str,
        replaced: Option<Ino>,
    ) -> Result<Ns> {
        if replaced.is_none() {
            now = self.fs.lookup(now, at, None)?;
        }
        let (temp, ino, now) = self.new_whiteout(now)?;
        let old = Name { directory: self.work_folder(), name: &temp };
        let now = self.fs.rename(now, Rename { ino, old, new: at, replaced }, &mut self.inodes)?;
        self.add_whiteout(path, ino);
        Ok(now)
    }

    /// ovl_remove_and_whiteout of a directory that is on both sides.
    fn remove_merged(&mut self, now: Ns, at: Name<'_>, path: &str, index: usize) -> Result<Ns> {
        let mut now = now;
        let (work, mut upper) = (self.work_folder(), self.inodes[index].ino);
        let within = self.whiteouts_in(path);
        if !within.is_empty() {
            let opaque;
            (opaque, now) = self.clear_empty(now, at, upper, &within)?;
            upper = opaque;
        }
        let (temp, ino, later) = self.new_whiteout(now)?;
        let old = Name { directory: work, name: &temp };
        let rename = Rename { ino, old, new: at, replaced: Some(upper) };
        now = self.fs.exchange(later, rename, &mut self.inodes)?;
        now = self.fs.rmdir(now, old, upper, &mut self.inodes)?;
        self.add_whiteout(path, ino);
        match within.is_empty() {
            true => Ok(now),
            false => self.drop_name(now, upper),
        }
    }

    /// ovl_clear_empty: an opaque directory in the place of one that has white-outs only.
    fn clear_empty(
        &mut self,
        now: Ns,
        at: Name<'_>,
        upper: Ino,
        within: &[(String, Ino)],
    ) -> Result<(Ino, Ns)> {
        let (temp, now) = self.look_up_temp(now)?;
        let old = Name { directory: self.work_folder(), name: &temp };
        let (opaque, mut now) = self.fs.mkdir(now, old, &mut self.inodes)?;
        self.inodes.add(now, opaque, true);
        for _ in 0..2 {
            now = self.fs.list_xattr(now, upper)?.1;
        }
        now = self.mark_opaque(now, opaque)?;
        for what in [Attribute::Mode, Attribute::Owner, Attribute::Times] {
            now = self.fs.set_attribute(now, opaque, what, &mut self.inodes)?;
        }
        let rename = Rename { ino: opaque, old, new: at, replaced: Some(upper) };
        now = self.fs.exchange(now, rename, &mut self.inodes)?;
        for (path, whiteout) in within {
            let name = path.rsplit_once('/').map_or(path.as_str(), |(_, name)| name);
            let of = Name { directory: upper, name };
            now = self.fs.unlink(now, of, *whiteout, &mut self.inodes)?;
            self.forget_whiteout(path);
            now = self.drop_name(now, *whiteout)?;
        }
        now = self.fs.rmdir(now, old, upper, &mut self.inodes)?;
        Ok((opaque, now))
    }

    /// ovl_rename up to the rename on the volume; the checks of the VFS were made. Returns the
    /// moved inode; or an errno.
    pub(super) fn rename_in_layer(
        &mut self,
        now: Ns,
        (old_in, old): At<'_>,
        (new_in, new): At<'_>,
        target: Option<usize>,
    ) -> Result<(core::result::Result<usize, i64>, Ns)> {
        let moved = self.names.paths[old];
        let Inode { is_directory, lower, .. } = self.inodes[moved];
        if is_directory && lower.is_some() {
            return Ok((Err(EXDEV), now));
        }
        let is_over = target.filter(|&target| {
            let Inode { is_directory, lower, .. } = self.inodes[target];
            is_directory && lower.is_some()
        });
        let whiteout = self.whiteout_at(new).map(|(ino, _)| ino);
        let (positive, now) = self.lower_positive(now, old_in, old, Some(moved))?;
        if is_over.is_some() {
            return Err(OVER_FOLDER);
        }
        let (moved, now) = self.copy_up(now, old, true)?;
        let (old_in, now) = self.copy_up_above(now, old)?;
        let (new_in, mut now) = self.copy_up_above(now, new).map(|(to, now)| match to {
            None => (new_in.filter(|_| new.contains('/')), now),
            to => (to, now),
        })?;
        let (from, to) = (self.name_in(old_in, old), self.name_in(new_in, new));
        if from.directory != to.directory && self.inodes[moved].lower.is_some() {
            now = self.set_impure(now, to.directory)?;
        }
        let upper = target.map(|index| &self.inodes[index]).filter(|inode| !inode.is_lower());
        let replaced = upper.map(|inode| inode.ino).or(whiteout);
        if replaced.is_none() {
            now = self.fs.lookup(now, to, None)?;
        }
        let ino = self.inodes[moved].ino;
        if is_directory && self.sides(new_in).1.is_some() {
            now = self.mark_opaque(now, ino)?;
        }
        let rename = Rename { ino, old: from, new: to, replaced };
        if let Some(whiteout) = whiteout.filter(|_| positive || is_directory) {
            now = self.fs.exchange(now, rename, &mut self.inodes)?;
            self.forget_whiteout(new);
            if positive {
                self.add_whiteout(old, whiteout);
                return Ok((Ok(moved), now));
            }
            now = self.fs.unlink(now, from, whiteout, &mut self.inodes)?; // ovl_cleanup
            return Ok((Ok(moved), self.drop_name(now, whiteout)?));
        }
        now = match positive {
            true => {
                let (whiteout, later) = self.fs.rename_whiteout(now, rename, &mut self.inodes)?;
                self.inodes.add(now, whiteout, false);
                self.add_whiteout(old, whiteout);
                later
            }
            false => match self.fs.rename(now, rename, &mut self.inodes) {
                Ok(later) => later,
                Err(error) => return errno(error, now).map(|(errno, now)| (Err(errno), now)),
            },
        };
        if let Some(whiteout) = whiteout {
            self.forget_whiteout(new);
            now = self.drop_name(now, whiteout)?;
        }
        Ok((Ok(moved), now))
    }

    /// d_drop: the next walk looks the name up again.
    fn drop_dentry(&mut self, path: &str) {
        let Names { paths, dentries } = &mut self.names;
        paths.remove(path);
        dentries.remove(path);
        self.unhash(path);
    }
}
