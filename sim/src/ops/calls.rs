//! Fields of the operations of version 2.

use super::fields::{parse_attribute, parse_below, parse_index, parse_linked, parse_listed};
use super::fields::{parse_long_range, parse_number, parse_page_range, parse_path, parse_range};
use super::fields::{parse_range_flags, parse_slot, parse_target};
use super::fill::parse_fill;
use super::grammar::{Word, FIELDS_MAX};
use super::{Operation, Parsed, Version, FALLOCATE, FLOCK, MAP, MSYNC};

const MODE_MAX: u64 = 0o7777;
const OWNER_MAX: u64 = u32::MAX as u64 - 1;
const VALUE_BYTES_MAX: u64 = 65_536;

pub(super) fn parse_new_fields<'a>(word: Word, f: &[&'a str; FIELDS_MAX]) -> Parsed<Operation<'a>> {
    Ok(match word {
        Word::Task => Operation::Task { task: parse_index(f[1], "task")? },
        Word::Spawn => Operation::Spawn { task: parse_index(f[1], "task")? },
        Word::Wait => Operation::Wait { task: parse_index(f[1], "task")? },
        Word::Fallocate => {
            let slot = parse_slot(f[1], Version::Two)?;
            let (offset, length) = parse_long_range(f[2], f[3])?;
            Operation::Fallocate { slot, offset, length, how: parse_listed(f[4], &FALLOCATE)? }
        }
        Word::Copy => parse_copy(f)?,
        Word::Send => {
            let slot = parse_slot(f[1], Version::Two)?;
            let (offset, length) = parse_range(f[2], f[3])?;
            Operation::Send { slot, offset, length }
        }
        Word::SyncRange => {
            let slot = parse_slot(f[1], Version::Two)?;
            let (offset, length) = parse_long_range(f[2], f[3])?;
            Operation::SyncRange { slot, offset, length, flags: parse_range_flags(f[4])? }
        }
        Word::SyncFs => Operation::SyncFs { slot: parse_slot(f[1], Version::Two)? },
        Word::Flock => Operation::Flock {
            slot: parse_slot(f[1], Version::Two)?,
            how: parse_listed(f[2], &FLOCK)?,
        },
        Word::ReadDir => Operation::ReadDir { slot: parse_slot(f[1], Version::Two)? },
        Word::Mmap | Word::Touch | Word::Store | Word::Msync | Word::Munmap => {
            parse_mapping(word, f)?
        }
        _ => parse_named(word, f)?,
    })
}

/// Operations on a path.
fn parse_named<'a>(word: Word, f: &[&'a str; FIELDS_MAX]) -> Parsed<Operation<'a>> {
    let path = |at: usize| parse_path(f[at], Version::Two);
    Ok(match word {
        Word::Stat => Operation::Stat { path: path(1)? },
        Word::Link => Operation::Link { old: parse_linked(f[1])?, new: path(2)? },
        Word::Symlink => Operation::Symlink { target: parse_target(f[1])?, path: path(2)? },
        Word::ReadLink => Operation::ReadLink { path: path(1)? },
        Word::Chmod => {
            let path = path(1)?;
            Operation::Chmod { path, mode: parse_below(f[2], MODE_MAX, "mode")? as u32 }
        }
        Word::Chown => {
            let path = path(1)?;
            let user = parse_below(f[2], OWNER_MAX, "user")? as u32;
            Operation::Chown { path, user, group: parse_below(f[3], OWNER_MAX, "group")? as u32 }
        }
        Word::Utimens => Operation::Utimens { path: path(1)? },
        Word::SetXattr => {
            let (path, name) = (path(1)?, parse_attribute(f[2])?);
            let length = parse_below(f[3], VALUE_BYTES_MAX, "length")?;
            let seed = parse_number(f[4])?;
            let fill = parse_fill(f[5], 0, length, seed)?;
            Operation::SetXattr { path, name, length: length as u32, seed, fill }
        }
        Word::GetXattr => Operation::GetXattr { path: path(1)?, name: parse_attribute(f[2])? },
        Word::ListXattr => Operation::ListXattr { path: path(1)? },
        Word::RemoveXattr => {
            Operation::RemoveXattr { path: path(1)?, name: parse_attribute(f[2])? }
        }
        _ => unreachable!("read by the callers"),
    })
}

fn parse_copy<'a>(f: &[&'a str; FIELDS_MAX]) -> Parsed<Operation<'a>> {
    let from = parse_slot(f[1], Version::Two)?;
    let from_offset = parse_number(f[2])?;
    let to = parse_slot(f[3], Version::Two)?;
    let (to_offset, length) = parse_range(f[4], f[5])?;
    parse_range(f[2], f[5])?;
    Ok(Operation::Copy { from, from_offset, to, to_offset, length })
}

fn parse_mapping<'a>(word: Word, f: &[&'a str; FIELDS_MAX]) -> Parsed<Operation<'a>> {
    let mapping = parse_index(f[1], "mapping")?;
    Ok(match word {
        Word::Mmap => {
            let slot = parse_slot(f[2], Version::Two)?;
            let (offset, length) = parse_page_range(f[3], f[4])?;
            Operation::Mmap { mapping, slot, offset, length, how: parse_listed(f[5], &MAP)? }
        }
        Word::Touch => {
            let (offset, length) = parse_range(f[2], f[3])?;
            Operation::Touch { mapping, offset, length }
        }
        Word::Store => {
            let (offset, length) = parse_range(f[2], f[3])?;
            let seed = parse_number(f[4])?;
            let fill = parse_fill(f[5], offset, length, seed)?;
            Operation::Store { mapping, offset, length, seed, fill }
        }
        Word::Msync => {
            let (offset, length) = parse_page_range(f[2], f[3])?;
            Operation::Msync { mapping, offset, length, how: parse_listed(f[4], &MSYNC)? }
        }
        _ => Operation::Munmap { mapping },
    })
}
