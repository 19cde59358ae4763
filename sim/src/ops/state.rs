//! Checks across lines: slots, mappings, tasks, `data`, `prepared` and `mark`.

use super::{refuse, Fill, Mapped, Operation, Parsed, PAGE_BYTES, SLOTS};

/// A set of numbers below [`SLOTS`].
#[derive(Debug, Default)]
struct Numbers([u64; SLOTS / 64]);

impl Numbers {
    #[inline]
    fn has(&self, number: usize) -> bool {
        self.0[number / 64 % (SLOTS / 64)] >> (number % 64) & 1 == 1
    }

    #[inline]
    fn add(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    #[inline]
    fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    fn first(&self) -> Option<usize> {
        (0..SLOTS).find(|&number| self.has(number))
    }
}

/// An open mapping.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    bytes: u64,
    is_written: bool,
}

/// The tasks. Task 0 runs from the beginning, another one from its `spawn`, each until another task
/// waits for it.
#[derive(Debug)]
struct Tasks {
    current: usize,
    running: Numbers,
}

impl Default for Tasks {
    fn default() -> Tasks {
        let mut running = Numbers::default();
        running.add(0);
        Tasks { current: 0, running }
    }
}

/// `data` lines whose operation has not come yet.
#[derive(Debug)]
struct Data<'a> {
    /// The rest of the file from the first of them on.
    from: &'a str,
    bytes: u64,
    /// The line number of the last.
    line: usize,
    /// Whether another may follow.
    is_whole: bool,
}

/// The open slots and mappings of a file, and its marks so far.
#[derive(Debug, Default)]
pub(super) struct State<'a> {
    open: Numbers,
    database: Option<&'a str>,
    prepared: bool,
    mark: bool,
    mappings: Vec<Option<Mapping>>,
    tasks: Tasks,
    data: Option<Data<'a>>,
}

impl<'a> State<'a> {
    /// Checks an operation of version 2.
    #[inline(never)]
    pub fn check_new(&mut self, operation: &Operation<'a>) -> Parsed<()> {
        match *operation {
            Operation::Task { .. } | Operation::Spawn { .. } | Operation::Wait { .. } => {
                self.check_task(operation)
            }
            Operation::Copy { from, to, .. } => {
                self.must_be_open(from)?;
                self.must_be_open(to)
            }
            ref other => match other.mapping() {
                Some(mapping) => self.check_mapping(mapping, operation),
                None => self.check(operation),
            },
        }
    }

    /// Checks an operation of version 1.
    pub fn check(&mut self, operation: &Operation<'a>) -> Parsed<()> {
        match *operation {
            Operation::Open { slot, .. } => {
                if self.open.has(slot) {
                    return Err(refuse("slot-open", format!("slot {slot} is open already")));
                }
                self.open.add(slot);
            }
            Operation::SqlOpen { path, .. } => {
                if let Some(open) = self.database.replace(path) {
                    return Err(refuse("slot-open", format!("database {open} is open already")));
                }
            }
            Operation::Sql { path, .. } | Operation::SqlClose { path } => {
                if self.database != Some(path) {
                    return Err(refuse("slot-closed", format!("database {path} is not open")));
                }
                if matches!(operation, Operation::SqlClose { .. }) {
                    self.database = None;
                }
            }
            Operation::Remount => self.all_closed("remount")?,
            Operation::Prepared => {
                self.all_closed("prepared")?;
                self.check_task(operation)?;
                if self.prepared || self.mark {
                    return Err(refuse("repeated", "prepared may come once, before mark"));
                }
                self.prepared = true;
            }
            Operation::Mark => {
                if self.mark {
                    return Err(refuse("repeated", "mark may come once"));
                }
                self.mark = true;
            }
            ref other => {
                if let Some(slot) = other.slot() {
                    self.must_be_open(slot)?;
                    if matches!(other, Operation::Close { .. }) {
                        self.open.remove(slot);
                    }
                }
            }
        }
        Ok(())
    }

    fn all_closed(&self, at: &str) -> Parsed<()> {
        if let Some(slot) = self.open.first() {
            return Err(refuse("slot-open", format!("slot {slot} is open at {at}")));
        }
        if let Some(path) = self.database {
            return Err(refuse("slot-open", format!("database {path} is open at {at}")));
        }
        if let Some(mapping) = self.mappings.iter().position(Option::is_some) {
            return Err(refuse("map-open", format!("mapping {mapping} is open at {at}")));
        }
        Ok(())
    }

