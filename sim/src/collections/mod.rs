//! Containers made for file systems: memory that does not move, searches that begin at a guess, and
//! lists in the order of arrival.

pub mod arrivals;
pub mod pieces;
pub mod search;
pub mod slab;
pub mod sorted;
