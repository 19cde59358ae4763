//! JFFS2: a log of nodes.
//!
//! Mirrors fs/jffs2 of Linux 6.1; 2.6.37 differs in what [`Options`] names. A page write becomes a
//! data node at once (jffs2_write_end); a page read fetches every fragment's node whole, header
//! first and then data (jffs2_read_dnode), through the NAND driver's page buffer where there is
//! one. The modules carry the names of the kernel's files.
//!
//! Left out so far: compression (data must be incompressible), unlink, rename, truncate, mount
//! scan, collection for want of space, the collector's thread. What is left out is refused, not
//! guessed. docs/jffs2.md has the whole list.
//!
//! Invariants:
//! 1. Every byte of a file below its size is in a fragment or in a hole.
//! 2. Nodes are written only into space that was reserved, at the end of `next_block`.

mod gc;
mod layout;
mod nodemgmt;
mod nodes;
mod wbuf;

use crate::chip::Flash;
use crate::fs::{
    FlashFs, Found, FsError, Ino, Name, PageCache, PageWrite, Result, PAGE_BYTES, ROOT,
};
use crate::mtd::Mtd;
use crate::units::Ns;
use layout::{pad, CLEANMARKER_BYTES, RAW_DIRENT_BYTES, RAW_INODE_BYTES};
use nodemgmt::{Block, BlockLists, Summary, MIN_DATA_NODE_BYTES};
use nodes::{Fragment, Fragments, Node, NodeId, Nodes, Role, State};
use serde::Deserialize;
use std::collections::VecDeque;
use std::ops::Range;
use wbuf::WriteBuffer;

/// JFFS2 needs this many blocks to accept a single write (jffs2_calc_trigger_levels: five for
/// its collector, and one to write).
const BLOCKS_MIN: u32 = 5;
/// JFFS2_MIN_NODE_HEADER: what jffs2_get_inode_nodes reads of a node before it knows its kind.
const MIN_HEADER_BYTES: u32 = RAW_DIRENT_BYTES;

/// What differs between kernels and their configurations.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// CONFIG_JFFS2_SUMMARY: each full block ends with a list of what is in it.
    pub summary: bool,
}

/// What is known of an inode.
#[derive(Clone, Debug)]
struct File {
    in_memory: bool,
    size_bytes: u64,
    metadata: Option<NodeId>,
    dirent: Option<NodeId>,
    /// The node with the highest version (`rii->latest_ref`): copies keep their version.
    latest: Option<NodeId>,
    fragments: Fragments,
}

/// A mounted JFFS2.
#[derive(Clone, Debug)]
pub struct Jffs2<F> {
    mtd: Mtd<F>,
    options: Options,
    block_bytes: u32,
    reserved_blocks_write: u32,
    blocks: Vec<Block>,
    lists: BlockLists,
    next_block: Option<u32>,
    gc_block: Option<gc::GcBlock>,
    summary_bytes: u32,
    /// Whether the block being written is going to end with a summary.
    has_summary: bool,
    wbuf: WriteBuffer,
    nodes: Nodes,
    files: Vec<File>,
}

impl<F: Flash> Jffs2<F> {
    /// Formats the erased partition (a cleanmarker in the OOB of every block, as flash_erase -j
    /// writes them) and mounts it.
    pub fn format(mut mtd: Mtd<F>, mut now: Ns, options: Options) -> Result<(Self, Ns)> {
        let block_bytes = mtd.block_bytes();
        if mtd.blocks() < BLOCKS_MIN {
            let message = format!(
                "jffs2 needs a partition of at least {BLOCKS_MIN} blocks, this one has {}",
                mtd.blocks()
            );
            return Err(FsError::too_small(message));
        }
        for block in 0..mtd.blocks() {
            let offset = u64::from(block) * u64::from(block_bytes);
            now = mtd.write_oob(now, offset, CLEANMARKER_BYTES)?;
        }
        let blocks = mtd.blocks();
        let fs = Jffs2 {
            options,
            block_bytes,
            reserved_blocks_write: Self::reserved_blocks(mtd.size_bytes(), blocks, block_bytes),
            blocks: vec![Block::erased(block_bytes); blocks as usize],
            lists: BlockLists { free: free_list_of_fresh_mount(blocks), ..BlockLists::default() },
            next_block: None,
            gc_block: None,
            summary_bytes: 0,
            has_summary: options.summary,
            wbuf: WriteBuffer::default(),
            nodes: Nodes::default(),
            files: vec![File::new()],
            mtd,
        };
        Ok((fs, now))
    }

