//! Tests: windows of single reads, kernel by kernel.

use super::*;

fn on_miss(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
) -> Option<Window> {
    super::on_miss(kernel, &mut None, Asked { state, cache, page, wanted })
}

fn on_marker(
    kernel: &KernelReadAhead,
    state: &mut ReadAheadState,
    cache: &FileCache,
    page: u32,
    wanted: u32,
) -> Option<Window> {
    super::on_marker(kernel, &mut None, Asked { state, cache, page, wanted })
}

const LINUX_2_6_37: KernelReadAhead = KernelReadAhead {
    backward_jump_is_sequential: true,
    context: Context::Eager,
    first_page_starts_window: true,
    hole_window_adds_request: true,
    window_overflow: WindowOverflow::Grows,
    previous_position: PreviousPosition::LastPage,
    past_end_reads_last_page: true,
    hole_not_found: HoleNotFound::PageAfter,
    hole_not_found_below: HoleNotFound::PageAfter,
    miss_never_continues: false,
    stream_keeps_its_window: false,
    cut_window_moves_its_marker: false,
    last_window_has_no_marker: false,
    marked_window_end_pages: 1,
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

/// Linux 7.3 rounds the end of a window that a marker begins down to 4 pages, so that large folios
/// fit. A limit of 3 or of 6 pages allows multiples of 1 and 2 only.
#[test]
fn a_window_from_a_marker_ends_at_a_multiple_of_4_pages_in_7_3() {
    let aligned =
        KernelReadAhead { miss_never_continues: true, marked_window_end_pages: 4, ..LINUX_2_6_37 };
    let cache = FileCache::new(1280);
    for (max, size, pages) in [(32, 5, 9), (32, 1, 1), (6, 2, 3), (3, 1, 2)] {
        let mut state =
            ReadAheadState { start: 7 - size, size, async_size: size, ..ReadAheadState::new(max) };
        let window = on_marker(&aligned, &mut state, &cache, 7 - size, 1).expect("a window");
        assert_eq!((window.start, window.pages), (7, pages), "limit of {max} pages");
        assert_eq!(window.marker, Some(7));
    }
}

#[test]
fn a_window_that_reaches_the_end_of_the_file_has_no_marker_in_7_3() {
    let none = KernelReadAhead {
        cut_window_moves_its_marker: true,
        last_window_has_no_marker: true,
        ..LINUX_2_6_37
    };
    let window = Window { start: 24, pages: 8, marker: Some(30) };
    for (file_pages, pages, marker) in [(40, 8, Some(30)), (32, 8, None), (29, 5, None)] {
        let cut = window.cut_to(&none, file_pages);
        assert_eq!((cut.pages, cut.marker), (pages, marker));
    }
}
