//! Fields of a line: numbers, names, flags, and words from a list.

use super::names::{encoded_len, is_plain, Slash};
use super::{
    refuse, Advice, Flags, Linked, Parsed, RangeFlags, Version, ADVICE, PAGE_BYTES, SLOTS,
};

const PATH_BYTES_MAX: usize = 1023;
const NAME_BYTES_MAX: usize = 255;
const LENGTH_MAX: u64 = 1 << 30;
const USER: &str = "user.";

#[inline(always)]
pub(super) fn parse_number(field: &str) -> Parsed<u64> {
    let mut number: u64 = 0;
    let mut good = !field.is_empty() && field.len() <= 19;
    good &= field.len() == 1 || !field.starts_with('0');
    for byte in field.bytes() {
        let digit = byte.wrapping_sub(b'0');
        good &= digit <= 9;
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    if !good || number > i64::MAX as u64 {
        return Err(refuse("bad-number", format!("'{field}' is not a number from 0 to 2^63 - 1")));
    }
    Ok(number)
}

#[inline(always)]
pub(super) fn parse_below(field: &str, max: u64, what: &str) -> Parsed<u64> {
    let number = parse_number(field)?;
    if number > max {
        return Err(refuse("bad-number", format!("{what} {number} is above {max}")));
    }
    Ok(number)
}

#[inline(always)]
pub(super) fn parse_slot(field: &str, version: Version) -> Parsed<usize> {
    Ok(parse_below(field, version.slots() as u64 - 1, "slot")? as usize)
}

/// The number of a task or a mapping, of which there are as many as slots.
pub(super) fn parse_index(field: &str, what: &str) -> Parsed<usize> {
    Ok(parse_below(field, SLOTS as u64 - 1, what)? as usize)
}

#[inline(always)]
pub(super) fn parse_range(offset: &str, length: &str) -> Parsed<(u64, u64)> {
    let offset = parse_number(offset)?;
    let length = parse_below(length, LENGTH_MAX, "length")?;
    if length == 0 {
        return Err(refuse("bad-number", "length 0"));
    }
    check_end(offset, length)?;
    Ok((offset, length))
}

/// OFFSET and LENGTH, with a LENGTH of any size.
pub(super) fn parse_long_range(offset: &str, length: &str) -> Parsed<(u64, u64)> {
    let (offset, length) = (parse_number(offset)?, parse_number(length)?);
    check_end(offset, length)?;
    Ok((offset, length))
}

/// OFFSET and LENGTH, where OFFSET begins a page.
pub(super) fn parse_page_range(offset: &str, length: &str) -> Parsed<(u64, u64)> {
    if parse_number(offset)? % PAGE_BYTES != 0 {
        return Err(refuse("bad-number", format!("{offset} is not a multiple of {PAGE_BYTES}")));
    }
    parse_range(offset, length)
}

#[inline(always)]
pub(super) fn check_end(offset: u64, length: u64) -> Parsed<()> {
    if offset + length > i64::MAX as u64 {
        return Err(refuse("bad-number", format!("{offset} + {length} is above 2^63 - 1")));
    }
    Ok(())
}

#[inline]
pub(super) fn parse_path(field: &str, version: Version) -> Parsed<&str> {
    let good = match version {
        Version::One => field.len() <= PATH_BYTES_MAX && field.split('/').all(is_name),
        Version::Two => field == "." || is_encoded_path(field),
    };
    if !good {
        return Err(refuse("bad-path", format!("'{field}'")));
    }
    Ok(field)
}

#[inline]
fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name != "."
        && name != ".."
        && name.bytes().all(is_plain)
}

fn is_encoded_path(path: &str) -> bool {
    let good = |name: &str| {
        let length = encoded_len(name, Slash::Refused);
        name != "."
            && name != ".."
            && length.is_some_and(|length| (1..=NAME_BYTES_MAX).contains(&length))
    };
    let length = encoded_len(path, Slash::Plain);
    path.split('/').all(good) && length.is_some_and(|length| length <= PATH_BYTES_MAX)
}

/// The target of a symbolic link.
pub(super) fn parse_target(field: &str) -> Parsed<&str> {
    let length = encoded_len(field, Slash::Plain);
    if !length.is_some_and(|length| (1..=PATH_BYTES_MAX).contains(&length)) {
        return Err(refuse("bad-path", format!("'{field}' is no target")));
    }
    Ok(field)
}

/// The name of an extended attribute.
pub(super) fn parse_attribute(field: &str) -> Parsed<&str> {
    let length = encoded_len(field, Slash::Encoded);
    let is_user = field.len() > USER.len() && field.starts_with(USER);
    if !is_user || length.is_none_or(|length| length > NAME_BYTES_MAX) {
        return Err(refuse("bad-path", format!("'{field}' is no name of a user attribute")));
    }
    Ok(field)
}

/// The source of `link`: a path, or `SLOT:` and the slot of a file without a name.
pub(super) fn parse_linked(field: &str) -> Parsed<Linked<'_>> {
    match field.strip_prefix("SLOT:") {
        Some(slot) => Ok(Linked::Slot(parse_slot(slot, Version::Two)?)),
        None => Ok(Linked::Path(parse_path(field, Version::Two)?)),
    }
}

pub(super) fn parse_flags(field: &str, version: Version) -> Parsed<Flags> {
    let bad = || refuse("bad-flags", format!("'{field}'"));
    let mut words = field.split(',');
    let mut flags = Flags::default();
    match words.next() {
        Some("ro") => flags.read = true,
        Some("wo") => flags.write = true,
        Some("rw") => (flags.read, flags.write) = (true, true),
        _ => return Err(bad()),
    }
    for word in words {
        let flag = match word {
            "create" => &mut flags.create,
            "excl" => &mut flags.excl,
            "trunc" => &mut flags.trunc,
            "append" => &mut flags.append,
            "sync" => &mut flags.sync,
            "dsync" => &mut flags.dsync,
            "direct" => &mut flags.direct,
            "directory" if version == Version::Two => &mut flags.directory,
            "nofollow" if version == Version::Two => &mut flags.nofollow,
            "tmpfile" if version == Version::Two => &mut flags.tmpfile,
            _ => return Err(bad()),
        };
        if core::mem::replace(flag, true) {
            return Err(bad());
        }
    }
    Ok(flags)
}

pub(super) fn parse_advice(field: &str) -> Parsed<Advice> {
    let found = ADVICE.iter().find(|(name, _)| *name == field);
    found.map(|&(_, advice)| advice).ok_or_else(|| refuse("bad-advice", format!("'{field}'")))
}

/// A word from a list.
pub(super) fn parse_listed<T: Copy>(field: &str, list: &[(&str, T)]) -> Parsed<T> {
    let found = list.iter().find(|(name, _)| *name == field);
    found.map(|&(_, value)| value).ok_or_else(|| refuse("bad-word", format!("'{field}'")))
}

pub(super) fn parse_range_flags(field: &str) -> Parsed<RangeFlags> {
    let mut flags = RangeFlags::default();
    for word in field.split(',') {
        let flag = match word {
            "wait_before" => &mut flags.wait_before,
            "write" => &mut flags.write,
            "wait_after" => &mut flags.wait_after,
            _ => return Err(refuse("bad-word", format!("'{field}'"))),
        };
        if core::mem::replace(flag, true) {
            return Err(refuse("bad-word", format!("'{field}' says '{word}' twice")));
        }
    }
    Ok(flags)
}
