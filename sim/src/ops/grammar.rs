//! The names of operations, and how many fields each takes.

/// The most fields of a line, its word included.
pub const FIELDS_MAX: usize = 7;

/// The operations, in the order of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Mkdir,
    Open,
    Close,
    Read,
    Write,
    Fsync,
    Fdatasync,
    Truncate,
    Fadvise,
    Erase,
    Unlink,
    Rmdir,
    Rename,
    Sync,
    DropCaches,
    Remount,
    Pause,
    Compute,
    SqlOpen,
    Sql,
    SqlClose,
    Prepared,
    Mark,
    Task,
    Spawn,
    Wait,
    Stat,
    ReadDir,
    Link,
    Symlink,
    ReadLink,
    Chmod,
    Chown,
    Utimens,
    SetXattr,
    GetXattr,
    ListXattr,
    RemoveXattr,
    Fallocate,
    Copy,
    Send,
    SyncRange,
    SyncFs,
    Flock,
    Mmap,
    Touch,
    Store,
    Msync,
    Munmap,
    Data,
}

/// Names by `Operation::code`; the first 23 are those of version 1.
pub const NAMES: [&str; 50] = [
    "mkdir",
    "open",
    "close",
    "read",
    "write",
    "fsync",
    "fdatasync",
    "truncate",
    "fadvise",
    "erase",
    "unlink",
    "rmdir",
    "rename",
    "sync",
    "drop_caches",
    "remount",
    "pause",
    "compute",
    "sql_open",
    "sql",
    "sql_close",
    "prepared",
    "mark",
    "task",
    "spawn",
    "wait",
    "stat",
    "readdir",
    "link",
    "symlink",
    "readlink",
    "chmod",
    "chown",
    "utimens",
    "setxattr",
    "getxattr",
    "listxattr",
    "removexattr",
    "fallocate",
    "copy",
    "send",
    "sync_range",
    "syncfs",
    "flock",
    "mmap",
    "touch",
    "store",
    "msync",
    "munmap",
    "data",
];

/// `Operation::code` of a read.
pub const READ: usize = Word::Read as usize;
/// `Operation::code` of a write.
pub const WRITE: usize = Word::Write as usize;
/// `Operation::code` of a copy.
pub const COPY: usize = Word::Copy as usize;
/// `Operation::code` of a send.
pub const SEND: usize = Word::Send as usize;
/// `Operation::code` of a store.
pub const STORE: usize = Word::Store as usize;
/// `Operation::code` of a pause.
pub const PAUSE: usize = Word::Pause as usize;

/// Looks up an operation of version 1 by its name; returns its number of fields, too.
pub(super) fn parse_word(word: &str) -> Option<(Word, usize)> {
    Some(match word {
        "read" => (Word::Read, 3),
        "write" => (Word::Write, 5),
        "mkdir" => (Word::Mkdir, 1),
        "open" => (Word::Open, 3),
        "close" => (Word::Close, 1),
        "fsync" => (Word::Fsync, 1),
        "fdatasync" => (Word::Fdatasync, 1),
        "truncate" => (Word::Truncate, 2),
        "fadvise" => (Word::Fadvise, 4),
        "erase" => (Word::Erase, 3),
        "unlink" => (Word::Unlink, 1),
        "rmdir" => (Word::Rmdir, 1),
        "rename" => (Word::Rename, 2),
        "sync" => (Word::Sync, 0),
        "drop_caches" => (Word::DropCaches, 0),
        "remount" => (Word::Remount, 0),
        "pause" => (Word::Pause, 1),
        "compute" => (Word::Compute, 1),
        "sql_open" => (Word::SqlOpen, 4),
        "sql" => (Word::Sql, 2),
        "sql_close" => (Word::SqlClose, 1),
        "prepared" => (Word::Prepared, 0),
        "mark" => (Word::Mark, 0),
        _ => return None,
    })
}

/// Looks up an operation of version 2.
pub(super) fn parse_new_word(word: &str) -> Option<(Word, usize)> {
    Some(match word {
        "task" => (Word::Task, 1),
        "spawn" => (Word::Spawn, 1),
        "wait" => (Word::Wait, 1),
        "stat" => (Word::Stat, 1),
        "readdir" => (Word::ReadDir, 1),
        "link" => (Word::Link, 2),
        "symlink" => (Word::Symlink, 2),
        "readlink" => (Word::ReadLink, 1),
        "chmod" => (Word::Chmod, 2),
        "chown" => (Word::Chown, 3),
        "utimens" => (Word::Utimens, 1),
        "setxattr" => (Word::SetXattr, 5),
        "getxattr" => (Word::GetXattr, 2),
        "listxattr" => (Word::ListXattr, 1),
        "removexattr" => (Word::RemoveXattr, 2),
        "fallocate" => (Word::Fallocate, 4),
        "copy" => (Word::Copy, 5),
        "send" => (Word::Send, 3),
        "sync_range" => (Word::SyncRange, 4),
        "syncfs" => (Word::SyncFs, 1),
        "flock" => (Word::Flock, 2),
        "mmap" => (Word::Mmap, 5),
        "touch" => (Word::Touch, 3),
        "store" => (Word::Store, 5),
        "msync" => (Word::Msync, 4),
        "munmap" => (Word::Munmap, 1),
        "data" => (Word::Data, 1),
        _ => return None,
    })
}
