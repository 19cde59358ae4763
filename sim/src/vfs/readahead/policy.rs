//! Another read-ahead in the kernel's place.

use super::{ReadAheadState, Window};
use crate::vfs::FileCache;
use core::fmt::Debug;
use dyn_clone::DynClone;

/// A read that asks for a window.
#[derive(Debug)]
pub struct Asked<'a> {
    /// What is known of the open file's reads so far. `max_pages` is at least 1.
    pub state: &'a mut ReadAheadState,
    /// The file's cached pages.
    pub cache: &'a FileCache,
    /// The page that is read.
    pub page: u32,
    /// Pages that the call still wants, this one included.
    pub wanted: u32,
}

/// A policy of read-ahead: which pages are read besides the missing one.
///
/// The kernel's own is [`KernelReadAhead`](super::KernelReadAhead). A policy is not asked where
/// there is no choice: with a window of 0 pages, after `POSIX_FADV_RANDOM`, and for the pages
/// around a page fault. What it returns is cut off at the end of the file, and cached pages are
/// left out. A policy that derives `Clone` and `Debug` needs no more than `on_miss`.
///
/// # Examples
///
/// Eight pages from each missing one, whatever was read before:
///
/// ```
/// use sim::vfs::readahead::{Asked, ReadAhead, Window};
/// #[derive(Clone, Debug)]
/// struct Eight;
///
/// impl ReadAhead for Eight {
///     fn on_miss(&mut self, asked: Asked<'_>) -> Option<Window> {
///         Some(Window { start: asked.page, pages: 8, marker: None })
///     }
/// }
/// ```
pub trait ReadAhead: DynClone + Debug + Send + Sync {
    /// The page is not cached. None reads it alone.
    fn on_miss(&mut self, asked: Asked<'_>) -> Option<Window>;
    /// The page is cached and has the marker of a window. None reads nothing.
    fn on_marker(&mut self, _asked: Asked<'_>) -> Option<Window> {
        None
    }
}

/// Each missing page alone: no read-ahead.
#[derive(Clone, Copy, Debug)]
pub struct Single;

impl ReadAhead for Single {
    fn on_miss(&mut self, _: Asked<'_>) -> Option<Window> {
        None
    }
}

/// The pages that the call still wants, and no others: where a read is as synchronous as on MTD,
/// a page that is read early saves no wait.
#[derive(Clone, Copy, Debug)]
pub struct Requested;

impl ReadAhead for Requested {
    fn on_miss(&mut self, asked: Asked<'_>) -> Option<Window> {
        let pages = asked.wanted.min(asked.state.max_pages);
        Some(Window { start: asked.page, pages, marker: None })
    }
}

dyn_clone::clone_trait_object!(ReadAhead);
