//! Where the bytes of a partition are: rows that add up to it, and what df says.
//!
//! Each layer takes its part, the lowest first ([`crate::ubi::Ubi::account`],
//! [`crate::fs::Observed::space`]). docs/models/space.md has a line for each name.

/// A part of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceRow {
    /// Who keeps it: `ubi`, or the file system.
    pub layer: &'static str,
    /// What for.
    pub name: &'static str,
    /// How many erase blocks (of UBI and of file systems on MTD) or LEBs (of UBIFS) it is; none
    /// for bytes within them.
    pub units: Option<u64>,
    /// Its size. Less than nothing for what a full file system counts twice.
    pub bytes: i64,
}

/// The rows of a mounted stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceTable {
    /// The bytes of the partition.
    pub partition_bytes: u64,
    /// In the order in which they were taken.
    pub rows: Vec<SpaceRow>,
    /// What df calls the size (f_blocks).
    pub size_bytes: u64,
    /// Other numbers of the stack that the kernel prints or mkfs asks for.
    pub facts: Vec<(&'static str, u64)>,
    left_bytes: i64,
}

impl SpaceTable {
    /// A partition of which nothing is taken yet.
    pub fn new(partition_bytes: u64) -> SpaceTable {
        SpaceTable {
            partition_bytes,
            rows: Vec::new(),
            size_bytes: 0,
            facts: Vec::new(),
            left_bytes: partition_bytes as i64,
        }
    }

    /// What no row has taken: once a file system has taken its rows, what df calls available
    /// (f_bavail).
    pub fn left_bytes(&self) -> i64 {
        self.left_bytes
    }

    /// Takes bytes.
    pub fn take(&mut self, layer: &'static str, name: &'static str, bytes: i64) {
        self.rows.push(SpaceRow { layer, name, units: None, bytes });
        self.left_bytes -= bytes;
    }

    /// Takes whole erase blocks or LEBs.
    pub fn take_units(
        &mut self,
        layer: &'static str,
        name: &'static str,
        units: u32,
        unit_bytes: u32,
    ) {
        let bytes = i64::from(units) * i64::from(unit_bytes);
        self.rows.push(SpaceRow { layer, name, units: Some(u64::from(units)), bytes });
        self.left_bytes -= bytes;
    }

    /// Takes as much of that as there is.
    pub fn take_reserve(
        &mut self,
        layer: &'static str,
        name: &'static str,
        units: u32,
        unit_bytes: u32,
    ) {
        let wanted = i64::from(units) * i64::from(unit_bytes);
        if wanted <= self.left_bytes {
            self.take_units(layer, name, units, unit_bytes);
        } else {
            self.take(layer, name, self.left_bytes.max(0));
        }
    }

    /// Takes what is more than whole pages of the page cache: df counts those.
    pub fn round_to_pages(&mut self, layer: &'static str, page_bytes: u32) {
        self.take(layer, "less than a page", self.left_bytes % i64::from(page_bytes));
    }

    /// Adds a number.
    pub fn tell(&mut self, name: &'static str, value: u64) {
        self.facts.push((name, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_what_is_left_are_the_partition() {
        let mut table = SpaceTable::new(10_000);
        table.take_units("ubi", "layout volume", 2, 1_000);
        table.take("jffs2", "files", 500);
        table.take_reserve("jffs2", "writes", 7, 1_000);
        table.round_to_pages("jffs2", 300);
        table.take_reserve("jffs2", "deletions", 2, 1_000);
        let sum: i64 = table.rows.iter().map(|row| row.bytes).sum();
        assert_eq!((sum, table.left_bytes()), (10_000, 0));
        let units: Vec<Option<u64>> = table.rows.iter().map(|row| row.units).collect();
        assert_eq!(units, [Some(2), None, Some(7), None, None]);
    }
}
