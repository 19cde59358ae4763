//! A boot: UBI is attached, the volumes of a layout are mounted, files of its root are read. On MTD
//! volumes are partitions, read through mtdblock.
//!
//! agent/host/boot.c and agent/fs/layout.c do the same on a real kernel. The stack is made, mounted
//! and mounted again, as before a program; the boot is the mount after that.
//!
//! Left out: a program that runs before, power cuts, files of a root that is not squashfs.

use super::laboratory::Laboratory;
use super::machine::ROUND_NS;
use super::{new_chip, not_modelled, set_erases, ChipState, Policies, Recorded, RunError, Setting};
use crate::errno::{FsError, Result};
use crate::flash::{Counts, Flash};
use crate::fs::jffs2::Jffs2;
use crate::fs::ubifs::Ubifs;
use crate::fs::{Attribute, FlashFs, PAGE_BYTES};
use crate::mtd::{Driven, Mtd, NandDriver};
use crate::ops;
use crate::profile::BoardProfile;
use crate::run::{FsKind, KernelProfile, Mount};
use crate::sched::TIMER_SLACK;
use crate::squashfs::{Below, Squashfs, Stored, CALL_BYTES};
use crate::units::Ns;
use crate::vfs::Vfs;

/// A sector of a disk, which mtdblock reads by itself (do_blktrans_request).
const SECTOR_BYTES: u32 = 512;
/// The program's folder, whose mode the agent sets.
const TOP: &str = ".";

/// What is on a volume, and mounted.
#[derive(Clone, Debug)]
pub enum Holds {
    /// A squashfs with these metadata.
    Squashfs(Box<Stored>),
    /// The file system that the program writes to.
    Program,
    /// Nothing.
    Nothing,
}

/// What is booted.
#[derive(Clone, Debug)]
pub struct Boot<'a> {
    /// The board.
    pub board: &'a BoardProfile,
    /// The kernel, with the volumes and the layer.
    pub kernel: &'a KernelProfile,
    /// The chip.
    pub state: &'a ChipState,
    /// What the volumes hold, in their order.
    pub volumes: Vec<Holds>,
    /// The chip's first block of each volume on MTD; empty on UBI.
    pub partitions: Vec<u32>,
    /// The volume with the root, or the lower one of the layer.
    pub root: usize,
    /// Files that are read whole.
    pub files: &'a [String],
}

/// What a part of a boot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The attach of UBI.
    Attach,
    /// The mount of a volume.
    Volume(usize),
    /// The mount of the layer.
    Layer,
    /// A file: its size, or an errno.
    File(core::result::Result<u64, i64>),
}

/// A part of a boot.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it is.
    pub part: Part,
    /// How long it took.
    pub took: Ns,
    /// What the chip did.
    pub counts: Counts,
}

/// Boots.
pub fn boot(boot: &Boot<'_>) -> core::result::Result<Vec<Step>, RunError> {
    let policies = Policies::default();
    let setting = Setting {
        board: boot.board,
        kernel: boot.kernel,
        fs: Mount::from(if boot.is_on_mtd() { FsKind::Jffs2 } else { FsKind::Ubifs }),
        policies: &policies,
        prepare: "",
        recorded: Recorded::default(),
    };
    if boot.state.faults != Default::default() {
        return Err(RunError::NotModelled("a chip that fails in a boot"));
    }
    if let Some(refused) = not_modelled(&setting, boot.state, false) {
        return Err(RunError::NotModelled(refused));
    }
    let mut chip = new_chip(boot.board, boot.state);
    set_erases(&mut chip, &setting, boot.state);
    let mtd = Mtd::with_driver(Driven::new(chip, boot.board), boot.board);
    let (kernel, facts) = (boot.kernel, boot.kernel.kernel);
    if boot.is_on_mtd() {
        return booted(boot, Jffs2::format(mtd, Ns::ZERO, kernel.jffs2.clone(), facts));
    }
    booted(boot, Ubifs::format_volume(mtd, TIMER_SLACK, (kernel.ubifs, facts), &kernel.volumes))
}

