//! Moves: copying a LEB to another block, for wear levelling or because of bit flips.
//!
//! Mirrors wear_leveling_worker of drivers/mtd/ubi/wl.c and ubi_eba_copy_leb of eba.c, Linux 6.1,
//! one call into MTD at a time, because the thread may be preempted between any two. The LEB is
//! locked from before its data is read until it is mapped to the new block.
//!
//! Left out: as in the kernel, used blocks whose headers cannot be read at all, or not read back,
//! make UBI read-only. The kernel also forgets the two blocks; here they are kept.
//!
//! Invariant: while a move lasts, neither of its two blocks is in a tree.

use super::erase::Erase;
use super::free::{FREE_MAX_DIFF, THRESHOLD};
use super::io::Seen;
use super::{Holds, Leb, Ubi};
use crate::causes::{Cause, Causes};
use crate::errno::{FsError, Result};
use crate::mtd::NandDriver;
use crate::units::Ns;

/// The next call into MTD, and what precedes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    ReadHeader,
    /// Locks the LEB first, if it is free.
    ReadData,
    WriteHeader,
    ReadHeaderBack,
    WriteData,
    /// Reads a failed write back to print it, then tortures the target.
    Dump {
        offset: u32,
        bytes: u32,
    },
    /// Maps the LEB to the new block, unlocks it and queues the old block for erasing. No call into
    /// MTD.
    Finish,
}

/// Why a block is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Wear,
    Scrub,
    /// So that the next fastmap can begin in it.
    Anchor,
}

/// A move in progress (`move_from`, `move_to`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub from: u32,
    to: u32,
    /// Whether its reason is bit flips.
    scrub: bool,
    next: Next,
}

/// The reason why a LEB was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cancelled {
    /// MOVE_RETRY.
    Locked,
    /// MOVE_SOURCE_RD_ERR.
    SourceUnreadable,
    /// No volume header: after an attach by a fastmap the block may be erased, or its erase be cut.
    NoHeader,
    /// MOVE_TARGET_WR_ERR, MOVE_TARGET_BITFLIPS.
    TargetFailed,
}

impl Move {
    /// Whether its next step locks the LEB and takes the buffer for its data.
    pub fn locks_leb(&self) -> bool {
        self.next == Next::ReadData
    }

    /// Whether it holds the lock of its LEB.
    pub fn has_locked(&self) -> bool {
        !matches!(self.next, Next::ReadHeader | Next::ReadData)
    }
}

/// A work in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Erase(Erase),
    Move(Move),
}

impl Step {
    /// Whether its next step takes the buffer.
    pub fn locks_buffer(&self) -> bool {
        match self {
            Step::Erase(erase) => erase.begins_torture(),
            Step::Move(moving) => moving.locks_leb(),
        }
    }

    /// Whether it holds the buffer.
    pub fn has_buffer(&self) -> bool {
        match self {
            Step::Erase(erase) => erase.is_torturing(),
            Step::Move(moving) => moving.has_locked(),
        }
    }
}

impl<D: NandDriver> Ubi<D> {
    /// The beginning of wear_leveling_worker: chooses source and target, if there is anything to
    /// move.
    pub(super) fn begin_move(&mut self, now: Ns) -> Option<Step> {
        let begun = self.choose_blocks(now);
        if begun.is_none() {
            self.wl.is_level_scheduled = false;
        }
        begun.map(Step::Move)
    }

    fn choose_blocks(&mut self, now: Ns) -> Option<Move> {
        let has_pools = self.fastmap.is_some();
        let (why, (erases, from)) = if has_pools {
            self.choose_move(now)?
        } else {
            let scrub = self.wl.scrub.first().map(|&entry| (Why::Scrub, entry));
            scrub.or_else(|| self.wl.used.first().map(|&entry| (Why::Wear, entry)))?
        };
        let to = if has_pools {
            self.take_for_move(now)?
        } else {
            self.wl.free.take_worn(FREE_MAX_DIFF)?
        };
        let to_erases = self.blocks[to as usize].erases;
        if why == Why::Wear && to_erases < erases + THRESHOLD {
            self.wl.free.insert(to, to_erases);
            return None;
        }
        if why == Why::Anchor {
            self.begin_anchor();
        }
        let scrub = why == Why::Scrub;
        let tree = if scrub { &mut self.wl.scrub } else { &mut self.wl.used };
        tree.remove(&(erases, from));
        Some(Move { from, to, scrub, next: Next::ReadHeader })
    }

    fn leb_in(&self, block: u32) -> (Leb, u32) {
        let state = self.blocks[block as usize];
        let Holds::Leb { leb, .. } = state.holds else {
            unreachable!("block {block} is in use and holds no LEB")
        };
        (leb, state.written_bytes)
    }

