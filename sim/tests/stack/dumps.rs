//! A run that begins with a dump of UBI: what its headers say, and a UBIFS made by hand.

use crate::support::{self, writes};
use sim::content::Contents;
use sim::flash::{Chip, Counts};
use sim::fs::ubifs::geometry::{index_node_bytes, Geometry, Superblock};
use sim::fs::ubifs::geometry::{INODE_BYTES, LOG_LEB, LPT_FANOUT, MASTER_LEB};
use sim::fs::ubifs::{
    Dumped, DumpedBranch, DumpedIndex, DumpedLpt, DumpedProperties, DumpedZnode, Key, Kind, Master,
    Node, Place, Stored, Ubifs, What,
};
use sim::fs::{FlashFs, FsError, Observed, ROOT};
use sim::mtd::{Mtd, RawNand};
use sim::profile::BoardProfile;
use sim::run::Stack;
use sim::ubi::{self, DumpedBlock, DumpedCounter, DumpedHolds, DumpedLeb, DumpedVolume, Ubi};
use sim::units::{BlockNo, Ns};
use sim::vfs::Vfs;
use std::collections::BTreeMap;

const BLOCKS: u32 = 400;
const ERASES: u32 = 9;
const TABLE_BYTES: u32 = 22_528;

fn mtd(board: &BoardProfile) -> Mtd<RawNand<Chip>> {
    let mut chip = Chip::new(board.chip);
    for block in 0..board.partition.blocks {
        chip.set_block_erases(BlockNo(block), 0, true);
    }
    Mtd::new(chip, board)
}

/// A block that has a LEB.
fn holding(leb: DumpedLeb, sequence: u64, programmed_bytes: u32) -> DumpedBlock {
    DumpedBlock {
        counter: DumpedCounter::Whole(ERASES),
        holds: DumpedHolds::Leb { leb, sequence, copied: None },
        programmed_bytes,
        is_bad: false,
    }
}

/// A device with one volume, of which so much is written in each LEB.
fn device(
    board: &BoardProfile,
    lebs: u32,
    autoresize: bool,
    written: &[(u32, u32)],
) -> ubi::Dumped {
    let mtd = mtd(board);
    let leb_start = mtd.block_bytes() - ubi::leb_bytes(&mtd);
    let table = |copy| holding(DumpedLeb::Layout(copy), 1, leb_start + TABLE_BYTES);
    let mut blocks = vec![table(0), table(1)];
    for &(leb, bytes) in written {
        let end = (leb_start + bytes).next_multiple_of(mtd.page_bytes());
        blocks.push(holding(DumpedLeb::Volume(0, leb), 1, end));
    }
    ubi::Dumped {
        block_bytes: mtd.block_bytes(),
        header_bytes: mtd.subpage_bytes(),
        leb_start,
        blocks,
        volumes: vec![DumpedVolume { lebs, autoresize }],
        program: 0,
    }
}

fn attached(board: &BoardProfile, dumped: &ubi::Dumped) -> Result<Ubi<RawNand<Chip>>, FsError> {
    let mut ubi = Ubi::put(mtd(board), support::facts(), dumped)?;
    ubi.attach_again(Ns(50_000))?;
    Ok(ubi)
}

#[test]
fn of_two_blocks_with_a_leb_the_newer_counts() {
    let board = writes::board(BLOCKS);
    let mut dumped = device(&board, 10, false, &[(0, 2048), (1, 2048)]);
    let mut newer = holding(DumpedLeb::Volume(0, 0), 7, dumped.leb_start + 4096);
    dumped.blocks.push(newer);
    let ubi = attached(&board, &dumped).expect("attaches");
    assert_eq!(
        (ubi.readable_bytes(0), ubi.readable_bytes(1), ubi.readable_bytes(2)),
        (4096, 2048, 0)
    );
    assert_eq!((ubi.lebs(), ubi.erases(1), ubi.is_mapped(2)), (10, Some(ERASES), false));
    // A copy that was not finished does not.
    newer.holds =
        DumpedHolds::Leb { leb: DumpedLeb::Volume(0, 0), sequence: 7, copied: Some((4096, false)) };
    *dumped.blocks.last_mut().expect("it") = newer;
    assert_eq!(attached(&board, &dumped).expect("attaches").readable_bytes(0), 2048);
}

#[test]
fn a_volume_that_grows_gets_all_that_is_left_and_the_table_is_written() {
    let board = writes::board(BLOCKS);
    let grown = attached(&board, &device(&board, 10, true, &[])).expect("attaches");
    let plain = attached(&board, &device(&board, 10, false, &[])).expect("attaches");
    let reserve = 8; // 20 of each 1,024 blocks, rounded up; two copies of the table and two blocks
    assert_eq!((grown.lebs(), plain.lebs()), (BLOCKS - reserve - 4, 10));
    let counts = |ubi: &Ubi<_>| ubi.mtd().counts();
    let header_and_table = u64::from(1 + TABLE_BYTES / 2048);
    assert_eq!(counts(&grown).programs - counts(&plain).programs, 2 * header_and_table);
}

