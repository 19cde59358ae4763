//! The one file that knows both Rust and Python: `flashbed._sim`.
//!
//! JSON profiles and operation text go in, columns come out, each a `bytes` of little-endian
//! 64-bit integers (null is [`NULL`]). Nothing is computed here. The interpreter lock is released
//! while the simulator runs; who waits for it looks for Ctrl-C meanwhile (work.rs).

mod bug;
mod work;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict};
use sim::causes::Cause;
use sim::flash::{Faults, FlashOp, Kind};
use sim::ops::{self, Operation, OperationError};
use sim::profile::BoardProfile;
use sim::run::survey::{Run, Survey, SurveyedFile};
use sim::run::{ChipState, Flush, FsKind, KernelProfile, Measured, Recorded, Request};
use std::collections::BTreeMap;
use work::{Ended, Job, Waited};

/// Stands for null in a column; no count or time reaches it.
const NULL: i64 = i64::MIN;

/// Id, file system, read-ahead in KiB, preparation, body, cuts, what the chip is like, and a
/// kernel's dice.
type Case = (String, String, u32, PyBackedStr, PyBackedStr, Vec<u64>, ChipInput, Vec<u16>);

/// Erases of each block, bad blocks, and what goes wrong.
type ChipInput = (Vec<u32>, Vec<u32>, Option<FaultInput>);

/// Seed, endurance; of programs and of erases rate in millionths and numbers; rate of flips and
/// bits.
type FaultInput = (u64, u32, (u32, Vec<u64>), (u32, Vec<u64>), (u32, u32));

/// Checks a flashbed-ops file and returns its canonical text; ValueError(line, code, detail).
#[pyfunction]
fn check_operations(text: &str) -> PyResult<String> {
    let parsed = bug::caught(|| ops::parse(text).map(|operations| ops::canonical(&operations)))?;
    parsed.map_err(refused)
}

/// Where the body of a flashbed-ops file begins, behind its line `prepared`; 0 if it has none, for
/// all of it is the body. ValueError(line, code, detail) if it is no such file. The text is not
/// copied.
#[pyfunction]
fn body_offset(text: PyBackedStr) -> PyResult<usize> {
    let found = bug::caught(|| {
        let mut operations = ops::operations(&text)?;
        let mut at = 0;
        while let Some(read) = operations.next() {
            if read?.1 == Operation::Prepared {
                at = text.len() - operations.bytes_left();
            }
        }
        Ok(at)
    })?;
    found.map_err(refused)
}

fn refused(error: OperationError) -> PyErr {
    PyValueError::new_err((error.line, error.code, error.detail))
}

/// Bytes that df calls available on a fresh file system; None where the model does not say.
#[pyfunction]
fn fresh_bytes(
    board_json: &str,
    kernel_json: &str,
    fs: &str,
    bad_blocks: Vec<u32>,
) -> PyResult<Option<u64>> {
    let board: BoardProfile = serde_json::from_str(board_json)
        .map_err(|error| PyValueError::new_err(format!("board profile: {error}")))?;
    let fs: FsKind = fs.parse().map_err(PyValueError::new_err)?;
    let kernel: KernelProfile = serde_json::from_str(kernel_json)
        .map_err(|error| PyValueError::new_err(format!("kernel profile: {error}")))?;
    bug::caught(|| sim::run::fresh_bytes(&board, &kernel, fs, &bad_blocks))?
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Runs cases (id, fs, read_ahead_kib, prepare, body, cuts, chip, dice) on one board and kernel;
/// `recorded` are the tables wanted besides `cases`: requests, flash, wear; and flush, columns of
/// `cases`. `sink` is called with the rows of long cases as they come, in the form of the result;
/// without one they are part of it. Where a signal's handler raises, what has ended by then is
/// returned, and what was raised is `interrupted`.
#[pyfunction]
#[pyo3(signature = (board_json, kernel_json, cases, recorded, threads, sink=None))]
fn run_cases<'py>(
    py: Python<'py>,
    board_json: &str,
    kernel_json: &str,
    cases: Vec<Case>,
    recorded: Vec<String>,
    threads: usize,
    sink: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let invalid = |what: &str, error: serde_json::Error| {
        PyValueError::new_err(format!("{what} profile: {error}"))
    };
    let board: BoardProfile =
        serde_json::from_str(board_json).map_err(|error| invalid("board", error))?;
    let kernel: KernelProfile =
        serde_json::from_str(kernel_json).map_err(|error| invalid("kernel", error))?;
    let groups = group(&cases)?;
    let wanted = |table: &str| recorded.iter().any(|name| name == table);
    let recorded = Recorded {
        requests: wanted("requests"),
        flash: wanted("flash"),
        wear: wanted("wear"),
        flush: wanted("flush"),
    };
    let job = Job { board: &board, kernel: &kernel, cases: &cases, groups: &groups, recorded };
    let Waited { results, interrupted } = py.detach(|| job.run(threads.max(1), sink.as_ref()));
    let dict = Columns::collect(&board, &cases, results).into_dict(py)?;
    dict.set_item("interrupted", interrupted.map(|raised| raised.into_value(py)))?;
    Ok(dict)
}

