//! Read-ahead: which pages are read besides the missing one.
//!
//! Mirrors mm/readahead.c (ondemand_readahead, try_context_readahead, get_init_ra_size,
//! get_next_ra_size, force_page_cache_ra; page_cache_sync_ra and page_cache_async_ra of 6.12) of
//! Linux 2.6.29 to 7.3. A field of [`KernelReadAhead`] is a difference between kernels.
//! boards/kernels/ has each kernel's values, with their sources. On MTD a call returns only after
//! every page of a window is read. Nothing is asynchronous, even where the kernel's names say so.
//!
//! Left out: large folios (no file system here has them), congestion, the limit of half the free
//! memory (max_sane_readahead; the boards have more).
//!
//! policy.rs has the trait by which another policy can decide in the kernel's place.
//!
//! Invariants:
//! 1. A window never reaches past the end of the file.
//! 2. With a window of 0 pages only requested pages are read.

mod policy;
#[cfg(test)]
mod windows;

pub use policy::{Asked, ReadAhead, Requested, Single};

use super::cache::FileCache;
use serde::Deserialize;

/// How pages cached just before a miss count as history (try_context_readahead).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Context {
    /// They do not count (until 2.6.30).
    None,
    /// Any cached neighbour starts a window as long as the history (10be0b372cac, 2.6.31, until
    /// 3.11).
    Eager,
    /// Only a history longer than the request starts one, with a marker at its end (2cad40180197,
    /// 3.12).
    Conservative,
}

/// What happens to a window that would hit its own marker at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowOverflow {
    /// It grows by the next size, past the limit.
    Grows,
    /// It stops at the limit.
    Capped,
}

/// The position of `ra->prev_pos` after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PreviousPosition {
    /// In the last page read, set when the call ends (do_generic_file_read).
    LastPage,
    /// At the next byte, set after every page (filemap_read).
    NextByte,
    /// At the next byte, set when the call ends (filemap_read of 6.12).
    NextByteAtEnd,
}

/// The result of a scan for a missing page that finds none within its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoleNotFound {
    /// The page after the last one scanned (radix_tree_next_hole, radix_tree_prev_hole).
    PageAfter,
    /// The last page scanned (page_cache_next_miss, page_cache_prev_miss, since 4.20).
    LastPage,
}

/// The read-ahead of one kernel.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelReadAhead {
    /// On 32 bits before 3.13 `offset - (prev_pos >> PAGE_SHIFT)` is signed, so every backward jump
    /// looks sequential (af248a0c6745).
    pub backward_jump_is_sequential: bool,
    /// The rule for random reads next to cached pages.
    pub context: Context,
    /// A miss on the first page starts a window whatever was read before (045a2529a208, 2.6.31).
    pub first_page_starts_window: bool,
    /// A window that was found by its marker alone also grows by the request (160334a0cfa8,
    /// 2.6.31).
    pub hole_window_adds_request: bool,
    /// Whether the limit applies to a doubled window.
    pub window_overflow: WindowOverflow,
    /// What counts as the previous position.
    pub previous_position: PreviousPosition,
    /// A read that begins behind the end of the file, in its last page, reads that page.
    pub past_end_reads_last_page: bool,
    /// The result of an upward scan of the page cache that found no hole.
    pub hole_not_found: HoleNotFound,
    /// The result of a downward scan that found none.
    pub hole_not_found_below: HoleNotFound,
    /// A miss starts a window, and only a marker continues one (page_cache_sync_ra and
    /// page_cache_async_ra, which replace ondemand_readahead).
    pub miss_never_continues: bool,
    /// The next window of a stream is not smaller than its last one, even if the limit was lowered
    /// since (posix_fadvise: normal after sequential).
    pub stream_keeps_its_window: bool,
    /// If a window is cut off at the end of the file, its marker keeps its distance from the
    /// window's end, or is missing (do_page_cache_ra, since 5.8).
    pub cut_window_moves_its_marker: bool,
    /// A window that reaches the end of the file has no marker (do_page_cache_ra of 7.3).
    pub last_window_has_no_marker: bool,
    /// A window that a marker begins ends at a multiple of this many pages, if the limit is one
    /// too (page_cache_async_ra of 7.3); 1 in kernels before.
    pub marked_window_end_pages: u32,
    /// All pages of a window are added to the page cache, locked, before the first is read
    /// (page_cache_ra_unbounded, since 5.8).
    pub window_is_added_first: bool,
    /// A page fault maps the cached pages around its page, and a miss reads around it
    /// (filemap_map_pages and do_sync_mmap_readahead of 6.1). False for kernels whose page faults
    /// were not studied: there mapped files are refused.
    pub faults_around: bool,
}

/// Pages to bring into the cache, and the page that gets the marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First page.
    pub start: u32,
    /// Pages.
    pub pages: u32,
    /// The page whose first use continues the read-ahead (PG_readahead).
    pub marker: Option<u32>,
}

