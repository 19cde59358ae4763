//! Sizes of JFFS2's structures on flash (include/uapi/linux/jffs2.h, fs/jffs2/summary.h; unchanged
//! from Linux 2.6.37 to 6.1).

use crate::fs::PAGE_BYTES;

/// struct jffs2_raw_inode: the head of every data node.
pub const RAW_INODE_BYTES: u32 = 68;
/// struct jffs2_raw_dirent, the name not included.
pub const RAW_DIRENT_BYTES: u32 = 40;
/// struct jffs2_raw_xattr, name and value not included.
pub const RAW_XATTR_BYTES: u32 = 32;
/// struct jffs2_raw_xref.
pub const RAW_XREF_BYTES: u32 = 28;
/// JFFS2_MIN_NODE_HEADER: what jffs2_get_inode_nodes reads of a node before it knows its kind.
pub const MIN_HEADER_BYTES: u32 = RAW_DIRENT_BYTES;
/// JFFS2_MIN_DATA_LEN: a data node is only written where at least this much data fits.
pub const MIN_DATA_BYTES: u32 = 128;
/// JFFS2_SUMMARY_INODE_SIZE: a data node's entry in its block's summary.
pub const SUMMARY_INODE_BYTES: u32 = 18;
/// struct jffs2_sum_dirent_flash, the name not included.
pub const SUMMARY_DIRENT_BYTES: u32 = 24;
/// JFFS2_SUMMARY_XATTR_SIZE.
pub const SUMMARY_XATTR_BYTES: u32 = 18;
/// JFFS2_SUMMARY_XREF_SIZE.
pub const SUMMARY_XREF_BYTES: u32 = 6;
/// struct jffs2_raw_summary: the head of a summary.
pub const RAW_SUMMARY_BYTES: u32 = 32;
/// JFFS2_SUMMARY_FRAME_SIZE: the head, and the marker in the block's last bytes.
pub const SUMMARY_FRAME_BYTES: u32 = RAW_SUMMARY_BYTES + SUMMARY_MARKER_BYTES;
/// MAX_SUMMARY_SIZE.
pub const SUMMARY_BYTES_MAX: u32 = 65536;
/// The marker that ends a summary (struct jffs2_sum_marker).
pub const SUMMARY_MARKER_BYTES: u32 = 8;
/// The cleanmarker in the OOB of a block's first page.
pub const CLEANMARKER_BYTES: u32 = 8;
/// The cleanmarker at the start of a block of NOR (struct jffs2_unknown_node).
pub const CLEANMARKER_NODE_BYTES: u32 = 12;

/// PAD: nodes start on multiples of four.
pub const fn pad(bytes: u32) -> u32 {
    (bytes + 3) & !3
}

/// ISDIRTY: whether this much lost space makes a block dirty (nodelist.h).
pub const fn is_dirty(bytes: u32) -> bool {
    bytes > RAW_INODE_BYTES + MIN_DATA_BYTES
}

/// RESERVED_BLOCKS_DELETION.
pub const DELETION_BLOCKS: u32 = 2;

/// resv_blocks_write of jffs2_calc_trigger_levels: a writer collects until so many are free.
pub fn write_blocks(blocks: u32, block_bytes: u32) -> u32 {
    let (blocks, block_bytes) = (u64::from(blocks), u64::from(block_bytes));
    let spare = blocks * block_bytes / 50 + blocks * 100 + block_bytes - 1;
    DELETION_BLOCKS + u32::try_from(spare / block_bytes).expect("fewer than all blocks")
}

/// The bytes that jffs2_statfs reports as free, of so many free and dirty ones.
pub fn free_bytes(free_and_dirty: u64, blocks: u32, block_bytes: u32) -> u64 {
    let reserve = u64::from(write_blocks(blocks, block_bytes)) * u64::from(block_bytes);
    let page = u64::from(PAGE_BYTES);
    free_and_dirty.saturating_sub(reserve) / page * page
}

/// The space that a node needs in the summary of its block.
#[derive(Clone, Copy, Debug)]
pub enum Summary {
    /// An entry for a data node.
    Inode,
    /// An entry for a directory entry whose name has this many bytes.
    Dirent(u32),
    /// An entry for an extended attribute.
    Xattr,
    /// An entry for an inode's reference to one.
    Xref,
    /// None: the block gets no summary (JFFS2_SUMMARY_NOSUM_SIZE).
    Unwanted,
    /// The upper bound that jffs2_garbage_collect_pristine uses: the length of the node itself.
    AtMost(u32),
}

impl Summary {
    /// The bytes of it.
    pub fn bytes(self) -> u32 {
        match self {
            Summary::Inode => SUMMARY_INODE_BYTES,
            Summary::Dirent(name) => SUMMARY_DIRENT_BYTES + name,
            Summary::Xattr => SUMMARY_XATTR_BYTES,
            Summary::Xref => SUMMARY_XREF_BYTES,
            Summary::AtMost(bytes) => bytes,
            Summary::Unwanted => 0,
        }
    }
}
