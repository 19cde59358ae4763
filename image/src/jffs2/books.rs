//! What the bytes of each erase block are (struct jffs2_eraseblock, scan.c and nodemgmt.c).

use sim::fs::jffs2::layout::is_dirty;

/// Bytes of one block, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sizes {
    /// Of nodes that count.
    pub used: u64,
    /// That can be collected.
    pub dirty: u64,
    /// That are lost until their block is collected.
    pub wasted: u64,
    /// Free.
    pub free: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    sizes: Sizes,
    nodes: u64,
    bad: bool,
}

/// All blocks.
#[derive(Clone, Debug)]
pub struct Books {
    blocks: Vec<Block>,
    next: Option<usize>,
}

impl Books {
    /// Blocks of so many bytes, all free.
    pub fn new(blocks: u32, block_bytes: u32) -> Books {
        let sizes = Sizes { free: block_bytes.into(), ..Sizes::default() };
        let block = Block { sizes, ..Block::default() };
        Books { blocks: vec![block; blocks as usize], next: None }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// A block that cannot be used.
    pub fn is_bad(&mut self, block: u32) {
        self.blocks[block as usize] = Block { bad: true, ..Block::default() };
    }

    /// jffs2_scan_dirty_space.
    pub fn dirt(&mut self, block: u32, bytes: usize) {
        let sizes = &mut self.blocks[block as usize].sizes;
        sizes.dirty += bytes as u64;
        sizes.free = sizes.free.saturating_sub(bytes as u64);
    }

    /// The clean marker that begins a block.
    pub fn marker(&mut self, block: u32, bytes: usize) {
        self.use_bytes(block, bytes);
    }

    /// A node that counts.
    pub fn node(&mut self, block: u32, bytes: usize) {
        self.blocks[block as usize].nodes += 1;
        self.use_bytes(block, bytes);
    }

    fn use_bytes(&mut self, block: u32, bytes: usize) {
        let sizes = &mut self.blocks[block as usize].sizes;
        sizes.used += bytes as u64;
        sizes.free = sizes.free.saturating_sub(bytes as u64);
    }

    /// jffs2_scan_classify_jeb: a little dirt of a block that is full is wasted.
    pub fn classify(&mut self, block: u32) {
        let Block { sizes, nodes, .. } = &mut self.blocks[block as usize];
        let other = sizes.free + sizes.dirty;
        if *nodes > 0 && !is_dirty(u32::try_from(other).unwrap_or(u32::MAX)) {
            sizes.wasted += std::mem::take(&mut sizes.dirty);
        }
    }

    /// jffs2_scan_medium: of the blocks with dirt the one with the most free space is written next,
    /// if that is more than `least`. Its dirt cannot be collected; what is free or wasted in the
    /// others is dirt (file_dirty).
    pub fn choose_next(&mut self, least: u64) {
        let other = |block: &Block| u32::try_from(block.sizes.free + block.sizes.dirty);
        let partly = |block: &Block| block.nodes > 0 && other(block).map_or(true, is_dirty);
        let filled = self.blocks.iter().enumerate();
        let filled = filled.filter(|(_, block)| partly(block) && block.sizes.free > least);
        // Of two that are equal the first one.
        self.next = filled
            .max_by_key(|(place, block)| (block.sizes.free, std::cmp::Reverse(*place)))
            .map(|(place, _)| place);
        for (place, block) in self.blocks.iter_mut().enumerate() {
            if Some(place) == self.next {
                block.sizes.wasted += std::mem::take(&mut block.sizes.dirty);
            } else if partly(block) {
                block.sizes.dirty += std::mem::take(&mut block.sizes.free);
                block.sizes.dirty += std::mem::take(&mut block.sizes.wasted);
            }
        }
    }

    /// jffs2_mark_node_obsolete.
    pub fn obsolete(&mut self, block: u32, bytes: usize) {
        let next = self.next == Some(block as usize);
        let Block { sizes, nodes, .. } = &mut self.blocks[block as usize];
        let bytes = bytes as u64;
        *nodes = nodes.saturating_sub(1);
        sizes.used = sizes.used.saturating_sub(bytes);
        let lost = u32::try_from(sizes.wasted + bytes).unwrap_or(u32::MAX);
        if (sizes.dirty > 0 || is_dirty(lost)) && !next {
            sizes.dirty += bytes + std::mem::take(&mut sizes.wasted);
        } else {
            sizes.wasted += bytes;
        }
    }

    /// Blocks without a node.
    pub fn free_blocks(&self) -> u32 {
        let free = |block: &&Block| !block.bad && block.nodes == 0 && block.sizes.dirty == 0;
        self.blocks.iter().filter(free).count() as u32
    }

    /// Sums over all blocks.
    pub fn sums(&self) -> Sizes {
        let blocks = self.blocks.iter().enumerate();
        blocks.fold(Sizes::default(), |mut sum, (place, Block { sizes, .. })| {
            // The thread erases a block in which no node counts.
            let erased = sizes.used == 0 && Some(place) != self.next;
            sum.used += sizes.used;
            sum.dirty += sizes.dirty + if erased { sizes.wasted } else { 0 };
            sum.wasted += if erased { 0 } else { sizes.wasted };
            sum.free += sizes.free;
            sum
        })
    }
}
