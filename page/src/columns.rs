//! The rows of a case as columns of plain numbers, as JavaScript's typed arrays have them.
//!
//! Moments are 64-bit floats: whole nanoseconds are exact up to 104 days. Other numbers are 32-bit
//! integers, or floats as soon as one of their column is too large for that. Rows past the limit
//! are counted and not kept.

use common::energy::{PerKind, Stretches};
use sim::flash::{FlashOp, Kind};
use sim::ops;
use sim::run::{LayerTimes, Request};
use sim::units::Ns;
use std::collections::BTreeSet;

/// Stands for no file.
const NO_FILE: i32 = -1;
/// Stands for no offset or length.
const NONE: i64 = -1;
const PAUSE: &str = "pause";

/// A column's numbers.
pub enum Numbers {
    F64(Vec<f64>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U8(Vec<u8>),
}

impl Numbers {
    /// What kind of array they are, where they stand in memory, and how many they are.
    pub fn place(&self) -> (&'static str, usize, usize) {
        match self {
            Numbers::F64(all) => ("f64", all.as_ptr() as usize, all.len()),
            Numbers::U32(all) => ("u32", all.as_ptr() as usize, all.len()),
            Numbers::I32(all) => ("i32", all.as_ptr() as usize, all.len()),
            Numbers::U8(all) => ("u8", all.as_ptr() as usize, all.len()),
        }
    }
}

/// Numbers that nearly always fit 32 bits.
enum Narrow {
    I32(Vec<i32>),
    F64(Vec<f64>),
}

impl Narrow {
    fn push(&mut self, number: i64) {
        if let Narrow::I32(all) = self {
            match i32::try_from(number) {
                Ok(number) => return all.push(number),
                Err(_) => *self = Narrow::F64(all.iter().map(|&each| f64::from(each)).collect()),
            }
        }
        if let Narrow::F64(all) = self {
            all.push(number as f64);
        }
    }

    fn push_time(&mut self, time: Ns) {
        self.push(time.0 as i64);
    }

    fn into_numbers(self) -> Numbers {
        match self {
            Narrow::I32(all) => Numbers::I32(all),
            Narrow::F64(all) => Numbers::F64(all),
        }
    }
}

impl Default for Narrow {
    fn default() -> Narrow {
        Narrow::I32(Vec::new())
    }
}

/// The rows of one case.
#[derive(Default)]
pub struct Rows {
    rows_max: usize,
    /// Rows that were not kept.
    pub requests_left_out: usize,
    /// See `requests_left_out`.
    pub flash_left_out: usize,
    /// Operations that were called, those of rows that were not kept among them.
    ops: BTreeSet<u8>,
    /// Whether the chip worked in a pause.
    works_in_pauses: bool,
    request_start: Vec<f64>,
    request_latency: Narrow,
    request_flash: Narrow,
    request_driver: Narrow,
    request_fs: Narrow,
    request_ubi: Narrow,
    request_offset: Narrow,
    request_length: Narrow,
    request_file: Vec<i32>,
    request_op: Vec<u8>,
    flash_start: Vec<f64>,
    flash_page: Vec<u32>,
    flash_column: Vec<u32>,
    flash_kind: Vec<u8>,
    flash_task: Vec<u8>,
}

impl Rows {
    /// No rows yet.
    pub fn new(rows_max: usize) -> Rows {
        Rows { rows_max, ..Rows::default() }
    }

    /// The next rows of both tables.
    pub fn add(&mut self, requests: &[Request], flash: &[FlashOp]) {
        for request in requests {
            self.ops.insert(request.op as u8);
            let is_pause = ops::NAMES[request.op] == PAUSE;
            self.works_in_pauses |= is_pause && request.flash_time > Ns::ZERO;
        }
        let kept = requests.len().min(self.rows_max - self.request_op.len());
        self.requests_left_out += requests.len() - kept;
        for request in &requests[..kept] {
            self.add_request(request);
        }
        let kept = flash.len().min(self.rows_max - self.flash_kind.len());
        self.flash_left_out += flash.len() - kept;
        for op in &flash[..kept] {
            self.flash_start.push(op.start.0 as f64);
            self.flash_page.push(op.page.0);
            self.flash_column.push(op.column);
            self.flash_kind.push(kind_code(op.kind));
            self.flash_task.push(op.task as u8);
        }
    }

    /// The layers' times of the next rows, before the rows themselves.
    pub fn add_layers(&mut self, layers: &[LayerTimes]) {
        let kept = layers.len().min(self.rows_max - self.request_op.len());
        for times in &layers[..kept] {
            self.request_fs.push_time(times.fs);
            self.request_ubi.push_time(times.ubi);
            self.request_driver.push_time(times.driver);
        }
    }

    fn add_request(&mut self, request: &Request) {
        let number = |given: Option<u64>| given.map_or(NONE, |number| number as i64);
        self.request_start.push(request.start.0 as f64);
        self.request_latency.push_time(request.latency);
        self.request_flash.push_time(request.flash_time);
        self.request_offset.push(number(request.offset_bytes));
        self.request_length.push(number(request.length_bytes));
        self.request_file.push(request.file.map_or(NO_FILE, |file| file as i32));
        self.request_op.push(request.op as u8);
    }

    /// Names of the operations that were called.
    pub fn ops(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.ops.iter().map(|&code| ops::NAMES[usize::from(code)])
    }

    /// Operations of the flash that began in a pause; None if rows that would say so are missing.
    pub fn in_pauses(&self) -> PerKind<Option<i64>> {
        if !self.works_in_pauses {
            return [Some(0); 3];
        }
        if self.requests_left_out + self.flash_left_out > 0 {
            return [None; 3];
        }
        let are_pauses = self.request_op.iter().map(|&code| ops::NAMES[usize::from(code)] == PAUSE);
        let begins = self.request_start.iter().map(|&at| at as i64);
        let begun = self.flash_start.iter().map(|&at| at as i64);
        let kinds = self.flash_kind.iter().map(|&kind| usize::from(kind));
        Stretches::new(begins.zip(are_pauses)).in_pauses(begun.zip(kinds)).map(Some)
    }

    /// The columns by name.
    pub fn into_columns(self) -> Vec<(&'static str, Numbers)> {
        use Numbers::{F64, I32, U32, U8};
        vec![
            ("request_start", F64(self.request_start)),
            ("flash_start", F64(self.flash_start)),
            ("request_latency", self.request_latency.into_numbers()),
            ("request_flash", self.request_flash.into_numbers()),
            ("request_driver", self.request_driver.into_numbers()),
            ("request_fs", self.request_fs.into_numbers()),
            ("request_ubi", self.request_ubi.into_numbers()),
            ("request_offset", self.request_offset.into_numbers()),
            ("request_length", self.request_length.into_numbers()),
            ("flash_page", U32(self.flash_page)),
            ("flash_column", U32(self.flash_column)),
            ("request_file", I32(self.request_file)),
            ("request_op", U8(self.request_op)),
            ("flash_kind", U8(self.flash_kind)),
            ("flash_task", U8(self.flash_task)),
        ]
    }
}

fn kind_code(kind: Kind) -> u8 {
    match kind {
        Kind::Read => 0,
        Kind::Program => 1,
        Kind::Erase => 2,
    }
}
