//! What a file holds: the bytes that were generated, kept as extents.

use proptest::prelude::*;
use sim::content::{Contents, Source, Written};
use std::sync::Arc;

const GENERATED: &str = include_str!("../../tests/corpus/content/generated.csv");
const PIECES: &str = include_str!("../../tests/corpus/content/pieces.csv");
/// Where what is changed at random lies in the file: contents are kept in regions of 256 KiB.
const REGION: u64 = 1 << 18;
const BYTES: Place = Place { base: REGION - 300, space: 700 };
/// Where whole pages are written, a region is kept another way.
const PAGE: u64 = 4096;
const PAGES: Place = Place { base: REGION - 3 * PAGE, space: 12 * PAGE };

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

fn generated(offset: u64, length: u64, source: Source) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    source.fill(offset, &mut bytes);
    bytes
}

#[test]
fn the_bytes_are_those_python_generates() {
    for line in GENERATED.lines().skip(1) {
        let numbers: Vec<u64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [offset, length, seed, compressibility, crc] = numbers[..] else { panic!("{line}") };
        let source = Source { seed, compressibility: compressibility as u8 };
        assert_eq!(u64::from(crc32(&generated(offset, length, source))), crc, "{line}");
    }
}

/// A file with this write in it, and nothing else.
fn written(written: Written, start: u64, end: u64) -> Contents {
    let mut contents = Contents::default();
    contents.keep(Source::of_write(1), &Arc::new(written));
    contents.write(start, end, Source::of_write(1));
    contents
}

#[test]
fn the_pieces_are_those_python_makes_wherever_one_begins_to_read() {
    for line in PIECES.lines().skip(1) {
        let (numbers, rest) = line.split_once(",\"").unwrap();
        let (fill, crc) = rest.split_once("\",").unwrap();
        let numbers: Vec<u64> = numbers.split(',').map(|field| field.parse().unwrap()).collect();
        let [offset, length, seed] = numbers[..] else { panic!("{line}") };
        let pieces = sim::ops::pieces(fill).collect();
        let contents = written(Written::Pieces { offset, seed, pieces }, offset, offset + length);
        let mut whole = vec![1; length as usize];
        contents.fill(offset, &mut whole);
        assert_eq!(crc32(&whole).to_string(), crc, "{line}");
        for at in (0..length).step_by(509) {
            let mut part = vec![1; (length - at).min(700) as usize];
            contents.fill(offset + at, &mut part);
            assert_eq!(part, whole[at as usize..][..part.len()], "{line} from {at}");
        }
        assert!(!contents.is_random(offset, offset + length));
    }
}

#[test]
fn real_bytes_move_with_what_is_copied() {
    let bytes: Vec<u8> = (0..9000_u32).map(|at| (at * 7 % 251) as u8).collect();
    let from = written(Written::Bytes { offset: 100, bytes: bytes.clone() }, 100, 9100);
    let mut to = Contents::default();
    to.move_from(&from, (50, 9000), 300_000);
    let mut read = vec![1; 8950];
    to.fill(300_000, &mut read);
    assert!(read[..50].iter().all(|&byte| byte == 0));
    assert_eq!(read[50..], bytes[..8900]);
}

#[test]
fn a_file_that_is_overwritten_keeps_the_writes_it_still_has() {
    let mut contents = Contents::default();
    for number in 0..1000_u64 {
        let (source, start) = (Source::of_write(number), number % 7 * 4096);
        let written = Written::Bytes { offset: start, bytes: vec![number as u8; 4096] };
        contents.keep(source, &Arc::new(written));
        contents.write(start, start + 4096, source);
    }
    let mut bytes = vec![0; 7 * 4096];
    contents.fill(0, &mut bytes);
    let pages = bytes.chunks(4096).map(|page| (page[0], page[4095]));
    let last = |page: u64| (993..1000_u64).find(|number| number % 7 == page).unwrap() as u8;
    assert!(pages.eq((0..7).map(|page| (last(page), last(page)))));
}

