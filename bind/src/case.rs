//! Inputs: cases and their initial state.
//!
//! Python builds each object once, from keyword arguments, and passes lists of them. They never
//! change, so the simulator's threads read them without the interpreter lock. Operations stay in
//! Python's strings. Cases with the same initial state share a `Chip`.

use crate::errors::mount_error;
use crate::policies::Policies;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use sim::run::parallel;
use sim::run::{CaseInput, ChipState, Mount};

const KERNELS: &sim::run::Policies = sim::run::Policies::KERNELS;

/// A case and its stack.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct Case {
    fs: Mount,
    prepare: PyBackedStr,
    body: PyBackedStr,
    read_ahead_kib: u32,
    chip: Py<Chip>,
    policies: Option<Py<Policies>>,
    cuts: Vec<u64>,
    gc_choices: Vec<u16>,
}

#[pymethods]
impl Case {
    #[new]
    #[pyo3(signature = (
        *, fs, prepare, body, read_ahead_kib, chip, policies=None, cuts=vec![], gc_choices=vec![],
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        fs: &str,
        prepare: PyBackedStr,
        body: PyBackedStr,
        read_ahead_kib: u32,
        chip: Py<Chip>,
        policies: Option<Py<Policies>>,
        cuts: Vec<u64>,
        gc_choices: Vec<u16>,
    ) -> PyResult<Case> {
        let fs = fs.parse().map_err(|error| mount_error(py, &error))?;
        Ok(Case { fs, prepare, body, read_ahead_kib, chip, policies, cuts, gc_choices })
    }
}

impl Case {
    /// Borrows it as the simulator's type.
    pub fn borrowed(&self) -> parallel::Case<'_> {
        let Case { read_ahead_kib, body, cuts, gc_choices, .. } = self;
        parallel::Case {
            fs: self.fs,
            prepare: &self.prepare,
            chip: &self.chip.get().0,
            policies: self.policies.as_ref().map_or(KERNELS, |own| &own.get().0),
            input: CaseInput { read_ahead_kib: *read_ahead_kib, body, cuts, gc_choices },
        }
    }
}

/// The chip that a preparation begins with.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct Chip(ChipState);

#[pymethods]
impl Chip {
    #[new]
    #[pyo3(signature = (*, erases=vec![], bad_blocks=vec![], faults=None))]
    fn new(erases: Vec<u32>, bad_blocks: Vec<u32>, faults: Option<Py<Faults>>) -> Chip {
        let faults = faults.map(|faults| faults.get().0.clone()).unwrap_or_default();
        Chip(ChipState { erases, bad_blocks, faults })
    }
}

impl Chip {
    /// It as the simulator has it.
    pub fn state(&self) -> &ChipState {
        &self.0
    }
}

/// The chip's faults from the mark on.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct Faults(sim::flash::Faults);

#[pymethods]
impl Faults {
    #[new]
    #[pyo3(signature = (*, seed=0, endurance_erases=0, program_fail_ppm=0, program_fail=vec![],
        erase_fail_ppm=0, erase_fail=vec![], bit_flip_ppm=0, bits_flipped=0, errors=None))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        seed: u64,
        endurance_erases: u32,
        program_fail_ppm: u32,
        program_fail: Vec<u64>,
        erase_fail_ppm: u32,
        erase_fail: Vec<u64>,
        bit_flip_ppm: u32,
        bits_flipped: u32,
        errors: Option<Py<ErrorCurve>>,
    ) -> Faults {
        Faults(sim::flash::Faults {
            seed,
            endurance_erases,
            program_fail_ppm,
            program_fail,
            erase_fail_ppm,
            erase_fail,
            bit_flip_ppm,
            bits_flipped,
            errors: errors.map(|errors| errors.get().0),
        })
    }
}

/// Bit errors over erases, reads and age.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct ErrorCurve(sim::flash::ErrorCurve);

/// A term: log2 of its coefficient, the power of the erases, the power of hours or reads.
type ErrorTerm = (i32, u32, u32);

#[pymethods]
impl ErrorCurve {
    #[new]
    #[pyo3(signature = (*, fresh, wear, retention, disturb, age_hours=0, reads=0))]
    fn new(
        fresh: ErrorTerm,
        wear: ErrorTerm,
        retention: ErrorTerm,
        disturb: ErrorTerm,
        age_hours: u32,
        reads: u32,
    ) -> ErrorCurve {
        let term = |(log2, erases_power, power)| sim::flash::Term { log2, erases_power, power };
        ErrorCurve(sim::flash::ErrorCurve {
            fresh: term(fresh),
            wear: term(wear),
            retention: term(retention),
            disturb: term(disturb),
            age_hours,
            reads,
        })
    }
}

/// What is recorded besides the counts of each case.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct Recorded(pub sim::run::Recorded);

#[pymethods]
impl Recorded {
    #[new]
    #[pyo3(signature = (*, requests=false, flash=false, wear=false, flush=false, waits=false))]
    fn new(requests: bool, flash: bool, wear: bool, flush: bool, waits: bool) -> Recorded {
        let (live, layers) = (false, false);
        Recorded(sim::run::Recorded { requests, flash, wear, flush, live, layers, waits })
    }
}