/// Cases that share file system and preparation, as runs of indices; small enough to share out.
struct Group {
    fs: FsKind,
    indices: Vec<usize>,
}

/// A group is cut so that threads share the work evenly; each piece prepares for itself.
const GROUP_CASES_MAX: usize = 64;

fn group(cases: &[Case]) -> PyResult<Vec<Group>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut open: BTreeMap<(&str, &str, &ChipInput), usize> = BTreeMap::new();
    for (index, (_, fs, _, prepare, _, _, chip, _)) in cases.iter().enumerate() {
        let key = (fs.as_str(), &**prepare, chip);
        let full = |&at: &usize| groups[at].indices.len() < GROUP_CASES_MAX;
        let at = match open.get(&key).copied().filter(full) {
            Some(at) => at,
            None => {
                let fs = fs.parse().map_err(PyValueError::new_err)?;
                groups.push(Group { fs, indices: Vec::new() });
                open.insert(key, groups.len() - 1);
                groups.len() - 1
            }
        };
        groups[at].indices.push(index);
    }
    Ok(groups)
}

fn chip_state((erases, bad_blocks, faults): &ChipInput) -> ChipState {
    let faults = faults.clone().map_or(Faults::default(), |given| {
        let (seed, endurance_erases, programs, erases, flips) = given;
        let (program_fail_ppm, program_fail) = programs;
        let (erase_fail_ppm, erase_fail) = erases;
        let (bit_flip_ppm, bits_flipped) = flips;
        Faults {
            seed,
            endurance_erases,
            program_fail_ppm,
            program_fail,
            erase_fail_ppm,
            erase_fail,
            bit_flip_ppm,
            bits_flipped,
        }
    });
    ChipState { erases: erases.clone(), bad_blocks: bad_blocks.clone(), faults }
}

#[derive(Default)]
struct Columns {
    cases: BTreeMap<&'static str, Vec<i64>>,
    requests: BTreeMap<&'static str, Vec<i64>>,
    flash: BTreeMap<&'static str, Vec<i64>>,
    wear: BTreeMap<&'static str, Vec<i64>>,
    files: Vec<String>,
    failures: Vec<(String, String)>,
    surveys: Vec<SurveyRow>,
    /// Of each case that threw any.
    dice: Vec<(i64, Vec<u16>)>,
    /// Of each case whose times lack what a compressor takes, which.
    unpriced: Vec<(i64, &'static str)>,
}

/// Case, change, mount_result, mount_time_ns, files, probe_result.
type SurveyRow = (i64, u64, i64, u64, Vec<FileRow>, Option<i64>);
/// Path, size, runs.
type FileRow = (String, u64, Vec<RunRow>);
/// Offset, length, errno, seed and compressibility of what was written; zeroes have none of them.
type RunRow = (u64, u64, Option<i64>, Option<(u64, u8)>);

fn survey_row(case: i64, survey: &Survey) -> SurveyRow {
    let run = |run: &Run| {
        let source = run.what.ok().flatten();
        let written = source.map(|source| (source.seed, source.compressibility));
        (run.offset_bytes, run.length_bytes, run.what.err(), written)
    };
    let file = |file: &SurveyedFile| {
        (file.path.clone(), file.size_bytes, file.runs.iter().map(run).collect())
    };
    let files = survey.files.iter().map(file).collect();
    let Survey { change, mount_result, mount_time, probe_result, .. } = *survey;
    (case, change, mount_result, mount_time.0, files, probe_result)
}

impl Columns {
    fn collect(board: &BoardProfile, cases: &[Case], results: Vec<Ended>) -> Columns {
        let mut columns = Columns::default();
        for Ended { case, before, result } in results {
            match result {
                Ok(measured) => columns.add(board, case, before, &measured),
                Err(message) => columns.failures.push((cases[case].0.clone(), message)),
            }
        }
        columns
    }

