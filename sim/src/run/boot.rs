//! A boot: UBI is attached, the volumes of a layout are mounted, files of its root are read. On MTD
//! volumes are partitions, read through mtdblock.
//!
//! agent/host/boot.c and agent/fs/layout.c do the same on a real kernel. The stack is made, mounted
//! and mounted again, as before a program; the boot is the mount after that. A dump is mounted as
//! it is, for the first time.
//!
//! Left out: a program that runs before, power cuts, and where the root is not squashfs, other
//! volumes than the program's.

use super::laboratory::Laboratory;
use super::machine::ROUND_NS;
use super::{
    new_chip, not_modelled, set_erases, with_dump, ChipState, Dump, Policies, Recorded, RunError,
    Setting,
};
use crate::errno::{FsError, Result};
use crate::flash::{Counts, Flash};
use crate::fs::jffs2::Jffs2;
use crate::fs::ubifs::Ubifs;
use crate::fs::{Attribute, FlashFs, PAGE_BYTES};
use crate::mtd::{Driven, Mtd, NandDriver};
use crate::ops::{self, path_text, Flags};
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
    /// The read-ahead window of files of the program's volume.
    pub read_ahead_kib: u32,
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
    File(Read),
}

/// The size of a file that was read, or an errno.
pub type Read = core::result::Result<u64, i64>;

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
    let state = &with_dump(&setting, boot.state);
    let mut chip = new_chip(boot.board, state);
    set_erases(&mut chip, &setting, state);
    let mtd = Mtd::with_driver(Driven::new(chip, boot.board), boot.board);
    let (kernel, facts) = (boot.kernel, boot.kernel.kernel);
    if let Some(dump) = &kernel.dump {
        return dumped(boot, mtd, dump);
    }
    if boot.is_on_mtd() {
        return booted(boot, Jffs2::format(mtd, Ns::ZERO, kernel.jffs2.clone(), facts));
    }
    booted(boot, Ubifs::format_volume(mtd, TIMER_SLACK, (kernel.ubifs, facts), &kernel.volumes))
}

/// Mounts a dump, and reads files of it.
fn dumped<D: NandDriver<Flash: Laboratory>>(
    boot: &Boot<'_>,
    mtd: Mtd<D>,
    dump: &Dump,
) -> core::result::Result<Vec<Step>, RunError> {
    let (kernel, facts) = (boot.kernel, boot.kernel.kernel);
    let booted = match dump {
        Dump::Jffs2(dumped) => {
            Jffs2::put(mtd, (kernel.jffs2.clone(), facts), dumped).and_then(|fs| {
                let mut steps = Steps::default();
                let begun = steps.begin(TIMER_SLACK, fs.mtd());
                let (fs, now) = fs.mount_found(TIMER_SLACK)?;
                steps.end(Part::Volume(0), begun, (now, fs.mtd()));
                Booting::mounted(boot, fs, steps).run_files(boot, None, now)
            })
        }
        Dump::Ubifs(dumped) => Ubifs::put(mtd, facts, &dumped.0, &dumped.1).and_then(|mut fs| {
            let mut steps = Steps::default();
            let begun = steps.begin(TIMER_SLACK, fs.mtd());
            let now = fs.attach_found(TIMER_SLACK)?;
            steps.end(Part::Attach, begun, (now, fs.mtd()));
            let begun = steps.begin(now, fs.mtd());
            let now = fs.mount_found(now)?;
            steps.end(Part::Volume(0), begun, (now, fs.mtd()));
            Booting::mounted(boot, fs, steps).run_files(boot, None, now)
        }),
    };
    booted.map_err(RunError::Format)
}

fn booted<S: Bootable<Driver: NandDriver<Flash: Laboratory>>>(
    boot: &Boot<'_>,
    made: Result<(S, Ns)>,
) -> core::result::Result<Vec<Step>, RunError> {
    let made = made.and_then(|(fs, now)| Booting::new(boot, fs, now));
    let (machine, now) = made.map_err(RunError::Format)?;
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

/// The parts so far.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn begin<D: NandDriver>(&self, now: Ns, mtd: &Mtd<D>) -> (Ns, Counts) {
        (now, mtd.flash().counts())
    }

    /// Ends a part that began at a time with these counts.
    fn end<D: NandDriver>(
        &mut self,
        part: Part,
        (begun, before): (Ns, Counts),
        (now, mtd): (Ns, &Mtd<D>),
    ) {
        let counts = mtd.flash().counts().since(&before);
        self.0.push(Step { part, took: now - begun, counts });
    }
}

/// The machine that boots.
struct Booting<S: FlashFs> {
    vfs: Vfs<S>,
    steps: Steps,
}

