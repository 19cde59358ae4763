//! Walking along paths, with and without symbolic links.
//!
//! Mirrors fs/namei.c of Linux 6.1 (link_path_walk, step_into, pick_link, nd_jump_root). A path
//! without symbolic links is never copied. If the walk meets one, it starts over component by
//! component, and the components before it are in the dentry cache by then. A link that leaves the
//! file system finds nothing. One that would find something, or could create it, is refused by
//! name.
//!
//! Invariant: the path that a walk returns contains no symbolic link, so it is a key of
//! `Names::paths`.

use super::{Answer, Vfs};
use crate::errno::{FsError, ELOOP, ENOENT, ENOTDIR};
use crate::fs::FlashFs;
use crate::units::Ns;
use std::borrow::Cow;

/// MAXSYMLINKS.
const LINKS_MAX: u32 = 40;
/// The refused case: a link to something in the agent's root directory.
const LEAVES: &str = "a symbolic link that leaves the file system";
/// What is in that directory, in which the file system is mounted (agent/board/init.c).
const OUTSIDE: [&str; 8] = ["dev", "host", "init", "mnt", "modules", "proc", "root", "sys"];
/// The program's first working directory, which has no name.
pub(super) const TOP: &str = ".";

/// The directory of a path, none for the root, and the path itself.
pub(super) type Parent<'a> = (Option<usize>, Cow<'a, str>);

/// A path walked to its end, and its inode, if it exists.
#[derive(Clone, Debug)]
pub(super) struct Walked<'a> {
    pub directory: Option<usize>,
    pub path: Cow<'a, str>,
    pub found: Option<usize>,
}

/// The position of a walk through links: a directory and its path.
#[derive(Clone, Debug, Default)]
struct At {
    directory: Option<usize>,
    path: String,
}

impl At {
    fn join(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.path)
        }
    }
}

impl<S: FlashFs> Vfs<S> {
    /// The root's inode, created when a call first refers to the root itself.
    pub(super) fn root(&mut self, now: Ns) -> usize {
        let ino = self.root_ino();
        match self.inodes.find(ino) {
            Some(index) => index,
            None => self.inodes.add(now, ino, true),
        }
    }

    fn is_link(&self, index: usize) -> bool {
        self.inodes[index].target.is_some()
    }

    /// filename_parentat: the directory of a path, or the error at the component where the walk
    /// ends.
    pub(super) fn walk_parent<'a>(&mut self, mut now: Ns, path: &'a str) -> Answer<Parent<'a>> {
        let mut directory = None;
        for (end, _) in path.match_indices('/') {
            let (found, later) = self.lookup(now, directory, &path[..end])?;
            now = later;
            match found {
                Some(index) if self.inodes[index].is_directory => directory = Some(index),
                Some(index) if self.is_link(index) => return self.walk_links(now, path, false),
                Some(_) => return Ok((Err(ENOTDIR), now)),
                None => return Ok((Err(ENOENT), now)),
            }
        }
        Ok((Ok((directory, Cow::Borrowed(path))), now))
    }

    /// filename_lookup: walks a path to its end, and through a link there if `follow` is set.
    pub(super) fn walk<'a>(&mut self, now: Ns, path: &'a str, follow: bool) -> Answer<Walked<'a>> {
        let (parent, now) = match self.walk_parent(now, path)? {
            (Ok(parent), now) => (parent, now),
            (Err(errno), now) => return Ok((Err(errno), now)),
        };
        let (walked, now) = self.look_up(now, parent)?;
        if !follow || !walked.found.is_some_and(|index| self.is_link(index)) {
            return Ok((Ok(walked), now));
        }
        match self.walk_links(now, path, true)? {
            (Ok(parent), now) => {
                let (walked, now) = self.look_up(now, parent)?;
                Ok((Ok(walked), now))
            }
            (Err(errno), now) => Ok((Err(errno), now)),
        }
    }

    /// Looks up the last component of a path whose directory is known.
    pub(super) fn look_up<'a>(
        &mut self,
        now: Ns,
        (directory, path): Parent<'a>,
    ) -> Result<(Walked<'a>, Ns), FsError> {
        if path == TOP || path.is_empty() {
            let found = Some(self.root(now));
            return Ok((Walked { directory, path: Cow::Borrowed(TOP), found }, now));
        }
        let (found, now) = self.lookup(now, directory, &path)?;
        Ok((Walked { directory, path, found }, now))
    }

    /// The same walk component by component. A link's target replaces the link. The last component
    /// is looked up only if it is to be followed.
    fn walk_links(&mut self, mut now: Ns, path: &str, follow: bool) -> Answer<Parent<'static>> {
        let reversed = |path: &str| path.rsplit('/').map(str::to_owned).collect::<Vec<_>>();
        let mut names = reversed(path);
        let (mut at, mut links) = (Vec::<At>::new(), 0);
        while let Some(name) = names.pop() {
            let here = at.last().cloned().unwrap_or_default();
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    if at.pop().is_none() {
                        return walk_outside(now, &names);
                    }
                    continue;
                }
                _ => {}
            }
            let full = here.join(&name);
            if names.is_empty() && !follow {
                return Ok((Ok((here.directory, Cow::Owned(full))), now));
            }
            let (found, later) = self.lookup(now, here.directory, &full)?;
            now = later;
            let target = found.and_then(|index| self.inodes[index].target.clone());
            if let (Some(target), Some(index)) = (target, found) {
                links += 1;
                if links > LINKS_MAX {
                    return Ok((Err(ELOOP), now));
                }
                now = self.get_link(now, index)?;
                names.extend(reversed(&target));
                if target.starts_with('/') {
                    return walk_outside(now, &names);
                }
                continue;
            }
            if names.is_empty() {
                return Ok((Ok((here.directory, Cow::Owned(full))), now));
            }
            match found {
                Some(index) if self.inodes[index].is_directory => {
                    at.push(At { directory: Some(index), path: full });
                }
                Some(_) => return Ok((Err(ENOTDIR), now)),
                None => return Ok((Err(ENOENT), now)),
            }
        }
        // The path ends in a directory because of "..".
        let here = at.pop().unwrap_or_default();
        let above = at.last().and_then(|at| at.directory);
        Ok((Ok((above, Cow::Owned(here.path))), now))
    }
}

/// The walk from the agent's root directory on, along the rest of a path in reverse.
fn walk_outside(now: Ns, names: &[String]) -> Answer<Parent<'static>> {
    let mut names = names.iter().rev().skip_while(|name| ["", ".", ".."].contains(&name.as_str()));
    match (names.next(), names.next()) {
        (Some(first), Some(_)) if !OUTSIDE.contains(&first.as_str()) => Ok((Err(ENOENT), now)),
        _ => Err(FsError::NotModelled(LEAVES)),
    }
}