fn booted<S: Bootable<Driver: NandDriver<Flash: Laboratory>>>(
    boot: &Boot<'_>,
    made: Result<(S, Ns)>,
) -> core::result::Result<Vec<Step>, RunError> {
    let made = made.and_then(|(fs, now)| Booting::new(boot, fs, now));
    let (mut machine, now) = made.map_err(RunError::Format)?;
    machine.run(boot, now).map_err(RunError::Interrupted)
}

impl Boot<'_> {
    fn is_on_mtd(&self) -> bool {
        !self.partitions.is_empty()
    }
}

/// The file system that the program writes to, and what it is on.
trait Bootable: FlashFs {
    /// Unmounts it, and detaches UBI.
    fn turn_off(&mut self, now: Ns) -> Result<Ns>;
    /// Attaches UBI; none without it.
    fn attach(&mut self, now: Ns) -> Option<Result<Ns>>;
    fn mount(&mut self, now: Ns) -> Result<Ns>;
    /// A bio of the block device of another volume.
    fn read_disk(&mut self, now: Ns, boot: &Boot<'_>, volume: usize, bio: (u64, u32))
        -> Result<Ns>;
}

impl<D: NandDriver<Flash: Laboratory>> Bootable for Ubifs<D> {
    fn turn_off(&mut self, now: Ns) -> Result<Ns> {
        let now = self.unmount(now)?;
        self.ubi_mut().detach(now)
    }

    fn attach(&mut self, now: Ns) -> Option<Result<Ns>> {
        Some(self.ubi_mut().attach_again(now))
    }

    fn mount(&mut self, now: Ns) -> Result<Ns> {
        Ubifs::mount(self, now)
    }

    fn read_disk(
        &mut self,
        now: Ns,
        _boot: &Boot<'_>,
        volume: usize,
        (at, bytes): (u64, u32),
    ) -> Result<Ns> {
        self.ubi_mut().read_volume(now, volume, at, bytes)
    }
}

impl<D: NandDriver<Flash: Laboratory>> Bootable for Jffs2<D> {
    fn turn_off(&mut self, now: Ns) -> Result<Ns> {
        Ok(now)
    }

    fn attach(&mut self, _now: Ns) -> Option<Result<Ns>> {
        None
    }

    fn mount(&mut self, now: Ns) -> Result<Ns> {
        self.remount(now)
    }

    fn read_disk(
        &mut self,
        mut now: Ns,
        boot: &Boot<'_>,
        volume: usize,
        (at, bytes): (u64, u32),
    ) -> Result<Ns> {
        for sector in (0..bytes).step_by(SECTOR_BYTES as usize) {
            let offset = at + u64::from(sector);
            let first = boot.partitions[volume];
            now = self.mtd_mut().read_partition(now, first, offset, SECTOR_BYTES)?;
        }
        Ok(now)
    }
}

/// The machine that boots.
struct Booting<S: FlashFs> {
    vfs: Vfs<S>,
    steps: Vec<Step>,
}

impl<S: Bootable<Driver: NandDriver<Flash: Laboratory>>> Booting<S> {
    /// The stack after its first mount, when the agent has slept.
    fn new(boot: &Boot<'_>, fs: S, now: Ns) -> Result<(Booting<S>, Ns)> {
        let (kernel, board) = (boot.kernel, boot.board);
        let (costs, slots) = (board.software, ops::SLOTS_AT_FIRST);
        let mut vfs = Vfs::new(fs, kernel.readahead, costs, board.memory, kernel.kernel, slots);
        let now = if kernel.overlay { vfs.new_layer(now, None)? } else { now };
        let round = Ns(now.0.next_multiple_of(ROUND_NS)) + TIMER_SLACK;
        let now = vfs.pause(now, round)?;
        // give_folder of agent/host/launch.c
        let (_, now) = vfs.set_attribute(now, TOP, Attribute::Mode)?;
        let mut machine = Booting { vfs, steps: Vec::new() };
        let (_, now) = machine.mount_again(boot, now)?;
        machine.steps.clear();
        Ok((machine, now))
    }

    fn counts(&self) -> Counts {
        self.vfs.fs().mtd().flash().counts()
    }

