//! The computed sizes are those of the kernel's code.
//!
//! tests/corpus/content/compressed.csv was made with the compressors of Linux 6.1.192
//! (lib/zlib_deflate, lib/lzo, lib/zstd, fs/jffs2/compr_*.c), and for its last column with lib/lzo
//! of 2.6.37, compiled for user space. In an empty field the compressor gave up.

use sim::compress::work::Work;
use sim::compress::{Compressors, Jffs2Compressor, UbifsCompressor};
use sim::content::{Contents, Source};

const COMPRESSED: &str = include_str!("../../../tests/corpus/content/compressed.csv");

/// Parses `START-END:SEED:COMPRESSIBILITY`, one write after another.
fn contents_of(writes: &str) -> Contents {
    let mut contents = Contents::default();
    for write in writes.split_whitespace() {
        let numbers: Vec<u64> = write.split(['-', ':']).map(|n| n.parse().unwrap()).collect();
        let source = Source { seed: numbers[2], compressibility: numbers[3] as u8 };
        contents.write(numbers[0], numbers[1], source);
    }
    contents
}

struct Row {
    text: &'static str,
    contents: Contents,
    bytes: u64,
    room: usize,
    sizes: Vec<Option<usize>>,
}

fn rows() -> impl Iterator<Item = Row> {
    COMPRESSED.lines().skip(1).map(|text| {
        let fields: Vec<&str> = text.split(',').collect();
        Row {
            text,
            contents: contents_of(fields[0]),
            bytes: fields[1].parse().unwrap(),
            room: fields[2].parse().unwrap(),
            sizes: fields[3..].iter().map(|field| field.parse().ok()).collect(),
        }
    })
}

#[test]
fn jffs2_takes_and_gives_what_the_kernel_does() {
    let mut compressors = Compressors::new();
    for Row { text, contents, bytes, room, sizes } in rows() {
        let pair = |at: usize| sizes[at].zip(sizes[at + 1]);
        let lzo = sizes[4].map(|size| (bytes as usize, size));
        let of_each = [
            (Jffs2Compressor::Lzo, lzo),
            (Jffs2Compressor::Zlib, pair(0)),
            (Jffs2Compressor::Rtime, pair(2)),
        ];
        for (compressor, expected) in of_each {
            let data = compressors.jffs2(&[compressor], &contents, 0, bytes, room);
            let given = data.compressor.map(|_| (data.file_bytes, data.node_bytes));
            assert_eq!(given, expected, "{compressor:?}: {text}");
        }
        let all = of_each.map(|(compressor, _)| compressor);
        let first = of_each.iter().find(|(_, expected)| expected.is_some());
        let data = compressors.jffs2(&all, &contents, 0, bytes, room);
        let (compressor, (file_bytes, node_bytes)) = match first {
            Some((compressor, expected)) => (Some(*compressor), expected.unwrap()),
            None => (None, (room, room)),
        };
        assert_eq!(data.compressor, compressor, "{text}");
        assert_eq!((data.file_bytes, data.node_bytes), (file_bytes, node_bytes), "{text}");
    }
}

#[test]
fn jffs2_before_3_9_takes_what_its_lzo_makes_fit() {
    let mut compressors = Compressors::new();
    let mut fitted = 0;
    for Row { text, contents, bytes, room, sizes } in rows() {
        let size = sizes[8].expect("LZO always gives a size");
        let expected = (size <= room.min(bytes as usize)).then_some((bytes as usize, size));
        fitted += usize::from(expected.is_some());
        let data = compressors.jffs2(&[Jffs2Compressor::Lzo202], &contents, 0, bytes, room);
        let given = data.compressor.map(|_| (data.file_bytes, data.node_bytes));
        assert_eq!(given, expected, "{text}");
    }
    assert!(fitted > 50);
}

#[test]
fn ubifs_keeps_what_the_kernel_keeps() {
    let mut compressors = Compressors::new();
    for Row { text, contents, bytes, sizes, .. } in rows() {
        let of_each = [
            (UbifsCompressor::Lzo, sizes[5]),
            (UbifsCompressor::Lzo202, sizes[8]),
            (UbifsCompressor::Zlib, sizes[6]),
            (UbifsCompressor::Zstd, sizes[7]),
        ];
        for (compressor, size) in of_each {
            let (length, size) =
                (bytes as usize, size.expect("the crypto API always gives a size"));
            let worth_it = length >= 128 && length as i64 - size as i64 >= 64;
            let expected = if worth_it { size } else { length };
            let given = compressors.ubifs(compressor, &contents, 0, bytes).node_bytes;
            assert_eq!(given, expected, "{compressor:?}: {text}");
        }
        let plain = compressors.ubifs(UbifsCompressor::None, &contents, 0, bytes);
        assert_eq!((plain.node_bytes, plain.work), (bytes as usize, Work::default()));
    }
}

/// In zeros the second position searched gives a match of everything; in random bytes the steps
/// between searched positions grow.
#[test]
fn lzo_counts_what_it_looks_at() {
    let work_of = |random: usize| {
        let mut bytes = vec![0; 4096];
        let contents = contents_of("0-4096:7:0");
        contents.fill(0, &mut bytes[..random]);
        let data = Compressors::new().jffs2_bytes(&[Jffs2Compressor::Lzo], &bytes, 4096);
        data.work.lzo.expect("it was tried")
    };
    let zeros = work_of(0);
    assert_eq!((zeros.searched, zeros.matched_bytes), (1, 4076));
    let searched: Vec<u32> = [500, 1000, 2000, 3000].map(|random| work_of(random).searched).into();
    assert!(searched.is_sorted() && searched[3] < 2 * searched[0], "{searched:?}");
    let step_bytes_max = 1 + (3100 >> 5); // two searches find the first match
    let matched = work_of(3000).matched_bytes;
    assert!((1096 - 2 * step_bytes_max - 20..1096).contains(&matched), "{matched}");
}

#[test]
fn without_compressors_a_node_holds_what_it_has_room_for() {
    let data = Compressors::new().jffs2_bytes(&[], &[0; 4096], 300);
    assert_eq!((data.file_bytes, data.node_bytes, data.compressor), (300, 300, None));
}

#[test]
fn a_compressor_that_is_not_modelled_is_refused_by_name() {
    let error = serde_json::from_str::<UbifsCompressor>("\"zstd-1.5.2\"").unwrap_err();
    assert!(error.to_string().contains("zstd-1.5.2"), "{error}");
    assert_eq!(
        serde_json::from_str::<UbifsCompressor>("\"zstd-1.4.10\"").unwrap(),
        UbifsCompressor::Zstd
    );
    let error = serde_json::from_str::<Jffs2Compressor>("\"rubin\"").unwrap_err();
    assert!(error.to_string().contains("rubin"), "{error}");
}
