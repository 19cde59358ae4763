//! Names of arbitrary bytes: those outside `A-Z a-z 0-9 . _ -` are encoded as `%` and two digits.

/// How a slash may occur in an encoded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slash {
    /// Not at all: the text is one name.
    Refused,
    /// As itself: the text is a path.
    Plain,
    /// Like any other byte, encoded as `%2F`.
    Encoded,
}

#[inline]
pub(super) const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

const fn is_digit(digit: u8) -> bool {
    matches!(digit, b'0'..=b'9' | b'A'..=b'F')
}

const fn value_of(digit: u8) -> u8 {
    if digit <= b'9' {
        digit - b'0'
    } else {
        digit - b'A' + 10
    }
}

/// How many bytes an encoded text stands for; none if it is invalid.
pub(super) fn encoded_len(text: &str, slash: Slash) -> Option<usize> {
    let mut rest = text.as_bytes();
    let mut bytes = 0;
    loop {
        rest = match *rest {
            [] => return Some(bytes),
            [b'%', high, low, ref after @ ..] if is_digit(high) && is_digit(low) => {
                let byte = value_of(high) << 4 | value_of(low);
                let is_slash = byte == b'/' && slash != Slash::Encoded;
                if byte == 0 || is_plain(byte) || is_slash {
                    return None;
                }
                after
            }
            [byte, ref after @ ..] if is_plain(byte) => after,
            [b'/', ref after @ ..] if slash == Slash::Plain => after,
            _ => return None,
        };
        bytes += 1;
    }
}

/// A byte of a checked name, and the index of the next one.
pub const fn name_byte_at(name: &[u8], at: usize) -> (u8, usize) {
    match name[at] {
        b'%' => (value_of(name[at + 1]) << 4 | value_of(name[at + 2]), at + 3),
        byte => (byte, at + 1),
    }
}

/// The bytes that a checked name stands for.
pub fn name_bytes(name: &str) -> impl Iterator<Item = u8> + '_ {
    let mut at = 0;
    core::iter::from_fn(move || {
        let (byte, next) = (at < name.len()).then(|| name_byte_at(name.as_bytes(), at))?;
        at = next;
        Some(byte)
    })
}

/// The text that stands for a name's bytes.
pub fn name_text(name: &[u8]) -> String {
    let text = |&byte: &u8| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    name.iter().map(text).collect()
}

/// The text that stands for a path, or a link's target.
pub fn path_text(path: &[u8]) -> String {
    path.split(|&byte| byte == b'/').map(name_text).collect::<Vec<_>>().join("/")
}

/// How many bytes a checked name stands for.
pub fn name_len(name: &str) -> usize {
    name.len() - 2 * name.bytes().filter(|&byte| byte == b'%').count()
}
