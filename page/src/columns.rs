//! The rows of a case as columns of plain numbers, as JavaScript's typed arrays have them.
//!
//! A time is a 64-bit float: whole nanoseconds are exact up to 104 days. Rows past the limit are
//! counted and not kept.

use sim::flash::{FlashOp, Kind};
use sim::run::Request;

/// Stands for no file.
const NO_FILE: i32 = -1;
/// Stands for no offset or length.
const NONE: f64 = -1.0;

/// A column's numbers.
pub enum Numbers {
    F64(Vec<f64>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U8(Vec<u8>),
}

impl Numbers {
    /// What kind of array they are, how many numbers, and how many bytes.
    pub fn shape(&self) -> (&'static str, usize, usize) {
        match self {
            Numbers::F64(all) => ("f64", all.len(), all.len() * 8),
            Numbers::U32(all) => ("u32", all.len(), all.len() * 4),
            Numbers::I32(all) => ("i32", all.len(), all.len() * 4),
            Numbers::U8(all) => ("u8", all.len(), all.len()),
        }
    }

    /// Adds them as little-endian bytes.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        match self {
            Numbers::F64(all) => all.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes())),
            Numbers::U32(all) => all.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes())),
            Numbers::I32(all) => all.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes())),
            Numbers::U8(all) => bytes.extend_from_slice(all),
        }
    }
}

/// The rows of one case.
pub struct Rows {
    rows_max: usize,
    /// Rows that were not kept.
    pub requests_left_out: usize,
    /// See `requests_left_out`.
    pub flash_left_out: usize,
    request_start: Vec<f64>,
    request_latency: Vec<f64>,
    request_flash: Vec<f64>,
    request_driver: Vec<f64>,
    request_offset: Vec<f64>,
    request_length: Vec<f64>,
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
        Rows {
            rows_max,
            requests_left_out: 0,
            flash_left_out: 0,
            request_start: Vec::new(),
            request_latency: Vec::new(),
            request_flash: Vec::new(),
            request_driver: Vec::new(),
            request_offset: Vec::new(),
            request_length: Vec::new(),
            request_file: Vec::new(),
            request_op: Vec::new(),
            flash_start: Vec::new(),
            flash_page: Vec::new(),
            flash_column: Vec::new(),
            flash_kind: Vec::new(),
            flash_task: Vec::new(),
        }
    }

    /// The next rows of both tables.
    pub fn add(&mut self, requests: &[Request], flash: &[FlashOp]) {
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

    fn add_request(&mut self, request: &Request) {
        let number = |given: Option<u64>| given.map_or(NONE, |number| number as f64);
        self.request_start.push(request.start.0 as f64);
        self.request_latency.push(request.latency.0 as f64);
        self.request_flash.push(request.flash_time.0 as f64);
        self.request_driver.push(request.driver_time.0 as f64);
        self.request_offset.push(number(request.offset_bytes));
        self.request_length.push(number(request.length_bytes));
        self.request_file.push(request.file.map_or(NO_FILE, |file| file as i32));
        self.request_op.push(request.op as u8);
    }

    /// The columns by name, those of wide numbers first.
    pub fn into_columns(self) -> Vec<(&'static str, Numbers)> {
        use Numbers::{F64, I32, U32, U8};
        vec![
            ("request_start", F64(self.request_start)),
            ("request_latency", F64(self.request_latency)),
            ("request_flash", F64(self.request_flash)),
            ("request_driver", F64(self.request_driver)),
            ("request_offset", F64(self.request_offset)),
            ("request_length", F64(self.request_length)),
            ("flash_start", F64(self.flash_start)),
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