impl<S: Bootable<Driver: NandDriver<Flash: Laboratory>>> Booting<S> {
    /// The machine when these parts are over.
    fn mounted(boot: &Boot<'_>, fs: S, steps: Steps) -> Booting<S> {
        let (kernel, board) = (boot.kernel, boot.board);
        let (costs, slots) = (board.software, ops::SLOTS_AT_FIRST);
        let mut vfs = Vfs::new(fs, kernel.readahead, costs, board.memory, kernel.kernel, slots);
        vfs.set_read_ahead_kib(boot.read_ahead_kib);
        Booting { vfs, steps }
    }

    /// The stack after its first mount, when the agent has slept.
    fn new(boot: &Boot<'_>, fs: S, now: Ns) -> Result<(Booting<S>, Ns)> {
        let Booting { mut vfs, .. } = Booting::mounted(boot, fs, Steps::default());
        let now = if boot.kernel.overlay { vfs.new_layer(now, None)? } else { now };
        let round = Ns(now.0.next_multiple_of(ROUND_NS)) + TIMER_SLACK;
        let now = vfs.pause(now, round)?;
        // give_folder of agent/host/launch.c
        let (_, now) = vfs.set_attribute(now, TOP, Attribute::Mode)?;
        let mut machine = Booting { vfs, steps: Steps::default() };
        let (_, now) = machine.mount_again(boot, now)?;
        machine.steps = Steps::default();
        Ok((machine, now))
    }

    fn begin(&self, now: Ns) -> (Ns, Counts) {
        self.steps.begin(now, self.vfs.fs().mtd())
    }

    fn end(&mut self, part: Part, begun: (Ns, Counts), now: Ns) {
        self.steps.end(part, begun, (now, self.vfs.fs().mtd()));
    }

    /// Unmounts and detaches, then attaches and mounts all; returns the root, if it is squashfs.
    fn mount_again(&mut self, boot: &Boot<'_>, now: Ns) -> Result<(Option<Squashfs>, Ns)> {
        let now = self.vfs.unmount(now)?;
        let mut now = self.vfs.fs_mut().turn_off(now)?;
        let begun = self.begin(now);
        if let Some(attached) = self.vfs.fs_mut().attach(now) {
            now = attached?;
            self.end(Part::Attach, begun, now);
        }
        let mut root = None;
        for (volume, holds) in boot.volumes.iter().enumerate() {
            let begun = self.begin(now);
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
            self.end(Part::Volume(volume), begun, now);
        }
        if boot.kernel.overlay {
            let begun = self.begin(now);
            now = self.vfs.mount_layer(now)?;
            self.end(Part::Layer, begun, now);
        }
        Ok((root, now))
    }

    fn run(mut self, boot: &Boot<'_>, now: Ns) -> Result<Vec<Step>> {
        let (root, now) = self.mount_again(boot, now)?;
        self.run_files(boot, root, now)
    }

    /// Reads the files: of the squashfs, if the root is one.
    fn run_files(
        mut self,
        boot: &Boot<'_>,
        mut root: Option<Squashfs>,
        mut now: Ns,
    ) -> Result<Vec<Step>> {
        let is_own = matches!(boot.volumes[boot.root], Holds::Program);
        for path in boot.files {
            let begun = self.begin(now);
            let (read, later) = match &mut root {
                Some(root) => self.read_squashfs(boot, root, path, now)?,
                None if is_own => self.read_own(path, now)?,
                None => return Err(FsError::NotModelled("a boot from another root than squashfs")),
            };
            now = later;
            self.end(Part::File(read), begun, now);
        }
        Ok(self.steps.0)
    }

    fn read_squashfs(
        &mut self,
        boot: &Boot<'_>,
        root: &mut Squashfs,
        path: &str,
        now: Ns,
    ) -> Result<(Read, Ns)> {
        let below = &mut OnVolume { vfs: &mut self.vfs, boot, volume: boot.root };
        let (found, later) = root.walk(below, now, path)?;
        let (read, later) = match found {
            Ok(inode) => root.read_whole(below, later, inode, &boot.kernel.readahead)?,
            Err(errno) => (Err(errno), later),
        };
        Ok((read, later + calls_ns(boot, read.unwrap_or(0))))
    }

    /// A file of the file system that the program writes to.
    fn read_own(&mut self, path: &str, now: Ns) -> Result<(Read, Ns)> {
        let flags = Flags { read: true, ..Flags::default() };
        let (opened, mut now) = self.vfs.open(now, 0, &path_text(path.as_bytes()), flags)?;
        if opened < 0 {
            return Ok((Err(opened), now));
        }
        let mut bytes = 0;
        loop {
            let (got, later) = self.vfs.read(now, 0, bytes, CALL_BYTES)?;
            now = later;
            match u64::try_from(got) {
                Ok(0) => return Ok((Ok(bytes), self.vfs.close(now, 0)?.1)),
                Ok(more) => bytes += more,
                Err(_) => return Ok((Err(got), self.vfs.close(now, 0)?.1)),
            }
        }
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