    fn file(&self, ino: Ino) -> &File {
        &self.files[ino.0 as usize - 1]
    }

    fn file_mut(&mut self, ino: Ino) -> &mut File {
        &mut self.files[ino.0 as usize - 1]
    }

    /// jffs2_flash_read: always from flash; what is in the write buffer is laid over it afterwards.
    #[inline]
    fn flash_read(&mut self, now: Ns, offset: u32, bytes: u32) -> Result<Ns> {
        Ok(self.mtd.read(now, u64::from(offset), bytes)?)
    }

    /// jffs2_read_inode_range: the node of every fragment, each as often as it has fragments there.
    #[inline]
    fn read_range(&mut self, mut now: Ns, ino: Ino, offset: u32, bytes: u32) -> Result<Ns> {
        let fragments = &self.files[ino.0 as usize - 1].fragments;
        for fragment in fragments.overlapping(offset, offset + bytes) {
            let node = self.nodes.get(fragment.node);
            let at = u64::from(node.flash_offset);
            let costs = *self.mtd.costs();
            now = self.mtd.read(now + costs.jffs2_node_ns, at, RAW_INODE_BYTES)?;
            if let Role::Data { data_bytes } = node.role {
                now = self.mtd.read(now, at + u64::from(RAW_INODE_BYTES), data_bytes)?;
                now += Ns::from_ps(u64::from(data_bytes), costs.jffs2_byte_ps);
            }
        }
        Ok(now)
    }

    /// Writes one node into reserved space: header and payload as the kernel's two vectors.
    fn write_node(
        &mut self,
        now: Ns,
        ino: Ino,
        role: Role,
        state: State,
        writer: Option<Ino>,
    ) -> Result<(NodeId, Ns)> {
        let (parts, summary) = match role {
            Role::Data { data_bytes } => ([RAW_INODE_BYTES, data_bytes], Summary::Inode),
            Role::Hole | Role::Metadata => ([RAW_INODE_BYTES, 0], Summary::Inode),
            Role::Dirent { name_bytes } => {
                ([RAW_DIRENT_BYTES, name_bytes], Summary::Dirent(name_bytes))
            }
            Role::NoInode => unreachable!("summaries and padding are written elsewhere"),
        };
        let to = self.write_offset(self.next_block.expect("space was reserved"));
        let now = self.flash_write(now, to, &parts, writer)?;
        self.add_node(now, pad(parts.iter().sum()), ino, role, state, summary)
    }

    /// jffs2_write_inode_range: one node for what is left of the page, or as much as the block
    /// still takes. Garbage collection, for which `writer` is none, is content with the bytes up to
    /// `enough`; elsewhere that is the end.
    fn write_range(
        &mut self,
        mut now: Ns,
        ino: Ino,
        range: Range<u32>,
        enough: u32,
        writer: Option<Ino>,
    ) -> Result<Ns> {
        let mut offset = range.start;
        while offset < enough {
            let (room, later) = match writer {
                Some(_) => self.reserve_space(now, MIN_DATA_NODE_BYTES, Summary::Inode)?,
                None => self.reserve_space_gc(now, MIN_DATA_NODE_BYTES, Summary::Inode)?,
            };
            let data_bytes = (range.end - offset).min(room - RAW_INODE_BYTES);
            let end = offset + data_bytes;
            let size = self.file(ino).size_bytes.max(u64::from(end));
            let costs = self.mtd.costs();
            let spent = Ns::from_ps(u64::from(data_bytes), costs.jffs2_write_byte_ps);
            let spent = costs.jffs2_write_node_ns + spent;
            let role = Role::Data { data_bytes };
            now = self.write_piece(later + spent, ino, role, offset..end, size, writer)?;
            offset = end;
        }
        Ok(now)
    }

    /// jffs2_write_dnode into reserved space and jffs2_add_full_dnode_to_inode: `range` of the
    /// file, which then has `size` bytes, comes from a new node.
    fn write_piece(
        &mut self,
        now: Ns,
        ino: Ino,
        role: Role,
        range: Range<u32>,
        size: u64,
        writer: Option<Ino>,
    ) -> Result<Ns> {
        let bytes = range.end - range.start;
        let to_the_end = range.start % PAGE_BYTES == 0 && u64::from(range.end) == size;
        let whole = bytes >= PAGE_BYTES || to_the_end;
        let state = if whole { State::Pristine } else { State::Normal };
        let (node, now) = self.write_node(now, ino, role, state, writer)?;
        self.file_mut(ino).size_bytes = size;
        self.add_fragment(ino, Fragment { offset: range.start, bytes, node });
        Ok(now)
    }

