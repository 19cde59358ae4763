//! How calls end: the errors of the layers, and the errno that a program sees.
//!
//! Mirrors include/uapi/asm-generic/errno.h and errno-base.h. A layer passes an [`FsError`] up
//! together with the time at which it was known. The system call turns it into a number.
//!
//! Invariant: what a program would not see (a power cut, a case that is not modelled) never becomes
//! a number.

use crate::units::Ns;
use thiserror::Error;

/// Operation not permitted.
pub const EPERM: i64 = -1;
/// No such file or directory.
pub const ENOENT: i64 = -2;
/// Input/output error.
pub const EIO: i64 = -5;
/// Bad file descriptor.
pub const EBADF: i64 = -9;
/// Resource temporarily unavailable.
pub const EAGAIN: i64 = -11;
/// Permission denied.
pub const EACCES: i64 = -13;
/// Bad address: the answer to an access to memory beyond a mapped file.
pub const EFAULT: i64 = -14;
/// Device or resource busy.
pub const EBUSY: i64 = -16;
/// File exists.
pub const EEXIST: i64 = -17;
/// Invalid cross-device link.
pub const EXDEV: i64 = -18;
/// No such device.
pub const ENODEV: i64 = -19;
/// Not a directory.
pub const ENOTDIR: i64 = -20;
/// Is a directory.
pub const EISDIR: i64 = -21;
/// Invalid argument.
pub const EINVAL: i64 = -22;
/// The file has no such ioctl.
pub const ENOTTY: i64 = -25;
/// File too large.
pub const EFBIG: i64 = -27;
/// No space left on the device.
pub const ENOSPC: i64 = -28;
/// Read-only file system.
pub const EROFS: i64 = -30;
/// Result not representable.
pub const ERANGE: i64 = -34;
/// File name too long.
pub const ENAMETOOLONG: i64 = -36;
/// Directory not empty.
pub const ENOTEMPTY: i64 = -39;
/// Too many levels of symbolic links.
pub const ELOOP: i64 = -40;
/// No data available: no such extended attribute.
pub const ENODATA: i64 = -61;
/// Wrong bits that ECC cannot correct.
pub const EBADMSG: i64 = -74;
/// Value too large for defined data type.
pub const EOVERFLOW: i64 = -75;
/// Operation not supported.
pub const EOPNOTSUPP: i64 = -95;
/// Structure needs cleaning.
pub const EUCLEAN: i64 = -117;

/// An error that a program would see as errno, or a limit of the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FsError {
    /// ENOSPC, and when it was known.
    #[error("no space left on the partition")]
    NoSpace(Ns),
    /// EIO, and when it was known: the flash failed, and the file system could not recover.
    #[error("input/output error")]
    Io(Ns),
    /// EBADMSG: the data read have wrong bits that ECC cannot correct.
    #[error("uncorrectable error")]
    Unreadable(Ns),
    /// EUCLEAN: the checksum of the data read is wrong.
    #[error("structure needs cleaning")]
    Damaged(Ns),
    /// EROFS: an earlier error made the file system read-only.
    #[error("read-only file system")]
    ReadOnly(Ns),
    /// Another errno of the file system itself, and when.
    #[error("errno {}", -.0)]
    Errno(i64, Ns),
    /// The power failed. What is left is what lies on the flash.
    #[error("the power was cut")]
    PowerLost(Ns),
    /// The partition cannot hold this file system; the reason.
    #[error("{0}")]
    TooSmall(Box<str>),
    /// The model does not have this operation yet, and refuses it rather than guess.
    #[error("{0} is not modelled")]
    NotModelled(&'static str),
}

impl FsError {
    /// The partition cannot hold this file system.
    pub fn too_small(reason: impl Into<Box<str>>) -> FsError {
        FsError::TooSmall(reason.into())
    }

    /// What is not modelled; none for other errors.
    pub fn not_modelled(&self) -> Option<&'static str> {
        match *self {
            FsError::NotModelled(what) => Some(what),
            _ => None,
        }
    }

    /// When an error that a program sees was known; none for others.
    pub fn failed_at(&self) -> Option<Ns> {
        match *self {
            FsError::NoSpace(at)
            | FsError::Io(at)
            | FsError::Unreadable(at)
            | FsError::Damaged(at)
            | FsError::ReadOnly(at)
            | FsError::Errno(_, at) => Some(at),
            _ => None,
        }
    }
}

/// A time or an error.
pub type Result<T> = core::result::Result<T, FsError>;

/// How an operation ended: a system call's return value, and when.
pub type Outcome = Result<(i64, Ns)>;

/// The errno of an error that a program would see, and when it sees it: not before `now`.
pub fn errno(error: FsError, now: Ns) -> Outcome {
    let number = match error {
        FsError::NoSpace(_) => ENOSPC,
        FsError::Io(_) => EIO,
        FsError::ReadOnly(_) => EROFS,
        FsError::Unreadable(_) => EBADMSG,
        FsError::Damaged(_) => EUCLEAN,
        FsError::Errno(number, _) => number,
        other => return Err(other),
    };
    Ok((number, error.failed_at().map_or(now, |at| at.max(now))))
}

/// The result of a system call that may fail with an error of its own.
pub fn answered(outcome: Outcome, now: Ns) -> Outcome {
    outcome.or_else(|error| errno(error, now))
}

/// When background work is over. A program's error is dropped, because no caller waits for it.
pub fn ignore_errno(done: Result<Ns>, now: Ns) -> Result<Ns> {
    done.or_else(|error| Ok(errno(error, now)?.1))
}
