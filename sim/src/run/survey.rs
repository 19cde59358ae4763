//! The survey after a power cut: every file there is, and whether the file system still works.
//!
//! agent/job/cuts.c and agent/job/survey.c do the same on a real kernel: mount the file system,
//! read every file, then write, sync and read back a new one. The simulator knows the source of all
//! bytes instead of recognising it. Bytes that no source generates at their offset are given
//! themselves, page by page.

use crate::content::{Contents, Source};
use crate::errno::{FsError, EIO};
use crate::flash::Torn;
use crate::fs::FlashFs;
use crate::mtd::{Device, Partition, PARTITION};
use crate::ops::{Advice, Fill, Flags, Operation};
use crate::units::Ns;
use crate::vfs::Vfs;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The new file, as in agent/job/cuts.c.
const PROBE: &str = "flashbed-probe";
const PROBE_BYTES: u64 = 6000;
const PAGE_BYTES: u64 = 4096;
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

/// What a run holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Held {
    /// Zeroes.
    Zero,
    /// What a source generates at the run's offset.
    Generated(Source),
    /// These bytes, at most a page.
    Bytes(Arc<[u8]>),
    /// The errno with which it cannot be read.
    Unreadable(i64),
}

/// Consecutive bytes of a file with one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes.
    pub length_bytes: u64,
    /// What they are.
    pub held: Held,
}

/// A file and its content, or a symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SurveyedFile {
    /// Path from the root.
    pub path: String,
    /// Its size; 0 for a link.
    pub size_bytes: u64,
    /// Its whole content, in order.
    pub runs: Vec<Run>,
    /// Where a symbolic link leads.
    pub target: Option<String>,
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

impl Survey {
    /// Stores equal bytes once for all surveys that `known` has seen.
    pub fn share(&mut self, known: &mut BTreeSet<Arc<[u8]>>) {
        for run in self.files.iter_mut().flat_map(|file| &mut file.runs) {
            let Held::Bytes(bytes) = &mut run.held else { continue };
            match known.get(bytes) {
                Some(shared) => *bytes = Arc::clone(shared),
                None => drop(known.insert(Arc::clone(bytes))),
            }
        }
    }
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

/// The same of a disk: its content is that of its one file, and no file can be written beside it.
pub fn survey_disk<D: Device>(
    disk: &mut Partition<D>,
    now: Ns,
    change: u64,
    torn: Option<Torn>,
) -> Result<Survey, FsError> {
    const REFUSED: FsError = FsError::NotModelled("a power cut where there is no file system");
    let mounted = disk.power_up(now, torn).ok_or(REFUSED)??;
    let runs: Vec<Run> = disk
        .sources()
        .into_iter()
        .map(|(offset_bytes, length_bytes, source)| {
            let held = source.map_or(Held::Zero, Held::Generated);
            Run { offset_bytes, length_bytes, held }
        })
        .collect();
    let size_bytes = runs.iter().map(|run| run.length_bytes).sum();
    let file = SurveyedFile { path: PARTITION.to_owned(), size_bytes, runs, target: None };
    Ok(Survey {
        change,
        mount_result: 0,
        mount_time: mounted - now,
        files: vec![file],
        probe_result: Some(probe_disk(disk, mounted)?),
    })
}

/// Whether the disk works: 0, or the error of writing and reading its first pages.
fn probe_disk<D: Device>(disk: &mut Partition<D>, mut now: Ns) -> Result<i64, FsError> {
    let (slot, offset, length) = (0, 0, 2 * PAGE_BYTES);
    let flags = Flags { write: true, direct: true, ..READ_ONLY };
    let Source { seed, compressibility } = PROBE_SOURCE;
    for operation in [
        Operation::Open { slot, path: PARTITION, flags },
        Operation::Write { slot, offset, length, seed, fill: Fill::Even(compressibility) },
        Operation::Fsync { slot },
        Operation::Read { slot, offset, length },
        Operation::Close { slot },
    ] {
        let result;
        (result, now) = disk.call(now, &operation)?;
        if result < 0 {
            return Ok(result);
        }
    }
    Ok(0)
}

fn read_files<S: FlashFs>(
    vfs: &mut Vfs<S>,
    mut now: Ns,
) -> Result<(Vec<SurveyedFile>, Ns), FsError> {
    let mut files: Vec<SurveyedFile> = vfs
        .files()
        .map(|(path, size_bytes, contents)| {
            let runs = runs_of(contents, size_bytes);
            SurveyedFile { path: path.to_owned(), size_bytes, runs, target: None }
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
            let held = Held::Unreadable(read);
            file.runs = vec![Run { offset_bytes: 0, length_bytes: file.size_bytes, held }];
        }
    }
    files.extend(vfs.links().map(|(path, target)| SurveyedFile {
        path: path.to_owned(),
        size_bytes: 0,
        runs: Vec::new(),
        target: Some(target.to_owned()),
    }));
    Ok((files, now))
}

/// The content of a file.
fn runs_of(contents: &Contents, size_bytes: u64) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut add = |start: u64, end: u64, held| {
        if start < end {
            runs.push(Run { offset_bytes: start, length_bytes: end - start, held });
        }
    };
    let mut at = 0;
    for (mut start, end, source) in contents.sources(0, size_bytes) {
        add(at, start, Held::Zero);
        if let Some(source) = source {
            add(start, end, Held::Generated(source));
            start = end;
        }
        while start < end {
            let to = end.min((start / PAGE_BYTES + 1) * PAGE_BYTES);
            let mut bytes = vec![0; (to - start) as usize];
            contents.fill(start, &mut bytes);
            add(start, to, Held::Bytes(bytes.into()));
            start = to;
        }
        at = end;
    }
    add(at, size_bytes, Held::Zero);
    runs
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