    fn add(&mut self, board: &BoardProfile, index: usize, before: (i64, i64), measured: &Measured) {
        let case = index as i64;
        let blocks = u64::from(board.partition.blocks);
        let optional = |value: Option<u64>| value.map_or(NULL, |value| value as i64);
        let row = [
            ("case_index", case),
            ("time_ns", measured.time.0 as i64),
            ("flash_time_ns", measured.flash_time.0 as i64),
            ("elapsed_ns", measured.elapsed.0 as i64),
            ("bytes", measured.bytes as i64),
            ("bytes_written", measured.bytes_written as i64),
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
            ("fresh_bytes", optional(measured.fresh.bytes)),
            ("free_bytes", optional(measured.prepared.bytes)),
            ("fresh_pages", measured.fresh.pages as i64),
            ("pages", measured.prepared.pages as i64),
        ];
        for (name, value) in row.into_iter().chain(flush_row(measured.flush)) {
            self.cases.entry(name).or_default().push(value);
        }
        self.surveys.extend(measured.surveys.iter().map(|survey| survey_row(case, survey)));
        if let Some(packing) = measured.unpriced {
            self.unpriced.push((case, packing.name()));
        }
        if !measured.dice.is_empty() {
            self.dice.push((case, measured.dice.clone()));
        }
        self.add_requests(case, before.0, &measured.requests, &measured.files);
        self.add_flash(board, case, before.1, &measured.flash);
        self.add_wear(case, measured);
    }

    /// Rows of a case that has not ended, behind so many that were sent before.
    fn of_piece(board: &BoardProfile, piece: &work::Piece) -> Columns {
        let mut columns = Columns::default();
        let case = piece.case as i64;
        columns.add_requests(case, piece.before.0, &piece.requests, &piece.files);
        columns.add_flash(board, case, piece.before.1, &piece.flash);
        columns
    }

    fn add_requests(&mut self, case: i64, first: i64, requests: &[Request], files: &[String]) {
        let optional = |value: Option<u64>| value.map_or(NULL, |value| value as i64);
        let files: Vec<i64> = files.iter().map(|file| self.file_index(file)).collect();
        let n = requests.len();
        let mut extend = |name: &'static str, values: &mut dyn Iterator<Item = i64>| {
            self.requests.entry(name).or_default().extend(values);
        };
        extend("case_index", &mut std::iter::repeat_n(case, n));
        extend("seq", &mut (first..first + n as i64));
        extend("op_code", &mut requests.iter().map(|r| r.op as i64));
        extend(
            "file_index",
            &mut requests.iter().map(|r| r.file.map_or(NULL, |f| files[f as usize])),
        );
        extend("offset_bytes", &mut requests.iter().map(|r| optional(r.offset_bytes)));
        extend("length_bytes", &mut requests.iter().map(|r| optional(r.length_bytes)));
        extend("start_ns", &mut requests.iter().map(|r| r.start.0 as i64));
        extend("changes", &mut requests.iter().map(|r| r.changes as i64));
        extend("latency_ns", &mut requests.iter().map(|r| r.latency.0 as i64));
        extend("flash_time_ns", &mut requests.iter().map(|r| r.flash_time.0 as i64));
        extend("result", &mut requests.iter().map(|r| r.result));
    }

