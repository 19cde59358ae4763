//! Containers that know how file systems fill them: memory that does not move, and searches that
//! begin near the end.

pub mod pieces;
pub mod search;
pub mod slab;
pub mod sorted;
