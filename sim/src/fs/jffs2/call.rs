//! Calls into MTD, as the collector's thread keeps them and makes them one by one.

use crate::causes::Causes;

/// A call into MTD.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Read {
        offset: u32,
        bytes: u32,
    },
    /// What is left of a read.
    ReadOn {
        offset: u32,
        bytes: u32,
    },
    Write {
        offset: u32,
        bytes: u32,
        causes: Causes,
    },
    Erase {
        block: u32,
    },
    /// jffs2_write_nand_cleanmarker.
    WriteMarker {
        block: u32,
    },
}