#[test]
fn a_file_written_in_order_is_one_extent() {
    let mut contents = Contents::default();
    let source = Source { seed: 3, compressibility: 50 };
    for page in 0..100 {
        contents.write(page * 4096, (page + 1) * 4096, source);
    }
    contents.write(5000, 6000, source);
    assert_eq!(contents.extents(0, u64::MAX).collect::<Vec<_>>(), [(0, 409_600, source)]);
    assert_eq!(contents.extents(4096, 4100).collect::<Vec<_>>(), [(4096, 4100, source)]);
    assert!(contents.is_zero(5000, 5000), "no byte is in an empty range");
    contents.clear(1000, u64::MAX);
    assert_eq!(contents.extents(0, u64::MAX).collect::<Vec<_>>(), [(0, 1000, source)]);
}

/// Four appends of one seed and offset write the same bytes four times: nothing about that page is
/// random.
#[test]
fn what_was_appended_twice_is_not_random() {
    let source = Source { seed: 3, compressibility: 0 };
    let mut contents = Contents::default();
    contents.write_from(0, 1000, source, 0);
    contents.write_from(1000, 2000, source, 0);
    let mut bytes = vec![1; 2000];
    contents.fill(0, &mut bytes);
    assert_eq!(bytes[..1000], bytes[1000..]);
    assert!(!contents.is_random(0, 2000));
    assert!(contents.is_random(0, 1000) && contents.is_random(1000, 2000));
}

/// An append that begins in one region of 256 KiB and ends in another is one extent, and random by
/// itself.
#[test]
fn an_append_across_regions_is_one_extent() {
    let source = Source { seed: 3, compressibility: 0 };
    let (start, end) = (250_000, 850_000);
    let mut contents = Contents::default();
    contents.write_from(start, end, source, 0);
    assert_eq!(contents.extents(0, u64::MAX).collect::<Vec<_>>(), [(start, end, source)]);
    assert!(contents.is_random(start, end) && !contents.is_random(start - 1, end));
    contents.clear(300_000, 800_000);
    let rest = [(start, 300_000, source), (800_000, end, source)];
    assert_eq!(contents.extents(0, u64::MAX).collect::<Vec<_>>(), rest);
    contents.clear(0, u64::MAX);
    assert_eq!(contents, Contents::new());
}

#[derive(Clone, Copy, Debug)]
struct Place {
    base: u64,
    space: u64,
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, u64, Source, u64),
    Clear(u64, u64),
    CopyBack(u64, u64),
    Remember,
}

fn change_of_bytes() -> impl Strategy<Value = Change> {
    let place = 0..BYTES.space;
    let shift = prop_oneof![3 => Just(0), 1 => 0..200_u64];
    change((place.clone(), place).prop_map(ordered), (0..3_u64, 0..3_u8), shift)
}

fn change_of_pages() -> impl Strategy<Value = Change> {
    let page = || (0..PAGES.space / PAGE).prop_map(|page| page * PAGE);
    let range = prop_oneof![
        20 => page().prop_map(|page| (page, page + PAGE)),
        3 => (page(), page()).prop_map(ordered),
        1 => (0..PAGES.space, 0..PAGES.space).prop_map(ordered),
    ];
    let seed = prop_oneof![9 => 0..3_u64, 1 => Just(1 << 32)];
    let compressibility = prop_oneof![9 => Just(0_u8), 1 => Just(1)];
    let shift = prop_oneof![19 => Just(0), 1 => 0..200_u64];
    change(range, (seed, compressibility), shift)
}

fn ordered((a, b): (u64, u64)) -> (u64, u64) {
    (a.min(b), a.max(b))
}

