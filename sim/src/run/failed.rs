//! Failed calls: measured operations that did not do what they were to do.
//!
//! targets/failing.py counts by the same rule on real kernels. Some errors are answers: programs
//! call `stat`, `open`, `unlink` or `mkdir` to learn whether a name is there, as SQLite does for a
//! journal. A recording keeps such a call because it failed when it was recorded. The `close` of
//! what was not opened loses nothing; a read or write of it counts. No file system here has a
//! `fallocate`, and JFFS2 has no extended attributes by default: programs meet that everywhere.

use super::Request;
use crate::errno::{
    EAGAIN, EBADF, EEXIST, EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENODATA, ENOENT, ENOTDIR,
    ENOTEMPTY, EOPNOTSUPP,
};
use crate::ops;
use std::collections::BTreeMap;

/// How a call that wrote fewer bytes than it was given is counted.
pub const SHORT: i64 = 0;
/// Calls on names.
const OF_NAMES: [&str; 14] = [
    "mkdir",
    "unlink",
    "rmdir",
    "rename",
    "stat",
    "link",
    "symlink",
    "readlink",
    "chmod",
    "chown",
    "utimens",
    "getxattr",
    "listxattr",
    "removexattr",
];
/// Their answers about a name.
const ANSWERS: [i64; 9] =
    [ENOENT, EEXIST, ENOTDIR, EISDIR, EINVAL, ENAMETOOLONG, ENOTEMPTY, ELOOP, ENODATA];
/// Calls that some file systems do not have.
const NOT_EVERYWHERE: [&str; 4] = ["fallocate", "getxattr", "listxattr", "removexattr"];

/// Failed calls by their result, [`SHORT`] for short writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failed(BTreeMap<i64, u64>);

impl Failed {
    /// Counts the call if it failed.
    #[inline]
    pub(super) fn count(&mut self, request: &Request) {
        let short = request.op == ops::WRITE
            && request.length_bytes.is_some_and(|length| request.result < length as i64);
        if request.result < 0 || short {
            self.judge(request);
        }
    }

    #[cold]
    fn judge(&mut self, request: &Request) {
        let (name, result) = (ops::NAMES[request.op], request.result);
        let answered = (OF_NAMES.contains(&name) && ANSWERS.contains(&result))
            || (NOT_EVERYWHERE.contains(&name) && result == EOPNOTSUPP)
            || (name == "open" && [ENOENT, EEXIST].contains(&result))
            || (name == "close" && result == EBADF)
            || (name == "flock" && result == EAGAIN);
        if !answered {
            *self.0.entry(result.min(SHORT)).or_default() += 1;
        }
    }

    /// How many calls failed.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Their numbers by result.
    pub fn by_result(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.0.iter().map(|(&result, &count)| (result, count))
    }
}
