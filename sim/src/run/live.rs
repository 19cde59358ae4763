//! Which bytes of each block are still of use, looked at while a case runs.
//!
//! A look costs as much as the partition has blocks. At most twice `SAMPLES` of them are kept: with
//! more, every second one is dropped, and from then on half as many are taken.

use super::results::LiveSample;
use super::stack::Stack;
use super::Setting;
use crate::units::Ns;

const SAMPLES: usize = 256;
/// Blocks that are kept of all samples together, a byte each.
const BYTES_MAX: usize = 8 << 20;
const WHOLE: u64 = 255;

/// The samples of a case, if requested.
pub(super) struct LiveSamples {
    is_wanted: bool,
    samples: Vec<LiveSample>,
    samples_max: usize,
    /// Programs and erases between two looks.
    stride: u64,
    next: u64,
    block_bytes: u32,
    bytes: Vec<u32>,
}

impl LiveSamples {
    /// None yet.
    pub fn new(setting: &Setting<'_>) -> LiveSamples {
        let board = setting.board;
        let blocks = board.partition.blocks as usize;
        LiveSamples {
            is_wanted: setting.recorded.live,
            samples: Vec::new(),
            samples_max: (2 * SAMPLES).min(BYTES_MAX / blocks.max(1)).max(4),
            stride: 1,
            next: 0,
            block_bytes: board.chip.page_bytes * board.chip.pages_per_block,
            bytes: vec![0; if setting.recorded.live { blocks } else { 0 }],
        }
    }

    /// Takes a sample if enough programs and erases have happened, which were `changes` by now.
    pub fn look<S: Stack>(&mut self, stack: &S, at: Ns, changes: u64) {
        if !self.is_wanted || changes < self.next {
            return;
        }
        self.take(stack, at);
        if self.samples.len() >= self.samples_max {
            let mut is_kept = false;
            self.samples.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.stride *= 2;
        }
        self.next = changes + self.stride;
    }

    /// A last sample, and all of them. None where the model does not say.
    pub fn end<S: Stack>(mut self, stack: &S, at: Ns) -> Vec<LiveSample> {
        if self.is_wanted {
            self.take(stack, at);
        }
        self.samples
    }

    fn take<S: Stack>(&mut self, stack: &S, at: Ns) {
        self.bytes.fill(0);
        if !stack.live_bytes(&mut self.bytes) {
            return;
        }
        let whole = u64::from(self.block_bytes);
        let share = |bytes: u32| (u64::from(bytes) * WHOLE).div_ceil(whole).min(WHOLE) as u8;
        let (mtd, blocks) = (stack.mtd(), self.bytes.len() as u32);
        self.samples.push(LiveSample {
            at,
            live: self.bytes.iter().map(|&bytes| share(bytes)).collect(),
            programmed: (0..blocks).map(|block| share(mtd.programmed_bytes(block))).collect(),
        });
    }
}