impl Window {
    /// do_page_cache_ra: the part of it within a file of so many pages.
    pub fn cut_to(self, kernel: &KernelReadAhead, file_pages: u32) -> Window {
        let end = self.start.saturating_add(self.pages);
        if end >= file_pages && self.start < file_pages && kernel.last_window_has_no_marker {
            return Window { pages: file_pages - self.start, marker: None, ..self };
        }
        if end <= file_pages || self.start >= file_pages {
            return Window { pages: if end <= file_pages { self.pages } else { 0 }, ..self };
        }
        let moved = |marker: u32| marker.checked_sub(end - file_pages);
        let marker = match kernel.cut_window_moves_its_marker {
            true => self.marker.and_then(moved),
            false => self.marker,
        };
        Window { pages: file_pages - self.start, marker, ..self }
    }
}

/// struct file_ra_state: one per open file.
#[derive(Clone, Copy, Debug)]
pub struct ReadAheadState {
    /// The first page of the current window.
    pub start: u32,
    /// Pages of the current window.
    pub size: u32,
    /// Its last pages from the marker on.
    pub async_size: u32,
    /// ra_pages: the largest window; 0 is off.
    pub max_pages: u32,
    /// ra->prev_pos in pages; -1 before the first read.
    pub previous_page: i64,
    /// POSIX_FADV_RANDOM (FMODE_RANDOM).
    pub random: bool,
    /// Page faults that had to read, less those that found their page (ra->mmap_miss).
    pub mmap_miss: u32,
}

impl ReadAheadState {
    /// file_ra_state_init.
    pub fn new(max_pages: u32) -> ReadAheadState {
        ReadAheadState {
            start: 0,
            size: 0,
            async_size: 0,
            max_pages,
            previous_page: -1,
            random: false,
            mmap_miss: 0,
        }
    }

    /// mmap read-around: the window around a page.
    pub fn around(&mut self, page: u32) -> Window {
        self.start = page.saturating_sub(self.max_pages / 2);
        self.size = self.max_pages;
        self.async_size = self.max_pages / 4;
        self.window()
    }

    fn window(&self) -> Window {
        let marker = self.start + self.size - self.async_size;
        Window { start: self.start, pages: self.size, marker: Some(marker) }
    }
}

