//! Where the time of an operation goes, layer by layer, for runs that record it.

use crate::units::Ns;

/// How long a stack has spent in its layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerTimes {
    /// In calls into the file system, its threads and everything below it included.
    pub fs: Ns,
    /// UBI's own processor time in them.
    pub ubi: Ns,
    /// In calls into the driver, the chip's time included.
    pub driver: Ns,
}

impl LayerTimes {
    /// What passed since an earlier moment.
    pub(super) fn since(self, before: LayerTimes) -> LayerTimes {
        LayerTimes {
            fs: self.fs - before.fs,
            ubi: self.ubi - before.ubi,
            driver: self.driver - before.driver,
        }
    }
}