    /// Makes the next call; returns the remaining work.
    pub(super) fn continue_move(&mut self, now: Ns, moving: Move) -> Result<(Option<Step>, Ns)> {
        let Move { from, to, .. } = moving;
        if self.holds(from).is_none() {
            let now = self.read_header(now, from, self.header_bytes)?.1;
            return self.cancel(now, moving, Cancelled::NoHeader);
        }
        let (leb, bytes) = self.leb_in(from);
        let then = |next| Some(Step::Move(Move { next, ..moving }));
        match moving.next {
            Next::ReadHeader => match self.read_header(now, from, self.header_bytes)? {
                (Seen::Damaged, now) => self.fail_move(now),
                // The driver's page buffer still has the page of the last try, so this try takes no
                // time. The thread repeats it until a tick preempts it.
                (_, read) if read == now && self.locked == Some(leb) => {
                    Ok((then(Next::ReadData), self.sched.next_tick_after(now)))
                }
                (_, now) => Ok((then(Next::ReadData), now)),
            },
            Next::ReadData if self.locked == Some(leb) => {
                self.cancel(now, moving, Cancelled::Locked)
            }
            Next::ReadData => match self.io_read(now, from, self.leb_start, self.leb_bytes) {
                Ok((_, now)) => Ok((then(Next::WriteHeader), now)),
                Err(FsError::Unreadable(now)) => {
                    self.cancel(now, moving, Cancelled::SourceUnreadable)
                }
                Err(error) => Err(error),
            },
            Next::WriteHeader => {
                let copied = (bytes > 0).then_some(bytes);
                let written = self.write_volume_header(now, to, leb, copied);
                let written_at = (self.header_bytes, self.header_bytes);
                self.after_write(moving, written, written_at, Next::ReadHeaderBack)
            }
            Next::ReadHeaderBack => match self.read_header(now, to, self.header_bytes)? {
                (Seen::Clean, now) if bytes == 0 => Ok((then(Next::Finish), now)),
                (Seen::Clean, now) => Ok((then(Next::WriteData), now)),
                (Seen::BitFlips, now) => self.cancel(now, moving, Cancelled::TargetFailed),
                (Seen::Damaged, now) => self.fail_move(now),
            },
            Next::WriteData => {
                let moved = Causes::of(Cause::WearLevelling, bytes);
                let written = self.io_write(now, to, self.leb_start, bytes, &moved);
                self.after_write(moving, written, (self.leb_start, bytes), Next::Finish)
            }
            Next::Dump { offset, bytes } => {
                let now = self.dump_flash(now, to, offset, bytes)?;
                self.cancel(now, moving, Cancelled::TargetFailed)
            }
            Next::Finish => {
                self.blocks[to as usize].written_bytes = bytes;
                *self.place_mut(leb) = to;
                self.wl.used.insert((self.blocks[to as usize].erases, to));
                self.wl.is_level_scheduled = false;
                Ok((Some(Step::Erase(Erase::new(from, false))), now))
            }
        }
    }

    fn after_write(
        &mut self,
        moving: Move,
        written: Result<Ns>,
        (offset, bytes): (u32, u32),
        next: Next,
    ) -> Result<(Option<Step>, Ns)> {
        match written {
            Ok(now) => Ok((Some(Step::Move(Move { next, ..moving })), now)),
            Err(FsError::Io(now)) => {
                Ok((Some(Step::Move(Move { next: Next::Dump { offset, bytes }, ..moving })), now))
            }
            Err(FsError::ReadOnly(now)) => self.fail_move(now),
            Err(error) => Err(error),
        }
    }

    /// out_not_moved: returns the source to its tree. The target becomes free again or is tortured.
    fn cancel(&mut self, now: Ns, moving: Move, why: Cancelled) -> Result<(Option<Step>, Ns)> {
        let Move { from, to, scrub, .. } = moving;
        let entry = (self.blocks[from as usize].erases, from);
        match (why, scrub) {
            (Cancelled::SourceUnreadable, _) => {
                if self.wl.erroneous.len() as u32 > self.erroneous_max() {
                    return self.fail_move(now);
                }
                self.wl.erroneous.insert(from);
            }
            (Cancelled::NoHeader, _) => self.protect(from),
            (_, true) => _ = self.wl.scrub.insert(entry),
            (_, false) => _ = self.wl.used.insert(entry),
        }
        self.wl.is_level_scheduled = false;
        if why == Cancelled::TargetFailed {
            return Ok((Some(Step::Erase(Erase::new(to, true))), now));
        }
        self.wl.free.insert(to, self.blocks[to as usize].erases);
        self.ensure_levelling(now);
        Ok((None, now))
    }

    /// `max_erroneous`: a tenth of all blocks, at least 16.
    fn erroneous_max(&self) -> u32 {
        (self.blocks.len() as u32 / 10).max(16)
    }

    /// out_error.
    fn fail_move(&mut self, now: Ns) -> Result<(Option<Step>, Ns)> {
        self.wl.is_level_scheduled = false;
        self.is_read_only = true;
        Ok((None, now))
    }
}
