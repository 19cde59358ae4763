//! A decorator that records every flash operation of the chip it wraps.
//!
//! A row has the first transfer of its command, like a trace of the kernel's raw NAND operations: a
//! whole page is `page_bytes` at column 0, whether its OOB follows or not.

use crate::flash::{Block, Counts, Done, Flash, FlashOp, Kind, Moves, Span, WrongBits};
use crate::profile::ChipProfile;
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};

/// A chip whose operations are recorded on request.
#[derive(Clone, Debug)]
pub struct Traced<F> {
    inner: F,
    /// The operations recorded since `start`.
    record: Option<Vec<FlashOp>>,
}

impl<F: Flash> Traced<F> {
    /// Wraps `inner`, not recording yet.
    pub fn new(inner: F) -> Traced<F> {
        Traced { inner, record: None }
    }

    /// The flash below.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// The flash below, to be changed by the laboratory.
    pub fn inner_mut(&mut self) -> &mut F {
        &mut self.inner
    }

    /// Starts recording.
    pub fn start_recording(&mut self) {
        self.record = Some(Vec::new());
    }

    /// Stops recording; returns the recorded operations.
    pub fn take_record(&mut self) -> Vec<FlashOp> {
        self.record.take().unwrap_or_default()
    }

    fn note(&mut self, start: Ns, task: Task, kind: Kind, page: PageNo, span: Span) {
        let Span { column, length } = span;
        if let Some(record) = &mut self.record {
            record.push(FlashOp { start, kind, page, column, length, task });
        }
    }
}

impl<F: Flash> Flash for Traced<F> {
    fn profile(&self) -> &ChipProfile {
        self.inner.profile()
    }

    fn read(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves) -> Done {
        self.note(now, task, Kind::Read, page, moves.first);
        self.inner.read(now, task, page, moves)
    }

    fn read_next(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, time: Ns) -> Done {
        self.note(now, task, Kind::Read, page, moves.first);
        self.inner.read_next(now, task, page, moves, time)
    }

    #[inline]
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        self.inner.change_column(now, length)
    }

    #[inline]
    fn command(&mut self, now: Ns, time: Ns) -> Ns {
        self.inner.command(now, time)
    }

    fn program(&mut self, now: Ns, task: Task, page: PageNo, moves: Moves, cells: Span) -> Done {
        self.note(now, task, Kind::Program, page, moves.first);
        self.inner.program(now, task, page, moves, cells)
    }

    fn erase(&mut self, now: Ns, task: Task, block: BlockNo) -> Done {
        let pages = self.profile().pages_per_block;
        let length = self.profile().page_bytes * pages;
        self.note(now, task, Kind::Erase, PageNo(block.0 * pages), Span { column: 0, length });
        self.inner.erase(now, task, block)
    }

    fn counts(&self) -> Counts {
        self.inner.counts()
    }

    fn block(&self, block: BlockNo) -> &Block {
        self.inner.block(block)
    }

    fn wrong_bits(&self) -> Option<&WrongBits> {
        self.inner.wrong_bits()
    }
}