    /// jffs2_add_full_dnode_to_inode: nodes that are covered whole become obsolete, and those that
    /// have a page in common may not be copied as they are.
    fn add_fragment(&mut self, ino: Ino, fragment: Fragment) {
        self.nodes.get_mut(fragment.node).fragments = 1;
        let file = &mut self.files[ino.0 as usize - 1];
        file.latest = Some(fragment.node);
        let changes = file.fragments.insert(fragment);
        for id in file.fragments.sharing_pages_with(fragment) {
            self.nodes.get_mut(id).state = State::Normal;
        }
        for (node, change) in changes {
            let entry = self.nodes.get_mut(node);
            entry.fragments = entry.fragments.checked_add_signed(change).expect("counted");
            if entry.fragments == 0 {
                self.mark_obsolete(node);
            } else {
                entry.state = State::Normal;
            }
        }
        if let Some(metadata) = self.file_mut(ino).metadata.take() {
            self.mark_obsolete(metadata);
        }
    }

    /// Zeroes of a hole that are written as data would be compressed, which is not modelled; the
    /// three bytes at most that only round a write down to a multiple of four are not.
    fn refuse_zeroes(&self, ino: Ino, range: Range<u32>) -> Result<()> {
        let fragments = self.file(ino).fragments.overlapping(range.start, range.end);
        let hole = fragments.iter().any(|f| self.nodes.get(f.node).role == Role::Hole);
        if hole && range.end - range.start > 3 {
            return Err(FsError::NotModelled("jffs2 compressing the zeroes of a hole"));
        }
        Ok(())
    }

    /// Whatever refers to a node that was moved refers to its copy.
    fn replace_reference(&mut self, from: NodeId, to: NodeId) {
        let (ino, fragments) = (self.nodes.get(from).ino, self.nodes.get(from).fragments);
        self.nodes.get_mut(to).fragments = fragments;
        for latest in self.files.iter_mut().filter_map(|file| file.latest.as_mut()) {
            if *latest == from {
                *latest = to;
            }
        }
        match self.nodes.get(from).role {
            Role::Data { .. } | Role::Hole => self.file_mut(ino).fragments.move_node(from, to),
            Role::Metadata => self.file_mut(ino).metadata = Some(to),
            Role::Dirent { .. } => {
                let owner = self.files.iter_mut().find(|f| f.dirent == Some(from));
                owner.expect("a good dirent names a file").dirent = Some(to);
            }
            Role::NoInode => {}
        }
    }

    /// A new inode: its node without data, then its directory entry (jffs2_create, jffs2_mkdir).
    fn make(&mut self, now: Ns, directory: Ino, name: &str) -> Result<(Ino, Ns)> {
        let ino = Ino(u32::try_from(self.files.len() + 1).expect("fewer than 2^32 inodes"));
        self.files.push(File::new());
        let (_, now) = self.reserve_space(now, RAW_INODE_BYTES, Summary::Inode)?;
        let (id, now) = self.write_node(now, ino, Role::Metadata, State::Pristine, Some(ino))?;
        self.file_mut(ino).metadata = Some(id);
        self.file_mut(ino).latest = Some(id);
        let name_bytes = u32::try_from(name.len()).expect("a name of at most 255 bytes");
        let summary = Summary::Dirent(name_bytes);
        let (_, now) = self.reserve_space(now, RAW_DIRENT_BYTES + name_bytes, summary)?;
        let role = Role::Dirent { name_bytes };
        let (id, now) = self.write_node(now, directory, role, State::Pristine, Some(directory))?;
        self.file_mut(ino).dirent = Some(id);
        Ok((ino, now))
    }

    /// jffs2_iget: reads an inode that is not in memory.
    fn bring_in(&mut self, now: Ns, ino: Ino) -> Result<Ns> {
        if std::mem::replace(&mut self.file_mut(ino).in_memory, true) {
            return Ok(now);
        }
        self.read_inode(now + self.mtd.costs().jffs2_inode_ns, ino)
    }