fn change(
    range: impl Strategy<Value = (u64, u64)> + Clone,
    source: impl Strategy<Value = (u64, u8)>,
    shift: impl Strategy<Value = u64>,
) -> impl Strategy<Value = Change> {
    let source = source
        .prop_map(|(seed, tenth)| Source { seed, compressibility: [0, 40, 100][tenth as usize] });
    prop_oneof![
        6 => (range.clone(), source, shift)
            .prop_map(|((a, b), source, shift)| Change::Write(a, b, source, shift)),
        2 => range.clone().prop_map(|(a, b)| Change::Clear(a, b)),
        1 => range.prop_map(|(a, b)| Change::CopyBack(a, b)),
        1 => Just(Change::Remember),
    ]
}

/// A file as plain bytes, each with whether it was written and whether it is of a source of random
/// bytes.
type Plain = Vec<(u8, bool, bool)>;

fn apply(
    base: u64,
    contents: &mut Contents,
    plain: &mut Plain,
    old: &mut (Contents, Plain),
    change: &Change,
) {
    match *change {
        Change::Write(start, end, source, shift) => {
            let offset = base + start + shift;
            contents.write_from(base + start, base + end, source, offset);
            let bytes = generated(offset, end - start, source);
            for (at, byte) in (start..end).zip(bytes) {
                plain[at as usize] = (byte, true, source.compressibility == 0);
            }
        }
        Change::Clear(start, end) => {
            contents.clear(base + start, base + end);
            plain[start as usize..end as usize].fill((0, false, false));
        }
        Change::CopyBack(start, end) => {
            contents.copy_from(&old.0, base + start, base + end);
            let range = start as usize..end as usize;
            plain[range.clone()].copy_from_slice(&old.1[range]);
        }
        Change::Remember => *old = (contents.clone(), plain.clone()),
    }
}

fn check(
    Place { base, space }: Place,
    changes: &[Change],
    (start, end): (u64, u64),
) -> Result<(), TestCaseError> {
    let mut contents = Contents::default();
    let mut plain: Plain = vec![(0, false, false); space as usize];
    let mut old = (contents.clone(), plain.clone());
    let mut shifted = false;
    for change in changes {
        apply(base, &mut contents, &mut plain, &mut old, change);
        shifted |= matches!(change, Change::Write(_, _, _, 1..));
    }
    let mut bytes = vec![7; space as usize];
    contents.fill(base, &mut bytes);
    prop_assert!(bytes.iter().zip(&plain).all(|(byte, expected)| *byte == expected.0));

    let range = &plain[start as usize..end as usize];
    contents.fill(base + start, &mut bytes[..range.len()]);
    prop_assert!(bytes.iter().zip(range).all(|(byte, expected)| *byte == expected.0));
    prop_assert_eq!(contents.is_zero(base + start, base + end), range.iter().all(|byte| !byte.1));
    let random = range.iter().all(|byte| byte.2);
    if shifted {
        prop_assert!(random || !contents.is_random(base + start, base + end));
    } else {
        prop_assert_eq!(contents.is_random(base + start, base + end), random);
    }
    let extents: Vec<_> = contents.extents(base, base + space).collect();
    prop_assert!(extents.iter().all(|extent| extent.0 < extent.1));
    prop_assert!(extents.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    if !shifted {
        prop_assert!(extents
            .windows(2)
            .all(|pair| pair[0].1 < pair[1].0 || pair[0].2 != pair[1].2));
    }
    prop_assert_eq!(
        extents.iter().map(|extent| extent.1 - extent.0).sum::<u64>(),
        plain.iter().filter(|byte| byte.1).count() as u64
    );
    Ok(())
}

proptest! {
    #[test]
    fn contents_are_what_a_plain_file_holds(
        changes in proptest::collection::vec(change_of_bytes(), 1..30),
        range in (0..BYTES.space, 0..BYTES.space).prop_map(ordered),
    ) {
        check(BYTES, &changes, range)?;
    }

    #[test]
    fn contents_written_by_pages_are_what_a_plain_file_holds(
        changes in proptest::collection::vec(change_of_pages(), 1..40),
        range in (0..PAGES.space, 0..PAGES.space).prop_map(ordered),
    ) {
        check(PAGES, &changes, range)?;
    }
}
