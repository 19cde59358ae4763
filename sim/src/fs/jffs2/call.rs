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
    /// The rest of a write whose first pages were written before.
    WriteOn {
        offset: u32,
        bytes: u32,
        causes: Causes,
    },
    Erase {
        block: u32,
    },
    /// jffs2_write_nand_cleanmarker, or on NOR the write of a marker in the block.
    WriteMarker {
        block: u32,
    },
}

impl Call {
    /// The first program of a write, and the rest; any other call is whole.
    pub fn split(self, page_bytes: u32) -> (Call, Option<Call>) {
        let (is_first, offset, bytes, mut causes) = match self {
            Call::Write { offset, bytes, causes } => (true, offset, bytes, causes),
            Call::WriteOn { offset, bytes, causes } => (false, offset, bytes, causes),
            _ => return (self, None),
        };
        let first = bytes.min(page_bytes - offset % page_bytes);
        if first == bytes {
            return (self, None);
        }
        let of_first = causes.take(first);
        let rest = Call::WriteOn { offset: offset + first, bytes: bytes - first, causes };
        let (bytes, causes) = (first, of_first);
        if is_first {
            (Call::Write { offset, bytes, causes }, Some(rest))
        } else {
            (Call::WriteOn { offset, bytes, causes }, Some(rest))
        }
    }
}