    /// Ends a part that began at `begun` with these counts.
    fn end(&mut self, part: Part, (begun, before): (Ns, Counts), now: Ns) {
        let counts = self.counts().since(&before);
        self.steps.push(Step { part, took: now - begun, counts });
    }

    /// Unmounts and detaches, then attaches and mounts all; returns the root, if it is squashfs.
    fn mount_again(&mut self, boot: &Boot<'_>, now: Ns) -> Result<(Option<Squashfs>, Ns)> {
        let now = self.vfs.unmount(now)?;
        let mut now = self.vfs.fs_mut().turn_off(now)?;
        let begun = (now, self.counts());
        if let Some(attached) = self.vfs.fs_mut().attach(now) {
            now = attached?;
            self.end(Part::Attach, begun, now);
        }
        let mut root = None;
        for (volume, holds) in boot.volumes.iter().enumerate() {
            let (begun, before) = (now, self.counts());
            match holds {
                Holds::Nothing => continue,
                Holds::Program => {
                    now = self.vfs.fs_mut().mount(now)?;
                    self.vfs.mounted(now);
                }
                Holds::Squashfs(stored) => {
                    let below = &mut OnVolume { vfs: &mut self.vfs, boot, volume };
                    let (stored, costs) = ((**stored).clone(), &boot.board.software);
                    let costs = costs.squashfs.as_ref();
                    let (mounted, later) = Squashfs::mount(stored, costs, below, now)?;
                    now = later;
                    if volume == boot.root {
                        root = Some(mounted);
                    }
                }
            }
            self.end(Part::Volume(volume), (begun, before), now);
        }
        if boot.kernel.overlay {
            let begun = (now, self.counts());
            now = self.vfs.mount_layer(now)?;
            self.end(Part::Layer, begun, now);
        }
        Ok((root, now))
    }

    fn run(&mut self, boot: &Boot<'_>, now: Ns) -> Result<Vec<Step>> {
        let (root, mut now) = self.mount_again(boot, now)?;
        if boot.files.is_empty() {
            return Ok(core::mem::take(&mut self.steps));
        }
        let Some(mut root) = root else {
            return Err(FsError::NotModelled("a boot from a root that is not squashfs"));
        };
        for path in boot.files {
            let begun = (now, self.counts());
            let below = &mut OnVolume { vfs: &mut self.vfs, boot, volume: boot.root };
            let (found, later) = root.walk(below, now, path)?;
            let (read, later) = match found {
                Ok(inode) => root.read_whole(below, later, inode, &boot.kernel.readahead)?,
                Err(errno) => (Err(errno), later),
            };
            now = later + calls_ns(boot, read.unwrap_or(0));
            self.end(Part::File(read), begun, now);
        }
        Ok(core::mem::take(&mut self.steps))
    }
}

/// The calls of the agent that reads a file, besides what squashfs does.
fn calls_ns(boot: &Boot<'_>, bytes: u64) -> Ns {
    let costs = &boot.board.software;
    let reads = bytes.div_ceil(CALL_BYTES) + 1; // the last one finds the end
    let layer = match boot.kernel.overlay {
        true => costs.overlay_open_ns + costs.overlay_close_ns + costs.overlay_read_ns * reads,
        false => Ns::ZERO,
    };
    let pages = costs.page_find_ns * bytes.div_ceil(PAGE_BYTES.into());
    let copied = Ns::from_ps(bytes, costs.copy_to_user_byte_ps);
    costs.open_ns + costs.close_ns + costs.syscall_ns * (reads + 2) + pages + copied + layer
}

/// A volume as squashfs has it.
struct OnVolume<'a, S: FlashFs> {
    vfs: &'a mut Vfs<S>,
    boot: &'a Boot<'a>,
    volume: usize,
}

impl<S: Bootable> Below for OnVolume<'_, S> {
    fn read(&mut self, now: Ns, at: u64, bytes: u32) -> Result<Ns> {
        self.vfs.fs_mut().read_disk(now, self.boot, self.volume, (at, bytes))
    }

    fn look_above(&mut self, now: Ns, name: &str) -> Result<Ns> {
        self.vfs.miss_layer(now, name)
    }
}
