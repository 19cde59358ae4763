//! Read-ahead: which pages are read besides the missing one.
//!
//! Mirrors mm/readahead.c (ondemand_readahead, try_context_readahead, get_init_ra_size,
//! get_next_ra_size, force_page_cache_ra; page_cache_sync_ra and page_cache_async_ra of 6.12) of
//! Linux 2.6.29 to 6.12. A field of [`KernelReadAhead`] is a difference between kernels.
//! boards/kernels/ has each kernel's values, with their sources. On MTD a call returns only after
//! every page of a window is read. Nothing is asynchronous, even where the kernel's names say so.
//!
//! Left out: large folios (no file system here has them), congestion, the limit of half the free
//! memory (max_sane_readahead; the boards have more).
//!
//! Invariants:
//! 1. A window never reaches past the end of the file.
//! 2. With a window of 0 pages only requested pages are read.

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
    start: u32,
    size: u32,
    async_size: u32,
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

/// page_cache_sync_readahead: `page` is not cached, and the call still wants `wanted` pages from it
/// on. None if nothing is to be read beyond what the caller reads itself.
pub fn on_miss(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
) -> Option<Window> {
    if state.max_pages == 0 {
        return None;
    }
    if state.random {
        return Some(Window { start: page, pages: wanted.min(state.max_pages), marker: None });
    }
    on_demand(kernel, state, cache, page, wanted, false)
}

/// page_cache_async_readahead: `page` is cached and had the marker, which the caller has cleared.
pub fn on_marker(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
) -> Option<Window> {
    if state.max_pages == 0 {
        return None;
    }
    on_demand(kernel, state, cache, page, wanted, true)
}