/// get_init_ra_size.
fn initial_size(pages: u32, max: u32) -> u32 {
    let size = pages.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

/// get_next_ra_size.
fn next_size(size: u32, max: u32) -> u32 {
    if size < max / 16 {
        (4 * size).min(max)
    } else {
        (2 * size).min(max)
    }
}

/// Another policy than the kernel's own, if there is one.
pub type Own = Option<Box<dyn ReadAhead>>;

/// page_cache_sync_readahead: the page is not cached. None if nothing is to be read beyond what the
/// caller reads itself.
#[inline]
pub fn on_miss(kernel: &KernelReadAhead, own: &mut Own, asked: Asked<'_>) -> Option<Window> {
    let Asked { ref state, page, wanted, .. } = asked;
    if state.max_pages == 0 {
        return None;
    }
    if state.random {
        return Some(Window { start: page, pages: wanted.min(state.max_pages), marker: None });
    }
    match own {
        None => on_demand(kernel, asked, false),
        Some(own) => own.on_miss(asked),
    }
}

/// page_cache_async_readahead: the page is cached and had the marker, which the caller has cleared.
#[inline]
pub fn on_marker(kernel: &KernelReadAhead, own: &mut Own, asked: Asked<'_>) -> Option<Window> {
    if asked.state.max_pages == 0 {
        return None;
    }
    match own {
        None => on_demand(kernel, asked, true),
        Some(own) => own.on_marker(asked),
    }
}

impl ReadAhead for KernelReadAhead {
    fn on_miss(&mut self, asked: Asked<'_>) -> Option<Window> {
        on_demand(self, asked, false)
    }

    fn on_marker(&mut self, asked: Asked<'_>) -> Option<Window> {
        on_demand(self, asked, true)
    }
}

/// ondemand_readahead.
fn on_demand(kernel: &KernelReadAhead, asked: Asked<'_>, marker: bool) -> Option<Window> {
    let Asked { state, cache, page, wanted } = asked;
    if kernel.miss_never_continues {
        return match marker {
            true => on_marker_alone(kernel, state, cache, page, wanted),
            false => Some(on_miss_alone(kernel, state, cache, page, wanted)),
        };
    }
    let max = state.max_pages;
    let expected = state.start + state.size;
    if page == 0 && kernel.first_page_starts_window {
        set_initial(state, page, wanted);
    } else if page != 0 && (page + state.async_size == expected || page == expected) {
        continue_stream(kernel, state);
    } else if marker {
        continue_after_hole(kernel, state, cache, page, wanted)?;
    } else if wanted > max || looks_sequential(kernel, state, page) {
        set_initial(state, page, wanted);
    } else if !set_from_context(kernel, state, cache, page, wanted) {
        return Some(Window { start: page, pages: wanted, marker: None });
    }
    Some(submit(kernel, state, page))
}

/// page_cache_sync_ra: continues no window, and merges none with the next.
fn on_miss_alone(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
) -> Window {
    if page == 0 || wanted > state.max_pages || looks_sequential(kernel, state, page) {
        set_initial(state, page, wanted);
        // The request takes the whole window, so its marker goes into the middle.
        if state.size <= wanted {
            state.async_size = state.size / 2;
        }
    } else if !set_from_context(kernel, state, cache, page, wanted) {
        return Window { start: page, pages: wanted, marker: None };
    }
    state.window()
}

/// page_cache_async_ra.
fn on_marker_alone(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
) -> Option<Window> {
    if page + state.async_size == state.start + state.size {
        continue_stream(kernel, state);
    } else {
        continue_after_hole(kernel, state, cache, page, wanted)?;
    }
    align_end(kernel, state);
    Some(state.window())
}

/// `aligned_end` of page_cache_async_ra: the window is shortened to it, unless nothing is left.
fn align_end(kernel: &KernelReadAhead, state: &mut ReadAheadState) {
    let lowest_bit = 1u32.checked_shl(state.max_pages.trailing_zeros()).unwrap_or(1);
    let past = (state.start + state.size) % kernel.marked_window_end_pages.min(lowest_bit);
    if past < state.size {
        state.size -= past;
        state.async_size = state.size;
    }
}

/// Moves on to the window after the last one, of the next size.
fn continue_stream(kernel: &KernelReadAhead, state: &mut ReadAheadState) {
    let least = if kernel.stream_keeps_its_window { state.size } else { 0 };
    state.start += state.size;
    state.size = next_size(state.size, state.max_pages).max(least);
    state.async_size = state.size;
}

/// A marker without valid state: the window begins at the next missing page. None if that is too
/// far away.
fn continue_after_hole(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
) -> Option<()> {
    let start = next_hole(kernel, cache, page + 1, state.max_pages);
    if start - page > state.max_pages {
        return None;
    }
    let asked = if kernel.hole_window_adds_request { wanted } else { 0 };
    state.start = start;
    state.size = next_size(start - page + asked, state.max_pages);
    state.async_size = state.size;
    Some(())
}

fn set_initial(state: &mut ReadAheadState, page: u32, wanted: u32) {
    state.start = page;
    state.size = initial_size(wanted, state.max_pages);
    state.async_size = if state.size > wanted { state.size - wanted } else { state.size };
}

/// `offset - prev_offset <= 1`: unsigned, or signed on some 32-bit kernels.
fn looks_sequential(kernel: &KernelReadAhead, state: &ReadAheadState, page: u32) -> bool {
    let distance = i64::from(page) - state.previous_page;
    distance <= 1 && (distance >= 0 || kernel.backward_jump_is_sequential)
}

/// page_cache_next_miss: the first missing page from `page` on, within `max` pages.
fn next_hole(kernel: &KernelReadAhead, cache: &FileCache, page: u32, max: u32) -> u32 {
    let beyond = match kernel.hole_not_found {
        HoleNotFound::PageAfter => page + max,
        HoleNotFound::LastPage => page + max - 1,
    };
    (page..page + max).find(|&page| !cache.contains(page)).unwrap_or(beyond)
}

/// count_history_pages: the cached pages without a gap before `page`, within `max` pages.
fn history_pages(kernel: &KernelReadAhead, cache: &FileCache, page: u32, max: u32) -> u32 {
    let cached = |&back: &u32| back <= page && cache.contains(page - back);
    let history = (1..=max).take_while(cached).count() as u32;
    match kernel.hole_not_found_below {
        HoleNotFound::LastPage if history == max => max - 1,
        _ => history,
    }
}

/// try_context_readahead.
fn set_from_context(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
) -> bool {
    let max = state.max_pages;
    let mut history = history_pages(kernel, cache, page, max);
    let least = match kernel.context {
        Context::None => return false,
        Context::Eager => 0,
        Context::Conservative => wanted,
    };
    if history <= least {
        return false;
    }
    // The file is cached from its beginning, which indicates a long stream.
    if history >= page {
        history *= 2;
    }
    state.start = page;
    if kernel.context == Context::Eager {
        state.size = initial_size(history + wanted, max);
        state.async_size = state.size;
    } else {
        state.size = (history + wanted).min(max);
        state.async_size = 1;
    }
    true
}

/// `readit:` and ra_submit.
fn submit(kernel: &KernelReadAhead, state: &mut ReadAheadState, page: u32) -> Window {
    let max = state.max_pages;
    // The request would hit its own marker at once, so the window is merged with the next one.
    if page == state.start && state.size == state.async_size {
        let more = next_size(state.size, max);
        if kernel.window_overflow == WindowOverflow::Grows || state.size + more <= max {
            state.async_size = more;
            state.size += more;
        } else {
            state.size = max;
            state.async_size = max / 2;
        }
    }
    state.window()
}
