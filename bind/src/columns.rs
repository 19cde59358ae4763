//! Turns rows into columns: for each name `bytes` of little-endian 64-bit integers.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use sim::causes::Cause;
use sim::flash::{FlashOp, Kind};
use sim::profile::BoardProfile;
use sim::run::parallel::RowsSent;
use sim::run::{Flush, Measured, Request};
use sim::waits::{Wait, Waits};
use std::iter::repeat_n;

/// Null in a column; no count or time is as small.
pub const NULL: i64 = i64::MIN;
/// Kinds of flash operations by [`kind_code`].
pub const KIND_NAMES: [&str; 3] = ["read", "program", "erase"];

/// Columns of what a request waited for.
const WAIT_COLUMNS: [(&str, Wait); 6] = [
    ("write_back_ns", Wait::WriteBack),
    ("read_ahead_ns", Wait::ReadAhead),
    ("commit_ns", Wait::Commit),
    ("collection_ns", Wait::Collection),
    ("wear_levelling_ns", Wait::WearLevelling),
    ("erase_ns", Wait::Erase),
];

const INTEGER_BYTES: usize = size_of::<i64>();

/// Columns in the order in which they were added.
#[derive(Default)]
struct Table(Vec<(&'static str, Vec<i64>)>);

impl Table {
    /// Adds a row. All rows have the same columns in the same order.
    fn push(&mut self, row: &[(&'static str, i64)]) {
        if self.0.is_empty() {
            self.0 = row.iter().map(|&(name, _)| (name, Vec::new())).collect();
        }
        for ((_, column), &(_, value)) in self.0.iter_mut().zip(row) {
            column.push(value);
        }
    }

    /// Appends to one column.
    fn extend(&mut self, name: &'static str, values: impl Iterator<Item = i64>) {
        let known = self.0.iter().position(|&(known, _)| known == name);
        let at = known.unwrap_or_else(|| {
            self.0.push((name, Vec::new()));
            self.0.len() - 1
        });
        self.0[at].1.extend(values);
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        let dict = PyDict::new(py);
        for (name, column) in self.0 {
            let bytes = PyBytes::new_with(py, column.len() * INTEGER_BYTES, |bytes| {
                for (place, value) in bytes.chunks_exact_mut(INTEGER_BYTES).zip(&column) {
                    place.copy_from_slice(&value.to_le_bytes());
                }
                Ok(())
            })?;
            dict.set_item(name, bytes)?;
        }
        Ok(dict.unbind())
    }
}

/// The tables of several cases.
#[derive(Default)]
pub struct Columns {
    cases: Table,
    requests: Table,
    flash: Table,
    wear: Table,
    /// Paths by `file_index`.
    file_names: Vec<String>,
}

/// The columns as Python objects.
pub struct PyColumns {
    pub cases: Py<PyDict>,
    pub requests: Py<PyDict>,
    pub flash: Py<PyDict>,
    pub wear: Py<PyDict>,
    pub file_names: Vec<String>,
}

impl Columns {
    pub fn into_python(self, py: Python<'_>) -> PyResult<PyColumns> {
        Ok(PyColumns {
            cases: self.cases.into_dict(py)?,
            requests: self.requests.into_dict(py)?,
            flash: self.flash.into_dict(py)?,
            wear: self.wear.into_dict(py)?,
            file_names: self.file_names,
        })
    }

    /// Adds a case. `before` are its rows that were already sent in pieces.
    pub fn add(
        &mut self,
        board: &BoardProfile,
        index: usize,
        before: RowsSent,
        measured: &Measured,
    ) {
        let case = index as i64;
        let counts = counts_row(board, case, measured);
        self.cases.push(&[counts.as_slice(), &flush_row(measured.flush)].concat());
        self.add_requests(case, before.requests, &measured.requests, &measured.files);
        self.add_waits(&measured.waits);
        self.add_flash(board, case, before.flash, &measured.flash);
        self.add_wear(case, measured);
    }

    /// Adds requests of a case, of which `first` were sent before.
    pub fn add_requests(
        &mut self,
        case: i64,
        first: usize,
        requests: &[Request],
        files: &[String],
    ) {
        let files: Vec<i64> = files.iter().map(|file| self.file_index(file)).collect();
        let file_index = |request: &Request| request.file.map_or(NULL, |at| files[at as usize]);
        let first = first as i64;
        let table = &mut self.requests;
        table.extend("case_index", repeat_n(case, requests.len()));
        table.extend("seq", first..first + requests.len() as i64);
        table.extend("op_code", requests.iter().map(|r| r.op as i64));
        table.extend("file_index", requests.iter().map(file_index));
        table.extend("offset_bytes", requests.iter().map(|r| or_null(r.offset_bytes)));
        table.extend("length_bytes", requests.iter().map(|r| or_null(r.length_bytes)));
        table.extend("start_ns", requests.iter().map(|r| r.start.0 as i64));
        table.extend("changes", requests.iter().map(|r| r.changes as i64));
        table.extend("latency_ns", requests.iter().map(|r| r.latency.0 as i64));
        table.extend("flash_time_ns", requests.iter().map(|r| r.flash_time.0 as i64));
        table.extend("result", requests.iter().map(|r| r.result));
    }

    /// Adds what the requests waited for that were added last; nothing if that was not recorded.
    pub fn add_waits(&mut self, waits: &[Waits]) {
        if waits.is_empty() {
            return;
        }
        let table = &mut self.requests;
        table.extend("own_flash_ns", waits.iter().map(|w| w.chip().0 as i64));
        for (name, wait) in WAIT_COLUMNS {
            table.extend(name, waits.iter().map(|w| w.of(wait).0 as i64));
        }
    }

    /// Adds flash operations of a case, of which `first` were sent before.
    pub fn add_flash(&mut self, board: &BoardProfile, case: i64, first: usize, flash: &[FlashOp]) {
        let pages_per_block = board.chip.pages_per_block;
        for (seq, op) in (first as i64..).zip(flash) {
            self.flash.push(&[
                ("case_index", case),
                ("seq", seq),
                ("start_ns", op.start.0 as i64),
                ("kind", kind_code(op.kind)),
                ("block", i64::from(op.page.0 / pages_per_block)),
                ("page", i64::from(op.page.0)),
                ("offset_bytes", i64::from(op.column)),
                ("length_bytes", i64::from(op.length)),
                ("task", op.task as i64),
            ]);
        }
    }

    fn add_wear(&mut self, case: i64, measured: &Measured) {
        for worn in &measured.wear {
            self.wear.push(&[
                ("case_index", case),
                ("block", i64::from(worn.block.0)),
                ("erases", i64::from(worn.erases)),
                ("erases_measured", i64::from(worn.erases_measured)),
                ("erases_flush", worn.erases_flush.map_or(NULL, i64::from)),
            ]);
        }
    }

    fn file_index(&mut self, file: &str) -> i64 {
        let known = self.file_names.iter().position(|known| known == file);
        let index = known.unwrap_or_else(|| {
            self.file_names.push(file.to_owned());
            self.file_names.len() - 1
        });
        index as i64
    }
}

fn or_null(value: Option<u64>) -> i64 {
    value.map_or(NULL, |value| value as i64)
}

fn counts_row(board: &BoardProfile, case: i64, measured: &Measured) -> [(&'static str, i64); 27] {
    let blocks = u64::from(board.partition.blocks);
    [
        ("case_index", case),
        ("time_ns", measured.time.0 as i64),
        ("flash_time_ns", measured.flash_time.0 as i64),
        ("elapsed_ns", measured.elapsed.0 as i64),
        ("bytes", measured.bytes as i64),
        ("bytes_written", measured.bytes_written as i64),
        ("failed", measured.failed.total() as i64),
        ("flash_reads", measured.flash_reads as i64),
        ("flash_programs", measured.flash_programs as i64),
        ("flash_erases", measured.flash_erases as i64),
        ("bytes_data", measured.causes.bytes(Cause::Data) as i64),
        ("bytes_metadata", measured.causes.bytes(Cause::Metadata) as i64),
        ("bytes_padding", measured.causes.bytes(Cause::Padding) as i64),
        ("bytes_collection", measured.causes.bytes(Cause::Collection) as i64),
        ("bytes_wear_levelling", measured.causes.bytes(Cause::WearLevelling) as i64),
        ("cache_hits", measured.cache_hits as i64),
        ("cache_misses", measured.cache_misses as i64),
        ("cache_adds", measured.cache_adds as i64),
        ("erase_count_max", measured.erase_count_max as i64),
        ("erase_count_mean_milli", (measured.erase_count_sum * 1000 / blocks) as i64),
        ("bad_blocks", measured.bad_blocks as i64),
        ("ecc_corrected", measured.ecc_corrected as i64),
        ("ecc_failed", measured.ecc_failed as i64),
        ("fresh_bytes", or_null(measured.fresh.bytes)),
        ("free_bytes", or_null(measured.prepared.bytes)),
        ("fresh_pages", measured.fresh.pages as i64),
        ("pages", measured.prepared.pages as i64),
    ]
}

/// The `flush_` columns of `cases` and what is free then; null without a flush.
fn flush_row(flush: Option<Flush>) -> [(&'static str, i64); 9] {
    let of = |value: fn(&Flush) -> u64| or_null(flush.as_ref().map(value));
    [
        ("flush_reads", of(|flush| flush.reads)),
        ("flush_programs", of(|flush| flush.programs)),
        ("flush_erases", of(|flush| flush.erases)),
        ("flush_bytes_data", of(|flush| flush.causes.bytes(Cause::Data))),
        ("flush_bytes_metadata", of(|flush| flush.causes.bytes(Cause::Metadata))),
        ("flush_bytes_padding", of(|flush| flush.causes.bytes(Cause::Padding))),
        ("flush_bytes_collection", of(|flush| flush.causes.bytes(Cause::Collection))),
        ("flush_bytes_wear_levelling", of(|flush| flush.causes.bytes(Cause::WearLevelling))),
        ("left_bytes", or_null(flush.and_then(|flush| flush.free_bytes))),
    ]
}

fn kind_code(kind: Kind) -> i64 {
    match kind {
        Kind::Read => 0,
        Kind::Program => 1,
        Kind::Erase => 2,
    }
}
