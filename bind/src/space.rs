//! Where the bytes of a partition are, for Python.

use crate::{board, bug, errors, kernel};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use sim::ledger;
use sim::run::{Mount, MountError};

/// A part of a partition; see `_sim.pyi`.
#[pyclass(frozen, get_all)]
pub struct SpaceRow {
    layer: &'static str,
    name: &'static str,
    units: Option<u64>,
    bytes: i64,
}

/// The parts of a partition; see `_sim.pyi`.
#[pyclass(frozen)]
pub struct SpaceTable(ledger::SpaceTable);

#[pymethods]
impl SpaceTable {
    #[getter]
    fn partition_bytes(&self) -> u64 {
        self.0.partition_bytes
    }

    #[getter]
    fn size_bytes(&self) -> u64 {
        self.0.size_bytes
    }

    #[getter]
    fn left_bytes(&self) -> i64 {
        self.0.left_bytes()
    }

    #[getter]
    fn rows(&self) -> Vec<SpaceRow> {
        let row = |&ledger::SpaceRow { layer, name, units, bytes }| SpaceRow {
            layer,
            name,
            units,
            bytes,
        };
        self.0.rows.iter().map(row).collect()
    }

    #[getter]
    fn facts(&self) -> Vec<(&'static str, u64)> {
        self.0.facts.clone()
    }
}

#[pyfunction]
pub fn fresh_space(
    py: Python<'_>,
    board_json: &str,
    kernel_json: &str,
    fs: &str,
    bad_blocks: Vec<u32>,
) -> PyResult<Option<SpaceTable>> {
    let board = board(board_json)?;
    let invalid = |error: MountError| PyValueError::new_err(error.to_string());
    let fs: Mount = fs.parse().map_err(invalid)?;
    let kernel = kernel(kernel_json)?;
    bug::caught(|| sim::run::fresh_space(&board, &kernel, fs, &bad_blocks))?
        .map(|found| found.map(SpaceTable))
        .map_err(|error| errors::run_error(py, &error))
}
