//! Numbers in foreign bytes, their order, and the check sums of the kernel.
//!
//! What lies outside the bytes reads as 0: a caller checks lengths first, and never panics if it
//! forgot one.

/// Bytes with an order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Fields<'a> {
    /// Of least significant bytes first.
    pub fn little(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, big: false }
    }

    /// Of most significant bytes first.
    pub fn big(bytes: &'a [u8]) -> Fields<'a> {
        Fields { bytes, big: true }
    }

    /// In the order that `big` says.
    pub fn ordered(bytes: &'a [u8], big: bool) -> Fields<'a> {
        Fields { bytes, big }
    }

    /// How many bytes there are.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut found = [0; N];
        if let Some(bytes) = self.bytes.get(at..).and_then(|rest| rest.get(..N)) {
            found.copy_from_slice(bytes);
        }
        found
    }

    /// A byte.
    pub fn u8(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// Two bytes.
    pub fn u16(&self, at: usize) -> u16 {
        let bytes = self.array(at);
        if self.big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        }
    }

    /// Four bytes.
    pub fn u32(&self, at: usize) -> u32 {
        let bytes = self.array(at);
        if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    /// Eight bytes.
    pub fn u64(&self, at: usize) -> u64 {
        let bytes = self.array(at);
        if self.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        }
    }

    /// Some of the bytes, fewer where they end.
    pub fn part(&self, at: usize, length: usize) -> &'a [u8] {
        part(self.bytes, at, length)
    }
}

/// Some of the bytes, fewer where they end.
pub fn part(bytes: &[u8], at: usize, length: usize) -> &[u8] {
    let end = at.saturating_add(length).min(bytes.len());
    bytes.get(at..end).unwrap_or(&[])
}

/// crc32 of lib/crc32.c: the register as it is, begun with `seed`.
pub fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!seed);
    hasher.update(bytes);
    !hasher.finalize()
}

/// crc16 of lib/crc16.c, begun with all bits set, as the LPT has it.
pub fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = u16::MAX;
    for byte in bytes {
        crc ^= u16::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xa001 } else { crc >> 1 };
        }
    }
    crc
}

/// Whether flash was erased and nothing was programmed there.
pub fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0xff)
}

/// An identifier of 16 bytes as it is printed.
pub fn uuid_text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the two sums, CRC-32/JAMCRC and CRC-16/MODBUS.
    #[test]
    fn sums_have_their_check_values() {
        assert_eq!(crc32(u32::MAX, b"123456789"), 0x340b_c6d9);
        assert_eq!(crc16(b"123456789"), 0x4b37);
    }

    #[test]
    fn what_lies_outside_is_zero() {
        let fields = Fields::little(&[1, 2, 3]);
        assert_eq!((fields.u16(1), fields.u32(0), fields.u64(usize::MAX)), (0x302, 0, 0));
        assert_eq!((fields.part(2, 9), fields.part(7, 1)), (&[3][..], &[][..]));
    }
}
