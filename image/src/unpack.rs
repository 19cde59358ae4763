//! The bytes of a data node as they were before a compressor of the kernel.
//!
//! LZO and rtime are here, zlib, zstd, xz and lz4 in crates. A result that is not exactly as long
//! as a node says is an error. Left out: rubin of JFFS2, and lzma, which OpenWrt added to it.

use std::io::Read;

/// The memory that xz may take: squashfs' dictionaries have at most 1 MiB.
const XZ_KIB_MAX: u32 = 4096;

/// How a node's bytes are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Packing {
    /// As they are.
    None,
    /// Zeros, of which the node has none (JFFS2).
    Zero,
    /// LZO1X.
    Lzo,
    /// zlib with its header (JFFS2).
    Zlib,
    /// The same without (UBIFS).
    Deflate,
    /// Zstandard (UBIFS).
    Zstd,
    /// JFFS2's own run-length code.
    Rtime,
    /// xz (squashfs).
    Xz,
    /// A block of LZ4 (squashfs).
    Lz4,
    /// One that this crate does not read.
    Other(u16),
}

impl Packing {
    /// That of a data node of UBIFS.
    pub fn of_ubifs(number: u16) -> Packing {
        match number {
            0 => Packing::None,
            1 => Packing::Lzo,
            2 => Packing::Deflate,
            3 => Packing::Zstd,
            other => Packing::Other(other),
        }
    }

    /// Its name.
    pub fn name(self) -> String {
        let name = match self {
            Packing::None => "none",
            Packing::Zero => "zero",
            Packing::Lzo => "lzo",
            Packing::Zlib | Packing::Deflate => "zlib",
            Packing::Zstd => "zstd",
            Packing::Rtime => "rtime",
            Packing::Xz => "xz",
            Packing::Lz4 => "lz4",
            Packing::Other(number) => return format!("compressor {number}"),
        };
        name.to_owned()
    }
}

/// The `length` bytes that a node's bytes stand for.
pub fn unpack(packing: Packing, bytes: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let found = unpack_most(packing, bytes, length)?;
    if found.len() != length {
        return Err(format!("{}: {} bytes, not {length}", packing.name(), found.len()));
    }
    Ok(found)
}

/// The bytes that these stand for, `length` or fewer; one more says that there are too many.
pub fn unpack_most(packing: Packing, bytes: &[u8], length: usize) -> Result<Vec<u8>, String> {
    Ok(match packing {
        Packing::None => bytes.to_vec(),
        Packing::Zero => return Err("zeros are not stored".to_owned()),
        Packing::Lzo => lzo(bytes, length).ok_or("lzo: broken data")?,
        Packing::Zlib => {
            zlib(miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(bytes, length))?
        }
        Packing::Deflate => {
            zlib(miniz_oxide::inflate::decompress_to_vec_with_limit(bytes, length))?
        }
        Packing::Zstd => zstd(bytes, length)?,
        Packing::Rtime => rtime(bytes, length),
        Packing::Xz => xz(bytes, length)?,
        Packing::Lz4 => {
            lz4_flex::block::decompress(bytes, length).map_err(|why| format!("lz4: {why}"))?
        }
        Packing::Other(_) => return Err(format!("{}: flashbed cannot read it", packing.name())),
    })
}

/// JFFS2 ends a node where it is full, and not the stream: a part is what it takes of it.
fn zlib(done: Result<Vec<u8>, miniz_oxide::inflate::DecompressError>) -> Result<Vec<u8>, String> {
    use miniz_oxide::inflate::TINFLStatus;
    match done {
        Ok(bytes) => Ok(bytes),
        Err(cut) if cut.status == TINFLStatus::HasMoreOutput => Ok(cut.output),
        Err(cut) => Err(format!("zlib: {:?}", cut.status)),
    }
}

fn zstd(bytes: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("zstd: {why}");
    let decoder = ruzstd::decoding::StreamingDecoder::new(bytes).map_err(|why| wrong(&why))?;
    let mut found = Vec::new();
    decoder.take(length as u64 + 1).read_to_end(&mut found).map_err(|why| wrong(&why))?;
    Ok(found)
}

fn xz(bytes: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let decoder = lzma_rust2::XzReader::new_mem_limit(bytes, false, XZ_KIB_MAX);
    let mut found = Vec::new();
    let read = decoder.take(length as u64 + 1).read_to_end(&mut found);
    read.map_err(|why| format!("xz: {why}"))?;
    Ok(found)
}