    fn add_wear(&mut self, case: i64, measured: &Measured) {
        for worn in &measured.wear {
            let row = [
                ("case_index", case),
                ("block", i64::from(worn.block.0)),
                ("erases", i64::from(worn.erases)),
                ("erases_measured", i64::from(worn.erases_measured)),
                ("erases_flush", worn.erases_flush.map_or(NULL, i64::from)),
            ];
            for (name, value) in row {
                self.wear.entry(name).or_default().push(value);
            }
        }
    }

    fn add_flash(&mut self, board: &BoardProfile, case: i64, first: i64, flash: &[FlashOp]) {
        let pages_per_block = board.chip.pages_per_block;
        for (seq, op) in (first..).zip(flash) {
            let row = [
                ("case_index", case),
                ("seq", seq),
                ("start_ns", op.start.0 as i64),
                ("kind", kind_code(op.kind)),
                ("block", i64::from(op.page.0 / pages_per_block)),
                ("page", i64::from(op.page.0)),
                ("offset_bytes", i64::from(op.column)),
                ("length_bytes", i64::from(op.length)),
                ("task", op.task as i64),
            ];
            for (name, value) in row {
                self.flash.entry(name).or_default().push(value);
            }
        }
    }

    fn file_index(&mut self, file: &str) -> i64 {
        let known = self.files.iter().position(|known| known == file);
        let index = known.unwrap_or_else(|| {
            self.files.push(file.to_owned());
            self.files.len() - 1
        });
        index as i64
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        for (table, columns) in [
            ("cases", self.cases),
            ("requests", self.requests),
            ("flash", self.flash),
            ("wear", self.wear),
        ] {
            let bytes = PyDict::new(py);
            for (name, values) in columns {
                let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                bytes.set_item(name, PyBytes::new(py, &raw))?;
            }
            dict.set_item(table, bytes)?;
        }
        dict.set_item("op_names", ops::NAMES.to_vec())?;
        dict.set_item("kind_names", ["read", "program", "erase"])?;
        dict.set_item("task_names", sim::sched::TASK_NAMES)?;
        dict.set_item("file_names", self.files)?;
        dict.set_item("failures", self.failures)?;
        dict.set_item("surveys", self.surveys)?;
        dict.set_item("dice", self.dice)?;
        dict.set_item("unpriced", self.unpriced)?;
        Ok(dict)
    }
}

/// The columns `flush_` of `cases`; null where nothing was flushed.
fn flush_row(flush: Option<Flush>) -> [(&'static str, i64); 8] {
    let of = |value: fn(&Flush) -> u64| flush.as_ref().map_or(NULL, |flush| value(flush) as i64);
    [
        ("flush_reads", of(|flush| flush.reads)),
        ("flush_programs", of(|flush| flush.programs)),
        ("flush_erases", of(|flush| flush.erases)),
        ("flush_bytes_data", of(|flush| flush.causes.bytes(Cause::Data))),
        ("flush_bytes_metadata", of(|flush| flush.causes.bytes(Cause::Metadata))),
        ("flush_bytes_padding", of(|flush| flush.causes.bytes(Cause::Padding))),
        ("flush_bytes_collection", of(|flush| flush.causes.bytes(Cause::Collection))),
        ("flush_bytes_wear_levelling", of(|flush| flush.causes.bytes(Cause::WearLevelling))),
    ]
}

fn kind_code(kind: Kind) -> i64 {
    match kind {
        Kind::Read => 0,
        Kind::Program => 1,
        Kind::Erase => 2,
    }
}

/// The simulator; see `_sim.pyi`.
#[pymodule]
mod _sim {
    #[pymodule_export]
    use super::{body_offset, check_operations, fresh_bytes, run_cases};

    /// Stands for null in a column.
    #[pymodule_export]
    const NULL: i64 = super::NULL;
}
