//! Containers made for file systems: memory that does not move, and searches that begin at a guess.

pub mod pieces;
pub mod search;
pub mod slab;
pub mod sorted;
