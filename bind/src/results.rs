//! Outputs: tables as columns, and objects with named fields for the rest.

use crate::columns::{Columns, PyColumns};
use crate::wait::Waited;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use sim::profile::BoardProfile;
use sim::run::parallel::{self, Ended};
use sim::run::survey::{self, Held};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The results of a call of `run_cases`.
#[pyclass(frozen, get_all, module = "flashbed._sim")]
pub struct Results {
    cases: Py<PyDict>,
    requests: Py<PyDict>,
    flash: Py<PyDict>,
    wear: Py<PyDict>,
    file_names: Vec<String>,
    failures: Vec<Failure>,
    surveys: Vec<Survey>,
    blocks: Py<PyList>,
    gc_choices: BTreeMap<usize, Vec<u16>>,
    unpriced: BTreeMap<usize, &'static str>,
    failed: BTreeMap<usize, Vec<(i64, u64)>>,
    interrupted: Option<Py<PyBaseException>>,
}

impl Results {
    pub fn new(py: Python<'_>, board: &BoardProfile, waited: Waited) -> PyResult<Results> {
        let mut columns = Columns::default();
        let (mut failures, mut surveys) = (Vec::new(), Vec::new());
        let mut blocks = Blocks::default();
        let (mut gc_choices, mut unpriced) = (BTreeMap::new(), BTreeMap::new());
        let mut failed = BTreeMap::new();
        for Ended { case, before, result } in waited.ended {
            let measured = match result {
                Ok(measured) => measured,
                Err(failure) => {
                    failures.push(Failure::new(case, &failure));
                    continue;
                }
            };
            columns.add(board, case, before, &measured);
            for found in measured.surveys {
                surveys.push(Survey::new(case, found, &mut blocks));
            }
            if let Some(packing) = measured.unpriced {
                unpriced.insert(case, packing.name());
            }
            if measured.failed.total() > 0 {
                failed.insert(case, measured.failed.by_result().collect());
            }
            if !measured.gc_choices.is_empty() {
                gc_choices.insert(case, measured.gc_choices);
            }
        }
        let PyColumns { cases, requests, flash, wear, file_names } = columns.into_python(py)?;
        let interrupted = waited.interrupted.map(|raised| raised.into_value(py));
        Ok(Results {
            cases,
            requests,
            flash,
            wear,
            file_names,
            failures,
            surveys,
            blocks: blocks.into_python(py)?,
            gc_choices,
            unpriced,
            failed,
            interrupted,
        })
    }
}

/// Rows of a case that has not ended.
#[pyclass(frozen, get_all, module = "flashbed._sim")]
pub struct Piece {
    case_index: usize,
    requests: Py<PyDict>,
    flash: Py<PyDict>,
    file_names: Vec<String>,
}

impl Piece {
    pub fn new(py: Python<'_>, board: &BoardProfile, piece: &parallel::Piece) -> PyResult<Piece> {
        let mut columns = Columns::default();
        let case = piece.case as i64;
        columns.add_requests(case, piece.before.requests, &piece.requests, &piece.files);
        columns.add_waits(&piece.waits);
        columns.add_flash(board, case, piece.before.flash, &piece.flash);
        let PyColumns { requests, flash, file_names, .. } = columns.into_python(py)?;
        Ok(Piece { case_index: piece.case, requests, flash, file_names })
    }
}

/// A case without a result, and the reason.
#[pyclass(frozen, get_all, skip_from_py_object, module = "flashbed._sim")]
#[derive(Clone)]
pub struct Failure {
    case_index: usize,
    kind: &'static str,
    message: String,
    what: Option<&'static str>,
}

impl Failure {
    fn new(case_index: usize, failure: &parallel::Failure) -> Failure {
        let what = failure.not_modelled();
        let kind = if what.is_some() { "not modelled" } else { "failed" };
        Failure { case_index, kind, message: failure.to_string(), what }
    }
}

/// The state when the power came back.
#[pyclass(frozen, get_all, skip_from_py_object, module = "flashbed._sim")]
#[derive(Clone)]
pub struct Survey {
    case_index: usize,
    change: u64,
    mount_result: i64,
    mount_time_ns: u64,
    files: Vec<SurveyedFile>,
    probe_result: Option<i64>,
}

/// Bytes that runs refer to by their number.
#[derive(Default)]
struct Blocks(BTreeMap<Arc<[u8]>, usize>);

impl Blocks {
    fn number_of(&mut self, bytes: &Arc<[u8]>) -> usize {
        if let Some(&known) = self.0.get(bytes) {
            return known;
        }
        let next = self.0.len();
        self.0.insert(Arc::clone(bytes), next);
        next
    }

    /// The bytes in the order of their numbers.
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyList>> {
        let mut blocks: Vec<(usize, Arc<[u8]>)> =
            self.0.into_iter().map(|(bytes, number)| (number, bytes)).collect();
        blocks.sort_unstable_by_key(|&(number, _)| number);
        let blocks = blocks.iter().map(|(_, bytes)| PyBytes::new(py, bytes));
        Ok(PyList::new(py, blocks.collect::<Vec<_>>())?.unbind())
    }
}

impl Survey {
    fn new(case_index: usize, found: survey::Survey, blocks: &mut Blocks) -> Survey {
        let survey::Survey { change, mount_result, mount_time, files, probe_result } = found;
        let files = files.into_iter().map(|file| SurveyedFile::new(file, blocks)).collect();
        Survey {
            case_index,
            change,
            mount_result,
            mount_time_ns: mount_time.0,
            files,
            probe_result,
        }
    }
}

/// A file and its content.
#[pyclass(frozen, get_all, skip_from_py_object, module = "flashbed._sim")]
#[derive(Clone)]
pub struct SurveyedFile {
    path: String,
    size_bytes: u64,
    runs: Vec<Run>,
    target: Option<String>,
}

impl SurveyedFile {
    fn new(found: survey::SurveyedFile, blocks: &mut Blocks) -> SurveyedFile {
        let survey::SurveyedFile { path, size_bytes, runs, target } = found;
        let runs = runs.iter().map(|run| Run::new(run, blocks)).collect();
        SurveyedFile { path, size_bytes, runs, target }
    }
}

/// Consecutive bytes of a file with one source.
#[pyclass(frozen, get_all, skip_from_py_object, module = "flashbed._sim")]
#[derive(Clone)]
pub struct Run {
    offset_bytes: u64,
    length_bytes: u64,
    errno: Option<i64>,
    seed: Option<u64>,
    compressibility: Option<u8>,
    block: Option<usize>,
}

impl Run {
    fn new(found: &survey::Run, blocks: &mut Blocks) -> Run {
        let survey::Run { offset_bytes, length_bytes, ref held } = *found;
        let mut run = Run {
            offset_bytes,
            length_bytes,
            errno: None,
            seed: None,
            compressibility: None,
            block: None,
        };
        match held {
            Held::Zero => {}
            Held::Generated(source) => {
                run.seed = Some(source.seed);
                run.compressibility = Some(source.compressibility);
            }
            Held::Bytes(bytes) => run.block = Some(blocks.number_of(bytes)),
            Held::Unreadable(errno) => run.errno = Some(*errno),
        }
        run
    }
}