/// ondemand_readahead.
fn on_demand(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
    marker: bool,
) -> Option<Window> {
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
    Some(state.window())
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

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX_2_6_37: KernelReadAhead = KernelReadAhead {
        backward_jump_is_sequential: true,
        context: Context::Eager,
        first_page_starts_window: true,
        hole_window_adds_request: true,
        window_overflow: WindowOverflow::Grows,
        previous_position: PreviousPosition::LastPage,
        hole_not_found: HoleNotFound::PageAfter,
        hole_not_found_below: HoleNotFound::PageAfter,
        miss_never_continues: false,
        stream_keeps_its_window: false,
        cut_window_moves_its_marker: false,
        window_is_added_first: false,
        faults_around: false,
    };

    #[test]
    fn first_windows_of_a_sequential_read_are_4_8_16_32_pages() {
        let mut state = ReadAheadState::new(32);
        let mut cache = FileCache::new(1280);
        let mut windows = Vec::new();
        for page in 0..64 {
            let window = if !cache.contains(page) {
                on_miss(&LINUX_2_6_37, &mut state, &cache, page, 1)
            } else if cache.take_marker(page) {
                on_marker(&LINUX_2_6_37, &mut state, &cache, page, 1)
            } else {
                None
            };
            if let Some(window) = window {
                windows.push((window.start, window.pages, window.marker));
                for page in window.start..window.start + window.pages {
                    cache.insert(page);
                }
                window.marker.iter().for_each(|&marker| cache.set_marker(marker));
            }
            state.previous_page = i64::from(page);
        }
        assert_eq!(
            windows,
            [
                (0, 4, Some(1)),
                (4, 8, Some(4)),
                (12, 16, Some(12)),
                (28, 32, Some(28)),
                (60, 32, Some(60)),
                (92, 32, Some(92))
            ]
        );
    }

    #[test]
    fn a_backward_jump_is_sequential_on_32_bits_before_3_13_only() {
        let fixed = KernelReadAhead { backward_jump_is_sequential: false, ..LINUX_2_6_37 };
        let state = ReadAheadState { previous_page: 500, ..ReadAheadState::new(32) };
        assert!(looks_sequential(&LINUX_2_6_37, &state, 100));
        assert!(!looks_sequential(&fixed, &state, 100));
        assert!(looks_sequential(&fixed, &state, 501));
        assert!(!looks_sequential(&LINUX_2_6_37, &state, 502));
    }

    /// Reads of page 500, then of page 0 and of page 100 next to a cached page 99. 2.6.37 gives
    /// each a window. 2.6.29 reads only the page itself, except for a file's very first read.
    #[test]
    fn before_2_6_31_only_the_first_read_of_a_file_or_one_in_order_starts_a_window() {
        let older = KernelReadAhead {
            backward_jump_is_sequential: false,
            context: Context::None,
            first_page_starts_window: false,
            hole_window_adds_request: false,
            ..LINUX_2_6_37
        };
        let newer = KernelReadAhead { backward_jump_is_sequential: false, ..LINUX_2_6_37 };
        let mut cache = FileCache::new(1280);
        cache.insert(99);
        for (kernel, windows) in [(older, [1, 1]), (newer, [4, 12])] {
            for (page, pages) in [0, 100].into_iter().zip(windows) {
                let mut state = ReadAheadState::new(32);
                let first = on_miss(&kernel, &mut state, &cache, 0, 1).expect("a window");
                assert_eq!(first.pages, 4);
                state.previous_page = 500;
                let window = on_miss(&kernel, &mut state, &cache, page, 1).expect("a window");
                assert_eq!((window.start, window.pages), (page, pages), "page {page}");
            }
        }
    }

    /// A marker on page 10, pages up to 13 cached, a request of 4 pages: the window is that of a
    /// history of 4 pages, or of 8.
    #[test]
    fn since_2_6_31_a_window_found_by_its_marker_counts_the_request() {
        let older = KernelReadAhead { hole_window_adds_request: false, ..LINUX_2_6_37 };
        let mut cache = FileCache::new(1280);
        (10..14).for_each(|page| cache.insert(page));
        for (kernel, pages) in [(older, 8), (LINUX_2_6_37, 16)] {
            let mut state = ReadAheadState { previous_page: 500, ..ReadAheadState::new(32) };
            let window = on_marker(&kernel, &mut state, &cache, 10, 4).expect("a window");
            assert_eq!((window.start, window.pages), (14, pages));
        }
    }

    #[test]
    fn an_unlimited_window_may_pass_the_limit_and_a_capped_one_not() {
        let capped = KernelReadAhead { window_overflow: WindowOverflow::Capped, ..LINUX_2_6_37 };
        let cache = FileCache::new(1280);
        for (kernel, pages) in [(LINUX_2_6_37, 64), (capped, 32)] {
            let mut state = ReadAheadState::new(32);
            let window = on_miss(&kernel, &mut state, &cache, 0, 64).expect("a window");
            assert_eq!(window.pages, pages);
        }
    }

    /// Pages 24 to 31 with the marker on 30, in a file of 29 pages: three pages are cut off, so the
    /// marker, two from the end, moves to 27. A marker on 24, eight from the end, disappears.
    #[test]
    fn the_marker_of_a_window_cut_off_at_the_end_of_the_file_moves_since_5_8() {
        let newer = KernelReadAhead { cut_window_moves_its_marker: true, ..LINUX_2_6_37 };
        let window = |marker| Window { start: 24, pages: 8, marker: Some(marker) };
        let inside = |window: Window| {
            window.marker.filter(|m| (window.start..window.start + window.pages).contains(m))
        };
        for (kernel, marker, moved) in [
            (LINUX_2_6_37, 30, None),
            (LINUX_2_6_37, 24, Some(24)),
            (newer, 30, Some(27)),
            (newer, 24, None),
        ] {
            let cut = window(marker).cut_to(&kernel, 29);
            assert_eq!((cut.pages, inside(cut)), (5, moved));
        }
        assert_eq!(window(30).cut_to(&newer, 32), window(30));
        assert_eq!(window(30).cut_to(&newer, 24).pages, 0);
    }

    /// Windows of 64 pages while the limit was doubled, then the limit is 32 pages again.
    #[test]
    fn a_lowered_limit_shortens_the_windows_of_a_stream_unless_it_keeps_them() {
        let keeps = KernelReadAhead { stream_keeps_its_window: true, ..LINUX_2_6_37 };
        let cache = FileCache::new(1280);
        for (kernel, pages) in [(LINUX_2_6_37, 32), (keeps, 64)] {
            let mut state =
                ReadAheadState { start: 64, size: 64, async_size: 64, ..ReadAheadState::new(32) };
            let window = on_marker(&kernel, &mut state, &cache, 64, 1).expect("a window");
            assert_eq!((window.start, window.pages), (128, pages));
        }
    }

    /// On Linux 6.1 random reads with a window of 32 KiB read 5 % more flash than the model. A
    /// marker stood before eight cached pages. Since page_cache_next_miss replaced
    /// radix_tree_next_hole, the scan for a hole after them returns the last of them, not the page
    /// after it.
    #[test]
    fn a_marker_before_a_long_cached_run_starts_a_window_on_its_last_page_since_4_20() {
        let newer = KernelReadAhead { hole_not_found: HoleNotFound::LastPage, ..LINUX_2_6_37 };
        let mut cache = FileCache::new(64);
        (1..=10).for_each(|page| cache.insert(page));
        for (kernel, start) in [(LINUX_2_6_37, None), (newer, Some(9))] {
            let mut state = ReadAheadState { start: 40, size: 2, ..ReadAheadState::new(8) };
            let window = on_marker(&kernel, &mut state, &cache, 1, 1);
            assert_eq!(window.map(|window| window.start), start);
        }
    }

    /// Linux 6.12 split ondemand_readahead. Reading 8 pages as a whole still gives a window of 16
    /// with the marker after the request. With 32 of 32 the marker is in the middle, where a merged
    /// next window used to begin. A miss right after a window starts a new one.
    #[test]
    fn a_miss_never_continues_a_window_in_6_12() {
        let apart = KernelReadAhead { miss_never_continues: true, ..LINUX_2_6_37 };
        let cache = FileCache::new(1280);
        let first = |kernel, wanted| {
            let mut state = ReadAheadState::new(32);
            on_miss(kernel, &mut state, &cache, 0, wanted).expect("a window")
        };
        assert_eq!(first(&apart, 8), Window { start: 0, pages: 16, marker: Some(8) });
        assert_eq!(first(&apart, 8), first(&LINUX_2_6_37, 8));
        assert_eq!(first(&apart, 32), Window { start: 0, pages: 32, marker: Some(16) });
        for (kernel, pages) in [(LINUX_2_6_37, 64), (apart, 4)] {
            let mut state = ReadAheadState {
                start: 64,
                size: 32,
                async_size: 32,
                previous_page: 95,
                ..ReadAheadState::new(32)
            };
            let window = on_miss(&kernel, &mut state, &cache, 96, 1).expect("a window");
            assert_eq!((window.start, window.pages), (96, pages));
        }
    }
}