    #[inline]
    fn must_be_open(&self, slot: usize) -> Parsed<()> {
        if self.open.has(slot) {
            return Ok(());
        }
        Err(refuse("slot-closed", format!("slot {slot} is not open")))
    }

    /// Checks an operation on a mapping.
    fn check_mapping(&mut self, mapping: usize, operation: &Operation<'a>) -> Parsed<()> {
        if self.mappings.len() <= mapping {
            self.mappings.resize(mapping + 1, None);
        }
        let open = &mut self.mappings[mapping];
        match (operation, *open) {
            (Operation::Mmap { .. }, Some(_)) => {
                return Err(refuse("map-open", format!("mapping {mapping} is open already")));
            }
            (&Operation::Mmap { slot, length, how, .. }, None) => {
                let bytes = length.next_multiple_of(PAGE_BYTES);
                *open = Some(Mapping { bytes, is_written: how == Mapped::ReadWrite });
                return self.must_be_open(slot);
            }
            (_, None) => {
                return Err(refuse("map-closed", format!("mapping {mapping} is not open")));
            }
            (Operation::Munmap { .. }, Some(_)) => *open = None,
            (Operation::Store { .. }, Some(mapped)) if !mapped.is_written => {
                return Err(refuse("bad-map", format!("mapping {mapping} is not written to")));
            }
            (
                &(Operation::Touch { offset, length, .. }
                | Operation::Store { offset, length, .. }
                | Operation::Msync { offset, length, .. }),
                Some(Mapping { bytes, .. }),
            ) if offset + length > bytes => {
                return Err(refuse("bad-map", format!("{offset} + {length} is above {bytes}")));
            }
            _ => {}
        }
        Ok(())
    }

    fn check_task(&mut self, operation: &Operation<'a>) -> Parsed<()> {
        let tasks = &mut self.tasks;
        let bad = |detail: String| Err(refuse("bad-task", detail));
        match *operation {
            Operation::Task { task } => {
                if !tasks.running.has(task) {
                    return bad(format!("task {task} does not run"));
                }
                tasks.current = task;
            }
            Operation::Spawn { task } => {
                if tasks.running.has(task) {
                    return bad(format!("task {task} runs already"));
                }
                tasks.running.add(task);
            }
            Operation::Wait { task } => {
                if task == tasks.current || !tasks.running.has(task) {
                    return bad(format!("task {task} is the current one, or does not run"));
                }
                tasks.running.remove(task);
            }
            _ => {
                let others = (0..SLOTS).find(|&task| task != 0 && tasks.running.has(task));
                if let Some(task) = others {
                    return bad(format!("task {task} runs at prepared"));
                }
                if tasks.current != 0 || !tasks.running.has(0) {
                    return bad("prepared outside of task 0".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Checks a `data` line, which begins the text `from`.
    #[cold]
    pub fn add_data(&mut self, bytes: usize, from: &'a str, line: usize) -> Parsed<()> {
        let data = self.data.get_or_insert(Data { from, bytes: 0, line, is_whole: true });
        if !data.is_whole {
            return Err(refuse("bad-data", "a line after one of other than a multiple of 3 bytes"));
        }
        data.bytes += bytes as u64;
        data.line = line;
        data.is_whole = bytes % 3 == 0;
        Ok(())
    }

    /// Gives an operation, which begins the text `from`, the `data` lines before it.
    #[inline]
    pub fn take_data(&mut self, operation: &mut Operation<'a>, from: &'a str) -> Parsed<()> {
        let length = operation.length();
        let fill = match operation {
            Operation::Write { fill, .. }
            | Operation::Store { fill, .. }
            | Operation::SetXattr { fill, .. } => Some(fill),
            _ => None,
        };
        match (self.data.take(), fill) {
            (None, None | Some(Fill::Even(_) | Fill::Pieces(_))) => {}
            (data, Some(Fill::Data(lines))) => {
                let bytes = data.as_ref().map_or(0, |data| data.bytes);
                if Some(bytes) != length {
                    return Err(refuse("bad-data", format!("{bytes} bytes of data")));
                }
                *lines = data.map_or("", |data| &data.from[..data.from.len() - from.len()]);
            }
            (Some(_), _) => return Err(refuse("bad-data", "data with no operation that has it")),
        }
        Ok(())
    }

    /// Drops pending `data` lines that no operation has used; returns the line number of the last.
    pub fn forget_data(&mut self) -> Option<usize> {
        self.data.take().map(|data| data.line)
    }
}
