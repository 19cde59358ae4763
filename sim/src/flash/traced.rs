//! A decorator that writes down every flash operation of the chip it is put around.
//!
//! A row has the first data move of its command, as a trace of the kernel's raw NAND operations
//! has: a whole page is `page_bytes` at column 0, whether its OOB follows or not.

use crate::flash::{pass_on, Done, Flash, FlashOp, Kind, Moves, Span};
use crate::sched::Task;
use crate::units::{BlockNo, Ns, PageNo};

/// Records while it is told to.
#[derive(Clone, Debug)]
pub struct Traced<F> {
    inner: F,
    task: Task,
    /// The operations recorded since `start`.
    record: Option<Vec<FlashOp>>,
}

impl<F: Flash> Traced<F> {
    /// Around `inner`, not recording yet.
    pub fn new(inner: F) -> Traced<F> {
        Traced { inner, task: Task::default(), record: None }
    }

    fn note(&mut self, start: Ns, kind: Kind, page: PageNo, span: Span) {
        let task = self.task;
        let Span { column, length } = span;
        if let Some(record) = &mut self.record {
            record.push(FlashOp { start, kind, page, column, length, task });
        }
    }
}

impl<F: Flash> Flash for Traced<F> {
    pass_on! {
        profile change_column counts block_erases set_block_erases is_factory_bad
        programmed_bytes can_lose_power cut_power_in power_on wrong_bits begin_faults
    }

    fn read(&mut self, now: Ns, page: PageNo, moves: Moves) -> Done {
        self.note(now, Kind::Read, page, moves.first);
        self.inner.read(now, page, moves)
    }

    fn program(&mut self, now: Ns, page: PageNo, moves: Moves, cells: Span) -> Done {
        self.note(now, Kind::Program, page, moves.first);
        self.inner.program(now, page, moves, cells)
    }

    fn erase(&mut self, now: Ns, block: BlockNo) -> Done {
        let pages = self.profile().pages_per_block;
        let length = self.profile().page_bytes * pages;
        self.note(now, Kind::Erase, PageNo(block.0 * pages), Span { column: 0, length });
        self.inner.erase(now, block)
    }

    fn set_task(&mut self, task: Task) {
        self.task = task;
    }

    fn start_recording(&mut self) {
        self.record = Some(Vec::new());
    }

    fn take_record(&mut self) -> Vec<FlashOp> {
        self.record.take().unwrap_or_default()
    }
}
