//! Energies of cases, as `common` works them out.

use common::energy::{self, Condition, Constants, Work, COLUMNS};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

const INTEGER_BYTES: usize = size_of::<i64>();

#[pyfunction]
pub fn activity(ops: Vec<String>) -> Option<&'static str> {
    energy::activity(ops.iter().map(String::as_str))
}

/// A board's constants.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct EnergyConstants(Constants);

#[pymethods]
impl EnergyConstants {
    #[new]
    fn new(energy_json: &str) -> PyResult<EnergyConstants> {
        let read = serde_json::from_str(energy_json);
        read.map(EnergyConstants).map_err(|why| PyValueError::new_err(why.to_string()))
    }

    #[pyo3(signature = (*, activity, fs, pattern, read_ahead_kib))]
    fn power_row(
        &self,
        activity: Option<&str>,
        fs: &str,
        pattern: &str,
        read_ahead_kib: u32,
    ) -> Option<usize> {
        self.0.power_row(Condition { activity, fs, pattern, read_ahead_kib })
    }

    #[pyo3(signature = (*, activity, fs, pattern, read_ahead_kib, time_ns, moved_bytes, done,
        in_pauses))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn energies<'py>(
        &self,
        py: Python<'py>,
        activity: Option<&str>,
        fs: &str,
        pattern: &str,
        read_ahead_kib: u32,
        time_ns: Option<i64>,
        moved_bytes: Option<i64>,
        done: [Option<i64>; 3],
        in_pauses: [Option<i64>; 3],
    ) -> PyResult<Bound<'py, PyDict>> {
        let of = Condition { activity, fs, pattern, read_ahead_kib };
        let found = self.0.energies(of, Work { time_ns, bytes: moved_bytes, done, in_pauses });
        let columns = PyDict::new(py);
        columns.set_item("energy_convention", found.convention)?;
        for (name, nj) in COLUMNS.into_iter().zip(found.columns) {
            columns.set_item(name, nj)?;
        }
        Ok(columns)
    }
}

/// The pauses of a case.
#[pyclass(frozen, module = "flashbed._sim")]
pub struct Stretches(energy::Stretches);

#[pymethods]
impl Stretches {
    #[new]
    fn new(calls: Vec<(i64, bool)>) -> Stretches {
        Stretches(energy::Stretches::new(calls))
    }

    fn in_pauses(&self, start_ns: &[u8], kinds: &[u8]) -> PyResult<[i64; 3]> {
        if start_ns.len() != kinds.len() * INTEGER_BYTES || kinds.iter().any(|&kind| kind > 2) {
            return Err(PyValueError::new_err("no operations of the flash"));
        }
        let begins = start_ns
            .chunks_exact(INTEGER_BYTES)
            .map(|bytes| i64::from_le_bytes(bytes.try_into().expect("eight bytes")));
        Ok(self.0.in_pauses(begins.zip(kinds.iter().map(|&kind| usize::from(kind)))))
    }
}
