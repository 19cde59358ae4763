//! The processor's time of one image: the board's prices, and that of its compressor.
//!
//! Left out: what a compressor's time depends on besides the bytes of a block before and after.

use crate::profile::{SquashfsCosts, UnpackBlockCosts};
use crate::units::Ns;

/// The prices of one image. Without those of its compressor nothing takes time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prices {
    all: SquashfsCosts,
    unpack: Option<UnpackBlockCosts>,
}

impl Prices {
    pub fn of(costs: Option<&SquashfsCosts>, compressor: u16) -> Prices {
        let priced = costs.and_then(|all| Some((all, all.unpack.of(compressor)?)));
        priced.map_or_else(Prices::default, |(&all, unpack)| Prices { all, unpack: Some(unpack) })
    }

    pub fn request(&self, bytes: u32) -> Ns {
        self.all.request_ns + Ns::from_ps(bytes.into(), self.all.request_byte_ps)
    }

    pub fn pages(&self, count: u64) -> Ns {
        self.all.page_ns * count
    }

    pub fn inode(&self) -> Ns {
        self.all.inode_ns
    }

    pub fn mount(&self) -> Ns {
        self.all.mount_ns
    }

    /// Bytes that are the same as those stored were not compressed.
    pub fn unpack(&self, stored: u32, bytes: u32) -> Ns {
        let compressed = self.unpack.filter(|_| stored < bytes);
        compressed.map_or(Ns::ZERO, |costs| costs.time(stored, bytes))
    }
}
