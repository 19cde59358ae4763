//! Power cuts of a flash translation layer, one after the other on the same disk.

use crate::support;
use sim::block::{BlockFile, Ftl, FtlOptions, SECTOR_BYTES};
use sim::errno::FsError;
use sim::flash::{Chip, PowerCut};
use sim::mtd::{Mtd, Partition, RawNand};
use sim::ops::{operations, Operation};
use sim::units::Ns;

type Disk = Partition<BlockFile<Ftl<RawNand<PowerCut<Chip>>>>>;

const CUTS: u32 = 400;

fn disk(map_pages: u16) -> Disk {
    let board = support::board("emulated-small");
    let mut mtd = Mtd::new(PowerCut::new(Chip::new(board.chip)), &board);
    mtd.expect_power_cuts();
    Partition::new(BlockFile::new(Ftl::new(mtd, FtlOptions { spare_permille: 350, map_pages })))
}

/// The seed of what wrote each sector; 0 for zeros.
fn sectors(disk: &Disk) -> Vec<u64> {
    let runs = disk.sources().into_iter();
    runs.flat_map(|(_, length, source)| {
        let count = length / u64::from(SECTOR_BYTES);
        (0..count).map(move |_| source.map_or(0, |source| source.seed))
    })
    .collect()
}

fn run(disk: &mut Disk, now: Ns, line: &str) -> Result<Ns, FsError> {
    let opened = if line.starts_with("open") { "" } else { "open 0 partition rw,direct\n" };
    let text = format!("flashbed-ops 1\n{opened}{line}\n");
    let operation = operations(&text).expect("a file").last().expect("a line").expect("valid").1;
    let (result, later) = disk.call(now, &operation)?;
    assert!(result >= 0, "{operation:?}: {result}");
    Ok(later)
}

/// What returned is there after each cut; of the write in which the power failed each sector is old
/// or new. Cuts come within a collection, and within what a mount does after one.
fn survives(map_pages: u16) {
    let mut disk = disk(map_pages);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let (mut now, mut seed) = (Ns::ZERO, 0);
    let mut held = sectors(&disk);
    for _ in 0..CUTS {
        disk.mtd_mut().flash_mut().cut_power_in(1 + draw(60));
        now = run(&mut disk, now, "open 0 partition rw,direct").expect("no change of the chip");
        let (at, first, count) = loop {
            seed += 1;
            let count = 1 + draw(12);
            let first = draw(held.len() as u64 - count);
            let line = format!("write 0 {} {} {seed} 0", first * 512, count * 512);
            match run(&mut disk, now, &line) {
                Ok(later) => now = later,
                Err(FsError::PowerLost(at)) => break (at, first as usize, count as usize),
                Err(error) => panic!("{error:?}"),
            }
            held[first as usize..(first + count) as usize].fill(seed);
        };
        now = power_up(&mut disk, at, draw(3) == 0);
        let found = sectors(&disk);
        for (sector, (&is, &was)) in found.iter().zip(&held).enumerate() {
            let is_new = (first..first + count).contains(&sector) && is == seed;
            assert!(is == was || is_new, "sector {sector}: {is}, and {was} was written");
        }
        held = found;
    }
}

/// Attaches the disk after a cut, perhaps with another cut in that.
fn power_up(disk: &mut Disk, at: Ns, again: bool) -> Ns {
    let torn = disk.mtd_mut().flash_mut().power_on();
    if again {
        disk.mtd_mut().flash_mut().cut_power_in(1);
    }
    match disk.power_up(at, torn).expect("modelled") {
        Ok(now) => now,
        Err(FsError::PowerLost(at)) => power_up(disk, at, false),
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn what_a_disk_acknowledged_survives_one_cut_after_the_other() {
    survives(0);
}

#[test]
fn so_it_does_with_its_map_on_the_flash() {
    survives(2);
}

#[test]
fn attaching_changes_nothing_but_the_open_ends() {
    let mut disk = disk(0);
    let mut now = run(&mut disk, Ns::ZERO, "open 0 partition rw,direct").expect("powered");
    for seed in 1..2000_u64 {
        let at = seed * 7919 % 700 * 2048;
        now = run(&mut disk, now, &format!("write 0 {at} 2048 {seed} 0")).expect("powered");
    }
    let before = sectors(&disk);
    now = run(&mut disk, now, "close 0").expect("powered");
    disk.call(now, &Operation::Remount).expect("modelled");
    assert_eq!(sectors(&disk), before);
}