#[test]
fn what_does_not_fit_this_chip_is_refused() {
    let board = writes::board(BLOCKS);
    let dumped = device(&board, 10, false, &[]);
    let refused = |dumped: ubi::Dumped| attached(&board, &dumped).expect_err("refused").to_string();
    let other = ubi::Dumped { block_bytes: 16_384, ..dumped.clone() };
    assert_eq!(refused(other), "the dump has blocks of 16384 bytes, this chip of 131072");
    let other = ubi::Dumped { leb_start: 4096, ..dumped.clone() };
    let elsewhere = "a UBI whose headers this chip has elsewhere is not modelled";
    assert_eq!(refused(other), elsewhere);
    let mut other = dumped.clone();
    other.blocks.resize(BLOCKS as usize + 1, dumped.blocks[0]);
    assert_eq!(refused(other), "the dump has 401 blocks, this partition 400");
}

/// The LPT of a main area of which the first LEBs have a node each, and where it ends.
fn new_lpt(g: &Geometry, nodes_bytes: [u32; 2]) -> (DumpedLpt, u32) {
    let (leb_bytes, page, lpt) = (g.leb_bytes, g.page_bytes, g.lpt);
    let properties = |slot: u32| {
        let used = nodes_bytes.get(slot as usize).map_or(0, |bytes| bytes.next_multiple_of(8));
        let written = used.next_multiple_of(page);
        DumpedProperties { free: leb_bytes - written, dirty: written - used, index: slot == 0 }
    };
    let (mut nodes, mut end, mut row) = (BTreeMap::new(), 0, lpt.pnodes);
    for level in 0..=lpt.height {
        let bytes = if level == 0 { lpt.pnode_bytes } else { lpt.nnode_bytes };
        for number in 0..row {
            nodes.insert((level, number), (lpt.first_leb, end));
            end += bytes;
        }
        row = row.div_ceil(LPT_FANOUT);
    }
    let lpt_end = (end + lpt.table_bytes).next_multiple_of(page);
    let mut areas = vec![(leb_bytes, 0); lpt.lebs as usize];
    areas[0] = (leb_bytes - lpt_end, lpt_end - end - lpt.table_bytes);
    let trees = DumpedLpt {
        properties: (0..g.main_lebs).map(properties).collect(),
        nodes,
        areas,
        table: (lpt.first_leb, end),
        head: (lpt.first_leb, lpt_end),
        scanned: g.main_first,
    };
    (trees, lpt_end)
}

/// A UBIFS as create_default_filesystem leaves it, and how much of each LEB is written.
fn new_ubifs(board: &BoardProfile, lebs: u32) -> (Dumped, Vec<(u32, u32)>) {
    let leb_bytes = ubi::leb_bytes(&mtd(board));
    let page = board.chip.page_bytes;
    let g = Geometry::new(leb_bytes, lebs, page).expect("it fits");
    let (main, lpt) = (g.main_first, g.lpt);
    let root = Place { leb: main, offset: 0, bytes: index_node_bytes(1) };
    let inode = Place { leb: main + 1, offset: 0, bytes: INODE_BYTES };
    let (trees, lpt_end) = new_lpt(&g, [root.bytes, inode.bytes]);
    let node = |place: Place| Node {
        offset: 0,
        bytes: place.bytes as u16,
        extra: 0,
        key: Key::inode(ROOT.0),
    };
    let what = What::Inode { size_bytes: 0, kind: Kind::Directory, links: 1, data_bytes: 0 };
    let branch = DumpedBranch { key: Key::inode(ROOT.0), place: inode, child: 0 };
    let dumped = Dumped {
        superblock: Superblock {
            leb_bytes,
            page_bytes: page,
            lebs,
            lebs_max: lebs,
            log_lebs: g.log_lebs,
            lpt_lebs: lpt.lebs,
            orphan_lebs: main - g.orphans_first(),
            bud_bytes_max: g.bud_bytes_max,
            pool_bytes: g.pool_bytes,
        },
        compressor: support::kernel("6.1").ubifs.compressor,
        fixes_space: false,
        master: Master {
            is_clean: true,
            offset: 0,
            commits: 0,
            highest_inode: 64,
            log_tail: LOG_LEB,
            index_head: (main, page),
            gc_leb: Some(main + 2),
        },
        lpt: trees,
        index: DumpedIndex { root, nodes: vec![DumpedZnode { level: 0, branches: vec![branch] }] },
        scans: BTreeMap::from([(root.leb, vec![node(root)]), (inode.leb, vec![node(inode)])]),
        ends: BTreeMap::new(),
        nodes: BTreeMap::from([((inode.leb, 0), Stored { sequence: 1, more_follow: false, what })]),
        buds: Vec::new(),
        log_head: (LOG_LEB, page),
    };
    let written = [(0, 4096), (MASTER_LEB, 512), (MASTER_LEB + 1, 512), (LOG_LEB, 32)];
    let more = [(lpt.first_leb, lpt_end), (main, root.bytes), (main + 1, inode.bytes)];
    (dumped, written.into_iter().chain(more).collect())
}

