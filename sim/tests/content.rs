//! What a file holds: the bytes that were generated, kept as extents.

use proptest::prelude::*;
use sim::content::{Contents, Source};

const GENERATED: &str = include_str!("../../tests/corpus/content/generated.csv");
/// Where what is changed at random lies in the file: contents are kept in regions of 256 KiB.
const BASE: u64 = (1 << 18) - 300;
const SPACE: u64 = 700;

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

/// Four appends of one seed and offset write the same bytes four times: nothing about that page is random.
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

/// An append that begins in one region of 256 KiB and ends in another is one extent, and random by itself.
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

#[derive(Clone, Debug)]
enum Change {
    Write(u64, u64, Source, u64),
    Clear(u64, u64),
    CopyBack(u64, u64),
    Remember,
}

fn change() -> impl Strategy<Value = Change> {
    let range = || (0..SPACE, 0..SPACE).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let source = (0..3_u64, 0..3_u8);
    let source = source
        .prop_map(|(seed, tenth)| Source { seed, compressibility: [0, 40, 100][tenth as usize] });
    let shift = prop_oneof![3 => Just(0), 1 => 0..200_u64];
    prop_oneof![
        6 => (range(), source, shift).prop_map(|((a, b), source, shift)| Change::Write(a, b, source, shift)),
        2 => range().prop_map(|(a, b)| Change::Clear(a, b)),
        1 => range().prop_map(|(a, b)| Change::CopyBack(a, b)),
        1 => Just(Change::Remember),
    ]
}

/// A file as plain bytes, each with whether it was written and whether it is of a source of random bytes.
type Plain = Vec<(u8, bool, bool)>;

fn apply(contents: &mut Contents, plain: &mut Plain, old: &mut (Contents, Plain), change: &Change) {
    match *change {
        Change::Write(start, end, source, shift) => {
            let offset = BASE + start + shift;
            contents.write_from(BASE + start, BASE + end, source, offset);
            let bytes = generated(offset, end - start, source);
            for (at, byte) in (start..end).zip(bytes) {
                plain[at as usize] = (byte, true, source.compressibility == 0);
            }
        }
        Change::Clear(start, end) => {
            contents.clear(BASE + start, BASE + end);
            plain[start as usize..end as usize].fill((0, false, false));
        }
        Change::CopyBack(start, end) => {
            contents.copy_from(&old.0, BASE + start, BASE + end);
            let range = start as usize..end as usize;
            plain[range.clone()].copy_from_slice(&old.1[range]);
        }
        Change::Remember => *old = (contents.clone(), plain.clone()),
    }
}

proptest! {
    #[test]
    fn contents_are_what_a_plain_file_holds(
        changes in proptest::collection::vec(change(), 1..30),
        (a, b) in (0..SPACE, 0..SPACE),
    ) {
        let mut contents = Contents::default();
        let mut plain: Plain = vec![(0, false, false); SPACE as usize];
        let mut old = (contents.clone(), plain.clone());
        let mut shifted = false;
        for change in &changes {
            apply(&mut contents, &mut plain, &mut old, change);
            shifted |= matches!(change, Change::Write(_, _, _, 1..));
        }
        let mut bytes = vec![7; SPACE as usize];
        contents.fill(BASE, &mut bytes);
        prop_assert!(bytes.iter().zip(&plain).all(|(byte, expected)| *byte == expected.0));

        let (start, end) = (a.min(b), a.max(b));
        let range = &plain[start as usize..end as usize];
        contents.fill(BASE + start, &mut bytes[..range.len()]);
        prop_assert!(bytes.iter().zip(range).all(|(byte, expected)| *byte == expected.0));
        prop_assert_eq!(contents.is_zero(BASE + start, BASE + end), range.iter().all(|byte| !byte.1));
        let random = range.iter().all(|byte| byte.2);
        if shifted {
            prop_assert!(random || !contents.is_random(BASE + start, BASE + end));
        } else {
            prop_assert_eq!(contents.is_random(BASE + start, BASE + end), random);
        }
        let extents: Vec<_> = contents.extents(BASE, BASE + SPACE).collect();
        prop_assert!(extents.iter().all(|extent| extent.0 < extent.1));
        prop_assert!(extents.windows(2).all(|pair| pair[0].1 <= pair[1].0));
        if !shifted {
            prop_assert!(extents.windows(2).all(|pair| pair[0].1 < pair[1].0 || pair[0].2 != pair[1].2));
        }
        prop_assert_eq!(
            extents.iter().map(|extent| extent.1 - extent.0).sum::<u64>(),
            plain.iter().filter(|byte| byte.1).count() as u64
        );
    }
}
