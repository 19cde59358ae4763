//! What a preparation leaves: its folders, files and links, to be packed into an image.
//!
//! The preparation runs on the file system alone, without a layout, so that an image holds what the
//! program would have found.

use super::laboratory::Laboratory;
use super::machine::Machine;
use super::parts::{self, OnStack};
use super::{new_chip, ChipState, KernelProfile, Mount, Policies, Recorded, RunError};
use super::{Setting, Unwatched};
use crate::errno::FsError;
use crate::fs::FlashFs;
use crate::mtd::{Device, Driven, Mtd, NandDriver};
use crate::ops;
use crate::profile::BoardProfile;
use crate::units::Ns;
use crate::vfs::{Tree, Vfs};

/// The preparation of a case whose files are in the root.
pub const NOTHING: &str = "flashbed-ops 1\nprepared\n";

/// Runs a preparation, and gives what is below each path.
pub fn files_left(
    board: &BoardProfile,
    kernel: &KernelProfile,
    fs: Mount,
    prepare: &str,
) -> Result<Tree, RunError> {
    let kernel = KernelProfile { root: None, overlay: false, ..kernel.clone() };
    let kernel = KernelProfile { volumes: Default::default(), ..kernel };
    let (policies, recorded) = (&Policies::default(), Recorded::default());
    let setting = Setting { board, kernel: &kernel, fs, policies, prepare, recorded };
    let mtd = Mtd::with_driver(Driven::new(new_chip(board, &ChipState::default()), board), board);
    parts::on_stack(mtd, fs, &kernel, Preparing(&setting))
}

/// Prepares on a stack.
struct Preparing<'a>(&'a Setting<'a>);

impl<D: NandDriver<Flash: Laboratory>> OnStack<D> for Preparing<'_> {
    type Output = Result<Tree, RunError>;

    fn file_system<S: FlashFs<Driver = D>>(self, made: Result<(S, Ns), FsError>) -> Self::Output {
        let Setting { board, kernel, .. } = *self.0;
        let (fs, now) = made.map_err(RunError::Format)?;
        let (costs, slots) = (board.software, ops::SLOTS_AT_FIRST);
        let vfs = Vfs::new(fs, kernel.readahead, costs, board.memory, kernel.kernel, slots);
        let mut machine = Machine::new(vfs, now, board);
        machine.prepare(self.0, &Unwatched::default())?;
        Ok(machine.into_stack().tree())
    }

    fn device<B: Device<Driver = D>>(self, _: B) -> Self::Output {
        Err(RunError::NotModelled("files of a device"))
    }
}
