//! Calls into MTD as values, so that the garbage collector thread can defer them.

use crate::causes::Causes;

/// A call into MTD.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    Read {
        offset: u32,
        bytes: u32,
    },
    /// The rest of a read whose first page was read before.
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