    /// The good nodes of an inode, the latest first: its data or metadata, and its entries if it is
    /// a directory.
    fn nodes_of(&self, ino: Ino) -> Vec<NodeId> {
        let file = self.file(ino);
        let entries = self.files.iter().filter_map(|file| file.dirent);
        let entries = entries.filter(|&id| self.nodes.get(id).ino == ino);
        let fragments = file.fragments.iter().map(|fragment| fragment.node);
        let mut nodes: Vec<NodeId> = fragments.chain(file.metadata).chain(entries).collect();
        nodes.sort_unstable_by(|a, b| b.cmp(a));
        nodes.dedup();
        nodes
    }

    /// jffs2_get_inode_nodes: every node from its start to the end of a flash page, a name that
    /// goes on there as well; then jffs2_do_read_inode_internal reads the head of the latest version.
    fn read_inode(&mut self, mut now: Ns, ino: Ino) -> Result<Ns> {
        let page_bytes = self.mtd.page_bytes();
        for id in self.nodes_of(ino) {
            let Node { flash_offset: at, role, .. } = *self.nodes.get(id);
            let read = (at + MIN_HEADER_BYTES).next_multiple_of(page_bytes) - at;
            now = self.flash_read(now + self.mtd.costs().jffs2_node_ns, at, read)?;
            let more = match role {
                Role::Dirent { name_bytes } => (RAW_DIRENT_BYTES + name_bytes).saturating_sub(read),
                _ if read < RAW_INODE_BYTES => {
                    (at + RAW_INODE_BYTES).next_multiple_of(page_bytes) - at - read
                }
                _ => 0,
            };
            if more > 0 {
                now = self.flash_read(now, at + read, more)?;
            }
        }
        self.build_fragments(ino);
        match self.file(ino).latest {
            Some(id) => self.flash_read(now, self.nodes.get(id).flash_offset, RAW_INODE_BYTES),
            None => Ok(now),
        }
    }

    /// jffs2_build_inode_fragtree adds nodes from the end of the file down, each but the first into the
    /// hole that is left before the one above, which marks it as partly covered unless it begins
    /// the file; jffs2_truncate_fragtree then lets a last fragment that begins its page be copied.
    fn build_fragments(&mut self, ino: Ino) {
        let fragments = &self.files[ino.0 as usize - 1].fragments;
        for fragment in fragments.inner() {
            self.nodes.get_mut(fragment.node).state = State::Normal;
        }
        if let Some(last) =
            fragments.iter().next_back().filter(|last| last.offset % PAGE_BYTES == 0)
        {
            self.nodes.get_mut(last.node).state = State::Pristine;
        }
    }
}

/// The scan puts every empty block at the head of the free list, and jffs2_rotate_lists moves the
/// list's head past one entry when it is asked to rotate by none.
fn free_list_of_fresh_mount(blocks: u32) -> VecDeque<u32> {
    let mut list: VecDeque<u32> = (0..blocks).rev().collect();
    list.rotate_left(1);
    list
}

impl File {
    fn new() -> File {
        File {
            in_memory: true,
            size_bytes: 0,
            metadata: None,
            dirent: None,
            latest: None,
            fragments: Fragments::default(),
        }
    }
}

impl<F: Flash> FlashFs for Jffs2<F> {
    type Flash = F;

    fn create(&mut self, now: Ns, at: Name<'_>, _pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make(now, at.directory, at.name)
    }

    fn mkdir(&mut self, now: Ns, at: Name<'_>, _pages: &mut dyn PageCache) -> Result<(Ino, Ns)> {
        self.make(now, at.directory, at.name)
    }

    /// jffs2_lookup: entries are in memory with their directory.
    fn lookup(&mut self, now: Ns, _at: Name<'_>, found: Option<Ino>) -> Result<Ns> {
        found.map_or(Ok(now), |ino| self.bring_in(now, ino))
    }

    #[inline]
    fn read_page(&mut self, now: Ns, ino: Ino, page: u32) -> Result<Ns> {
        self.read_range(now, ino, page * PAGE_BYTES, PAGE_BYTES)
    }

