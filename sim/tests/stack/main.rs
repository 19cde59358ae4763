//! What the simulator does, layer by layer: one program, because each further one links the whole
//! simulator again. Only the memory test (`sim/tests/memory.rs`) is a program of its own: it
//! replaces the allocator.

mod any_program;
mod block;
mod cache_reads;
mod calls_powercut;
mod causes;
mod chip;
mod compress;
mod content;
mod drivers;
mod dumps;
mod errors;
mod failing;
mod faults;
mod file_sizes;
mod ftl_powercut;
mod jffs2;
mod jffs2_names;
mod jffs2_powercut;
mod layers;
mod mtd;
mod ops;
mod own_file_system;
mod parallel;
mod policies;
mod profiles;
mod readahead;
mod runs;
mod spinand;
mod spinor;
mod stopping;
#[path = "../support/mod.rs"]
mod support;
mod ubifs;
mod ubifs_bulk;
mod ubifs_powercut;
mod ubifs_space;
mod vfs;
mod volumes;
mod waits;
mod yaffs2;
