//! The survey after a power cut: every file there is, and whether the file system still works.
//!
//! agent/job/cuts.c and agent/job/survey.c do the same on a real kernel: mount the file system,
//! read every file, then write, sync and read back a new one. The simulator knows the source of all
//! bytes instead of recognising it, so no run is "other".

use crate::content::Source;
use crate::errno::{FsError, EIO};
use crate::flash::Torn;
use crate::fs::FlashFs;
use crate::ops::{Advice, Flags};
use crate::units::Ns;
use crate::vfs::Vfs;

/// The new file, as in agent/job/cuts.c.
const PROBE: &str = "flashbed-probe";
const PROBE_BYTES: u64 = 6000;
const PROBE_SOURCE: Source = Source { seed: 0x0070_726f_6265, compressibility: 0 };
const READ_ONLY: Flags = Flags {
    read: true,
    write: false,
    create: false,
    excl: false,
    trunc: false,
    append: false,
    sync: false,
    dsync: false,
    direct: false,
    directory: false,
    nofollow: false,
    tmpfile: false,
};

/// Consecutive bytes of a file with one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes.
    pub length_bytes: u64,
    /// Their source, none if they are zero; or the errno with which they cannot be read.
    pub what: Result<Option<Source>, i64>,
}

/// A file and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedFile {
    /// Path from the root.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its whole content, in order.
    pub runs: Vec<Run>,
}

/// The state when the power came back. Results are 0 or a negative errno.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The change, from 1, in which the power failed.
    pub change: u64,
    /// The result of mounting.
    pub mount_result: i64,
    /// The duration of mounting.
    pub mount_time: Ns,
    /// The files by path; none if mounting failed.
    pub files: Vec<SurveyedFile>,
    /// The result of writing, syncing and reading a new file.
    pub probe_result: Option<i64>,
}

/// Mounts what the power cut left, and surveys it.
pub fn survey<S: FlashFs>(
    vfs: &mut Vfs<S>,
    now: Ns,
    change: u64,
    torn: Option<Torn>,
) -> Result<Survey, FsError> {
    let nothing = |mount_result, mount_time| Survey {
        change,
        mount_result,
        mount_time,
        files: Vec::new(),
        probe_result: None,
    };
    let mounted = match vfs.power_up(now, torn) {
        Ok(mounted) => mounted,
        Err(FsError::Io(at)) => return Ok(nothing(EIO, at - now)),
        Err(error) => return Err(error),
    };
    let (files, now_read) = read_files(vfs, mounted)?;
    let probe_result = Some(probe(vfs, now_read)?);
    Ok(Survey { files, probe_result, ..nothing(0, mounted - now) })
}

fn read_files<S: FlashFs>(
    vfs: &mut Vfs<S>,
    mut now: Ns,
) -> Result<(Vec<SurveyedFile>, Ns), FsError> {
    let mut files: Vec<SurveyedFile> = vfs
        .files()
        .map(|(path, size_bytes, contents)| {
            let mut runs = Vec::new();
            let mut at = 0;
            let mut add = |start: u64, end: u64, source| {
                let what = Ok(source);
                if start < end {
                    runs.push(Run { offset_bytes: start, length_bytes: end - start, what });
                }
            };
            for (start, end, source) in contents.extents(0, size_bytes) {
                add(at, start, None);
                add(start, end, Some(source));
                at = end;
            }
            add(at, size_bytes, None);
            SurveyedFile { path: path.to_owned(), size_bytes, runs }
        })
        .collect();
    for file in &mut files {
        let (opened, later) = vfs.open(now, 0, &file.path, READ_ONLY)?;
        let (read, later) = match opened {
            0 => vfs.read(later, 0, 0, file.size_bytes)?,
            errno => (errno, later),
        };
        let (_, later) = vfs.close(later, 0)?;
        now = later;
        if read < 0 {
            let what = Err(read);
            file.runs = vec![Run { offset_bytes: 0, length_bytes: file.size_bytes, what }];
        }
    }
    Ok((files, now))
}

/// Whether the file system works: 0, or the error.
fn probe<S: FlashFs>(vfs: &mut Vfs<S>, now: Ns) -> Result<i64, FsError> {
    let flags = Flags { write: true, create: true, excl: true, ..READ_ONLY };
    let (opened, now) = vfs.open(now, 0, PROBE, flags)?;
    if opened < 0 {
        return Ok(opened);
    }
    let (written, now) = vfs.write(now, 0, 0, PROBE_BYTES, PROBE_SOURCE)?;
    let (synced, now) = vfs.fsync(now, 0, false)?;
    let (_, now) = vfs.fadvise(now, 0, 0, 0, Advice::DontNeed)?;
    let (read, _) = vfs.read(now, 0, 0, PROBE_BYTES)?;
    let wrong = [written.min(0), synced, read.min(0)];
    Ok(wrong.into_iter().find(|&result| result < 0).unwrap_or(0))
}