    fn unlink(&mut self, _: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("jffs2's unlink"))
    }

    fn rmdir(&mut self, _: Ns, _: Name<'_>, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("jffs2's rmdir"))
    }

    fn rename(
        &mut self,
        _now: Ns,
        _old: Name<'_>,
        _new: Name<'_>,
        _ino: Ino,
        _replaced: Option<Ino>,
        _pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        Err(FsError::NotModelled("jffs2's rename"))
    }

    fn truncate(&mut self, _: Ns, _: Ino, _: u64, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("jffs2's truncate"))
    }

    fn evict(&mut self, _: Ns, _: Ino, _: &mut dyn PageCache) -> Result<Ns> {
        Err(FsError::NotModelled("jffs2's unlink"))
    }

    fn remount(&mut self, _now: Ns) -> Result<Ns> {
        Err(FsError::NotModelled("jffs2's remount"))
    }

    fn power_up(&mut self, _now: Ns) -> Result<(Vec<Found>, Ns)> {
        Err(FsError::NotModelled("jffs2's mount after a power cut"))
    }

    fn writes_back(&self) -> bool {
        false
    }

    /// jffs2_write_begin: a gap before the write becomes a hole node; the page is read even if it
    /// is going to be overwritten whole.
    fn write_begin(&mut self, now: Ns, write: PageWrite, _pages: &mut dyn PageCache) -> Result<Ns> {
        let PageWrite { ino, page, from, cached, .. } = write;
        let start = u64::from(page) * u64::from(PAGE_BYTES) + u64::from(from);
        let size = self.file(ino).size_bytes;
        let mut now = now;
        if start > size {
            let (_, later) = self.reserve_space(now, RAW_INODE_BYTES, Summary::Inode)?;
            let offset = |bytes: u64| u32::try_from(bytes).expect("a file below 4 GiB");
            let gap = offset(size)..offset(start);
            now = self.write_piece(later, ino, Role::Hole, gap, start, Some(ino))?;
        }
        if cached {
            return Ok(now);
        }
        self.read_range(now, ino, page * PAGE_BYTES, PAGE_BYTES)
    }

    /// jffs2_write_end: the whole page when its end is written, else from a multiple of four.
    fn write_page(&mut self, now: Ns, write: PageWrite, pages: &mut dyn PageCache) -> Result<Ns> {
        let first = u64::from(write.page) * u64::from(PAGE_BYTES);
        let written = first + u64::from(write.from)..first + u64::from(write.to);
        let mut sources = pages.contents(write.ino).extents(written.start, written.end);
        if sources.any(|(_, _, source)| source.compressibility > 0) {
            return Err(FsError::NotModelled("jffs2 compressing data"));
        }
        let PageWrite { ino, page, from, to, .. } = write;
        let start = if to == PAGE_BYTES { 0 } else { from & !3 };
        let range = page * PAGE_BYTES + start..page * PAGE_BYTES + to;
        self.refuse_zeroes(ino, range.start..page * PAGE_BYTES + from)?;
        let end = range.end;
        self.write_range(now, ino, range, end, Some(ino))
    }

    fn write_inode(&mut self, now: Ns, _ino: Ino, _pages: &mut dyn PageCache) -> Result<Ns> {
        Ok(now)
    }

    fn fsync(
        &mut self,
        now: Ns,
        ino: Ino,
        _inode_too: bool,
        pages: &mut dyn PageCache,
    ) -> Result<Ns> {
        self.flush_wbuf_gc(now, Some(ino), pages)
    }

    /// jffs2_sync_fs pads where fsync would rather move nodes.
    fn sync(&mut self, now: Ns) -> Result<Ns> {
        self.wbuf.due = None;
        self.flush_wbuf(now)
    }

    fn drop_caches(&mut self, now: Ns, kept: &[Ino]) -> Result<Ns> {
        for (index, file) in self.files.iter_mut().enumerate() {
            let ino = Ino(index as u32 + 1);
            file.in_memory = ino == ROOT || kept.contains(&ino);
        }
        Ok(now)
    }

    fn next_due(&self) -> Option<Ns> {
        self.wbuf.due
    }

    fn run_due(&mut self, now: Ns, pages: &mut dyn PageCache) -> Result<Ns> {
        if self.wbuf.due.take().is_some() {
            return self.flush_wbuf_gc(now, None, pages);
        }
        Ok(now)
    }

    fn flash(&self) -> &F {
        self.mtd.flash()
    }

    fn flash_mut(&mut self) -> &mut F {
        self.mtd.flash_mut()
    }

    fn forget_page_buffer(&mut self) {
        self.mtd.forget_page_buffer();
    }
}
