//! Erasing a block, one call into MTD at a time, and retiring a block that cannot be erased.
//!
//! Mirrors __erase_worker of drivers/mtd/ubi/wl.c with ubi_io_sync_erase, do_sync_erase,
//! torture_peb and ubi_io_mark_bad of io.c, Linux 6.1. A failed erase is retried three times. A
//! block in which a program failed is tortured: erased, filled and read back three times before it
//! is used again. A block that fails, or whose header cannot be written, is marked bad while there
//! is a reserve. Without a reserve UBI becomes read-only.
//!
//! Invariant: the block is in no tree until it is free, and stays in none if it went bad.

use super::io::{Seen, RETRIES};
use super::{Block, Header, Holds, Ubi};
use crate::causes::{Cause, Causes};
use crate::errno::{FsError, Result};
use crate::flash::{Failed, Fault};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// The patterns of torture_peb.
const PATTERNS: u32 = 3;

/// The next call into MTD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Erase,
    /// Read of the whole block, which should be empty.
    ReadErased,
    WritePattern,
    ReadPattern,
    Header,
    /// ubi_dump_flash of a failed write.
    Dump {
        bytes: u32,
    },
    MarkBad,
}

/// The progress of __erase_worker on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Erase {
    block: u32,
    /// Patterns still to be written.
    patterns: u32,
    next: Next,
    /// Failed erases since the last success.
    failed: u32,
    /// It is erased by ubi_sync_erase, for a caller who keeps it.
    is_kept: bool,
}

impl Erase {
    pub fn new(block: u32, torture: bool) -> Erase {
        let patterns = if torture { PATTERNS } else { 0 };
        Erase { block, patterns, next: Next::Erase, failed: 0, is_kept: false }
    }

    /// ubi_sync_erase: the caller keeps the block.
    pub fn kept(block: u32, torture: bool) -> Erase {
        Erase { is_kept: true, ..Erase::new(block, torture) }
    }

    /// Whether the next step writes the first torture pattern.
    pub fn begins_torture(&self) -> bool {
        self.patterns == PATTERNS && self.next == Next::Erase && self.failed == 0
    }

    /// Whether torture is in progress.
    pub fn is_torturing(&self) -> bool {
        self.patterns > 0 && !self.begins_torture() && self.next != Next::MarkBad
    }
}

impl<D: NandDriver> Ubi<D> {
    /// Makes the next call; returns the remaining work.
    pub(super) fn continue_erase(&mut self, now: Ns, erase: Erase) -> Result<(Option<Erase>, Ns)> {
        let whole = self.mtd.block_bytes();
        let then = |next| Some(Erase { next, ..erase });
        match erase.next {
            Next::Erase => self.try_erase(now, erase),
            Next::ReadErased | Next::ReadPattern => {
                let (fine, now) = match self.io_read(now, erase.block, 0, whole) {
                    Ok((seen, now)) => (seen == Seen::Clean, now),
                    Err(FsError::Unreadable(now)) => (false, now),
                    Err(error) => return Err(error),
                };
                let rest = match erase.next {
                    _ if !fine => then(Next::MarkBad),
                    Next::ReadErased => then(Next::WritePattern),
                    _ => Some(Erase { patterns: erase.patterns - 1, next: Next::Erase, ..erase }),
                };
                Ok((rest, now))
            }
            Next::WritePattern => {
                let causes = Causes::of(Cause::WearLevelling, whole);
                match self.io_write(now, erase.block, 0, whole, &causes) {
                    Ok(now) => Ok((then(Next::ReadPattern), now)),
                    Err(FsError::Io(now)) => Ok((then(Next::Dump { bytes: whole }), now)),
                    Err(error) => self.fail_erase(error),
                }
            }
            Next::Header => match self.write_erase_header(now, erase.block) {
                Ok(now) => {
                    if !erase.is_kept {
                        self.file_erased(now, erase.block);
                    }
                    Ok((None, now))
                }
                Err(FsError::Io(now)) => Ok((then(Next::Dump { bytes: self.header_bytes }), now)),
                Err(error) => self.fail_erase(error),
            },
            Next::Dump { bytes } => {
                Ok((then(Next::MarkBad), self.dump_flash(now, erase.block, 0, bytes)?))
            }
            Next::MarkBad if erase.is_kept => Err(FsError::Io(now)),
            Next::MarkBad => self.mark_bad(now, erase.block),
        }
    }

    /// do_sync_erase of io.c.
    fn try_erase(&mut self, now: Ns, erase: Erase) -> Result<(Option<Erase>, Ns)> {
        if self.is_read_only {
            return self.fail_erase(FsError::ReadOnly(now));
        }
        match self.mtd.erase(now, erase.block) {
            Ok(now) => {
                let state = &mut self.blocks[erase.block as usize];
                let erases = state.erases + 1;
                let (header, holds) = (Header::Missing, Holds::Nothing);
                *state = Block { erases, header, holds, written_bytes: 0 };
                let next = if erase.patterns > 0 { Next::ReadErased } else { Next::Header };
                Ok((Some(Erase { next, failed: 0, ..erase }), now))
            }
            Err(Failed { at, fault: Fault::EraseFailed }) => {
                let next = if erase.failed < RETRIES { Next::Erase } else { Next::MarkBad };
                if next == Next::Erase {
                    self.yield_after_step();
                }
                Ok((Some(Erase { next, failed: erase.failed + 1, ..erase }), at))
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// An error of __erase_worker that is not the block's fault: UBI becomes read-only.
    fn fail_erase(&mut self, error: FsError) -> Result<(Option<Erase>, Ns)> {
        match error {
            FsError::ReadOnly(now) => {
                self.is_read_only = true;
                Ok((None, now))
            }
            other => Err(other),
        }
    }

    /// The rest of __erase_worker for a block that went bad.
    fn mark_bad(&mut self, now: Ns, block: u32) -> Result<(Option<Erase>, Ns)> {
        if self.reserve == 0 || self.is_read_only {
            self.is_read_only = true;
            return Ok((None, now));
        }
        match self.mtd.mark_bad(now, block) {
            Ok(now) => {
                self.reserve -= 1;
                Ok((None, now))
            }
            Err(Failed { at, fault: Fault::ProgramFailed }) => {
                self.is_read_only = true;
                Ok((None, at))
            }
            Err(failed) => Err(failed.into()),
        }
    }
}
