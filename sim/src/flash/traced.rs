//! A decorator that writes down every flash operation of the chip it is put around.
//!
//! A row has the first data move of its command, as a trace of the kernel's raw NAND operations
//! has: a whole page is `page_bytes` at column 0, whether its OOB follows or not.

use crate::flash::{Block, Counts, Done, Flash, FlashOp, Kind, Moves, Span, WrongBits};
use crate::profile::ChipProfile;
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};

/// Records while it is told to.
#[derive(Clone, Debug)]
pub struct Traced<F> {
    inner: F,
    /// The operations recorded since `start`.
    record: Option<Vec<FlashOp>>,
}

impl<F: Flash> Traced<F> {
    /// Around `inner`, not recording yet.
    pub fn new(inner: F) -> Traced<F> {
        Traced { inner, record: None }
    }

    /// The flash below.
    pub fn inner(&self) -> &F {
        &self.inner
    }

    /// The flash below, for what the laboratory does to it.
    pub fn inner_mut(&mut self) -> &mut F {
        &mut self.inner
    }

    /// Begins to write operations down.
    pub fn start_recording(&mut self) {
        self.record = Some(Vec::new());
    }

    /// What was written down since; nothing is any more.
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

    #[inline]
    fn change_column(&mut self, now: Ns, length: u32) -> Ns {
        self.inner.change_column(now, length)
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