/// jffs2_rtime_decompress: after each byte a count of bytes that follow it as they did last time.
fn rtime(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut positions = [0_usize; 256];
    let mut found: Vec<u8> = Vec::with_capacity(length);
    let mut pairs = bytes.chunks_exact(2);
    while let (Some(&[value, repeat]), true) = (pairs.next(), found.len() < length) {
        found.push(value);
        let from = positions[usize::from(value)];
        positions[usize::from(value)] = found.len();
        for at in 0..usize::from(repeat).min(length - found.len()) {
            let Some(again) = found.get(from + at) else { break };
            found.push(*again);
        }
    }
    found
}

/// LZO1X, at most `most` bytes (lzo1x_decompress_safe).
fn lzo(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    Lzo { bytes, at: 0, out: Vec::with_capacity(most.min(1 << 16)), most }.run()
}

struct Lzo<'a> {
    bytes: &'a [u8],
    at: usize,
    out: Vec<u8>,
    most: usize,
}

impl Lzo<'_> {
    fn byte(&mut self) -> Option<usize> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(usize::from(byte))
    }

    /// A length that does not fit into its bits: zeros are 255 each.
    fn long(&mut self, bits: usize) -> Option<usize> {
        let mut length = bits;
        loop {
            let byte = self.byte()?;
            if byte != 0 {
                return Some(length + byte);
            }
            length += 255;
            if length > self.most + 512 {
                return None;
            }
        }
    }

    fn literals(&mut self, count: usize) -> Option<()> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        if self.out.len() + count > self.most {
            return None;
        }
        self.out.extend_from_slice(bytes);
        self.at += count;
        Some(())
    }

    fn copy(&mut self, distance: usize, count: usize) -> Option<()> {
        let from = self.out.len().checked_sub(distance)?;
        if distance == 0 || self.out.len() + count > self.most {
            return None;
        }
        for at in from..from + count {
            self.out.push(*self.out.get(at)?);
        }
        Some(())
    }

    fn run(mut self) -> Option<Vec<u8>> {
        // How many literals came last: 4 stands for a run of its own.
        let mut state = 0;
        let first = usize::from(*self.bytes.first()?);
        if first > 17 {
            self.at = 1;
            self.literals(first - 17)?;
            state = (first - 17).min(4);
        }
        loop {
            let code = self.byte()?;
            let (distance, count, next);
            if code < 16 {
                if state == 0 {
                    let count = if code == 0 { self.long(15)? } else { code };
                    self.literals(count + 3)?;
                    state = 4;
                    continue;
                }
                next = code & 3;
                let high = self.byte()? << 2;
                (distance, count) = match state {
                    4 => (high + (code >> 2) + 2049, 3),
                    _ => (high + (code >> 2) + 1, 2),
                };
            } else if code < 64 {
                let bits = if code < 32 { 7 } else { 31 };
                let low = code & bits;
                count = 2 + if low == 0 { self.long(bits)? } else { low };
                let pair = self.byte()? | self.byte()? << 8;
                next = pair & 3;
                if code < 32 {
                    let far = ((code & 8) << 11) + (pair >> 2);
                    if far == 0 {
                        return (count == 3).then_some(self.out);
                    }
                    distance = far + 16384;
                } else {
                    distance = (pair >> 2) + 1;
                }
            } else {
                next = code & 3;
                distance = (self.byte()? << 3) + ((code >> 2) & 7) + 1;
                count = if code < 128 { 3 + ((code >> 5) & 1) } else { 5 + ((code >> 5) & 3) };
            }
            self.copy(distance, count)?;
            self.literals(next)?;
            state = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtime_repeats_what_followed_a_byte() {
        assert_eq!(rtime(&[b'a', 0, b'b', 0, b'a', 1], 4), b"abab");
    }

    #[test]
    fn lzo_ends_at_its_mark_and_nowhere_else() {
        // Four literals, then the end mark.
        let ended = [21, b'a', b'b', b'c', b'd', 17, 0, 0];
        assert_eq!(lzo(&ended, 9).as_deref(), Some(&b"abcd"[..]));
        assert_eq!(lzo(&ended, 3), None);
        for length in 0..ended.len() {
            assert_eq!(lzo(&ended[..length], 9), None);
        }
    }

    #[test]
    fn a_length_that_is_not_the_nodes_is_an_error() {
        assert!(unpack(Packing::None, b"abc", 4).is_err());
        assert!(unpack(Packing::Other(9), b"abc", 3).is_err());
    }
}
