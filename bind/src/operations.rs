//! Checks flashbed-ops files with the simulator's reader.

use crate::{bug, errors};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use sim::ops::{self, Operation};

#[pyfunction]
pub fn check_operations(py: Python<'_>, text: &str) -> PyResult<String> {
    let canonical = || {
        let version = ops::operations(text)?.version();
        ops::parse(text).map(|operations| ops::canonical(version, &operations))
    };
    let parsed = bug::caught(canonical)?;
    parsed.map_err(|error| errors::format_error(py, &error))
}

#[pyfunction]
pub fn body_offset(py: Python<'_>, text: PyBackedStr) -> PyResult<usize> {
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
    found.map_err(|error| errors::format_error(py, &error))
}
