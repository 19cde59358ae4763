//! Prints operations as the text of a canonical file.

use super::{Fill, Flags, Linked, Operation, RangeFlags, Version};
use super::{ADVICE, FALLOCATE, FLOCK, MAP, MSYNC, NAMES};
use core::fmt::{self, Write};

/// The name of a value in a list.
fn name_in<T: PartialEq>(list: &[(&'static str, T)], value: T) -> &'static str {
    list.iter().find(|(_, listed)| *listed == value).map_or("", |(name, _)| name)
}

impl fmt::Display for Flags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match (self.read, self.write) {
            (true, true) => "rw",
            (true, false) => "ro",
            _ => "wo",
        })?;
        let named = [
            (self.create, ",create"),
            (self.excl, ",excl"),
            (self.trunc, ",trunc"),
            (self.append, ",append"),
            (self.sync, ",sync"),
            (self.dsync, ",dsync"),
            (self.direct, ",direct"),
            (self.directory, ",directory"),
            (self.nofollow, ",nofollow"),
            (self.tmpfile, ",tmpfile"),
        ];
        named.iter().filter(|(set, _)| *set).try_for_each(|(_, name)| out.write_str(name))
    }
}

impl fmt::Display for Operation<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Fill::Data(lines)) = self.fill() {
            let mut data = lines.split('\n').filter(|line| line.starts_with("data "));
            data.try_for_each(|line| writeln!(out, "{line}"))?;
        }
        out.write_str(NAMES[self.code()])?;
        match self {
            Operation::Mkdir { path } | Operation::Unlink { path } | Operation::Rmdir { path } => {
                write!(out, " {path}")
            }
            Operation::Open { slot, path, flags } => write!(out, " {slot} {path} {flags}"),
            Operation::Close { slot }
            | Operation::Fsync { slot }
            | Operation::Fdatasync { slot } => write!(out, " {slot}"),
            Operation::Read { slot, offset, length }
            | Operation::Erase { slot, offset, length } => {
                write!(out, " {slot} {offset} {length}")
            }
            Operation::Write { slot, offset, length, seed, fill } => {
                write!(out, " {slot} {offset} {length} {seed} {fill}")
            }
            Operation::Truncate { slot, length } => write!(out, " {slot} {length}"),
            Operation::Fadvise { slot, offset, length, advice } => {
                write!(out, " {slot} {offset} {length} {}", name_in(&ADVICE, *advice))
            }
            Operation::Rename { old, new } => write!(out, " {old} {new}"),
            Operation::Pause { ns } => write!(out, " {ns}"),
            Operation::Compute { steps } => write!(out, " {steps}"),
            Operation::SqlOpen { path, seed, usage, settings } => {
                write!(out, " {path} {seed} {usage} {settings}")
            }
            Operation::Sql { path, statement } => write!(out, " {path} {statement}"),
            Operation::SqlClose { path } => write!(out, " {path}"),
            Operation::Sync
            | Operation::DropCaches
            | Operation::Remount
            | Operation::Prepared
            | Operation::Mark => Ok(()),
            other => write_call(other, out),
        }
    }
}

impl fmt::Display for RangeFlags {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            (self.wait_before, "wait_before"),
            (self.write, "write"),
            (self.wait_after, "wait_after"),
        ];
        let mut between = "";
        for (_, name) in named.iter().filter(|(set, _)| *set) {
            write!(out, "{between}{name}")?;
            between = ",";
        }
        Ok(())
    }
}

impl fmt::Display for Fill<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fill::Even(percent) => write!(out, "{percent}"),
            Fill::Pieces(pieces) => out.write_str(pieces),
            Fill::Data(_) => out.write_str("data"),
        }
    }
}

impl fmt::Display for Linked<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Linked::Path(path) => out.write_str(path),
            Linked::Slot(slot) => write!(out, "SLOT:{slot}"),
        }
    }
}

/// Prints the fields of an operation of version 2.
fn write_call(operation: &Operation<'_>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match operation {
        Operation::Task { task } | Operation::Spawn { task } | Operation::Wait { task } => {
            write!(out, " {task}")
        }
        Operation::Stat { path }
        | Operation::ReadLink { path }
        | Operation::Utimens { path }
        | Operation::ListXattr { path } => write!(out, " {path}"),
        Operation::ReadDir { slot } | Operation::SyncFs { slot } => write!(out, " {slot}"),
        Operation::Link { old, new } => write!(out, " {old} {new}"),
        Operation::Symlink { target, path } => write!(out, " {target} {path}"),
        Operation::Chmod { path, mode } => write!(out, " {path} {mode}"),
        Operation::Chown { path, user, group } => write!(out, " {path} {user} {group}"),
        Operation::SetXattr { path, name, length, seed, fill } => {
            write!(out, " {path} {name} {length} {seed} {fill}")
        }
        Operation::GetXattr { path, name } | Operation::RemoveXattr { path, name } => {
            write!(out, " {path} {name}")
        }
        Operation::Fallocate { slot, offset, length, how } => {
            write!(out, " {slot} {offset} {length} {}", name_in(&FALLOCATE, *how))
        }
        Operation::Copy { from, from_offset, to, to_offset, length } => {
            write!(out, " {from} {from_offset} {to} {to_offset} {length}")
        }
        Operation::Send { slot, offset, length } => write!(out, " {slot} {offset} {length}"),
        Operation::SyncRange { slot, offset, length, flags } => {
            write!(out, " {slot} {offset} {length} {flags}")
        }
        Operation::Flock { slot, how } => write!(out, " {slot} {}", name_in(&FLOCK, *how)),
        _ => write_mapping(operation, out),
    }
}

fn write_mapping(operation: &Operation<'_>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match operation {
        Operation::Mmap { mapping, slot, offset, length, how } => {
            write!(out, " {mapping} {slot} {offset} {length} {}", name_in(&MAP, *how))
        }
        Operation::Touch { mapping, offset, length } => {
            write!(out, " {mapping} {offset} {length}")
        }
        Operation::Store { mapping, offset, length, seed, fill } => {
            write!(out, " {mapping} {offset} {length} {seed} {fill}")
        }
        Operation::Msync { mapping, offset, length, how } => {
            write!(out, " {mapping} {offset} {length} {}", name_in(&MSYNC, *how))
        }
        Operation::Munmap { mapping } => write!(out, " {mapping}"),
        _ => Ok(()),
    }
}

/// The canonical text of a file: header and operations, no comments or empty lines, flags in order.
pub fn canonical(version: Version, operations: &[(usize, Operation<'_>)]) -> String {
    let mut text = format!("{}\n", version.header());
    for (_, operation) in operations {
        writeln!(text, "{operation}").expect("a String takes everything");
    }
    text
}