/// The counts of a remount and of a file afterwards.
fn costs(board: &BoardProfile, made: (Ubifs<RawNand<Chip>>, Ns)) -> Vec<Counts> {
    let (fs, now) = made;
    let kernel = support::kernel("6.1");
    let mut vfs = Vfs::new(fs, kernel.readahead, board.software, board.memory, kernel.kernel, 4);
    let mut now = vfs.pause(now, Ns(64_000_000_000)).expect("sleeps");
    let text = "flashbed-ops 1\nremount\nopen 0 a rw,create\nwrite 0 0 90000 1 0\nclose 0\nsync\n";
    let mut seen = Vec::new();
    for operation in sim::ops::operations(text).expect("valid") {
        let before = Stack::mtd(&vfs).counts();
        let (_, operation) = operation.expect("valid");
        (_, now) = Stack::call(&mut vfs, now, &operation).expect("works");
        now = vfs.pause(now, now + Ns(1_000_000_000)).expect("sleeps");
        seen.push(Stack::mtd(&vfs).counts().since(&before));
    }
    seen
}

fn lebs(board: &BoardProfile) -> u32 {
    board.partition.blocks - ubi::overhead_blocks(&mtd(board), &ubi::Volumes::default())
}

#[test]
fn a_new_ubifs_costs_the_same_from_a_dump_as_formatted_here() {
    let board = writes::board(BLOCKS);
    let (ubifs, written) = new_ubifs(&board, lebs(&board));
    let dumped = device(&board, lebs(&board), false, &written);
    let from_dump = Ubifs::mount_dumped(mtd(&board), Ns::ZERO, support::facts(), &dumped, &ubifs);
    let formatted = writes::ubifs(&board);
    assert_eq!(costs(&board, from_dump.expect("mounts")), costs(&board, formatted));
}

#[test]
fn a_ubifs_grows_to_its_volume_and_writes_its_superblock() {
    let board = writes::board(BLOCKS);
    let programs = |lebs_max| {
        let (mut ubifs, written) = new_ubifs(&board, 200);
        ubifs.superblock.lebs_max = lebs_max;
        let dumped = device(&board, lebs(&board), false, &written);
        let made = Ubifs::mount_dumped(mtd(&board), Ns::ZERO, support::facts(), &dumped, &ubifs);
        let (fs, now) = made.expect("mounts");
        let free = fs.free_bytes().expect("known");
        let kernel = support::kernel("6.1");
        let mut vfs =
            Vfs::new(fs, kernel.readahead, board.software, board.memory, kernel.kernel, 4);
        vfs.pause(now, Ns(64_000_000_000)).expect("sleeps");
        (Stack::mtd(&vfs).counts(), free)
    };
    let ((same, less), (grown, more)) = (programs(200), programs(300));
    let leb = u64::from(ubi::leb_bytes(&mtd(&board)));
    assert!(more > less + 80 * leb, "{less} {more}");
    // Header and two pages; then the old block's erase, and its header.
    assert_eq!((grown.programs - same.programs, grown.erases - same.erases), (4, 1));
}

#[test]
fn files_of_a_dump_are_found_with_their_bytes() {
    let board = writes::board(BLOCKS);
    let (mut ubifs, written) = new_ubifs(&board, lebs(&board));
    let leb = ubifs.index.nodes[0].branches[0].place.leb;
    let inode = |links| What::Inode { size_bytes: 5, kind: Kind::File, links, data_bytes: 0 };
    let name = What::Entry { name: "a".to_owned(), target: Some(65) };
    let data = What::Data(Contents::of_dump(1, 0, b"12345".to_vec()));
    let mut offset = 160;
    let keys = [Key::dent(ROOT.0, "a"), Key::inode(65), Key::data(65, 0)];
    for (key, (bytes, what)) in keys.into_iter().zip([(58, name), (160, inode(1)), (53, data)]) {
        let child = if key.is_data() { 5 } else { 0 };
        let place = Place { leb, offset, bytes };
        ubifs.index.nodes[0].branches.push(DumpedBranch { key, place, child });
        let stored = Stored { sequence: u64::from(offset), more_follow: false, what };
        ubifs.nodes.insert((leb, offset), stored);
        let node = Node { offset, bytes: bytes as u16, extra: child as u16, key };
        ubifs.scans.get_mut(&leb).expect("it").push(node);
        offset += bytes.next_multiple_of(8);
        ubifs.lpt.properties[1].dirty -= bytes.next_multiple_of(8);
    }
    ubifs.index.root.bytes = index_node_bytes(4);
    ubifs.lpt.properties[0].dirty -= 20 * 3 + 4;
    let dumped = device(&board, lebs(&board), false, &written);
    let made = Ubifs::mount_dumped(mtd(&board), Ns::ZERO, support::facts(), &dumped, &ubifs);
    let (mut fs, _) = made.expect("mounts");
    let found = fs.take_found();
    let [file] = &found[..] else { panic!("{found:?}") };
    let mut bytes = [0; 5];
    file.contents.fill(0, &mut bytes);
    assert_eq!((&*file.name, file.size_bytes, &bytes), ("a", 5, b"12345"));
    assert!(fs.take_found().is_empty() && fs.inodes_in_memory() == 0);
}
